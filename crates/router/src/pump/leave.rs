//! Letting go of connections.
//!
//! Whoever has not heard the end of the other side must not hear one because a socket is closed: half a file would look
//! whole. They hear what that socket's own peer would have heard, that it broke off; and as a break throws away what is
//! still on its way, not before that has arrived.

use std::time::Duration;

use drowse_core::Timestamp;
use drowse_wire::control::EdgeCause;
use rustix::fd::OwnedFd;
use rustix::net::sockopt;

use super::Pump;
use super::conn::{Came, Conn, Phase};
use super::queued::has_unsent;
use super::sweep::LEAVES_EVERY;
use super::way::Source;
use crate::door::Admitted;
use crate::queue::Ticket;

/// For how long the last words of somebody who is gone wait to be taken.
const LAST_WORDS_FOR: Duration = Duration::from_mins(1);

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
            conn.phase = Phase::Leaving { until: self.now + LAST_WORDS_FOR };
            return self.leave(slot);
        }
        self.remove(slot);
    }

    /// Lets go of a connection that is over, as soon as everybody has what was sent to them.
    pub(super) fn leave(&mut self, slot: u32) {
        let Some(conn) = self.conns.get_mut(slot) else { return };
        let Phase::Leaving { until } = conn.phase else { return };
        if self.now < until && conn.are_to_hear_of_a_break().any(has_unsent) {
            self.sweep_at = self.sweep_at.min(self.now + LEAVES_EVERY);
            return;
        }
        conn.break_off();
        self.remove(slot);
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
    pub(super) fn break_off_all(&self) {
        self.conns.all().filter(|conn| conn.has_flowed()).for_each(Conn::break_off);
    }
}

impl Conn {
    /// Whether bytes have moved, or could have.
    fn has_flowed(&self) -> bool {
        matches!(self.phase, Phase::Flowing | Phase::Silent | Phase::Rejoining(_))
    }

    /// Whoever is still there and has not heard the end of the other side. To close on them would say that there was one, and
    /// what they have of it would look whole.
    fn are_to_hear_of_a_break(&self) -> impl Iterator<Item = &OwnedFd> {
        let client = (!self.down.is_over() && self.up.source < Source::Gone).then_some(&self.client);
        let worker = self.worker.as_ref().filter(|_| !self.up.is_over() && self.down.source < Source::Gone);
        client.into_iter().chain(worker)
    }

    /// Has them hear of it when their sockets close.
    fn break_off(&self) {
        for socket in self.are_to_hear_of_a_break() {
            // If it cannot be set, the socket is gone.
            let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
        }
    }

    /// Whether the client is gone for good, and the worker has not taken what it said for so long that it will not.
    pub(super) fn is_left_behind(&self, now: Timestamp) -> bool {
        self.up.source >= Source::Gone && !self.up.is_over() && now.since(self.last_byte_at) >= LAST_WORDS_FOR
    }
}
