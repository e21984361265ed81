//! Letting go of connections.
//!
//! Whoever has not heard the end of the other side must not hear one because a socket is closed: half a file would look
//! whole. They hear what that socket's own peer would have heard, that it broke off; and as a break throws away what is
//! still on its way, not before that has arrived.

use std::time::Duration;

use drowse_core::Timestamp;
use drowse_wire::control::EdgeCause;
use rustix::fd::OwnedFd;
use rustix::net::{connect_unspec, getpeername, sockopt};

use super::Pump;
use super::conn::{Came, Conn, Key, Phase};
use super::queued::unsent;
use super::stopped::is_break;
use super::way::{Source, Way};
use crate::door::Admitted;
use crate::queue::Ticket;

/// For how long the last words of somebody who is gone may stand still.
const LAST_WORDS_FOR: Duration = Duration::from_mins(1);

/// How often it is asked whether they have arrived: the kernel does not say.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Who is leaving.
#[derive(Debug)]
pub(super) struct Leaving {
    keys: Vec<Key>,
    look_at: Timestamp,
}

impl Leaving {
    pub(super) const fn new(now: Timestamp) -> Self {
        Self { keys: Vec::new(), look_at: now }
    }

    /// When they are looked at next.
    pub(super) fn look_at(&self) -> Option<Timestamp> {
        (!self.keys.is_empty()).then_some(self.look_at)
    }
}

/// What is still on its way to one side of a connection that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LastWords {
    unsent: u64,
    /// For so long it may stand still.
    until: Timestamp,
}

impl Pump {
    /// Ends a connection. Whoever has not heard the end of the other side is told first that there was none.
    pub(super) fn close(&mut self, slot: u32) {
        let Some(conn) = self.conns.get_mut(slot) else { return };
        conn.up.drop_held(&mut self.kit);
        conn.down.drop_held(&mut self.kit);
        if let Some(Admitted::Counted(pass)) = conn.admitted.take() {
            pass.leave(EdgeCause::Left, self.now);
        }
        if conn.has_flowed() {
            let words = LastWords { unsent: 0, until: self.now + LAST_WORDS_FOR };
            conn.phase = Phase::Leaving { to_client: words, to_worker: words };
            let key = Key { slot, turn: conn.turn };
            if !self.leave(slot) {
                self.leaving.keys.push(key);
                self.leaving.look_at = self.leaving.look_at.max(self.now);
            }
        } else if !conn.is_leaving() {
            self.remove(slot);
        }
    }

    /// Lets go of a connection that is over, as soon as everybody has what was sent to them. False: not yet.
    pub(super) fn leave(&mut self, slot: u32) -> bool {
        let Some(conn) = self.conns.get_mut(slot) else { return true };
        if !conn.is_leaving() {
            return true;
        }
        let has_parted = conn.part(self.now);
        if has_parted {
            self.remove(slot);
        }
        has_parted
    }

    /// Looks at those who are leaving, from time to time.
    pub(super) fn look_at_leaving(&mut self) {
        if self.leaving.look_at().is_none_or(|look_at| self.now < look_at) {
            return;
        }
        for key in std::mem::take(&mut self.leaving.keys) {
            if self.conns.of(key).is_some() && !self.leave(key.slot) {
                self.leaving.keys.push(key);
            }
        }
        self.leaving.look_at = self.now + LOOK_EVERY;
    }

    fn remove(&mut self, slot: u32) {
        let Some(conn) = self.conns.take(slot) else { return };
        if matches!(conn.came, Came::ByPort) {
            self.common.room.give_back(&conn.lane.door.held);
        }
        // The sockets close with it, and are watched no more.
        drop(conn);
    }

    /// Somebody at the gate is gone.
    pub(super) fn give_up(&mut self, slot: u32, ticket: Option<Ticket>) {
        if let (Some(conn), Some(ticket)) = (self.conns.get_mut(slot), ticket) {
            conn.lane.door.give_up(ticket, self.now);
        }
        self.close(slot);
    }

    /// Ends a connection, wherever it stands.
    pub(super) fn end(&mut self, slot: u32) {
        match self.conns.get_mut(slot).map(|conn| conn.phase) {
            Some(Phase::Waiting(ticket) | Phase::Rejoining(ticket)) => self.give_up(slot, ticket),
            Some(Phase::Dialing { .. } | Phase::Flowing | Phase::Silent | Phase::Leaving { .. }) | None => {
                self.close(slot);
            }
        }
    }

    /// There is no later: whatever has not arrived is lost with the rest.
    pub(super) fn break_off_all(&mut self) {
        for slot in self.conns.slots() {
            self.end(slot);
            if let Some(conn) = self.conns.get_mut(slot) {
                let words = LastWords { unsent: 0, until: self.now };
                conn.phase = Phase::Leaving { to_client: words, to_worker: words };
                self.leave(slot);
            }
        }
    }
}

impl Conn {
    /// Whether bytes have moved, or could have.
    fn has_flowed(&self) -> bool {
        matches!(self.phase, Phase::Flowing | Phase::Silent | Phase::Rejoining(_))
    }

    fn is_leaving(&self) -> bool {
        matches!(self.phase, Phase::Leaving { .. })
    }

    /// Parts with both sides, with each as soon as it has what was sent to it. Says whether that has been done.
    fn part(&mut self, now: Timestamp) -> bool {
        let Phase::Leaving { to_client, to_worker } = &mut self.phase else { return true };
        let from_client = part_with(&self.client, &self.up, &self.down, to_client, now);
        let worker = self.worker.as_ref();
        let from_worker = worker.is_none_or(|worker| part_with(worker, &self.down, &self.up, to_worker, now));
        from_client && from_worker
    }

    /// Whether the client broke off, and the worker has not taken what it said before for so long that it will not. Of a
    /// client that came to its end and left everything is to be taken, whenever that is.
    pub(super) fn is_left_behind(&mut self, now: Timestamp) -> bool {
        if self.up.source < Source::Gone || self.up.is_over() || now.since(self.last_byte_at) < LAST_WORDS_FOR
        {
            return false;
        }
        let error = sockopt::socket_error(&self.client).ok().and_then(Result::err);
        if error.is_some_and(is_break) {
            self.up.breaks_off();
        }
        self.up.source == Source::Broken
    }
}

/// Parts with one side, if all that was sent to it has arrived or stands still for too long. Says whether it did.
fn part_with(socket: &OwnedFd, from: &Way, to: &Way, words: &mut LastWords, now: Timestamp) -> bool {
    // Closed over words that nobody read, a socket is reset by the kernel, and what is on its way is lost with it as well.
    let is_in_danger = !to.is_over() || !from.is_complete();
    if !is_in_danger || getpeername(socket).is_err() {
        return true;
    }
    let unsent = unsent(socket);
    if unsent < words.unsent {
        // They may take as long as they like, as long as they take something.
        words.until = now + LAST_WORDS_FOR;
    }
    words.unsent = unsent;
    if unsent > 0 && now < words.until {
        return false;
    }
    if !to.is_over() {
        // To close would say that there was an end. If it cannot be taken back, the socket is gone.
        let _ = connect_unspec(socket);
    }
    true
}
