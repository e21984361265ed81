//! One connection in a pump: where it stands, and its two sockets.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use drowse_core::Timestamp;
use drowse_wire::control::Run;
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, getpeername, recv, sockopt};
use tokio::sync::oneshot;

use super::crowd::Round;
use super::leave::LastWords;
use super::sent::Sent;
use super::slots::Mark;
use super::stopped::{Ran, Stopped, is_break, is_refusal};
use super::way::{Kit, Source, Terms, Way};
use crate::door::{Admitted, Door};
use crate::port::Lane;
use crate::queue::Ticket;
use crate::turned::Turned;

/// How often at most something is said again of which a part may have been heard. A worker that takes bytes and hangs up,
/// time after time, is not one that is still coming up.
pub(super) const SAID_AGAIN_AT_MOST: u32 = 3;

/// Which of the two sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Worker,
}

/// A place in a pump, and whose turn it is there: what arrives for somebody who has left finds nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(super) slot: u32,
    pub(super) turn: Mark,
}

/// How it came to be here.
#[derive(Debug)]
pub(super) enum Came {
    /// By a port, and it has taken a place.
    ByPort,
    /// From a task that has listened to it first and has its place; it gets the client back if that is turned away.
    FromTask(Option<oneshot::Sender<(OwnedFd, Turned)>>),
}

/// Where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// At the gate. Its bytes wait in the socket.
    Waiting(Option<Ticket>),
    /// The worker has been called and has not picked up.
    Dialing { since: Timestamp },
    /// Bytes move.
    Flowing,
    /// It has been silent for so long that it does not count. The first byte sends it back to the gate.
    Silent,
    /// At the gate again.
    Rejoining(Option<Ticket>),
    /// It is over, and whoever is still there is to have what came before that.
    Leaving { to_client: LastWords, to_worker: LastWords },
}

/// One connection.
#[derive(Debug)]
pub(super) struct Conn {
    pub(super) turn: Mark,
    /// Grows whenever a socket to the worker is let go of: what is told of a former one is no news of this.
    pub(super) call: Mark,
    pub(super) phase: Phase,
    /// That it was let through. Not while it waits and counts at the gate, and not when it has fallen silent.
    pub(super) admitted: Option<Admitted>,
    pub(super) from: IpAddr,
    /// It has shown that it may wake the worker, by more than where it comes from.
    pub(super) may_wake: bool,
    /// By which port it came.
    pub(super) port: u64,
    pub(super) lane: Arc<Lane>,
    pub(super) client: OwnedFd,
    pub(super) worker: Option<OwnedFd>,
    /// The run that was dialled. Asked once somebody has picked up; until then no byte moves.
    pub(super) dialled: Option<Arc<dyn Run>>,
    /// From the client to the worker.
    pub(super) up: Way,
    /// From the worker to the client.
    pub(super) down: Way,
    /// What was sent to a worker that has not answered yet in its present run.
    pub(super) sent: Option<Sent>,
    /// The run that was called last, and how often it was called again for something that may have been heard, or for a
    /// robot.
    pub(super) run: u64,
    pub(super) said_again: u32,
    /// The run that may have heard something.
    pub(super) said_in: Option<u64>,
    pub(super) came_at: Timestamp,
    /// Since when it wants the worker: since it came, or since it is silent no more.
    pub(super) asked_at: Timestamp,
    pub(super) last_byte_at: Timestamp,
    /// What the sockets are watched for.
    pub(super) client_watch: Watch,
    pub(super) worker_watch: Watch,
    /// The worker's socket finds out that its peer has died.
    pub(super) is_kept_alive: bool,
    /// It is on the list of those who could go on.
    pub(super) is_busy: bool,
    /// When it last counted among those who are in a hurry.
    pub(super) heard_in: Round,
    pub(super) came: Came,
}

/// What a socket is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watch {
    Nothing,
    /// For what comes in.
    In,
    /// And for room to send.
    InOut,
    /// Only for that: what comes in is looked for from time to time.
    Out,
}

