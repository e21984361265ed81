//! `GET workers/{id}/explain` and `GET workers/{id}/readings`: why a worker is awake or not.

use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::signal as core_signal;
use drowse_core::units;
use drowse_core::verdict as core;
use serde::{Deserialize, Serialize};

use super::hold::Hold;
use super::policy::Setting;

/// One reason for or against sleep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Reason {
    /// Its code, such as `recent_activity`, `held` or `idle_timeout_exceeded`.
    pub code: String,
    /// The signal it is about.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::SignalName>))]
    pub signal: Option<String>,
    /// The kind of hold it is about.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Hold>))]
    pub hold: Option<String>,
    /// What it means here.
    pub sentence: String,
}

impl Reason {
    /// Every reason of a verdict that says something about a worker in its status.
    pub fn all(verdict: &core::Verdict) -> Vec<Self> {
        let of = |reason: core::Reason| {
            let signal = if let core::Reason::RecentActivity { signal }
            | core::Reason::UnknownSignal { signal } = reason
            {
                Some(signal.code().to_owned())
            } else {
                None
            };
            let hold =
                if let core::Reason::Held { hold } = reason { Some(hold.code().to_owned()) } else { None };
            Self { code: reason.code().to_owned(), signal, hold, sentence: verdict.sentence(reason) }
        };
        verdict.telling_reasons().map(of).collect()
    }
}

/// One signal as it was judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Reading {
    /// Which.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::SignalName))]
    pub signal: String,
    /// How much it matters here.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::SignalUse))]
    pub need: String,
    /// What it says.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::State))]
    pub state: String,
    /// When there was use, if it is active.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub active_at: Option<Timestamp>,
    /// Why it cannot be told, if it is unknown.
    pub unknown_cause: Option<String>,
    /// The number behind it, in `unit`.
    pub value: Option<f64>,
    /// Active means strictly greater than this.
    pub active_above: Option<f64>,
    /// The unit of both: `percent`, `bytes`, `events`, `connections`, `sockets`, `processes`; null where the
    /// source decides.
    pub unit: Option<String>,
    /// How old it is.
    #[serde(with = "units::optional_duration")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Span>))]
    pub age: Option<Duration>,
    /// The same in words.
    pub sentence: String,
}

impl From<&core::SignalView> for Reading {
    fn from(view: &core::SignalView) -> Self {
        let unit = match view.signal.unit().trim() {
            "%" => "percent",
            other => other,
        };
        let (active_at, unknown_cause) = match view.reading {
            core_signal::Reading::Active { at } => (Some(at), None),
            core_signal::Reading::Quiet => (None, None),
            core_signal::Reading::Unknown { cause } => (None, Some(cause.code().to_owned())),
        };
        Self {
            signal: view.signal.code().to_owned(),
            need: view.need.code().to_owned(),
            state: view.reading.code().to_owned(),
            active_at,
            unknown_cause,
            value: view.measured.map(|measured| measured.value),
            active_above: view.measured.map(|measured| measured.active_above),
            unit: (!unit.is_empty()).then(|| unit.to_owned()),
            age: view.age,
            sentence: view.sentence.clone(),
        }
    }
}

/// The latest readings of a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Readings {
    /// Whose.
    pub worker_id: String,
    /// The server's time, from which the ages are counted.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Instant))]
    pub at: Timestamp,
    /// Each signal that matters.
    pub readings: Vec<Reading>,
    /// Memory in use, where it is known. It is shown and judges nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

/// From when idleness is counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Baseline {
    /// From then.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Instant))]
    pub at: Timestamp,
    /// Because then, in words.
    pub because: String,
}

