//! Stored holds: leases, connections, snoozes, keep-awakes, keep-alive files.
//!
//! Leases are a book of their own with rules of their own ([`LeaseBook`]); connections hang on the session of
//! their router (see [`crate::RouterSession`]); the rest are rows. Exemptions, schedules and startup grace
//! are derived when a worker is judged, and stored nowhere.
//!
//! Every change goes through [`Locked`].

use drowse_core::Timestamp;
use drowse_core::hold::{Hold, HoldKind};
use drowse_core::id::WorkerId;
use drowse_core::lease::{Lease, LeaseBook};

use crate::error::StoreError;
use crate::row::{WorkerRecord, from_json, to_json, worker_id};
use crate::sessions::ConnectionCount;
use crate::sql::Row;
use crate::tx::View;
use crate::workers::Locked;

/// A row of the table: a hold that may be over.
#[derive(Clone, Debug)]
pub(crate) struct HoldRow {
    pub(crate) worker: WorkerId,
    pub(crate) hold: Hold,
    pub(crate) epoch: u64,
    pub(crate) count: u64,
    /// Until when its router is taken for alive, for connections.
    pub(crate) alive_until: Option<Timestamp>,
}

impl HoldRow {
    fn of(row: &Row<'_>) -> Result<Self, StoreError> {
        let code = row.text(1)?;
        let kind = HoldKind::ALL
            .into_iter()
            .find(|kind| kind.code() == code)
            .ok_or_else(|| StoreError::Corrupt(format!("unknown kind of hold {code}").into()))?;
        Ok(Self {
            worker: worker_id(row.text(0)?)?,
            hold: Hold {
                kind,
                owner: row.text(2)?.to_owned(),
                reason: row.text(3)?.to_owned(),
                since: row.at(4)?,
                until: row.opt_at(5)?,
            },
            epoch: row.count(6)?,
            count: row.count(7)?,
            alive_until: row.opt_at(8)?,
        })
    }

    /// When it was over, if it is by `now`. A connection whose router fell silent is over with the session.
    fn over_at(&self, now: Timestamp) -> Option<Timestamp> {
        let until = match self.hold.kind {
            HoldKind::Connection => Some(self.alive_until.unwrap_or(self.hold.since)),
            HoldKind::Lease
            | HoldKind::Snooze
            | HoldKind::KeepAwake
            | HoldKind::Exemption
            | HoldKind::Schedule
            | HoldKind::StartupGrace
            | HoldKind::KeepAliveFile => self.hold.until,
        };
        until.filter(|until| *until <= now)
    }

    fn is_live(&self, now: Timestamp) -> bool {
        self.count > 0 && self.over_at(now).is_none()
    }

    /// What a router last said, if this is of one.
    pub(crate) fn connections(&self) -> ConnectionCount {
        ConnectionCount {
            session: self.hold.owner.clone(),
            epoch: self.epoch,
            count: self.count,
            since: self.hold.since,
            alive_until: self.alive_until,
        }
    }
}

/// Everything that is stored about what holds one worker, over or not.
#[derive(Clone, Debug)]
pub struct Held {
    rows: Vec<HoldRow>,
    /// Its leases.
    pub leases: LeaseBook,
    /// When a hold other than a lease was last noticed to have ended.
    noticed: Option<Timestamp>,
}

impl Held {
    /// What holds it at `now`.
    pub fn holds(&self, now: Timestamp) -> Vec<Hold> {
        let live = self.rows.iter().filter(|row| row.is_live(now)).map(|row| row.hold.clone());
        self.leases.alive(now).map(lease_hold).chain(live).collect()
    }

    /// Whether anything does.
    pub fn is_held(&self, now: Timestamp) -> bool {
        self.leases.alive(now).next().is_some() || self.rows.iter().any(|row| row.is_live(now))
    }

    /// When a hold that restarts the idle clock last ended, noticed or not.
    pub fn ended_at(&self, now: Timestamp) -> Option<Timestamp> {
        let unnoticed = self
            .rows
            .iter()
            .filter(|row| row.count > 0 && row.hold.kind.end_restarts_clock())
            .filter_map(|row| row.over_at(now))
            .max();
        self.noticed.max(unnoticed).max(self.leases.last_ended_at(now))
    }

    /// What each router last said.
    pub fn connections(&self) -> Vec<ConnectionCount> {
        let rows = self.rows.iter().filter(|row| row.hold.kind == HoldKind::Connection);
        rows.map(HoldRow::connections).collect()
    }
}

