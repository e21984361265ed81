//! `drowse up` dies and has bad surroundings: whatever happens, nobody waits at a frozen worker, nothing is stuck,
//! nothing is lost, and nothing is paused that should not be.

#![expect(clippy::unwrap_used, reason = "all of this is tests, its helpers too")]

#[path = "survive/act.rs"]
mod act;
#[path = "survive/chance.rs"]
mod chance;
#[path = "../../../store/tests/contract/cluster.rs"]
pub(crate) mod cluster;
#[path = "survive/cut.rs"]
mod cut;
#[path = "survive/disk.rs"]
mod disk;
#[path = "survive/early.rs"]
mod early;
#[path = "../../../server/tests/reconcile/journal.rs"]
mod journal;
#[path = "survive/law.rs"]
mod law;
#[path = "survive/points.rs"]
mod points;
#[path = "survive/postgres.rs"]
mod postgres;
#[path = "survive/stand.rs"]
mod stand;
#[path = "survive/surroundings.rs"]
mod surroundings;
#[path = "survive/truth.rs"]
mod truth;
#[path = "survive/wait.rs"]
mod wait;
