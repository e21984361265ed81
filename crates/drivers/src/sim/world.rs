//! The simulated world: what is so, and what will be when. No waiting here; [`super::Sim`] does that.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::counter::Total;
use drowse_core::id::{BootId, IntentId, WorkerId};
use drowse_core::signal::{PerSignal, Signal, UnknownCause};
use drowse_core::worker::Power;

use super::chance::{Chance, within};
use super::spec::{Change, Load, OnTerm, Op, Silence, Spec};
use crate::driver::{Error, Measure, Measures, Seen, Wanted};
use crate::hint::Hint;

/// The whole world.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) now: Timestamp,
    pub(crate) chance: Chance,
    pub(crate) units: BTreeMap<WorkerId, Unit>,
    /// What will happen, in order; the number keeps the order of what happens at the same instant.
    agenda: BTreeMap<(Timestamp, u64), (WorkerId, Due)>,
    last_serial: u64,
    /// When somebody waits for the clock to get there.
    pub(crate) waits: BTreeSet<Timestamp>,
    pub(crate) loses_hints: bool,
    /// Hints to hand out after this step.
    pub(crate) hints: Vec<Hint>,
}

/// One worker.
#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) spec: Spec,
    pub(crate) power: Power,
    since: Timestamp,
    boots: u64,
    boot_started_at: Option<Timestamp>,
    exit_code: Option<i32>,
    /// The action under way; a newer one takes its place.
    pub(crate) pending: Option<Pending>,
    loads: PerSignal<Load>,
    /// In millionths, so that reading more often rounds nothing away.
    totals: PerSignal<u128>,
    counted_at: Timestamp,
    draws: [u64; Op::COUNT],
    pub(crate) silence: Option<(Timestamp, Silence)>,
    pub(crate) refusals: VecDeque<(Op, String)>,
    pub(crate) hook_code: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) serial: u64,
    pub(crate) op: Op,
    pub(crate) intent: Option<IntentId>,
    pub(crate) done_at: Timestamp,
    /// The run that it is about: a stop does not end the next one.
    boot: u64,
    /// How the run ends, for a stop.
    code: i32,
}

#[derive(Clone, Copy, Debug)]
enum Due {
    /// The pending action with this serial is done.
    Done(u64),
    /// This run, and no later one, crashes.
    Crash {
        boot: u64,
        code: i32,
    },
    Change(Change),
}

impl World {
    pub(crate) fn new(seed: u64, now: Timestamp) -> Self {
        Self {
            now,
            chance: Chance::new(seed),
            units: BTreeMap::new(),
            agenda: BTreeMap::new(),
            last_serial: 0,
            waits: BTreeSet::new(),
            loses_hints: false,
            hints: Vec::new(),
        }
    }

    pub(crate) fn unit(&mut self, worker: &WorkerId) -> Result<&mut Unit, Error> {
        self.units
            .get_mut(worker)
            .ok_or_else(|| Error::refused(format!("the simulated driver does not know {worker}")))
    }

    pub(crate) fn add(&mut self, worker: &WorkerId, spec: &Spec) {
        let now = self.now;
        if let Some(unit) = self.units.get_mut(worker).filter(|unit| unit.power != Power::Gone) {
            unit.spec = spec.clone();
            return;
        }
        // Boots are numbered across lives, so that an id never comes twice.
        let boots = self.units.get(worker).map_or(0, |unit| unit.boots);
        self.units.insert(worker.clone(), Unit::new(spec.clone(), boots, now));
        if spec.is_running {
            self.begin_run(worker);
        }
    }

    /// A time for this operation, drawn by lot.
    pub(crate) fn takes(&mut self, worker: &WorkerId, op: Op) -> Duration {
        let drawn = self.draw(worker, op);
        self.units.get(worker).map_or(Duration::ZERO, |unit| within(unit.spec.takes.of(op), drawn))
    }

    fn draw(&mut self, worker: &WorkerId, op: Op) -> u64 {
        let Some(unit) = self.units.get_mut(worker) else { return 0 };
        let nth = unit.draws[op as usize];
        unit.draws[op as usize] += 1;
        self.chance.draw(worker.as_str(), op, nth)
    }

    /// The refusal that is due for this operation, by script or by lot.
    pub(crate) fn refusal(&mut self, worker: &WorkerId, op: Op) -> Option<Error> {
        let drawn = self.draw(worker, op);
        let unit = self.units.get_mut(worker)?;
        if let Some(at) = unit.refusals.iter().position(|(refused, _)| *refused == op) {
            return unit.refusals.remove(at).map(|(_, message)| Error::Refused { message });
        }
        let is_unlucky = unit.spec.refuses_one_in.is_some_and(|n| n > 0 && drawn.is_multiple_of(n));
        is_unlucky.then(|| Error::refused("refused by lot"))
    }

