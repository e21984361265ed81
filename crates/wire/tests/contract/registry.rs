//! Every message, by name.

use drowse_wire::problem::Problem;
use drowse_wire::v1::ActivityEvent;
use drowse_wire::v1::{
    ActionAnswer, ActionRequest, Answer, Backup, Baseline, Brake, BrakeRelease, ChangePolicy,
    CreateExemption, CreateToken, CreatedToken, Event, EventPage, EventQuery, Exemption, ExemptionList,
    Explanation, Hold, HoldList, IdleDetection, IdleDetectionResult, Lease, LoginLink, PatchWorker,
    PolicyChange, PolicyLayer, PolicyList, Reading, Readings, Reason, RegisterWorker, ReleaseBrake, Role,
    Setting, Sleep, SnoozeRequest, TakeLease, Token, TokenList, Worker, WorkerActivity, WorkerIdleStatus,
    WorkerPage, WorkerQuery,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A message and how it goes through its type and back.
pub(crate) struct Message {
    pub(crate) name: &'static str,
    pub(crate) round_trip: fn(Value) -> Result<Value, String>,
}

fn round_trip<T: Serialize + DeserializeOwned>(value: Value) -> Result<Value, String> {
    let message: T = serde_json::from_value(value).map_err(|error| error.to_string())?;
    serde_json::to_value(message).map_err(|error| error.to_string())
}

fn message<T: Serialize + DeserializeOwned>() -> Message {
    let name = std::any::type_name::<T>().rsplit("::").next().expect("a type has a name");
    Message { name, round_trip: round_trip::<T> }
}

pub(crate) fn messages() -> Vec<Message> {
    vec![
        message::<ActionAnswer>(),
        message::<ActionRequest>(),
        message::<ActivityEvent>(),
        message::<Answer>(),
        message::<Backup>(),
        message::<Baseline>(),
        message::<Brake>(),
        message::<BrakeRelease>(),
        message::<ChangePolicy>(),
        message::<CreateExemption>(),
        message::<CreateToken>(),
        message::<CreatedToken>(),
        message::<LoginLink>(),
        message::<Event>(),
        message::<EventPage>(),
        message::<EventQuery>(),
        message::<Exemption>(),
        message::<ExemptionList>(),
        message::<Explanation>(),
        message::<Hold>(),
        message::<HoldList>(),
        message::<IdleDetection>(),
        message::<IdleDetectionResult>(),
        message::<Lease>(),
        message::<PatchWorker>(),
        message::<PolicyChange>(),
        message::<PolicyLayer>(),
        message::<PolicyList>(),
        message::<Problem>(),
        message::<Reading>(),
        message::<Readings>(),
        message::<Reason>(),
        message::<RegisterWorker>(),
        message::<ReleaseBrake>(),
        message::<Role>(),
        message::<Setting>(),
        message::<Sleep>(),
        message::<SnoozeRequest>(),
        message::<TakeLease>(),
        message::<Token>(),
        message::<TokenList>(),
        message::<Worker>(),
        message::<WorkerActivity>(),
        message::<WorkerIdleStatus>(),
        message::<WorkerPage>(),
        message::<WorkerQuery>(),
    ]
}
