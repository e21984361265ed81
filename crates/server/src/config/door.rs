//! On what terms somebody comes through the front door: for all workers in `[router]`, for one in `[[worker]]`.

use std::path::PathBuf;
use std::time::Duration;

use toml::de::DeValue;

use drowse_core::address::Network;

use super::problem::{Fault, Report};
use super::read;
use super::section::{Field, Preset, Section, describe};
use super::suggest::nearest;

/// The terms, as far as they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// How long somebody is kept waiting.
    pub wait_for: Option<Duration>,
    /// What an HTTP client gets meanwhile.
    pub waiting: Option<Waiting>,
    /// The template of the page that it may be.
    pub waiting_page: Option<PathBuf>,
    /// From where a worker may be woken.
    pub wake_sources: Option<Vec<Network>>,
    /// The file with the secret that allows it too.
    pub wake_token_file: Option<PathBuf>,
    /// Robots, by the name of their program.
    pub robot_agents: Option<Vec<String>>,
    /// By where they come from.
    pub robot_sources: Option<Vec<Network>>,
    /// By what they ask for.
    pub robot_paths: Option<Vec<String>>,
}

/// What an HTTP client gets while a worker comes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    Auto,
    Page,
    Hold,
}

impl Terms {
    /// These, and where they say nothing the others.
    #[must_use]
    pub fn or(self, others: &Self) -> Self {
        let others = others.clone();
        Self {
            wait_for: self.wait_for.or(others.wait_for),
            waiting: self.waiting.or(others.waiting),
            waiting_page: self.waiting_page.or(others.waiting_page),
            wake_sources: self.wake_sources.or(others.wake_sources),
            wake_token_file: self.wake_token_file.or(others.wake_token_file),
            robot_agents: self.robot_agents.or(others.robot_agents),
            robot_sources: self.robot_sources.or(others.robot_sources),
            robot_paths: self.robot_paths.or(others.robot_paths),
        }
    }
}

pub(super) const NETWORKS: &str = "a list of addresses or ranges such as [\"10.0.0.0/8\"]";
const AGENTS: &str = "a list of parts of names such as [\"UptimeRobot\"]";
const PATHS: &str = "a list of paths such as [\"/healthz\", \"/probe/*\"]";
const WAITING: &str = "\"auto\", \"page\" or \"hold\"";

pub(super) const FIELDS: &[Field] = &[
    Field {
        name: "wait_for",
        expected: "a duration such as \"30s\"",
        preset: Preset::Is("\"30s\""),
        sample: "\"30s\"",
        describe: "How long a client waits for a worker to come up: then TCP closes, and HTTP answers 503 with Retry-After.",
    },
    Field {
        name: "waiting",
        expected: WAITING,
        preset: Preset::Is("\"auto\""),
        sample: "\"auto\"",
        describe: "What an HTTP client gets when that takes longer than a moment: \"page\" a waiting page, \"hold\" its answer when it is there, \"auto\" a page if a browser asks for one.",
    },
    Field {
        name: "waiting_page",
        expected: "the path of a file",
        preset: Preset::Absent("the built-in page"),
        sample: "\"waiting.html\"",
        describe: "A template of your own for that page, beside this file: HTML with {{worker}}, {{title}}, {{message}} and {{follow}}, which goes on when the worker is there.",
    },
    Field {
        name: "wake_sources",
        expected: NETWORKS,
        preset: Preset::Absent("everybody"),
        sample: "[\"10.0.0.0/8\", \"127.0.0.1\"]",
        describe: "From where a connection may wake a worker. Others are let through while it is awake.",
    },
    Field {
        name: "wake_token_file",
        expected: "the path of a file",
        preset: Preset::Absent("none"),
        sample: "\"wake.token\"",
        describe: "A file with a secret, beside this file, one word of at least 16 letters and digits: an HTTP request with it in the header Drowse-Wake-Token may wake a worker, from wherever it comes.",
    },
    Field {
        name: "robot_agents",
        expected: AGENTS,
        preset: Preset::Absent("none"),
        sample: "[\"UptimeRobot\", \"kube-probe\"]",
        describe: "HTTP clients whose User-Agent contains one of these neither wake a worker nor keep it awake.",
    },
    Field {
        name: "robot_sources",
        expected: NETWORKS,
        preset: Preset::Absent("none"),
        sample: "[\"10.9.0.0/16\"]",
        describe: "Nor do connections from here.",
    },
    Field {
        name: "robot_paths",
        expected: PATHS,
        preset: Preset::Absent("none"),
        sample: "[\"/healthz\"]",
        describe: "Nor do HTTP requests for these; a star at the end stands for anything.",
    },
];

