//! Freezing and thawing, confirmed.

use std::sync::Arc;

use drowse_core::worker::Power;

use super::Inside;
use super::cage::Ice;
use super::entry::{Entry, cannot, refused};
use super::wait::until;
use crate::driver::{Acted, Error};

/// Freezes it where it is.
pub(super) async fn freeze(inside: &Inside, entry: &Arc<Entry>) -> Result<Acted, Error> {
    let seen = entry.look(inside.now())?;
    let (main, cage) = match (seen.power, entry.whereabouts()) {
        (Power::Gone, _) => return Err(Error::Gone),
        (Power::Running | Power::Paused, Some(whereabouts)) => whereabouts,
        (Power::Running | Power::Paused | Power::Stopped, _) => {
            return Err(Error::refused("it does not run"));
        }
    };
    if cage.ice(&main).map_err(cannot("look at it"))? == Ice::Frozen {
        return Ok(Acted::AlreadyTrue(seen));
    }
    // Written down first: should Drowse die in the next moment, `thaw_all` knows whose ice this is. What
    // cannot be written down is not frozen.
    let now = inside.now();
    entry.note(|record| record.frozen_at = Some(now)).map_err(refused("write its record"))?;
    let mut undo = Undo { inside, entry, is_needed: true };
    until(|| {
        // Asked again each time: without a cgroup a fork may have slipped through, and the v1 freezer is known
        // to need a second word.
        cage.freeze(&main).map_err(refused("freeze it"))?;
        let is_frozen = cage.ice(&main).map_err(cannot("look at it"))? == Ice::Frozen;
        Ok(is_frozen || !entry.is_alive(inside.now()))
    })
    .await?;
    let seen = entry.look(inside.now())?;
    if seen.power != Power::Paused {
        return Err(Error::refused("it ended while it was being frozen"));
    }
    undo.is_needed = false;
    entry.keep_word(&inside.words);
    Ok(Acted::Done(seen))
}

/// Takes a freeze back that was not confirmed, whether it failed, ran out of time or lost its caller: a worker
/// that is half frozen looks like one that runs, and nothing would ever wake it.
struct Undo<'a> {
    inside: &'a Inside,
    entry: &'a Arc<Entry>,
    is_needed: bool,
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        let Some((main, cage)) = self.entry.whereabouts() else { return };
        if self.is_needed && cage.thaw(&main).is_ok() {
            mark_thawed(self.inside, self.entry);
        }
    }
}

/// Lets it go on.
pub(super) async fn thaw(inside: &Inside, entry: &Arc<Entry>) -> Result<Acted, Error> {
    let seen = entry.look(inside.now())?;
    let (main, cage) = match (seen.power, entry.whereabouts()) {
        (Power::Gone, _) => return Err(Error::Gone),
        (Power::Running | Power::Paused, Some(whereabouts)) => whereabouts,
        (Power::Running | Power::Paused | Power::Stopped, _) => {
            return Err(Error::refused("it does not run"));
        }
    };
    let is_thawed = || -> Result<bool, Error> {
        let look = cannot("look at it");
        Ok(cage.ice(&main).map_err(cannot("look at it"))? == Ice::Thawed
            && !cage.is_halted(&main).map_err(look)?)
    };
    // Not by the power: what is frozen in part looks as if it ran.
    if is_thawed()? {
        if entry.is_marked_frozen() {
            // It was let go on at once, or by somebody else: now it is so because it is asked for.
            mark_thawed(inside, entry);
        }
        return Ok(Acted::AlreadyTrue(seen));
    }
    until(|| {
        cage.thaw(&main).map_err(refused("thaw it"))?;
        is_thawed()
    })
    .await?;
    mark_thawed(inside, entry);
    Ok(Acted::Done(entry.look(inside.now())?))
}

/// Says the word, if one word will do.
pub(super) fn thaw_at_once(inside: &Inside, entry: &Entry, ready: &mut dyn FnMut() -> bool) -> bool {
    // What ended meanwhile, or was never ours, is for somebody with more time.
    entry.word(inside.now()).is_some_and(|word| ready() && word.say().is_ok())
}

/// If it cannot be written down the worker runs nevertheless; the mark is put right by the next note.
pub(super) fn mark_thawed(inside: &Inside, entry: &Entry) {
    entry.forget_word();
    let now = inside.now();
    let _ = entry.note(|record| {
        record.frozen_at = None;
        record.thawed_at = Some(now);
    });
}
