//! Ending a run: the container's own stop signal, grace, SIGKILL.
//!
//! Not by the engine's stop, which would signal again and count from the start whenever it is asked again. What is
//! due when is [`StopPlan`]'s to say; the plan is written down with the intent it belongs to. The engine takes a stop
//! signal for what it is: it thaws the container so that it is heard, and does not restart it afterwards.

use std::sync::Arc;
use std::time::Duration;

use drowse_core::grace::{Action, Phase, StopPlan};
use drowse_core::id::{BootId, IntentId};
use drowse_core::worker::Power;
use tokio::time::Instant;

use super::Inside;
use super::entry::Entry;
use super::events;
use super::freeze::mark_thawed;
use super::look::Look;
use super::record::Stopping;
use crate::driver::{Acted, Error};

const KILL: &str = "SIGKILL";

/// Whether this is not the run that is meant.
pub(super) fn is_another(look: &Look, run: Option<&BootId>) -> bool {
    run.zip(look.seen.boot.as_ref()).is_some_and(|(meant, found)| meant != found)
}

/// Ends its run, if there is one, and if it is the one that is meant.
pub(super) async fn stop(
    inside: &Arc<Inside>,
    entry: &Arc<Entry>,
    intent: IntentId,
    grace: Duration,
    run: Option<&BootId>,
) -> Result<Acted, Error> {
    let look = entry.look(inside).await?;
    let boot = match (look.seen.power, look.seen.boot.clone()) {
        (Power::Running | Power::Paused, Some(boot)) => boot,
        (Power::Running | Power::Paused | Power::Stopped | Power::Gone, _) => {
            return Ok(Acted::AlreadyTrue(look.seen));
        }
    };
    // The same intent has begun to end another run: that one is over, and whoever began this one wants it.
    let begun = entry.record().stop.filter(|begun| begun.intent == intent);
    if is_another(&look, run) || begun.is_some_and(|begun| begun.boot != boot) {
        return Ok(Acted::AlreadyTrue(look.seen));
    }
    let mut ending = Ending { inside, entry, is_over: false };
    let mut plan = carry_on(inside, entry, intent, grace, &look, &boot).await?;
    // The grace is waited for on the monotonic clock: a jump of the wall clock must not cut it short.
    let kill_at = plan.deadline().unwrap_or(inside.now());
    let grace_left = kill_at.since(inside.now());
    let ended = inside.engine.ended(&look.id);
    if let Ok(outcome) = tokio::time::timeout_at(Instant::now() + grace_left, ended).await {
        unless_gone(outcome)?;
    } else {
        if plan.tick(kill_at.max(inside.now())) == Some(Action::Kill) {
            let _ = entry.note(|record| record.stop = Some(Stopping { boot, intent, plan }));
        }
        unless_over(inside, entry, inside.engine.kill(&look.id, KILL).await).await?;
        unless_gone(inside.engine.ended(&look.id).await)?;
    }
    let seen = entry.look(inside).await?.seen;
    if let Some(boot) = &seen.boot {
        entry.tell(boot);
    }
    ending.is_over = true;
    let _ = entry.note(|record| record.stop = None);
    Ok(Acted::Done(seen))
}

/// Begins the plan of this intent or goes on with it, up to where grace runs or is over.
async fn carry_on(
    inside: &Inside,
    entry: &Entry,
    intent: IntentId,
    grace: Duration,
    look: &Look,
    boot: &BootId,
) -> Result<StopPlan, Error> {
    let is_frozen = look.seen.power == Power::Paused;
    let begun = entry.record().stop.filter(|begun| begun.intent == intent && begun.boot == *boot);
    let (mut plan, is_to_be_asked) = match begun {
        None => (StopPlan::begin(is_frozen, grace, inside.now()).0, true),
        Some(begun) => (begun.plan, begun.plan.phase == Phase::Thawing),
    };
    if is_to_be_asked {
        // While frozen, the signal waits in the queue and is the first thing that it hears.
        unless_over(inside, entry, inside.engine.kill(&look.id, &look.stop_signal).await).await?;
    }
    if is_frozen {
        // The engine thaws what it sends a stop signal to; whatever it did, nobody hears anything while frozen.
        let _ = inside.engine.unpause(&look.id).await;
        if entry.peek(inside).await?.seen.power == Power::Paused {
            return Err(Error::refused("it cannot be thawed"));
        }
        mark_thawed(entry);
    }
    // Its grace begins now.
    let _ = plan.thawed(inside.now());
    // Written down after the signal: should Drowse die in between, it hears it twice; the other way round it would
    // never hear it and be killed. If it cannot be written, the stop goes on all the same.
    let stopping = Stopping { boot: boot.clone(), intent, plan };
    let _ = entry.note(|record| record.stop = Some(stopping));
    Ok(plan)
}

/// That it ended before it could be signalled is what was wanted.
async fn unless_over(inside: &Inside, entry: &Entry, outcome: Result<(), Error>) -> Result<(), Error> {
    let Err(error @ Error::Refused { .. }) = outcome else { return unless_gone(outcome) };
    match entry.peek(inside).await?.seen.power {
        Power::Stopped | Power::Gone => Ok(()),
        Power::Running | Power::Paused => Err(error),
    }
}

fn unless_gone(outcome: Result<(), Error>) -> Result<(), Error> {
    match outcome {
        Err(Error::Gone) => Ok(()),
        other => other,
    }
}

/// While it lives, the end of the run is ours to tell.
struct Ending<'a> {
    inside: &'a Arc<Inside>,
    entry: &'a Arc<Entry>,
    /// It was told.
    is_over: bool,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            // It may have ended while its caller lost patience: the listener kept quiet for our sake. The caller still has
            // its turn to act, which ends with the next drop.
            events::examine_in_turn(self.inside, self.entry);
        }
    }
}
