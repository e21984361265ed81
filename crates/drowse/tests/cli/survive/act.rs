//! What is going on when Drowse dies: each act has a state that it begins in, what sets it off, and its end.

use std::io;
use std::thread::{self, ScopedJoinHandle};

use super::stand::Stand;
use super::wait::{until, until_or};
use crate::up::running::Up;

/// A worker to which only people do something. Connections wake it whoever put it to sleep, so that it shows at
/// once whether they can.
pub(crate) const BY_PEOPLE: &str =
    "policy.idle_timeout = \"1h\"\npolicy.wake_from = [\"idle_timeout\", \"manual\"]";

/// One that falls asleep by itself as soon as it may, and again however often it is woken.
pub(crate) const SOON_IDLE: &str = "policy.idle_timeout = \"1s\"\npolicy.stop_after = \"1s\"\n\
     policy.snooze = \"0s\"\npolicy.flap_guard = false";

/// Something that Drowse does to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Act {
    /// A person pauses it.
    Pause,
    /// A person pauses it and a connection comes in the middle: the pause is taken back.
    PauseUndone,
    /// A person wakes it from its freeze.
    Resume,
    /// A connection does.
    Wake,
    /// A person stops it.
    Stop,
    /// A person stops it while it is frozen.
    StopFrozen,
    /// A connection starts it.
    Start,
    /// It is idle: it is frozen, then stopped, and a connection starts it again.
    Idle,
    /// It is idle, and a connection comes while it is being frozen.
    IdleUndone,
}

/// How an act ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Died,
    Done,
}

impl Act {
    /// Points that are certainly passed.
    pub(crate) const fn passes(self) -> &'static [&'static str] {
        match self {
            Act::Pause => {
                &["pause:after-commit", "freeze:before-call", "freeze:after-call", "paused:after-commit"]
            }
            Act::PauseUndone => {
                &["pause:after-commit", "connections:after-commit", "paused:after-commit", "thaw:after-call"]
            }
            Act::Resume => {
                &["resume:after-commit", "thaw:before-call", "thaw:after-call", "answer:after-commit"]
            }
            Act::Wake => &[
                "head-start:before-call",
                "head-start:after-call",
                "connections:after-commit",
                "thaw:before-call",
                "thaw:after-call",
                "answer:after-commit",
            ],
            Act::Stop | Act::StopFrozen => {
                &["stop:before-commit", "stop:before-call", "stop:after-call", "answer:after-commit"]
            }
            Act::Start => &["connections:after-commit", "start:before-call", "start:after-call"],
            Act::Idle => &["check:before-commit", "freeze:after-call", "stop:after-call", "start:after-call"],
            Act::IdleUndone => &["check:after-commit", "freeze:after-call", "connections:after-commit"],
        }
    }

    /// Brings the worker to where the act begins.
    pub(crate) fn begin(self, stand: &Stand) {
        let order = |what, then| {
            let answer = stand.order(0, what);
            assert!(matches!(answer, Ok((200 | 202, _))), "{answer:?}");
            stand.wait_for(0, then);
        };
        stand.ask(0).unwrap();
        // For a moment the door holds the worker for whoever may come next, and a visitor of that moment is served before
        // an order is carried out: acts begin when it is over.
        until("the door has let go", || match stand.api("GET", "/api/v1/workers/w0/holds", "") {
            Ok((200, holds)) if !holds.to_string().contains("connection") => Ok(()),
            other => Err(format!("{other:?}")),
        });
        match self {
            Act::Idle | Act::IdleUndone => {}
            Act::Pause | Act::PauseUndone | Act::Stop => stand.wait_for(0, "running"),
            Act::Resume | Act::Wake | Act::StopFrozen => order("pause", "paused"),
            Act::Start => order("stop", "stopped"),
        }
    }

    /// Sets it off and waits until it is over, one way or the other.
    pub(crate) fn perform(self, stand: &Stand, up: &mut Up) -> Ended {
        thread::scope(|scope| {
            let client = || scope.spawn(|| stand.ask(0));
            let mut clients: Vec<ScopedJoinHandle<'_, io::Result<String>>> = Vec::new();
            let end = match self {
                Act::Pause => ordered(stand, up, "pause").then_some("paused"),
                Act::Resume => ordered(stand, up, "resume").then_some("running"),
                Act::Stop | Act::StopFrozen => ordered(stand, up, "stop").then_some("stopped"),
                Act::PauseUndone => {
                    let is_alive = ordered(stand, up, "pause");
                    clients.push(client());
                    is_alive.then_some("running")
                }
                Act::Wake | Act::Start => {
                    clients.push(client());
                    Some("running")
                }
                Act::Idle => {
                    let is_alive = reached(stand, up, "stopped") == Ended::Done;
                    clients.push(client());
                    is_alive.then_some("running")
                }
                Act::IdleUndone => {
                    let is_alive = reached(stand, up, "pausing") == Ended::Done;
                    clients.push(client());
                    is_alive.then_some("running")
                }
            };
            let answers: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
            let ended = end.map_or(Ended::Died, |end| reached(stand, up, end));
            if ended == Ended::Done {
                // Only a death may cut somebody off.
                for answer in answers {
                    answer.unwrap();
                }
            }
            ended
        })
    }
}

/// Gives an order; whether Drowse has lived to answer it.
fn ordered(stand: &Stand, up: &mut Up, what: &str) -> bool {
    match stand.order(0, what) {
        Ok((200 | 202, _)) => true,
        other => {
            until(&format!("it died of the {what}, or took it"), || {
                if up.is_over() { Ok(()) } else { Err(format!("{other:?}")) }
            });
            false
        }
    }
}

/// Waits for a status, or for death.
fn reached(stand: &Stand, up: &mut Up, wanted: &str) -> Ended {
    let look = || {
        let status = stand.status(0);
        if up.is_over() {
            return Ok(Ended::Died);
        }
        match status {
            Ok(status) if status == wanted => Ok(Ended::Done),
            other => Err(format!("{other:?}")),
        }
    };
    until_or(&format!("it is {wanted}, or dies"), look, || stand.story(0))
}
