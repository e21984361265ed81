//! Letting people in, and calling workers for them.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use drowse_wire::control::{EdgeCause, Run};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, acceptfrom_with, connect, socket_with, sockopt};

use super::conn::{Came, Conn, Phase, SAID_AGAIN_AT_MOST, Watch};
use super::crowd::Round;
use super::sent::Sent;
use super::slots::{Mark, Token};
use super::way::Way;
use super::{Adopted, Pump, With};
use crate::door::{Admitted, Dial, Door};
use crate::port::{Lane, Leading, Port};
use crate::route::Place;
use crate::turned::Turned;

/// How many are let in at a port before others have their turn.
const AT_ONCE: usize = 64;

/// How long a worker may take to pick up. One that is awake and has answered before does so within microseconds.
pub(super) const DIAL_FOR: Duration = Duration::from_secs(5);

const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// A worker that has been called.
pub(super) struct Called {
    worker: OwnedFd,
    /// Who vouches for it.
    run: Option<Arc<dyn Run>>,
}

/// Why a worker could not be called.
pub(super) enum NotCalled {
    /// There is no file left.
    ForWantOfFiles,
    /// Nobody knows where it is, or it is known already that it does not answer there.
    Refused,
}

/// Calls a worker. Whether it has picked up shows later.
pub(super) fn call(door: &Door, place: Place) -> Result<Called, NotCalled> {
    let Dial { address, run } = door.known(place).ok_or(NotCalled::Refused)?;
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let worker =
        socket_with(family, SocketType::STREAM, FLAGS, None).map_err(|_| NotCalled::ForWantOfFiles)?;
    match connect(&worker, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(Called { worker, run }),
        Err(_) => Err(NotCalled::Refused),
    }
}

impl Pump {
    /// Takes on a port.
    pub(super) fn listen(&mut self, port: Arc<Port>, socket: Arc<OwnedFd>) {
        let token = EventData::new_u64(Token::Port(port.id).pack());
        // One pump is enough for one connection.
        let flags = EventFlags::IN | EventFlags::EXCLUSIVE;
        if epoll::add(&self.epoll, &socket, token, flags).is_err() {
            // For want of memory: it is tried again.
            self.resting.push(port.id);
        }
        self.ports.insert(port.id, (port, socket));
    }

    /// Lets go of a port.
    pub(super) fn ignore(&mut self, id: u64) {
        self.resting.retain(|resting| *resting != id);
        if let Some((_, socket)) = self.ports.remove(&id) {
            // It may be open elsewhere, so it would still be watched.
            let _ = epoll::delete(&self.epoll, &socket);
        }
    }

    /// Somebody knocks at a port.
    pub(super) fn accept(&mut self, id: u64) {
        let Some((port, socket)) = self.ports.get(&id).cloned() else { return };
        for _ in 0..AT_ONCE {
            match acceptfrom_with(&socket, FLAGS) {
                Ok((client, from)) => {
                    let from = from.and_then(|from| SocketAddr::try_from(from).ok());
                    let from = from.map_or(IpAddr::from([0; 4]), |from| from.ip().to_canonical());
                    match port.leading() {
                        Leading::Straight(lane) => self.let_in(port.id, lane, client, from),
                        Leading::AsTheySay(leads) => {
                            if let Some(router) = self.common.router.upgrade() {
                                router.listen_to(&port, leads, client, from);
                            }
                        }
                    }
                }
                Err(Errno::AGAIN) => return,
                // They were gone before they were let in.
                Err(Errno::INTR | Errno::CONNABORTED | Errno::PROTO | Errno::PERM) => {}
                Err(_) => {
                    // No file or no memory: if it stayed watched, it would call without end.
                    let _ = epoll::delete(&self.epoll, &socket);
                    self.resting.push(id);
                    return;
                }
            }
        }
    }

    fn let_in(&mut self, port: u64, lane: Arc<Lane>, client: OwnedFd, from: IpAddr) {
        if !self.common.room.take(&lane.door.held) {
            lane.door.turned_away();
            return;
        }
        let conn = self.stranger(port, lane, client, from);
        let slot = self.conns.put(conn);
        self.arrive(slot);
    }

    /// Lets somebody in who has been listened to.
    pub(super) fn adopt(&mut self, adopted: Adopted) {
        let Adopted { client, said, from, lane, port, back, with } = adopted;
        let mut conn = self.stranger(port, lane, client, from);
        conn.up = Way::of_somebody_who_said(said, &mut self.kit);
        conn.came = Came::FromTask(Some(back));
        let Some(With { worker, heard, pass, may_wake }) = with else {
            let slot = self.conns.put(conn);
            return self.arrive(slot);
        };
        conn.down = Way::of_somebody_who_said(heard, &mut self.kit);
        conn.may_wake = may_wake;
        conn.worker = Some(worker);
        conn.phase = Phase::Flowing;
        let is_cut = pass.is_cut();
        conn.admitted = Some(Admitted::Counted(pass));
        let slot = self.conns.put(conn);
        if is_cut {
            // While they were between the two, and nobody could tell them.
            return self.close(slot);
        }
        self.watch(slot);
        self.go_on(slot);
    }

