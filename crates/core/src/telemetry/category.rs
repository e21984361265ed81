//! Which events are a person's.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use regex_lite::Regex;

use super::User;

/// The category whose events count only if their user is a person.
const USER_ACTIVITY: &str = "user_activity";

/// The ids of CML's own accounts, through which automation (Drowse too) calls its API.
pub const EXCLUDED_USERS: &str = "^00000000-0000-.*";

/// The list of seed 000.
const SEED_000: [&str; 10] = [
    "start_lab",
    "stop_lab",
    "wipe_lab",
    "import_lab",
    "export_lab",
    "start_node",
    "stop_node",
    "queue_node",
    "boot_node",
    USER_ACTIVITY,
];

/// What seed 001 adds, and what people cause in CML 2.9 though neither seed lists it.
const ADDED: [&str; 4] = ["create_lab", "delete_lab", "wipe_node", "packet_capture"];

/// The categories that count and the users that do not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Categories {
    /// Scanned in order: they are few, and a comparison looks at the lengths first.
    names: Vec<String>,
    excluded_users: UserPattern,
}

impl Categories {
    /// Counts events of these categories. Names that CML does not have are kept: versions differ.
    pub fn new<S: Into<String>>(names: impl IntoIterator<Item = S>, excluded_users: UserPattern) -> Self {
        let mut names: Vec<String> = names.into_iter().map(Into::into).collect();
        names.sort_unstable();
        names.dedup();
        Self { names, excluded_users }
    }

    /// Seed 000's own list, without seed 001's additions.
    pub fn seed_000() -> Self {
        Self::new(SEED_000, UserPattern::default())
    }

    /// The categories, sorted.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether an event of this category and user shows that a person is there.
    pub fn counts(&self, category: &str, user: &User<'_>) -> bool {
        self.names.iter().any(|name| name == category)
            && (category != USER_ACTIVITY || self.excluded_users.is_person(user))
    }
}

impl Default for Categories {
    fn default() -> Self {
        Self::new(SEED_000.into_iter().chain(ADDED), UserPattern::default())
    }
}

/// A pattern of user ids that are not people.
///
/// It is matched from the beginning of the id, as seed 000's setting of this name was; whoever wants it
/// anywhere in the id writes `.*` first. An empty pattern excludes nobody.
#[derive(Clone)]
pub struct UserPattern {
    source: String,
    matcher: Matcher,
}

#[derive(Clone)]
enum Matcher {
    /// Nobody is excluded.
    Nobody,
    /// The pattern is a plain text, perhaps between `^` and `.*`; most are, and most events ask.
    Prefix(String),
    /// Anything else.
    Regex(Regex),
}

/// A text that is not a regular expression.
#[derive(Clone, Debug, thiserror::Error)]
#[error("expected a regular expression such as {EXCLUDED_USERS:?}, found {found:?}")]
pub struct PatternError {
    /// What was given instead.
    pub found: String,
    #[source]
    source: regex_lite::Error,
}

impl UserPattern {
    /// Whether this is a text that does not match: what has no id, or one that is no text, is no person.
    ///
    /// An empty text is a text, so it counts.
    pub fn is_person(&self, user: &User<'_>) -> bool {
        match user {
            User::Missing | User::Null | User::NotText => false,
            User::Text(id) => match &self.matcher {
                Matcher::Nobody => true,
                Matcher::Prefix(prefix) => !id.starts_with(prefix.as_str()),
                Matcher::Regex(regex) => !regex.is_match(id),
            },
        }
    }
}

impl FromStr for UserPattern {
    type Err = PatternError;

    fn from_str(source: &str) -> Result<Self, PatternError> {
        let plain = source.strip_prefix('^').unwrap_or(source);
        let plain = plain.strip_suffix(".*").unwrap_or(plain);
        let matcher = if source.is_empty() {
            Matcher::Nobody
        } else if plain.contains(['\\', '.', '+', '*', '?', '(', ')', '|', '[', ']', '{', '}', '^', '$']) {
            let regex = Regex::new(&format!("^(?:{source})"));
            Matcher::Regex(regex.map_err(|error| PatternError { found: source.to_string(), source: error })?)
        } else {
            Matcher::Prefix(plain.to_string())
        };
        Ok(Self { source: source.to_string(), matcher })
    }
}

impl Default for UserPattern {
    fn default() -> Self {
        EXCLUDED_USERS.parse().expect("a plain prefix needs no compiling")
    }
}

impl fmt::Display for UserPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl fmt::Debug for UserPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.source, f)
    }
}

impl PartialEq for UserPattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for UserPattern {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn excludes(pattern: &str, id: &str) -> bool {
        !pattern.parse::<UserPattern>().unwrap().is_person(&User::Text(id.into()))
    }

    #[test]
    fn only_a_text_can_be_a_person() {
        let pattern = UserPattern::default();
        for user in [User::Missing, User::Null, User::NotText, User::Text("00000000-0000-4000-a000-1".into())]
        {
            assert!(!pattern.is_person(&user), "{user:?}");
        }
        for id in
            ["6b1c7a52-0000-4000-a000-000000000001", "00000000-0001-4000-a000-000000000000", "alice", ""]
        {
            assert!(pattern.is_person(&User::Text(id.into())), "{id:?}");
        }
    }

    #[test]
    fn a_pattern_is_matched_from_the_beginning_of_the_id() {
        assert!(excludes("robot", "robot-7"));
        assert!(!excludes("robot", "my-robot"));
        assert!(excludes(".*robot$", "my-robot"));
        assert!(excludes("robot|probe", "probe-1"));
        assert!(!excludes("robot|probe", "a-probe"));
        assert!(excludes(r"^svc\.", "svc.backup"));
        assert!(!excludes(r"^svc\.", "svc-backup"));
        assert!(!excludes("", "anybody"));
        assert!("(".parse::<UserPattern>().unwrap_err().to_string().contains("found \"(\""));
    }

    #[test]
    fn the_default_is_the_union_of_the_seeds_and_what_cml_has() {
        let all = Categories::default();
        for name in SEED_000.into_iter().chain(["create_lab", "delete_lab", "wipe_node", "packet_capture"]) {
            assert!(all.counts(name, &User::Text("alice".into())), "{name}");
        }
        for name in ["system_stats", "running_nodes", "aaa_info", "user_group", "start_la", "start_labs", ""]
        {
            assert!(!all.counts(name, &User::Text("alice".into())), "{name}");
        }
        assert!(!Categories::seed_000().counts("wipe_node", &User::Missing));
        assert_eq!((all.names().len(), Categories::seed_000().names().len()), (14, 10));
    }

    proptest! {
        #[test]
        fn the_prefix_is_the_pattern(prefix in "[0-9a-f-]{1,9}", tail in "(\\.\\*)?", id in "[0-9a-f-]{0,12}") {
            let pattern = format!("^{prefix}{tail}");
            let regex = Regex::new(&pattern).unwrap();
            for id in [id.clone(), format!("{prefix}{id}")] {
                prop_assert_eq!(excludes(&pattern, &id), regex.is_match(&id), "{} {}", &pattern, id);
            }
        }
    }
}
