//! Named places at which a test may let the program die.
//!
//! They stand before and after each commit and each call of a driver: between them nothing happens that
//! anybody else could see. Without a hook a point costs the look at an `Option`.
//!
//! In a simulation the "program" is a set of tasks, and dying is never going on: once the hook has said so at
//! one point it says so at every other, and the test throws all tasks away. In a test with a real process the
//! hook ends the process and does not return.

use std::fmt;
use std::sync::Arc;

/// A place, and when relative to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CrashPoint {
    /// The transaction of this name is about to begin; a crash inside it is the same.
    BeforeCommit(&'static str),
    /// It is committed.
    AfterCommit(&'static str),
    /// The driver is about to be asked.
    BeforeCall(&'static str),
    /// It has answered, and nobody knows yet.
    AfterCall(&'static str),
}

impl fmt::Display for CrashPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CrashPoint::BeforeCommit(name) => write!(f, "{name}:before-commit"),
            CrashPoint::AfterCommit(name) => write!(f, "{name}:after-commit"),
            CrashPoint::BeforeCall(name) => write!(f, "{name}:before-call"),
            CrashPoint::AfterCall(name) => write!(f, "{name}:after-call"),
        }
    }
}

type Hook = dyn Fn(CrashPoint) -> bool + Send + Sync;

/// Where the program may be made to die. The default is nowhere.
#[derive(Clone, Default)]
pub struct CrashPoints(Option<Arc<Hook>>);

impl CrashPoints {
    /// `dies` says, at each point, whether the program is dead from there on.
    pub fn new(dies: impl Fn(CrashPoint) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(dies)))
    }

    /// Passes a point, or never comes back.
    pub async fn pass(&self, point: CrashPoint) {
        if let Some(dies) = &self.0
            && dies(point)
        {
            std::future::pending::<()>().await;
        }
    }

    /// The same where nobody can wait: true if the program is dead, and whoever asks goes on with nothing.
    pub fn dies_at(&self, point: CrashPoint) -> bool {
        self.0.as_ref().is_some_and(|dies| dies(point))
    }
}

impl fmt::Debug for CrashPoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CrashPoints").field(&self.0.is_some()).finish()
    }
}
