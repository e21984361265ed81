//! What the front door asks of whoever looks after the workers.
//!
//! The door counts connections and holds bytes; whether a worker sleeps, who may wake it and what becomes of it
//! is decided elsewhere. In one process that is the fleet itself, across processes a client of it: both are a
//! [`Control`].
//!
//! What must stay true:
//! - only the edges of a worker's count are told, 0 → some and some → 0, each with an epoch that grows, so that
//!   a release that was delayed on its way cannot undo a newer hold;
//! - a connection is told before the worker is asked for, and counts from the moment the answer is there; where a
//!   [head start](Control::head_start) is given, it counts from there;
//! - past [`Control::valid_until`] what was told holds nothing any more: nothing is forwarded until it has been
//!   told again;
//! - an address that was found is a run's ([`Way`]): whoever dials it makes sure afterwards that the run still
//!   stands, before a byte of anybody is said there.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::id::{BootId, WorkerId};
use serde::{Deserialize, Serialize};

/// The future of a call. One allocation: a call is made at an edge of a count, not for each connection.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Refused>> + Send + 'a>>;

/// Whoever looks after the workers, as the front door sees it.
pub trait Control: fmt::Debug + Send + Sync + 'static {
    /// Tells of an edge of the count of a worker's connections.
    ///
    /// The first connection is counted and the worker asked for at once, so that no sleep fits in between. What
    /// is refused counts as nothing. Edges of one worker are told one after the other.
    fn connections<'a>(&'a self, worker: &'a WorkerId, edge: Edge) -> Answer<'a, Standing>;

    /// Lets a frozen worker go on for somebody who has just come, if that takes no waiting: before the edge is told,
    /// which has to follow. They are counted from here on. `None`: it was not done, and everything takes its
    /// ordinary course.
    ///
    /// `counted` is called when they count and just before the worker goes on: whoever is to find them at its door then
    /// has called by that time. It must not wait.
    fn head_start(&self, _worker: &WorkerId, _edge: Edge, _counted: &mut dyn FnMut()) -> Option<Standing> {
        None
    }

    /// Waits until a worker that was asked for is awake. However many ask, it is woken once.
    ///
    /// There is no deadline here beyond that of the worker's own transition: whoever asks has one. Dropping the
    /// future is allowed and takes nothing back.
    fn wake<'a>(&'a self, worker: &'a WorkerId) -> Answer<'a, Awake>;

    /// Waits until a worker that was awake is not any more, whatever the reason; that it is on its way to sleep is
    /// told first. `is_falling`: that is known already.
    fn slept<'a>(&'a self, worker: &'a WorkerId, is_falling: bool) -> Answer<'a, Slept>;

    /// How a worker stands, without counting anything or waking anybody.
    fn look<'a>(&'a self, worker: &'a WorkerId) -> Answer<'a, Standing>;

    /// Whether a worker is awake, or frozen and there as soon as it is told to go on: whether it takes no start.
    fn is_at_hand<'a>(&'a self, worker: &'a WorkerId) -> Answer<'a, bool> {
        Box::pin(async move { Ok(self.look(worker).await?.is_awake) })
    }

    /// Where a port of a worker is found in its present run. Asked before a worker is dialled whose address is not
    /// written down: it may be another one after each start, and somebody else's by then.
    fn way<'a>(&'a self, _worker: &'a WorkerId, _port: u16) -> Answer<'a, Way> {
        let message = "nobody here knows addresses of workers".to_owned();
        Box::pin(async { Err(Refused::Unavailable { message }) })
    }

    /// Bytes went through, just now. False: it cannot be taken in, so nobody must rely on it.
    fn saw_bytes(&self, worker: &WorkerId) -> bool;

    /// Until when what was told holds, on the clock that the router was given.
    fn valid_until(&self) -> Timestamp;
}

/// An edge of the count of a worker's connections through one router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// Its number: grows with every edge of this router.
    pub epoch: u64,
    /// How many there are from now on.
    pub count: u64,
    /// What happened.
    pub cause: EdgeCause,
}

/// What happened at an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EdgeCause {
    /// Somebody came who may wake the worker.
    Came,
    /// Somebody came who may not: counted if the worker is awake or on its way, refused if it sleeps.
    CameToTheAwake,
    /// The last one has left. That is activity.
    Left,
    /// The last one has been silent for so long that it does not count any more. That is not.
    FellSilent,
}

/// How a worker stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// It runs. Otherwise it is on its way, or, if it was only looked at, perhaps asleep.
    pub is_awake: bool,
    /// Its present run, or of a sleeping one the last; `None`: nobody knows.
    pub boot: Option<BootId>,
    /// After how much silence a connection stops counting; `None`: never.
    pub connection_idle: Option<Duration>,
}

/// A worker that is awake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Awake {
    /// Its present run.
    pub boot: Option<BootId>,
}

/// A way to a port of a worker, good for one run of it.
#[derive(Clone, Debug)]
pub struct Way {
    /// Where that port is found.
    pub address: SocketAddr,
    /// The run whose address it is.
    pub run: Arc<dyn Run>,
}

/// A run of a worker, as whoever dials its address sees it.
pub trait Run: fmt::Debug + Send + Sync {
    /// Whether what was said of its addresses still holds. Never waits for anything: it is asked by threads that move
    /// the bytes of others.
    ///
    /// An address that was the run's before somebody dialled it, and a run that stands after that was picked up: it was
    /// picked up by this run. Once false, false for ever.
    fn stands(&self) -> bool;
}

/// What became of a worker that was awake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Slept {
    /// It is being put to sleep although there are connections. Whoever comes may yet call it back.
    Falling {
        /// When that was decided: whoever came later did so to a worker that was to sleep.
        since: Timestamp,
    },
    /// It was put to sleep although there are connections: they end, unless one came later.
    Asleep {
        /// When that was decided; `None`: it sleeps for no decision of ours.
        since: Option<Timestamp>,
    },
    /// It went away by itself and is being brought back.
    Restarting,
}

/// Why not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Refused {
    /// It sleeps, and a connection does not wake it.
    #[error("{message}")]
    NotAllowed {
        /// The sentence for a person.
        message: String,
        /// The sleep that waits for somebody else, where that is the reason.
        sleep: Option<SleepTold>,
    },
    /// It was being woken, and this is what became of it instead.
    #[error("it did not come up: {message}")]
    DidNotComeUp {
        /// The sentence for a person.
        message: String,
    },
    /// There is no such worker.
    #[error("there is no such worker")]
    NoSuchWorker,
    /// Nobody can tell just now. Asking again is worth while.
    #[error("{message}")]
    Unavailable {
        /// The sentence for a person.
        message: String,
    },
}

/// A sleep, for whoever was turned away because of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SleepTold {
    /// Who caused it.
    pub by: String,
    /// The code of the reason.
    pub reason: String,
    /// When.
    pub at: Timestamp,
}
