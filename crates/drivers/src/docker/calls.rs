//! The calls of a [`Driver`], each within its budget and, if it acts, in its turn.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::reason::SleepMode;
use drowse_core::signal::DriverKind;
use drowse_core::worker::{Capabilities, Power};

use super::inside::WARNING_FILE;
use super::{DockerDriver, discover, freeze, hook, read, run, stop};
use crate::driver::{
    Acted, Answer, Driver, Error, Found, Hook, HookEnd, Located, Measures, Seen, Spec, Stop, Terminate, Told,
    Wanted, bounded,
};
use crate::hint::Hint;

impl Driver for DockerDriver {
    fn kind(&self) -> DriverKind {
        DriverKind::Docker
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::of(DriverKind::Docker)
    }

    fn adopt<'a>(&'a self, worker: &'a WorkerId, spec: &'a Spec, within: Duration) -> Answer<'a, Seen> {
        Box::pin(bounded(within, async move {
            match spec {
                Spec::Docker(spec) => self.take_on(worker, spec).await,
                Spec::Process(_) | Spec::Sim(_) => {
                    Err(Error::Unsupported { what: "look after another driver's worker" })
                }
            }
        }))
    }

    fn forget<'a>(&'a self, worker: &'a WorkerId, within: Duration) -> Answer<'a, ()> {
        Box::pin(bounded(within, async move {
            let entry = self.entry(worker)?;
            let _turn = entry.acting.lock().await;
            if entry.look(&self.inside).await?.seen.power == Power::Paused {
                return Err(Error::refused("it is frozen, and nothing would wake it"));
            }
            entry.forget_record();
            entry.let_go();
            self.inside.entries().remove(worker);
            Ok(())
        }))
    }

    fn observe<'a>(&'a self, worker: &'a WorkerId, within: Duration) -> Answer<'a, Seen> {
        Box::pin(bounded(within, async move { Ok(self.entry(worker)?.look(&self.inside).await?.seen) }))
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

    fn start<'a>(&'a self, worker: &'a WorkerId, within: Duration) -> Answer<'a, Acted> {
        Box::pin(bounded(within, async move {
            let entry = self.entry(worker)?;
            let _turn = entry.acting.lock().await;
            freeze::start(&self.inside, &entry).await
        }))
    }

    fn stop<'a>(&'a self, worker: &'a WorkerId, stop: Stop, within: Duration) -> Answer<'a, Acted> {
        Box::pin(bounded(within, async move {
            if stop.mode == SleepMode::Hibernate {
                return Err(Error::Unsupported { what: "put a container's memory to disk" });
            }
            let entry = self.entry(worker)?;
            let _turn = entry.acting.lock().await;
            let run = stop.run.as_ref();
            stop::stop(&self.inside, &entry, stop.intent, stop.grace, run).await
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

    fn discover<'a>(&'a self, filter: &'a str, within: Duration) -> Answer<'a, Vec<Found>> {
        Box::pin(bounded(within, discover::discover(&self.inside, filter)))
    }

    fn touched<'a>(
        &'a self,
        worker: &'a WorkerId,
        path: &'a str,
        within: Duration,
    ) -> Answer<'a, Option<Timestamp>> {
        let path = path.to_owned();
        Box::pin(bounded(within, async move {
            let entry = self.entry(worker)?;
            if entry.last().is_none_or(|look| look.pid.is_none()) {
                // What it finds is told by whoever looks for it.
                let look = entry.peek(&self.inside).await?;
                if look.seen.power == Power::Stopped {
                    return self.inside.engine.touched(&look.id, &path).await;
                }
                entry.look(&self.inside).await?;
            }
            if super::is_still_absent(&entry, &path) {
                return Ok(None);
            }
            let asked = path.clone();
            let looked = self.within(worker, move |root| (root.touched(&asked), root.is_at_hand())).await?;
            let touched = looked.0.map_err(|error| super::not_inside(&error))?;
            let last = entry.last().filter(|_| touched.is_none() && looked.1);
            entry.is_absent(last.map(|look| (look.id, path)));
            Ok(touched)
        }))
    }

    fn tell<'a>(&'a self, worker: &'a WorkerId, text: &'a str, within: Duration) -> Answer<'a, Told> {
        let text = text.to_owned();
        Box::pin(bounded(within, async move {
            self.within(worker, move |root| Told {
                terminals: root.write_to_terminals(&text).unwrap_or(0),
                file: root.leave(WARNING_FILE, &text).map_err(|error| format!("{WARNING_FILE}: {error}")),
            })
            .await
        }))
    }

    fn take_back<'a>(&'a self, worker: &'a WorkerId, within: Duration) -> Answer<'a, ()> {
        Box::pin(bounded(within, async move {
            let taken = self.within(worker, |root| root.take_away(WARNING_FILE)).await?;
            taken.map_err(|error| super::not_inside(&error))
        }))
    }

    fn locate<'a>(&'a self, worker: &'a WorkerId, port: u16, within: Duration) -> Answer<'a, Located> {
        Box::pin(bounded(within, async move { run::locate(&self.inside, &self.entry(worker)?, port).await }))
    }

    fn labels(&self, worker: &WorkerId) -> Result<BTreeMap<String, String>, Error> {
        // Not seen yet: what is written on it is not known, which is not the same as nothing.
        let unseen = || Error::Unreachable { message: "it has not been looked at yet".to_owned() };
        self.entry(worker)?.last().map(|look| look.labels).ok_or_else(unseen)
    }

    fn next_hint(&self) -> Pin<Box<dyn Future<Output = Hint> + Send + '_>> {
        Box::pin(self.inside.hints.next())
    }
}
