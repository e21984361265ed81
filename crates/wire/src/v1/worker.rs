//! Workers: `GET workers` and `GET workers/{id}`.

use drowse_core::Timestamp;
use drowse_core::evidence::Evidence;
use drowse_core::hold as core_hold;
use drowse_core::lease::LeaseSummary;
use drowse_core::status as core_status;
use drowse_core::verdict::Verdict;
use drowse_core::worker as core;
use serde::{Deserialize, Serialize};

use super::explain::Reason;
use super::hold::Hold;

/// One unit of compute that Drowse looks after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of the API on its own")]
pub struct Worker {
    /// Its stable name.
    pub id: String,
    /// What observes and acts on it.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Driver))]
    pub driver: String,
    /// What it is: `cml`, `gpu`, `devcontainer`, `compose`, `microvm`, or a name of one's own.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Where it runs.
    pub region: Option<String>,
    /// The group of its owner.
    pub group: Option<String>,
    /// Whose it is.
    pub owner: Option<String>,
    /// What it is doing.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Status))]
    pub status: String,
    /// Since when.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Instant))]
    pub status_since: Timestamp,
    /// By when it must be over; null where it may last.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub status_deadline: Option<Timestamp>,
    /// What went wrong, if it failed.
    pub failure: Option<String>,
    /// Why it sleeps or is about to.
    pub sleep: Option<Sleep>,
    /// `online` or `offline`; null if it never enrolled.
    pub liveness: Option<String>,
    /// False: taken out of service, so nothing wakes it.
    pub in_service: bool,
    /// The router's port for it.
    pub listen: Option<String>,
    /// Where it answers.
    pub target: Option<String>,
    /// Identity of this run.
    pub boot_id: Option<String>,
    /// When this run began.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub boot_started_at: Option<Timestamp>,
    /// When Drowse first heard of it.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Instant))]
    pub created_at: Timestamp,
    /// What all its signals together say: `active`, `quiet` or `unknown`.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::State))]
    pub used: String,
    /// When it was last in use.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub last_activity_at: Option<Timestamp>,
    /// Which signal said so.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::SignalName>))]
    pub last_activity_by: Option<String>,
    /// Every reason for and against sleep.
    pub reasons: Vec<Reason>,
    /// The live holds.
    pub holds: Vec<Hold>,
    /// A program keeps it awake.
    pub lease_held: bool,
    /// What for; of several leases, the one that ends last.
    pub lease_reason: Option<String>,
    /// When that one ends.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub lease_expires_at: Option<Timestamp>,
    /// Until when a snooze or a keep-awake protects it.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub snooze_until: Option<Timestamp>,
    /// The worker's own switch.
    pub is_idle_detection_enabled: bool,
    /// Every layer of its policy lets Drowse act; false: observe mode.
    pub auto_pause_enabled: bool,
    /// Idle, enabled, not held, not braked and running.
    pub eligible_for_pause: bool,
    /// The earliest pause if nothing more happens; in observe mode, when it would be.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub target_pause_at: Option<Timestamp>,
    /// What that pause will be for.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::SleepReason>))]
    pub target_pause_reason: Option<String>,
    /// Why there is none.
    pub target_pause_blocked_by: Option<String>,
    /// When `max_runtime` stops it.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub runtime_ends_at: Option<Timestamp>,
    /// When `stop_after` stops it: it is frozen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub stops_at: Option<Timestamp>,
    /// When `terminate_after` deletes it: it is asleep, and nobody keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub deletes_at: Option<Timestamp>,
    /// How many times in a row `before_pause` has vetoed its sleep; left out: the last one was not vetoed.
    #[serde(default, skip_serializing_if = "is_none")]
    pub vetoes: u32,
    /// When it is looked at next.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Instant))]
    pub next_check_at: Timestamp,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
const fn is_none(count: &u32) -> bool {
    *count == 0
}

/// Why, by whom and since when a worker sleeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Sleep {
    /// The closed reason, which decides what may wake it.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::SleepReason))]
    pub reason: String,
    /// Who caused it: a person's name, or `drowse`.
    pub by: String,
    /// Free text beside the reason.
    pub message: String,
    /// When it was decided.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Instant))]
    pub at: Timestamp,
    /// Somebody insisted: activity and holds do not undo it.
    pub forced: bool,
}

