//! Workers that nobody lists: they come onto the books when they are found and leave them when they are gone.
//!
//! ```text
//!   hint ─┐
//!         ├─▶ scan ──▶ labels ──▶ new: registered · changed: patched · made anew: another run of that name
//!   30 s ─┘      └───▶ no longer there: looked at, which finds it gone · no longer looked for: let go
//! ```
//!
//! Hints make it quick, scans make it right. A scan that fails changes nothing: what cannot be seen is not gone. What
//! sleeps is thawed before it is let go.

mod anew;
mod labels;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use drowse_core::id::WorkerId;
use drowse_core::policy::exemption::Subject;
use drowse_core::policy::{Key, Level, Value};
use drowse_core::signal::DriverKind;
use drowse_core::status::StatusKind;
use drowse_drivers::{Error, Found};
use drowse_store::{Lane, NewEvent};
use serde_json::json;

use crate::config::Groups;
use crate::fleet::{ControlError, Fleet, Patch, PolicyChange, WorkerCard};
use crate::plain::plain;
use crate::shared::{Shared, lock};
use crate::spec::{Container, DriverSpec, NewWorker, WorkerSpec};

use labels::BY_LABEL;
pub(crate) use labels::is_by_label;

/// How often it is looked without a hint.
const SCAN_EVERY: Duration = Duration::from_secs(30);
/// How soon it is looked again when something was in the way.
const AGAIN: Duration = Duration::from_secs(2);
/// How long a scan may take.
const SCAN_WITHIN: Duration = Duration::from_secs(20);
/// How long the books remember a worker that was found and is gone. The journal remembers longer.
const REMEMBER_FOR: Duration = Duration::from_mins(10);

/// How much is told about one container: its labels are somebody else's words.
const MOST_PROBLEMS: usize = 20;

/// Who only watches a container whose label names a group that nobody knows.
const BY_UNKNOWN_GROUP: &str = "unknown group";

/// Who puts found workers on the books.
const DISCOVERY: &str = "discovery";

/// What is looked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LookFor {
    /// Containers with this label.
    pub docker: Option<String>,
    /// Who belongs to which group, for owners whose containers name none.
    pub groups: Groups,
}

/// What discovery knows.
#[derive(Debug, Default)]
pub(crate) struct Discovery {
    look_for: std::sync::Mutex<LookFor>,
    /// What has been told of whom, so that it is told once.
    told: std::sync::Mutex<BTreeMap<String, Vec<String>>>,
    nudged: tokio::sync::Notify,
    /// Why containers cannot be looked for, as it was last told.
    cannot: std::sync::Mutex<Option<String>>,
}

impl Discovery {
    pub(crate) fn nudge(&self) {
        self.nudged.notify_one();
    }

    /// Remembers why it cannot be looked; whether that is news.
    fn cannot(&self, why: Option<String>) -> bool {
        let mut told = lock(&self.cannot);
        let is_news = *told != why;
        *told = why;
        is_news
    }
}

impl Fleet {
    /// Says what to look for from now on.
    pub fn look_for(&self, look_for: LookFor) {
        *lock(&self.0.discovery.look_for) = look_for;
        self.0.discovery.nudge();
    }

    /// Scans until `stop` is over.
    pub async fn run_discovery(&self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        loop {
            let pause = match self.discover().await {
                Ok(true) => SCAN_EVERY,
                Ok(false) => AGAIN,
                Err(error) => {
                    tracing::warn!(%error, "discovery could not write what it found");
                    AGAIN
                }
            };
            tokio::select! {
                biased;
                () = &mut stop => return,
                () = self.0.discovery.nudged.notified() => {}
                () = self.0.clock.sleep_until(self.0.clock.now() + pause) => {}
            }
        }
    }

