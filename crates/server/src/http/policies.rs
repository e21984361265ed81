//! `policies`: the layers, and changes at run time.

use axum::Json;
use axum::extract::State;
use drowse_core::policy::{Key, Kind, Level, PolicyLayer as Layer, Source, Values};
use drowse_wire::problem::Code;
use drowse_wire::v1::{ChangePolicy, PolicyChange as Changed, PolicyLayer, PolicyList, Role};
use serde_json::Value;

use super::ApiState;
use super::extract::{Body, LayerName, LevelName};
use super::failure::{Answered, Failure};
use crate::auth::Principal;
use crate::config::nearest;
use crate::fleet::{PolicyChange, PolicyView};

/// Lists every layer, least specific first.
#[utoipa::path(get, path = "/api/v1/policies", tag = "policy",
    responses((status = 200, description = "All layers.", body = PolicyList)))]
pub(super) async fn list(State(state): State<ApiState>) -> Answered<Json<PolicyList>> {
    let view = state.fleet().policies().await?;
    let mut layers: Vec<&Layer> = view.layers.iter().collect();
    layers.sort_by(|a, b| (a.level, &a.name).cmp(&(b.level, &b.name)));
    let layers = layers.into_iter().map(|layer| PolicyLayer::of(layer, changed_at(&view, layer)));
    Ok(Json(PolicyList { layers: layers.collect() }))
}

fn changed_at(view: &PolicyView, layer: &Layer) -> Option<drowse_core::Timestamp> {
    if layer.source != Source::RunTime {
        return None;
    }
    let of_layer =
        view.changed.iter().filter(|value| (value.level, &value.name) == (layer.level, &layer.name));
    of_layer
        .filter(|value| layer.values.keys().any(|key| key.name() == value.key))
        .map(|value| value.at)
        .max()
}

/// Changes the global layer.
#[utoipa::path(patch, path = "/api/v1/policies/global", tag = "policy", request_body = ChangePolicy,
    responses((status = 200, description = "It counts from now on.", body = Changed)))]
pub(super) async fn change_global(
    State(state): State<ApiState>,
    who: Principal,
    Body(change): Body<ChangePolicy>,
) -> Answered<Json<Changed>> {
    apply(&state, &who, Level::Global, None, change).await
}

/// Changes the layer of a region, type, group, owner or worker.
#[utoipa::path(patch, path = "/api/v1/policies/{level}/{name}", tag = "policy", request_body = ChangePolicy,
    responses((status = 200, description = "It counts from now on.", body = Changed)))]
pub(super) async fn change(
    State(state): State<ApiState>,
    who: Principal,
    LevelName(level): LevelName,
    LayerName(name): LayerName,
    Body(change): Body<ChangePolicy>,
) -> Answered<Json<Changed>> {
    let named = [Level::Region, Level::Type, Level::Group, Level::Owner, Level::Worker];
    let level = named
        .into_iter()
        .find(|known| known.code() == level)
        .ok_or_else(|| Failure::not_found(format!("policy level {level} with names")))?;
    apply(&state, &who, level, Some(name), change).await
}

async fn apply(
    state: &ApiState,
    who: &Principal,
    level: Level,
    name: Option<String>,
    change: ChangePolicy,
) -> Answered<Json<Changed>> {
    let set: Values =
        serde_json::from_value(Value::Object(change.set)).map_err(|error| Failure::invalid("set", error))?;
    let reset = change.reset.iter().map(|name| key(name)).collect::<Answered<Vec<Key>>>()?;
    // A hook is a command that runs as Drowse does: whoever may set one may do anything. And what an admin has set
    // to protect work, nobody else takes away.
    let command = set.0.keys().chain(&reset).find(|key| key.kind() == Kind::Command);
    if let Some(key) = command.filter(|_| who.role != Role::Admin) {
        return Err(Failure::new(
            Code::Forbidden,
            format!("{key} is a command, which is an admin's to change"),
        ));
    }
    if set.0.is_empty() && reset.is_empty() {
        return Err(Failure::invalid("set", "nothing is to be changed"));
    }
    let twice = reset
        .iter()
        .enumerate()
        .find(|(place, key)| set.0.contains_key(key) || reset[..*place].contains(key));
    if let Some((_, key)) = twice {
        return Err(Failure::invalid("reset", format!("{key} is named twice")));
    }
    let one = |key, value| PolicyChange { level, name: name.clone(), key, value, by: who.name.clone() };
    let sets = set.0.into_iter().map(|(key, value)| one(key, Some(value)));
    let changes = sets.chain(reset.into_iter().map(|key| one(key, None))).collect();
    let applied = state.fleet().set_policies(changes, change.message).await?;
    let view = state.fleet().policies().await?;
    Ok(Json(Changed { layer: run_time(&view, level, name.as_deref()), worker_count: applied.workers }))
}

fn key(name: &str) -> Answered<Key> {
    Key::from_name(name).ok_or_else(|| {
        let names: Vec<String> = Key::all().map(Key::name).collect();
        let meant = nearest(name, names.iter().map(String::as_str));
        let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant:?}?"));
        Failure::invalid("reset", format!("there is no key {name:?}{meant}"))
    })
}

/// Everything that was set at run time in one layer.
fn run_time(view: &PolicyView, level: Level, name: Option<&str>) -> PolicyLayer {
    let mut merged = Layer::new(level, name, Source::RunTime);
    let of_layer = view.layers.iter().filter(|layer| {
        layer.source == Source::RunTime && layer.level == level && layer.name.as_deref() == name
    });
    for layer in of_layer {
        merged.values.extend(layer.values.clone());
    }
    let changed = view.changed.iter().filter(|value| value.level == level && value.name.as_deref() == name);
    let newest = changed.max_by_key(|value| value.at);
    merged.author = newest.map(|value| value.author.clone());
    PolicyLayer::of(&merged, newest.map(|value| value.at))
}
