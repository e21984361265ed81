//! What the engine says of a container, in our words.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr as _;

use bollard::models::{ContainerInspectResponse, ContainerState, ContainerStateStatusEnum as State};
use drowse_core::Timestamp;
use drowse_core::id::BootId;
use drowse_core::worker::Power;

use super::discover::{address_of, published};
use crate::driver::Seen;

/// One look at a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) seen: Seen,
    /// The container's full id.
    pub(super) id: String,
    /// Its first process, as this machine numbers it; `None` unless it runs or is paused.
    pub(super) pid: Option<u32>,
    /// What asks it to end.
    pub(super) stop_signal: String,
    /// Its own address, while it has one.
    pub(super) address: Option<IpAddr>,
    /// Where its ports are found on this machine, of those that stay there.
    pub(super) published: BTreeMap<u16, SocketAddr>,
}

impl Look {
    pub(super) fn gone(began_at: Timestamp) -> Self {
        let power = Power::Gone;
        Self {
            seen: Seen {
                power,
                began_at,
                boot: None,
                boot_started_at: None,
                dated_at: None,
                exit_code: None,
            },
            id: String::new(),
            pid: None,
            stop_signal: String::new(),
            address: None,
            published: BTreeMap::new(),
        }
    }

    /// Where one of its ports is found.
    pub(super) fn at(&self, port: u16) -> Option<SocketAddr> {
        let own = self.address.map(|address| (address, port).into());
        self.published.get(&port).copied().or(own)
    }

    /// `None`: the engine's answer does not say what it must.
    pub(super) fn of(found: &ContainerInspectResponse, began_at: Timestamp) -> Option<Self> {
        let id = found.id.clone()?;
        let state = found.state.as_ref()?;
        let power = power(state)?;
        let started_at = state.started_at.as_deref().filter(|text| instant(text).is_some());
        let began = started_at.and_then(instant);
        let is_over = power == Power::Stopped;
        let finished_at = state.finished_at.as_deref().and_then(instant);
        let seen = Seen {
            power,
            began_at,
            boot: started_at.map(|at| BootId::new(format!("{id}@{at}"))),
            boot_started_at: began,
            dated_at: match power {
                Power::Running => began,
                // The engine has been seen to let a run end before it began, by milliseconds.
                Power::Stopped => finished_at.map(|at| at.max(began.unwrap_or(at))),
                // The engine does not tell.
                Power::Paused | Power::Gone => None,
            },
            // What never ran has the code 0 all the same.
            exit_code: state
                .exit_code
                .filter(|_| is_over && started_at.is_some() && finished_at.is_some())
                .and_then(|code| i32::try_from(code).ok()),
        };
        let config = found.config.as_ref();
        let signal = config.and_then(|config| config.stop_signal.clone()).filter(|signal| !signal.is_empty());
        let networks = found.network_settings.as_ref().and_then(|settings| settings.networks.as_ref());
        Some(Self {
            seen,
            id,
            pid: state.pid.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0 && !is_over),
            stop_signal: signal.unwrap_or_else(|| "SIGTERM".to_owned()),
            address: address_of(networks),
            published: published(found.host_config.as_ref()),
        })
    }
}

fn power(state: &ContainerState) -> Option<Power> {
    Some(match state.status? {
        // Its policy restarts it: the engine takes it for running, and so does whoever uses it.
        State::RUNNING | State::RESTARTING | State::STOPPING => Power::Running,
        State::PAUSED => Power::Paused,
        State::CREATED | State::EXITED | State::DEAD | State::REMOVING => Power::Stopped,
        State::EMPTY => return None,
    })
}

/// The engine writes the year 1 for never.
fn instant(text: &str) -> Option<Timestamp> {
    if text.starts_with("0001-") {
        return None;
    }
    Timestamp::from_str(text).ok()
}
