//! `drowse up` with a real Docker engine: who is found, who sleeps, who does not, and what becomes of it all when somebody
//! else has a hand in it.

#[path = "../../../drivers/tests/conformance/engine.rs"]
mod engine;
#[path = "containers/found.rs"]
mod found;
#[path = "containers/holds.rs"]
mod holds;
#[path = "containers/idle.rs"]
mod idle;
#[path = "containers/names.rs"]
mod names;
#[path = "containers/stage.rs"]
mod stage;
#[path = "containers/stop.rs"]
mod stop;
#[path = "containers/unknown.rs"]
mod unknown;
#[path = "containers/ways.rs"]
mod ways;
