//! Robots at a door: let through while the worker is awake, and counted for nothing.

use std::sync::Arc;
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_wire::control::Refused;

use super::{Admitted, Door, Waiter};
use crate::pump::Letter;
use crate::route::Place;
use crate::router::Inside;
use crate::turned::Turned;

/// How long a worker that was seen asleep is not looked at again for robots. Anybody may call itself one, and a look costs
/// the store several queries.
const ASLEEP_FOR: Duration = Duration::from_millis(100);

/// How long the worker is watched after the last robot: those who come one after the other cost the store nothing.
const WATCHED_FOR: Duration = Duration::from_secs(1);

/// How soon a look is repeated that told nothing.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl Door {
    /// A robot comes to a pump: it is let through while the worker is awake, and counts for nothing.
    pub(crate) fn robot_came(self: &Arc<Self>, robot: Waiter, place: Place) {
        let Some(router) = self.router.upgrade() else { return robot.turn(Turned::Ending) };
        let door = Arc::clone(self);
        router.spawn(async move |_| match door.admit_robot(place).await {
            Ok(admitted) => robot.pass(Admitted::Robot(admitted)),
            Err(why) => robot.turn(why),
        });
    }

    /// Lets a robot through, if the worker is awake and it is known where.
    pub(crate) async fn admit_robot(self: &Arc<Self>, place: Place) -> Result<Robot, Turned> {
        let Some(router) = self.router.upgrade() else { return Err(Turned::Ending) };
        if !self.is_awake_for_robots(&router).await || self.find(place).await.is_none() {
            self.tally.turned_away();
            return Err(Turned::Dormant);
        }
        let (mut was_watched, mut round) = (false, 0);
        self.robots.send_modify(|robots| {
            was_watched = std::mem::replace(&mut robots.is_watched, true);
            robots.inside += 1;
            round = robots.round;
        });
        let robot = Robot { door: Arc::clone(self), round };
        if !was_watched {
            let door = Arc::clone(self);
            router.spawn(async move |router| door.watch_robots(&router).await);
        }
        Ok(robot)
    }

    /// Whether the worker is awake. The control plane is asked only if nobody watches it who would have heard otherwise.
    async fn is_awake_for_robots(&self, router: &Inside) -> bool {
        let is_known = || {
            let guarded = self.lock();
            let is_kept = guarded.gate.is_awake() && !guarded.gate.is_falling() && router.is_valid();
            is_kept || self.robots.borrow().is_watched
        };
        if is_known() {
            return true;
        }
        // One looks, and those who come meanwhile hear what it saw.
        let mut asleep_at = self.asleep_at.lock().await;
        if is_known() {
            return true;
        }
        if asleep_at.is_some_and(|at| router.now() < at + ASLEEP_FOR) {
            return false;
        }
        let is_awake = router.is_awake(&self.worker).await;
        *asleep_at = (!is_awake).then(|| router.now());
        is_awake
    }

    /// Nobody is held by robots: when the worker sleeps, they end. There is one that watches for as long as any is in, and
    /// for a moment after.
    async fn watch_robots(self: &Arc<Self>, router: &Arc<Inside>) {
        let mut slept = router.control.slept(&self.worker, true);
        loop {
            let mut robots = self.robots.subscribe();
            let all_are_gone = async {
                let _ = robots.wait_for(|robots| robots.inside == 0).await;
                tokio::time::timeout(WATCHED_FOR, robots.wait_for(|robots| robots.inside > 0)).await.is_err()
            };
            tokio::select! {
                biased;
                told = &mut slept => {
                    if matches!(told, Err(ref why) if *why != Refused::NoSuchWorker) {
                        // Nobody can tell: as before, until somebody can.
                        slept = Box::pin(async {
                            tokio::time::sleep(LOOK_AGAIN).await;
                            router.control.slept(&self.worker, true).await
                        });
                        continue;
                    }
                    self.robots.send_modify(|robots| {
                        *robots = Robots { inside: 0, round: robots.round + 1, is_watched: false };
                    });
                    return router.post_all(|| Letter::Cut(Arc::clone(self)));
                }
                are_gone = all_are_gone => {
                    // One may have come at the last moment, and found it watched.
                    let mut is_over = false;
                    self.robots.send_modify(|robots| {
                        is_over = are_gone && robots.inside == 0;
                        robots.is_watched = !is_over;
                    });
                    if is_over {
                        return;
                    }
                }
            }
        }
    }
}

/// When a worker was last seen asleep for a robot.
pub(super) type AsleepAt = tokio::sync::Mutex<Option<Timestamp>>;

/// The robots of a door.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Robots {
    /// Those who are in.
    inside: usize,
    /// Grows when all are cut.
    round: u64,
    /// Somebody watches for the worker's sleep.
    is_watched: bool,
}

/// A robot that was let through. It counts for nothing.
#[derive(Debug)]
pub(crate) struct Robot {
    door: Arc<Door>,
    round: u64,
}

impl Robot {
    /// Waits until it has to end: the worker sleeps.
    pub(crate) async fn cut(&self) {
        let mut robots = self.door.robots.subscribe();
        // The sender lives as long as the door, and the door as long as this.
        let _ = robots.wait_for(|robots| robots.round > self.round).await;
    }

    /// It has to end.
    pub(crate) fn is_cut(&self) -> bool {
        self.door.robots.borrow().round > self.round
    }
}

impl Drop for Robot {
    fn drop(&mut self) {
        self.door.robots.send_if_modified(|robots| {
            let counts = robots.round == self.round && robots.inside > 0;
            robots.inside -= usize::from(counts);
            counts
        });
    }
}
