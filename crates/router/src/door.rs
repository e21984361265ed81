//! The door of one worker: the gate's rules behind a lock, and how those at it are told.

mod knock;
mod robots;
mod ways;

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_wire::control::{Edge, EdgeCause};
use tokio::sync::{Notify, Semaphore, oneshot, watch};

use crate::gate::{Arrival, Decided, Flow, Gate, Round, Terms, Visitor};
use crate::pump::{Key, Letter, Mailbox};
use crate::queue::Ticket;
use crate::route::Target;
use crate::router::Inside;
use crate::tally::{Counts, Tally};
use crate::turned::Turned;
pub(crate) use knock::{Knocked, Waits};
pub(crate) use robots::Robot;
use robots::{AsleepAt, Robots};
pub(crate) use ways::Dial;
use ways::Ways;

/// For how long after a worker has come up it may hang up without a word and is called again, unless it has
/// answered somebody before. Port forwarders do that until the program behind them listens.
const REPLAY_FOR: Duration = Duration::from_secs(10);

/// How often whoever need not wait looks whether the lock is free. As a rule it is kept for less than a microsecond.
const TRIES: u32 = 100;

/// The door of one worker, however many routes lead to it.
#[derive(Debug)]
pub struct Door {
    pub(crate) worker: WorkerId,
    pub(crate) router: Weak<Inside>,
    pub(crate) tally: Tally,
    guarded: Mutex<Guarded>,
    /// How many counted when that was last asked.
    last_count: AtomicU64,
    /// Pokes the keeper.
    pub(crate) news: Notify,
    /// What those who have passed may do, for tasks.
    flow: watch::Sender<Flowing>,
    /// Not a byte until this is false again, for pumps.
    pub(crate) is_stopped: AtomicBool,
    /// The housekeeper has it on its list.
    pub(crate) is_listed: AtomicBool,
    /// Connections that are open, whether they count or not.
    pub(crate) held: AtomicUsize,
    robots: watch::Sender<Robots>,
    /// When a robot last found it asleep.
    asleep_at: AsleepAt,
    /// Until when a worker that has not answered yet may be called again, in microseconds; 0: it has answered.
    replay_until: AtomicI64,
    /// Grows with every run of the worker.
    run: AtomicU64,
    /// How often in this run somebody was let through to a worker that hung up on them without a word.
    fooled: AtomicU32,
    /// In microseconds; 0: never.
    connection_idle: AtomicU64,
    /// How many of its site come up at once.
    budget: Mutex<Arc<Semaphore>>,
    ways: Ways,
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
    /// A connection of a pump.
    Pump(Arc<Mailbox>, Key),
}

impl Waiter {
    fn pass(self, admitted: Admitted) {
        match (self, admitted) {
            // Whoever is gone leaves with the pass.
            (Self::Task(tell), Admitted::Counted(pass)) => drop(tell.send(Ok(pass))),
            // A task asks for its robots itself.
            (Self::Task(_), Admitted::Robot(_)) => {}
            (Self::Pump(mailbox, key), admitted) => mailbox.post(Letter::Passed(key, admitted)),
        }
    }

    fn turn(self, why: Turned) {
        match self {
            Self::Task(tell) => drop(tell.send(Err(why))),
            Self::Pump(mailbox, key) => mailbox.post(Letter::Turned(key, why)),
        }
    }
}

/// What became of somebody who came.
#[derive(Debug)]
pub(crate) enum Arrived {
    Passed(Pass),
    /// They pass ahead of the books. The keeper has to look, which the caller sees to: see `pump/late.rs`.
    Ahead(Pass),
    Waits(Ticket),
    Turned(Turned),
}

/// Somebody who was let through. They count until this is dropped.
#[derive(Debug)]
pub struct Pass {
    door: Arc<Door>,
    round: Round,
    /// The worker had to be woken for them.
    is_cold: bool,
    has_left: bool,
}

impl Pass {
    fn new(door: &Arc<Door>, round: Round, is_cold: bool) -> Self {
        Self { door: Arc::clone(door), round, is_cold, has_left: false }
    }

    /// Whether the worker had to be woken for them.
    pub fn is_cold(&self) -> bool {
        self.is_cold
    }

