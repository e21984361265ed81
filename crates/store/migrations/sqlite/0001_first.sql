-- min_compatible: 1
-- Instants are microseconds since the epoch. Texts named `doc` are JSON that only Rust looks into; what SQL
-- filters by has a column of its own.

CREATE TABLE worker (
    id            TEXT PRIMARY KEY,
    site          TEXT NOT NULL,
    driver        TEXT NOT NULL,
    status        TEXT NOT NULL,
    generation    INTEGER NOT NULL,
    doc           TEXT NOT NULL,
    spec          TEXT NOT NULL,
    deadline      INTEGER,
    sleep_at      INTEGER,
    next_check_at INTEGER,
    nudge_at      INTEGER,
    claim_by      TEXT,
    claim_until   INTEGER,
    claim_gen     INTEGER NOT NULL DEFAULT 0,
    policy_epoch  INTEGER NOT NULL DEFAULT 0,
    hold_ended_at INTEGER,
    created_at    INTEGER NOT NULL,
    removed_at    INTEGER
) STRICT;
CREATE INDEX worker_due ON worker (next_check_at) WHERE next_check_at IS NOT NULL;
CREATE INDEX worker_deadline ON worker (deadline) WHERE deadline IS NOT NULL;
CREATE INDEX worker_status ON worker (status);
CREATE INDEX worker_policy ON worker (policy_epoch);

CREATE TABLE checked (
    worker_id   TEXT PRIMARY KEY REFERENCES worker (id),
    activity_at INTEGER,
    doc         TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE evidence (
    worker_id   TEXT NOT NULL,
    source      TEXT NOT NULL,
    boot        TEXT,
    activity_at INTEGER,
    read_at     INTEGER NOT NULL,
    doc         TEXT NOT NULL,
    PRIMARY KEY (worker_id, source)
) STRICT, WITHOUT ROWID;

CREATE TABLE liveness (
    worker_id TEXT PRIMARY KEY REFERENCES worker (id),
    due_at    INTEGER,
    doc       TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX liveness_due ON liveness (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE hold (
    worker_id TEXT NOT NULL REFERENCES worker (id),
    kind      TEXT NOT NULL,
    owner     TEXT NOT NULL,
    reason    TEXT NOT NULL,
    since_at  INTEGER NOT NULL,
    until_at  INTEGER,
    epoch     INTEGER NOT NULL DEFAULT 0,
    count     INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (worker_id, kind, owner)
) STRICT, WITHOUT ROWID;

CREATE TABLE lease_book (
    worker_id TEXT PRIMARY KEY REFERENCES worker (id),
    ends_at   INTEGER,
    doc       TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX lease_book_ends ON lease_book (ends_at) WHERE ends_at IS NOT NULL;

CREATE TABLE router_session (
    id          TEXT PRIMARY KEY,
    started_at  INTEGER NOT NULL,
    alive_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE replica (
    id              TEXT PRIMARY KEY,
    doc             TEXT NOT NULL,
    started_at      INTEGER NOT NULL,
    alive_until     INTEGER NOT NULL,
    flushed_through INTEGER
) STRICT, WITHOUT ROWID;

-- AUTOINCREMENT: an id is never used again, even when the newest events have been pruned.
CREATE TABLE event (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    at        INTEGER NOT NULL,
    worker_id TEXT,
    kind      TEXT NOT NULL,
    doc       TEXT NOT NULL
) STRICT;
CREATE INDEX event_worker ON event (worker_id, id);
CREATE INDEX event_kind ON event (kind, id);
CREATE INDEX event_at ON event (at);

CREATE TABLE sink_cursor (
    sink     TEXT PRIMARY KEY,
    position INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE span (
    worker_id TEXT NOT NULL,
    lane      TEXT NOT NULL,
    from_at   INTEGER NOT NULL,
    until_at  INTEGER,
    value     TEXT NOT NULL,
    PRIMARY KEY (worker_id, lane, from_at)
) STRICT, WITHOUT ROWID;
CREATE INDEX span_until ON span (until_at);

CREATE TABLE policy_value (
    level  TEXT NOT NULL,
    name   TEXT NOT NULL,
    key    TEXT NOT NULL,
    value  TEXT NOT NULL,
    author TEXT NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (level, name, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE exemption (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    doc    TEXT NOT NULL,
    author TEXT NOT NULL,
    at     INTEGER NOT NULL
) STRICT;

CREATE TABLE token (
    id         TEXT PRIMARY KEY,
    hash       BLOB NOT NULL UNIQUE,
    name       TEXT NOT NULL,
    role       TEXT NOT NULL,
    worker_id  TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT;

CREATE TABLE login_link (
    hash       BLOB PRIMARY KEY,
    name       TEXT NOT NULL,
    role       TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One row: what holds for the whole fleet.
CREATE TABLE fleet (
    id           INTEGER PRIMARY KEY CHECK (id = 1),
    policy_epoch INTEGER NOT NULL,
    brake        TEXT
) STRICT;
INSERT INTO fleet (id, policy_epoch) VALUES (1, 1);
