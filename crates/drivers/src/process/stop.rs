//! Ending a run: SIGTERM, grace, SIGKILL, for every process of it.
//!
//! What is due when is [`StopPlan`]'s to say; the plan is written down with the intent it belongs to, so that a
//! Drowse that was killed in the middle goes on where it was: no second SIGTERM, no second grace.
//!
//! SIGTERM goes to all processes and not to the first alone: a shell that is told to end does not tell the
//! program it waits for, which would then be killed without ever having heard.

use std::sync::Arc;
use std::time::Duration;

use drowse_core::grace::{Action, Phase, StopPlan};
use drowse_core::id::IntentId;
use drowse_core::worker::Power;
use rustix::process::Signal;
use tokio::time::Instant;

use super::Inside;
use super::cage::{Cage, Ice};
use super::entry::{Entry, cannot, refused};
use super::freeze::mark_thawed;
use super::identity::{self, Identity};
use super::record::Stopping;
use super::wait::until;
use crate::driver::{Acted, Error};

/// Ends its run, if there is one or anything left of one.
pub(super) async fn stop(
    inside: &Inside,
    entry: &Arc<Entry>,
    intent: IntentId,
    grace: Duration,
) -> Result<Acted, Error> {
    let seen = entry.look(inside.now())?;
    let Some((main, cage)) = entry.whereabouts() else { return Ok(Acted::AlreadyTrue(seen)) };
    let held = cage.hold(&main).map_err(cannot("hold on to it"))?;
    let is_over = || -> Result<bool, Error> {
        let is_empty = cage.is_empty(&main).map_err(cannot("look at it"))?;
        let held_ended = held.iter().all(|pidfd| identity::has_ended(pidfd).unwrap_or(false));
        Ok(!entry.is_alive(inside.now()) && is_empty && held_ended)
    };
    if seen.power == Power::Gone || is_over()? {
        let _ = cage.remove();
        return Ok(Acted::AlreadyTrue(entry.look(inside.now())?));
    }
    let ending = Ending::begin(inside, entry);
    let mut plan = carry_on(inside, entry, intent, grace, &main, &cage).await?;

    // The grace is waited for on the monotonic clock: a jump of the wall clock must not cut it short.
    let kill_at = plan.deadline().unwrap_or(inside.now());
    let kill_due = Instant::now() + kill_at.since(inside.now());
    until(|| {
        let is_over = is_over()?;
        if !is_over && Instant::now() >= kill_due {
            if plan.tick(kill_at.max(inside.now())) == Some(Action::Kill) {
                let _ = entry.note(|record| record.stop = Some(Stopping { intent, plan }));
            }
            // Again each time: a fork may have slipped through.
            cage.kill(&main).map_err(refused("kill it"))?;
            for pidfd in &held {
                identity::send(pidfd, Signal::KILL).map_err(refused("kill it"))?;
            }
        }
        Ok(is_over)
    })
    .await?;
    ending.is_told();
    // A zombie may keep it for a moment; the next start or stop sees to it.
    let _ = cage.remove();
    let _ = entry.note(|record| record.stop = None);
    Ok(Acted::Done(entry.look(inside.now())?))
}

/// Begins the plan of this intent or goes on with it, up to where grace runs or is over.
async fn carry_on(
    inside: &Inside,
    entry: &Entry,
    intent: IntentId,
    grace: Duration,
    main: &Identity,
    cage: &Cage,
) -> Result<StopPlan, Error> {
    let is_frozen = cage.ice(main).map_err(cannot("look at it"))? != Ice::Thawed;
    let begun = entry.lock().run.as_ref().and_then(|run| run.record.stop);
    let (mut plan, action) = match begun.filter(|begun| begun.intent == intent) {
        None => {
            let (plan, action) = StopPlan::begin(is_frozen, grace, inside.now());
            (plan, Some(action))
        }
        Some(Stopping { plan, .. }) => match plan.phase {
            Phase::Thawing => (plan, Some(Action::Thaw)),
            Phase::Waiting { .. } | Phase::Killing { .. } => (plan, None),
        },
    };
    let term = || cage.signal(main, Signal::TERM).map_err(refused("signal it"));
    match action {
        // While frozen, SIGTERM waits in the queue and is the first thing that it hears.
        Some(Action::Thaw | Action::Term) => term()?,
        Some(Action::Kill) | None => {}
    }
    // Whatever the plan says: nobody hears anything while frozen.
    if is_frozen {
        until(|| {
            cage.thaw(main).map_err(refused("thaw it"))?;
            Ok(cage.ice(main).map_err(cannot("look at it"))? == Ice::Thawed)
        })
        .await?;
        mark_thawed(inside, entry);
    }
    // Its grace begins now. The SIGTERM that this asks for was in the queue.
    let _ = plan.thawed(inside.now());
    // Written down after the signal: should Drowse die in between, it hears SIGTERM twice; the other way
    // round it would never hear it and be killed. If it cannot be written, the stop goes on all the same.
    let _ = entry.note(|record| record.stop = Some(Stopping { intent, plan }));
    Ok(plan)
}

/// Removes what an earlier run left in its cage and in the one to come.
pub(super) async fn sweep(entry: &Entry, cage: &Cage) -> Result<(), Error> {
    let earlier = entry.whereabouts();
    // For a cgroup it does not matter who was first in it.
    let nobody = Identity { machine_boot: String::new(), pid: 0, start_ticks: 0 };
    let main = earlier.as_ref().map_or(&nobody, |(main, _)| main);
    for cage in earlier.iter().map(|(_, cage)| cage).chain([cage]) {
        until(|| {
            if !cage.is_empty(main).map_err(cannot("look at it"))? {
                cage.kill(main).map_err(refused("end what an earlier run left behind"))?;
                return Ok(false);
            }
            cage.remove().map_err(refused("remove its old cgroup"))
        })
        .await?;
    }
    Ok(())
}

/// While it lives, the end of the run is ours to tell.
struct Ending<'a> {
    inside: &'a Inside,
    entry: &'a Entry,
}

impl<'a> Ending<'a> {
    fn begin(inside: &'a Inside, entry: &'a Entry) -> Self {
        entry.lock().is_ending = true;
        Self { inside, entry }
    }

    fn is_told(&self) {
        if let Some(run) = self.entry.lock().run.as_mut() {
            run.is_told = true;
        }
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.entry.lock().is_ending = false;
        // It ended while its caller lost patience: the watch kept quiet for our sake.
        if let Some(hint) = self.entry.tell_end(self.inside.now()) {
            self.inside.hints.push(hint);
        }
    }
}
