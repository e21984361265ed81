//! Freezing and thawing, confirmed.

use std::sync::Arc;

use drowse_core::worker::Power;

use super::Inside;
use super::entry::Entry;
use super::record::Frozen;
use crate::driver::{Acted, Error, Seen};

/// Freezes it where it is.
pub(super) async fn freeze(inside: &Inside, entry: &Arc<Entry>) -> Result<Acted, Error> {
    let look = entry.look(inside).await?;
    let boot = match (look.seen.power, look.seen.boot.clone()) {
        (Power::Gone, _) => return Err(Error::Gone),
        (Power::Paused, _) => return Ok(Acted::AlreadyTrue(look.seen)),
        (Power::Running, Some(boot)) => boot,
        (Power::Running | Power::Stopped, _) => return Err(Error::refused("it does not run")),
    };
    // Written down first: should Drowse die in the next moment, `thaw_all` knows whose ice this is. What cannot be
    // written down is not frozen.
    let socket = inside.engine.socket().to_owned();
    let frozen = Frozen { socket, container: look.id.clone(), boot, at: inside.now() };
    entry
        .note(|record| record.frozen = Some(frozen))
        .map_err(|error| Error::refused(format!("cannot write its record: {error}")))?;
    let outcome = inside.engine.pause(&look.id).await;
    let seen = entry.look(inside).await?.seen;
    match (outcome, seen.power) {
        (_, Power::Paused) => Ok(Acted::Done(seen)),
        (Err(error), _) => {
            mark_thawed(entry);
            Err(error)
        }
        (Ok(()), Power::Gone) => Err(Error::Gone),
        (Ok(()), Power::Running | Power::Stopped) => {
            mark_thawed(entry);
            Err(Error::refused("it ended or was thawed while it was being frozen"))
        }
    }
}

/// Lets it go on.
pub(super) async fn thaw(inside: &Inside, entry: &Arc<Entry>) -> Result<Acted, Error> {
    let look = entry.look(inside).await?;
    match look.seen.power {
        Power::Gone => Err(Error::Gone),
        Power::Stopped => Err(Error::refused("it does not run")),
        Power::Running => {
            mark_thawed(entry);
            Ok(Acted::AlreadyTrue(look.seen))
        }
        Power::Paused => unpause(inside, entry, &look.id).await.map(Acted::Done),
    }
}

/// Makes it run: thawed if it is frozen, started if it is stopped.
pub(super) async fn start(inside: &Inside, entry: &Arc<Entry>) -> Result<Acted, Error> {
    let look = entry.look(inside).await?;
    match look.seen.power {
        Power::Gone => Err(Error::Gone),
        Power::Running => Ok(Acted::AlreadyTrue(look.seen)),
        Power::Paused => unpause(inside, entry, &look.id).await.map(Acted::Done),
        Power::Stopped => {
            inside.engine.start(&look.id).await?;
            let seen = entry.look(inside).await?.seen;
            if seen.power == Power::Stopped
                && let Some(boot) = &seen.boot
            {
                // It was over before anybody could look; this answer says so.
                entry.tell(boot);
            }
            Ok(Acted::Done(seen))
        }
    }
}

async fn unpause(inside: &Inside, entry: &Arc<Entry>, container: &str) -> Result<Seen, Error> {
    let outcome = inside.engine.unpause(container).await;
    let seen = entry.look(inside).await?.seen;
    match (outcome, seen.power) {
        (_, Power::Running) => {
            mark_thawed(entry);
            Ok(seen)
        }
        (Err(error), _) => Err(error),
        (Ok(()), Power::Paused | Power::Stopped | Power::Gone) => {
            Err(Error::refused("it ended or was frozen while it was being thawed"))
        }
    }
}

/// If it cannot be written down the worker runs nevertheless; the mark is put right by the next note.
pub(super) fn mark_thawed(entry: &Entry) {
    let _ = entry.note(|record| record.frozen = None);
}