impl Watch {
    /// Changes are told once: a socket that is left alone does not call again and again.
    pub(super) fn flags(self) -> EventFlags {
        let incoming = EventFlags::IN | EventFlags::RDHUP | EventFlags::PRI | EventFlags::ET;
        match self {
            Self::Nothing => EventFlags::empty(),
            Self::In => incoming,
            Self::InOut => incoming | EventFlags::OUT,
            // Not for urgent data either: the kernel looks for that with every packet, and wakes us to do so.
            Self::Out => EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET,
        }
    }

    /// What it is to be watched for next. Whoever was full once will be again, and to change one's mind is a call to
    /// the kernel.
    pub(super) fn next(self, is_full: bool, gathers: bool) -> Self {
        if gathers {
            Self::Out
        } else if is_full || matches!(self, Self::InOut | Self::Out) {
            Self::InOut
        } else {
            Self::In
        }
    }
}

/// What is next in a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peeked {
    Nothing,
    Bytes,
    End,
    /// It ended without an end.
    Gone,
}

/// What came of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Went {
    /// It waits for a socket.
    On,
    /// It could go on: others first.
    Busy,
    /// Both directions have ended, or one side is gone.
    Over,
    /// The worker did not pick up, or it has not answered yet in its present run and hung up: it is called again.
    Dropped,
}

impl Conn {
    /// Takes in what the kernel says about a socket.
    pub(super) fn note(&mut self, side: Side, flags: EventFlags, now: Timestamp) {
        let (from_here, to_here) = match side {
            Side::Client => (&mut self.up, &mut self.down),
            Side::Worker => (&mut self.down, &mut self.up),
        };
        let is_gone = flags.intersects(EventFlags::HUP | EventFlags::ERR);
        if is_gone || flags.intersects(EventFlags::IN | EventFlags::RDHUP) {
            from_here.is_readable = true;
        }
        if is_gone {
            if from_here.source < Source::Gone {
                // That was the last of it. What it has said before may still be on its way for a while.
                self.last_byte_at = now;
            }
            from_here.source = from_here.source.max(Source::Gone);
        } else if flags.contains(EventFlags::RDHUP) {
            from_here.source = from_here.source.max(Source::Closing);
        }
        if flags.contains(EventFlags::PRI) {
            from_here.is_urgent = true;
        }
        if is_gone || flags.contains(EventFlags::OUT) {
            to_here.is_full = false;
        }
    }

