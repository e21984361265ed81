//! Errors of the API: problem details (RFC 9457) with stable codes.
//!
//! A program acts on `code`; a person reads `detail`. The codes never change their meaning.

mod code;

use std::fmt;

use drowse_core::lease::LeaseRefusal;
use drowse_core::refusal::Refusal;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use code::Code;

use crate::v1::{Hold, Sleep};

/// The content type of a problem.
pub const PROBLEM_TYPE: &str = "application/problem+json";

/// Why a request was not met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// Where the problem is described, as a relative URI such as `/problems/held`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What kind of problem it is; the same text for the same code.
    pub title: String,
    /// The status of the answer.
    #[cfg_attr(feature = "openapi", schema(minimum = 400, maximum = 599))]
    pub status: u16,
    /// What it is in this case, and what to do.
    pub detail: String,
    /// The stable code.
    pub code: String,
    /// More about it, such as `holds` for `held`.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Problem {
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("/problems/{}", code.code()),
            title: code.title().to_owned(),
            status: code.status(),
            detail: detail.into(),
            code: code.code().to_owned(),
            extra: Map::new(),
        }
    }

    /// Adds a member. What cannot be written as JSON is left out: the rest still tells the problem.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Serialize) -> Self {
        if let Ok(value) = serde_json::to_value(value) {
            self.extra.insert(name.to_owned(), value);
        }
        self
    }

    /// The holds that stand in the way, if the problem names any.
    pub fn holds(&self) -> Vec<Hold> {
        self.extra
            .get("holds")
            .and_then(|holds| serde_json::from_value(holds.clone()).ok())
            .unwrap_or_default()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.detail.is_empty() { f.write_str(&self.title) } else { f.write_str(&self.detail) }
    }
}

impl From<&Refusal> for Problem {
    fn from(refusal: &Refusal) -> Self {
        let problem = |code| Problem::new(code, refusal.to_string());
        match refusal {
            Refusal::WrongStatus { status, .. } => problem(Code::WrongStatus).with("worker_status", status),
            Refusal::InTransition { status } => problem(Code::InTransition).with("worker_status", status),
            Refusal::Held { holds } => {
                let holds: Vec<Hold> = holds.iter().map(Into::into).collect();
                problem(Code::Held).with("holds", holds)
            }
            Refusal::WakeNotAllowed { sleep } => {
                problem(Code::WakeNotAllowed).with("sleep", Sleep::from(sleep))
            }
            Refusal::Protected => problem(Code::Protected),
            Refusal::OutOfService => problem(Code::OutOfService),
            Refusal::Stopped => problem(Code::Stopped),
            Refusal::Overtaken(_) => problem(Code::Overtaken),
            Refusal::Late { .. } | Refusal::Ignored { .. } => problem(Code::Late),
        }
    }
}

impl From<&LeaseRefusal> for Problem {
    fn from(refusal: &LeaseRefusal) -> Self {
        let code = match refusal {
            LeaseRefusal::NoTtl => Code::LeaseTtlMissing,
            LeaseRefusal::TtlTooLong { .. } => Code::LeaseTtlTooLong,
            LeaseRefusal::ReasonTooLong { .. } => Code::LeaseReasonTooLong,
            LeaseRefusal::HolderTooLong { .. } => Code::LeaseHolderTooLong,
            LeaseRefusal::TooManyHolders => Code::LeaseTooManyHolders,
            LeaseRefusal::Ceiling { .. } => Code::LeaseCeiling,
        };
        Problem::new(code, refusal.to_string())
    }
}

#[cfg(test)]
mod tests {
    use drowse_core::Timestamp;
    use drowse_core::hold::{Hold as CoreHold, HoldKind};
    use drowse_core::status::StatusKind;

    use super::*;

    #[test]
    fn a_refusal_over_holds_lists_them() {
        let hold = CoreHold {
            kind: HoldKind::Lease,
            owner: "build".into(),
            reason: "linking".into(),
            since: Timestamp::from_secs(1),
            until: None,
        };
        let problem = Problem::from(&Refusal::Held { holds: vec![hold] });
        assert_eq!((problem.status, problem.code.as_str()), (409, "held"));
        assert_eq!(problem.kind, "/problems/held");
        assert_eq!(problem.holds()[0].owner, "build");
        let text = serde_json::to_string(&problem).unwrap();
        assert_eq!(serde_json::from_str::<Problem>(&text).unwrap(), problem);
    }

    #[test]
    fn an_extra_member_cannot_hide_the_status_of_the_answer() {
        let refusal = Refusal::WrongStatus { status: StatusKind::Paused, wanted: "paused" };
        let value = serde_json::to_value(Problem::from(&refusal)).unwrap();
        assert_eq!(value["status"], 409);
        assert_eq!(value["worker_status"], "paused");
    }

    #[test]
    fn the_codes_of_leases_are_those_of_the_core() {
        let refusals = [
            LeaseRefusal::NoTtl,
            LeaseRefusal::ReasonTooLong { bytes: 201 },
            LeaseRefusal::HolderTooLong { bytes: 129 },
            LeaseRefusal::TooManyHolders,
        ];
        for refusal in refusals {
            assert_eq!(Problem::from(&refusal).code, refusal.code());
        }
    }
}
