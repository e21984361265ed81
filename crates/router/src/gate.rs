//! The gate of one worker, as rules without a clock, a socket or a task: who passes, who waits, who is turned
//! away, and what is to be done next.
//!
//! ```text
//!            somebody comes            counted                  it is awake
//!   Closed ────────────────▶ Asking ──────────────▶ Waking ─────────────────▶ Awake
//!     ▲  ▲                     │  ▲                   │                        │ │ ▲
//!     │  │      may not wake   │  │ session lost      │ did not come up,       │ │ │ somebody comes,
//!     │  └─────────────────────┘  └───────────────────┼─ restarts ─────────────┘ │ │ or target proven
//!     │                                               ▼ nobody waits             ▼ │
//!     └───────────────────────────────────────────  Closing ◀── empty for a while ─┘
//!     ▲            for a moment                       │
//!     └───────────────────── Refusing ◀───────────────┘ after it did not come up
//! ```
//!
//! It is level-triggered: [`Gate::next`] says what is to be done now, from the state alone, and the keeper does
//! one thing at a time. So there is one edge and one wake on its way, however many come and go meanwhile.
//!
//! What must stay true: nobody passes who is not counted with the control plane, whatever is on its way; nobody
//! passes to a worker, or to a target of it, that has not answered in its present run; those who wait leave in
//! the order of their coming; everybody who came in goes out exactly once.

mod again;
#[cfg(test)]
mod tests;
mod words;

use std::collections::HashSet;
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::id::BootId;
use drowse_wire::control::{EdgeCause, Refused, Slept, Standing};

use crate::queue::{Placed, Queue, Source, Ticket};
use crate::route::Target;
use crate::turned::Turned;
use again::{Again, Refusals};
pub(crate) use words::{Arrival, Decided, Flow, Round, Step, Terms, Visitor};

/// For how long nobody is kept waiting for a worker that has just failed to come up.
const REFUSES_FOR: Duration = Duration::from_secs(1);

/// The first pause between two attempts to reach a worker that is awake, and the longest: most answer within a
/// millisecond of a thaw, and a start may take seconds.
const PROVE_AGAIN: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

#[derive(Debug)]
struct Waiting<W> {
    target: Target,
    may_wake: bool,
    came_at: Timestamp,
    wait_for: Duration,
    who: W,
}

#[derive(Debug)]
enum State {
    /// Nobody is counted.
    Closed,
    /// An edge up is to be told.
    Asking(Again),
    /// It is counted and the worker on its way.
    Waking(Again),
    /// It is awake and counted.
    Awake,
    /// An edge down is to be told.
    Closing { cause: EdgeCause, again: Again, failed: Option<Turned> },
    /// It did not come up a moment ago.
    Refusing { until: Timestamp, why: Turned },
}

#[expect(clippy::struct_excessive_bools, reason = "each is what somebody else last said, in any state")]
#[derive(Debug)]
pub(crate) struct Gate<W> {
    terms: Terms,
    state: State,
    queue: Queue<Waiting<W>>,
    /// They went on and count.
    passing: u64,
    round: Round,
    /// Since when nobody is here, and how the last one went.
    empty: Option<(Timestamp, EdgeCause)>,
    /// When the last of those came who went on and may wake the worker.
    passed_at: Option<Timestamp>,
    /// There was one who may wake the worker among those who went on.
    has_waker: bool,
    /// What is asked is asked for those who went on as well, and one of them may wake the worker.
    is_called_back: bool,
    /// The worker is on its way to sleep, against the will of those who are here.
    is_falling: bool,
    /// Not a byte moves: what was told holds nothing any more. Only while somebody has passed: whoever passes later is
    /// counted anew first.
    is_stopped: bool,
    /// The control plane may have somebody on its books, and has not been told that they are gone.
    has_told: bool,
    /// It was told of somebody, and perhaps has heard it.
    has_asked: bool,
    refusals: Refusals,
    /// It was asleep when those who wait asked for it.
    was_asleep: bool,
    /// The run that the proofs are about.
    boot: Option<BootId>,
    /// What has answered in this run.
    proven: HashSet<Target>,
    prove_again: Duration,
    prove_at: Option<Timestamp>,
}

impl<W> Gate<W> {
    pub(crate) fn new(terms: Terms) -> Self {
        Self {
            terms,
            state: State::Closed,
            queue: Queue::new(terms.places),
            passing: 0,
            round: Round::default(),
            empty: None,
            passed_at: None,
            has_waker: false,
            is_called_back: false,
            is_falling: false,
            is_stopped: false,
            has_told: false,
            has_asked: false,
            refusals: Refusals::default(),
            was_asleep: false,
            boot: None,
            proven: HashSet::new(),
            prove_again: PROVE_AGAIN.0,
            prove_at: None,
        }
    }

