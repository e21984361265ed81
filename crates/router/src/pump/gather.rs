//! Connections that carry very much are looked at from time to time instead of being watched.

use std::io;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use super::Pump;
use super::slots::Token;

/// How often. At two GiB a second that is half a MiB at once: it fits into sockets, and two batches are soon moved.
const EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000 };

/// Who is looked at, and what tells when.
#[derive(Debug)]
pub(super) struct Gatherers {
    slots: Vec<u32>,
    /// Of the kernel: the time to wait in `epoll_wait` is told in whole milliseconds.
    timer: OwnedFd,
    is_set: bool,
}

impl Gatherers {
    pub(super) fn new(epoll: &OwnedFd) -> io::Result<Self> {
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        // Told once when it strikes, so it needs not be read.
        let flags = EventFlags::IN | EventFlags::ET;
        epoll::add(epoll, &timer, EventData::new_u64(Token::Look.pack()), flags)?;
        Ok(Self { slots: Vec::new(), timer, is_set: false })
    }

    pub(super) fn add(&mut self, slot: u32) {
        if !self.slots.contains(&slot) {
            self.slots.push(slot);
        }
        if !self.is_set {
            // Once: the kernel starts it again only for those who read it, which is a call as well.
            let once = Itimerspec { it_interval: Timespec::default(), it_value: EVERY };
            self.is_set = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once).is_ok();
        }
    }
}

impl Pump {
    /// It is time to look at them. Who still gathers then has another turn.
    pub(super) fn look_at_gatherers(&mut self) {
        self.gatherers.is_set = false;
        for slot in std::mem::take(&mut self.gatherers.slots) {
            let is_valid = self.is_valid;
            let Some(conn) = self.conns.get_mut(slot) else { continue };
            if is_valid && conn.may_flow() {
                conn.look();
                self.go_on(slot);
            } else {
                conn.watch_sources();
                self.watch(slot);
            }
        }
    }
}
