//! Names of hosts: how a client says whom it wants, in TLS and in HTTP.
//!
//! A name is kept in one form, so that two ways to write it lead to the same worker: lower case, without the dot
//! at its end.

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::net::Ipv6Addr;
use core::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// As DNS limits a name and a label of it.
const LONGEST_NAME: usize = 253;
const LONGEST_LABEL: usize = 63;

/// The name of a host, or its address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(String);

/// Which hosts are meant: one, or all whose name is one label longer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostPattern {
    /// `lab.example.org`
    Is(HostName),
    /// `*.example.org`: one label in place of the star, as in certificates.
    Below(HostName),
}

/// A text that names no host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a host name such as \"lab.example.org\" or \"*.example.org\", found {found:?}")]
pub struct NotAHost {
    found: String,
}

impl HostName {
    pub fn new(text: &str) -> Result<Self, NotAHost> {
        Self::read(text).ok_or_else(|| NotAHost { found: text.chars().take(LONGEST_NAME).collect() })
    }

    fn read(text: &str) -> Option<Self> {
        if let Some(inside) = text.strip_prefix('[') {
            // An address has many ways to be written too.
            let address: Ipv6Addr = inside.strip_suffix(']')?.parse().ok()?;
            return Some(Self(format!("[{address}]")));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        let is_label = |label: &str| {
            (1..=LONGEST_LABEL).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        let is_name = name.len() <= LONGEST_NAME && name.split('.').all(is_label);
        is_name.then(|| Self(name.to_ascii_lowercase()))
    }

    /// The name of `HOST` or `HOST:PORT`, which is how HTTP writes it.
    pub fn of_authority(text: &str) -> Result<Self, NotAHost> {
        let wrong = || NotAHost { found: text.chars().take(LONGEST_NAME).collect() };
        let (host, port) = match text.rsplit_once(':') {
            // The last colon of an IPv6 address is not before a port.
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            Some(_) | None => (text, None),
        };
        // No port after the colon is allowed, for whatever reason.
        let is_port = |port: &str| {
            port.is_empty() || (port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok())
        };
        if !port.is_none_or(is_port) {
            return Err(wrong());
        }
        Self::new(host).map_err(|_| wrong())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name without its first label.
    pub fn above(&self) -> Option<&str> {
        self.0.split_once('.').map(|(_, rest)| rest)
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for HostPattern {
    type Err = NotAHost;

    fn from_str(text: &str) -> Result<Self, NotAHost> {
        let wrong = |_| NotAHost { found: text.chars().take(LONGEST_NAME).collect() };
        match text.strip_prefix("*.") {
            Some(rest) => HostName::new(rest).map(Self::Below).map_err(wrong),
            None => HostName::new(text).map(Self::Is),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(name) => name.fmt(f),
            Self::Below(name) => write!(f, "*.{name}"),
        }
    }
}

impl Serialize for HostPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HostPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <alloc::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_form() {
        for (text, name) in [
            ("Lab.Example.ORG", "lab.example.org"),
            ("lab.example.org.", "lab.example.org"),
            ("localhost", "localhost"),
            ("my_lab-1", "my_lab-1"),
            ("127.0.0.1", "127.0.0.1"),
            ("[0:0::1]", "[::1]"),
        ] {
            assert_eq!(HostName::new(text).unwrap().as_str(), name, "{text}");
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let label = "a".repeat(64);
        let long = "a.".repeat(127);
        for text in ["", ".", "a..b", "-a b", "a/b", "a:1", "[::1", "[1.2.3.4]", "*", "é", "a\0", &label] {
            assert!(HostName::new(text).is_err(), "{text:?}");
        }
        assert!(HostName::new(&"a".repeat(63)).is_ok());
        assert!(HostName::new(&long).is_ok(), "253 and a dot");
        assert!(HostName::new(&format!("{long}a")).is_err());
    }

    #[test]
    fn a_port_is_no_part_of_the_name() {
        for (text, name) in [
            ("lab.example.org:8080", Some("lab.example.org")),
            ("lab.example.org:", Some("lab.example.org")),
            ("[::1]:80", Some("[::1]")),
            ("[::1]", Some("[::1]")),
            ("::1", None),
            ("lab:http", None),
            ("lab:99999", None),
            ("lab:+80", None),
            ("user@lab", None),
            ("lab, lab", None),
            ("", None),
        ] {
            assert_eq!(HostName::of_authority(text).ok().as_ref().map(HostName::as_str), name, "{text:?}");
        }
    }

    #[test]
    fn a_pattern_is_a_name_or_all_right_below_one() {
        let below: HostPattern = "*.Example.org".parse().unwrap();
        assert_eq!(below, HostPattern::Below(HostName::new("example.org").unwrap()));
        assert_eq!(below.to_string(), "*.example.org");
        assert_eq!("a.example.org".parse::<HostPattern>().unwrap().to_string(), "a.example.org");
        for text in ["*", "*.", "a.*.org", "**.org", "*a.org"] {
            assert!(text.parse::<HostPattern>().is_err(), "{text:?}");
        }
    }
}
