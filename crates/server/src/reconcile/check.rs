//! One check of one worker: look, read, judge, and one transaction that writes all of it or nothing.
//!
//! Before the transaction nothing is decided, and between the look and the transaction anything may happen. So
//! the transaction locks the worker, finds out whether the claim, the status, the policy, the holds and the
//! evidence are still what was judged, and only then acts. What was overtaken is dropped, and the worker is due
//! again at once.

use std::sync::Arc;
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::event::Event;
use drowse_core::hold::KeepAlive;
use drowse_core::id::WorkerId;
use drowse_core::machine::Answer;
use drowse_core::signal::DriverKind;
use drowse_core::status::{FailCause, Status, StatusKind, WakeFrom};
use drowse_core::worker::{Power, Worker};
use drowse_drivers::{Error, Seen};
use drowse_store::{Claimed, Finished, Lane};

use super::begin::Loaded;
use super::effects::RETRY;
use super::signals;
use crate::doubts::Doubt;
use crate::fleet::{ControlError, Detection, Terms};
use crate::hands::LOOK_WITHIN;
use crate::picture::Picture;
use crate::shared::Shared;
use crate::spec::WorkerSpec;

/// How soon a worker is looked at again that nobody can see.
pub(super) const LOOK_FOR: Duration = Duration::from_secs(15);

/// How soon a worker is looked at again about which something is still to be written down.
const AGAIN: Duration = Duration::from_secs(1);

impl Shared {
    /// One check, by a task that nobody gives up half-way. `None`: it was overtaken, and comes again.
    pub(super) async fn check(
        self: &Arc<Self>,
        claimed: &Claimed,
        loaded: Loaded,
    ) -> Result<Option<Detection>, ControlError> {
        let Loaded { picture, count, lane } = loaded;
        let Some(mut picture) = picture.map(|picture| *picture) else { return Ok(None) };
        let began_at = picture.began_at;
        self.metrics.count(|counted| counted.checks += 1);
        let spec: WorkerSpec = serde_json::from_value(picture.record.spec.clone())
            .map_err(|error| ControlError::invalid("spec", error.to_string()))?;
        let terms = Terms { connection_idle: picture.resolved.policy.connection_idle };
        self.untold.believe(&picture.worker, &spec, terms, count, began_at);
        match picture.worker.status.kind() {
            StatusKind::Pausing | StatusKind::Waking | StatusKind::Stopping | StatusKind::Terminating => {
                return self.check_transition(claimed, &picture, &spec).await;
            }
            StatusKind::Draining => return self.check_drain(claimed, &picture, &spec).await,
            StatusKind::Terminated => {
                // That there is no such worker is said by whoever looks for it.
                if !self.doubts.is_about_itself(&claimed.worker) {
                    self.doubt(&claimed.worker, &picture.doubted).await;
                }
                self.finish(claimed, &picture, None).await?;
                return Ok(None);
            }
            StatusKind::Provisioning
            | StatusKind::Running
            | StatusKind::Paused
            | StatusKind::Stopped
            | StatusKind::Failed
            | StatusKind::Unknown => {}
        }
        let seen = match self.look(&picture, &spec).await {
            Looked::Seen(seen) if is_news(&picture.worker, &seen) => {
                return self.observed(claimed, &picture, seen).await;
            }
            Looked::Seen(seen) => Some(seen),
            Looked::NotMade { message } => {
                self.metrics.count(|counted| counted.driver_errors += 1);
                return self.not_made(claimed, &picture, message).await;
            }
            Looked::Unseen(doubt) => {
                self.metrics.count(|counted| counted.driver_errors += 1);
                signals::doubt_all(&mut picture, &doubt);
                None
            }
        };
        picture.is_seen = seen.is_some();
        match picture.worker.status.kind() {
            StatusKind::Running if seen.is_some() => {
                self.read_signals(&mut picture, &spec).await;
                self.read_keep_alive(&mut picture, &spec).await;
                self.find_ports(&mut picture, &spec).await;
            }
            StatusKind::Running => self.fail_all(&mut picture),
            StatusKind::Provisioning | StatusKind::Unknown | StatusKind::Failed => {
                self.doubt(&claimed.worker, &picture.doubted).await;
                return self.unseen(claimed, &picture).await;
            }
            // Somebody who was in it may want it kept, and its file says so after its run too.
            StatusKind::Paused | StatusKind::Stopped
                if seen.is_some() && picture.resolved.policy.terminate_after.is_some() =>
            {
                let policy = &picture.resolved.policy;
                let found = self.look_for_keep_alive(&claimed.worker, &spec, policy).await;
                picture.is_seen = found != KeepAlive::Unreadable;
                picture.is_kept_alive(found);
            }
            StatusKind::Paused
            | StatusKind::Stopped
            | StatusKind::Pausing
            | StatusKind::Waking
            | StatusKind::Stopping
            | StatusKind::Draining
            | StatusKind::Terminating
            | StatusKind::Terminated => {}
        }
        // Of what sleeps nothing is read, and so nothing of it is in doubt but what the driver does not say.
        self.doubt(&claimed.worker, &picture.doubted).await;
        Box::pin(self.decide(claimed, picture, lane)).await
    }