    pub(crate) fn silence(&self, worker: &WorkerId) -> Option<Silence> {
        let (until, silence) = self.units.get(worker)?.silence?;
        (self.now < until).then_some(silence)
    }

    /// Puts an action on the agenda. The newest replaces what was under way.
    pub(crate) fn begin(
        &mut self,
        worker: &WorkerId,
        op: Op,
        intent: Option<(IntentId, Duration)>,
        takes: Duration,
    ) -> Result<Pending, Error> {
        self.last_serial += 1;
        let serial = self.last_serial;
        let now = self.now;
        let unit = self.unit(worker)?;
        let (ends_after, code) = match (intent, unit.spec.on_term) {
            (Some((_, grace)), OnTerm::Ends { after, code }) if after <= grace => (after, code),
            (Some((_, grace)), OnTerm::Ends { .. } | OnTerm::Ignores) => (grace, 137),
            (None, _) => (Duration::ZERO, 0),
        };
        let pending = Pending {
            serial,
            op,
            intent: intent.map(|(intent, _)| intent),
            done_at: now + takes + ends_after,
            boot: unit.boots,
            code,
        };
        unit.pending = Some(pending);
        self.agenda.insert((pending.done_at, serial), (worker.clone(), Due::Done(serial)));
        Ok(pending)
    }

    pub(crate) fn schedule(&mut self, at: Timestamp, worker: &WorkerId, change: Change) {
        self.put(at, worker, Due::Change(change));
    }

    fn put(&mut self, at: Timestamp, worker: &WorkerId, due: Due) {
        self.last_serial += 1;
        self.agenda.insert((at, self.last_serial), (worker.clone(), due));
    }

    /// When something happens next, or somebody's wait is over.
    pub(crate) fn next_at(&self) -> Option<Timestamp> {
        let next = self.agenda.first_key_value().map(|((at, _), _)| *at);
        next.into_iter().chain(self.waits.first().copied()).min()
    }

    /// Lets time pass. Time does not go back.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        while let Some(entry) = self.agenda.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((at, _), (worker, due)) = entry.remove_entry();
            self.now = self.now.max(at);
            self.happen(&worker, due);
        }
        self.now = self.now.max(now);
        self.waits.retain(|at| *at > now);
    }

    fn happen(&mut self, worker: &WorkerId, due: Due) {
        let Some(unit) = self.units.get_mut(worker) else { return };
        let boot = unit.boots;
        match due {
            Due::Done(serial) => {
                let Some(pending) = unit.pending.take_if(|pending| pending.serial == serial) else { return };
                self.complete(worker, pending);
            }
            Due::Crash { boot: of, code } if of == boot => self.exits(worker, code),
            Due::Crash { .. } => {}
            Due::Change(change) => self.change(worker, change),
        }
    }

    fn complete(&mut self, worker: &WorkerId, pending: Pending) {
        let Some(unit) = self.units.get(worker) else { return };
        match (pending.op, unit.power) {
            (_, Power::Gone) => {}
            (Op::Stop | Op::Terminate, _) if unit.boots != pending.boot => {}
            (Op::Freeze, Power::Running) => self.set(worker, Power::Paused, None),
            (Op::Thaw | Op::Start, Power::Paused) => self.set(worker, Power::Running, None),
            (Op::Start, Power::Stopped) => self.begin_run(worker),
            (Op::Stop, Power::Running | Power::Paused) => {
                self.set(worker, Power::Stopped, Some(pending.code));
            }
            (Op::Terminate, _) => self.set(worker, Power::Gone, Some(pending.code)),
            // Somebody else got there first.
            (
                Op::Observe | Op::Freeze | Op::Thaw | Op::Start | Op::Stop | Op::Read | Op::Hook | Op::Crash,
                Power::Running | Power::Paused | Power::Stopped,
            ) => {}
        }
    }

    fn change(&mut self, worker: &WorkerId, change: Change) {
        let Some(power) = self.units.get(worker).map(|unit| unit.power) else { return };
        match (change, power) {
            (_, Power::Gone) => return,
            (Change::Exits { code }, Power::Running | Power::Paused) => return self.exits(worker, code),
            (Change::Stopped, Power::Running | Power::Paused) => self.set(worker, Power::Stopped, Some(143)),
            (Change::Started, Power::Stopped) => self.begin_run(worker),
            (Change::Frozen, Power::Running) => self.set(worker, Power::Paused, None),
            (Change::Thawed, Power::Paused) => self.set(worker, Power::Running, None),
            (Change::Deleted, _) => self.set(worker, Power::Gone, None),
            (
                Change::Exits { .. } | Change::Stopped | Change::Started | Change::Frozen | Change::Thawed,
                Power::Running | Power::Paused | Power::Stopped,
            ) => return,
        }
        self.hint(Hint::Changed { worker: worker.clone() });
    }

    fn exits(&mut self, worker: &WorkerId, code: i32) {
        let Some(unit) = self.units.get(worker) else { return };
        let boot = unit.boot(worker);
        let is_ending = unit.pending.is_some_and(|pending| matches!(pending.op, Op::Stop | Op::Terminate));
        if !matches!(unit.power, Power::Running | Power::Paused) {
            return;
        }
        self.set(worker, Power::Stopped, Some(code));
        // The answer to the stop tells it.
        if !is_ending && let Some(boot) = boot {
            self.hint(Hint::Exited { worker: worker.clone(), boot, code: Some(code) });
        }
    }

    fn hint(&mut self, hint: Hint) {
        if !self.loses_hints {
            self.hints.push(hint);
        }
    }

    fn set(&mut self, worker: &WorkerId, power: Power, exit_code: Option<i32>) {
        let now = self.now;
        if let Some(unit) = self.units.get_mut(worker) {
            unit.count(now);
            unit.power = power;
            unit.since = now;
            unit.exit_code = exit_code;
        }
    }

    fn begin_run(&mut self, worker: &WorkerId) {
        let drawn = self.draw(worker, Op::Crash);
        self.set(worker, Power::Running, None);
        let now = self.now;
        let Some(unit) = self.units.get_mut(worker) else { return };
        unit.boots += 1;
        unit.boot_started_at = Some(now);
        unit.totals = [0; Signal::COUNT];
        let boot = unit.boots;
        if let Some(crash) = unit.spec.crash {
            self.put(now + within(crash.after, drawn), worker, Due::Crash { boot, code: crash.code });
        }
    }
}

