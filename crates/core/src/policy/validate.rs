//! Values that are each right and do not go together.
//!
//! Checked on a worker's *resolved* policy, because two layers that never met on paper meet there; both
//! are named.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::Serialize;

use super::Policy;
use super::key::Key;
use super::layer::{Level, Origin};
use super::resolve::Provenance;
use crate::units::Human;

/// Two values that cannot both hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// The one that is out of place.
    pub key: Key,
    /// Who set it.
    pub origin: Origin,
    /// The one that it collides with.
    pub with: Key,
    /// Who set that.
    pub with_origin: Origin,
    /// What is wrong and what would be right.
    pub message: String,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({} is set by: {}; {} by: {})",
            self.message, self.key, self.origin, self.with, self.with_origin
        )
    }
}

/// All conflicts of a resolved policy.
///
/// `reads_telemetry` says which interval counts: one that its worker does not use collides with nothing.
pub fn conflicts(policy: &Policy, provenance: &Provenance, reads_telemetry: bool) -> Vec<Conflict> {
    let mut found = Vec::new();
    let mut report = |key: Key, with: Key, message: String| {
        found.push(Conflict {
            key,
            origin: origin(provenance, key),
            with,
            with_origin: origin(provenance, with),
            message,
        });
    };
    let is_set = |key: Key| {
        let origin = origin(provenance, key);
        origin.level > Level::BuiltIn && origin.follows.is_none()
    };

    if policy.stale_after <= policy.heartbeat_interval * 2 {
        report(
            Key::StaleAfter,
            Key::HeartbeatInterval,
            alloc::format!(
                "stale_after {} must be more than two heartbeat intervals ({} each), or one late beat takes a healthy worker offline",
                Human(policy.stale_after),
                Human(policy.heartbeat_interval)
            ),
        );
    }
    if let Some(timeout) = policy.idle_timeout {
        let (key, interval) = if reads_telemetry {
            (Key::TelemetryInterval, policy.telemetry_interval)
        } else {
            (Key::CheckInterval, policy.check_interval)
        };
        if is_set(key) && interval.saturating_mul(policy.window) > timeout {
            report(
                key,
                Key::IdleTimeout,
                alloc::format!(
                    "{key} {} × window {} is longer than idle_timeout {}: the window could not fill in time",
                    Human(interval),
                    policy.window,
                    Human(timeout)
                ),
            );
        }
    }
    if policy.lease_ttl_max > policy.lease_ceiling {
        report(
            Key::LeaseTtlMax,
            Key::LeaseCeiling,
            alloc::format!(
                "lease_ttl_max {} is longer than lease_ceiling {}",
                Human(policy.lease_ttl_max),
                Human(policy.lease_ceiling)
            ),
        );
    }
    found
}

fn origin(provenance: &Provenance, key: Key) -> Origin {
    provenance.get(&key).cloned().unwrap_or(Origin::BUILT_IN)
}