impl View<'_> {
    /// Everything that is stored about what holds a worker.
    pub fn held(&self, record: &WorkerRecord) -> Result<Held, StoreError> {
        Ok(Held {
            rows: self.hold_rows(record.id())?,
            leases: self.leases(record.id())?,
            noticed: record.hold_ended_at,
        })
    }

    /// What holds a worker at `now`.
    pub fn holds(&self, worker: &WorkerId, now: Timestamp) -> Result<Vec<Hold>, StoreError> {
        let held = Held { rows: self.hold_rows(worker)?, leases: self.leases(worker)?, noticed: None };
        Ok(held.holds(now))
    }

    /// What holds any worker at `now`, by worker.
    pub fn all_holds(&self, now: Timestamp) -> Result<Vec<(WorkerId, Hold)>, StoreError> {
        let rows = self.query(
            "SELECT h.worker_id, h.kind, h.owner, h.reason, h.since_at, h.until_at, h.epoch, h.count, s.alive_until
             FROM hold h LEFT JOIN router_session s ON h.kind = 'connection' AND s.id = h.owner
             ORDER BY h.worker_id, h.kind, h.owner",
            &[],
            HoldRow::of,
        )?;
        let outages = self.outages()?;
        // What an outage has prolonged may be written down as ended.
        let from = outages.first().map_or(now, |first| first.min(now));
        let books =
            self.query("SELECT worker_id, doc FROM lease_book WHERE ends_at > $1", &[from.into()], |row| {
                let mut leases: LeaseBook = from_json(row.text(1)?, "leases", row.text(0)?)?;
                outages.put_right(&mut leases);
                Ok((worker_id(row.text(0)?)?, leases))
            })?;
        let mut all: Vec<_> = rows
            .into_iter()
            .filter(|row| row.is_live(now))
            .map(|row| (row.worker, row.hold))
            .chain(
                books
                    .iter()
                    .flat_map(|(id, book)| book.alive(now).map(move |lease| (id.clone(), lease_hold(lease)))),
            )
            .collect();
        all.sort_by(|one, other| {
            (&one.0, one.1.kind, &one.1.owner).cmp(&(&other.0, other.1.kind, &other.1.owner))
        });
        Ok(all)
    }

    /// When a hold that restarts the idle clock last ended, noticed or not.
    pub fn hold_ended_at(&self, worker: &WorkerId, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        match self.worker(worker)? {
            Some(record) => Ok(self.held(&record)?.ended_at(now)),
            None => Ok(None),
        }
    }

    /// The leases of a worker.
    pub fn leases(&self, worker: &WorkerId) -> Result<LeaseBook, StoreError> {
        Ok(self.lease_book(worker)?.0)
    }

    pub(crate) fn hold_rows(&self, worker: &WorkerId) -> Result<Vec<HoldRow>, StoreError> {
        self.query(
            "SELECT h.worker_id, h.kind, h.owner, h.reason, h.since_at, h.until_at, h.epoch, h.count, s.alive_until
             FROM hold h LEFT JOIN router_session s ON h.kind = 'connection' AND s.id = h.owner
             WHERE h.worker_id = $1 ORDER BY h.kind, h.owner",
            &[worker.as_str().into()],
            HoldRow::of,
        )
    }

    /// Workers with holds that are over and not yet swept. Sessions are kept for a while after their end:
    /// those that ended before `sessions_before` are not needed any more.
    pub fn unswept(
        &self,
        now: Timestamp,
        sessions_before: Timestamp,
        limit: usize,
    ) -> Result<Vec<WorkerId>, StoreError> {
        self.query(
            "SELECT DISTINCT h.worker_id
             FROM hold h LEFT JOIN router_session s ON h.kind = 'connection' AND s.id = h.owner
             WHERE h.until_at <= $1 OR (h.kind = 'connection' AND (s.id IS NULL OR s.alive_until < $2))
             ORDER BY h.worker_id LIMIT $3",
            &[now.into(), sessions_before.into(), limit.into()],
            |row| worker_id(row.text(0)?),
        )
    }
}