    /// Moves what can be moved, both ways.
    pub(super) fn run(&mut self, kit: &mut Kit, now: Timestamp) -> Went {
        let Some(worker) = &self.worker else { return Went::On };
        let may_call_again = self.sent.is_some() && now < self.lane.door.replay_until();
        let terms = Terms { sent: self.sent.as_mut(), is_last: self.down.is_complete(), holds_end: false };
        let mut up = self.up.run(&self.client, worker, kit, terms);
        if let Stopped::SinkBroke(error) = up.stopped {
            if is_refusal(error) && up.moved == 0 && matches!(self.phase, Phase::Dialing { .. }) {
                return Went::Dropped;
            }
            self.down.breaks_off();
        }
        let terms = Terms { sent: None, is_last: self.up.is_complete(), holds_end: may_call_again };
        let mut down = self.down.run(worker, &self.client, kit, terms);
        if down.moved > 0 && self.sent.take().is_some() {
            self.lane.door.has_answered();
            // An end that came with the first answer was held back for nothing.
            let terms = Terms { sent: None, is_last: self.up.is_complete(), holds_end: false };
            let rest = self.down.run(worker, &self.client, kit, terms);
            down = Ran { moved: down.moved + rest.moved, stopped: rest.stopped };
        }
        if up.moved + down.moved > 0 {
            // Whoever takes or gives a byte has picked up.
            if let Phase::Dialing { .. } = self.phase {
                self.phase = Phase::Flowing;
            }
            self.last_byte_at = now;
            if let Some(Admitted::Counted(_)) = self.admitted {
                // What a robot moves is no use of the worker.
                Door::moved(&self.lane.door, up.moved, down.moved);
            }
        }
        let is_sink_gone = matches!(up.stopped, Stopped::SinkGone | Stopped::SinkBroke(_));
        let hung_up = is_sink_gone
            || down.stopped == Stopped::SourceGone
            || (may_call_again && self.down.has_heard_end());
        // Nobody is called for somebody who is gone.
        if hung_up && may_call_again && self.sent.is_some() && up.stopped != Stopped::SourceGone {
            if self.was_not_heard(is_sink_gone || down.stopped == Stopped::SourceGone) {
                return Went::Dropped;
            }
            // It has heard what was said, and its end is its answer.
            self.sent = None;
            let terms = Terms { sent: None, is_last: self.up.is_complete(), holds_end: false };
            let worker = self.worker.as_ref().expect("it hung up a moment ago");
            down.stopped = self.down.run(worker, &self.client, kit, terms).stopped;
        }
        if self.sent.as_ref().is_some_and(Sent::is_too_much) {
            // Too much to be said again: from here on it is as it is.
            self.sent = None;
        }
        if is_sink_gone {
            // It may have answered before it stopped listening.
            self.up.give_up(kit);
        }
        if matches!(down.stopped, Stopped::SinkGone | Stopped::SinkBroke(_)) {
            // And the client may have said something before it did.
            self.down.give_up(kit);
            if matches!(down.stopped, Stopped::SinkBroke(_)) {
                self.up.breaks_off();
                up.stopped = Stopped::HasMore;
            }
        }
        // Whoever is gone after their last word hears nothing more, and says nothing by which that would be noticed.
        let is_deserted =
            [&self.up, &self.down].iter().any(|way| way.is_over() && way.source >= Source::Gone);
        let is_gone = is_deserted || up.stopped == Stopped::SourceGone || down.stopped == Stopped::SourceGone;
        if is_gone || (self.up.is_over() && self.down.is_over()) {
            return Went::Over;
        }
        if up.stopped == Stopped::HasMore || down.stopped == Stopped::HasMore { Went::Busy } else { Went::On }
    }

    /// Whether a worker that hung up has perhaps not heard what was sent. Whoever reads everything and closes says so
    /// with an end; whoever closes over something unread, or before it came, has the kernel say so with a reset, which
    /// may be noticed only after the end.
    fn was_not_heard(&mut self, was_reset: bool) -> bool {
        let Some(sent) = &self.sent else { return false };
        // Whoever has said nothing, and nothing more to say, may have been answered with an end.
        let said_nothing = sent.is_empty() && !self.up.has_heard_end();
        said_nothing
            || (self.said_again < SAID_AGAIN_AT_MOST && (was_reset || self.take_worker_error().is_some()))
    }

    /// The error that the worker's socket has for whoever asks first: whoever reads from it then hears an end.
    fn take_worker_error(&mut self) -> Option<Errno> {
        let error = self.worker.as_ref().and_then(|worker| sockopt::socket_error(worker).ok()?.err())?;
        if is_break(error) {
            self.down.breaks_off();
        }
        Some(error)
    }

    /// Lets go of the worker's socket. What the kernel has told of it in this very round is no news of the next one.
    pub(super) fn hang_up(&mut self) {
        self.worker = None;
        self.is_kept_alive = false;
        self.call = self.call.next();
        self.dialled = None;
        self.worker_watch = Watch::Nothing;
    }

    /// Whether somebody is gone for good, by what the kernel says of their socket. A client that was told of the worker's
    /// end and then ends too is not: what it has said last is still to be heard.
    pub(super) fn is_client_gone(&self, flags: EventFlags) -> bool {
        flags.contains(EventFlags::ERR) || (flags.contains(EventFlags::HUP) && !self.down.is_over())
    }

    /// Whether nothing is on its way to the worker: somebody whose words it has yet to take is not silent.
    pub(super) fn has_nothing_to_say(&self) -> bool {
        !self.up.holds()
    }

