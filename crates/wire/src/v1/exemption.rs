//! Exemptions: `GET` and `POST exemptions`, `DELETE exemptions/{id}`.

use drowse_core::Timestamp;
use drowse_core::policy::exemption as core;
use serde::{Deserialize, Serialize};

/// A new exemption. Exactly one of `owner`, `group` and `worker`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateExemption {
    /// For every worker of this owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// For every worker of this group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// For this worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// From what: `idle_timeout`, `max_runtime` or both.
    #[cfg_attr(feature = "openapi", schema(min_items = 1))]
    pub from: Vec<String>,
    /// Why.
    pub reason: String,
    /// Who said so.
    pub approved_by: String,
    /// An instant, or `never` for a permanent one.
    pub expires_on: String,
}

impl From<CreateExemption> for core::Record {
    fn from(create: CreateExemption) -> Self {
        Self {
            owner: create.owner,
            group: create.group,
            worker: create.worker,
            from: create.from,
            reason: Some(create.reason),
            approved_by: Some(create.approved_by),
            expires_on: Some(create.expires_on),
        }
    }
}

/// Who is spared what, until when, and who said so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Exemption {
    /// Its name in the API.
    pub id: String,
    /// For every worker of this owner.
    pub owner: Option<String>,
    /// For every worker of this group.
    pub group: Option<String>,
    /// For this worker.
    pub worker: Option<String>,
    /// From what: `idle_timeout`, `max_runtime` or both.
    pub from: Vec<String>,
    /// Why.
    pub reason: String,
    /// Who said so.
    pub approved_by: String,
    /// An instant, or `never` for a permanent one.
    pub expires_on: String,
    /// `file` or `run-time`; one from the file can only be changed there.
    pub source: String,
    /// When it was added at run time.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub created_at: Option<Timestamp>,
    /// It ends within a week.
    #[serde(default)]
    pub is_expiring: bool,
}

impl Exemption {
    /// As it stands at `now`.
    pub fn of(
        id: String,
        exemption: &core::Exemption,
        source: &str,
        created_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Self {
        let (mut owner, mut group, mut worker) = (None, None, None);
        match &exemption.subject {
            core::Subject::Owner(name) => owner = Some(name.clone()),
            core::Subject::Group(name) => group = Some(name.clone()),
            core::Subject::Worker(name) => worker = Some(name.clone()),
        }
        let from = exemption.from.iter().map(|from| match from {
            core::From::IdleTimeout => "idle_timeout".to_owned(),
            core::From::MaxRuntime => "max_runtime".to_owned(),
        });
        Self {
            id,
            owner,
            group,
            worker,
            from: from.collect(),
            reason: exemption.reason.clone(),
            approved_by: exemption.approved_by.clone(),
            expires_on: match exemption.expires_on {
                core::Expiry::At(at) => at.to_string(),
                core::Expiry::Never => "never".to_owned(),
            },
            source: source.to_owned(),
            created_at,
            is_expiring: exemption.is_expiring(now),
        }
    }
}

/// All exemptions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExemptionList {
    /// Those that are over are left out.
    pub exemptions: Vec<Exemption>,
}
