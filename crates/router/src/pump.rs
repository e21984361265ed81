//! A thread that accepts connections and moves their bytes: one epoll loop, no task and no allocation per batch.
//!
//! Everything that decides is elsewhere: the gate says who passes, the keeper wakes workers. A pump only asks at
//! the gate, holds the sockets of those who wait, calls workers and copies. See
//! `docs/decisions/0012-the-pump.md` for why it is not a task for each connection.
//!
//! What must stay true: not a byte is taken from a client before it has passed the gate; past the validity of the
//! session not a byte moves; a pump never blocks but in `epoll_wait`, and for the one line that a head start writes to
//! disk: see `docs/decisions/0013-a-head-start.md`.

mod accept;
mod bulk;
mod conn;
mod crowd;
mod gather;
mod late;
mod leave;
mod mailbox;
mod pipes;
mod post;
mod queued;
mod rest;
mod sent;
mod slots;
mod stopped;
mod sweep;
mod way;

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_wire::control::Control;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt;

use crate::door::{Admitted, Arrived, Door, Waiter};
use crate::gate::Visitor;
use crate::port::Port;
use crate::room::Room;
use crate::route::Standing;
use crate::router::{Inside, Now};
use crate::turned::Turned;
use accept::{Called, NotCalled, call};
pub(crate) use conn::Key;
use conn::{Came, Peeked, Phase, Side, Watch, Went};
use crowd::Crowd;
use gather::Gatherers;
use late::{Late, Patience};
use leave::Leaving;
pub(crate) use mailbox::{Adopted, Letter, Mailbox, With};
use rest::Rest;
pub(crate) use sent::Kept;
use slots::{Slots, Token};
use way::Kit;

/// How many events are fetched at once.
const EVENTS: usize = 256;

/// How many pipes all pumps of a process have: each is two files. Each may hold a mebibyte, and beyond 64 MiB the kernel
/// makes them tiny for whoever is not root.
const PIPES: usize = 32;

/// What pumps share.
#[derive(Clone)]
pub(crate) struct Common {
    pub(crate) control: Arc<dyn Control>,
    pub(crate) now: Now,
    pub(crate) room: Arc<Room>,
    pub(crate) router: Weak<Inside>,
    pub(crate) kept: Kept,
}

/// One pump.
pub(crate) struct Pump {
    common: Common,
    mailbox: Arc<Mailbox>,
    epoll: OwnedFd,
    ports: HashMap<u64, (Arc<Port>, Arc<OwnedFd>)>,
    /// Ports at which there was no room for another file: they rest until the next sweep.
    resting: Vec<u64>,
    conns: Slots,
    kit: Kit,
    /// Connections that could go on.
    busy: Vec<u32>,
    gatherers: Gatherers,
    late: Vec<Late>,
    leaving: Leaving,
    crowd: Crowd,
    /// The time, as of the last return from `epoll_wait`.
    now: Timestamp,
    is_valid: bool,
    sweep_at: Timestamp,
}

