//! Workers come onto the books, are changed, and leave them.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use drowse_core::event::Event;
use drowse_core::id::WorkerId;
use drowse_core::policy::{Policy, Selectors};
use drowse_core::status::{StatusKind, WakeCause};
use drowse_core::worker::Worker;
use drowse_store::{Lane, NewEvent, Registered, Removal, Tx, View};
use serde_json::json;

use super::{ControlError, Fleet, PolicyChange};
use crate::config::{Target, leads_to, listens_twice};
use crate::shared::lock;
use crate::spec::{NewWorker, WorkerSpec};

/// What became of a registration.
#[derive(Clone, Debug, PartialEq)]
pub struct Registration {
    pub worker: Worker,
    /// It had been on the books before and is back.
    pub is_back: bool,
}

/// What is to be changed about a worker; what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patch {
    pub region: Option<Option<String>>,
    pub kind: Option<Option<String>>,
    pub group: Option<Option<String>>,
    pub owner: Option<Option<String>>,
    pub in_service: Option<bool>,
    pub spec: Option<WorkerSpec>,
}

/// Where the workers of this process are: sites matter once several replicas share a database.
const SITE: &str = "local";

impl Fleet {
    /// Puts a worker on the books. It is looked at at once.
    pub async fn register(&self, new: NewWorker, by: &str) -> Result<Registration, ControlError> {
        self.register_with(new, Vec::new(), by).await
    }

    /// The same, with a policy of its own from the first look on: both or neither.
    pub async fn register_with(
        &self,
        new: NewWorker,
        policy: Vec<PolicyChange>,
        by: &str,
    ) -> Result<Registration, ControlError> {
        let has_policy = !policy.is_empty();
        if !self.0.hands.drivers().has(new.spec.driver.kind()) {
            let message = format!("there is no {} driver here", new.spec.driver.kind());
            return Err(ControlError::invalid("driver", message));
        }
        let (shared, by, id) = (Arc::clone(&self.0), by.to_owned(), new.id.clone());
        let registration = self
            .0
            .db
            .tx("register", Lane::Ordinary, move |tx| {
                let now = shared.clock.now();
                // The file was looked at as a whole.
                if !new.spec.is_listed {
                    check_addresses(tx, &new)?;
                }
                let mut worker =
                    Worker::registered(new.id.clone(), new.spec.driver.kind(), &Policy::default(), now);
                worker.selectors = Selectors { worker: new.id.to_string(), ..new.selectors };
                worker.is_routed = new.spec.is_routed();
                worker.in_service = new.in_service;
                let registered = tx.register(&worker, SITE, &spec_json(&new.spec)?, now)?;
                if registered == Registered::Exists {
                    return Err(ControlError::conflict(format!("there is a worker {} already", new.id)));
                }
                if !policy.is_empty() {
                    super::policy::apply(tx, &*shared.policies.book(tx)?, &policy, "", now)?;
                }
                tx.append(NewEvent {
                    at: now,
                    worker: Some(new.id.clone()),
                    kind: "worker.registered".to_owned(),
                    doc: json!({ "by": by, "driver": worker.driver }),
                });
                Ok(Registration { worker, is_back: registered == Registered::Again })
            })
            .await?;
        self.0.meters.forget(&id);
        self.0.hands.reconfigured(&id);
        self.0.notices.worker_changed(&id);
        self.0.notices.books_changed();
        self.0.queue.nudge();
        if has_policy {
            self.apply_policy();
        }
        Ok(registration)
    }

    /// Changes what a worker is; it is judged at once by the policy that applies to it then.
    pub async fn patch(&self, id: &WorkerId, patch: Patch, by: &str) -> Result<Worker, ControlError> {
        let by = by.to_owned();
        let ((), worker) = self
            .0
            .change("patch", Lane::Ordinary, id, move |change| {
                let mut worker = change.worker();
                let Selectors { region, kind, group, owner, .. } = &mut worker.selectors;
                for (field, value) in
                    [(region, patch.region), (kind, patch.kind), (group, patch.group), (owner, patch.owner)]
                {
                    if let Some(value) = value {
                        *field = value;
                    }
                }
                worker.in_service = patch.in_service.unwrap_or(worker.in_service);
                if let Some(spec) = &patch.spec {
                    if spec.driver.kind() != worker.driver {
                        return Err(ControlError::invalid("driver", "a worker keeps its driver"));
                    }
                    worker.is_routed = spec.is_routed();
                    let site = change.locked.record().site.clone();
                    change.locked.reconfigure(&site, &spec_json(spec)?)?;
                }
                change.locked.save(&worker, Some(change.now))?;
                change.journal("worker.changed", json!({ "by": by }));
                Ok(())
            })
            .await?;
        self.0.hands.reconfigured(id);
        Ok(worker)
    }

