//! A simulated world: seeded, repeatable, without real time.
//!
//! Its clock stands still until [`Sim::tick`] moves it. What happens at an instant happens in the order in which
//! it was arranged; what is left to chance is drawn from the seed. A call that takes time is a future that
//! becomes ready when a tick gets there, so a simulation jumps from [`Sim::next_at`] to the next and months pass
//! in seconds.
//!
//! A worker behaves as its [`Spec`] says. Beyond that a test writes the script: refusals, silence, changes
//! behind Drowse's back, load.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::id::{BootId, IntentId, WorkerId};
use drowse_core::signal::{DriverKind, Signal};
use drowse_core::worker::{Capabilities, Power};
use tokio::sync::watch;

use crate::driver::{
    self, Acted, Answer, Driver, Error, Hook, HookEnd, Measures, Seen, Stop, Terminate, Wanted,
};
use crate::hint::{Hint, Hints};

mod chance;
mod spec;
mod world;

use world::{Pending, World};

pub use spec::{Change, Crash, Load, Manner, OnTerm, Op, Silence, Span, Spec, Takes};

/// The driver.
#[derive(Debug)]
pub struct Sim {
    world: Mutex<World>,
    /// The world's time, for whoever waits for it.
    clock: watch::Sender<Timestamp>,
    hints: Hints,
    capabilities: Capabilities,
}

impl Sim {
    pub fn new(seed: u64, now: Timestamp) -> Self {
        Self {
            world: Mutex::new(World::new(seed, now)),
            clock: watch::Sender::new(now),
            hints: Hints::default(),
            capabilities: Capabilities::of(DriverKind::Sim),
        }
    }

    /// Stands for another kind of driver.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Lets time pass up to `now`. Time does not go back.
    pub fn tick(&self, now: Timestamp) {
        let mut world = self.lock();
        self.advance(&mut world, now);
        let now = world.now;
        drop(world);
        self.clock.send_replace(now);
    }

    pub fn now(&self) -> Timestamp {
        self.lock().now
    }

    /// When something happens next, or a call that waits is over.
    pub fn next_at(&self) -> Option<Timestamp> {
        self.lock().next_at()
    }

    /// Something will happen to a worker without Drowse.
    pub fn happens(&self, at: Timestamp, worker: &WorkerId, change: Change) {
        self.lock().schedule(at, worker, change);
    }

    /// The next such operation is refused.
    pub fn refuse_next(&self, worker: &WorkerId, op: Op, message: &str) {
        if let Ok(unit) = self.lock().unit(worker) {
            unit.refusals.push_back((op, message.to_owned()));
        }
    }

    /// The way to a worker is broken until then.
    pub fn silence(&self, worker: &WorkerId, silence: Silence, until: Timestamp) {
        if let Ok(unit) = self.lock().unit(worker) {
            unit.silence = Some((until, silence));
        }
    }

    /// What a signal shows from now on.
    pub fn load(&self, worker: &WorkerId, signal: Signal, load: Load) {
        let mut world = self.lock();
        let now = world.now;
        if let Ok(unit) = world.unit(worker) {
            unit.set_load(signal, load, now);
        }
    }

    /// How hooks of a worker end from now on.
    pub fn hook_ends_with(&self, worker: &WorkerId, code: i32) {
        if let Ok(unit) = self.lock().unit(worker) {
            unit.hook_code = code;
        }
    }