impl Pump {
    pub(crate) fn new(common: Common, mailbox: Arc<Mailbox>, pumps: usize) -> std::io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &mailbox.bell, EventData::new_u64(Token::Bell.pack()), EventFlags::IN)?;
        let gatherers = Gatherers::new(&epoll)?;
        let now = (common.now)();
        Ok(Self {
            common,
            mailbox,
            epoll,
            ports: HashMap::new(),
            resting: Vec::new(),
            conns: Slots::default(),
            kit: Kit::new((PIPES / pumps.max(1)).max(1)),
            busy: Vec::new(),
            gatherers,
            late: Vec::new(),
            leaving: Leaving::new(now),
            crowd: Crowd::new(now),
            now,
            is_valid: true,
            sweep_at: now,
        })
    }

    /// Runs until it is told to end.
    pub(crate) fn run(mut self) {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        let rest = Rest::begin();
        let mut has_newcomers = false;
        loop {
            let is_idle = self.busy.is_empty() && self.patience() == Patience::Long;
            if is_idle && self.crowd.is_one(self.conns.len()) {
                rest.after(events.len(), has_newcomers);
            }
            events.clear();
            let timeout = self.timeout();
            if self.patience() == Patience::None {
                // Whoever is looked for may be in line behind this thread.
                std::thread::yield_now();
            }
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                // The descriptor and the buffer are ours: there is nothing else that it could say.
                Err(_) => return,
            }
            self.now = (self.common.now)();
            self.crowd.at(self.now);
            self.look_at_validity();
            let (mut has_letters, mut is_time_to_look) = (false, false);
            has_newcomers = false;
            // What clients say first: workers have all of it at once then, and answer while the rest is passed on.
            for turn in [Side::Client, Side::Worker] {
                for event in &events {
                    match Token::unpack(event.data.u64()) {
                        Token::Conn(slot, side, mark) if side == turn => {
                            if self.conns.with_socket(slot, side, mark).is_some() {
                                self.happened(slot, side, event.flags);
                            }
                        }
                        Token::Port(id) if turn == Side::Client => {
                            has_newcomers = true;
                            self.accept(id);
                        }
                        Token::Conn(..) | Token::Port(_) => {}
                        Token::Bell => has_letters = true,
                        Token::Look => is_time_to_look = true,
                    }
                }
            }
            for slot in std::mem::take(&mut self.busy) {
                if let Some(conn) = self.conns.get_mut(slot) {
                    conn.is_busy = false;
                    self.go_on(slot);
                }
            }
            if is_time_to_look {
                self.look_at_gatherers();
            }
            self.catch_up();
            if has_letters && self.read_letters() {
                self.break_off_all();
                return self.catch_up_at_last();
            }
            if self.now >= self.sweep_at {
                self.sweep();
            }
            self.look_at_leaving();
            self.conns.free_places();
        }
    }

    /// How long to wait for something to happen.
    fn timeout(&self) -> Option<Timespec> {
        let patience = self.patience();
        if !self.busy.is_empty() || patience == Patience::None {
            return Some(Timespec { tv_sec: 0, tv_nsec: 0 });
        }
        let next = self.leaving.look_at().map_or(self.sweep_at, |look_at| look_at.min(self.sweep_at));
        if let Patience::Until(until) = patience {
            return Timespec::try_from(until.min(next).since(self.now)).ok();
        }
        if self.conns.is_empty() && self.resting.is_empty() {
            return None;
        }
        Timespec::try_from(next.since(self.now)).ok()
    }

    /// Past its validity the router forwards no byte until the hold is back.
    fn look_at_validity(&mut self) {
        let is_valid = self.now < self.common.control.valid_until();
        if self.is_valid && !is_valid && !self.conns.is_empty() {
            // Every door is stopped, and each goes on when its worker is held again.
            if let Some(router) = self.common.router.upgrade() {
                router.lapse();
            }
        }
        let is_back = is_valid && !self.is_valid;
        self.is_valid = is_valid;
        if is_back {
            // What happened meanwhile was noted and not done.
            for slot in self.conns.slots() {
                self.go_on(slot);
            }
        }
    }

    /// Something happened to a socket.
    fn happened(&mut self, slot: u32, side: Side, flags: EventFlags) {
        self.note_answer(slot, side);
        let now = self.now;
        let Some(conn) = self.conns.get_mut(slot) else { return };
        self.crowd.heard(&mut conn.heard_in);
        conn.note(side, flags, now);
        match conn.phase {
            Phase::Waiting(ticket) | Phase::Rejoining(ticket) => {
                // An end alone is none: whoever has half-closed waits for an answer.
                if side == Side::Client && conn.is_client_gone(flags) {
                    self.give_up(slot, ticket);
                }
            }
            Phase::Dialing { .. } => {
                if side == Side::Worker && !(conn.picked_up(flags) && conn.is_vouched_for()) {
                    return self.call_again(slot);
                }
                self.go_on(slot);
            }
            Phase::Flowing => self.go_on(slot),
            // A frozen worker would never answer the end of somebody who is gone, and they would keep their place.
            Phase::Silent if side == Side::Client && conn.is_client_gone(flags) => self.close(slot),
            Phase::Silent => self.stir(slot, side),
            Phase::Leaving { .. } => {
                self.leave(slot);
            }
        }
    }

    /// Moves what can be moved.
    fn go_on(&mut self, slot: u32) {
        let is_valid = self.is_valid;
        let Some(conn) = self.conns.get_mut(slot).filter(|conn| is_valid && conn.may_flow()) else { return };
        let went = conn.run(&mut self.kit, self.now);
        match went {
            Went::On => {}
            Went::Busy => {
                if !conn.is_busy {
                    conn.is_busy = true;
                    self.busy.push(slot);
                }
            }
            Went::Dropped => return self.call_again(slot),
            Went::Over => return self.close(slot),
        }
        if conn.waits_for_a_look() {
            self.gatherers.add(slot);
        }
        self.watch(slot);
    }

    /// Watches for room where there was none.
    fn watch(&mut self, slot: u32) {
        let Some(conn) = self.conns.get_mut(slot) else { return };
        let (turn, call) = (conn.turn, conn.call);
        let token = |side, mark| EventData::new_u64(Token::Conn(slot, side, mark).pack());
        let mut is_heard = true;
        let wanted = conn.client_watch.next(conn.down.is_full, conn.up.gathers());
        if conn.client_watch != wanted {
            let token = token(Side::Client, turn);
            is_heard &= set_watch(&self.epoll, &conn.client, token, conn.client_watch, wanted);
            conn.client_watch = wanted;
        }
        if let Some(worker) = &conn.worker {
            let wanted = conn.worker_watch.next(conn.up.is_full, conn.down.gathers());
            if conn.worker_watch != wanted {
                is_heard &=
                    set_watch(&self.epoll, worker, token(Side::Worker, call), conn.worker_watch, wanted);
                conn.worker_watch = wanted;
            }
        }
        if !is_heard {
            // For want of memory. Nobody would ever hear of it, and it would hold the worker for ever.
            self.end(slot);
        }
    }

    /// A byte came to somebody who does not count: they go back to the gate first. An end is only passed on.
    fn stir(&mut self, slot: u32, side: Side) {
        let Some(conn) = self.conns.get_mut(slot) else { return };
        // Also whoever takes again what has been waiting for them.
        let peeked = if conn.could_move() {
            Peeked::Bytes
        } else if conn.holds_from(side) {
            // Whatever comes after what is held is for when that has been taken.
            Peeked::Nothing
        } else {
            conn.peek(side)
        };
        match peeked {
            Peeked::Bytes => {
                conn.phase = Phase::Rejoining(None);
                conn.asked_at = self.now;
                self.arrive(slot);
            }
            Peeked::End if conn.pass_end_on(side) => self.close(slot),
            Peeked::Gone => self.close(slot),
            Peeked::End | Peeked::Nothing => {}
        }
    }

    /// Asks at the gate for somebody.
    fn arrive(&mut self, slot: u32) {
        let Some(conn) = self.conns.get_mut(slot) else { return };
        let key = Key { slot, turn: conn.turn };
        let who = Waiter::Pump(Arc::clone(&self.mailbox), key);
        let door = Arc::clone(&conn.lane.door);
        let standing = conn.lane.route.rules.standing(conn.from);
        if standing == Standing::Robot {
            door.robot_came(who, conn.lane.route.target.place);
            return self.watch(slot);
        }
        let visitor = Visitor {
            from: conn.from,
            target: conn.lane.route.target.clone(),
            may_wake: conn.may_wake || standing == Standing::MayWake,
            // All in all, however often it has to be called.
            wait_for: conn.lane.route.rules.wait_for.saturating_sub(self.now.since(conn.asked_at)),
            who,
        };
        let place = conn.lane.route.target.place;
        let is_new = matches!(conn.phase, Phase::Waiting(_));
        let mut called = None;
        // A frozen worker has a connection in line before it goes on: it need not fall asleep over it and be woken.
        let arrived = door.arrive(visitor, self.now, &mut || called = is_new.then(|| call(&door, place)));
        match arrived {
            Arrived::Passed(pass) => self.passed(key, Admitted::Counted(pass), None),
            Arrived::Ahead(pass) => {
                self.be_late(key, door);
                self.passed(key, Admitted::Counted(pass), called);
            }
            Arrived::Turned(why) => self.turn_away(slot, why),
            Arrived::Waits(ticket) => {
                match &mut conn.phase {
                    Phase::Waiting(waits) | Phase::Rejoining(waits) => *waits = Some(ticket),
                    Phase::Dialing { .. } | Phase::Flowing | Phase::Silent | Phase::Leaving { .. } => {}
                }
                self.watch(slot);
            }
        }
    }

    /// The gate lets somebody pass. If they have left meanwhile, so does their pass.
    ///
    /// `called`: the worker has been called for them already.
    fn passed(&mut self, key: Key, admitted: Admitted, called: Option<Result<Called, NotCalled>>) {
        let Some(conn) = self.conns.of(key) else { return };
        if admitted.is_cut() {
            // They had to end before they heard that they may go on, and nobody will tell them again.
            return self.close(key.slot);
        }
        match conn.phase {
            Phase::Waiting(_) => {
                conn.admitted = Some(admitted);
                self.dial(key.slot, called);
            }
            Phase::Rejoining(_) => {
                conn.admitted = Some(admitted);
                conn.phase = Phase::Flowing;
                conn.last_byte_at = self.now;
                self.go_on(key.slot);
            }
            Phase::Dialing { .. } | Phase::Flowing | Phase::Silent | Phase::Leaving { .. } => {}
        }
    }

    /// Closes, or gives the client back to whoever can tell it why.
    fn turn_away(&mut self, slot: u32, why: Turned) {
        if let Some(conn) = self.conns.get_mut(slot)
            // Whoever has heard the worker is in the middle of something, and words of ours would be taken for its words.
            && matches!(conn.phase, Phase::Waiting(_))
            && let Came::FromTask(back) = &mut conn.came
            && let Some(back) = back.take()
            && let Ok(client) = conn.client.try_clone()
        {
            // It stays open elsewhere, so it would still be watched.
            let _ = epoll::delete(&self.epoll, &conn.client);
            // Nobody waits for it: it ends.
            drop(back.send((client, why)));
        }
        self.close(slot);
    }

    /// Reads the mail. True: it is over.
    fn read_letters(&mut self) -> bool {
        for letter in self.mailbox.take() {
            match letter {
                Letter::Passed(key, pass) => self.passed(key, pass, None),
                Letter::Turned(key, why) => {
                    if self.conns.of(key).is_some() {
                        self.turn_away(key.slot, why);
                    }
                }
                Letter::Adopt(adopted) => self.adopt(*adopted),
                Letter::Go(door) => self.each(&door, Self::go_on),
                Letter::Cut(door) => self.each(&door, |pump, slot| {
                    let admitted = pump.conns.get_mut(slot).and_then(|conn| conn.admitted.as_ref());
                    if admitted.is_some_and(Admitted::is_cut) {
                        pump.close(slot);
                    }
                }),
                Letter::Listen(port, socket) => self.listen(port, socket),
                Letter::Close(port, done) => {
                    self.ignore(port);
                    drop(done);
                }
                Letter::CutPort(port) => {
                    for slot in self.conns.slots() {
                        if self.conns.get_mut(slot).is_some_and(|conn| conn.port == port) {
                            self.end(slot);
                        }
                    }
                }
                Letter::BreakOff(done) => {
                    self.break_off_all();
                    drop(done);
                }
                Letter::End => return true,
            }
        }
        false
    }

    /// Does something to all connections of a door.
    fn each(&mut self, door: &Arc<Door>, mut act: impl FnMut(&mut Self, u32)) {
        for slot in self.conns.slots() {
            if self.conns.get_mut(slot).is_some_and(|conn| Arc::ptr_eq(&conn.lane.door, door)) {
                act(self, slot);
            }
        }
    }
}

/// Has a socket find out that its peer has died without a word: after 30 s of silence it is asked, and after
/// another 40 s without an answer it is over.
pub(crate) fn keepalive(socket: &impl AsFd) {
    // Each is a wish: a socket without it works, and is noticed to be dead later.
    let _ = sockopt::set_socket_keepalive(socket, true);
    let _ = sockopt::set_tcp_keepidle(socket, Duration::from_secs(30));
    let _ = sockopt::set_tcp_keepintvl(socket, Duration::from_secs(10));
    let _ = sockopt::set_tcp_keepcnt(socket, 4);
}

/// False: it is not watched.
fn set_watch(epoll: &OwnedFd, socket: &OwnedFd, token: EventData, has: Watch, wanted: Watch) -> bool {
    let set = if has == Watch::Nothing {
        epoll::add(epoll, socket, token, wanted.flags())
    } else {
        epoll::modify(epoll, socket, token, wanted.flags())
    };
    set.is_ok()
}
