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
    let proxies = [
        Proxy::drowse(&backends),
        Proxy::haproxy(&backends, folder.path()),
        Proxy::nginx(&backends, folder.path()),
        Proxy::socket_proxyd(&backends, folder.path()),
        Proxy::nginx_that_cuts(&backends, folder.path()),
    ];
    note(&format!(
        "Medians of {rounds} rounds of a second each, and of bulk in every fourth, for three. Proxies have one thread on a core of their own, clients and backends share \
         another. haproxy has buffers of 64 KiB, and nginx for bulk. Answers have a body of 1 KiB; \
         64 clients keep their connections, or 32 make one for each request; bulk is one stream of iperf3. \
         nginx is told to pass on an end and go on listening (`proxy_half_close`), as the others do; how it does \
         without, when it hangs up on whoever still speaks, stands beside it and is no aim. Throughput and p99 are to be \
         no worse than the best's: `even` is a ratio on the wrong side of 1 whose 95 % range has 1 in it, so that the two \
         cannot be told apart; the processor time has to be less whatever its range."
    ));
    let runs = measure(&proxies, rounds);
    assert!(proxies[0].has_counted(), "Drowse did not count while it was measured");
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
}

fn measure(proxies: &[Proxy], rounds: usize) -> Runs {
    let mut runs = Vec::new();
    for round in 0..rounds {
        for kind in Kind::ALL.into_iter().filter(|kind| kind.is_in(round)) {
            for turn in 0..proxies.len() {
                // Not with each round, or those in which there is bulk would all go the same way.
                let is_forward = (round / proxies.len()).is_multiple_of(2);
                let turn = if is_forward { turn } else { proxies.len() - 1 - turn };
                let proxy = (round + turn) % proxies.len();
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
        Kind::Connections => ("a connection with one request", "connections"),
        Kind::Bulk => ("a GiB", "GiB"),
    };
    let report = Report::group(group);
    let figure = |name: &str, unit: Unit, better: Better, strict: Strict, figure: Figure| {
        let all: Vec<Vec<f64>> =
            (0..proxies.len()).map(|proxy| runs.of(kind, proxy).iter().map(figure).collect()).collect();
        for (proxy, values) in proxies.iter().zip(&all) {
            report.row(&format!("{name}: {}", proxy.name), median(values), unit, None);
        }
        let (peers, cuts): (Vec<usize>, Vec<usize>) =
            (1..proxies.len()).partition(|peer| proxies[*peer].name != CUTS);
        for (whom, peers, has_aim) in [("the best of them, ", peers, true), ("", cuts, false)] {
            let Against { ratio, spread: (low, high), best } = against_best(&all, &peers, better);
            let aim = match (strict, better) {
                (Strict::Yes, Better::Less) => Aim::AtMost(1.0),
                (Strict::Yes, Better::More) => Aim::AtLeast(1.0),
                (Strict::No, _) => {
                    Aim::NoWorse { is_less_better: better == Better::Less, spread: (low, high) }
                }
            };
            let name =
                format!("{name}: drowse against {whom}{} (95 %: {low:.2} to {high:.2})", proxies[best].name);
            report.row(&name, ratio, Unit::Times, has_aim.then_some(aim));
        }
    };
    figure("processor time of the proxy", Unit::Seconds, Better::Less, Strict::Yes, |run| run.cpu);
    figure(rate, Unit::PerSecond, Better::More, Strict::No, |run| run.rate);
    if kind != Kind::Bulk {
        figure("p99", Unit::Seconds, Better::Less, Strict::No, |run| run.p99.unwrap_or(f64::NAN));
    }
}

/// Whether an aim has to be met to the letter, or nobody may be better as far as can be told.
#[derive(Clone, Copy)]
enum Strict {
    Yes,
    No,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Better {
    Less,
    More,
}

/// How the first does against one of the others.
#[derive(Clone, Copy)]
struct Against {
    /// The median of the ratios of each round, in which all met the same machine.
    ratio: f64,
    /// Where that median would be found in 95 of 100 runs like this one.
    spread: (f64, f64),
    /// Which one of them.
    best: usize,
}

/// Against the one of its peers that does best.
fn against_best(all: &[Vec<f64>], peers: &[usize], better: Better) -> Against {
    let against = |peer: &usize| {
        let mut ratios: Vec<f64> = all[0].iter().zip(&all[*peer]).map(|(own, theirs)| own / theirs).collect();
        ratios.sort_by(f64::total_cmp);
        Against { ratio: median(&ratios), spread: spread(&ratios), best: *peer }
    };
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
    peers.iter().map(against).max_by(worse).expect("there are peers")
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
