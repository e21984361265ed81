//! The door of one worker: the gate's rules behind a lock, and how those at it are told.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use drowse_core::id::WorkerId;
use drowse_wire::control::EdgeCause;
use tokio::sync::{Notify, oneshot, watch};

use crate::gate::{Arrival, Decided, Flow, Gate, Round, Terms, Visitor};
use crate::queue::Ticket;
use crate::router::Inside;
use crate::tally::{Counts, Tally};
use crate::turned::Turned;

/// The door of one worker, however many routes lead to it.
#[derive(Debug)]
pub struct Door {
    pub(crate) worker: WorkerId,
    pub(crate) router: Weak<Inside>,
    pub(crate) tally: Tally,
    pub(crate) guarded: Mutex<Guarded>,
    /// Pokes the keeper.
    pub(crate) news: Notify,
    /// What those who have passed may do.
    flow: watch::Sender<Flowing>,
    /// The housekeeper has it on its list.
    pub(crate) is_listed: AtomicBool,
}

/// What is behind the lock.
#[derive(Debug)]
pub(crate) struct Guarded {
    pub(crate) gate: Gate<Waiter>,
    /// There is a keeper.
    pub(crate) is_kept: bool,
}

/// What those who have passed may do.
#[derive(Clone, Copy, Debug, Default)]
struct Flowing {
    /// Whoever passed before this round has to end.
    round: Round,
    /// Not a byte until this is false again.
    is_stopped: bool,
}

/// Somebody who waits, and how they are told.
#[derive(Debug)]
pub(crate) enum Waiter {
    /// A task.
    Task(oneshot::Sender<Result<Pass, Turned>>),
}

impl Waiter {
    fn pass(self, pass: Pass) {
        match self {
            // Whoever is gone leaves with the pass.
            Self::Task(tell) => drop(tell.send(Ok(pass))),
        }
    }

    fn turn(self, why: Turned) {
        match self {
            Self::Task(tell) => drop(tell.send(Err(why))),
        }
    }
}

/// Somebody who was let through. They count until this is dropped.
#[derive(Debug)]
pub struct Pass {
    door: Arc<Door>,
    round: Round,
    cause: EdgeCause,
    flow: watch::Receiver<Flowing>,
}

impl Pass {
    /// Bytes went through: to the worker and to the client.
    pub fn moved(&self, to_worker: u64, to_client: u64) {
        self.door.moved(to_worker, to_client);
    }

    /// Waits until they have to end: the worker sleeps although they are here.
    pub async fn cut(&self) {
        let mut flow = self.flow.clone();
        // The sender lives as long as the door, and the door as long as this.
        let _ = flow.wait_for(|flow| flow.round != self.round).await;
    }

    /// Waits until bytes may move; at once, as a rule.
    pub async fn flows(&self) {
        let mut flow = self.flow.clone();
        let _ = flow.wait_for(|flow| !flow.is_stopped).await;
    }

    /// They have been silent for so long that they do not count any more. Whoever then moves bytes again has to
    /// enter anew, first.
    pub fn fell_silent(mut self) {
        self.cause = EdgeCause::FellSilent;
    }

    /// Whose door it was.
    pub fn door(&self) -> &Arc<Door> {
        &self.door
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.door.leave(self.round, self.cause);
    }
}

impl Door {
    pub(crate) fn new(worker: WorkerId, terms: Terms, router: Weak<Inside>) -> Self {
        Self {
            worker,
            router,
            tally: Tally::default(),
            guarded: Mutex::new(Guarded { gate: Gate::new(terms), is_kept: false }),
            news: Notify::new(),
            flow: watch::Sender::new(Flowing::default()),
            is_listed: AtomicBool::new(false),
        }
    }

    /// Whose.
    pub fn worker(&self) -> &WorkerId {
        &self.worker
    }

    /// What went through it.
    pub fn counts(&self) -> Counts {
        let open = self.lock().gate.count();
        self.tally.counts(open)
    }

