//! The floor: what SQLite itself does with a transaction of this shape, on the same disk.
//!
//! Our own schema and settings, and five statements as a pause has them at the least: read the worker, read its
//! holds, write the worker, write what was checked, write the journal. Without rules, JSON, locks or threads.

use std::path::Path;
use std::time::Duration;

use drowse_server::Clock;
use rusqlite::{Connection, params};

const SCHEMA: &str = include_str!("../../../store/migrations/sqlite/0001_first.sql");
const WORKERS: i64 = 10_000;
const MEASURED_FOR: Duration = Duration::from_secs(5);

pub(crate) fn commits_per_second() -> f64 {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let db = open(folder.path());
    // As long as the documents of a worker are.
    let doc = "x".repeat(1_200);
    let checked = "x".repeat(900);
    db.execute_batch("BEGIN").expect("begins");
    for id in 0..WORKERS {
        db.execute(
            "INSERT INTO worker (id, site, driver, status, generation, doc, spec, next_check_at, created_at)
             VALUES ($1, 'local', 'sim', 'running', 0, $2, '{}', $3, 0)",
            params![format!("w-{id:05}"), doc, id],
        )
        .expect("inserts");
    }
    db.execute_batch("COMMIT").expect("commits");
    let clock = Clock::system();
    let began_at = clock.now();
    let mut done = 0_u32;
    while clock.now().since(began_at) < MEASURED_FOR {
        let id = format!("w-{:05}", i64::from(done) % WORKERS);
        one(&db, &id, &doc, &checked, i64::from(done)).expect("it is committed");
        done += 1;
    }
    f64::from(done) / clock.now().since(began_at).as_secs_f64()
}

fn open(folder: &Path) -> Connection {
    let db = Connection::open(folder.join("bare.db")).expect("opens");
    db.set_prepared_statement_cache_capacity(64);
    db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).expect("WAL");
    db.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;").expect("settings");
    db.execute_batch(SCHEMA).expect("schema");
    db
}

fn one(db: &Connection, id: &str, doc: &str, checked: &str, at: i64) -> rusqlite::Result<()> {
    db.execute_batch("BEGIN IMMEDIATE")?;
    let _: String = db
        .prepare_cached("SELECT doc FROM worker WHERE id = $1")?
        .query_row(params![id], |row| row.get(0))?;
    let holds = db
        .prepare_cached("SELECT kind FROM hold WHERE worker_id = $1")?
        .query_map(params![id], |row| row.get::<_, String>(0))?
        .count();
    assert_eq!(holds, 0);
    db.prepare_cached(
        "UPDATE worker SET status = 'pausing', generation = $2, doc = $3, deadline = $2, sleep_at = $2,
            next_check_at = $2 WHERE id = $1",
    )?
    .execute(params![id, at, doc])?;
    db.prepare_cached(
        "INSERT INTO checked (worker_id, activity_at, doc) VALUES ($1, $2, $3)
         ON CONFLICT (worker_id) DO UPDATE SET activity_at = excluded.activity_at, doc = excluded.doc",
    )?
    .execute(params![id, at, checked])?;
    db.prepare_cached("INSERT INTO event (at, worker_id, kind, doc) VALUES ($1, $2, 'sleep', '{}')")?
        .execute(params![at, id])?;
    db.execute_batch("COMMIT")
}
