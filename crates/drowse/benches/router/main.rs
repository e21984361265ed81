//! What a proxy costs: Drowse, haproxy, nginx stream and systemd-socket-proxyd in front of the same backends.
//!
//! Each has one thread and the same core, one after the other; clients and backends have another core. A round
//! measures all of them, in an order that moves on with each round and turns about when it has come around, so that
//! whatever else the machine does meets everybody alike, and nobody always comes after the same one. Drowse is
//! `drowse up` with SQLite, and counts activity meanwhile.
//!
//! Run by `cargo xtask bench router [--rounds N]`; prints a JSON object per row.

#![forbid(unsafe_code)]

mod clients;
mod programs;
mod proxies;
#[path = "../../../server/benches/shown/report.rs"]
#[expect(dead_code, reason = "what others show")]
mod report;
mod spent;
#[path = "../shown/up.rs"]
mod up;

use clients::{Kind, Run};
use programs::Backends;
use proxies::{CUTS, Proxy};
use report::{Aim, Report, Unit, note};
use up::free_address;

/// Short and many: what else the machine does changes within seconds, and then meets everybody alike. Medians of fewer
/// move with every run.
const ROUNDS: usize = 54;

fn main() {
    // Cargo runs bench targets in `cargo test --benches` too.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let rounds = rounds().unwrap_or(ROUNDS).max(1);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    assert!(cores >= 2, "a core for the proxies and another for everybody else are needed");
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let backends = Backends::start(folder.path(), [free_address(), free_address()]);
    let [socket_proxyd, socket_proxyd_of_downloads] = Proxy::socket_proxyds(&backends, folder.path());
    let proxies = [
        Proxy::drowse(&backends),
        Proxy::haproxy(&backends, folder.path()),
        Proxy::nginx(&backends, folder.path()),
        socket_proxyd,
        Proxy::nginx_that_cuts(&backends, folder.path()),
        Proxy::haproxy_that_splices(&backends, folder.path()),
        socket_proxyd_of_downloads,
    ];
    note(&format!(
        "{rounds} rounds of a second each; streams, for three seconds, and requests by few in every fourth. Proxies have one \
         thread on a core of their own, clients and backends share another. haproxy has buffers of 64 KiB, or splices, and \
         nginx has 64 KiB for streams. Answers have a body of 1 KiB; 64 clients keep their connections, or 4, or 32 make one \
         for each request; a stream is one of iperf3. nginx is told to pass on an end and go on listening \
         (`proxy_half_close`), as the others do; how it does without, when it hangs up on whoever still speaks, stands \
         beside it and is no aim."
    ));
    note(
        "\nFigures of each are medians. A comparison is the median of the ratios of each round, in which all met the same \
         machine, with the range in which it would be found in 95 of 100 runs, and behind it the ratio of the two medians. \
         Where that range has 1 in it, the two cannot be told apart: `even`. Processor time has to be less all the same; \
         throughput and p99 have to be no worse.",
    );
    let runs = measure(&proxies, rounds);
    proxies[0].has_counted(runs.streamed_by(0));
    for kind in Kind::ALL {
        show(kind, &proxies, &runs);
    }
}

fn rounds() -> Option<usize> {
    let mut args = std::env::args().skip_while(|arg| arg != "--rounds");
    args.next()?;
    Some(args.next().and_then(|rounds| rounds.parse().ok()).expect("--rounds takes a whole number"))
}

/// One of each kind of each proxy, in each round.
struct Runs(Vec<(Kind, usize, usize, Run)>);

impl Runs {
    /// Of one proxy, by round.
    fn of(&self, kind: Kind, proxy: usize) -> Vec<Run> {
        let mut runs: Vec<_> = self.0.iter().filter(|(is, by, ..)| *is == kind && *by == proxy).collect();
        runs.sort_by_key(|(_, _, round, _)| *round);
        runs.into_iter().map(|(.., run)| *run).collect()
    }

    /// How many bytes went through one of them in streams.
    fn streamed_by(&self, proxy: usize) -> f64 {
        let streams = self.0.iter().filter(|(kind, by, ..)| kind.is_stream() && *by == proxy);
        streams.map(|(.., run)| run.bytes).sum()
    }
}

fn measure(proxies: &[Proxy], rounds: usize) -> Runs {
    let mut runs = Vec::new();
    for round in 0..rounds {
        for kind in Kind::ALL.into_iter().filter(|kind| kind.is_in(round)) {
            for turn in 0..proxies.len() {
                // Not with each round, or those in which there is a stream would all go the same way.
                let is_forward = (round / proxies.len()).is_multiple_of(2);
                let turn = if is_forward { turn } else { proxies.len() - 1 - turn };
                let proxy = (round + turn) % proxies.len();
                if !proxies[proxy].kinds.contains(&kind) {
                    continue;
                }
                let run = kind.run(&proxies[proxy]);
                eprintln!("round {}: {kind:?}, {}: {run:?}", round + 1, proxies[proxy].name);
                runs.push((kind, proxy, round, run));
            }
        }
    }
    Runs(runs)
}