impl Unit {
    fn new(spec: Spec, boots: u64, now: Timestamp) -> Self {
        Self {
            spec,
            power: Power::Stopped,
            since: now,
            boots,
            boot_started_at: None,
            exit_code: None,
            pending: None,
            loads: [Load::Absent; Signal::COUNT],
            totals: [0; Signal::COUNT],
            counted_at: now,
            draws: [0; Op::COUNT],
            silence: None,
            refusals: VecDeque::new(),
            hook_code: 0,
        }
    }

    fn boot(&self, worker: &WorkerId) -> Option<BootId> {
        self.boot_started_at.map(|_| BootId::new(format!("sim:{worker}:{}", self.boots)))
    }

    pub(crate) fn seen(&self, worker: &WorkerId, began_at: Timestamp) -> Seen {
        Seen {
            power: self.power,
            began_at,
            boot: self.boot(worker),
            boot_started_at: self.boot_started_at,
            dated_at: Some(self.since),
            exit_code: self.exit_code,
        }
    }

    pub(crate) fn set_load(&mut self, signal: Signal, load: Load, now: Timestamp) {
        self.count(now);
        self.loads[signal as usize] = load;
    }

    /// Adds up what has run since the last time. Only what runs works.
    fn count(&mut self, now: Timestamp) {
        let elapsed = now.since(self.counted_at).as_micros();
        self.counted_at = now;
        if self.power != Power::Running {
            return;
        }
        for (total, load) in self.totals.iter_mut().zip(self.loads) {
            if let Load::PerSecond(rate) = load {
                *total += u128::from(rate) * elapsed;
            }
        }
    }

    pub(crate) fn measures(&mut self, worker: &WorkerId, wanted: Wanted<'_>, now: Timestamp) -> Measures {
        self.count(now);
        let mut measures = Measures::none(self.boot(worker));
        for signal in Signal::ALL.into_iter().filter(|signal| wanted.wants(*signal)) {
            match self.loads[signal as usize] {
                Load::Absent => {}
                Load::Unreadable => measures.set(signal, Measure::Unknown(UnknownCause::ProbeFailed)),
                Load::Level(value) => measures.set(signal, Measure::Level { value, at: now }),
                Load::PerSecond(_) => {
                    let value = u64::try_from(self.totals[signal as usize] / 1_000_000).unwrap_or(u64::MAX);
                    measures.set(signal, Measure::Total(Total { value, at: now }));
                }
            }
        }
        measures
    }
}
