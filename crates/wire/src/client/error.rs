//! What can go wrong when asking, each with what to do about it.

use std::io;

use crate::problem::Problem;

/// Why there is no answer, or not the one that was hoped for.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody is there.
    #[error("no Drowse answers at {url} ({why}); start one with `drowse up`, or set DROWSE_URL")]
    Unreachable {
        /// Where.
        url: String,
        /// What the system says.
        why: String,
    },
    /// No token, or one that opens nothing.
    #[error("{}", unauthorized(url, *had_token, detail))]
    Unauthorized {
        /// Where.
        url: String,
        /// A token was sent.
        had_token: bool,
        /// What the server says.
        detail: String,
    },
    /// Drowse refused.
    #[error("{}", in_full(.0))]
    Problem(Box<Problem>),
    /// Somebody else answers there.
    #[error(
        "{url} answered {status} with something that is no answer of Drowse: {start:?}; is it the right address?"
    )]
    Garbage {
        /// Where.
        url: String,
        /// The status of the answer.
        status: u16,
        /// How it begins.
        start: String,
    },
    /// The connection was lost before the whole answer was there, so that what was asked may have been done.
    #[error("{url} broke off before it had answered; what you asked for may have been done all the same")]
    Broken {
        /// Where.
        url: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// What was to be asked cannot be sent at all: an address or a token with characters that have no place there.
    #[error("cannot ask {url}: {why}")]
    Unsendable {
        /// Where.
        url: String,
        /// Why.
        why: String,
    },
}

impl ClientError {
    /// Whether there was no answer at all, neither yes nor no.
    pub const fn is_without_answer(&self) -> bool {
        matches!(self, ClientError::Unreachable { .. } | ClientError::Broken { .. })
    }

    pub(super) fn of(url: &str, error: ureq::Error) -> Self {
        use ureq::{Error, Timeout};
        let url = url.to_owned();
        let unreachable = |why: &str| Self::Unreachable { url: url.clone(), why: why.to_owned() };
        if let Error::Io(source) = error {
            let never_got_there = [
                (io::ErrorKind::ConnectionRefused, "connection refused"),
                (io::ErrorKind::HostUnreachable, "host unreachable"),
                (io::ErrorKind::NetworkUnreachable, "network unreachable"),
            ];
            match never_got_there.iter().find(|(kind, _)| *kind == source.kind()) {
                Some((_, why)) => unreachable(why),
                None => Self::Broken { url, source },
            }
        } else if let Error::Timeout(timeout) = error {
            if matches!(timeout, Timeout::Resolve | Timeout::Connect) {
                unreachable("no answer in time")
            } else {
                Self::Broken { url, source: io::ErrorKind::TimedOut.into() }
            }
        } else if let Error::Protocol(error) = error {
            Self::Garbage { url, status: 0, start: error.to_string() }
        } else if matches!(error, Error::HostNotFound | Error::ConnectionFailed) {
            unreachable(&error.to_string())
        } else {
            Self::Unsendable { url, why: error.to_string() }
        }
    }
}

fn unauthorized(url: &str, had_token: bool, detail: &str) -> String {
    let what = if had_token { "does not accept the token" } else { "needs a token" };
    format!(
        "{url} {what} ({detail}); set DROWSE_TOKEN to one made by `drowse token create`, or give --data with the \
         folder of a Drowse on this machine"
    )
}

/// The detail, and every member that it does not tell.
fn in_full(problem: &Problem) -> String {
    let mut lines = vec![format!("{problem} [{}]", problem.code)];
    for hold in problem.holds() {
        let until = hold.until.map_or("with no known end".to_owned(), |until| format!("until {until}"));
        // A connection's owner is the door that it came through, which nobody knows by its number.
        let whose =
            if hold.kind == "connection" { "at the door".to_owned() } else { format!("of {}", hold.owner) };
        let why = if hold.reason.is_empty() { String::new() } else { format!(": {}", hold.reason) };
        lines.push(format!("  {} {whose} {until}{why}", hold.kind));
    }
    for (name, value) in problem.extra.iter().filter(|(name, _)| *name != "holds") {
        lines.push(format!("  {name}: {value}"));
    }
    lines.join("\n")
}