    /// Hints get lost from now on, or no longer.
    pub fn lose_hints(&self, loses: bool) {
        self.lock().loses_hints = loses;
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn advance(&self, world: &mut World, now: Timestamp) {
        world.advance(now);
        for hint in std::mem::take(&mut world.hints) {
            self.hints.push(hint);
        }
    }

    async fn wait_until(&self, at: Timestamp) {
        let mut clock = self.clock.subscribe();
        {
            let mut world = self.lock();
            if at <= world.now {
                return;
            }
            world.waits.insert(at);
        }
        // The sender lives as long as we do.
        let _ = clock.wait_for(|now| *now >= at).await;
    }

    /// A call arrives, or does not.
    fn arrive(&self, worker: &WorkerId, op: Op, within: Duration) -> Result<Call, Error> {
        let mut world = self.lock();
        world.unit(worker)?;
        let silence = world.silence(worker);
        if silence == Some(Silence::Down) {
            return Err(Error::Unreachable { message: "the simulated way to it is broken".into() });
        }
        let takes = world.takes(worker, op);
        let began_at = world.now;
        Ok(Call { began_at, deadline: began_at + within, within, takes, silence })
    }

    /// Waits for the answer to be due, or for the budget to be over.
    async fn answer(&self, call: &Call, due: Timestamp) -> Result<(), Error> {
        let is_silent = call.silence.is_some();
        if is_silent || due > call.deadline {
            self.wait_until(call.deadline).await;
            return Err(Error::TimedOut { within: call.within });
        }
        self.wait_until(due).await;
        Ok(())
    }

    async fn act(
        &self,
        worker: &WorkerId,
        op: Op,
        intent: Option<(IntentId, Duration)>,
        run: Option<&BootId>,
        within: Duration,
    ) -> Result<Acted, Error> {
        let call = self.arrive(worker, op, within)?;
        if call.silence == Some(Silence::Deaf) {
            self.answer(&call, call.deadline).await?;
        }
        let (pending, manner) = match self.begin(worker, op, intent, run, call.takes)? {
            Begun::Already(seen) => {
                self.answer(&call, call.began_at).await?;
                return Ok(Acted::AlreadyTrue(seen));
            }
            Begun::Refused(error) => {
                self.answer(&call, call.began_at + call.takes).await?;
                return Err(error);
            }
            Begun::Pending(pending, manner) => (pending, manner),
        };
        if manner == Manner::Begins {
            self.answer(&call, call.began_at).await?;
            return Ok(Acted::Started { look_after: pending.done_at.since(call.began_at) });
        }
        let is_ours_to_undo = op == Op::Freeze && call.silence.is_none();
        let undo = Undo { sim: self, worker, serial: is_ours_to_undo.then_some(pending.serial) };
        self.answer(&call, pending.done_at).await?;
        drop(undo);
        let mut world = self.lock();
        let now = world.now;
        let seen = world.unit(worker)?.seen(worker, now);
        if is_reached(op, seen.power) {
            Ok(Acted::Done(seen))
        } else {
            Err(Error::refused("something else happened to it meanwhile"))
        }
    }

    fn begin(
        &self,
        worker: &WorkerId,
        op: Op,
        intent: Option<(IntentId, Duration)>,
        run: Option<&BootId>,
        takes: Duration,
    ) -> Result<Begun, Error> {
        let mut world = self.lock();
        let now = world.now;
        let refusal = world.refusal(worker, op);
        let unit = world.unit(worker)?;
        let seen = unit.seen(worker, now);
        let manner = unit.spec.manner;
        // That run is over, and this one was begun by somebody else.
        if run.is_some() && seen.boot.as_ref() != run {
            return Ok(Begun::Already(seen));
        }
        if let Some(pending) = unit.pending {
            // The same again is the same.
            if pending.op == op && pending.intent == intent.map(|(intent, _)| intent) {
                return Ok(Begun::Pending(pending, manner));
            }
            if op == Op::Thaw && pending.op == Op::Freeze {
                unit.pending = None;
            }
        }
        if is_reached(op, seen.power) && !matches!((op, unit.pending), (Op::Start | Op::Thaw, Some(_))) {
            return Ok(Begun::Already(seen));
        }
        if let Some(error) = refusal {
            return Ok(Begun::Refused(error));
        }
        let refused = match (op, seen.power) {
            (Op::Freeze | Op::Thaw | Op::Start, Power::Gone) => return Err(Error::Gone),
            (Op::Freeze | Op::Thaw, Power::Stopped) => Some("it does not run".to_owned()),
            (Op::Start, Power::Stopped) => unit.spec.cannot_start.clone(),
            (Op::Start | Op::Thaw, Power::Running) => Some("it is being put to sleep".to_owned()),
            (_, Power::Running | Power::Paused | Power::Stopped | Power::Gone) => None,
        };
        if let Some(message) = refused {
            return Ok(Begun::Refused(Error::Refused { message }));
        }
        let pending = world.begin(worker, op, intent, takes)?;
        // What takes no time is done now.
        self.advance(&mut world, now);
        Ok(Begun::Pending(pending, manner))
    }
}

/// One call on its way.
struct Call {
    began_at: Timestamp,
    deadline: Timestamp,
    within: Duration,
    takes: Duration,
    silence: Option<Silence>,
}

enum Begun {
    Already(Seen),
    Refused(Error),
    Pending(Pending, Manner),
}

/// Whether what an action asks for is so.
fn is_reached(op: Op, power: Power) -> bool {
    match op {
        Op::Freeze => power == Power::Paused,
        Op::Thaw | Op::Start => power == Power::Running,
        Op::Stop => matches!(power, Power::Stopped | Power::Gone),
        Op::Terminate => power == Power::Gone,
        Op::Observe | Op::Read | Op::Hook | Op::Crash => true,
    }
}

/// Takes a freeze back whose caller did not wait for it.
struct Undo<'a> {
    sim: &'a Sim,
    worker: &'a WorkerId,
    serial: Option<u64>,
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        if let Ok(unit) = self.sim.lock().unit(self.worker)
            && unit.pending.map(|pending| pending.serial) == self.serial
        {
            unit.pending = None;
        }
    }
}

