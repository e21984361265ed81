//! When the control plane is asked again.

use std::time::Duration;

use drowse_core::Timestamp;
use drowse_wire::control::EdgeCause;

use crate::turned::Turned;

/// How soon the control plane is asked again when it could not answer, at first; twice as late each time.
const ASK_AGAIN: Duration = Duration::from_millis(50);
/// And at the latest.
const ASK_AGAIN_AT_LAST: Duration = Duration::from_secs(2);

/// How soon it is asked again after it has refused. Whoever comes sooner waits for that, and gets an answer that is true
/// then: so those who may not wake a worker cost ten transactions a second, however many they are, and whoever comes
/// after a person's resume hears nothing of the refusal before it.
const ASK_AFTER_REFUSAL: Duration = Duration::from_millis(100);

/// When something that failed is tried again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Again {
    times: u32,
    pub(super) at: Option<Timestamp>,
}

impl Again {
    pub(super) fn later(self, now: Timestamp) -> Self {
        let pause = ASK_AGAIN.saturating_mul(1 << self.times.min(10)).min(ASK_AGAIN_AT_LAST);
        Self { times: self.times + 1, at: Some(now + pause) }
    }

    pub(super) fn is_due(self, now: Timestamp) -> bool {
        self.at.is_none_or(|at| now >= at)
    }
}

/// What was refused last, and when.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// Those who may wake the worker, and so everybody.
    all: Option<(Timestamp, Turned)>,
    /// Those who may not.
    strangers: Option<(Timestamp, Turned)>,
}

impl Refusals {
    pub(super) fn note(&mut self, cause: EdgeCause, why: &Turned, now: Timestamp) {
        let noted = Some((now, why.clone()));
        if cause == EdgeCause::CameToTheAwake {
            self.strangers = noted;
        } else {
            self.all = noted;
        }
    }

    /// When it may be asked again for such visitors; `None`: at once.
    pub(super) fn ask_at(&self, cause: EdgeCause) -> Option<Timestamp> {
        let (at, _) = self.last(cause)?;
        Some(*at + ASK_AFTER_REFUSAL)
    }

    /// What those who may not wake the worker would hear, as long as that is fresh.
    pub(super) fn for_strangers(&self, now: Timestamp) -> Option<&Turned> {
        let (at, why) = self.last(EdgeCause::CameToTheAwake)?;
        (now < *at + ASK_AFTER_REFUSAL).then_some(why)
    }

    fn last(&self, cause: EdgeCause) -> Option<&(Timestamp, Turned)> {
        let strangers = self.strangers.as_ref().filter(|_| cause == EdgeCause::CameToTheAwake);
        self.all.iter().chain(strangers).max_by_key(|(at, _)| *at)
    }
}
