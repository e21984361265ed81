//! A verdict in sentences: what `drowse explain`, the API and the page all show.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use serde::Serialize;

use super::asleep::asleep;
use super::{Reason, Snapshot, Use, Verdict, weigh};
use crate::clock::Timestamp;
use crate::hold::Hold;
use crate::policy::{Key, Policy, Provenance, Value};
use crate::reason::{IdlePolicy, PauseReason};
use crate::signal::{Measured, Need, PerSignal, Reading, Signal, UnknownCause};
use crate::units::{Human, Rough, rough_size};
use crate::worker::Worker;

/// One signal as it was judged.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SignalView {
    /// Which.
    pub signal: Signal,
    /// How much it matters here.
    pub need: Need,
    /// What it says in this look.
    pub reading: Reading,
    /// The number behind it and its threshold.
    pub measured: Option<Measured>,
    /// How old it is.
    #[serde(with = "crate::units::optional_duration")]
    pub age: Option<Duration>,
    /// The same in words.
    pub sentence: String,
}

/// One setting with the layer that set it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SettingView {
    /// The value as it is written in the configuration.
    pub value: String,
    /// Who set it.
    pub from: String,
}

/// A reason in words.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReasonView {
    /// Its code.
    pub code: &'static str,
    /// What it means here.
    pub sentence: String,
}

/// Why a worker is awake or not, in full.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The verdict itself.
    pub verdict: Verdict,
    /// The answer in one sentence.
    pub summary: String,
    /// Every reason; of one that sleeps, those that are not about its use.
    pub reasons: Vec<ReasonView>,
    /// What would have to change for it to sleep.
    pub would_have_to_change: Vec<String>,
    /// What else one should know: how a sleep goes on, a setting that the driver cannot follow.
    pub notes: Vec<String>,
    /// Each signal that matters.
    pub signals: Vec<SignalView>,
    /// Each hold, live or over.
    pub holds: Vec<Hold>,
    /// Each setting.
    pub policy: BTreeMap<Key, SettingView>,
}

/// Puts a verdict into words.
pub fn explain(
    snapshot: &Snapshot<'_>,
    policy: &Policy,
    settings: &BTreeMap<Key, Value>,
    provenance: &Provenance,
    verdict: &Verdict,
) -> Explanation {
    let now = verdict.at;
    let needs = policy.needs(snapshot.worker.nature());
    let look = weigh::Look::new(snapshot, policy, policy.interval(&needs), now);
    let signals: Vec<SignalView> = Signal::ALL
        .into_iter()
        .filter_map(|signal| signal_view(snapshot, policy, look, signal, needs[signal as usize]))
        .collect();
    let reasons: Vec<Reason> = verdict.telling_reasons().collect();
    let asleep = asleep(snapshot.worker, verdict);
    let would_have_to_change = if asleep.is_some() {
        // It does.
        Vec::new()
    } else {
        reasons.iter().filter_map(|reason| change(*reason, &signals, verdict, now)).collect()
    };
    let (summary, mut notes) = match asleep {
        Some(asleep) => (asleep.summary, asleep.goes_on),
        None => (summary(verdict, now), Vec::new()),
    };
    notes.extend(sleep_note(snapshot.worker, policy));
    notes.extend(veto_note(snapshot.worker));
    Explanation {
        verdict: *verdict,
        summary,
        would_have_to_change,
        reasons: reasons
            .iter()
            .map(|reason| ReasonView { code: reason.code(), sentence: sentence(*reason, verdict, now) })
            .collect(),
        notes,
        signals,
        holds: snapshot.holds.to_vec(),
        policy: setting_views(snapshot.worker, policy, &needs, settings, provenance),
    }
}

impl Verdict {
    /// Whether the next sleep in sight rests on idleness, and that cannot be told now. Its time is only the earliest:
    /// it moves on for as long as nothing can be read.
    pub fn waits_for_data(&self) -> bool {
        let rests_on_idleness =
            matches!(self.target_pause_reason, Some(PauseReason::IdleTimeout | PauseReason::ScaleDown));
        let is_unread = !self.signals.unknown.is_empty() || self.used == Use::Unknown;
        rests_on_idleness && is_unread
    }

    /// One of its reasons in words.
    pub fn sentence(&self, reason: Reason) -> String {
        sentence(reason, self, self.at)
    }
}

