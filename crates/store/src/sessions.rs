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
use crate::tx::{Tx, View};
use crate::workers::Locked;

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

    /// Forgets sessions that ended before `before` and on which nothing hangs any more; how many.
    pub fn forget_sessions(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.execute(
            "DELETE FROM router_session WHERE alive_until < $1 AND NOT EXISTS (
                SELECT 1 FROM hold WHERE kind = 'connection' AND owner = router_session.id)",
            &[before.into()],
        )
    }
}

impl View<'_> {
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
