//! Holds: `GET workers/{id}/holds`, and wherever a request is refused because of them.

use drowse_core::Timestamp;
use drowse_core::hold as core;
use serde::{Deserialize, Serialize};

/// A reason to stay awake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Hold {
    /// What kind it is.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Hold))]
    pub kind: String,
    /// Whose it is: a lease's holder, a router, a person.
    pub owner: String,
    /// What for, in the holder's words.
    pub reason: String,
    /// Since when.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Instant))]
    pub since: Timestamp,
    /// When it ends by itself; null if that is not known.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub until: Option<Timestamp>,
}

impl From<&core::Hold> for Hold {
    fn from(hold: &core::Hold) -> Self {
        Self {
            kind: hold.kind.code().to_owned(),
            owner: hold.owner.clone(),
            reason: hold.reason.clone(),
            since: hold.since,
            until: hold.until,
        }
    }
}

/// The live holds of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HoldList {
    /// Whose.
    pub worker_id: String,
    /// The ones that keep it awake now.
    pub holds: Vec<Hold>,
}
