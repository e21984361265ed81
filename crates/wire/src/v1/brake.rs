//! The brake: `GET brake`, `POST brake/release`.

use drowse_core::Timestamp;
use drowse_core::brake as core;
use serde::{Deserialize, Serialize};

/// Whether automatic actions are held back for the whole fleet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Brake {
    /// They are.
    pub is_engaged: bool,
    /// Why: `fleet_gone`, `loop_stalled` or `clock_jumped`.
    pub cause: Option<String>,
    /// How many workers went silent or unknown at once, if that is the cause.
    pub gone_count: Option<u32>,
    /// Of how many.
    pub total_count: Option<u32>,
    /// Since when.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub since: Option<Timestamp>,
    /// When it lets go by itself at the latest, or sooner if it stays calm.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub releases_at: Option<Timestamp>,
    /// The end of the last incident.
    pub last_release: Option<BrakeRelease>,
}

/// How the brake let go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BrakeRelease {
    /// When.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Instant))]
    pub at: Timestamp,
    /// `calm`, `person` or `overdue`.
    pub how: String,
    /// Who, if a person did.
    pub by: Option<String>,
    /// Why, in their words.
    pub message: Option<String>,
}

/// A person lets go of the brake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReleaseBrake {
    /// Why; it goes into the journal.
    #[cfg_attr(feature = "openapi", schema(min_length = 1))]
    pub message: String,
}

impl Brake {
    pub fn of(brake: &core::Brake, terms: &core::BrakeTerms) -> Self {
        let none = Self {
            is_engaged: false,
            cause: None,
            gone_count: None,
            total_count: None,
            since: None,
            releases_at: None,
            last_release: None,
        };
        match brake {
            core::Brake::Released { last } => Self { last_release: last.as_ref().map(Into::into), ..none },
            core::Brake::Engaged { cause, since, .. } => {
                let (code, gone, total) = match *cause {
                    core::Cause::FleetGone { gone, total } => ("fleet_gone", Some(gone), Some(total)),
                    core::Cause::LoopStalled => ("loop_stalled", None, None),
                    core::Cause::ClockJumped => ("clock_jumped", None, None),
                };
                Self {
                    is_engaged: true,
                    cause: Some(code.to_owned()),
                    gone_count: gone,
                    total_count: total,
                    since: Some(*since),
                    releases_at: brake.deadline(terms),
                    ..none
                }
            }
        }
    }
}

impl From<&core::Released> for BrakeRelease {
    fn from(released: &core::Released) -> Self {
        let (how, by, message) = match &released.how {
            core::Release::Calm => ("calm", None, None),
            core::Release::Person { by, why } => ("person", Some(by.clone()), Some(why.clone())),
            core::Release::Overdue => ("overdue", None, None),
        };
        Self { at: released.at, how: how.to_owned(), by, message }
    }
}
