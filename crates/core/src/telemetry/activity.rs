//! The few events that are kept to be shown.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};

use super::{Event, User};
use crate::Timestamp;

/// How many of the newest events a worker keeps unless its policy says otherwise (seed 000).
pub const RECENT_EVENTS: usize = 10;

/// Fields of an event's data that are kept. Those of CML that we know have at most three.
const MAX_FIELDS: usize = 8;

/// Bytes of a value that are kept; an id has 36. These are rows for people, not an archive.
const MAX_VALUE: usize = 120;

/// What a person did, as it is shown and stored.
///
/// Ordered by time first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Activity {
    /// When, never later than the check that found it.
    #[serde(rename = "timestamp")]
    pub at: Timestamp,
    /// CML's name for it.
    pub category: String,
    /// The data of the event as texts, shortened; what was nested is `…`.
    #[serde(default)]
    pub data: BTreeMap<String, String>,
}

impl Activity {
    pub(super) fn new(at: Timestamp, category: &str, event: &Event<'_>) -> Self {
        let mut data = BTreeMap::new();
        if let User::Text(id) = &event.user {
            data.insert("user_id".to_string(), clipped(id));
        }
        for (key, value) in event.data.iter().take(MAX_FIELDS) {
            let mut text = Clip(String::new());
            // An error only says that the text is full.
            let _ = write!(text, "{value}");
            data.insert(clipped(key), text.0);
        }
        Self { at, category: category.to_string(), data }
    }

    /// The data in one line: `lab_id=…, node_definition=alpine`.
    pub fn detail(&self) -> String {
        let mut line = String::new();
        for (key, value) in &self.data {
            let comma = if line.is_empty() { "" } else { ", " };
            for part in [comma, key, "=", value] {
                line.push_str(part);
            }
        }
        line
    }
}

/// A text that takes no more than [`MAX_VALUE`] bytes and then ends in `…`.
struct Clip(String);

impl fmt::Write for Clip {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MAX_VALUE.saturating_sub(self.0.len());
        if text.len() <= room {
            self.0.push_str(text);
            return Ok(());
        }
        self.0.push_str(&text[..text.floor_char_boundary(room)]);
        self.0.push('…');
        Err(fmt::Error)
    }
}

fn clipped(text: &str) -> String {
    let mut clip = Clip(String::new());
    // An error only says that the text is full.
    let _ = clip.write_str(text);
    clip.0
}

/// The newest `n` of both lists, newest first, each once.
///
/// This is how `recent_activity_events` lives on from check to check: one that finds nothing new changes
/// nothing, and a late event goes where its time says.
pub fn keep_newest(
    existing: Vec<Activity>,
    new: impl IntoIterator<Item = Activity>,
    n: usize,
) -> Vec<Activity> {
    let mut all = existing;
    all.extend(new);
    all.sort_unstable_by(|a, b| b.cmp(a));
    all.dedup();
    all.truncate(n);
    all
}
