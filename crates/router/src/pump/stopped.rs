//! What came of moving bytes in one direction.

use rustix::io::Errno;

/// What came of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ran {
    /// So many bytes were taken by the sink.
    pub(super) moved: u64,
    pub(super) stopped: Stopped,
}

/// Why a run stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stopped {
    /// A socket has to change first, or it is over.
    #[default]
    Waits,
    /// It could go on: others first.
    HasMore,
    /// The source is gone without an end.
    SourceGone,
    /// The sink takes nothing any more.
    SinkGone,
    /// And it broke off. That was its last word, and whoever reads from it hears an end instead.
    SinkBroke(Errno),
}

/// A call to the kernel that did.
pub(super) enum Failed {
    Source,
    Sink(Errno),
}

impl From<Failed> for Stopped {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Source => Self::SourceGone,
            Failed::Sink(error) if is_break(error) => Self::SinkBroke(error),
            Failed::Sink(_) => Self::SinkGone,
        }
    }
}

/// Whether this is how a call ends that was not answered. Of one that was, it is a break like any other.
pub(super) fn is_refusal(error: Errno) -> bool {
    [
        Errno::CONNREFUSED,
        Errno::TIMEDOUT,
        Errno::HOSTUNREACH,
        Errno::NETUNREACH,
        Errno::HOSTDOWN,
        Errno::NETDOWN,
        Errno::ADDRNOTAVAIL,
    ]
    .contains(&error)
}

/// Whether an error means that a peer broke off, and not only that it is gone after its end.
pub(super) fn is_break(error: Errno) -> bool {
    error != Errno::PIPE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_is_found_dead_broke_off() {
        // The kernel says so with the errors that it has for calls which nobody answers.
        for error in [Errno::TIMEDOUT, Errno::HOSTUNREACH, Errno::CONNRESET] {
            assert_eq!(Stopped::from(Failed::Sink(error)), Stopped::SinkBroke(error));
        }
        assert_eq!(Stopped::from(Failed::Sink(Errno::PIPE)), Stopped::SinkGone);
    }
}
