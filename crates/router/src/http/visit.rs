//! That a request counts, from the gate to the last byte of its answer.

use std::net::IpAddr;
use std::sync::Arc;

use tokio::time::Instant;

use crate::door::{Door, Pass};
use crate::route::Route;
use crate::turned::Turned;

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
    Robot,
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
    /// `pass`: `None` for a robot.
    pub(super) fn new(
        door: Arc<Door>,
        route: Arc<Route>,
        (from, may_wake): (IpAddr, bool),
        pass: Option<Pass>,
    ) -> Self {
        let presence = pass.map_or(Presence::Robot, Presence::Counted);
        Self { door, route, from, may_wake, presence, last_byte_at: Instant::now() }
    }

    /// Waits until something happens to it.
    pub(super) async fn disturbed(&self) -> Disturbed {
        match &self.presence {
            Presence::Counted(pass) => {
                let silence = async {
                    match self.door.connection_idle() {
                        Some(idle) => tokio::time::sleep_until(self.last_byte_at + idle).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    () = pass.cut() => Disturbed::Cut,
                    () = silence => Disturbed::Silence,
                }
            }
            Presence::Silent => std::future::pending().await,
            Presence::Robot => {
                self.door.sleeps().await;
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
    pub(super) async fn be_present(&mut self) -> Result<(), Turned> {
        if let Presence::Silent = self.presence {
            let wait_for = self.route.rules.wait_for;
            let knocked = self.door.knock(self.from, &self.route.target, self.may_wake, wait_for);
            self.presence = Presence::Counted(knocked.settled().await?);
        }
        if let Presence::Counted(pass) = &self.presence {
            pass.flows().await;
        }
        Ok(())
    }

    /// Bytes went through.
    pub(super) fn moved(&mut self, to_worker: u64, to_client: u64) {
        self.last_byte_at = Instant::now();
        if let Presence::Counted(pass) = &self.presence {
            pass.moved(to_worker, to_client);
        }
    }

    /// Enters anew: the worker did not pick up, and has to prove itself again. It counts all the while.
    pub(super) async fn enter_again(&mut self, wait_for: std::time::Duration) -> Result<(), Turned> {
        self.door.doubt(&self.route.target);
        if let Presence::Robot = self.presence {
            return Err(Turned::Late { waited_for: std::time::Duration::ZERO });
        }
        let knocked = self.door.knock(self.from, &self.route.target, self.may_wake, wait_for);
        self.presence = Presence::Counted(knocked.settled().await?);
        Ok(())
    }

    /// What it counted by, for whoever goes on with it.
    pub(super) fn into_pass(self) -> Option<Pass> {
        match self.presence {
            Presence::Counted(pass) => Some(pass),
            Presence::Silent | Presence::Robot => None,
        }
    }
}
