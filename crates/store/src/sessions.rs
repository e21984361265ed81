//! Routers and the connections through them.
//!
//! A router has one session, which it renews; all its connection holds hang on that. Only the edges of a
//! worker's count, 0 → 1 and 1 → 0, come here, each with an epoch that grows: a release that was delayed
//! cannot undo a newer hold. A row whose count is 0 stays as long as its session, to remember that epoch.

use drowse_core::Timestamp;
use drowse_core::hold::HoldKind;
use drowse_core::id::WorkerId;

use crate::error::StoreError;
use crate::holds::HoldRow;
use crate::row::worker_id;
use crate::store::Store;
use crate::tx::{Tx, View};
use crate::workers::Locked;

/// How many workers are locked in one transaction.
const AT_ONCE: usize = 200;

/// A router as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouterSession {
    /// Its name, new with every start.
    pub id: String,
    /// When it began.
    pub started_at: Timestamp,
    /// Its connections hold nothing from then on, unless it is renewed before; they are *unknown* then for a
    /// while, and never quiet.
    pub alive_until: Timestamp,
}

/// The connections to one worker through one router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionCount {
    /// Through which router.
    pub session: String,
    /// The number of the edge.
    pub epoch: u64,
    /// How many at that edge; in between only the router knows.
    pub count: u64,
    /// Since when there is one.
    pub since: Timestamp,
    /// Until when the router is taken for alive; `None`: its session is gone.
    pub alive_until: Option<Timestamp>,
}

impl Tx<'_> {
    /// Begins or renews a router's session.
    pub fn renew_session(&self, session: &RouterSession) -> Result<(), StoreError> {
        self.execute(
            "INSERT INTO router_session (id, started_at, alive_until) VALUES ($1, $2, $3)
             ON CONFLICT (id) DO UPDATE SET alive_until = CASE
                WHEN excluded.alive_until > router_session.alive_until
                THEN excluded.alive_until ELSE router_session.alive_until END",
            &[(&session.id).into(), session.started_at.into(), session.alive_until.into()],
        )?;
        Ok(())
    }

    /// Nobody could renew a session while we were away: one that was alive then is so until `until`, and whoever is still
    /// there says so before.
    pub fn resume_sessions(&self, away_since: Timestamp, until: Timestamp) -> Result<u64, StoreError> {
        self.execute(
            "UPDATE router_session SET alive_until = $1 WHERE alive_until > $2 AND alive_until < $1",
            &[until.into(), away_since.into()],
        )
    }

    /// Forgets sessions that ended before `before` and on which nothing hangs any more; how many.
    pub fn forget_sessions(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.execute(
            "DELETE FROM router_session WHERE alive_until < $1 AND NOT EXISTS (
                SELECT 1 FROM hold WHERE kind = 'connection' AND owner = router_session.id)",
            &[before.into()],
        )
    }
}

impl Store {
    /// Hangs all connections of one session on another one, which begins or is renewed with this: whoever carries
    /// them goes on under that name. What was moved.
    ///
    /// Each worker is held by the one or by the other at any instant, and nobody's idle clock begins anew. Whoever told
    /// of them has to be silent meanwhile.
    pub fn move_connections(
        &self,
        from: &str,
        to: &RouterSession,
    ) -> Result<Vec<(WorkerId, ConnectionCount)>, StoreError> {
        self.tx(|t| t.renew_session(to))?;
        let mut moved = Vec::new();
        self.for_each_with(from, 1, |locked| {
            let open = locked.tx.connections(locked.id())?;
            for row in open.into_iter().filter(|row| row.session == from && row.count > 0) {
                let count =
                    ConnectionCount { session: to.id.clone(), alive_until: Some(to.alive_until), ..row };
                locked.move_connections(from, &count)?;
                moved.push((locked.id().clone(), count));
            }
            Ok(())
        })?;
        Ok(moved)
    }

    /// Ends a session: its connections have ended, at the latest now. It may be begun again, with any epochs.
    pub fn end_session(&self, id: &str, now: Timestamp) -> Result<(), StoreError> {
        self.for_each_with(id, 0, |locked| locked.end_hold(HoldKind::Connection, id, now).map(|_| ()))?;
        self.tx(|t| t.execute("DELETE FROM router_session WHERE id = $1", &[id.into()]).map(|_| ()))
    }