    /// Looks at the driver, and makes what is to be made.
    async fn look(&self, picture: &Picture, spec: &WorkerSpec) -> Looked {
        let worker = &picture.worker;
        let began_at = self.clock.now();
        let looked = self.hands.look(&worker.id, spec).await;
        let seen = match looked {
            Ok(seen) => seen,
            Err(Error::Gone) => {
                let power = Power::Gone;
                Seen { power, began_at, boot: None, boot_started_at: None, dated_at: None, exit_code: None }
            }
            Err(error) => return Looked::Unseen(Doubt::from(&error)),
        };
        // What Drowse makes itself, it makes now: it is on the books because somebody wants it to run.
        let is_to_be_made = worker.status.kind() == StatusKind::Provisioning && seen.power == Power::Stopped;
        if is_to_be_made && is_made_by_us(worker.driver) {
            return self.make(&worker.id, spec).await;
        }
        Looked::Seen(seen)
    }

    async fn make(&self, id: &WorkerId, spec: &WorkerSpec) -> Looked {
        let made = async {
            let driver = self.hands.of(id, spec).await?;
            self.hands.call("make", driver.start(id, LOOK_WITHIN)).await?;
            self.hands.look(id, spec).await
        };
        match made.await {
            Ok(seen) => Looked::Seen(seen),
            Err(error @ (Error::Refused { .. } | Error::Gone | Error::Unsupported { .. })) => {
                Looked::NotMade { message: error.to_string() }
            }
            Err(error @ (Error::Unreachable { .. } | Error::Denied { .. } | Error::TimedOut { .. })) => {
                Looked::Unseen(Doubt::from(&error))
            }
        }
    }

    /// The driver refused to make it. The rules say how often it is tried again.
    async fn not_made(
        self: &Arc<Self>,
        claimed: &Claimed,
        picture: &Picture,
        message: String,
    ) -> Result<Option<Detection>, ControlError> {
        let event = Event::MakeRefused { generation: picture.worker.generation, message };
        let (stamp, epoch) = (claimed.clone(), picture.book.epoch());
        self.change("not-made", Lane::Ordinary, &claimed.worker, move |change| {
            match change.apply(&event) {
                Ok(_) | Err(ControlError::Refused(_)) => {}
                Err(other) => return Err(other),
            }
            let generation = change.worker().generation;
            change.tx.finish_check(&stamp, generation, None, epoch, Some(change.now + RETRY), change.now)?;
            Ok(())
        })
        .await?;
        Ok(None)
    }

    /// What was seen is not what we believe.
    async fn observed(
        self: &Arc<Self>,
        claimed: &Claimed,
        picture: &Picture,
        seen: Seen,
    ) -> Result<Option<Detection>, ControlError> {
        if self.untold.contains(&claimed.worker) {
            // It was us, and that is about to be written down.
            self.finish(claimed, picture, Some(self.clock.now() + AGAIN)).await?;
            return Ok(None);
        }
        let settled_at = picture.worker.status.since() + picture.worker.can.settle_for;
        let events = told_by(&picture.worker, &seen);
        let epoch = picture.book.epoch();
        let interval = picture.interval();
        let stamp = claimed.clone();
        self.change("observed", Lane::Ordinary, &claimed.worker, move |change| {
            let mut outcome = Ok(Answer::AlreadyTrue);
            for event in &events {
                outcome = outcome.and_then(|_| change.apply(event));
            }
            let next = match outcome {
                // Now we believe what we see, and the rest of the check follows at once.
                Ok(_) if change.worker().suspicion.is_none() => change.now,
                Ok(_) => change.now + interval,
                // Too early to tell: the change before has not settled.
                Err(ControlError::Refused(_)) => settled_at.max(change.now + Duration::from_millis(100)),
                Err(other) => return Err(other),
            };
            let worker = change.worker();
            let next = worker.status.deadline().map_or(next, |deadline| next.min(deadline));
            change.tx.finish_check(&stamp, worker.generation, None, epoch, Some(next), change.now)?;
            Ok(())
        })
        .await?;
        Ok(None)
    }