/// Why a worker is awake or not, in full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[expect(clippy::struct_excessive_bools, reason = "a verdict reports every condition on its own")]
pub struct Explanation {
    /// Which worker.
    pub worker_id: String,
    /// When it was judged.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Instant))]
    pub at: Timestamp,
    /// The answer in one sentence.
    pub summary: String,
    /// What it is doing.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Status))]
    pub status: String,
    /// What all its signals together say.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::State))]
    pub used: String,
    /// Idle for long enough, and seen quiet often enough.
    pub is_idle: bool,
    /// Every layer of its policy lets Drowse act.
    pub auto_pause_enabled: bool,
    /// Idle, enabled, not held, not braked and running.
    pub eligible_for_pause: bool,
    /// The fleet's brake is engaged.
    pub is_braked: bool,
    /// From when idleness is counted.
    pub baseline: Baseline,
    /// For how long it has been idle.
    #[serde(with = "units::duration")]
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Span))]
    pub idle_for: Duration,
    /// How long it must be idle, flap guard and schedule included; null: never.
    #[serde(with = "units::optional_duration")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Span>))]
    pub idle_timeout: Option<Duration>,
    /// By how much the flap guard lengthens the idle timeout.
    pub flap_multiplier: u32,
    /// Quiet checks in a row so far.
    pub streak: u32,
    /// How many are needed.
    pub window: u32,
    /// Until when a snooze or a keep-awake protects it.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub snooze_until: Option<Timestamp>,
    /// The earliest pause if nothing more happens.
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
    /// When a window of its schedule puts it to sleep.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub schedule_sleeps_at: Option<Timestamp>,
    /// When `stop_after` stops it: it is frozen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub stops_at: Option<Timestamp>,
    /// When `terminate_after` deletes it: it is asleep, and nobody keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub deletes_at: Option<Timestamp>,
    /// When it is looked at next.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Instant))]
    pub next_check_at: Timestamp,
    /// Every reason, for and against; of one that sleeps, those that are not about its use.
    pub reasons: Vec<Reason>,
    /// What would have to change for it to sleep.
    pub would_have_to_change: Vec<String>,
    /// What else one should know: when one that sleeps is stopped or deleted and what wakes it; why a signal cannot be read, in the words of whoever tried, and what helps; a setting
    /// that the driver cannot follow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Each signal that matters.
    pub signals: Vec<Reading>,
    /// Memory in use, where it is known. It is shown and judges nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Each hold that is live.
    pub holds: Vec<Hold>,
    /// Each setting and the layer that set it; of the past only those that somebody set.
    pub policy: Vec<Setting>,
    /// Asked about a time in the past: what happened between this verdict and then, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub until_then: Vec<super::Event>,
}

impl Explanation {
    pub fn of(id: &WorkerId, explanation: &core::Explanation, policy: Vec<Setting>) -> Self {
        let verdict = &explanation.verdict;
        let holds = explanation.holds.iter().filter(|hold| hold.is_live(verdict.at));
        Self {
            worker_id: id.to_string(),
            at: verdict.at,
            summary: explanation.summary.clone(),
            status: verdict.status.code().to_owned(),
            used: verdict.used.code().to_owned(),
            is_idle: verdict.is_idle,
            auto_pause_enabled: verdict.auto_pause_enabled,
            eligible_for_pause: verdict.eligible,
            is_braked: verdict.is_braked,
            baseline: Baseline {
                at: verdict.baseline.at,
                because: verdict.baseline.source.sentence().to_owned(),
            },
            idle_for: verdict.idle_for,
            idle_timeout: verdict.idle_timeout,
            flap_multiplier: verdict.flap_multiplier,
            streak: verdict.streak.count,
            window: verdict.window,
            snooze_until: verdict.snooze_until,
            target_pause_at: verdict.target_pause_at,
            target_pause_reason: verdict.target_pause_reason.map(|reason| reason.code().to_owned()),
            target_pause_blocked_by: verdict.target_pause_blocked_by.map(|by| by.code().to_owned()),
            runtime_ends_at: verdict.runtime_ends_at,
            schedule_sleeps_at: verdict.schedule_sleeps_at,
            stops_at: verdict.stops_at,
            deletes_at: verdict.deletes_at,
            next_check_at: verdict.next_check_at,
            reasons: Reason::all(verdict),
            would_have_to_change: explanation.would_have_to_change.clone(),
            notes: explanation.notes.clone(),
            signals: explanation.signals.iter().map(Into::into).collect(),
            memory_bytes: None,
            holds: holds.map(Into::into).collect(),
            policy,
            until_then: Vec::new(),
        }
    }
}
