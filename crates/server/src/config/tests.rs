//! What the tables of the elements share, and what holds for the whole.

use proptest::prelude::*;

use super::*;

/// What becomes of a text, with these members and variables.
pub(super) fn parsed_with(text: &str, members: &[MembersFile], variables: &[(String, String)]) -> Parsed {
    super::parse(&Input { file: "f", text, members, variables })
}

pub(super) fn parsed(text: &str) -> Parsed {
    parsed_with(text, &[], &[])
}

/// The configuration of a text in which nothing is wrong.
pub(super) fn parse(text: &str) -> Config {
    match parsed(text).strict() {
        Ok(config) => config,
        Err(problems) => {
            let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
            panic!("{text}\n\n{}", shown.join(""))
        }
    }
}

/// The first line of each problem of a text.
pub(super) fn errors(text: &str) -> Vec<String> {
    let first_line = |problem: &Problem| problem.to_string().lines().next().unwrap_or_default().to_owned();
    parsed(text).problems.iter().map(first_line).collect()
}

/// All problems of a text as they are shown.
pub(super) fn errors_in_full(text: &str) -> String {
    parsed(text).problems.iter().map(ToString::to_string).collect()
}

/// The example of the specification, with a fingerprint that is one.
const SPECIFIED: &str = r#"
[server]
listen = "127.0.0.1:7070"
database = "sqlite://drowse.db"          # relative to the data folder; or postgres://…

[policy]                                 # the global layer
auto_pause = true                        # false: observe only
idle_timeout = "60m"
# snooze, check_interval, min_notice follow idle_timeout unless set
window = 1
# sleep: freeze where the driver can, else stop
stop_after = "5m"
grace = "60s"
lease_ttl_max = "1h"
lease_ceiling = "24h"
unknown_alert_after = "15m"
stale_after = "90s"
heartbeat_interval = "30s"
signals.cpu.active_above = "2%"
signals.network.active_above = "1MiB"    # per 5 min, scaled to the check interval

[policy.type.devcontainer]
grace = "30s"

[policy.group.student]
idle_timeout = "30m"
max_runtime = "24h"
window = 3

[policy.owner.alice]
idle_timeout = "2h"

[[worker]]
id = "web"
driver = "process"
command = ["python3", "-m", "http.server", "9001"]
target = "127.0.0.1:9001"                # where it answers
listen = "127.0.0.1:8001"                # the router's port for it
group = "student"
owner = "alice"
policy.idle_timeout = "10s"              # the worker layer
price_per_hour = 0.34

[[worker]]
id = "lab-1"
driver = "ec2"
type = "cml"
instance_id = "i-0123456789abcdef0"
region = "us-east-1"
endpoint = "https://cml.example:443"     # else from the instance's address
cml.tls_fingerprint = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

[[exemption]]
owner = "bob"
from = ["idle_timeout", "max_runtime"]
reason = "grant deadline"
approved_by = "carol"
expires_on = "2026-12-01T00:00:00Z"

[driver.docker]
discover = "label=drowse.enable=true"    # labels drowse.group, drowse.owner, drowse.type, drowse.port…

[driver.ec2]
regions = ["us-east-1"]
discover = "tag:drowse=true"             # tags drowse:group, drowse:owner…
endpoint = "http://127.0.0.1:5000"       # only for tests
price_per_hour = { "m5.4xlarge" = 0.768 }

[sensor.cml]
username = "admin"
password_file = "cml.pw"
# interval follows idle_timeout, at most 30m

[brake]
fraction = "30%"
min = 10

[journal]
keep = "400d"
"#;

#[test]
fn the_example_of_the_specification_is_right() {
    let config = parse(SPECIFIED);
    assert_eq!((config.workers.len(), config.exemptions.len(), config.policy.layers().len()), (2, 1, 5));
    let (policy, provenance) = config.policy.resolve_for(&config.workers[0].selectors);
    assert_eq!(policy.idle_timeout, Some(std::time::Duration::from_secs(10)));
    assert_eq!(provenance[&Key::Window].to_string(), "group student");
    assert_eq!(provenance[&Key::MaxRuntime].to_string(), "group student");
    assert!(config.workers[1].nature().is_cml);
}