impl Locked<'_> {
    /// Everything that is stored about what holds it, read under the lock.
    pub fn held(&self) -> Result<Held, StoreError> {
        self.tx.held(&self.record)
    }

    /// What holds it at `now`, read under the lock.
    pub fn holds(&self, now: Timestamp) -> Result<Vec<Hold>, StoreError> {
        self.tx.holds(self.id(), now)
    }

    /// Takes a snooze, a keep-awake or a keep-alive file, or changes its end; since when stays.
    pub fn take_hold(&mut self, hold: &Hold) -> Result<(), StoreError> {
        if !matches!(hold.kind, HoldKind::Snooze | HoldKind::KeepAwake | HoldKind::KeepAliveFile) {
            return Err(StoreError::Unsupported(
                "leases and connections have ways of their own, the rest is derived",
            ));
        }
        self.tx.execute(
            "INSERT INTO hold (worker_id, kind, owner, reason, since_at, until_at) VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (worker_id, kind, owner)
             DO UPDATE SET reason = excluded.reason, until_at = excluded.until_at,
                since_at = CASE WHEN hold.until_at <= excluded.since_at
                    THEN excluded.since_at ELSE hold.since_at END",
            &[
                self.id().as_str().into(),
                hold.kind.code().into(),
                (&hold.owner).into(),
                (&hold.reason).into(),
                hold.since.into(),
                hold.until.into(),
            ],
        )?;
        Ok(())
    }

    /// Ends a hold that was taken; `None` if there is none of that owner.
    pub fn end_hold(
        &mut self,
        kind: HoldKind,
        owner: &str,
        now: Timestamp,
    ) -> Result<Option<Hold>, StoreError> {
        let rows = self.tx.hold_rows(self.id())?;
        let Some(row) = rows.into_iter().find(|row| row.hold.kind == kind && row.hold.owner == owner) else {
            return Ok(None);
        };
        self.drop_row(&row, now)?;
        Ok(Some(row.hold))
    }

    /// Deletes what is over by `now`, connections only if their session ended before `sessions_before`.
    pub fn sweep_holds(
        &mut self,
        now: Timestamp,
        sessions_before: Timestamp,
    ) -> Result<Vec<Hold>, StoreError> {
        let mut swept = Vec::new();
        for row in self.tx.hold_rows(self.id())? {
            let is_needed = row.hold.kind == HoldKind::Connection
                && row.alive_until.is_some_and(|until| until >= sessions_before);
            if !is_needed && row.over_at(now).is_some() {
                self.drop_row(&row, now)?;
                swept.push(row.hold);
            }
        }
        Ok(swept)
    }

    /// The run of the worker is over: its leases and its keep-alive file end with it.
    ///
    /// Connections stay, as their router tells: who waits at the door for the next run still waits. What a
    /// person or a resume protects until a time stays protected, whatever runs.
    pub fn end_run(&mut self, now: Timestamp) -> Result<Vec<Hold>, StoreError> {
        let mut ended = Vec::new();
        let mut leases = self.leases()?;
        for lease in leases.clear(now) {
            ended.push(lease_hold(&lease.lease));
        }
        self.save_leases(&leases)?;
        for row in self.tx.hold_rows(self.id())? {
            if row.hold.kind == HoldKind::KeepAliveFile {
                self.drop_row(&row, now)?;
                ended.push(row.hold);
            }
        }
        Ok(ended)
    }

    /// Its leases, read under the lock.
    pub fn leases(&self) -> Result<LeaseBook, StoreError> {
        self.tx.leases(self.id())
    }

    /// Stores what became of its leases.
    pub fn save_leases(&mut self, leases: &LeaseBook) -> Result<(), StoreError> {
        let ends_at = leases.alive(Timestamp::EPOCH).map(|lease| lease.until).max();
        self.tx.execute(
            "INSERT INTO lease_book (worker_id, ends_at, doc) VALUES ($1, $2, $3)
             ON CONFLICT (worker_id) DO UPDATE SET ends_at = excluded.ends_at, doc = excluded.doc",
            &[self.id().as_str().into(), ends_at.into(), (&to_json(leases)).into()],
        )?;
        Ok(())
    }

    fn drop_row(&mut self, row: &HoldRow, now: Timestamp) -> Result<(), StoreError> {
        self.tx.execute(
            "DELETE FROM hold WHERE worker_id = $1 AND kind = $2 AND owner = $3",
            &[self.id().as_str().into(), row.hold.kind.code().into(), (&row.hold.owner).into()],
        )?;
        if row.count > 0 && row.hold.kind.end_restarts_clock() {
            self.note_hold_ended(row.over_at(now).unwrap_or(now))?;
        }
        Ok(())
    }

    /// The idle clock counts from the end of the last hold; it never goes back.
    pub(crate) fn note_hold_ended(&mut self, at: Timestamp) -> Result<(), StoreError> {
        let at = self.record.hold_ended_at.max(Some(at));
        self.tx.execute(
            "UPDATE worker SET hold_ended_at = $1 WHERE id = $2",
            &[at.into(), self.id().as_str().into()],
        )?;
        self.record.hold_ended_at = at;
        Ok(())
    }
}

fn lease_hold(lease: &Lease) -> Hold {
    Hold {
        kind: HoldKind::Lease,
        owner: lease.holder.clone(),
        reason: lease.reason.clone(),
        since: lease.taken_at,
        until: Some(lease.until),
    }
}
