//! That a request counts, from the gate to the last byte of its answer.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use crate::door::{Admitted, Door, Pass, Robot};
use crate::route::Route;
use crate::turned::Turned;

/// How soon it is looked again whether what the control plane was told holds.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// How long somebody who is cut waits to be told why.
const TOLD_WITHIN: Duration = Duration::from_secs(10);

/// A request that was let through.
#[derive(Debug)]
pub(super) struct Visit {
    pub(super) door: Arc<Door>,
    pub(super) route: Arc<Route>,
    pub(super) from: IpAddr,
    pub(super) may_wake: bool,
    presence: Presence,
    last_byte_at: Instant,
}

/// Whether it counts.
#[derive(Debug)]
enum Presence {
    Counted(Pass),
    /// It has been silent for so long that it does not.
    Silent,
    /// It never does.
    Robot(Robot),
}

/// Why bytes do not move any more.
#[derive(Debug)]
pub(super) enum Stopped {
    /// The worker sleeps.
    Cut,
    /// It was asked for again after a silence, and did not come.
    Turned(Turned),
}

/// What may happen to somebody who is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disturbed {
    /// The worker sleeps although they are there: they end.
    Cut,
    /// They have been silent for too long to count.
    Silence,
}

impl Visit {
    pub(super) fn new(
        door: Arc<Door>,
        route: Arc<Route>,
        (from, may_wake): (IpAddr, bool),
        admitted: Admitted,
    ) -> Self {
        let presence = match admitted {
            Admitted::Counted(pass) => Presence::Counted(pass),
            Admitted::Robot(robot) => Presence::Robot(robot),
        };
        Self { door, route, from, may_wake, presence, last_byte_at: Instant::now() }
    }

    /// Waits until something happens to it.
    pub(super) async fn disturbed(&self, may_fall_silent: bool) -> Disturbed {
        match &self.presence {
            Presence::Counted(pass) => {
                let silence = async {
                    match self.door.connection_idle() {
                        Some(idle) if may_fall_silent => {
                            tokio::time::sleep_until(self.last_byte_at + idle).await;
                        }
                        Some(_) | None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    () = pass.cut() => Disturbed::Cut,
                    () = silence => Disturbed::Silence,
                }
            }
            Presence::Silent => std::future::pending().await,
            Presence::Robot(robot) => {
                robot.cut().await;
                Disturbed::Cut
            }
        }
    }

    /// It counts no more, until it says something.
    pub(super) fn fall_silent(&mut self) {
        if let Presence::Counted(pass) = std::mem::replace(&mut self.presence, Presence::Silent) {
            pass.fell_silent();
        }
    }

    /// Sees to it that it counts and bytes may move: whoever was silent enters anew.
    pub(super) async fn be_present(&mut self) -> Result<(), Stopped> {
        if let Presence::Silent = self.presence {
            let wait_for = self.route.rules.wait_for;
            let knocked = self.door.knock(self.from, &self.route.target, self.may_wake, wait_for);
            self.presence = Presence::Counted(knocked.settled().await.map_err(Stopped::Turned)?);
        }
        if let Presence::Counted(pass) = &self.presence {
            // The housekeeper stops what flows, a moment after what it rests on is over; this is that moment.
            while !self.door.is_valid() && !pass.is_cut() {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            pass.flows().await;
            if pass.is_cut() {
                return Err(Stopped::Cut);
            }
        }
        Ok(())
    }

    /// Not a byte of anybody moves just now.
    pub(super) fn is_held_back(&self) -> bool {
        self.door.is_stopped.load(Ordering::Acquire) || !self.door.is_valid()
    }

    /// It is not silent, although no byte went through.
    pub(super) fn stirs(&mut self) {
        self.last_byte_at = Instant::now();
    }

    /// Bytes went through.
    pub(super) fn moved(&mut self, to_worker: u64, to_client: u64) {
        self.stirs();
        if let Presence::Counted(pass) = &self.presence {
            pass.moved(to_worker, to_client);
        }
    }

    /// Enters anew: the worker did not pick up, and has to prove itself again. It counts all the while.
    pub(super) async fn enter_again(&mut self, wait_for: Duration) -> Result<(), Turned> {
        self.door.doubt(&self.route.target);
        if let Presence::Robot(_) = self.presence {
            return Err(Turned::Late { waited_for: Duration::ZERO, is_up: true });
        }
        let knocked = self.door.knock(self.from, &self.route.target, self.may_wake, wait_for);
        self.presence = Presence::Counted(knocked.settled().await?);
        Ok(())
    }

    /// The worker hung up without a word. If it is being put to sleep, that was not its own doing, and this is why.
    pub(super) async fn hung_up(&mut self) -> Option<Turned> {
        let router = self.door.router.upgrade()?;
        let looked = router.control.look(self.door.worker()).await;
        if looked.is_ok_and(|standing| !standing.is_awake) { Some(self.cut().await) } else { None }
    }

    /// They end before they are answered: why.
    pub(super) async fn ended(&mut self, stopped: Stopped) -> Turned {
        match stopped {
            Stopped::Cut => self.cut().await,
            Stopped::Turned(why) => why,
        }
    }

    /// They have to end before they are answered: why.
    async fn cut(&mut self) -> Turned {
        match std::mem::replace(&mut self.presence, Presence::Silent) {
            Presence::Robot(_) => return Turned::Dormant,
            // Not before it sleeps: whoever comes while it falls asleep calls it back.
            Presence::Counted(pass) if tokio::time::timeout(TOLD_WITHIN, pass.cut()).await.is_err() => {
                return Turned::PutToSleep;
            }
            Presence::Counted(_) | Presence::Silent => {}
        }
        // As whoever comes now, except that nobody is woken for what would be an answer to nothing.
        match self.door.knock(self.from, &self.route.target, false, TOLD_WITHIN).settled().await {
            Err(Turned::NotAllowed { sleep: None, .. } | Turned::Late { .. }) | Ok(_) => Turned::PutToSleep,
            Err(why) => why,
        }
    }

    /// What it counted by, for whoever goes on with it.
    pub(super) fn into_pass(self) -> Option<Pass> {
        match self.presence {
            Presence::Counted(pass) => Some(pass),
            Presence::Silent | Presence::Robot(_) => None,
        }
    }
}
