//! What happened, a line each: `0:10 cpu active`, `0:30 lease build 20m`, `1:05 connect`.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::str::FromStr;
use core::time::Duration;

use crate::clock::Timestamp;
use crate::policy::exemption::Expiry;
use crate::signal::Signal;
use crate::units::parse_duration;
use crate::worker::Power;

/// What a signal shows from some time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// Use, all the time.
    Active,
    /// Nothing.
    Quiet,
    /// It cannot be read.
    Unknown,
}

/// Something that happened around a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// From now on a signal shows this.
    Signal(Signal, Shows),
    /// One moment of use on an otherwise quiet signal.
    Pulse(Signal),
    /// A program took or renewed a lease.
    Lease { holder: String, ttl: Duration },
    /// It let it go.
    Release { holder: String },
    /// Somebody connected.
    Connect,
    /// Somebody left.
    Disconnect,
    /// A person asked for a pause.
    Pause { by: String, force: bool },
    /// A person asked for a stop.
    Stop { by: String, force: bool },
    /// A person asked to have it back.
    Resume { by: String },
    /// A person asked to keep it awake.
    KeepAwake { by: String, ttl: Duration },
    /// A person asked to delete it.
    Terminate { by: String, force: bool },
    /// A person asked to drain it.
    Drain { by: String },
    /// A person took the drain back.
    Undrain { by: String },
    /// It was changed behind our back.
    External(Power),
    /// It exited by itself.
    Exit { code: i32 },
    /// The brake engaged or was released.
    Brake(bool),
    /// It became exempt.
    Exempt { from: Vec<crate::policy::exemption::From>, until: Until },
    /// The observer went away for a time: nobody looks, reads or acts.
    Away { length: Duration },
    /// The driver answers, refuses or is silent from now on.
    Driver(DriverMood),
    /// The `before_pause` hook says yes or no from now on.
    Hook { vetoes: bool },
}

/// When something ends, as a trace says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// After this long.
    After(Duration),
    /// Never.
    Never,
}

impl Until {
    pub(super) fn from(self, now: Timestamp) -> Expiry {
        match self {
            Until::After(length) => Expiry::At(now + length),
            Until::Never => Expiry::Never,
        }
    }
}

/// How the driver behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriverMood {
    /// It does what it is asked to do.
    #[default]
    Answers,
    /// It says no.
    Refuses,
    /// It says nothing.
    Silent,
}

/// A line that says nothing known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line:?}: {problem}")]
pub struct BadLine {
    pub(super) line: String,
    pub(super) problem: String,
}

/// A mark and when it happened, counted from the start of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timed {
    pub after: Duration,
    pub mark: Mark,
}

impl FromStr for Timed {
    type Err = BadLine;

    fn from_str(line: &str) -> Result<Self, BadLine> {
        let bad = |problem: &str| BadLine { line: line.to_string(), problem: problem.to_string() };
        let (time, rest) = line
            .trim()
            .split_once(char::is_whitespace)
            .ok_or_else(|| bad("expected a time and what happened"))?;
        let after = parse_offset(time)
            .ok_or_else(|| bad("expected a time from the start such as 1:05 or 26:30:15"))?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let mark = read(&words).map_err(|problem| bad(&problem))?;
        Ok(Timed { after, mark })
    }
}

/// A thousand years: no trace is longer.
const MOST_HOURS: u64 = 1_000 * 366 * 24;

/// `H:MM`, `H:MM:SS` or `H:MM:SS.mmm`, counted from the start; hours go on beyond 24.
pub(super) fn parse_offset(text: &str) -> Option<Duration> {
    // Digits only: a sign would be taken for a number, and a time from the start has none.
    let number = |text: &str| text.parse::<u64>().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
    let mut parts = text.split(':');
    let hours = number(parts.next()?).filter(|hours| *hours <= MOST_HOURS)?;
    let minutes = number(parts.next()?).filter(|minutes| *minutes < 60)?;
    let seconds = match parts.next() {
        Some(text) => parse_duration(&format!("{text}s")).ok().filter(|s| *s < Duration::from_mins(1))?,
        None => Duration::ZERO,
    };
    parts.next().is_none().then_some(Duration::from_hours(hours) + Duration::from_mins(minutes) + seconds)
}

