//! Layers: who may set a value, and which of them wins.
//!
//! Least to most specific: built-in → global → region → type → group → owner → worker. Within one level
//! the sources are ranked too: built-in < file < run-time change < environment. Each value is decided on
//! its own, so that an override of one key never loses another layer's keys.

use alloc::collections::BTreeMap;
use alloc::string::String;
use core::fmt;

use serde::Serialize;

use super::key::Key;
use super::value::Value;
use crate::reason::SleepMode;

/// How specific a layer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// What Drowse ships with.
    BuiltIn,
    /// The whole fleet.
    Global,
    /// Workers of one region.
    Region,
    /// Workers of one type.
    Type,
    /// Workers of one group.
    Group,
    /// Workers of one owner.
    Owner,
    /// One worker.
    Worker,
}

impl Level {
    /// Least specific first.
    pub const ALL: [Level; 7] = [
        Level::BuiltIn,
        Level::Global,
        Level::Region,
        Level::Type,
        Level::Group,
        Level::Owner,
        Level::Worker,
    ];

    pub const fn code(self) -> &'static str {
        match self {
            Level::BuiltIn => "built-in",
            Level::Global => "global",
            Level::Region => "region",
            Level::Type => "type",
            Level::Group => "group",
            Level::Owner => "owner",
            Level::Worker => "worker",
        }
    }
}

/// Where a layer's values come from. Later ones win within a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// What Drowse ships with.
    BuiltIn,
    /// The configuration file, labels or tags.
    File,
    /// A change through the API, stored with its author.
    RunTime,
    /// An environment variable; it pins the key.
    Environment,
}

impl Source {
    pub const fn code(self) -> &'static str {
        match self {
            Source::BuiltIn => "built-in",
            Source::File => "file",
            Source::RunTime => "run-time",
            Source::Environment => "environment",
        }
    }
}

/// The layer that set a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// How specific it is.
    pub level: Level,
    /// Which region, type, group, owner or worker.
    pub name: Option<String>,
    /// Where it comes from.
    pub source: Source,
    /// Who made the run-time change, or which variable pins the key.
    pub author: Option<String>,
    /// The key that the value follows, when nobody set it.
    pub follows: Option<Key>,
}

impl Origin {
    pub(super) const BUILT_IN: Origin =
        Origin { level: Level::BuiltIn, name: None, source: Source::BuiltIn, author: None, follows: None };

    pub(super) const fn following(key: Key) -> Origin {
        Origin { follows: Some(key), ..Origin::BUILT_IN }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(key) = self.follows {
            return write!(f, "follows {key}");
        }
        f.write_str(self.level.code())?;
        if let Some(name) = &self.name {
            write!(f, " {name}")?;
        }
        match (self.source, &self.author) {
            (Source::File, _) => Ok(()),
            (Source::BuiltIn, _) if self.level == Level::BuiltIn => Ok(()),
            (source, Some(author)) => write!(f, " ({}, {author})", source.code()),
            (source, None) => write!(f, " ({})", source.code()),
        }
    }
}

/// Some values from one source at one level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PolicyLayer {
    /// How specific it is.
    pub level: Level,
    /// Which region, type, group, owner or worker; `None` for built-in and global.
    pub name: Option<String>,
    /// Where its values come from.
    pub source: Source,
    /// Who made the run-time change, or which variable pins the key.
    pub author: Option<String>,
    /// What it sets. A key that is absent is inherited.
    pub values: BTreeMap<Key, Value>,
}

impl PolicyLayer {
    pub fn new(level: Level, name: Option<&str>, source: Source) -> Self {
        Self { level, name: name.map(Into::into), source, author: None, values: BTreeMap::new() }
    }

    #[must_use]
    pub fn with(mut self, key: Key, value: Value) -> Self {
        self.values.insert(key, value);
        self
    }

    /// The layer as the origin of one of its values.
    pub fn origin(&self) -> Origin {
        Origin {
            level: self.level,
            name: self.name.clone(),
            source: self.source,
            author: self.author.clone(),
            follows: None,
        }
    }

    /// What Drowse ships for a type. It is the built-in source *of the type layer*: a global value does
    /// not override it, `[policy.type.NAME]` and anything more specific does.
    pub fn built_in_type(name: &str) -> Option<PolicyLayer> {
        use core::time::Duration;
        let layer = PolicyLayer::new(Level::Type, Some(name), Source::BuiltIn);
        let stop = |grace: u64| {
            layer
                .clone()
                .with(Key::Sleep, Value::Sleep(SleepMode::Stop))
                .with(Key::Grace, Value::Duration(Duration::from_secs(grace)))
        };
        match name {
            // Seed 002: a microVM wakes in milliseconds, so a minute is long enough.
            "microvm" => Some(layer.with(Key::IdleTimeout, Value::Duration(Duration::from_mins(1)))),
            // Seed 004: time for a checkpoint; interactive sessions need less, services lie between.
            "gpu" => Some(stop(60)),
            "devcontainer" => Some(stop(30)),
            "compose" => Some(stop(45)),
            _ => None,
        }
    }
}
