//! Holds: reasons to stay awake, with a kind, an owner, a text and an end.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;

/// What kind of reason it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldKind {
    /// A program said "I am busy" for a time.
    Lease,
    /// Somebody is connected through the front door.
    Connection,
    /// Protection from automatic sleep, after a resume.
    Snooze,
    /// A person's *keep awake*: a snooze that somebody took.
    KeepAwake,
    /// It is exempt from being put to sleep when idle.
    Exemption,
    /// A window of its schedule keeps it awake.
    Schedule,
    /// It has only just started.
    StartupGrace,
    /// There is a keep-alive file in it.
    KeepAliveFile,
}

impl HoldKind {
    pub const ALL: [HoldKind; 8] = [
        HoldKind::Lease,
        HoldKind::Connection,
        HoldKind::Snooze,
        HoldKind::KeepAwake,
        HoldKind::Exemption,
        HoldKind::Schedule,
        HoldKind::StartupGrace,
        HoldKind::KeepAliveFile,
    ];

    pub const fn code(self) -> &'static str {
        match self {
            HoldKind::Lease => "lease",
            HoldKind::Connection => "connection",
            HoldKind::Snooze => "snooze",
            HoldKind::KeepAwake => "keep_awake",
            HoldKind::Exemption => "exemption",
            HoldKind::Schedule => "schedule",
            HoldKind::StartupGrace => "startup_grace",
            HoldKind::KeepAliveFile => "keep_alive_file",
        }
    }

    /// Whether the idle clock starts afresh when it ends.
    ///
    /// Somebody worked under a lease, a connection, a keep-alive file or an exemption; the others only
    /// hold sleep back.
    pub const fn end_restarts_clock(self) -> bool {
        match self {
            HoldKind::Lease | HoldKind::Connection | HoldKind::KeepAliveFile | HoldKind::Exemption => true,
            HoldKind::Snooze | HoldKind::KeepAwake | HoldKind::Schedule | HoldKind::StartupGrace => false,
        }
    }

    /// Whether it stands in the way of a person's pause, stop or terminate too. The others protect from
    /// automatic sleep only; one's own *keep awake* is one's own to end.
    pub const fn blocks_people(self) -> bool {
        match self {
            HoldKind::Lease | HoldKind::Connection | HoldKind::KeepAliveFile | HoldKind::KeepAwake => true,
            HoldKind::Snooze | HoldKind::Exemption | HoldKind::Schedule | HoldKind::StartupGrace => false,
        }
    }
}

impl fmt::Display for HoldKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// A reason to stay awake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// What kind it is.
    pub kind: HoldKind,
    /// Whose it is: a lease's holder, a router, a person.
    pub owner: String,
    /// What for, in the holder's words.
    pub reason: String,
    /// Since when.
    pub since: Timestamp,
    /// When it ends by itself; `None` if that is not known.
    pub until: Option<Timestamp>,
}

impl Hold {
    /// Whether it holds at `now`. At the very instant of its end it is over.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| until > now)
    }

    /// Whether it stands in the way of what the person `by` asks for.
    pub fn blocks(&self, by: &str, now: Timestamp) -> bool {
        let is_own = self.kind == HoldKind::KeepAwake && self.owner == by;
        self.kind.blocks_people() && self.is_live(now) && !is_own
    }
}

/// What a look for a keep-alive file came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeepAlive {
    /// There is nothing to look for, or no way to look into such a worker.
    NotLooked,
    /// There is none that still counts.
    Absent,
    /// Nobody can tell, and that is not the same.
    Unreadable,
    /// There is one.
    Holds(Hold),
}

impl KeepAlive {
    /// From the file at `path` that was last touched at that time, if there is one. One from the future was touched now.
    pub fn of(path: &str, touched: Option<Timestamp>, max_age: Duration, now: Timestamp) -> Self {
        let hold = touched.map(|at| at.min(now)).map(|since| Hold {
            kind: HoldKind::KeepAliveFile,
            owner: path.to_string(),
            reason: "there is a keep-alive file in it".to_string(),
            since,
            until: Some(since + max_age),
        });
        hold.filter(|hold| hold.is_live(now)).map_or(KeepAlive::Absent, KeepAlive::Holds)
    }

    /// The holds of a worker once this was found: what was known of the file gives way to what is known now.
    pub fn amend(&self, holds: &mut Vec<Hold>) {
        match self {
            KeepAlive::NotLooked | KeepAlive::Unreadable => {}
            KeepAlive::Absent | KeepAlive::Holds(_) => {
                holds.retain(|hold| hold.kind != HoldKind::KeepAliveFile);
                if let KeepAlive::Holds(hold) = self {
                    holds.push(hold.clone());
                }
            }
        }
    }
}

/// A set of kinds of holds, so that a verdict can name them without allocating.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct HoldKinds(u8);

impl HoldKinds {
    pub fn insert(&mut self, kind: HoldKind) {
        self.0 |= 1 << kind as u8;
    }

    pub const fn contains(self, kind: HoldKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn iter(self) -> impl Iterator<Item = HoldKind> {
        HoldKind::ALL.into_iter().filter(move |kind| self.contains(*kind))
    }
}

impl fmt::Debug for HoldKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl Serialize for HoldKinds {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for HoldKinds {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut kinds = HoldKinds::default();
        for kind in Vec::<HoldKind>::deserialize(deserializer)? {
            kinds.insert(kind);
        }
        Ok(kinds)
    }
}
