//! What can go wrong with a database, sorted by what a caller does about it.

use std::path::PathBuf;

use drowse_core::id::WorkerId;

/// The engine's own words, kept as the source of an error of ours.
pub type Cause = Box<dyn std::error::Error + Send + Sync + 'static>;

/// Why the store did not do it. Unless a variant says otherwise, nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Somebody else was at it: a lock, a deadlock, a statement that took too long. Trying again is right.
    #[error("the database is busy")]
    Busy(#[source] Cause),
    /// The database cannot be reached, or went away in the middle.
    #[error("the database cannot be reached")]
    Unavailable(#[source] Cause),
    /// The connection broke while the commit was under way: **it may have been done.** Look before trying again.
    #[error("the connection broke during the commit, which may or may not have been done")]
    CommitUnknown(#[source] Cause),
    /// There is no room left. What was stored before is intact.
    #[error("there is no room left for the database")]
    Full(#[source] Cause),
    /// It may only be read.
    #[error("the database can only be read")]
    ReadOnly(#[source] Cause),
    /// There is no such database, or no folder for it.
    #[error("there is no database {name}")]
    Missing { name: String, source: Cause },
    /// We may not use it.
    #[error("access to the database is refused")]
    Denied(#[source] Cause),
    /// What is there is no database, or is damaged.
    #[error("the database is damaged, or is none")]
    Corrupt(#[source] Cause),
    /// A stored document cannot be read.
    #[error("the stored {what} of {of} cannot be read")]
    Unreadable { what: &'static str, of: String, source: serde_json::Error },
    /// A newer Drowse has changed it in a way that this one does not understand.
    #[error(
        "the database was written by a newer Drowse (version {database}, which needs a program that knows \
         version {needs}; this one knows {program}); use that one"
    )]
    TooNew { database: u32, needs: u32, program: u32 },
    /// It would break a promise of the schema, such as a second row with the same name.
    #[error("it contradicts what is stored already")]
    Constraint(#[source] Cause),
    /// An address of a database that is none.
    #[error("{url:?} is no database: expected sqlite://FILE or postgres://…")]
    BadUrl { url: String },
    /// The engine has a tool of its own for this.
    #[error("{0}")]
    Unsupported(&'static str),
    /// Another control plane looks after it.
    #[error("another Drowse looks after this database already; two cannot share one yet")]
    Taken,
    /// The file to write exists already.
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    /// A worker must be locked before those that sort after it, and before the fleet. A defect of ours.
    #[error("{wanted} is locked too late: {held} is held already")]
    LockOrder { wanted: String, held: String },
    /// A transaction was begun inside another one of the same thread, which could wait for itself. A defect of
    /// ours.
    #[error("a transaction was begun inside another one")]
    Nested,
    /// A statement of the transaction failed and the failure was passed over. A defect of ours.
    #[error("the transaction had failed already")]
    Failed,
    /// There is no such worker.
    #[error("there is no worker {0}")]
    NoWorker(WorkerId),
    /// A statement is wrong. A defect of ours.
    #[error("a statement failed")]
    Statement(#[source] Cause),
}

impl StoreError {
    /// Whether the same transaction may well succeed if it is run again.
    pub const fn is_worth_retrying(&self) -> bool {
        matches!(self, StoreError::Busy(_) | StoreError::Unavailable(_))
    }

    /// Whether the store cannot write at all just now. Nothing is paused then.
    pub const fn is_outage(&self) -> bool {
        matches!(
            self,
            StoreError::Unavailable(_)
                | StoreError::CommitUnknown(_)
                | StoreError::Full(_)
                | StoreError::ReadOnly(_)
                | StoreError::Missing { .. }
                | StoreError::Denied(_)
                | StoreError::Corrupt(_)
        )
    }
}
