//! The loop, the facade and the store together, on a simulated driver and a clock that stands still.

#[path = "reconcile/bench.rs"]
mod bench;
#[path = "reconcile/driver.rs"]
mod driver;
#[path = "reconcile/holds.rs"]
mod holds;
#[path = "reconcile/idle.rs"]
mod idle;
#[path = "reconcile/law.rs"]
mod law;
#[path = "reconcile/life.rs"]
mod life;
#[path = "reconcile/outside.rs"]
mod outside;
#[path = "reconcile/policy.rs"]
mod policy;
#[path = "reconcile/restart.rs"]
mod restart;