/// One figure of a run.
type Figure = fn(&Run) -> f64;

fn show(kind: Kind, proxies: &[Proxy], runs: &Runs) {
    let (group, rate) = match kind {
        Kind::Requests => ("a request, keep-alive", "requests"),
        Kind::Few => ("a request, by four clients", "requests"),
        Kind::Connections => ("a connection with one request", "connections"),
        Kind::Upload => ("a GiB to the worker", "GiB"),
        Kind::Download => ("a GiB from the worker", "GiB"),
    };
    let report = Report::group(group);
    let taking_part: Vec<usize> =
        (0..proxies.len()).filter(|proxy| proxies[*proxy].kinds.contains(&kind)).collect();
    let figure = |name: &str, unit: Unit, better: Better, strict: Strict, figure: Figure| {
        let values = |proxy: &usize| -> Vec<f64> { runs.of(kind, *proxy).iter().map(figure).collect() };
        for proxy in &taking_part {
            report.row(&format!("{name}: {}", proxies[*proxy].name), median(&values(proxy)), unit, None);
        }
        let own = values(&0);
        let (peers, cuts): (Vec<usize>, Vec<usize>) =
            taking_part[1..].iter().partition(|peer| proxies[**peer].name != CUTS);
        for (whom, peers, has_aim) in [("the best of them, ", peers, true), ("", cuts, false)] {
            let all = peers.iter().map(|peer| (proxies[*peer].name, values(peer)));
            let Some((best, against)) = against_best(&own, all, better) else { continue };
            let Against { ratio, spread: (low, high), of_medians } = against;
            let is_less_better = better == Better::Less;
            let aim = Aim::One { is_less_better, spread: (low, high), or_even: strict == Strict::No };
            let name = format!(
                "{name}: drowse against {whom}{best} (95 %: {low:.2} to {high:.2}; of the medians {of_medians:.2})"
            );
            let has_aim = has_aim && kind != Kind::Few;
            report.row(&name, ratio, Unit::Times, has_aim.then_some(aim));
        }
    };
    figure("processor time of the proxy", Unit::Seconds, Better::Less, Strict::Yes, |run| run.cpu);
    figure(rate, Unit::PerSecond, Better::More, Strict::No, |run| run.rate);
    if !kind.is_stream() {
        figure("p99", Unit::Seconds, Better::Less, Strict::No, |run| run.p99.unwrap_or(f64::NAN));
    }
}

/// Whether an aim has to be met to the letter, or nobody may be better as far as can be told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strict {
    Yes,
    No,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Better {
    Less,
    More,
}

/// How one does against another.
#[derive(Clone, Copy)]
struct Against {
    /// The median of the ratios of each round, in which both met the same machine.
    ratio: f64,
    /// Where that median would be found in 95 of 100 runs like this one.
    spread: (f64, f64),
    /// The ratio of the two medians.
    of_medians: f64,
}

impl Against {
    fn new(own: &[f64], theirs: &[f64]) -> Self {
        let mut ratios: Vec<f64> = own.iter().zip(theirs).map(|(own, theirs)| own / theirs).collect();
        ratios.sort_by(f64::total_cmp);
        Self { ratio: median(&ratios), spread: spread(&ratios), of_medians: median(own) / median(theirs) }
    }
}

/// Against the one of its peers that does best.
fn against_best(
    own: &[f64],
    peers: impl Iterator<Item = (&'static str, Vec<f64>)>,
    better: Better,
) -> Option<(&'static str, Against)> {
    // One that is better beyond doubt comes before one that only seems to be.
    let is_beyond_doubt = |to: &Against| match better {
        Better::Less => to.spread.0 > 1.0,
        Better::More => to.spread.1 < 1.0,
    };
    let worse = |one: &Against, other: &Against| {
        let by_ratio = match better {
            Better::Less => one.ratio.total_cmp(&other.ratio),
            Better::More => other.ratio.total_cmp(&one.ratio),
        };
        is_beyond_doubt(one).cmp(&is_beyond_doubt(other)).then(by_ratio)
    };
    peers
        .map(|(name, theirs)| (name, Against::new(own, &theirs)))
        .max_by(|(_, one), (_, other)| worse(one, other))
}

/// The bounds of a median by the order of what it is of: whether each is above or below is the toss of a coin.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a few dozen rounds"
)]
fn spread(sorted: &[f64]) -> (f64, f64) {
    let count = sorted.len() as f64;
    let below = ((count - 1.96 * count.sqrt()) / 2.0).floor().max(0.0) as usize;
    (sorted[below], sorted[sorted.len() - 1 - below])
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) }
}