    /// Does something with every worker on which a session has a row with at least so many connections, under its lock.
    fn for_each_with(
        &self,
        session: &str,
        at_least: u64,
        mut work: impl FnMut(&mut Locked<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut after = String::new();
        loop {
            let mut some = self.read(|t| t.with_connections(session, at_least, &after))?;
            let Some(last) = some.last() else { return Ok(()) };
            last.as_str().clone_into(&mut after);
            // A database may sort texts by a language; locks are taken in our own order.
            some.sort_unstable();
            self.tx(|t| {
                for worker in &some {
                    if let Some(mut locked) = t.lock_worker(worker)? {
                        work(&mut locked)?;
                    }
                }
                Ok::<_, StoreError>(())
            })?;
        }
    }
}

impl View<'_> {
    fn with_connections(
        &self,
        session: &str,
        at_least: u64,
        after: &str,
    ) -> Result<Vec<WorkerId>, StoreError> {
        self.query(
            "SELECT worker_id FROM hold
             WHERE kind = 'connection' AND owner = $1 AND count >= $2 AND worker_id > $3
             ORDER BY worker_id LIMIT $4",
            &[session.into(), at_least.into(), after.into(), AT_ONCE.into()],
            |row| worker_id(row.text(0)?),
        )
    }

    pub fn router_sessions(&self) -> Result<Vec<RouterSession>, StoreError> {
        self.query("SELECT id, started_at, alive_until FROM router_session ORDER BY id", &[], |row| {
            Ok(RouterSession { id: row.text(0)?.to_owned(), started_at: row.at(1)?, alive_until: row.at(2)? })
        })
    }

    /// What each router last said about a worker.
    pub fn connections(&self, worker: &WorkerId) -> Result<Vec<ConnectionCount>, StoreError> {
        let rows = self.hold_rows(worker)?;
        let rows = rows.iter().filter(|row| row.hold.kind == HoldKind::Connection);
        Ok(rows.map(HoldRow::connections).collect())
    }
}

impl Locked<'_> {
    /// Both rows in one transaction. That of the former session stays, as after a release, for its epoch.
    fn move_connections(&mut self, from: &str, moved: &ConnectionCount) -> Result<(), StoreError> {
        let worker = self.id().as_str();
        self.tx.execute(
            "INSERT INTO hold (worker_id, kind, owner, reason, since_at, epoch, count)
             VALUES ($1, 'connection', $2, '', $3, $4, $5)
             ON CONFLICT (worker_id, kind, owner) DO UPDATE SET epoch = excluded.epoch, count = excluded.count",
            &[
                worker.into(),
                (&moved.session).into(),
                moved.since.into(),
                moved.epoch.into(),
                moved.count.into(),
            ],
        )?;
        self.tx.execute(
            "UPDATE hold SET count = 0, epoch = epoch + 1
             WHERE worker_id = $1 AND kind = 'connection' AND owner = $2",
            &[worker.into(), from.into()],
        )?;
        Ok(())
    }

    /// An edge of the count of connections; false if a newer one has been told already.
    ///
    /// The session must have been begun, or the hold would hold nothing.
    pub fn set_connections(
        &mut self,
        session: &str,
        epoch: u64,
        count: u64,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        // What was before matters to a release only; somebody waits at the door for the first connection.
        let had = if count == 0 { self.tx.connections(self.id())? } else { Vec::new() };
        let had = had.into_iter().find(|row| row.session == session);
        let written = self.tx.execute(
            "INSERT INTO hold (worker_id, kind, owner, reason, since_at, epoch, count)
             SELECT CAST($1 AS TEXT), 'connection', id, '', CAST($2 AS BIGINT), CAST($3 AS BIGINT),
                CAST($4 AS BIGINT)
             FROM router_session WHERE id = $5
             ON CONFLICT (worker_id, kind, owner) DO UPDATE SET
                since_at = CASE WHEN hold.count = 0 THEN excluded.since_at ELSE hold.since_at END,
                epoch = excluded.epoch, count = excluded.count
             WHERE hold.epoch < excluded.epoch",
            &[self.id().as_str().into(), now.into(), epoch.into(), count.into(), session.into()],
        )?;
        if written == 0 {
            let known = self.tx.query(
                "SELECT id FROM router_session WHERE id = $1",
                &[session.into()],
                |_| Ok(()),
            )?;
            if known.is_empty() {
                return Err(StoreError::Constraint(
                    format!("router session {session} has not been begun").into(),
                ));
            }
        }
        let is_release = count == 0 && had.is_some_and(|had| had.count > 0);
        if written == 1 && is_release {
            self.note_hold_ended(now)?;
        }
        Ok(written == 1)
    }
}
