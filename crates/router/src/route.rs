//! Where a connection leads, and on what terms.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

pub use drowse_core::address::{Network, Sources};
use drowse_core::id::WorkerId;

/// How long somebody is kept waiting for a worker that does not come up, unless the configuration says otherwise.
pub const WAIT_FOR: Duration = Duration::from_secs(30);

/// Where a connection leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// To which worker.
    pub worker: WorkerId,
    /// Where it answers.
    pub target: SocketAddr,
    /// On what terms.
    pub rules: Rules,
}

/// The terms of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How long somebody is kept waiting.
    pub wait_for: Duration,
    /// Who may wake the worker; `None`: everybody. Others are let through while it is awake.
    pub may_wake: Option<Sources>,
    /// Who counts for nothing: they neither wake a worker nor keep it awake.
    pub robots: Sources,
}

impl Default for Rules {
    fn default() -> Self {
        Self { wait_for: WAIT_FOR, may_wake: None, robots: Sources::default() }
    }
}

/// Who somebody is, by where they come from.
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
    /// Who somebody is.
    pub fn standing(&self, from: IpAddr) -> Standing {
        if self.robots.contain(from) {
            Standing::Robot
        } else if self.may_wake.as_ref().is_none_or(|sources| sources.contain(from)) {
            Standing::MayWake
        } else {
            Standing::MayCome
        }
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
            robots: sources(&["10.9.0.0/16"]),
            ..Rules::default()
        };
        assert_eq!(rules.standing(address("10.1.0.1")), Standing::MayWake);
        assert_eq!(rules.standing(address("10.9.0.1")), Standing::Robot);
        assert_eq!(rules.standing(address("192.0.2.1")), Standing::MayCome);
        assert_eq!(Rules::default().standing(address("192.0.2.1")), Standing::MayWake);
    }
}
