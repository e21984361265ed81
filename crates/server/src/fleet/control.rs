//! The fleet as the front door of the same process sees it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::refusal::Refusal;
use drowse_core::status::{Status, StatusKind};
use drowse_core::worker::Worker;
use drowse_drivers::Located;
use drowse_wire::control::{Answer, Awake, Control, Edge, Refused, Run, SleepTold, Slept, Standing, Way};

use super::gate::{LOOK_EVERY, Terms};
use super::{ControlError, Fleet, WakeRefused};
use crate::hands::LOOK_WITHIN;

impl Control for Fleet {
    fn connections<'a>(&'a self, worker: &'a WorkerId, edge: Edge) -> Answer<'a, Standing> {
        Box::pin(async move {
            match self.tell(worker, edge).await {
                Ok((worker, terms)) => Ok(standing(&worker, terms)),
                Err(ControlError::Unavailable(why)) => self.keep_edge(worker, edge, why).map_err(refused),
                Err(other) => Err(refused(other)),
            }
        })
    }

    fn head_start(&self, worker: &WorkerId, edge: Edge, counted: &mut dyn FnMut()) -> Option<Standing> {
        self.0.head_start(worker, edge, counted)
    }

    fn wake<'a>(&'a self, worker: &'a WorkerId) -> Answer<'a, Awake> {
        Box::pin(async move {
            let woken = match self.wake(worker).await {
                Err(WakeRefused::Control(ControlError::Unavailable(why))) => {
                    self.wake_without_store(worker, why).await
                }
                other => other,
            };
            awake(woken)
        })
    }

    fn slept<'a>(&'a self, worker: &'a WorkerId, is_falling: bool) -> Answer<'a, Slept> {
        Box::pin(async move {
            // Before the first look: what changes in between is not missed.
            let mut changes = self.0.notices.worker(worker);
            loop {
                let seen = match self.glance(worker).await {
                    // It was woken, and the books do not know yet.
                    Ok(_) if self.0.untold.contains(worker) => None,
                    Ok(seen) => Some(seen),
                    Err(ControlError::Unavailable(_)) => None,
                    Err(other) => return Err(refused(other)),
                };
                let Some(seen) = seen else {
                    // Nobody can tell: as before, until somebody can.
                    self.0.clock.sleep_until(self.0.clock.now() + LOOK_EVERY).await;
                    continue;
                };
                match seen.status {
                    // What falls asleep may yet be called back.
                    Status::Pausing { sleep, wake: None, .. } if !is_falling => {
                        return Ok(Slept::Falling { since: sleep.at });
                    }
                    Status::Running { .. } | Status::Draining { .. } | Status::Pausing { .. } => {
                        changes.next().await;
                    }
                    Status::Waking { .. } | Status::Provisioning { .. } | Status::Unknown { .. } => {
                        return Ok(Slept::Restarting);
                    }
                    Status::Paused { sleep, .. }
                    | Status::Stopping { sleep, .. }
                    | Status::Stopped { sleep, .. } => {
                        return Ok(Slept::Asleep { since: Some(sleep.at) });
                    }
                    Status::Terminating { .. } | Status::Terminated { .. } | Status::Failed { .. } => {
                        return Ok(Slept::Asleep { since: None });
                    }
                }
            }
        })
    }

    fn look<'a>(&'a self, worker: &'a WorkerId) -> Answer<'a, Standing> {
        Box::pin(async move {
            let (picture, _) = match self.picture(worker).await {
                Err(ControlError::Unavailable(why)) => return self.believed(worker, why).map_err(refused),
                other => other.map_err(refused)?,
            };
            let terms = Terms { connection_idle: picture.resolved.policy.connection_idle };
            Ok(standing(&picture.worker, terms))
        })
    }

    fn is_at_hand<'a>(&'a self, worker: &'a WorkerId) -> Answer<'a, bool> {
        Box::pin(async move {
            let seen = self.glance(worker).await.map_err(refused)?;
            Ok(matches!(seen.status.kind(), StatusKind::Running | StatusKind::Pausing | StatusKind::Paused))
        })
    }

    fn way<'a>(&'a self, worker: &'a WorkerId, port: u16) -> Answer<'a, Way> {
        Box::pin(async move {
            let spec = self.spec_of(worker).await.map_err(refused)?;
            let located = async {
                let driver = self.0.hands.of(worker, &spec).await?;
                self.0.hands.call("locate", driver.locate(worker, port, LOOK_WITHIN)).await
            };
            let Located { address, run, .. } = located.await.map_err(|error| refused(error.into()))?;
            Ok(Way { address, run: Arc::new(Stands(run)) })
        })
    }

    fn saw_bytes(&self, worker: &WorkerId) -> bool {
        self.0.saw_bytes(worker)
    }

    fn valid_until(&self) -> Timestamp {
        if self.0.cannot_write() {
            // The session that nobody can renew is our own: what was told holds as long as this process does.
            return Timestamp::from_micros(i64::MAX);
        }
        Timestamp::from_micros(self.0.session_until.load(Ordering::Acquire))
    }
}

/// A run, as its driver holds it.
#[derive(Debug)]
struct Stands(Arc<dyn drowse_drivers::Run>);

impl Run for Stands {
    fn stands(&self) -> bool {
        self.0.stands()
    }
}

pub(super) fn standing(worker: &Worker, terms: Terms) -> Standing {
    let is_awake = matches!(worker.status, Status::Running { .. });
    Standing { is_awake, boot: worker.boot.clone(), connection_idle: terms.connection_idle }
}

pub(super) fn awake(woken: Result<Worker, WakeRefused>) -> Result<Awake, Refused> {
    match woken {
        Ok(worker) => Ok(Awake { boot: worker.boot }),
        Err(WakeRefused::Refused(refusal)) => Err(refused(ControlError::Refused(refusal))),
        Err(WakeRefused::Control(error)) => Err(refused(error)),
        Err(WakeRefused::DidNotComeUp { status, message }) => {
            Err(Refused::DidNotComeUp { message: told(status, &message) })
        }
    }
}

pub(super) fn refused(error: ControlError) -> Refused {
    match error {
        ControlError::NotFound(_) => Refused::NoSuchWorker,
        ControlError::Refused(refusal) => {
            let message = refusal.to_string();
            let sleep = if let Refusal::WakeNotAllowed { sleep } = refusal {
                Some(SleepTold { by: sleep.by, reason: sleep.reason.code().to_owned(), at: sleep.at })
            } else {
                None
            };
            Refused::NotAllowed { message, sleep }
        }
        ControlError::NoSuch { .. }
        | ControlError::LeaseRefused(_)
        | ControlError::Conflict { .. }
        | ControlError::Pinned { .. }
        | ControlError::Invalid { .. }
        | ControlError::Conflicting { .. }
        | ControlError::Driver(_)
        | ControlError::Unavailable(_) => Refused::Unavailable { message: error.to_string() },
    }
}

fn told(status: StatusKind, message: &str) -> String {
    if message.is_empty() { format!("it is {status}") } else { format!("it is {status}: {message}") }
}
