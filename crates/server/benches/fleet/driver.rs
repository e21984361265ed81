//! Simulated workers in real time: the world's clock is set to ours before each call, and nothing takes time.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::signal::{DriverKind, Signal};
use drowse_core::worker::Capabilities;
use drowse_drivers::sim::{Load, Sim};
use drowse_drivers::{
    Acted, Answer, Driver, Hint, Hook, HookEnd, Measures, Seen, Spec, Stop, Terminate, Wanted,
};
use drowse_server::Clock;

#[derive(Debug)]
pub(crate) struct Live {
    sim: Sim,
    clock: Clock,
    /// When each worker was first to be frozen: after the commit of its intent.
    freezes: Mutex<HashMap<WorkerId, Timestamp>>,
}

impl Live {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { sim: Sim::new(7, clock.now()), clock, freezes: Mutex::default() }
    }

    fn now(&self) -> &Sim {
        self.sim.tick(self.clock.now());
        &self.sim
    }

    fn freezes(&self) -> MutexGuard<'_, HashMap<WorkerId, Timestamp>> {
        self.freezes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn asked_to_freeze(&self, workers: &[WorkerId]) -> Vec<Timestamp> {
        let freezes = self.freezes();
        workers.iter().map(|worker| *freezes.get(worker).expect("it was frozen")).collect()
    }

    pub(crate) fn forget_freezes(&self) {
        self.freezes().clear();
    }

    pub(crate) fn count_freezes(&self) -> usize {
        self.freezes().keys().filter(|worker| worker.as_str().starts_with('w')).count()
    }
}

impl Driver for Live {
    fn kind(&self) -> DriverKind {
        DriverKind::Sim
    }

    fn capabilities(&self) -> Capabilities {
        self.sim.capabilities()
    }

    fn adopt<'a>(&'a self, worker: &'a WorkerId, spec: &'a Spec, within: Duration) -> Answer<'a, Seen> {
        Box::pin(async move {
            let sim = self.now();
            let seen = sim.adopt(worker, spec, within).await?;
            sim.load(worker, Signal::Cpu, Load::PerSecond(0));
            Ok(seen)
        })
    }

    fn forget<'a>(&'a self, worker: &'a WorkerId, within: Duration) -> Answer<'a, ()> {
        self.now().forget(worker, within)
    }

    fn observe<'a>(&'a self, worker: &'a WorkerId, within: Duration) -> Answer<'a, Seen> {
        self.now().observe(worker, within)
    }

    fn freeze<'a>(&'a self, worker: &'a WorkerId, within: Duration) -> Answer<'a, Acted> {
        let now = self.clock.now();
        self.freezes().entry(worker.clone()).or_insert(now);
        self.now().freeze(worker, within)
    }

    fn thaw<'a>(&'a self, worker: &'a WorkerId, within: Duration) -> Answer<'a, Acted> {
        self.now().thaw(worker, within)
    }

    fn start<'a>(&'a self, worker: &'a WorkerId, within: Duration) -> Answer<'a, Acted> {
        self.now().start(worker, within)
    }

    fn stop<'a>(&'a self, worker: &'a WorkerId, stop: Stop, within: Duration) -> Answer<'a, Acted> {
        self.now().stop(worker, stop, within)
    }

    fn terminate<'a>(
        &'a self,
        worker: &'a WorkerId,
        terminate: Terminate,
        within: Duration,
    ) -> Answer<'a, Acted> {
        self.now().terminate(worker, terminate, within)
    }

    fn read<'a>(
        &'a self,
        worker: &'a WorkerId,
        wanted: Wanted<'a>,
        within: Duration,
    ) -> Answer<'a, Measures> {
        self.now().read(worker, wanted, within)
    }

    fn run_hook<'a>(&'a self, worker: &'a WorkerId, hook: Hook<'a>, within: Duration) -> Answer<'a, HookEnd> {
        self.now().run_hook(worker, hook, within)
    }

    fn next_hint(&self) -> Pin<Box<dyn Future<Output = Hint> + Send + '_>> {
        self.sim.next_hint()
    }
}
