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
    /// It sleeps, and others may wake it.
    #[error("it is asleep, and you may not wake it: {0}")]
    MayNotWake(Lacks),
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

/// What somebody lacks who may not wake a worker. Who has it is nobody's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lacks {
    /// To come from somewhere else.
    #[error("your address is none that may")]
    Source,
    /// To show a token.
    #[error("that takes a token in Drowse-Wake-Token")]
    Token,
    /// One or the other.
    #[error("your address is none that may, and you have shown no token in Drowse-Wake-Token")]
    SourceOrToken,
}

impl Turned {
    /// As it is told to somebody who lacks this: others might wake it, unless somebody's sleep is the reason.
    pub(crate) fn told_to(self, lacks: Option<Lacks>) -> Self {
        match (self, lacks) {
            (Self::NotAllowed { sleep: None, .. }, Some(lacks)) => Self::MayNotWake(lacks),
            (why, _) => why,
        }
    }

    /// When it is worth while to come again; `None`: not before a person has done something.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::NotAllowed { .. } | Self::MayNotWake(_) | Self::Dormant | Self::NoSuchWorker => None,
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
