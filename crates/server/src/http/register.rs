//! `POST workers`: a worker by the same rules as one of the file.
//!
//! The request is written as a `[[worker]]` and read by the parser of the configuration, so that there is one
//! rule for what a worker may look like, and one sentence for each mistake.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use drowse_core::policy::Level;
use drowse_wire::problem::{Code, Problem};
use drowse_wire::v1::{RegisterWorker, Worker};
use serde_json::{Map, Value};

use super::ApiState;
use super::extract::Body;
use super::failure::{Answered, Failure};
use super::show::show;
use crate::auth::Principal;
use crate::config::{self, Input};
use crate::fleet::PolicyChange;
use crate::nested::nested;
use crate::spec::NewWorker;

/// Puts a worker on the books.
#[utoipa::path(post, path = "/api/v1/workers", tag = "workers", request_body = RegisterWorker,
    responses((status = 201, description = "It is on the books.", body = Worker)))]
pub(super) async fn register(
    State(state): State<ApiState>,
    who: Principal,
    Body(new): Body<RegisterWorker>,
) -> Answered<(StatusCode, Json<Worker>)> {
    let (new, policy) = read(new, &who.name)?;
    let id = new.id.clone();
    let registered = state.fleet().register_with(new, policy, &who.name).await;
    registered.map_err(|error| Failure::conflict_is(error, Code::AlreadyExists))?;
    Ok((StatusCode::CREATED, Json(show(state.fleet(), &id).await?.worker())))
}

fn read(new: RegisterWorker, by: &str) -> Answered<(NewWorker, Vec<PolicyChange>)> {
    let text = as_toml(new)?;
    let parsed = config::parse(&Input { file: "", text: &text, members: &[], variables: &[] });
    let config = parsed.strict().map_err(|problems| {
        let told = |problem: &config::Problem| match &problem.key {
            Some(key) => format!("{key}: {}", problem.fault),
            None => problem.fault.to_string(),
        };
        let all: Vec<String> = problems.iter().map(told).collect();
        let first = all.first().cloned().unwrap_or_default();
        Failure::from(Problem::new(Code::Invalid, first).with("problems", all))
    })?;
    let worker = config.workers.first().ok_or_else(|| Failure::invalid("id", "there is no worker in it"))?;
    let mut listed = NewWorker::listed(worker).map_err(|error| Failure::invalid("driver", error))?;
    // Nobody lists it: it stays until somebody deletes it.
    listed.spec.is_listed = false;
    let own = config.policy.layers().iter().filter(|layer| layer.level == Level::Worker);
    let policy = own.flat_map(|layer| &layer.values).map(|(key, value)| PolicyChange {
        level: Level::Worker,
        name: Some(listed.id.to_string()),
        key: *key,
        value: Some(value.clone()),
        by: by.to_owned(),
    });
    let policy = policy.collect();
    Ok((listed, policy))
}

fn as_toml(new: RegisterWorker) -> Answered<String> {
    let object = serde_json::to_value(new).ok().and_then(|value| match value {
        Value::Object(object) => Some(object),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
    });
    let mut object = object.unwrap_or_default();
    if let Some(Value::Object(policy)) = object.get_mut("policy") {
        *policy = nested(std::mem::take(policy));
    }
    // TOML has no null: outside a policy, where it means never, it is the same as not being there.
    object.retain(|_, value| !value.is_null());
    let worker = Value::Object(Map::from_iter([("worker".to_owned(), Value::Array(vec![object.into()]))]));
    // All that TOML cannot say is a null inside of a list or a table.
    toml::to_string(&worker).map_err(|_| Failure::bad_request("a null stands where a value is needed"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(value: Value) -> Answered<(NewWorker, Vec<PolicyChange>)> {
        read(serde_json::from_value(value).unwrap(), "alice")
    }

    #[test]
    fn a_worker_is_read_as_the_file_reads_it() {
        let (new, policy) = asked(json!({
            "id": "web", "driver": "process", "command": ["serve", "9001"], "group": "student",
            "policy": { "idle_timeout": "10s", "max_runtime": null, "signals.cpu.active_above": "3%" },
        }))
        .unwrap();
        assert_eq!(new.id.as_str(), "web");
        assert_eq!(new.selectors.group.as_deref(), Some("student"));
        assert!(!new.spec.is_listed);
        let keys: Vec<String> = policy.iter().map(|change| change.key.name()).collect();
        assert_eq!(keys.len(), 3, "{keys:?}");
        assert!(policy.iter().all(|change| change.name.as_deref() == Some("web") && change.by == "alice"));
    }

    #[test]
    fn what_the_file_would_refuse_is_refused() {
        let cases = [
            json!({ "id": "web", "driver": "process" }),
            json!({ "id": "web", "driver": "process", "command": ["x"], "colour": "red" }),
            json!({ "id": "web", "driver": "process", "command": ["x"], "policy": { "idle_timeout": 48 } }),
            json!({ "id": "a b", "driver": "process", "command": ["x"] }),
            json!({ "id": "web", "driver": "docker" }),
        ];
        for case in cases {
            let failure = asked(case.clone()).expect_err(&case.to_string());
            assert_eq!(failure.code(), "invalid", "{case}");
        }
    }
}