    /// Bytes went through: to the worker and to the client.
    pub fn moved(&self, to_worker: u64, to_client: u64) {
        Door::moved(&self.door, to_worker, to_client);
    }

    /// Waits until they have to end: the worker sleeps although they are here.
    pub async fn cut(&self) {
        // Later than theirs, not merely another: a round in which nobody was inside ends without a word.
        let mut flow = self.door.flow.subscribe();
        // The sender lives as long as the door, and the door as long as this.
        let _ = flow.wait_for(|flow| flow.round > self.round).await;
    }

    /// They have to end.
    pub fn is_cut(&self) -> bool {
        self.door.flow.borrow().round > self.round
    }

    /// Waits until bytes may move, at once as a rule, or until they have to end.
    pub async fn flows(&self) {
        let mut flow = self.door.flow.subscribe();
        let _ = flow.wait_for(|flow| !flow.is_stopped || flow.round > self.round).await;
    }

    /// They have been silent for so long that they do not count any more. Whoever then moves bytes again has to
    /// enter anew, first.
    pub fn fell_silent(self) {
        if let Some(router) = self.door.router.upgrade() {
            let now = router.now();
            self.leave(EdgeCause::FellSilent, now);
        }
    }

    /// Whose door it was.
    pub fn door(&self) -> &Arc<Door> {
        &self.door
    }

    pub(crate) fn leave(mut self, cause: EdgeCause, now: Timestamp) {
        self.has_left = true;
        self.door.leave(self.round, cause, now);
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if !self.has_left
            && let Some(router) = self.door.router.upgrade()
        {
            self.door.leave(self.round, EdgeCause::Left, router.now());
        }
    }
}

impl Door {
    pub(crate) fn new(worker: WorkerId, terms: Terms, router: Weak<Inside>, budget: Arc<Semaphore>) -> Self {
        Self {
            worker,
            router,
            tally: Tally::default(),
            guarded: Mutex::new(Guarded { gate: Gate::new(terms), is_kept: false }),
            last_count: AtomicU64::new(0),
            news: Notify::new(),
            flow: watch::Sender::new(Flowing::default()),
            is_stopped: AtomicBool::new(false),
            is_listed: AtomicBool::new(false),
            held: AtomicUsize::new(0),
            robots: watch::Sender::new(Robots::default()),
            asleep_at: AsleepAt::default(),
            replay_until: AtomicI64::new(0),
            run: AtomicU64::new(0),
            fooled: AtomicU32::new(0),
            connection_idle: AtomicU64::new(0),
            budget: Mutex::new(budget),
            ways: Ways::default(),
        }
    }

    /// Whose.
    pub fn worker(&self) -> &WorkerId {
        &self.worker
    }

    /// What went through it.
    pub fn counts(&self) -> Counts {
        // Those who count at this instant are a figure like any other: the last one will do.
        if let Some(guarded) = self.try_lock() {
            self.last_count.store(guarded.gate.count(), Ordering::Relaxed);
        }
        self.tally.counts(self.last_count.load(Ordering::Relaxed))
    }