    /// Takes a worker off the books without touching it. Refused while it is frozen or about to be: nothing
    /// would ever wake it.
    pub async fn remove(&self, id: &WorkerId, by: &str) -> Result<(), ControlError> {
        let (worker, shared, by) = (id.clone(), Arc::clone(&self.0), by.to_owned());
        let (spec, open) = self
            .0
            .db
            .tx("remove", Lane::Ordinary, move |tx| {
                let now = shared.clock.now();
                let locked =
                    tx.lock_worker(&worker)?.ok_or_else(|| ControlError::NotFound(worker.clone()))?;
                // Until it is forgotten nobody gets a head start on it.
                let (open, _) = shared.untold.open(&worker);
                let spec = locked.record().spec.clone();
                match locked.remove(now)? {
                    Removal::Removed => {}
                    Removal::Refused { status } => {
                        let message = format!("it is {status}, and nothing would wake it: resume it first");
                        return Err(ControlError::conflict(message));
                    }
                }
                tx.append(NewEvent {
                    at: now,
                    worker: Some(worker),
                    kind: "worker.removed".to_owned(),
                    doc: json!({ "by": by }),
                });
                Ok((spec, open))
            })
            .await?;
        if let Ok(spec) = serde_json::from_value::<WorkerSpec>(spec) {
            // It is off the books either way; a driver that does not answer forgets it at the next start.
            let _ = self.0.hands.forget(id, &spec).await;
        }
        self.0.meters.forget(id);
        self.0.untold.forget(id);
        drop(open);
        self.0.doubts.forget(id);
        self.0.known.forget(id);
        self.0.asked.forget(id);
        self.0.board.forget(id);
        self.0.unanswered.forget(id);
        self.0.gone.note(id, None);
        self.0.notices.worker_changed(id);
        self.0.notices.books_changed();
        Ok(())
    }

    /// Makes the books agree with the file: what it lists is on them as it says, what it no longer lists leaves
    /// them. A worker that is frozen is thawed first and leaves when it runs.
    pub async fn sync_listed(&self, listed: Vec<NewWorker>) -> Result<(), ControlError> {
        let names: BTreeSet<WorkerId> = listed.iter().map(|new| new.id.clone()).collect();
        lock(&self.0.leaving).retain(|id| !names.contains(id));
        for new in listed {
            match self.get(&new.id).await {
                // Deleted for good; that the file still lists it asks for another one by that name.
                Ok(card) if card.worker.status.kind() == StatusKind::Terminated => {
                    Box::pin(self.remove(&new.id, FILE)).await?;
                    Box::pin(self.register(new, FILE)).await?;
                }
                Ok(card) => drop(Box::pin(self.refresh(&card, new, FILE)).await?),
                Err(ControlError::NotFound(_)) => {
                    Box::pin(self.register(new, FILE)).await?;
                }
                Err(other) => return Err(other),
            }
        }
        for (id, spec) in self.specs_with(r#""is_listed":true"#.to_owned()).await? {
            if spec.is_listed && !names.contains(&id) {
                self.unlist(&id).await?;
            }
        }
        Ok(())
    }

    /// The workers whose configuration contains `text` as it is stored: of a hundred thousand only few are read.
    pub(crate) async fn specs_with(&self, text: String) -> Result<Vec<(WorkerId, WorkerSpec)>, ControlError> {
        self.0.db.read(move |view| specs_with(view, &text)).await
    }

    /// Has the books say what a worker is now; whether that was news.
    pub(crate) async fn refresh(
        &self,
        card: &super::WorkerCard,
        new: NewWorker,
        by: &str,
    ) -> Result<bool, ControlError> {
        let selectors = Selectors { worker: new.id.to_string(), ..new.selectors };
        if card.spec == new.spec && card.worker.selectors == selectors {
            return Ok(false);
        }
        let patch = Patch {
            region: Some(selectors.region),
            kind: Some(selectors.kind),
            group: Some(selectors.group),
            owner: Some(selectors.owner),
            in_service: None,
            spec: Some(new.spec),
        };
        self.patch(&new.id, patch, by).await.map(|_| true)
    }

