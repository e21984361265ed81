//! The drivers, and which workers they have been told about.
//!
//! Every call has a budget and stands between two crash points. A driver learns of a worker the first time it
//! is asked about it in this life of the program, so that a start with a hundred thousand workers asks nobody.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drowse_core::id::WorkerId;
use drowse_core::signal::DriverKind;
use drowse_drivers::{Driver, Error, Seen};

use crate::crash::{CrashPoint, CrashPoints};
use crate::spec::WorkerSpec;

/// How long a look may take.
pub(crate) const LOOK_WITHIN: Duration = Duration::from_secs(5);

/// The drivers of this program.
#[derive(Clone, Debug, Default)]
pub struct Drivers(BTreeMap<DriverKind, Arc<dyn Driver>>);

impl Drivers {
    #[must_use]
    pub fn with(mut self, driver: Arc<dyn Driver>) -> Self {
        self.0.insert(driver.kind(), driver);
        self
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Driver>> {
        self.0.values()
    }

    pub fn has(&self, kind: DriverKind) -> bool {
        self.0.contains_key(&kind)
    }
}

/// The drivers and what they know.
#[derive(Debug)]
pub(crate) struct Hands {
    drivers: Drivers,
    crash: CrashPoints,
    adopted: Mutex<HashSet<WorkerId>>,
}

impl Hands {
    pub(crate) fn new(drivers: Drivers, crash: CrashPoints) -> Self {
        Self { drivers, crash, adopted: Mutex::default() }
    }

    pub(crate) const fn drivers(&self) -> &Drivers {
        &self.drivers
    }

    /// The driver of a worker that it knows.
    pub(crate) async fn of(&self, id: &WorkerId, spec: &WorkerSpec) -> Result<Arc<dyn Driver>, Error> {
        let driver = self.find(spec)?;
        if !self.adopted().contains(id) {
            self.adopt(&driver, id, spec).await?;
        }
        Ok(driver)
    }

    /// Looks at a worker.
    pub(crate) async fn look(&self, id: &WorkerId, spec: &WorkerSpec) -> Result<Seen, Error> {
        let driver = self.find(spec)?;
        if self.adopted().contains(id) {
            self.call("observe", driver.observe(id, LOOK_WITHIN)).await
        } else {
            self.adopt(&driver, id, spec).await
        }
    }

    async fn adopt(&self, driver: &Arc<dyn Driver>, id: &WorkerId, spec: &WorkerSpec) -> Result<Seen, Error> {
        let spec = spec.driver.for_driver();
        let seen = self.call("adopt", driver.adopt(id, &spec, LOOK_WITHIN)).await?;
        self.adopted().insert(id.clone());
        Ok(seen)
    }

    /// It was configured anew: its driver is told before the next call.
    pub(crate) fn reconfigured(&self, id: &WorkerId) {
        self.adopted().remove(id);
    }

    /// Lets go of a worker.
    pub(crate) async fn forget(&self, id: &WorkerId, spec: &WorkerSpec) -> Result<(), Error> {
        let driver = self.find(spec)?;
        if !self.adopted().contains(id) {
            return Ok(());
        }
        self.call("forget", driver.forget(id, LOOK_WITHIN)).await?;
        self.adopted().remove(id);
        Ok(())
    }

    /// Makes a call between its two crash points.
    pub(crate) async fn call<T>(
        &self,
        name: &'static str,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        self.crash.pass(CrashPoint::BeforeCall(name)).await;
        let answer = call.await;
        self.crash.pass(CrashPoint::AfterCall(name)).await;
        answer
    }

    /// Has a worker that its driver knows go on, if that takes no waiting; `ready` as in [`Driver::thaw_at_once`].
    pub(crate) fn thaw_at_once(
        &self,
        id: &WorkerId,
        kind: DriverKind,
        ready: &mut dyn FnMut() -> bool,
    ) -> bool {
        let Some(driver) = self.drivers.0.get(&kind) else { return false };
        if !self.adopted().contains(id) {
            return false;
        }
        let mut ready = || ready() && !self.crash.dies_at(CrashPoint::BeforeCall("head-start"));
        driver.thaw_at_once(id, &mut ready) && !self.crash.dies_at(CrashPoint::AfterCall("head-start"))
    }

    fn find(&self, spec: &WorkerSpec) -> Result<Arc<dyn Driver>, Error> {
        let kind = spec.driver.kind();
        let driver = self.drivers.0.get(&kind);
        driver
            .cloned()
            .ok_or_else(|| Error::Unreachable { message: format!("there is no {kind} driver here") })
    }

    fn adopted(&self) -> MutexGuard<'_, HashSet<WorkerId>> {
        self.adopted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
