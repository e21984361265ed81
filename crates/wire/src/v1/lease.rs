//! Leases: `PUT` and `DELETE workers/{id}/leases/{holder}`.

use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::lease as core;
use drowse_core::units;
use serde::{Deserialize, Serialize};

/// A program asks to keep a worker awake. The holder's name is in the path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TakeLease {
    /// For how long; renew it by asking again.
    #[serde(with = "units::duration")]
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Span))]
    pub ttl: Duration,
    /// What for, in at most 200 bytes.
    #[serde(default)]
    pub reason: String,
}

/// A lease that was granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Lease {
    /// In what name.
    pub holder: String,
    /// What for.
    pub reason: String,
    /// When it was first taken.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Instant))]
    pub taken_at: Timestamp,
    /// When it ends unless it is renewed; sooner than asked for where the ceiling is nearer.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Instant))]
    pub expires_at: Timestamp,
    /// How long the latest grant is.
    #[serde(with = "units::duration")]
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Span))]
    pub ttl: Duration,
}

impl From<&core::Lease> for Lease {
    fn from(lease: &core::Lease) -> Self {
        Self {
            holder: lease.holder.clone(),
            reason: lease.reason.clone(),
            taken_at: lease.taken_at,
            expires_at: lease.until,
            ttl: lease.ttl(),
        }
    }
}
