//! Where a connection leads, and on what terms.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

pub use drowse_core::address::{Network, Sources};
use drowse_core::id::WorkerId;

use crate::http::Page;
use crate::turned::Lacks;

/// How long somebody is kept waiting for a worker that does not come up, unless the configuration says otherwise.
pub const WAIT_FOR: Duration = Duration::from_secs(30);

/// Where a connection leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// To which worker.
    pub worker: WorkerId,
    /// Where it answers.
    pub target: Target,
    /// Where it runs, as far as waking many at once goes.
    pub site: Site,
    /// On what terms.
    pub rules: Arc<Rules>,
}

impl Route {
    /// One on the usual terms.
    pub fn to(worker: WorkerId, address: SocketAddr) -> Self {
        Self { worker, target: address.into(), site: Site::default(), rules: Arc::default() }
    }
}

/// Where a worker answers, and how it shows that it does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Where.
    pub place: Place,
    /// How it says that it is ready; `None`: it is when a connection stands.
    pub ready: Option<Arc<Ready>>,
}

/// Where a port of a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// At this address, whatever becomes of the worker.
    Address(SocketAddr),
    /// This port of it, at an address that it has for one run and that is asked for.
    Port(u16),
}

impl From<SocketAddr> for Place {
    fn from(address: SocketAddr) -> Self {
        Self::Address(address)
    }
}

/// A worker is ready when a GET is answered with success.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ready {
    /// Where it answers plain HTTP.
    pub place: Place,
    /// Of this.
    pub path: String,
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Self {
        Self { place: address.into(), ready: None }
    }
}

/// Workers of one site share the machine that has to bring them up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Site(pub Option<Arc<str>>);

/// The terms of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How long somebody is kept waiting.
    pub wait_for: Duration,
    /// Who may wake the worker; `None`: everybody. Others are let through while it is awake.
    pub may_wake: Option<Sources>,
    /// Whoever shows this may wake it too; if there is one and no sources, nobody else may.
    pub wake_token: Option<WakeToken>,
    /// Who counts for nothing: they neither wake a worker nor keep it awake.
    pub robots: Robots,
    /// Proxies of HTTP whose word is taken for where a client is and what it asked for.
    pub trusted_proxies: Sources,
    /// What an HTTP client gets while the worker comes up.
    pub waiting: Waiting,
    /// How that looks.
    pub page: Arc<Page>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            wait_for: WAIT_FOR,
            may_wake: None,
            wake_token: None,
            robots: Robots::default(),
            trusted_proxies: Sources::default(),
            waiting: Waiting::default(),
            page: Arc::default(),
        }
    }
}

/// What an HTTP client gets while the worker comes up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// A page for whoever asks for one, and for all others their answer when it is there.
    #[default]
    Auto,
    /// A page, or for whoever takes none a 503 that says so.
    Page,
    /// The answer, when it is there.
    Hold,
}

/// A secret that lets its bearer wake a worker.
#[derive(Clone, PartialEq, Eq)]
pub struct WakeToken(pub String);

impl fmt::Debug for WakeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WakeToken(…)")
    }
}

impl WakeToken {
    /// Whether this is it. How long that takes tells nothing about it but its length.
    fn is(&self, shown: &[u8]) -> bool {
        let ours = self.0.as_bytes();
        ours.len() == shown.len() && ours.iter().zip(shown).fold(0, |acc, (a, b)| acc | (a ^ b)) == 0
    }
}

/// Who counts for nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Robots {
    /// By where they come from.
    pub sources: Sources,
    /// By a part of the name that they give themselves, in HTTP; in lower case.
    pub agents: Vec<String>,
    /// By what they ask for, in HTTP: a path, or with a star at its end all that begin so.
    pub paths: Vec<String>,
}

impl Robots {
    fn include(&self, from: IpAddr, asked: Option<&Asked<'_>>) -> bool {
        let by_words = asked.is_some_and(|asked| {
            let agent = asked.agent.to_ascii_lowercase();
            self.agents.iter().any(|part| agent.contains(part.as_str()))
                || self.paths.iter().any(|path| match path.strip_suffix('*') {
                    Some(beginning) => asked.path.starts_with(beginning),
                    None => asked.path == path,
                })
        });
        by_words || self.sources.contain(from)
    }
}

/// What an HTTP client says of itself.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The name of its program.
    pub agent: &'a str,
    /// What it wants, without the query.
    pub path: &'a str,
    /// The secret that it shows.
    pub token: Option<&'a [u8]>,
}

/// Who somebody is, by where they come from and what they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// They may wake the worker.
    MayWake,
    /// They may come while it is awake, and then they hold it.
    MayCome,
    /// They may come while it is awake, and hold nothing.
    Robot,
}