impl Driver for Sim {
    fn kind(&self) -> DriverKind {
        DriverKind::Sim
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn adopt<'a>(&'a self, worker: &'a WorkerId, spec: &'a driver::Spec, _: Duration) -> Answer<'a, Seen> {
        Box::pin(async move {
            let driver::Spec::Sim(spec) = spec else {
                return Err(Error::Unsupported { what: "look after another driver's worker" });
            };
            let mut world = self.lock();
            world.add(worker, spec);
            let now = world.now;
            Ok(world.unit(worker)?.seen(worker, now))
        })
    }

    fn forget<'a>(&'a self, worker: &'a WorkerId, _: Duration) -> Answer<'a, ()> {
        Box::pin(async move {
            let mut world = self.lock();
            if world.unit(worker)?.power == Power::Paused {
                return Err(Error::refused("it is frozen, and nothing would wake it"));
            }
            world.units.remove(worker);
            Ok(())
        })
    }

    fn observe<'a>(&'a self, worker: &'a WorkerId, within: Duration) -> Answer<'a, Seen> {
        Box::pin(async move {
            let call = self.arrive(worker, Op::Observe, within)?;
            // As it was when the look began: what changes on the way is not in it.
            let seen = self.lock().unit(worker)?.seen(worker, call.began_at);
            self.answer(&call, call.began_at + call.takes).await?;
            Ok(seen)
        })
    }

    fn freeze<'a>(&'a self, worker: &'a WorkerId, within: Duration) -> Answer<'a, Acted> {
        Box::pin(self.act(worker, Op::Freeze, None, None, within))
    }

    fn thaw<'a>(&'a self, worker: &'a WorkerId, within: Duration) -> Answer<'a, Acted> {
        Box::pin(self.act(worker, Op::Thaw, None, None, within))
    }

    fn thaw_at_once(&self, worker: &WorkerId, ready: &mut dyn FnMut() -> bool) -> bool {
        let mut world = self.lock();
        let is_frozen = world.unit(worker).is_ok_and(|unit| unit.power == Power::Paused);
        if !is_frozen || world.silence(worker).is_some() || !ready() {
            return false;
        }
        let now = world.now;
        world.schedule(now, worker, Change::Thawed);
        world.advance(now);
        true
    }

    fn start<'a>(&'a self, worker: &'a WorkerId, within: Duration) -> Answer<'a, Acted> {
        Box::pin(self.act(worker, Op::Start, None, None, within))
    }

    fn stop<'a>(&'a self, worker: &'a WorkerId, stop: Stop, within: Duration) -> Answer<'a, Acted> {
        Box::pin(async move {
            let run = stop.run.as_ref();
            self.act(worker, Op::Stop, Some((stop.intent, stop.grace)), run, within).await
        })
    }

    fn terminate<'a>(
        &'a self,
        worker: &'a WorkerId,
        terminate: Terminate,
        within: Duration,
    ) -> Answer<'a, Acted> {
        Box::pin(async move {
            let (run, intent) = (terminate.run.as_ref(), Some((terminate.intent, terminate.grace)));
            self.act(worker, Op::Terminate, intent, run, within).await
        })
    }

    fn read<'a>(
        &'a self,
        worker: &'a WorkerId,
        wanted: Wanted<'a>,
        within: Duration,
    ) -> Answer<'a, Measures> {
        Box::pin(async move {
            let call = self.arrive(worker, Op::Read, within)?;
            self.answer(&call, call.began_at + call.takes).await?;
            let mut world = self.lock();
            let now = world.now;
            let unit = world.unit(worker)?;
            match unit.power {
                Power::Running | Power::Paused => Ok(unit.measures(worker, wanted, now)),
                Power::Stopped => Err(Error::refused("it does not run")),
                Power::Gone => Err(Error::Gone),
            }
        })
    }

    fn run_hook<'a>(&'a self, worker: &'a WorkerId, hook: Hook<'a>, within: Duration) -> Answer<'a, HookEnd> {
        Box::pin(async move {
            let call = self.arrive(worker, Op::Hook, within)?;
            self.answer(&call, call.began_at + call.takes).await?;
            let code = self.lock().unit(worker)?.hook_code;
            Ok(HookEnd { code, output: format!("simulated {}", hook.name) })
        })
    }

    fn next_hint(&self) -> Pin<Box<dyn Future<Output = Hint> + Send + '_>> {
        Box::pin(self.hints.next())
    }
}

#[cfg(test)]
mod tests;