fn signal_view(
    snapshot: &Snapshot<'_>,
    policy: &Policy,
    look: weigh::Look,
    signal: Signal,
    need: Need,
) -> Option<SignalView> {
    let sample = snapshot.evidence.sample(signal);
    let reading = look.reading(signal, need, sample)?;
    let measured = sample.and_then(|sample| sample.measured);
    let age = sample.map(|sample| look.age(sample));
    let told = sample.map(|sample| sample.reading);
    let mut sentence = match (reading, told) {
        (Reading::Active { at }, _) => format!("{signal} showed use {} ago", Rough(look.now.since(at))),
        (Reading::Quiet, Some(Reading::Active { at })) if policy.idle_policy == IdlePolicy::LeasesOnly => {
            format!("{signal} showed use {} ago, which leases_only does not count", Rough(look.now.since(at)))
        }
        (Reading::Quiet, Some(Reading::Active { at })) => {
            format!("{signal} is quiet since it showed use {} ago", Rough(look.now.since(at)))
        }
        (Reading::Quiet, _) => format!("{signal} is quiet"),
        (Reading::Unknown { cause }, _) => format!("{signal} {}", cause.sentence()),
    };
    if let Some(Measured { value, active_above }) = measured {
        let [value, active_above] = [value, active_above].map(|number| shown(signal, number));
        sentence = format!("{sentence}: {value}, active above {active_above}{}", over(signal));
    }
    Some(SignalView { signal, need, reading, measured, age, sentence })
}

/// A measured number in its signal's unit, as people read it.
fn shown(signal: Signal, number: f64) -> String {
    let unit = signal.unit();
    match signal {
        Signal::Network => rough_size(number),
        Signal::Cpu | Signal::Gpu | Signal::Activity | Signal::Prometheus => format!("{number:.1}{unit}"),
        Signal::Telemetry | Signal::Connections | Signal::Tcp | Signal::Processes => {
            format!("{number:.0}{unit}")
        }
    }
}

/// Over what time: a total is what came since it was last read, and its threshold is scaled to that.
const fn over(signal: Signal) -> &'static str {
    match signal {
        Signal::Network => ", both since the check before",
        Signal::Cpu
        | Signal::Gpu
        | Signal::Activity
        | Signal::Prometheus
        | Signal::Telemetry
        | Signal::Connections
        | Signal::Tcp
        | Signal::Processes => "",
    }
}

/// What looks like a sleep in sight may be vetoed again and again.
fn veto_note(worker: &Worker) -> Option<String> {
    let times = match worker.vetoes {
        0 => return None,
        1 => "last time".to_string(),
        vetoes => format!("{vetoes} times in a row"),
    };
    Some(format!(
        "before_pause said no {times} (the journal has its words), and is asked again when a sleep is due"
    ))
}

/// What the policy asks for and the driver cannot do.
fn sleep_note(worker: &Worker, policy: &Policy) -> Option<String> {
    let wanted = policy.sleep.filter(|_| worker.terms.sleep_replaced)?;
    Some(format!(
        "sleep = \"{}\" is beyond the driver {}: it becomes \"{}\"",
        wanted.code(),
        worker.driver,
        worker.terms.sleep.code()
    ))
}

fn setting_views(
    worker: &Worker,
    policy: &Policy,
    needs: &PerSignal<Need>,
    settings: &BTreeMap<Key, Value>,
    provenance: &Provenance,
) -> BTreeMap<Key, SettingView> {
    // What nobody set and has no value of its own follows the driver.
    let by_driver = |key: Key| {
        if let Key::SignalUse(signal) = key {
            Some(Value::Need(needs[signal as usize]))
        } else {
            (key == Key::Sleep).then_some(Value::Sleep(worker.terms.sleep))
        }
    };
    Key::all()
        .filter_map(|key| {
            let from = provenance.get(&key).map(ToString::to_string).unwrap_or_default();
            let set = settings
                .get(&key)
                .cloned()
                .or_else(|| policy.followed(key).map(Value::Duration))
                .or_else(|| key.default());
            let (value, from) = match set {
                Some(value) => (value, from),
                None => (by_driver(key)?, format!("driver {}", worker.driver)),
            };
            Some((key, SettingView { value: value.to_toml(), from }))
        })
        .collect()
}

fn summary(verdict: &Verdict, now: Timestamp) -> String {
    match (verdict.target_pause_at, verdict.target_pause_blocked_by) {
        (Some(_), _) if verdict.waits_for_data() => {
            format!("awake; it does not sleep while {}", unread(verdict))
        }
        (Some(at), _) if !verdict.auto_pause_enabled => {
            format!("observed only; it would sleep in {} ({})", Rough(at.since(now)), at.to_the_second())
        }
        (Some(_), _) if verdict.is_braked => {
            "awake; the fleet's brake holds back every automatic sleep".to_string()
        }
        (Some(at), _) if at <= now && verdict.eligible => "it is idle and goes to sleep now".to_string(),
        (Some(at), _) => {
            let reason =
                verdict.target_pause_reason.map(|reason| format!(", for {reason}")).unwrap_or_default();
            let (left, at) = (Rough(at.since(now)), at.to_the_second());
            format!("awake; sleeps in {left} ({at}{reason}) if nothing more happens")
        }
        (None, Some(blocker)) => format!("no sleep is in sight: {}", blocker.code()),
        (None, None) => "no sleep is in sight".to_string(),
    }
}

/// What has to be read first.
fn unread(verdict: &Verdict) -> String {
    let unknown: Vec<&str> = verdict.signals.unknown.iter().map(Signal::code).collect();
    match unknown.as_slice() {
        [] => "nothing of it can be read".to_string(),
        [one] => format!("{one} is unknown"),
        several => format!("{} are unknown", several.join(" and ")),
    }
}