impl Rules {
    /// Who somebody is, of whom only the address is known.
    pub fn standing(&self, from: IpAddr) -> Standing {
        self.standing_of(from, None)
    }

    /// What somebody of this standing lacks to wake the worker, if they might come with it.
    pub(crate) fn lacks(&self, standing: Standing) -> Option<Lacks> {
        match (standing, &self.may_wake, &self.wake_token) {
            (Standing::MayWake | Standing::Robot, ..) | (_, None, None) => None,
            (Standing::MayCome, Some(_), None) => Some(Lacks::Source),
            (Standing::MayCome, None, Some(_)) => Some(Lacks::Token),
            (Standing::MayCome, Some(_), Some(_)) => Some(Lacks::SourceOrToken),
        }
    }

    /// Who somebody is.
    pub fn standing_of(&self, from: IpAddr, asked: Option<&Asked<'_>>) -> Standing {
        if self.robots.include(from, asked) {
            return Standing::Robot;
        }
        let by_token = match (&self.wake_token, asked.and_then(|asked| asked.token)) {
            (Some(token), Some(shown)) => token.is(shown),
            _ => false,
        };
        let by_source = match &self.may_wake {
            Some(sources) => sources.contain(from),
            None => self.wake_token.is_none(),
        };
        if by_token || by_source { Standing::MayWake } else { Standing::MayCome }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(texts: &[&str]) -> Sources {
        Sources::new(texts.iter().map(|text| text.parse().unwrap()).collect())
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_robot_is_a_robot_even_where_it_might_wake() {
        let rules = Rules {
            may_wake: Some(sources(&["10.0.0.0/8"])),
            robots: Robots { sources: sources(&["10.9.0.0/16"]), ..Robots::default() },
            ..Rules::default()
        };
        assert_eq!(rules.standing(address("10.1.0.1")), Standing::MayWake);
        assert_eq!(rules.standing(address("10.9.0.1")), Standing::Robot);
        assert_eq!(rules.standing(address("192.0.2.1")), Standing::MayCome);
        assert_eq!(Rules::default().standing(address("192.0.2.1")), Standing::MayWake);
    }

    fn asked<'a>(agent: &'a str, path: &'a str) -> Asked<'a> {
        Asked { agent, path, token: None }
    }

    #[test]
    fn a_robot_is_known_by_its_name_or_by_what_it_asks_for() {
        let robots = Robots {
            agents: vec!["uptime".to_owned()],
            paths: vec!["/healthz".to_owned(), "/probe/*".to_owned()],
            ..Robots::default()
        };
        let rules = Rules { robots, ..Rules::default() };
        let from = address("192.0.2.1");
        let standing = |agent, path| rules.standing_of(from, Some(&asked(agent, path)));
        assert_eq!(standing("UptimeRobot/2.0", "/"), Standing::Robot);
        assert_eq!(standing("curl/8", "/healthz"), Standing::Robot);
        assert_eq!(standing("curl/8", "/healthz/more"), Standing::MayWake, "no star, no more");
        assert_eq!(standing("curl/8", "/probe/a/b"), Standing::Robot);
        assert_eq!(standing("curl/8", "/"), Standing::MayWake);
        assert_eq!(
            rules.standing(from),
            Standing::MayWake,
            "whoever says nothing is judged by where they are"
        );
    }

    #[test]
    fn a_token_lets_its_bearer_wake_beside_or_instead_of_the_sources() {
        let token = Some(WakeToken("secret".to_owned()));
        let only_token = Rules { wake_token: token.clone(), ..Rules::default() };
        let both = Rules { wake_token: token, may_wake: Some(sources(&["10.0.0.0/8"])), ..Rules::default() };
        let with = |rules: &Rules, from: &str, token: Option<&[u8]>| {
            rules.standing_of(address(from), Some(&Asked { token, ..asked("curl", "/") }))
        };
        assert_eq!(with(&only_token, "10.0.0.1", None), Standing::MayCome);
        assert_eq!(with(&only_token, "10.0.0.1", Some(b"secret")), Standing::MayWake);
        assert_eq!(with(&only_token, "10.0.0.1", Some(b"secreT")), Standing::MayCome);
        assert_eq!(with(&only_token, "10.0.0.1", Some(b"")), Standing::MayCome);
        assert_eq!(with(&both, "10.0.0.1", None), Standing::MayWake);
        assert_eq!(with(&both, "192.0.2.1", None), Standing::MayCome);
        assert_eq!(with(&both, "192.0.2.1", Some(b"secret")), Standing::MayWake);
        assert_eq!(only_token.standing(address("10.0.0.1")), Standing::MayCome);
        assert!(!format!("{only_token:?}").contains("secret"));
    }
}