    /// Nobody can see it, and nothing is known that could be judged.
    async fn unseen(
        self: &Arc<Self>,
        claimed: &Claimed,
        picture: &Picture,
    ) -> Result<Option<Detection>, ControlError> {
        let generation = picture.worker.generation;
        let epoch = picture.book.epoch();
        let is_provisioning = picture.worker.status.kind() == StatusKind::Provisioning;
        let stamp = claimed.clone();
        self.change("unseen", Lane::Ordinary, &claimed.worker, move |change| {
            let deadline = change.worker().status.deadline();
            if is_provisioning && deadline.is_some_and(|deadline| change.now >= deadline) {
                match change.apply(&Event::DriverSilent { generation }) {
                    Ok(_) | Err(ControlError::Refused(_)) => {}
                    Err(other) => return Err(other),
                }
            }
            let next = change.now + LOOK_FOR;
            let generation = change.worker().generation;
            change.tx.finish_check(&stamp, generation, None, epoch, Some(next), change.now)?;
            Ok(())
        })
        .await?;
        Ok(None)
    }

    /// Ends a check that found nothing to write.
    pub(super) async fn finish(
        self: &Arc<Self>,
        claimed: &Claimed,
        picture: &Picture,
        next: Option<Timestamp>,
    ) -> Result<Finished, ControlError> {
        let (stamp, clock) = (claimed.clone(), self.clock.clone());
        let (generation, epoch) = (picture.worker.generation, picture.book.epoch());
        let finished: Result<_, ControlError> = self
            .db
            .tx("finish", Lane::Ordinary, move |tx| {
                Ok(tx.finish_check(&stamp, generation, None, epoch, next, clock.now())?)
            })
            .await;
        self.queue.nudge();
        finished
    }
}

/// What a look came to.
enum Looked {
    Seen(Seen),
    /// It is to be made, and the driver refuses.
    NotMade {
        message: String,
    },
    /// The driver does not answer, or cannot say.
    Unseen(Doubt),
}

/// What the rules are told of a look.
///
/// A run of ours whose exit code is known has exited, and was not stopped from outside: the look was only quicker
/// than the driver's hint. One that was never seen alive ran all the same.
fn told_by(worker: &Worker, seen: &Seen) -> Vec<Event> {
    let observed = Event::Observed(seen.observation(worker.generation));
    let (Power::Stopped, Some(code), Some(boot)) = (seen.power, seen.exit_code, seen.boot.clone()) else {
        return vec![observed];
    };
    match &worker.status {
        // What others tell of an end does not tell whose it was.
        Status::Running { .. }
            if worker.driver == DriverKind::Process && worker.boot.as_ref() == Some(&boot) =>
        {
            vec![Event::Exited { boot, code }]
        }
        Status::Provisioning { .. } if is_made_by_us(worker.driver) => {
            let ran = Seen { power: Power::Running, dated_at: seen.boot_started_at, ..seen.clone() };
            vec![Event::Observed(ran.observation(worker.generation)), Event::Exited { boot, code }]
        }
        Status::Running { .. }
        | Status::Provisioning { .. }
        | Status::Pausing { .. }
        | Status::Paused { .. }
        | Status::Waking { .. }
        | Status::Stopping { .. }
        | Status::Stopped { .. }
        | Status::Draining { .. }
        | Status::Terminating { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => vec![observed],
    }
}

/// Whether what was seen has to be told to the rules.
fn is_news(worker: &Worker, seen: &Seen) -> bool {
    let is_other_run = seen.boot.is_some() && seen.boot != worker.boot;
    let has_suspicion = worker.suspicion.is_some();
    match &worker.status {
        Status::Running { .. } => seen.power != Power::Running || is_other_run || has_suspicion,
        Status::Paused { .. } => seen.power != Power::Paused || has_suspicion,
        Status::Stopped { .. } => seen.power != Power::Stopped || has_suspicion,
        Status::Failed { cause: FailCause::CrashLoop, .. } => {
            !matches!(seen.power, Power::Stopped | Power::Paused) || has_suspicion
        }
        // That it does not run is what failed: there is nothing to go back to.
        Status::Failed { cause: FailCause::Refused, .. } => {
            let was_to_start = worker.abandoned.as_ref().is_none_or(|abandoned| {
                matches!(abandoned.was, Status::Waking { from: WakeFrom::Stopped, sleep: None, .. })
            });
            seen.power != Power::Stopped || !was_to_start || !is_made_by_us(worker.driver)
        }
        Status::Provisioning { .. } | Status::Unknown { .. } => true,
        Status::Pausing { .. }
        | Status::Waking { .. }
        | Status::Stopping { .. }
        | Status::Draining { .. }
        | Status::Terminating { .. }
        | Status::Terminated { .. } => false,
    }
}

/// Whether a worker of this kind comes into being by our start; the others are made elsewhere and found here.
pub(super) const fn is_made_by_us(driver: DriverKind) -> bool {
    match driver {
        DriverKind::Process | DriverKind::Qemu | DriverKind::Sim => true,
        DriverKind::Docker | DriverKind::Ec2 => false,
    }
}