fn sentence(reason: Reason, verdict: &Verdict, now: Timestamp) -> String {
    let timeout = Human(verdict.idle_timeout.unwrap_or_default());
    match reason {
        Reason::RecentActivity { signal } => format!("{signal} shows that it is in use"),
        Reason::UnknownSignal { signal } => {
            format!("{signal} is required and cannot be told, and missing data is never idleness")
        }
        Reason::NoEvidence => "nothing at all was read, and no evidence is no idleness".to_string(),
        Reason::NotIdleYet => format!(
            "idle for {} of {timeout}, counted from when {}",
            Rough(verdict.idle_for),
            verdict.baseline.source.sentence()
        ),
        Reason::WindowNotFull => {
            format!("quiet in {} of {} consecutive checks", verdict.streak.count, verdict.window)
        }
        Reason::IdleTimeoutNever => "its idle timeout is never".to_string(),
        Reason::ObserveMode => {
            "a layer of its policy says auto_pause = false: it is only observed".to_string()
        }
        Reason::InSnoozePeriod => match verdict.snooze_until {
            Some(until) => format!("protected from automatic sleep for another {}", Rough(until.since(now))),
            None => "protected from automatic sleep".to_string(),
        },
        Reason::Held { hold } => format!("a hold keeps it awake: {hold}"),
        Reason::Brake => "the fleet's brake is engaged: the observer may be wrong".to_string(),
        Reason::NotRunning { status } => format!("it is {status}"),
        Reason::Protected => "it is protected: never touched".to_string(),
        Reason::NoticeRunning => match verdict.target_pause_at {
            Some(at) => format!("its user has been warned and has {} to react", Rough(at.since(now))),
            None => "its user has been warned".to_string(),
        },
        Reason::AgentNotAsked => "its agent is being asked first".to_string(),
        Reason::FlapGuard => format!(
            "its sleeps are undone at once, so the idle timeout counts {} times: {timeout}",
            verdict.flap_multiplier
        ),
        Reason::MaxRuntimeExceeded => "it has run for as long as max_runtime lets it".to_string(),
        Reason::ExemptFromMaxRuntime => "it is exempt from max_runtime".to_string(),
        Reason::ScheduleSleep => "a window of its schedule puts it to sleep".to_string(),
        Reason::IdleTimeoutExceeded => {
            format!("idle for {}, and {timeout} is enough", Rough(verdict.idle_for))
        }
    }
}

/// What would have to change for this reason to fall away; `None` for those that ask for nothing.
fn change(reason: Reason, signals: &[SignalView], verdict: &Verdict, now: Timestamp) -> Option<String> {
    match reason {
        Reason::RecentActivity { signal } => Some(format!("{signal} becomes quiet")),
        Reason::UnknownSignal { signal } => {
            let cause =
                signals.iter().find(|view| view.signal == signal).and_then(|view| match view.reading {
                    Reading::Unknown { cause } => Some(cause),
                    Reading::Active { .. } | Reading::Quiet => None,
                });
            // Nothing is wrong with it, and nobody has to do anything.
            if cause == Some(UnknownCause::FirstSample) {
                return Some(format!("{signal} is read a second time, at the next check"));
            }
            let help = cause.and_then(|cause| cause.help_for(&[signal]));
            let help = help.map(|help| format!(": {help}")).unwrap_or_default();
            Some(format!("{signal} can be read again (or its policy no longer requires it){help}"))
        }
        Reason::NoEvidence => Some("at least one of its signals can be read".to_string()),
        Reason::NotIdleYet => {
            let left = verdict.idle_timeout.unwrap_or_default().saturating_sub(verdict.idle_for);
            Some(format!("it stays idle for another {}", Rough(left)))
        }
        Reason::WindowNotFull => Some(match verdict.window.saturating_sub(verdict.streak.count) {
            1 => "it is quiet in one more check".to_string(),
            missing => format!("it is quiet in {missing} more checks"),
        }),
        Reason::IdleTimeoutNever => Some("idle_timeout is set".to_string()),
        Reason::ObserveMode => Some("auto_pause is true in every layer".to_string()),
        Reason::InSnoozePeriod => {
            verdict.snooze_until.map(|until| format!("the snooze ends, in {}", Rough(until.since(now))))
        }
        Reason::Held { hold } => Some(format!("the {hold} ends")),
        Reason::Brake => Some("the brake is released".to_string()),
        Reason::NotRunning { .. } => Some("it runs".to_string()),
        Reason::Protected => Some("protected is false".to_string()),
        Reason::NoticeRunning => Some("the notice is over".to_string()),
        Reason::AgentNotAsked => Some("its agent answers".to_string()),
        Reason::FlapGuard
        | Reason::MaxRuntimeExceeded
        | Reason::ExemptFromMaxRuntime
        | Reason::ScheduleSleep
        | Reason::IdleTimeoutExceeded => None,
    }
}
