//! `POST backup`: a copy of the database, taken while Drowse runs.
//!
//! The answer is the copy itself, so that it lands where it was asked for, on whatever machine that is, and the
//! API can be made to write nowhere. With `PostgreSQL` the answer is the problem `backup_elsewhere`.

use serde::{Deserialize, Serialize};

/// The content type of the answer.
pub const BACKUP_TYPE: &str = "application/vnd.sqlite3";

/// A copy that was written; what `drowse backup --json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Backup {
    /// Where it is.
    pub path: String,
    /// How large it is.
    pub size_bytes: u64,
}
