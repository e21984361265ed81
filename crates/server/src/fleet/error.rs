//! Why a request was not done.

use drowse_core::id::WorkerId;
use drowse_core::lease::LeaseRefusal;
use drowse_core::policy::{Conflict, Key};
use drowse_core::refusal::Refusal;
use drowse_store::StoreError;

/// Why a request was not done. Nothing has changed, unless a variant says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// There is no such worker.
    #[error("there is no worker {0}")]
    NotFound(WorkerId),
    /// There is no such thing.
    #[error("there is no {what}")]
    NoSuch { what: String },
    /// The rules refuse it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The rules of leases refuse it.
    #[error(transparent)]
    LeaseRefused(#[from] LeaseRefusal),
    /// It contradicts something that is so already.
    #[error("{message}")]
    Conflict { message: String },
    /// The environment pins the key.
    #[error("{key} is pinned by {by}; change it there")]
    Pinned { key: Key, by: String },
    /// A field is wrong.
    #[error("{field}: {message}")]
    Invalid { field: String, message: String },
    /// The values are right and do not go together, for these workers.
    #[error("{}", .conflicts.first().map(ToString::to_string).unwrap_or_default())]
    Conflicting { conflicts: Vec<Conflict> },
    /// The driver did not do it.
    #[error(transparent)]
    Driver(#[from] drowse_drivers::Error),
    /// The store does not answer. For [`StoreError::CommitUnknown`] it may have been done.
    #[error("the database does not answer")]
    Unavailable(#[source] StoreError),
}

impl From<StoreError> for ControlError {
    fn from(error: StoreError) -> Self {
        if let StoreError::NoWorker(id) = error { Self::NotFound(id) } else { Self::Unavailable(error) }
    }
}

impl ControlError {
    pub(crate) fn invalid(field: &str, message: impl Into<String>) -> Self {
        Self::Invalid { field: field.to_owned(), message: message.into() }
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::Conflict { message: message.into() }
    }
}