    /// Everybody who counts.
    pub(crate) fn count(&self) -> u64 {
        self.passing + self.queue.len() as u64
    }

    pub(crate) fn round(&self) -> Round {
        self.round
    }

    /// When the first one who waits has waited long enough.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.queue.next_deadline()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// How many wait before somebody; `None`: they do not wait any more.
    pub(crate) fn ahead_of(&self, ticket: Ticket) -> Option<usize> {
        self.queue.ahead_of(ticket)
    }

    /// The worker is awake and held, as far as the gate knows.
    pub(crate) fn is_awake(&self) -> bool {
        matches!(self.state, State::Awake)
    }

    /// Not a byte may move.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Somebody has gone on, and is still there.
    pub(crate) fn has_passing(&self) -> bool {
        self.passing > 0
    }

    /// It was awake, and is on its way to sleep.
    pub(crate) fn is_falling(&self) -> bool {
        self.is_falling
    }

    /// Somebody comes. What follows is for the keeper.
    pub(crate) fn arrive(&mut self, visitor: Visitor<W>, now: Timestamp) -> Arrival<W> {
        let Visitor { from, target, may_wake, wait_for, who } = visitor;
        match &self.state {
            State::Awake if self.proven.contains(&target) && !self.is_falling => {
                self.passing += 1;
                self.empty = None;
                if may_wake {
                    (self.has_waker, self.passed_at) = (true, Some(now));
                }
                return Arrival::Pass(who, self.round);
            }
            // Not asked again for each of them: meanwhile nobody would watch for the end of those who are in.
            State::Awake if self.is_falling && !may_wake => {
                if let Some(why) = self.refusals.for_strangers(now) {
                    return Arrival::Turned(who, why.clone());
                }
            }
            State::Refusing { until, why } if now < *until => return Arrival::Turned(who, why.clone()),
            State::Closing { failed: Some(why), .. } => return Arrival::Turned(who, why.clone()),
            State::Closed
            | State::Asking(_)
            | State::Waking(_)
            | State::Awake
            | State::Closing { failed: None, .. }
            | State::Refusing { .. } => {}
        }
        let waiting = Waiting { target, may_wake, came_at: now, wait_for, who };
        let placed = self.queue.push(Source::of(from), now + wait_for, waiting);
        let (ticket, evicted) = match placed {
            Placed::At(ticket) => (ticket, None),
            Placed::InPlaceOf(ticket, evicted) => (ticket, Some(evicted.who)),
            Placed::Full(waiting) => return Arrival::Turned(waiting.who, Turned::QueueFull),
        };
        self.empty = None;
        // What is put off for those who wait need not be for somebody who may wake it.
        let hastens = may_wake && self.refusals.ask_at(EdgeCause::CameToTheAwake).is_some_and(|at| now < at);
        let is_news = match self.state {
            // A release that is on its way is waited for; one that failed need not be told any more.
            State::Closed
            | State::Refusing { .. }
            | State::Closing { again: Again { at: Some(_), .. }, .. } => {
                self.ask(false);
                true
            }
            // They call it back, if they may. Those who are in came before that was decided, and do not.
            State::Awake if self.is_falling => {
                self.is_falling = !may_wake;
                self.ask(false);
                true
            }
            State::Awake => true,
            State::Asking(_) => hastens,
            State::Waking(_) | State::Closing { .. } => false,
        };
        Arrival::Wait { ticket, evicted, is_news }
    }

    /// Whether somebody who has just come could go on before their edge is told: the first to come, to what has
    /// answered in a run that may have been only frozen since.
    pub(crate) fn may_go_ahead(&self, ticket: Ticket) -> bool {
        let is_first = matches!(self.state, State::Asking(Again { at: None, .. })) && self.count() == 1;
        let is_known = |waiting: &Waiting<W>| waiting.may_wake && self.proven.contains(&waiting.target);
        is_first && !self.is_stopped && self.boot.is_some() && self.queue.get(ticket).is_some_and(is_known)
    }

