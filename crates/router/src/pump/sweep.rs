//! What is looked at from time to time: silence, workers that do not pick up, ports that rest.

use std::time::Duration;

use drowse_wire::control::EdgeCause;
use rustix::event::epoll::{self, EventData, EventFlags};

use super::accept::DIAL_FOR;
use super::conn::Phase;
use super::slots::Token;
use super::{Pump, keepalive};
use crate::door::Admitted;

/// How often.
const EVERY: Duration = Duration::from_secs(1);

/// And how often at most, when silence is short.
const EVERY_AT_MOST: Duration = Duration::from_millis(50);

/// A connection that has lived this long is worth the calls that make it find out when its peer has died.
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(10);

impl Pump {
    pub(super) fn sweep(&mut self) {
        let mut next = EVERY;
        for slot in self.conns.slots() {
            next = next.min(self.sweep_one(slot));
        }
        self.sweep_at = self.now + next.max(EVERY_AT_MOST);
        for id in std::mem::take(&mut self.resting) {
            if let Some((_, socket)) = self.ports.get(&id) {
                let token = EventData::new_u64(Token::Port(id).pack());
                if epoll::add(&self.epoll, socket, token, EventFlags::IN | EventFlags::EXCLUSIVE).is_err() {
                    self.resting.push(id);
                }
            }
        }
    }

    /// Looks at one connection, and says when to look again.
    fn sweep_one(&mut self, slot: u32) -> Duration {
        let now = self.now;
        let Some(conn) = self.conns.get_mut(slot) else { return EVERY };
        conn.forget_what_was_sent(now);
        if !conn.spare_pipes(&mut self.kit) {
            self.close(slot);
            return EVERY;
        }
        let Some(conn) = self.conns.get_mut(slot) else { return EVERY };
        // The client's socket has it from the port.
        if !conn.is_kept_alive
            && now.since(conn.came_at) >= KEEP_ALIVE_AFTER
            && let Some(worker) = &conn.worker
        {
            conn.is_kept_alive = true;
            keepalive(worker);
        }
        match conn.phase {
            Phase::Dialing { since } if now.since(since) >= DIAL_FOR => {
                if conn.is_connected() && conn.is_vouched_for() {
                    conn.phase = Phase::Flowing;
                } else {
                    self.call_again(slot);
                }
                EVERY
            }
            Phase::Flowing => {
                if self.is_valid && conn.may_flow() && conn.is_left_behind(now) {
                    self.close(slot);
                    return EVERY;
                }
                self.listen_for_silence(slot)
            }
            Phase::Dialing { .. }
            | Phase::Waiting(_)
            | Phase::Silent
            | Phase::Rejoining(_)
            | Phase::Leaving { .. } => EVERY,
        }
    }

    /// Whoever has been silent for long enough does not count any more.
    fn listen_for_silence(&mut self, slot: u32) -> Duration {
        let Some(conn) = self.conns.get_mut(slot) else { return EVERY };
        let Some(idle) = conn.lane.door.connection_idle() else { return EVERY };
        let silent_for = self.now.since(conn.last_byte_at);
        if silent_for < idle {
            return idle.saturating_sub(silent_for);
        }
        // Nobody is silent whose words cannot be passed on: not while a worker does not take them, and not while nothing
        // may move at all, when they may have come and not been looked at.
        if !self.is_valid || !conn.may_flow() || !conn.has_nothing_to_say() {
            return EVERY;
        }
        if matches!(conn.admitted, Some(Admitted::Counted(_)))
            && let Some(Admitted::Counted(pass)) = conn.admitted.take()
        {
            conn.phase = Phase::Silent;
            // Its first byte has to be heard.
            conn.watch_sources();
            pass.leave(EdgeCause::FellSilent, self.now);
            self.watch(slot);
        }
        EVERY
    }
}
