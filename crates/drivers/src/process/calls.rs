//! The calls of a [`Driver`], each within its budget and, if it acts, in its turn.
//!
//! Looks only touch `/proc` and cgroups, which are memory: they are over in microseconds and need neither a budget
//! nor another thread. So do reads, but for the sockets of the machine, which `tables` reads.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use drowse_core::id::WorkerId;
use drowse_core::reason::SleepMode;
use drowse_core::signal::DriverKind;
use drowse_core::worker::Capabilities;

use super::cage::Ice;
use super::entry::cannot;
use super::{ProcessDriver, freeze, hook, read, spawn, stop};
use crate::driver::{
    Acted, Answer, Driver, Error, Hook, HookEnd, Measures, Seen, Spec, Stop, Terminate, Wanted, bounded,
};
use crate::hint::Hint;

impl Driver for ProcessDriver {
    fn kind(&self) -> DriverKind {
        DriverKind::Process
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::of(DriverKind::Process)
    }

    fn adopt<'a>(&'a self, worker: &'a WorkerId, spec: &'a Spec, _: Duration) -> Answer<'a, Seen> {
        Box::pin(async move {
            match spec {
                Spec::Process(spec) => self.take_on(worker, spec),
                Spec::Docker(_) | Spec::Sim(_) => {
                    Err(Error::Unsupported { what: "look after another driver's worker" })
                }
            }
        })
    }

    fn forget<'a>(&'a self, worker: &'a WorkerId, within: Duration) -> Answer<'a, ()> {
        Box::pin(bounded(within, async move {
            let entry = self.entry(worker)?;
            let _turn = entry.acting.lock().await;
            if let Some((main, cage)) = entry.whereabouts()
                && cage.ice(&main).map_err(cannot("look at it"))? != Ice::Thawed
            {
                return Err(Error::refused("it is frozen, and nothing would wake it"));
            }
            self.inside.watch.unwatch(&entry);
            self.entries().remove(worker);
            Ok(())
        }))
    }

    fn observe<'a>(&'a self, worker: &'a WorkerId, _: Duration) -> Answer<'a, Seen> {
        Box::pin(async move { self.entry(worker)?.look(self.inside.now()) })
    }

    fn freeze<'a>(&'a self, worker: &'a WorkerId, within: Duration) -> Answer<'a, Acted> {
        Box::pin(bounded(within, async move {
            let entry = self.entry(worker)?;
            let _turn = entry.acting.lock().await;
            freeze::freeze(&self.inside, &entry).await
        }))
    }

    fn thaw<'a>(&'a self, worker: &'a WorkerId, within: Duration) -> Answer<'a, Acted> {
        Box::pin(bounded(within, async move {
            let entry = self.entry(worker)?;
            let _turn = entry.acting.lock().await;
            freeze::thaw(&self.inside, &entry).await
        }))
    }

    fn thaw_at_once(&self, worker: &WorkerId, ready: &mut dyn FnMut() -> bool) -> bool {
        let Ok(entry) = self.entry(worker) else { return false };
        let Ok(_turn) = entry.acting.try_lock() else { return false };
        freeze::thaw_at_once(&self.inside, &entry, ready)
    }

    fn rest(&self) {
        self.inside.watch.rest();
    }

    fn start<'a>(&'a self, worker: &'a WorkerId, within: Duration) -> Answer<'a, Acted> {
        Box::pin(bounded(within, async move {
            let entry = self.entry(worker)?;
            let _turn = entry.acting.lock().await;
            spawn::start(&self.inside, &entry).await
        }))
    }

    fn stop<'a>(&'a self, worker: &'a WorkerId, stop: Stop, within: Duration) -> Answer<'a, Acted> {
        Box::pin(bounded(within, async move {
            if stop.mode == SleepMode::Hibernate {
                return Err(Error::Unsupported { what: "put a process's memory to disk" });
            }
            let entry = self.entry(worker)?;
            let _turn = entry.acting.lock().await;
            stop::stop(&self.inside, &entry, stop.intent, stop.grace).await
        }))
    }

    fn terminate<'a>(
        &'a self,
        worker: &'a WorkerId,
        terminate: Terminate,
        within: Duration,
    ) -> Answer<'a, Acted> {
        Box::pin(bounded(within, async move {
            let entry = self.entry(worker)?;
            let _turn = entry.acting.lock().await;
            self.delete(&entry, terminate).await
        }))
    }

    fn read<'a>(
        &'a self,
        worker: &'a WorkerId,
        wanted: Wanted<'a>,
        within: Duration,
    ) -> Answer<'a, Measures> {
        Box::pin(bounded(
            within,
            async move { read::read(&self.inside, &*self.entry(worker)?, wanted).await },
        ))
    }

    fn run_hook<'a>(&'a self, worker: &'a WorkerId, hook: Hook<'a>, within: Duration) -> Answer<'a, HookEnd> {
        Box::pin(bounded(within, async move { hook::run(&self.inside, &*self.entry(worker)?, hook).await }))
    }

    fn next_hint(&self) -> Pin<Box<dyn Future<Output = Hint> + Send + '_>> {
        Box::pin(self.inside.hints.next())
    }
}
