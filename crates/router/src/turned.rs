//! Why somebody was turned away at the door.

use std::time::Duration;

use drowse_wire::control::{Refused, SleepTold};

/// Why somebody was turned away. TCP closes; HTTP says so and when to come again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Turned {
    /// The worker sleeps, and a connection does not wake it.
    #[error("{message}")]
    NotAllowed {
        /// The sentence for a person.
        message: String,
        /// The sleep that waits for somebody else, where that is the reason.
        sleep: Option<SleepTold>,
    },
    /// It was put to sleep while they waited for its answer.
    #[error("it was put to sleep before it had answered")]
    PutToSleep,
    /// It was woken and did not come up.
    #[error("it did not come up: {message}")]
    DidNotComeUp {
        /// The sentence for a person.
        message: String,
    },
    /// It did not answer in time.
    #[error("it did not answer within {} s", waited_for.as_secs())]
    Late {
        /// How long they waited.
        waited_for: Duration,
    },
    /// Too many wait for this worker.
    #[error("too many wait for it already")]
    QueueFull,
    /// Too many connections for this machine, and this worker has its share of them.
    #[error("there are too many connections")]
    HostFull,
    /// A robot is answered only by those who are awake.
    #[error("it is asleep, and a robot does not wake it")]
    Dormant,
    /// Drowse does not look after this worker any more.
    #[error("there is no such worker")]
    NoSuchWorker,
    /// Drowse is ending.
    #[error("drowse is ending")]
    Ending,
}

impl Turned {
    /// When it is worth while to come again; `None`: not before a person has done something.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::NotAllowed { .. } | Self::Dormant | Self::NoSuchWorker => None,
            Self::PutToSleep | Self::QueueFull | Self::HostFull | Self::Ending => {
                Some(Duration::from_secs(1))
            }
            Self::DidNotComeUp { .. } | Self::Late { .. } => Some(Duration::from_secs(5)),
        }
    }
}

impl From<Refused> for Turned {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::NotAllowed { message, sleep } => Self::NotAllowed { message, sleep },
            Refused::DidNotComeUp { message } | Refused::Unavailable { message } => {
                Self::DidNotComeUp { message }
            }
            Refused::NoSuchWorker => Self::NoSuchWorker,
        }
    }
}
