//! The simulated driver, whose workers are as a test has written them down: also after a restart of the
//! program, which knows only what is stored.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use drowse_core::id::WorkerId;
use drowse_core::signal::{DriverKind, Signal};
use drowse_core::worker::Capabilities;
use drowse_drivers::sim::{Load, Sim};
use drowse_drivers::{
    Acted, Answer, Driver, Error, Hint, Hook, HookEnd, Measures, Seen, Spec, Stop, Terminate, Wanted, sim,
};

#[derive(Debug)]
pub(crate) struct Scripted {
    pub(crate) sim: Arc<Sim>,
    specs: Mutex<BTreeMap<WorkerId, sim::Spec>>,
    /// What every look is answered with instead.
    no_looks: Mutex<Option<Error>>,
}

impl Scripted {
    pub(crate) fn new(sim: Arc<Sim>) -> Self {
        Self { sim, specs: Mutex::default(), no_looks: Mutex::default() }
    }

    pub(crate) fn write(&self, worker: &WorkerId, spec: sim::Spec) {
        self.specs.lock().unwrap().insert(worker.clone(), spec);
    }

    /// Every look fails like this from now on, or none.
    pub(crate) fn fail_looks(&self, with: Option<Error>) {
        *self.no_looks.lock().unwrap() = with;
    }
}

impl Driver for Scripted {
    fn kind(&self) -> DriverKind {
        DriverKind::Sim
    }

    fn capabilities(&self) -> Capabilities {
        self.sim.capabilities()
    }

    fn adopt<'a>(&'a self, worker: &'a WorkerId, _: &'a Spec, within: Duration) -> Answer<'a, Seen> {
        Box::pin(async move {
            let is_new = self
                .sim
                .observe(worker, Duration::ZERO)
                .await
                .is_err_and(|error| matches!(error, Error::Refused { .. }));
            let spec = self.specs.lock().unwrap().get(worker).cloned().unwrap_or_default();
            let seen = self.sim.adopt(worker, &Spec::Sim(Box::new(spec)), within).await?;
            if is_new {
                self.sim.load(worker, Signal::Cpu, Load::PerSecond(0));
            }
            Ok(seen)
        })
    }

    fn forget<'a>(&'a self, worker: &'a WorkerId, within: Duration) -> Answer<'a, ()> {
        self.sim.forget(worker, within)
    }

    fn observe<'a>(&'a self, worker: &'a WorkerId, within: Duration) -> Answer<'a, Seen> {
        let failure = self.no_looks.lock().unwrap().clone();
        match failure {
            Some(error) => Box::pin(async move { Err(error) }),
            None => self.sim.observe(worker, within),
        }
    }

    fn freeze<'a>(&'a self, worker: &'a WorkerId, within: Duration) -> Answer<'a, Acted> {
        self.sim.freeze(worker, within)
    }

    fn thaw<'a>(&'a self, worker: &'a WorkerId, within: Duration) -> Answer<'a, Acted> {
        self.sim.thaw(worker, within)
    }

    fn thaw_at_once(&self, worker: &WorkerId, ready: &mut dyn FnMut() -> bool) -> bool {
        self.sim.thaw_at_once(worker, ready)
    }

    fn start<'a>(&'a self, worker: &'a WorkerId, within: Duration) -> Answer<'a, Acted> {
        self.sim.start(worker, within)
    }

    fn stop<'a>(&'a self, worker: &'a WorkerId, stop: Stop, within: Duration) -> Answer<'a, Acted> {
        self.sim.stop(worker, stop, within)
    }

    fn terminate<'a>(
        &'a self,
        worker: &'a WorkerId,
        terminate: Terminate,
        within: Duration,
    ) -> Answer<'a, Acted> {
        self.sim.terminate(worker, terminate, within)
    }

    fn read<'a>(
        &'a self,
        worker: &'a WorkerId,
        wanted: Wanted<'a>,
        within: Duration,
    ) -> Answer<'a, Measures> {
        self.sim.read(worker, wanted, within)
    }

    fn run_hook<'a>(&'a self, worker: &'a WorkerId, hook: Hook<'a>, within: Duration) -> Answer<'a, HookEnd> {
        self.sim.run_hook(worker, hook, within)
    }

    fn next_hint(&self) -> Pin<Box<dyn Future<Output = Hint> + Send + '_>> {
        self.sim.next_hint()
    }
}

impl Scripted {
    pub(crate) fn spec(&self, worker: &WorkerId) -> sim::Spec {
        self.specs.lock().unwrap().get(worker).cloned().unwrap_or_default()
    }
}