    /// One scan. False: something was in the way, and it should be looked again soon.
    pub async fn discover(&self) -> Result<bool, ControlError> {
        let look_for = lock(&self.0.discovery.look_for).clone();
        let found = match &look_for.docker {
            None => Vec::new(),
            Some(filter) => match self.scan(filter).await {
                Ok(found) => {
                    if self.0.discovery.cannot(None) {
                        tracing::info!("containers can be looked for again");
                    }
                    found
                }
                Err(error) => {
                    // Told by the workers that are there, as unknown; and here, for those that are not yet.
                    if self.0.discovery.cannot(Some(error.to_string())) {
                        tracing::warn!(%error, "containers cannot be looked for");
                    }
                    return Ok(false);
                }
            },
        };
        let books = self.specs_with(r#""kind":"docker""#.to_owned()).await?;
        let mut is_settled = Box::pin(self.look_for_the_listed(&books)).await?;
        let mut present: BTreeMap<WorkerId, &str> = BTreeMap::new();
        // Those who are on the books first: whoever claims a name that is theirs came later.
        let (known, unknown): (Vec<_>, Vec<_>) =
            found.iter().map(|one| (one, known_as(one, &books))).partition(|(_, known)| known.is_some());
        for (one, known) in known.into_iter().chain(unknown) {
            if is_somebody(one, &books) {
                if let Some(twin) = known {
                    // The file lists it by now: one container is one worker.
                    self.unlist(twin).await?;
                    present.insert(twin.clone(), &one.name);
                }
                continue;
            }
            if let Some(problem) = &one.problem {
                // It is there, and more is not known of it just now.
                present.extend(known.map(|known| (known.clone(), one.name.as_str())));
                self.tell_problems(&one.spec, &one.name, vec![problem.clone()], known).await?;
                is_settled = false;
                continue;
            }
            let filter = look_for.docker.as_deref().unwrap_or_default();
            match labels::read(one, filter) {
                Ok((mut new, mut policy)) => {
                    if let Some(known) = known {
                        // Whatever it is called now: what is known of it, and what holds it, is of the container.
                        new.id = known.clone();
                        for change in &mut policy {
                            change.name = Some(known.to_string());
                        }
                    }
                    if let Some(other) = present.get(&new.id) {
                        let problem = format!(
                            "worker {} is the container {other} already; give this one a drowse.name of its own",
                            new.id
                        );
                        self.tell_problems(&one.spec, &one.name, vec![problem], Some(&new.id)).await?;
                        continue;
                    }
                    present.insert(new.id.clone(), &one.name);
                    is_settled &= Box::pin(self.take_on(one, new, policy, &look_for)).await?;
                }
                Err(problems) => self.tell_problems(&one.spec, &one.name, problems, None).await?,
            }
        }
        // What was told of those who are gone is not kept: their ids do not come again.
        let heard: BTreeSet<String> = found.iter().map(|one| key_of(&one.spec)).collect();
        let listed: BTreeSet<String> =
            books.iter().map(|(_, spec)| key_of(&spec.driver.for_driver())).collect();
        lock(&self.0.discovery.told).retain(|key, _| heard.contains(key) || listed.contains(key));
        for (id, spec) in books {
            if spec.found_by.is_some() && !present.contains_key(&id) {
                let is_there = heard.contains(&key_of(&spec.driver.for_driver()));
                is_settled &= Box::pin(self.miss(&id, &spec, look_for.docker.as_deref(), is_there)).await?;
            }
        }
        Ok(is_settled)
    }

    async fn scan(&self, filter: &str) -> Result<Vec<Found>, Error> {
        let driver = self.0.hands.drivers().iter().find(|driver| driver.kind() == DriverKind::Docker);
        let Some(driver) = driver else {
            return Err(Error::Unreachable { message: "there is no docker driver here".to_owned() });
        };
        self.0.hands.call("discover", driver.discover(filter, SCAN_WITHIN)).await
    }

    /// Has the books say what was found. False: not yet.
    async fn take_on(
        &self,
        found: &Found,
        mut new: NewWorker,
        mut policy: Vec<PolicyChange>,
        look_for: &LookFor,
    ) -> Result<bool, ControlError> {
        let card = match self.get(&new.id).await {
            Ok(card) => Some(card),
            Err(ControlError::NotFound(_)) => None,
            Err(other) => return Err(other),
        };
        let mut problems = Vec::new();
        let names_group = new.selectors.group.is_some();
        if let Some(problem) = self.find_group(&mut new, look_for).await? {
            problems.push(problem);
        }
        if names_group && new.selectors.group.is_none() {
            policy.retain(|change| change.key != Key::AutoPause);
            policy.push(PolicyChange {
                level: Level::Worker,
                name: Some(new.id.to_string()),
                key: Key::AutoPause,
                value: Some(Value::Flag(false)),
                by: BY_UNKNOWN_GROUP.to_owned(),
            });
        }
        let is_settled = match card {
            None => self.enter(new.clone(), policy).await.map(|()| true),
            Some(card) if card.spec.found_by.is_none() => {
                let problem = format!(
                    "there is another worker {} already; give this container a drowse.name that is free",
                    new.id
                );
                problems.push(problem);
                Ok(true)
            }
            Some(card) if card.spec.driver == new.spec.driver => {
                self.bring_up_to_date(&card, new.clone(), policy).await.map(|()| true)
            }
            // Another container of that name: the one that was is gone, and another run has nothing to do with it.
            Some(card) if card.worker.status.kind() == StatusKind::Terminated => {
                self.remove(&new.id, DISCOVERY).await?;
                self.enter(new.clone(), policy).await.map(|()| true)
            }
            Some(_) => {
                self.0.look_at(&new.id).await;
                Ok(false)
            }
        };
        match is_settled {
            // One whose labels cannot be followed is not touched, and stands in nobody's way.
            Err(
                error @ (ControlError::Invalid { .. }
                | ControlError::Conflict { .. }
                | ControlError::Conflicting { .. }
                | ControlError::Pinned { .. }),
            ) => {
                problems.push(error.to_string());
                self.tell_problems(&found.spec, &found.name, problems, Some(&new.id)).await?;
                Ok(true)
            }
            other => {
                self.tell_problems(&found.spec, &found.name, problems, Some(&new.id)).await?;
                other
            }
        }
    }

    async fn enter(&self, new: NewWorker, policy: Vec<PolicyChange>) -> Result<(), ControlError> {
        let policy = self.without_those_of_people(&new.id, policy).await?;
        let stale = self.stale_labels(&new.id, &policy).await?;
        self.register_with(new, policy.into_iter().chain(stale).collect(), DISCOVERY).await.map(|_| ())
    }

    async fn bring_up_to_date(
        &self,
        card: &WorkerCard,
        new: NewWorker,
        policy: Vec<PolicyChange>,
    ) -> Result<(), ControlError> {
        let id = new.id.clone();
        if self.refresh(card, new, DISCOVERY).await? {
            self.0.notices.books_changed();
        }
        self.follow_labels(&id, policy).await
    }

    /// Has the worker layer say what the labels say, and no more than that.
    async fn follow_labels(&self, id: &WorkerId, policy: Vec<PolicyChange>) -> Result<(), ControlError> {
        let policy = self.without_those_of_people(id, policy).await?;
        let stale = self.stale_labels(id, &policy).await?;
        let set = self.labelled(id).await?;
        let is_set = |change: &PolicyChange| {
            set.get(&change.key.name()) == change.value.as_ref().map(|value| json!(value)).as_ref()
        };
        let changes: Vec<PolicyChange> =
            policy.into_iter().filter(|change| !is_set(change)).chain(stale).collect();
        if !changes.is_empty() {
            self.set_policies(changes, String::new()).await?;
        }
        Ok(())
    }

    /// What a person has set for a worker counts before its labels, and is not overwritten by them.
    async fn without_those_of_people(
        &self,
        id: &WorkerId,
        policy: Vec<PolicyChange>,
    ) -> Result<Vec<PolicyChange>, ControlError> {
        let changed = self.policies().await?.changed.into_iter();
        let by_people: BTreeSet<String> = changed
            .filter(|value| {
                value.level == Level::Worker
                    && value.name.as_deref() == Some(id.as_str())
                    && !is_by_label(&value.author)
            })
            .map(|value| value.key)
            .collect();
        Ok(policy.into_iter().filter(|change| !by_people.contains(&change.key.name())).collect())
    }

    /// The worker-layer values that labels set.
    async fn labelled(&self, id: &WorkerId) -> Result<BTreeMap<String, serde_json::Value>, ControlError> {
        let changed = self.policies().await?.changed.into_iter();
        let own = changed.filter(|value| {
            value.level == Level::Worker
                && value.name.as_deref() == Some(id.as_str())
                && is_by_label(&value.author)
        });
        Ok(own.map(|value| (value.key, value.value)).collect())
    }

    /// What takes back the values of labels that are no longer there.
    async fn stale_labels(
        &self,
        id: &WorkerId,
        policy: &[PolicyChange],
    ) -> Result<Vec<PolicyChange>, ControlError> {
        let set = self.labelled(id).await?;
        let keys = set.keys().filter_map(|name| Key::from_name(name));
        let stale = keys.filter(|key| policy.iter().all(|change| change.key != *key));
        Ok(stale
            .map(|key| PolicyChange {
                level: Level::Worker,
                name: Some(id.to_string()),
                key,
                value: None,
                by: BY_LABEL.to_owned(),
            })
            .collect())
    }

    /// The group of its owner, unless a label names one; and what is wrong with that.
    async fn find_group(
        &self,
        new: &mut NewWorker,
        look_for: &LookFor,
    ) -> Result<Option<String>, ControlError> {
        if let Some(group) = new.selectors.group.clone() {
            let layers = self.policies().await?.layers;
            let has_settings =
                layers.iter().any(|layer| layer.level == Level::Group && layer.name.as_ref() == Some(&group));
            // Whoever is spared by the name of a group is in a group of that name.
            let spared = Subject::Group(group.clone());
            if has_settings
                || look_for.groups.files().contains_key(&group)
                || self.exemptions().await?.iter().any(|one| one.exemption.subject == spared)
            {
                return Ok(None);
            }
            // Nobody knows what was meant. Its owner's group is the next best; without one it is only watched.
            let owner = new.selectors.owner.as_deref();
            new.selectors.group = owner.and_then(|owner| look_for.groups.of(owner)).map(ToOwned::to_owned);
            let instead = match &new.selectors.group {
                Some(own) => format!("its owner's, {own}, counts"),
                None => "it is only watched".to_owned(),
            };
            return Ok(Some(format!(
                "drowse.group: there is no [policy.group.{group}], no groups/{group}.members and no exemption of that group: {instead}"
            )));
        }
        let owner = new.selectors.owner.as_deref();
        new.selectors.group = owner.and_then(|owner| look_for.groups.of(owner)).map(ToOwned::to_owned);
        Ok(None)
    }

    /// It was not found. False: not settled yet.
    async fn miss(
        &self,
        id: &WorkerId,
        spec: &WorkerSpec,
        filter: Option<&str>,
        is_there: bool,
    ) -> Result<bool, ControlError> {
        let card = match self.get(id).await {
            Ok(card) => card,
            Err(ControlError::NotFound(_)) => return Ok(true),
            Err(other) => return Err(other),
        };
        if card.worker.status.kind() == StatusKind::Terminated {
            if self.0.clock.now().since(card.worker.status.since()) >= REMEMBER_FOR {
                self.remove(id, DISCOVERY).await?;
            } else if spec.listen.is_some() {
                // Nobody will ever answer there, and somebody else may wait for the port.
                let spec = WorkerSpec { listen: None, ..spec.clone() };
                self.patch(id, Patch { spec: Some(spec), ..Patch::default() }, DISCOVERY).await?;
                self.0.notices.books_changed();
                self.0.discovery.nudge();
            }
            return Ok(true);
        }
        if spec.found_by.as_deref() != filter {
            // Nobody looks for it any more, and it may well be there.
            self.unlist(id).await?;
            return Ok(true);
        }
        // It is gone, or cannot be followed any more: a look tells. What is gone is over in a moment, and then others may
        // have what was its own.
        self.0.look_at(id).await;
        Ok(is_there)
    }

    /// Journals what is wrong with a container, once.
    async fn tell_problems(
        &self,
        spec: &drowse_drivers::Spec,
        name: &str,
        problems: Vec<String>,
        worker: Option<&WorkerId>,
    ) -> Result<(), ControlError> {
        let more = problems.len().saturating_sub(MOST_PROBLEMS);
        let mut problems: Vec<String> = problems.iter().take(MOST_PROBLEMS).map(|text| plain(text)).collect();
        if more > 0 {
            problems.push(format!("and {more} more"));
        }
        let key = key_of(spec);
        if lock(&self.0.discovery.told).get(&key).is_some_and(|told| *told == problems) || problems.is_empty()
        {
            if problems.is_empty() {
                lock(&self.0.discovery.told).remove(&key);
            }
            return Ok(());
        }
        let name = plain(name);
        tracing::warn!(container = %name, problems = %problems.join("; "), "not as its labels say");
        let (clock, worker, doc) =
            (self.0.clock.clone(), worker.cloned(), json!({ "container": name, "problems": &problems }));
        let write = self.0.db.tx("discovery", Lane::Ordinary, move |tx| {
            tx.append(NewEvent { at: clock.now(), worker, kind: "discovery.problem".to_owned(), doc });
            Ok::<_, ControlError>(())
        });
        write.await?;
        self.0.notices.journal_advanced();
        lock(&self.0.discovery.told).insert(key, problems);
        Ok(())
    }
}

impl Shared {
    async fn look_at(self: &Arc<Self>, id: &WorkerId) {
        let (worker, clock) = (id.clone(), self.clock.clone());
        let _ = self.db.tx("nudge", Lane::Ordinary, move |tx| tx.nudge(&worker, clock.now())).await;
        self.queue.nudge();
    }
}

/// Who somebody is, for what has been told of them.
fn key_of(spec: &drowse_drivers::Spec) -> String {
    format!("{spec:?}")
}

/// The worker that was found in this container before, whatever that was called then.
fn known_as<'a>(found: &Found, books: &'a [(WorkerId, WorkerSpec)]) -> Option<&'a WorkerId> {
    let drowse_drivers::Spec::Docker(docker) = &found.spec else { return None };
    let drowse_drivers::docker::Container::Id(own) = &docker.container else { return None };
    let found = books.iter().find(|(_, spec)| {
        let is_it = matches!(&spec.driver, DriverSpec::Docker { container: Container::Id(id) } if id == own);
        spec.found_by.is_some() && is_it
    });
    found.map(|(id, _)| id)
}

/// Whether the file or the API has this container as a worker already: what was said by name goes first.
fn is_somebody(found: &Found, books: &[(WorkerId, WorkerSpec)]) -> bool {
    let drowse_drivers::Spec::Docker(docker) = &found.spec else { return false };
    let drowse_drivers::docker::Container::Id(own) = &docker.container else { return false };
    books.iter().filter(|(_, spec)| spec.found_by.is_none()).any(|(_, spec)| {
        let drowse_drivers::Spec::Docker(listed) = spec.driver.for_driver() else { return false };
        listed.container.is(own, &found.name, &found.labels)
    })
}

#[cfg(test)]
mod tests {
    use super::Discovery;

    #[test]
    fn an_engine_that_is_away_is_told_once_and_when_that_changes() {
        let discovery = Discovery::default();
        let away = || Some("no such socket".to_owned());
        let told = [None, away(), away(), Some("refused".to_owned()), away(), None, None];
        assert_eq!(told.map(|why| discovery.cannot(why)), [false, true, false, true, true, true, false]);
    }
}