/// Writes a time as [`parse_offset`] reads it.
pub(super) fn format_offset(offset: Duration) -> String {
    let secs = offset.as_secs();
    let (hours, minutes, seconds) = (secs / 3_600, secs / 60 % 60, secs % 60);
    match (seconds, offset.subsec_millis()) {
        (0, 0) => format!("{hours}:{minutes:02}"),
        (_, 0) => format!("{hours}:{minutes:02}:{seconds:02}"),
        (_, millis) => format!("{hours}:{minutes:02}:{seconds:02}.{millis:03}"),
    }
}

fn read(words: &[&str]) -> Result<Mark, String> {
    let duration = |text: &str| parse_duration(text).map_err(|error| error.to_string());
    let by = |text: &str| text.to_string();
    Ok(match words {
        ["lease", holder, ttl] => Mark::Lease { holder: by(holder), ttl: duration(ttl)? },
        ["release", holder] => Mark::Release { holder: by(holder) },
        ["connect"] => Mark::Connect,
        ["disconnect"] => Mark::Disconnect,
        ["pause", who] => Mark::Pause { by: by(who), force: false },
        ["pause", who, "force"] => Mark::Pause { by: by(who), force: true },
        ["stop", who] => Mark::Stop { by: by(who), force: false },
        ["stop", who, "force"] => Mark::Stop { by: by(who), force: true },
        ["resume", who] => Mark::Resume { by: by(who) },
        ["keep-awake", who, ttl] => Mark::KeepAwake { by: by(who), ttl: duration(ttl)? },
        ["terminate", who] => Mark::Terminate { by: by(who), force: false },
        ["terminate", who, "force"] => Mark::Terminate { by: by(who), force: true },
        ["drain", who] => Mark::Drain { by: by(who) },
        ["undrain", who] => Mark::Undrain { by: by(who) },
        ["external", "running"] => Mark::External(Power::Running),
        ["external", "paused"] => Mark::External(Power::Paused),
        ["external", "stopped"] => Mark::External(Power::Stopped),
        ["external", "gone"] => Mark::External(Power::Gone),
        ["exit", code] => Mark::Exit { code: code.parse().map_err(|_| "expected an exit code".to_string())? },
        ["brake", "on"] => Mark::Brake(true),
        ["brake", "off"] => Mark::Brake(false),
        ["exempt", what, until] => Mark::Exempt {
            from: what
                .split(',')
                .map(|code| {
                    crate::policy::exemption::From::from_code(code)
                        .ok_or_else(|| "expected idle_timeout, max_runtime or both with a comma".to_string())
                })
                .collect::<Result<_, _>>()?,
            until: if *until == "never" { Until::Never } else { Until::After(duration(until)?) },
        },
        ["away", length] => Mark::Away { length: duration(length)? },
        ["driver", "answers"] => Mark::Driver(DriverMood::Answers),
        ["driver", "refuses"] => Mark::Driver(DriverMood::Refuses),
        ["driver", "silent"] => Mark::Driver(DriverMood::Silent),
        ["hook", "vetoes"] => Mark::Hook { vetoes: true },
        ["hook", "passes"] => Mark::Hook { vetoes: false },
        [signal, shows] => {
            let known =
                Signal::from_code(signal).ok_or_else(|| format!("nothing known happens: {signal}"))?;
            match *shows {
                "active" => Mark::Signal(known, Shows::Active),
                "quiet" => Mark::Signal(known, Shows::Quiet),
                "unknown" => Mark::Signal(known, Shows::Unknown),
                "pulse" => Mark::Pulse(known),
                _ => return Err(format!("{signal} can be active, quiet, unknown, or pulse once")),
            }
        }
        _ => return Err("nothing known happens here".to_string()),
    })
}