    /// How many wait at it.
    pub fn waiting(&self) -> usize {
        self.lock().gate.waiting()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Guarded> {
        self.guarded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts somebody, wakes the worker if it sleeps and `may_wake`, and waits until `target` answers.
    ///
    /// Whoever stops waiting, by dropping the future, counts no more.
    pub async fn enter(
        self: &Arc<Self>,
        from: IpAddr,
        target: SocketAddr,
        may_wake: bool,
    ) -> Result<Pass, Turned> {
        let Some(router) = self.router.upgrade() else { return Err(Turned::Ending) };
        let (tell, told) = oneshot::channel();
        let visitor = Visitor { from, target, may_wake, who: Waiter::Task(tell) };
        let arrival = self.lock().gate.arrive(visitor, router.now());
        match arrival {
            Arrival::Pass(_, round) => {
                self.tally.let_through();
                Ok(self.pass(round))
            }
            Arrival::Turned(_, why) => {
                self.tally.turned_away();
                Err(why)
            }
            Arrival::Wait { ticket, evicted, is_news } => {
                if let Some(evicted) = evicted {
                    self.turn_away(evicted, Turned::QueueFull);
                }
                if is_news {
                    self.poke();
                }
                let waits = Waits { door: self, ticket };
                let told = told.await.unwrap_or(Err(Turned::Ending));
                drop(waits);
                told
            }
        }
    }

    fn pass(self: &Arc<Self>, round: Round) -> Pass {
        let flow = self.flow.subscribe();
        Pass { door: Arc::clone(self), round, cause: EdgeCause::Left, flow }
    }

    fn turn_away(&self, waiter: Waiter, why: Turned) {
        self.tally.turned_away();
        waiter.turn(why);
    }

    /// A target that had answered does not any more: it has to prove itself anew.
    pub fn doubt(&self, target: SocketAddr) {
        self.lock().gate.doubt(target);
    }

    /// Bytes went through.
    pub(crate) fn moved(self: &Arc<Self>, to_worker: u64, to_client: u64) {
        if self.tally.moved(to_worker, to_client) {
            self.list();
        }
    }

    fn leave(self: &Arc<Self>, round: Round, cause: EdgeCause) {
        let Some(router) = self.router.upgrade() else { return };
        let is_last = self.lock().gate.leave(round, cause, router.now());
        if is_last {
            // Not the keeper: whoever comes at once finds the gate still open, and nobody had to look.
            self.list();
        }
    }

    /// Has the housekeeper look at it.
    fn list(self: &Arc<Self>) {
        if !self.is_listed.swap(true, Ordering::AcqRel)
            && let Some(router) = self.router.upgrade()
        {
            router.list(Arc::clone(self));
        }
    }

    /// Has the keeper look at it.
    pub(crate) fn poke(self: &Arc<Self>) {
        let is_kept = std::mem::replace(&mut self.lock().is_kept, true);
        if is_kept {
            self.news.notify_one();
        } else if let Some(router) = self.router.upgrade() {
            router.keep(Arc::clone(self));
        }
    }

    /// Tells those at the gate what was decided for them.
    pub(crate) fn apply(self: &Arc<Self>, decided: Decided<Waiter>) {
        match decided.flow {
            Some(Flow::Stop) => self.flow.send_modify(|flow| flow.is_stopped = true),
            Some(Flow::Go) => self.flow.send_modify(|flow| flow.is_stopped = false),
            Some(Flow::Cut) => {
                let round = self.lock().gate.round();
                self.flow.send_modify(|flow| *flow = Flowing { round, is_stopped: false });
            }
            None => {}
        }
        for waiter in decided.pass {
            self.tally.let_through();
            waiter.pass(self.pass(decided.round));
        }
        for (waiter, why) in decided.turned {
            self.turn_away(waiter, why);
        }
    }
}

/// A place in the queue, given back when it is not wanted any more.
struct Waits<'a> {
    door: &'a Arc<Door>,
    ticket: Ticket,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let Some(router) = self.door.router.upgrade() else { return };
        let gave_up = self.door.lock().gate.give_up(self.ticket, router.now());
        if gave_up.is_some() {
            // Perhaps nobody waits any more for what the keeper is about.
            self.door.poke();
        }
    }
}
