//! `drowse up` with a real Docker engine: who is found, who sleeps, who does not, and what becomes of it all when somebody
//! else has a hand in it.

#[path = "containers/edge.rs"]
mod edge;
#[path = "../../../drivers/tests/conformance/engine.rs"]
mod engine;
#[path = "containers/exempt.rs"]
mod exempt;
#[path = "containers/found.rs"]
mod found;
#[path = "containers/gpu.rs"]
mod gpu;
#[path = "containers/holds.rs"]
mod holds;
#[path = "containers/idle.rs"]
mod idle;
#[path = "containers/late.rs"]
mod late;
#[path = "containers/names.rs"]
mod names;
#[path = "containers/stage.rs"]
mod stage;
#[path = "../../../sensors/tests/gpu/stand_in.rs"]
#[expect(dead_code, reason = "what the tests of the sensor do with it")]
mod stand_in;
#[path = "containers/stop.rs"]
mod stop;
#[path = "containers/streak.rs"]
mod streak;
#[path = "containers/unknown.rs"]
mod unknown;
#[path = "containers/warning.rs"]
mod warning;
#[path = "containers/ways.rs"]
mod ways;
