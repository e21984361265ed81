//! Why a request cannot be done. Never answer "paused" when it was not.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::hold::Hold;
use crate::status::{Sleep, StatusKind};

/// Why [`crate::machine::step`] changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The status does not allow it.
    #[error("a worker that is {status} cannot be {wanted}")]
    WrongStatus { status: StatusKind, wanted: &'static str },
    /// It is in the middle of something; ask again when that is over.
    #[error("the worker is {status} just now; wait until that is over")]
    InTransition { status: StatusKind },
    /// Somebody needs it, and the request was not forced.
    #[error("{} hold(s) keep the worker awake; --force (in the API, force) overrules them", holds.len())]
    Held { holds: Vec<Hold> },
    /// Its policy says that it is never touched, and the request was not forced.
    #[error("the worker is protected; --force (in the API, force) overrules that")]
    Protected,
    /// What put it to sleep may not be undone by this.
    #[error("{}", waits(sleep))]
    WakeNotAllowed { sleep: Sleep },
    /// It was taken out of service.
    #[error("the worker is out of service, so nothing wakes it")]
    OutOfService,
    /// Leases and keep-awakes do not start a stopped worker.
    #[error("the worker is stopped; resume it first")]
    Stopped,
    /// Something changed between the decision and its commit.
    #[error("not done, because {0}")]
    Overtaken(Overtaken),
    /// It belongs to another run, generation or intent.
    #[error("too late: {what} belongs to an older {than}")]
    Late { what: &'static str, than: &'static str },
    /// It says nothing that counts now.
    #[error("ignored: {why}")]
    Ignored { why: String },
}

/// Whose sleep it is, since when and why, and who ends it.
fn waits(sleep: &Sleep) -> String {
    let Sleep { by, reason, message, at, .. } = sleep;
    let words = if message.is_empty() { String::new() } else { format!(", {message:?}") };
    format!(
        "it was put to sleep by {by} at {} ({reason}{words}), and waits for a person to resume it",
        at.to_the_second()
    )
}

/// What changed between a decision and its commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Overtaken {
    /// The worker has moved on.
    #[error("the worker has changed since it was judged")]
    Generation,
    /// It is another run.
    #[error("the worker has been restarted since it was judged")]
    Boot,
    /// The policy, an exemption or a schedule changed.
    #[error("its policy has changed since it was judged")]
    Policy,
    /// Another replica took the claim.
    #[error("another replica looks after it now")]
    Claim,
    /// Somebody used it.
    #[error("there was activity since it was judged")]
    Activity,
    /// Somebody holds it.
    #[error("somebody holds it")]
    Hold,
    /// Evidence may still be on its way.
    #[error("evidence is still on its way")]
    Flush,
    /// The brake engaged.
    #[error("the brake is engaged")]
    Brake,
    /// It became exempt, or somebody put it off.
    #[error("it has been spared since it was judged")]
    Spared,
}