    pub(crate) async fn unlist(&self, id: &WorkerId) -> Result<(), ControlError> {
        match self.remove(id, FILE).await {
            Err(ControlError::Conflict { .. }) => {
                if lock(&self.0.leaving).insert(id.clone()) {
                    let (fleet, id) = (self.clone(), id.clone());
                    self.0.tasks.spawn(async move { fleet.let_leave(&id).await });
                }
                Ok(())
            }
            other => other,
        }
    }

    /// Thaws a worker that the file no longer lists, and takes it off the books as soon as it runs: before that
    /// nothing else would wake it, after that nothing may put it to sleep again. Should Drowse end before, the
    /// next start finds it unlisted too.
    async fn let_leave(&self, id: &WorkerId) {
        let mut changes = self.0.notices.worker(id);
        loop {
            let thaw = self.0.change("unlist", Lane::Wake, id, |change| {
                match change.worker().status.kind() {
                    StatusKind::Pausing | StatusKind::Paused => {
                        // Nobody asked for the worker, so nobody's counter or snooze knows.
                        change.apply(&Event::WakeRequested { cause: WakeCause::Removal }).map(|_| ())
                    }
                    StatusKind::Provisioning
                    | StatusKind::Running
                    | StatusKind::Waking
                    | StatusKind::Stopping
                    | StatusKind::Stopped
                    | StatusKind::Draining
                    | StatusKind::Terminating
                    | StatusKind::Terminated
                    | StatusKind::Failed
                    | StatusKind::Unknown => Ok(()),
                }
            });
            // Refused or failed, it is tried again.
            let _ = thaw.await;
            if !lock(&self.0.leaving).contains(id) {
                return;
            }
            match self.remove(id, FILE).await {
                Ok(()) | Err(ControlError::NotFound(_)) => {
                    lock(&self.0.leaving).remove(id);
                    return;
                }
                Err(_) => {}
            }
            tokio::select! {
                biased;
                () = changes.next() => {}
                () = self.0.clock.sleep_until(self.0.clock.now() + LEAVES_WITHIN) => {}
            }
        }
    }

    /// Tells when workers come onto the books or leave them.
    pub fn books(&self) -> tokio::sync::watch::Receiver<u64> {
        self.0.notices.books()
    }

    /// The doors of workers that no file lists.
    pub async fn unlisted_doors(&self) -> Result<Vec<(WorkerId, SocketAddr, Target)>, ControlError> {
        let with_doors = self.specs_with(r#""listen":"#.to_owned()).await?;
        let unlisted = with_doors.into_iter().filter(|(_, spec)| !spec.is_listed);
        Ok(unlisted.filter_map(|(id, spec)| Some((id, spec.listen?, spec.place()?))).collect())
    }
}

/// Holds the addresses of a new worker against those of all others. Only those can be in the way that name one of
/// its ports.
fn check_addresses(tx: &Tx<'_>, new: &NewWorker) -> Result<(), ControlError> {
    let addresses = [new.spec.listen, new.spec.target];
    let ports: BTreeSet<u16> = addresses.iter().flatten().map(SocketAddr::port).collect();
    // Port 0 is a new one each time.
    for port in ports.into_iter().filter(|port| *port != 0) {
        let others = specs_with(tx, &format!(r#":{port}""#))?;
        for (id, other) in others.into_iter().filter(|(id, _)| *id != new.id) {
            if let (Some(mine), Some(theirs)) = (new.spec.listen, other.listen)
                && listens_twice(mine, theirs)
            {
                return Err(ControlError::invalid("listen", format!("{mine} is taken by worker {id}")));
            }
            for (target, listen) in [(new.spec.target, other.listen), (other.target, new.spec.listen)] {
                if let (Some(target), Some(listen)) = (target, listen)
                    && leads_to(target, listen)
                {
                    let message = format!("{target} leads to {listen}: worker {id} and this one");
                    return Err(ControlError::invalid("target", message));
                }
            }
        }
    }
    Ok(())
}

/// What cannot be read has no door.
fn specs_with(view: &View<'_>, text: &str) -> Result<Vec<(WorkerId, WorkerSpec)>, ControlError> {
    let found = view.specs_with(text)?.into_iter();
    Ok(found.filter_map(|(id, spec)| Some((id, serde_json::from_value(spec).ok()?))).collect())
}

/// How soon it is tried again to let a worker leave about which nothing was heard.
const LEAVES_WITHIN: Duration = Duration::from_secs(2);

/// Who did it, when the file did.
const FILE: &str = "file";

fn spec_json(spec: &WorkerSpec) -> Result<serde_json::Value, ControlError> {
    serde_json::to_value(spec).map_err(|error| ControlError::invalid("spec", error.to_string()))
}