impl From<&core_status::Sleep> for Sleep {
    fn from(sleep: &core_status::Sleep) -> Self {
        Self {
            reason: sleep.reason.code().to_owned(),
            by: sleep.by.clone(),
            message: sleep.message.clone(),
            at: sleep.at,
            forced: sleep.forced,
        }
    }
}

/// All that a [`Worker`] is made of.
#[derive(Clone, Copy, Debug)]
pub struct WorkerView<'a> {
    /// The worker itself.
    pub worker: &'a core::Worker,
    /// What is known about its use.
    pub evidence: &'a Evidence,
    /// What was or would be decided.
    pub verdict: &'a Verdict,
    /// Its holds; those that are over are left out.
    pub holds: &'a [core_hold::Hold],
    /// Its leases in short.
    pub leases: &'a LeaseSummary,
    /// `online` or `offline`, if it ever enrolled.
    pub liveness: Option<&'a str>,
    /// The router's port for it.
    pub listen: Option<&'a str>,
    /// Where it answers.
    pub target: Option<&'a str>,
    /// The worker's own switch.
    pub is_idle_detection_enabled: bool,
}

impl Worker {
    pub fn of(view: &WorkerView<'_>) -> Self {
        let WorkerView { worker, evidence, verdict, holds, leases, .. } = *view;
        let selectors = worker.selectors.clone();
        let failure = if let core_status::Status::Failed { message, .. } = &worker.status {
            Some(message.clone())
        } else {
            None
        };
        Self {
            id: worker.id.to_string(),
            driver: worker.driver.code().to_owned(),
            kind: selectors.kind,
            region: selectors.region,
            group: selectors.group,
            owner: selectors.owner,
            status: worker.status.kind().code().to_owned(),
            status_since: worker.status.since(),
            status_deadline: worker.status.deadline(),
            failure,
            sleep: worker.status.sleep().map(Into::into),
            liveness: view.liveness.map(str::to_owned),
            in_service: worker.in_service,
            listen: view.listen.map(str::to_owned),
            target: view.target.map(str::to_owned),
            boot_id: worker.boot.as_ref().map(ToString::to_string),
            boot_started_at: worker.boot_started_at,
            created_at: worker.created_at,
            used: verdict.used.code().to_owned(),
            last_activity_at: evidence.last_activity_at(),
            last_activity_by: evidence.last_activity_by().map(|signal| signal.code().to_owned()),
            reasons: Reason::all(verdict),
            holds: holds.iter().filter(|hold| hold.is_live(verdict.at)).map(Into::into).collect(),
            lease_held: leases.lease_held,
            lease_reason: leases.lease_reason.clone(),
            lease_expires_at: leases.lease_expires_at,
            snooze_until: verdict.snooze_until,
            is_idle_detection_enabled: view.is_idle_detection_enabled,
            auto_pause_enabled: verdict.auto_pause_enabled,
            eligible_for_pause: verdict.eligible,
            target_pause_at: verdict.target_pause_at,
            target_pause_reason: verdict.target_pause_reason.map(|reason| reason.code().to_owned()),
            target_pause_blocked_by: verdict.target_pause_blocked_by.map(|by| by.code().to_owned()),
            runtime_ends_at: verdict.runtime_ends_at,
            stops_at: verdict.stops_at,
            deletes_at: verdict.deletes_at,
            vetoes: worker.vetoes,
            next_check_at: verdict.next_check_at,
        }
    }
}

/// Some workers, sorted by id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkerPage {
    /// The server's time: countdowns are counted from here, whatever the reader's clock says.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Instant))]
    pub at: Timestamp,
    /// The workers.
    pub workers: Vec<Worker>,
    /// Pass this as `after` for the next page; null: this was the last.
    pub next: Option<String>,
}

/// Which workers to list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct WorkerQuery {
    /// Only those with this status.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<crate::schema::Status>))]
    pub status: Option<String>,
    /// Only those of this driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<crate::schema::Driver>))]
    pub driver: Option<String>,
    /// Only those of this type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Only those in this region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Only those of this group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Only those of this owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Only those after this id: `next` of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// How many at most, up to 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1000))]
    pub limit: Option<u32>,
}