#[test]
fn an_empty_file_is_right() {
    let config = parse("");
    assert_eq!(config, Config::default());
    assert_eq!(parse("# nothing\n[policy]\n[server]\n").server, config.server);
}

#[test]
fn all_problems_are_told_in_the_order_of_the_file() {
    let text = "[journal]\nkeep = 400\n[policy]\nwindow = 0\nidle_timout = \"5m\"\n[[worker]]\nid = \"w\"\ndriver = \"sim\"\nlisten = 80\n[brake]\nmin = 0\n[polcy]\n";
    let lines: Vec<String> =
        errors(text).iter().map(|error| error.split(": ").next().unwrap().to_owned()).collect();
    assert_eq!(lines, ["f:2:8", "f:4:10", "f:5:1", "f:9:10", "f:9:10", "f:11:7", "f:12:2"]);
    assert_eq!(errors(text).last().unwrap(), "f:12:2: polcy: unknown key; did you mean \"policy\"?");
}

#[test]
fn a_variable_is_a_layer_and_a_wrong_one_is_named() {
    let variable = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let variables = [variable("WORKER_IDLE_TIMEOUT_MINUTES", "45"), variable("HOME", "/root")];
    let config = parsed_with("[policy]\nidle_timeout = \"1h\"", &[], &variables).strict().unwrap();
    let (policy, provenance) = config.policy.resolve_for(&Selectors::default());
    assert_eq!(policy.idle_timeout, Some(std::time::Duration::from_mins(45)));
    assert_eq!(
        provenance[&Key::IdleTimeout].to_string(),
        "global (environment, WORKER_IDLE_TIMEOUT_MINUTES)"
    );

    let problems = parsed_with("window = 1", &[], &[variable("SCALE_DOWN_ENABLED", "maybe")]).problems;
    let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(shown.len(), 2);
    assert_eq!(
        shown[1],
        "environment variable SCALE_DOWN_ENABLED: expected true or false, found \"maybe\"\n"
    );
}

#[test]
fn more_problems_than_anybody_reads_are_counted() {
    let lines: Vec<String> = (0..1_500).map(|n| format!("zzz_unknown_{n} = 1\n")).collect();
    let text = lines.concat();
    let problems = parsed(&text).problems;
    assert_eq!(problems.len(), 1_001);
    assert_eq!(problems[1_000].to_string(), "500 more problems are not shown\n");
}

/// Pieces from which texts are made that look like a configuration and are mostly none.
fn fragment() -> impl Strategy<Value = String> {
    let pieces: Vec<String> = SPECIFIED
        .split_inclusive('\n')
        .chain([
            "schedule = { zone = \"UTC\", windows = [{ days = \"mon\" }] }\n",
            "= ",
            "[",
            "]",
            "{",
            "}",
            "\"",
            "'''",
            "\\u",
            ",",
            "\n",
            "é",
            "\u{0}",
            "1e999",
            "0x",
            "nan",
            ".",
            "#",
        ])
        .map(str::to_owned)
        .collect();
    prop_oneof![proptest::sample::select(pieces), "\\PC{0,12}"]
}

proptest! {
    #[test]
    fn no_text_panics(parts in proptest::collection::vec(fragment(), 0..40)) {
        let text: String = parts.concat();
        for problem in parsed(&text).problems {
            prop_assert!(!problem.to_string().is_empty());
        }
    }

    #[test]
    fn a_file_with_a_piece_cut_out_does_not_panic(from in 0usize..2_400, len in 0usize..80) {
        let text: String = SPECIFIED.chars().take(from).chain(SPECIFIED.chars().skip(from + len)).collect();
        let _ = parsed(&text);
    }
}