    /// They go on: they are counted, and the worker is awake by now, in this run. The edge is told as ever, and what
    /// is refused then is cut.
    pub(crate) fn go_ahead(&mut self, ticket: Ticket, boot: Option<&BootId>) -> Option<(W, Round)> {
        if boot.is_none() || boot != self.boot.as_ref() {
            return None;
        }
        let waiting = self.queue.take(ticket)?;
        self.has_told = true;
        self.passing += 1;
        (self.has_waker, self.is_called_back) = (true, true);
        self.passed_at = self.passed_at.max(Some(waiting.came_at));
        Some((waiting.who, self.round))
    }

    /// Somebody who waited does not any more. `None`: they have been told already.
    pub(crate) fn give_up(&mut self, ticket: Ticket, now: Timestamp) -> Option<W> {
        let waiting = self.queue.take(ticket)?;
        self.note_empty(EdgeCause::Left, now);
        Some(waiting.who)
    }

    /// Somebody who passed is gone, or does not count any more. True if nobody is left.
    pub(crate) fn leave(&mut self, round: Round, cause: EdgeCause, now: Timestamp) -> bool {
        if round != self.round {
            return false;
        }
        self.passing -= 1;
        if self.passing == 0 {
            // There is nobody left whose bytes could be held back.
            (self.is_stopped, self.has_waker) = (false, false);
        }
        self.note_empty(cause, now);
        self.empty.is_some()
    }

    /// Ends all who have passed. They count no more, however long they take.
    fn cut(&mut self, now: Timestamp) -> Option<Flow> {
        let flow = (self.passing > 0).then_some(Flow::Cut);
        self.passing = 0;
        (self.is_stopped, self.has_waker, self.is_falling) = (false, false, false);
        self.round.0 += 1;
        self.note_empty(EdgeCause::Left, now);
        flow
    }

    fn note_empty(&mut self, cause: EdgeCause, now: Timestamp) {
        if self.count() == 0 {
            self.empty = Some((now, cause));
        }
    }

    /// What is to be done now, and who has waited for too long.
    pub(crate) fn next(&mut self, now: Timestamp) -> (Step, Decided<W>) {
        let mut decided = Decided::default();
        // Whoever waits at a worker that is awake waits for its answer.
        let is_up = matches!(self.state, State::Awake);
        for late in self.queue.expire(now) {
            decided.turned.push((late.who, Turned::Late { waited_for: late.wait_for, is_up }));
        }
        if !decided.turned.is_empty() {
            self.note_empty(EdgeCause::Left, now);
        }
        (self.step(now), decided)
    }

    fn step(&mut self, now: Timestamp) -> Step {
        if let Some((since, cause)) = self.empty {
            match self.state {
                State::Asking(_) if !self.has_asked && !self.has_told => self.state = State::Closed,
                // The hold was asked for, and perhaps taken: it is given back.
                State::Asking(_) | State::Waking(_) => {
                    self.state = State::Closing { cause, again: Again::default(), failed: None };
                }
                State::Awake if now >= since + self.terms.linger => {
                    self.state = State::Closing { cause, again: Again::default(), failed: None };
                }
                State::Awake | State::Closed | State::Closing { .. } | State::Refusing { .. } => {}
            }
        }
        let deadline = self.queue.next_deadline();
        let or = |at: Option<Timestamp>| match (at, deadline) {
            (Some(at), Some(deadline)) => Some(at.min(deadline)),
            (at, deadline) => at.or(deadline),
        };
        match &self.state {
            State::Closed | State::Refusing { .. } => Step::Rest,
            State::Asking(again) => {
                let cause = self.cause();
                let at = again.at.max(self.refusals.ask_at(cause));
                if at.is_some_and(|at| now < at) {
                    return Step::Wait { until: or(at), is_awake: false };
                }
                self.has_asked = true;
                Step::Tell { count: self.count(), cause }
            }
            State::Waking(again) if again.is_due(now) => Step::Wake,
            State::Closing { again, cause, .. } if again.is_due(now) => {
                Step::Tell { count: 0, cause: *cause }
            }
            State::Waking(again) | State::Closing { again, .. } => {
                Step::Wait { until: or(again.at), is_awake: false }
            }
            State::Awake => {
                let unproven = self.unproven();
                if unproven.is_empty() {
                    let linger = self.empty.map(|(since, _)| since + self.terms.linger);
                    Step::Wait { until: or(linger), is_awake: true }
                } else if self.prove_at.is_none_or(|at| now >= at) {
                    Step::Prove(unproven)
                } else {
                    Step::Wait { until: or(self.prove_at), is_awake: true }
                }
            }
        }
    }

    /// Whether those for whom it is asked may wake the worker.
    fn cause(&self) -> EdgeCause {
        let calls = self.passing > 0 && self.is_called_back;
        if calls || self.queue.iter().any(|waiting| waiting.may_wake) {
            EdgeCause::Came
        } else {
            EdgeCause::CameToTheAwake
        }
    }

