//! Robots at a door: let through while the worker is awake, and counted for nothing.

use std::sync::Arc;

use super::{Admitted, Door, Waiter};
use crate::pump::Letter;
use crate::route::Place;
use crate::router::Inside;
use crate::turned::Turned;

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
        if !router.is_awake(&self.worker).await || self.find(place).await.is_none() {
            self.tally.turned_away();
            return Err(Turned::Dormant);
        }
        let mut is_first = false;
        self.robots.send_modify(|robots| {
            is_first = robots.inside == 0;
            robots.inside += 1;
        });
        let robot = Robot { door: Arc::clone(self), round: self.robots.borrow().round };
        if is_first {
            let door = Arc::clone(self);
            router.spawn(async move |router| door.watch_robots(&router).await);
        }
        Ok(robot)
    }

    /// Nobody is held by robots: when the worker sleeps, they end. There is one that watches for as long as any is in.
    async fn watch_robots(self: &Arc<Self>, router: &Arc<Inside>) {
        let mut robots = self.robots.subscribe();
        tokio::select! {
            biased;
            _ = robots.wait_for(|robots| robots.inside == 0) => {}
            _ = router.control.slept(&self.worker, true) => {
                self.robots.send_modify(|robots| *robots = Robots { inside: 0, round: robots.round + 1 });
                router.post_all(|| Letter::Cut(Arc::clone(self)));
            }
        }
    }
}

/// The robots of a door.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Robots {
    /// Those who are in.
    inside: usize,
    /// Grows when all are cut.
    round: u64,
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