    /// Connections that are open, whether they count or not.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Acquire)
    }

    /// How many wait at it.
    pub fn waiting(&self) -> usize {
        self.lock().gate.waiting()
    }

    /// After how much silence a connection stops counting; `None`: never.
    pub fn connection_idle(&self) -> Option<Duration> {
        let micros = self.connection_idle.load(Ordering::Relaxed);
        (micros > 0).then(|| Duration::from_micros(micros))
    }

    pub(crate) fn set_connection_idle(&self, idle: Option<Duration>) {
        let micros = idle.map_or(0, |idle| u64::try_from(idle.as_micros()).unwrap_or(u64::MAX).max(1));
        self.connection_idle.store(micros, Ordering::Relaxed);
    }

    pub(crate) fn budget(&self) -> Arc<Semaphore> {
        Arc::clone(&self.budget.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set_budget(&self, budget: Arc<Semaphore>) {
        *self.budget.lock().unwrap_or_else(PoisonError::into_inner) = budget;
    }

    /// Behind the lock, unless somebody is there for long: whoever gives a visitor a head start keeps it over a line that is
    /// written to the disk, and nobody who looks after all doors is to wait for the disk of one.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, Guarded>> {
        for _ in 0..TRIES {
            match self.guarded.try_lock() {
                Ok(guarded) => return Some(guarded),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            }
        }
        None
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Guarded> {
        self.guarded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts somebody, wakes the worker if it sleeps and they may, and says what becomes of them.
    pub(crate) fn knock(
        self: &Arc<Self>,
        from: IpAddr,
        target: &Target,
        may_wake: bool,
        wait_for: Duration,
    ) -> Knocked {
        let Some(router) = self.router.upgrade() else { return Knocked::Turned(Turned::Ending) };
        let (tell, told) = oneshot::channel();
        let visitor = Visitor { from, target: target.clone(), may_wake, wait_for, who: Waiter::Task(tell) };
        match self.arrive(visitor, router.now(), &mut || ()) {
            Arrived::Passed(pass) => Knocked::Passed(pass),
            Arrived::Ahead(pass) => {
                self.poke();
                Knocked::Passed(pass)
            }
            Arrived::Turned(why) => Knocked::Turned(why),
            Arrived::Waits(ticket) => Knocked::Waits(Waits { door: Arc::clone(self), ticket, told }),
        }
    }

    /// Somebody comes. Whoever waits is told by and by. `counted`: see [`Control::head_start`].
    ///
    /// [`Control::head_start`]: drowse_wire::control::Control::head_start
    pub(crate) fn arrive(
        self: &Arc<Self>,
        visitor: Visitor<Waiter>,
        now: Timestamp,
        counted: &mut dyn FnMut(),
    ) -> Arrived {
        let arrival = self.lock().gate.arrive(visitor, now);
        match arrival {
            Arrival::Pass(_, round) => {
                self.tally.let_through();
                Arrived::Passed(Pass::new(self, round, false))
            }
            Arrival::Turned(_, why) => {
                self.tally.turned_away();
                Arrived::Turned(why)
            }
            Arrival::Wait { ticket, evicted, is_news } => {
                if let Some(evicted) = evicted {
                    self.turn_away(evicted, Turned::QueueFull);
                }
                if is_news {
                    if let Some(pass) = self.head_start(ticket, counted) {
                        return Arrived::Ahead(pass);
                    }
                    self.poke();
                }
                Arrived::Waits(ticket)
            }
        }
    }

    /// Lets somebody who has just come go on at once, if the worker need only be told to.
    fn head_start(self: &Arc<Self>, ticket: Ticket, counted: &mut dyn FnMut()) -> Option<Pass> {
        let router = self.router.upgrade()?;
        // It needs no turn to come up: what is frozen is there at once, however many others have to start.
        // Behind the lock to the end: nobody tells the edge before they are counted.
        let mut guarded = self.lock();
        if !guarded.gate.may_go_ahead(ticket) || !router.is_valid() {
            return None;
        }
        let edge = Edge { epoch: router.next_epoch(), count: 1, cause: EdgeCause::Came };
        let standing = router.control.head_start(&self.worker, edge, counted)?;
        self.set_connection_idle(standing.connection_idle);
        let (_, round) = guarded.gate.go_ahead(ticket, standing.boot.as_ref())?;
        drop(guarded);
        self.tally.let_through();
        Some(Pass::new(self, round, true))
    }

    /// Somebody who waited does not any more.
    pub(crate) fn give_up(self: &Arc<Self>, ticket: Ticket, now: Timestamp) {
        let gave_up = self.lock().gate.give_up(ticket, now);
        if gave_up.is_some() {
            // Perhaps nobody waits any more for what the keeper is about.
            self.poke();
        }
    }

    fn turn_away(&self, waiter: Waiter, why: Turned) {
        self.tally.turned_away();
        waiter.turn(why);
    }

    /// Somebody was turned away before they came to the gate.
    pub(crate) fn turned_away(&self) {
        self.tally.turned_away();
    }

    /// A target that had answered does not any more: it has to prove itself anew.
    pub(crate) fn doubt(&self, target: &Target) {
        self.doubt_way(target.place);
        self.lock().gate.doubt(target);
    }

    /// Until when a worker that hangs up without a word is called again.
    pub(crate) fn replay_until(&self) -> Timestamp {
        Timestamp::from_micros(self.replay_until.load(Ordering::Relaxed))
    }

    /// Whether a worker that hangs up without a word may be called again.
    pub(crate) fn may_be_called_again(&self) -> bool {
        self.router.upgrade().is_some_and(|router| router.now() < self.replay_until())
    }

    /// What was told of it holds.
    pub(crate) fn is_valid(&self) -> bool {
        self.router.upgrade().is_none_or(|router| router.is_valid())
    }

    /// A number of the worker's present run.
    pub(crate) fn run(&self) -> u64 {
        self.run.load(Ordering::Relaxed)
    }

    /// It picked up and hung up without a word, after it had been found to answer.
    pub(crate) fn was_fooled(&self) {
        self.fooled.fetch_add(1, Ordering::Relaxed);
    }

    /// How often that happened in this run.
    pub(crate) fn fooled(&self) -> u32 {
        self.fooled.load(Ordering::Relaxed)
    }

    /// The worker has said something in this run.
    pub(crate) fn has_answered(&self) {
        self.replay_until.store(0, Ordering::Relaxed);
    }

    /// Bytes went through.
    pub(crate) fn moved(self: &Arc<Self>, to_worker: u64, to_client: u64) {
        if self.tally.moved(to_worker, to_client) {
            self.list();
        }
    }

    fn leave(self: &Arc<Self>, round: Round, cause: EdgeCause, now: Timestamp) {
        let (is_last, is_free) = {
            let mut guarded = self.lock();
            let is_last = guarded.gate.leave(round, cause, now);
            (is_last, !guarded.gate.is_stopped() && self.is_stopped.load(Ordering::Relaxed))
        };
        if is_free {
            // The last one of those who were held back: nobody would tell a robot, which is not counted, to go on.
            self.change_flow(Flow::Go);
        }
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
        if decided.is_other_run
            && let Some(router) = self.router.upgrade()
        {
            let until = router.now() + REPLAY_FOR;
            self.replay_until.store(until.as_micros(), Ordering::Relaxed);
            self.fooled.store(0, Ordering::Relaxed);
            self.run.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(flow) = decided.flow {
            self.change_flow(flow);
        }
        for waiter in decided.pass {
            self.tally.let_through();
            waiter.pass(Admitted::Counted(Pass::new(self, decided.round, decided.was_asleep)));
        }
        for (waiter, why) in decided.turned {
            self.turn_away(waiter, why);
        }
    }

    fn change_flow(self: &Arc<Self>, flow: Flow) {
        {
            // What the gate says now, and under its lock: of two who bring word of a change the later one may be the
            // first here.
            let guarded = self.lock();
            let (round, is_stopped) = (guarded.gate.round(), guarded.gate.is_stopped());
            self.is_stopped.store(is_stopped, Ordering::Release);
            self.flow.send_modify(|flowing| *flowing = Flowing { round, is_stopped });
        }
        let Some(router) = self.router.upgrade() else { return };
        match flow {
            // They look before each byte.
            Flow::Stop => {}
            Flow::Go => router.post_all(|| Letter::Go(Arc::clone(self))),
            Flow::Cut => router.post_all(|| Letter::Cut(Arc::clone(self))),
        }
    }
}

/// Somebody who was let through.
#[derive(Debug)]
pub(crate) enum Admitted {
    Counted(Pass),
    Robot(Robot),
}

impl Admitted {
    /// They have to end.
    pub(crate) fn is_cut(&self) -> bool {
        match self {
            Self::Counted(pass) => pass.is_cut(),
            Self::Robot(robot) => robot.is_cut(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_counts_does_not_wait_for_the_lock() {
        let terms = Terms { places: 1, linger: Duration::ZERO };
        let worker = "web".parse().unwrap();
        let door = Door::new(worker, terms, Weak::new(), Arc::new(Semaphore::new(1)));
        let guarded = door.lock();
        assert_eq!(door.counts(), Counts::default());
        assert!(door.try_lock().is_none());
        drop(guarded);
        assert!(door.try_lock().is_some());
    }
}