    /// Where those who wait want to go that has not answered in this run.
    fn unproven(&self) -> Vec<Target> {
        let mut targets: Vec<Target> = Vec::new();
        for waiting in self.queue.iter() {
            if !targets.contains(&waiting.target) {
                targets.push(waiting.target.clone());
            }
        }
        targets
    }

    /// The edge that [`Step::Tell`] asked for was told.
    pub(crate) fn told(
        &mut self,
        cause: EdgeCause,
        answer: Result<Standing, Refused>,
        now: Timestamp,
    ) -> Decided<W> {
        let is_up = matches!(cause, EdgeCause::Came | EdgeCause::CameToTheAwake);
        if answer.is_ok() {
            self.has_told = is_up;
        }
        match (&mut self.state, is_up, answer) {
            (State::Asking(_), true, Ok(standing)) if standing.is_awake => {
                self.was_asleep = false;
                self.awake(standing.boot)
            }
            (State::Asking(_), true, Ok(_)) => {
                self.was_asleep = true;
                self.state = State::Waking(Again::default());
                Decided::default()
            }
            (State::Asking(again), true, Err(Refused::Unavailable { .. })) => {
                *again = again.later(now);
                Decided::default()
            }
            (State::Asking(_), true, Err(refused)) => self.refuse(cause, refused, now),
            (State::Closing { again, .. }, false, Err(Refused::Unavailable { .. })) => {
                // The worker stays held: awake for too long, never asleep too soon.
                *again = again.later(now);
                if self.count() > 0 {
                    // For whoever came meanwhile it need not be told any more.
                    self.ask(false);
                }
                Decided::default()
            }
            (State::Closing { failed, .. }, false, _) => {
                let failed = failed.take();
                self.closed(failed, now);
                Decided::default()
            }
            // The state has moved on while this was on its way, and what is next follows from where it is.
            (
                State::Closed
                | State::Asking(_)
                | State::Waking(_)
                | State::Awake
                | State::Closing { .. }
                | State::Refusing { .. },
                _,
                _,
            ) => Decided::default(),
        }
    }

    /// Those are turned away who were refused; who came meanwhile with better papers asks again.
    fn refuse(&mut self, cause: EdgeCause, refused: Refused, now: Timestamp) -> Decided<W> {
        let mut decided = Decided::default();
        let why = Turned::from(refused);
        self.refusals.note(cause, &why, now);
        self.has_asked = false;
        let all = cause == EdgeCause::Came;
        for waiting in self.queue.take_if(|waiting| all || !waiting.may_wake) {
            decided.turned.push((waiting.who, why.clone()));
        }
        if !self.queue.is_empty() {
            return decided;
        }
        if self.is_falling && self.passing > 0 {
            // It was asked for those alone who came while it falls asleep. Those who are in end when it sleeps.
            self.state = State::Awake;
            return decided;
        }
        // Whoever was in before holds nothing any more.
        decided.flow = self.cut(now);
        // Whoever was counted before would keep the worker awake for ever.
        self.state = if self.has_told {
            State::Closing { cause: EdgeCause::Left, again: Again::default(), failed: None }
        } else {
            State::Closed
        };
        decided
    }

    fn closed(&mut self, failed: Option<Turned>, now: Timestamp) {
        (self.has_asked, self.is_called_back) = (false, false);
        self.state = match failed {
            _ if self.count() > 0 => State::Asking(Again::default()),
            Some(why) => State::Refusing { until: now + REFUSES_FOR, why },
            None => State::Closed,
        };
    }

    /// The wake that [`Step::Wake`] asked for is over.
    pub(crate) fn woken(&mut self, answer: Result<Option<BootId>, Refused>, now: Timestamp) -> Decided<W> {
        let State::Waking(again) = &mut self.state else { return Decided::default() };
        let refused = match answer {
            Ok(boot) => return self.awake(boot),
            Err(Refused::Unavailable { .. }) => {
                *again = again.later(now);
                return Decided::default();
            }
            Err(refused) => refused,
        };
        let why = Turned::from(refused);
        let mut decided = Decided::default();
        for waiting in self.queue.drain() {
            decided.turned.push((waiting.who, why.clone()));
        }
        decided.flow = self.cut(now);
        self.state = State::Closing { cause: EdgeCause::Left, again: Again::default(), failed: Some(why) };
        decided
    }