pub(super) fn read(report: &mut Report<'_>, section: &Section<'_>) -> Terms {
    Terms {
        wait_for: section.read(report, "wait_for", read::interval),
        waiting: section.read(report, "waiting", waiting),
        waiting_page: section.read(report, "waiting_page", read::path),
        wake_sources: section.read(report, "wake_sources", networks),
        wake_token_file: section.read(report, "wake_token_file", read::path),
        robot_agents: section.read(report, "robot_agents", list(AGENTS, |_| true)),
        robot_sources: section.read(report, "robot_sources", networks),
        robot_paths: section.read(report, "robot_paths", list(PATHS, |path| path.starts_with('/'))),
    }
}

fn waiting(value: &DeValue<'_>) -> Result<Waiting, Fault> {
    const ALL: [(&str, Waiting); 3] =
        [("auto", Waiting::Auto), ("page", Waiting::Page), ("hold", Waiting::Hold)];
    let written = value.as_str().unwrap_or_default();
    let found = ALL.into_iter().find(|(name, _)| *name == written);
    found.map(|(_, waiting)| waiting).ok_or_else(|| Fault::Unexpected {
        expected: WAITING.to_owned(),
        found: describe(value),
        suggestion: nearest(written, ALL.map(|(name, _)| name)),
    })
}

/// None of them is a list too: it takes away what `[router]` says.
fn items<T>(
    value: &DeValue<'_>,
    expected: &'static str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, Fault> {
    let items = value.as_array().ok_or_else(|| Fault::expected(expected, describe(value)))?;
    let one = |item: &DeValue<'_>| {
        item.as_str().and_then(&read).ok_or_else(|| Fault::expected(expected, describe(item)))
    };
    items.iter().map(|item| one(item.get_ref())).collect()
}

pub(super) fn networks(value: &DeValue<'_>) -> Result<Vec<Network>, Fault> {
    items(value, NETWORKS, |text| text.parse().ok())
}

fn list(
    expected: &'static str,
    is_right: impl Fn(&str) -> bool,
) -> impl Fn(&DeValue<'_>) -> Result<Vec<String>, Fault> {
    move |value| items(value, expected, |text| (!text.is_empty() && is_right(text)).then(|| text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{errors, parse};
    use super::*;

    #[test]
    fn a_worker_has_its_own_terms_and_else_those_of_the_router() {
        let config = parse(
            "[router]\nwait_for = \"10s\"\nwaiting = \"hold\"\nrobot_paths = [\"/healthz\"]\n\
             [[worker]]\nid = \"web\"\ndriver = \"process\"\ncommand = [\"true\"]\n\
             listen = \"127.0.0.1:1\"\ntarget = \"127.0.0.1:2\"\nwaiting = \"page\"\nrobot_paths = []",
        );
        let terms = config.workers[0].ways.terms.clone().or(&config.router.terms);
        assert_eq!(terms.wait_for, Some(Duration::from_secs(10)));
        assert_eq!(terms.waiting, Some(Waiting::Page));
        assert_eq!(terms.robot_paths, Some(Vec::new()), "none at all, whatever the router says");
        assert_eq!(terms.wake_sources, None);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let table = [
            (
                "router.waiting = \"pag\"",
                "f:1:18: waiting: expected \"auto\", \"page\" or \"hold\", found \"pag\"; did you mean \"page\"?",
            ),
            (
                "router.wake_sources = [\"10.0.0.0/33\"]",
                "f:1:23: wake_sources: expected a list of addresses or ranges such as [\"10.0.0.0/8\"], found \"10.0.0.0/33\"",
            ),
            (
                "router.robot_paths = [\"healthz\"]",
                "f:1:22: robot_paths: expected a list of paths such as [\"/healthz\", \"/probe/*\"], found \"healthz\"",
            ),
            (
                "router.robot_agents = \"bot\"",
                "f:1:23: robot_agents: expected a list of parts of names such as [\"UptimeRobot\"], found \"bot\"",
            ),
        ];
        for (text, error) in table {
            assert_eq!(errors(text), [error], "{text}");
        }
    }
}
