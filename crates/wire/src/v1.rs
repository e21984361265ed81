//! Version 1 of the API, one file for each resource.
//!
//! Instants are RFC 3339 with `Z`, durations are written as in the configuration (`1h30m`), and a measured value
//! carries its unit in its name.

mod action;
mod activity;
mod backup;
mod brake;
mod detection;
mod event;
mod exemption;
mod explain;
mod hold;
mod idle_status;
mod lease;
mod policy;
mod token;
mod worker;
mod worker_change;

pub use action::{ActionAnswer, ActionRequest, Answer, IdleDetection, SnoozeRequest};
pub use activity::{ActivityEvent, WorkerActivity};
pub use backup::{BACKUP_TYPE, Backup};
pub use brake::{Brake, BrakeRelease, ReleaseBrake};
pub use detection::IdleDetectionResult;
pub use event::{Event, EventPage, EventQuery};
pub use exemption::{CreateExemption, Exemption, ExemptionList};
pub use explain::{Baseline, Explanation, Reading, Readings, Reason};
pub use hold::{Hold, HoldList};
pub use idle_status::WorkerIdleStatus;
pub use lease::{Lease, TakeLease};
pub use policy::{ChangePolicy, PolicyChange, PolicyLayer, PolicyList, Setting, settings};
pub use token::{CreateToken, CreatedToken, LoginLink, Role, Token, TokenList};
pub use worker::{Sleep, Worker, WorkerPage, WorkerQuery, WorkerView};
pub use worker_change::{Patch, PatchWorker, RegisterWorker};

/// The longest page of any list; also what is given when nobody asks for less.
pub const LONGEST_PAGE: u32 = 1_000;
