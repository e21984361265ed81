//! What a front door says that is a guest of another Drowse: one that was replaced, and carries its connections to
//! their end.
//!
//! A line of JSON each, over a socket in the data folder:
//!
//! ```text
//!   guest                                                   host
//!    │── begin: its session ──────────────────────────────▶│
//!    │── carry: what it has, for each worker ─────────────▶│  counts it again
//!    │◀────────────────────────────── an answer to each ───│
//!    │── connections, wake, slept, look: as a `Control` ──▶│
//!    │── renew, every few seconds ────────────────────────▶│  from when it was *asked*, the session is good for a while
//!    │◀──────────────────────────────────────────── end ───│  it ends too
//! ```
//!
//! Whoever finds the line broken begins again with all of it, under the same session: an edge that was told twice is
//! the same edge, because it has the same epoch.

use drowse_core::id::WorkerId;
use serde::{Deserialize, Serialize};

use crate::control::{Awake, Edge, Refused, Slept, Standing};

/// How the names of guests' sessions begin: no other router has such a name.
pub const SESSION: &str = "guest-";

/// How long a line may be. The longest that is said has an id and a sentence in it.
pub const LONGEST: usize = 64 << 10;

/// What a guest says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// It wants to know something.
    Ask {
        /// The number by which it is answered.
        id: u64,
        /// What.
        ask: Ask,
    },
    /// It does not want to know it any more.
    Cancel {
        /// What it asked.
        id: u64,
    },
    /// Bytes went through, just now.
    SawBytes {
        /// To whom or from whom.
        worker: WorkerId,
    },
}

/// What a guest wants to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// To be taken in. First of all.
    Begin {
        /// The name of its session.
        session: String,
    },
    /// For its session to be renewed.
    Renew,
    /// For what it has told somebody before to be counted.
    Carry {
        /// To whom.
        worker: WorkerId,
        /// The number of the edge.
        epoch: u64,
        /// How many.
        count: u64,
    },
    /// As [`Control::connections`](crate::control::Control::connections).
    Connections {
        /// To whom.
        worker: WorkerId,
        /// The edge.
        edge: Edge,
    },
    /// As [`Control::wake`](crate::control::Control::wake).
    Wake {
        /// Who.
        worker: WorkerId,
    },
    /// As [`Control::slept`](crate::control::Control::slept).
    Slept {
        /// Who.
        worker: WorkerId,
        /// That it is on its way to sleep is known.
        is_falling: bool,
    },
    /// As [`Control::look`](crate::control::Control::look).
    Look {
        /// At whom.
        worker: WorkerId,
    },
}

/// What its host says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// This is so.
    Given {
        /// What was asked.
        id: u64,
        /// How it is.
        given: Given,
    },
    /// That cannot be had.
    Refused {
        /// What was asked.
        id: u64,
        /// Why.
        refused: Refused,
    },
    /// The host ends, and nobody follows it: so does the guest.
    End,
}

impl Reply {
    /// The answer to a question.
    pub fn to(id: u64, answer: Result<Given, Refused>) -> Self {
        match answer {
            Ok(given) => Self::Given { id, given },
            Err(refused) => Self::Refused { id, refused },
        }
    }
}

/// How something is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Given {
    /// Done.
    Done,
    /// So a worker stands.
    Standing(Standing),
    /// It is awake.
    Awake(Awake),
    /// It is not any more.
    Slept(Slept),
}

/// Whether a guest may call its session that.
pub fn is_session(name: &str) -> bool {
    let own = name.strip_prefix(SESSION).unwrap_or_default();
    (1..=32).contains(&own.len()) && own.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use drowse_core::Timestamp;
    use drowse_core::id::BootId;

    use super::*;
    use crate::control::{EdgeCause, SleepTold};

    #[test]
    fn words_and_replies_look_like_this_and_are_read_back_to_the_microsecond() {
        let web = WorkerId::new("web").unwrap();
        let edge = Edge { epoch: 7, count: 1, cause: EdgeCause::CameToTheAwake };
        let words = [
            (
                Word::Ask { id: 1, ask: Ask::Begin { session: "guest-0f".to_owned() } },
                r#"{"ask":{"id":1,"ask":{"begin":{"session":"guest-0f"}}}}"#,
            ),
            (Word::Ask { id: 2, ask: Ask::Renew }, r#"{"ask":{"id":2,"ask":"renew"}}"#),
            (
                Word::Ask { id: 3, ask: Ask::Connections { worker: web.clone(), edge } },
                r#"{"ask":{"id":3,"ask":{"connections":{"worker":"web","edge":{"epoch":7,"count":1,"cause":"came_to_the_awake"}}}}}"#,
            ),
            (Word::Cancel { id: 3 }, r#"{"cancel":{"id":3}}"#),
            (Word::SawBytes { worker: web }, r#"{"saw_bytes":{"worker":"web"}}"#),
        ];
        for (word, line) in words {
            assert_eq!(serde_json::to_string(&word).unwrap(), line);
            assert_eq!(serde_json::from_str::<Word>(line).unwrap(), word);
        }
        let at = Timestamp::from_micros(1_700_000_000_123_457);
        let standing = Standing {
            is_awake: true,
            boot: Some(BootId::new("b")),
            connection_idle: Some(Duration::from_micros(1_500_001)),
        };
        let sleep = SleepTold { by: "ann".to_owned(), reason: "manual".to_owned(), at };
        let answers = [
            Ok(Given::Done),
            Ok(Given::Standing(standing)),
            Ok(Given::Awake(Awake { boot: None })),
            Ok(Given::Slept(Slept::Falling { since: at })),
            Ok(Given::Slept(Slept::Asleep { since: None })),
            Ok(Given::Slept(Slept::Restarting)),
            Err(Refused::NotAllowed { message: "no\nnever".to_owned(), sleep: Some(sleep) }),
            Err(Refused::DidNotComeUp { message: String::new() }),
            Err(Refused::NoSuchWorker),
            Err(Refused::Unavailable { message: "later".to_owned() }),
        ];
        for reply in answers.map(|answer| Reply::to(9, answer)).into_iter().chain([Reply::End]) {
            let line = serde_json::to_string(&reply).unwrap();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(serde_json::from_str::<Reply>(&line).unwrap(), reply, "{line}");
        }
    }

    #[test]
    fn what_is_no_word_is_refused() {
        for line in [
            "",
            "{}",
            "begin",
            r#"{"ask":{"id":1,"ask":"burn"}}"#,
            r#"{"ask":{"id":-1,"ask":"renew"}}"#,
            r#"{"saw_bytes":{"worker":"../../etc"}}"#,
        ] {
            assert!(serde_json::from_str::<Word>(line).is_err(), "{line}");
        }
        for (name, is_one) in
            [("guest-0123abcd", true), ("guest-", false), ("0123abcd", false), ("guest-x y", false)]
        {
            assert_eq!(is_session(name), is_one, "{name}");
        }
    }
}