    /// It runs and is held.
    fn awake(&mut self, boot: Option<BootId>) -> Decided<W> {
        let is_other_run = boot.is_none() || boot != self.boot;
        if is_other_run {
            self.proven.clear();
        }
        self.boot = boot;
        self.state = State::Awake;
        self.is_falling = false;
        self.refusals = Refusals::default();
        let was_stopped = std::mem::take(&mut self.is_stopped);
        (self.prove_again, self.prove_at) = (PROVE_AGAIN.0, None);
        let mut decided = self.release();
        let was_passing = self.passing > decided.pass.len() as u64;
        decided.flow = (was_passing || was_stopped).then_some(Flow::Go);
        decided.is_other_run = is_other_run;
        decided
    }

    /// One of those that [`Step::Prove`] asked for has answered.
    pub(crate) fn answered(&mut self, target: Target) -> Decided<W> {
        if !self.is_awake() {
            return Decided::default();
        }
        self.proven.insert(target);
        self.release()
    }

    /// All that [`Step::Prove`] asked for have been tried.
    pub(crate) fn tried(&mut self, now: Timestamp) {
        self.prove_at = Some(now + self.prove_again);
        self.prove_again = (self.prove_again * 2).min(PROVE_AGAIN.1);
    }

    fn release(&mut self) -> Decided<W> {
        let proven = &self.proven;
        let ready = self.queue.take_if(|waiting| proven.contains(&waiting.target));
        // Not when they pass: whoever came before a person's order does not undo it.
        let came_at = ready.iter().filter(|waiting| waiting.may_wake).map(|waiting| waiting.came_at).max();
        self.passed_at = self.passed_at.max(came_at);
        self.has_waker |= came_at.is_some();
        let pass: Vec<W> = ready.into_iter().map(|waiting| waiting.who).collect();
        self.passing += pass.len() as u64;
        Decided { pass, round: self.round, was_asleep: self.was_asleep, ..Decided::default() }
    }

    /// A target that had answered does not any more: whoever comes next waits until it does.
    pub(crate) fn doubt(&mut self, target: &Target) {
        self.proven.remove(target);
    }

    /// The worker is not awake any more, or will not be soon.
    pub(crate) fn slept(&mut self, how: Slept, now: Timestamp) -> Decided<W> {
        let mut decided = Decided::default();
        if !self.is_awake() {
            return decided;
        }
        let came_since = |since: Option<Timestamp>| {
            // At the same instant: who can tell.
            since.is_some_and(|since| self.passed_at.is_some_and(|passed_at| passed_at >= since))
        };
        let waits_for_it = self.queue.iter().any(|waiting| waiting.may_wake);
        match how {
            // Whoever may wake it and waits calls it back, and so does whoever went on before anybody knew of it.
            Slept::Falling { since } if came_since(Some(since)) => self.ask(true),
            Slept::Falling { .. } if waits_for_it => self.ask(false),
            // The hold that was kept for whoever might come is of no use to them now.
            Slept::Falling { .. } if self.count() == 0 => {
                let cause = self.empty.map_or(EdgeCause::Left, |(_, cause)| cause);
                self.state = State::Closing { cause, again: Again::default(), failed: None };
            }
            Slept::Falling { .. } => {
                self.is_falling = self.passing > 0;
                if !self.queue.is_empty() {
                    self.ask(false);
                }
            }
            Slept::Asleep { since } if came_since(since) => {
                self.is_falling = false;
                self.ask(true);
            }
            Slept::Asleep { .. } => {
                self.ask(false);
                decided.flow = self.cut(now);
            }
            Slept::Restarting => {
                self.is_falling = false;
                self.ask(self.has_waker);
            }
        }
        decided
    }

    /// What was told may be void: a hold ends with the run that it is for. `is_called_back`: whether that is asked for
    /// those who went on as well, one of whom may wake the worker.
    fn ask(&mut self, is_called_back: bool) {
        self.state = State::Asking(Again::default());
        self.is_called_back = is_called_back;
    }

    /// What was told holds nothing any more.
    pub(crate) fn lost(&mut self) -> Decided<W> {
        match self.state {
            // Whoever came before it was to sleep does not call it back.
            State::Waking(_) | State::Awake => self.ask(self.has_waker && !self.is_falling),
            State::Closed | State::Asking(_) | State::Closing { .. } | State::Refusing { .. } => {}
        }
        // Nor does what those who are in were counted by.
        self.is_falling = false;
        self.is_stopped = self.passing > 0;
        Decided { flow: (self.passing > 0).then_some(Flow::Stop), ..Decided::default() }
    }
}