    /// Whether a direction carries so much that its source is not watched.
    pub(super) fn waits_for_a_look(&self) -> bool {
        self.up.waits_for_a_look() || self.down.waits_for_a_look()
    }

    /// Such a direction has its turn.
    pub(super) fn look(&mut self) {
        self.up.look();
        self.down.look();
    }

    /// Gives back pipes whose bytes nobody takes. False: that went wrong.
    pub(super) fn spare_pipes(&mut self, kit: &mut Kit) -> bool {
        self.up.spare_pipe(kit) && self.down.spare_pipe(kit)
    }

    /// Nobody will look at it for a while.
    pub(super) fn watch_sources(&mut self) {
        self.up.watch_source();
        self.down.watch_source();
    }

    /// Which of the sockets that it had on one side is meant.
    pub(super) fn mark(&self, side: Side) -> Mark {
        match side {
            Side::Client => self.turn,
            Side::Worker => self.call,
        }
    }

    /// Whether something that came from there waits to be taken on the other side.
    pub(super) fn holds_from(&self, side: Side) -> bool {
        match side {
            Side::Client => self.up.holds(),
            Side::Worker => self.down.holds(),
        }
    }

    /// What was sent is kept only for as long as it may have to be said again.
    pub(super) fn forget_what_was_sent(&mut self, now: Timestamp) {
        if now >= self.lane.door.replay_until() {
            self.sent = None;
        }
    }

    /// Whether there is something that waits to be moved, and somebody who takes it.
    pub(super) fn could_move(&self) -> bool {
        [&self.up, &self.down].iter().any(|way| way.could_move())
    }

    /// What is next in a socket, without taking it.
    pub(super) fn peek(&self, side: Side) -> Peeked {
        let socket = match side {
            Side::Client => Some(&self.client),
            Side::Worker => self.worker.as_ref(),
        };
        let Some(socket) = socket else { return Peeked::Nothing };
        let mut byte = [0_u8; 1];
        match recv(socket, &mut byte[..], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((0, _)) => Peeked::End,
            Ok(_) => Peeked::Bytes,
            Err(Errno::AGAIN) => Peeked::Nothing,
            Err(_) => Peeked::Gone,
        }
    }

    /// Passes an end on without moving a byte. True: both directions are over.
    pub(super) fn pass_end_on(&mut self, side: Side) -> bool {
        let (way, sink) = match side {
            Side::Client => (&mut self.up, self.worker.as_ref()),
            Side::Worker => (&mut self.down, Some(&self.client)),
        };
        if let Some(sink) = sink {
            way.pass_end_on(sink);
        }
        self.up.is_over() && self.down.is_over()
    }

    /// Whether the worker has picked up, as far as the kernel says. It may have hung up again.
    pub(super) fn picked_up(&mut self, flags: EventFlags) -> bool {
        if flags.intersects(EventFlags::HUP | EventFlags::ERR)
            && let Some(error) = self.take_worker_error()
            && (is_refusal(error) || self.dialled.is_some())
        {
            return false;
        }
        // The last word of a socket that was here before comes in the same batch: it vouches for nothing.
        if self.dialled.is_none() || self.is_connected() {
            self.phase = Phase::Flowing;
        }
        true
    }

    /// Whether somebody has picked up, for certain.
    pub(super) fn is_connected(&self) -> bool {
        self.worker.as_ref().is_some_and(|worker| getpeername(worker).is_ok())
    }

    /// Whether it was the worker who picked up; as long as nobody has, that is yet to be asked.
    pub(super) fn is_vouched_for(&mut self) -> bool {
        if self.dialled.is_some() && !self.is_connected() {
            return true;
        }
        self.dialled.take().is_none_or(|run| run.stands())
    }

    /// Whether bytes may move at all.
    pub(super) fn may_flow(&self) -> bool {
        self.dialled.is_none()
            && matches!(self.phase, Phase::Flowing | Phase::Dialing { .. })
            && !self.lane.door.is_stopped.load(Ordering::Acquire)
    }
}
