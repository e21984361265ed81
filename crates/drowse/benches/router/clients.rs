//! What is done to a proxy, and what its clients saw.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::programs::OTHER_CORE;
use crate::proxies::Proxy;
use crate::spent::Spent;

/// How long requests and connections last, in seconds.
const LASTS: u64 = 1;

/// How long a stream does: it takes a while to come up to speed.
const STREAM_LASTS: u64 = 3;

/// What takes long, or is only shown, is done in one round of so many.
const SOME_ROUNDS: usize = 4;

const GIB: f64 = 1_073_741_824.0;

/// One run of one kind against one proxy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// The proxy's processor time for one of them, in seconds.
    pub(crate) cpu: f64,
    /// How many in a second.
    pub(crate) rate: f64,
    /// In seconds; none of a stream.
    pub(crate) p99: Option<f64>,
    /// Of a stream, that arrived.
    pub(crate) bytes: f64,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Small requests on connections that stay.
    Requests,
    /// The same by so few clients that nobody has enough to do.
    Few,
    /// A connection for each request.
    Connections,
    /// As many bytes as possible to the server, in one connection.
    Upload,
    /// And from it.
    Download,
}

impl Kind {
    pub(crate) const ALL: [Self; 5] =
        [Self::Requests, Self::Few, Self::Connections, Self::Upload, Self::Download];

    /// Whether it is done in this round.
    pub(crate) fn is_in(self, round: usize) -> bool {
        match self {
            Self::Requests | Self::Connections => true,
            Self::Upload => round.is_multiple_of(SOME_ROUNDS),
            Self::Download => round % SOME_ROUNDS == 1,
            Self::Few => round % SOME_ROUNDS == 2,
        }
    }

    /// Whether it is a stream, which is not made of requests.
    pub(crate) fn is_stream(self) -> bool {
        matches!(self, Self::Upload | Self::Download)
    }

    pub(crate) fn run(self, proxy: &Proxy) -> Run {
        match self {
            Self::Requests => web(proxy, &["-c", "64"]),
            Self::Few => web(proxy, &["-c", "4"]),
            Self::Connections => web(proxy, &["-c", "32", "-H", "Connection: close"]),
            Self::Upload => bulk(proxy, &[]),
            Self::Download => bulk(proxy, &["-R"]),
        }
    }
}

fn client(program: &str, args: &[&str]) -> String {
    let mut command = Command::new("taskset");
    command.args(["-c", OTHER_CORE, program]).args(args);
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    // One that says JSON says in it what went wrong.
    assert!(output.status.success() || said.starts_with('{'), "{command:?}: {said}{complained}");
    said
}

fn web(proxy: &Proxy, how: &[&str]) -> Run {
    let (url, lasts) = (format!("http://{}/", proxy.web), format!("{LASTS}s"));
    let before = Spent::by(&proxy.pids);
    let said = client("wrk", &[&["-t", "1", "-d", &lasts, "--latency"], how, &[&url]].concat());
    let cpu = before.since().as_secs_f64();
    let answered = parse_wrk(&said).unwrap_or_else(|| panic!("{}: not what wrk says:\n{said}", proxy.name));
    assert!(answered.is_clean, "{}: not all went well:\n{said}", proxy.name);
    Run { cpu: cpu / answered.requests, rate: answered.rate, p99: Some(answered.p99), bytes: 0.0 }
}

struct Answered {
    requests: f64,
    rate: f64,
    p99: f64,
    /// Nothing was reset, nothing late, nothing refused.
    is_clean: bool,
}

fn parse_wrk(said: &str) -> Option<Answered> {
    let words = |start: &str| {
        let line = said.lines().map(str::trim).find(|line| line.starts_with(start))?;
        line.split_whitespace().nth(1).map(str::to_owned)
    };
    let requests = said.lines().find(|line| line.contains(" requests in "))?.split_whitespace().next()?;
    Some(Answered {
        requests: requests.parse().ok()?,
        rate: words("Requests/sec:")?.parse().ok()?,
        p99: parse_time(&words("99%")?)?,
        is_clean: !said.contains("Socket errors") && !said.contains("Non-2xx"),
    })
}

/// As wrk writes it: `812.00us`, `1.20ms`, `1.01s`.
fn parse_time(text: &str) -> Option<f64> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let unit = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * unit)
}

/// How often the server of bulk is asked: it takes one client at a time, and whoever looks whether it is there keeps
/// it for a moment.
const ATTEMPTS: usize = 5;

fn bulk(proxy: &Proxy, how: &[&str]) -> Run {
    let attempts = (0..ATTEMPTS).find_map(|_| {
        let run = one_stream(proxy, how);
        if run.is_none() {
            crate::up::pause(Duration::from_millis(500));
        }
        run
    });
    attempts.unwrap_or_else(|| panic!("{}: iperf3 does not come through", proxy.name))
}

fn one_stream(proxy: &Proxy, how: &[&str]) -> Option<Run> {
    let SocketAddr::V4(door) = proxy.bulk else { panic!("the loopback is IPv4 here") };
    let (host, port, lasts) = (door.ip().to_string(), door.port().to_string(), STREAM_LASTS.to_string());
    let before = Spent::by(&proxy.pids);
    let said = client("iperf3", &[&["-c", &host, "-p", &port, "-t", &lasts, "-J"], how].concat());
    // The last bytes are on their way when the client is done.
    crate::up::pause(Duration::from_millis(50));
    let cpu = before.since().as_secs_f64();
    let said: Value = serde_json::from_str(&said).expect("iperf3 says JSON");
    let sum = &said["end"]["sum_received"];
    let (bytes, seconds) = (sum["bytes"].as_f64(), sum["seconds"].as_f64());
    let (Some(bytes), Some(seconds)) = (bytes, seconds) else {
        eprintln!("{}: {}", proxy.name, said["error"]);
        return None;
    };
    Some(Run { cpu: cpu / (bytes / GIB), rate: bytes / GIB / seconds, p99: None, bytes })
}