    fn stranger(&self, port: u64, lane: Arc<Lane>, client: OwnedFd, from: IpAddr) -> Box<Conn> {
        Box::new(Conn {
            turn: Mark::default(),
            call: Mark::default(),
            phase: Phase::Waiting(None),
            admitted: None,
            from,
            may_wake: false,
            port,
            lane,
            client,
            worker: None,
            dialled: None,
            up: Way::of_a_stranger(),
            down: Way::default(),
            sent: None,
            run: 0,
            said_again: 0,
            said_in: None,
            came_at: self.now,
            asked_at: self.now,
            last_byte_at: self.now,
            client_watch: Watch::Nothing,
            worker_watch: Watch::Nothing,
            is_kept_alive: false,
            is_busy: false,
            heard_in: Round::default(),
            came: Came::ByPort,
        })
    }

    /// Calls the worker for somebody who has passed, unless that has been done, and begins to move bytes.
    pub(super) fn dial(&mut self, slot: u32, called: Option<Result<Called, NotCalled>>) {
        let Some(conn) = self.conns.get_mut(slot) else { return };
        conn.run = conn.lane.door.run();
        if conn.said_in.is_some_and(|said_in| said_in != conn.run) {
            // What ended a run is not said to the next: one message must not end them all.
            return self.close(slot);
        }
        let called = called.unwrap_or_else(|| call(&conn.lane.door, conn.lane.route.target.place));
        let Called { worker, run } = match called {
            Ok(called) => called,
            Err(NotCalled::ForWantOfFiles) => return self.close(slot),
            Err(NotCalled::Refused) => return self.call_again(slot),
        };
        // Small words are not held back for more: the worker and the client decide that for themselves. Not when it was
        // called: a frozen worker is told to go on in between, and each call to the kernel makes its visitor wait.
        let _ = sockopt::set_tcp_nodelay(&worker, true);
        conn.worker = Some(worker);
        conn.phase = Phase::Dialing { since: self.now };
        // However long they had to wait for it, that was no silence of theirs.
        conn.last_byte_at = self.now;
        conn.sent = (self.now < conn.lane.door.replay_until()).then(|| Sent::new(&self.common.kept));
        // Until somebody picks up there is no room for a byte, and the kernel tells when there is.
        conn.up.is_full = run.is_some();
        conn.dialled = run;
        // On the same machine it has picked up already, and what the client has said can be sent at once.
        self.go_on(slot);
        self.watch(slot);
    }

    /// The worker did not pick up, or hung up before it had ever said a word: it is called again as soon as the
    /// gate says that it answers.
    pub(super) fn call_again(&mut self, slot: u32) {
        let now = self.now;
        let Some(conn) = self.conns.get_mut(slot) else { return };
        if let Some(Admitted::Robot(_)) = conn.admitted {
            // The worker may be elsewhere by now; but nobody waits for one on a robot's account.
            conn.said_again += 1;
            if conn.said_again > SAID_AGAIN_AT_MOST {
                conn.lane.door.turned_away();
                return self.turn_away(slot, Turned::Late { waited_for: Duration::ZERO, is_up: true });
            }
        }
        if conn.phase == Phase::Flowing {
            conn.lane.door.was_fooled();
        }
        conn.hang_up();
        let sent = conn.sent.take().map_or_else(Vec::new, Sent::into_bytes);
        if !sent.is_empty() {
            conn.said_again += 1;
            conn.said_in = Some(conn.run);
        }
        conn.up.replay(sent, &mut self.kit);
        conn.down.begin_anew(&mut self.kit);
        conn.lane.door.doubt(&conn.lane.route.target);
        conn.phase = Phase::Waiting(None);
        let admitted = conn.admitted.take();
        let waited_for = conn.lane.route.rules.wait_for;
        let is_late = now.since(conn.asked_at) >= waited_for;
        if is_late {
            conn.lane.door.turned_away();
            self.turn_away(slot, Turned::Late { waited_for, is_up: true });
        } else {
            self.arrive(slot);
        }
        // Not before it counts at the gate again: the hold is never given back in between.
        if let Some(Admitted::Counted(pass)) = admitted {
            pass.leave(EdgeCause::Left, now);
        }
    }
}
