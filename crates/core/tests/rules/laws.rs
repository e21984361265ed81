//! Laws that hold whatever the input.

use core::time::Duration;

use drowse_core::Timestamp;
use drowse_core::evidence::Read;
use drowse_core::policy::{Key, Kind, Level, PolicyLayer, Source, Stack, Value, resolve};
use drowse_core::reason::PauseReason;
use drowse_core::signal::{Need, Reading, Signal};
use drowse_core::status::StatusKind;
use drowse_core::verdict::{Action, BaselineSource, Reason, Use, Verdict};
use proptest::prelude::*;
use proptest::sample::select;

use super::random::{arrivals, arrive, instants, policies, worlds};
use super::world::{World, at, raw, secs};

fn is_for_idleness(action: Action) -> bool {
    let reason = match action {
        Action::Sleep { reason } | Action::WouldSleep { reason } => reason,
        Action::ScaleDown => PauseReason::ScaleDown,
        Action::None | Action::AskAgent | Action::StopAfter | Action::TerminateAfter => return false,
    };
    matches!(reason, PauseReason::IdleTimeout | PauseReason::ScaleDown)
}

/// What every verdict must satisfy, whatever was read.
fn assert_lawful(world: &World, verdict: &Verdict, now: Timestamp) -> Result<(), TestCaseError> {
    let acts = is_for_idleness(verdict.action);
    // A live hold, missing data, no readings and a look between checks never put anybody to sleep.
    prop_assert!(!acts || world.holds.iter().all(|hold| !hold.is_live(now)), "held");
    prop_assert!(!acts || verdict.holds.is_empty(), "held by policy");
    prop_assert!(!acts || verdict.used == Use::Quiet, "not quiet");
    prop_assert!(!acts || verdict.is_from_check() && verdict.is_idle, "not from a check");
    let is_observed = !world.policy.auto_pause;
    prop_assert!(!acts || verdict.eligible || is_observed, "not eligible");
    let touches = matches!(verdict.action, Action::Sleep { .. } | Action::ScaleDown);
    prop_assert!(!touches || !is_observed, "observed only");
    prop_assert!(
        verdict.action == Action::None || !(world.is_braked || world.policy.protected),
        "braked or protected"
    );

    // Time that nobody observed is not idle time.
    for signal in Signal::ALL {
        if world.needs()[signal as usize] == Need::Required {
            let covered = world.evidence.sample(signal).and_then(|sample| sample.covered_since);
            prop_assert!(
                verdict.idle_for <= now.since(covered.unwrap_or(now)),
                "{} was not observed",
                signal
            );
        }
    }
    prop_assert!(verdict.baseline.at <= now);
    prop_assert!(
        verdict.baseline.source != BaselineSource::Activity
            || Some(verdict.baseline.at) == world.evidence.last_activity_at()
    );

    // A target, or what blocks it; never both, never in the past.
    prop_assert_eq!(verdict.target_pause_at.is_none(), verdict.target_pause_blocked_by.is_some());
    prop_assert_eq!(verdict.target_pause_at.is_some(), verdict.target_pause_reason.is_some());
    prop_assert!(verdict.target_pause_at.is_none_or(|at| at >= now));
    prop_assert!(verdict.next_check_at > now);
    prop_assert!(verdict.target_pause_at.is_none_or(|at| at <= now || verdict.next_check_at <= at));
    Ok(())
}

/// The reasons say the same as the fields.
fn assert_reasons_agree(verdict: &Verdict) -> Result<(), TestCaseError> {
    let reasons: Vec<Reason> = verdict.reasons().collect();
    prop_assert!(!reasons.is_empty());
    let says = |reason: Reason| reasons.contains(&reason);
    prop_assert_eq!(says(Reason::Brake), verdict.is_braked);
    prop_assert_eq!(says(Reason::Protected), verdict.is_protected);
    prop_assert_eq!(says(Reason::ObserveMode), !verdict.auto_pause_enabled);
    prop_assert_eq!(says(Reason::IdleTimeoutExceeded), verdict.is_idle);
    prop_assert_eq!(says(Reason::IdleTimeoutNever), verdict.idle_timeout.is_none());
    prop_assert_eq!(says(Reason::FlapGuard), verdict.flap_multiplier > 1);
    prop_assert_eq!(says(Reason::WindowNotFull), verdict.streak.count < verdict.window);
    let status = verdict.status;
    prop_assert_eq!(says(Reason::NotRunning { status }), status != StatusKind::Running);
    for signal in Signal::ALL {
        prop_assert_eq!(says(Reason::RecentActivity { signal }), verdict.signals.active.contains(signal));
        prop_assert_eq!(says(Reason::UnknownSignal { signal }), verdict.signals.unknown.contains(signal));
    }
    // Whatever keeps it awake is among them: without a reason against, it is eligible.
    let speaks_for = [
        Reason::IdleTimeoutExceeded,
        Reason::FlapGuard,
        Reason::NoticeRunning,
        Reason::MaxRuntimeExceeded,
        Reason::ExemptFromMaxRuntime,
        Reason::ScheduleSleep,
        Reason::AgentNotAsked,
    ];
    let is_alone = reasons.iter().all(|reason| speaks_for.contains(reason));
    prop_assert_eq!(is_alone, verdict.eligible, "{:?}", reasons);
    Ok(())
}

/// More than the usual 256 cases: states that meet are rare. `PROPTEST_CASES` asks for more still.
fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases.max(2_000), ..usual }
}

/// Whether it puts the worker to sleep, or would.
fn is_over(action: Action) -> bool {
    matches!(action, Action::Sleep { .. } | Action::WouldSleep { .. } | Action::ScaleDown)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_verdict_is_lawful(world in worlds(), now in instants(), reads in any::<[bool; Signal::COUNT]>()) {
        let mut world = world;
        let verdict = world.look(now);
        assert_lawful(&world, &verdict, now)?;
        assert_reasons_agree(&verdict)?;
        prop_assert!(!is_over(verdict.action), "acted between checks");
        for (signal, is_read) in Signal::ALL.into_iter().zip(reads) {
            if is_read {
                world.record(signal, Read::quiet(now), now);
            }
        }
        let verdict = world.check(now);
        assert_lawful(&world, &verdict, now)?;
        assert_reasons_agree(&verdict)?;
    }

    /// The one that finds the bugs: what a verdict foretells comes true, at that very instant.
    #[test]
    fn what_is_foretold_happens_then_and_not_before(
        world in worlds(),
        now in instants(),
        busy in prop::option::weighted(0.3, (select(&Signal::ALL[..]), 0..600_i64)),
    ) {
        let mut world = world;
        world.is_braked = false;
        if world.worker.status.kind() != StatusKind::Running {
            world.status(StatusKind::Running, world.worker.created_at);
        }
        world.quiet(now);
        if let Some((signal, ago)) = busy.filter(|(signal, _)| world.needs()[*signal as usize] != Need::Off) {
            let when = now - secs(ago.unsigned_abs());
            world.record(signal, Read::active(when, now), now);
        }
        // A hold whose end nobody knows counts as ending now.
        world.holds.retain(|hold| hold.until.is_some());

        let first = world.check(now);
        let Some(foretold) = first.target_pause_at else {
            prop_assert!(!is_over(first.action));
            return Ok(());
        };
        let mut verdict = first;
        let mut checks = 0;
        while !is_over(verdict.action) {
            let next = verdict.next_check_at;
            prop_assert!(verdict.at < foretold, "nothing at {}: {:#?}\n{:#?}", verdict.at, verdict, world.policy);
            prop_assert!(
                verdict.target_pause_at == Some(foretold),
                "moved from {} at {} to {:?}:\n{:#?}\nthen\n{:#?}\n{:#?}", foretold, verdict.at, verdict.target_pause_at, first, verdict, world
            );
            checks += 1;
            if checks > 300 {
                return Ok(());
            }
            verdict = world.quiet_check(next);
        }
        prop_assert_eq!(verdict.at, foretold, "{:#?}\n{:#?}", first, verdict);
        let reason = match verdict.action {
            Action::Sleep { reason } | Action::WouldSleep { reason } => reason,
            Action::None
            | Action::AskAgent
            | Action::ScaleDown
            | Action::StopAfter
            | Action::TerminateAfter => PauseReason::ScaleDown,
        };
        prop_assert_eq!(Some(reason), first.target_pause_reason);
    }

    /// Loops are never on the dot. A check that comes late delays what was foretold by that much and its
    /// streak; it never starts the waiting again.
    #[test]
    fn late_checks_do_not_prevent_what_was_foretold(
        world in worlds(),
        now in instants(),
        late in prop::collection::vec(0..1_000_000_u64, 8),
    ) {
        let mut world = world;
        world.is_braked = false;
        world.policy.schedule = None;
        world.holds.retain(|hold| hold.until.is_some());
        let first = world.quiet_check(now);
        let (Some(foretold), Some(timeout)) = (first.target_pause_at, first.idle_timeout) else {
            return Ok(());
        };
        let mut verdict = first;
        for late in late.iter().cycle().take(400) {
            if is_over(verdict.action) {
                prop_assert!(verdict.at >= foretold, "{} before {}", verdict.at, foretold);
                return Ok(());
            }
            prop_assert!(verdict.at <= foretold + timeout + secs(60), "{:#?}\n{:#?}", verdict, world);
            verdict = world.quiet_check(verdict.next_check_at + Duration::from_micros(*late));
        }
    }

    #[test]
    fn last_activity_never_goes_back_and_never_lies_in_the_future(
        policy in policies(),
        arrivals in arrivals(),
        counts in any::<bool>(),
    ) {
        let mut world = World::new(drowse_core::signal::DriverKind::Docker, policy);
        let mut last = None;
        let mut result = Ok(());
        arrive(&mut world, arrivals, |world, now| {
            let seen = world.evidence.last_activity_at();
            if seen < last || seen.is_some_and(|at| at > now) {
                result = Err(TestCaseError::fail(format!("{last:?} became {seen:?} at {now}")));
            }
            last = seen;
        });
        result?;
        // What does not count leaves it where it was.
        if !counts {
            let late = at(90 * 86_400);
            world.evidence.record(Signal::Activity, Read::active(late, late), false, secs(60), late);
            prop_assert_eq!(world.evidence.last_activity_at(), last);
        }
    }

    #[test]
    fn coverage_never_begins_after_its_own_read(policy in policies(), arrivals in arrivals()) {
        let mut world = World::new(drowse_core::signal::DriverKind::Docker, policy);
        let mut result = Ok(());
        arrive(&mut world, arrivals, |world, now| {
            for sample in Signal::ALL.iter().filter_map(|signal| world.evidence.sample(*signal)) {
                let is_read = !matches!(sample.reading, Reading::Unknown { .. });
                let is_covered = sample.covered_since.is_some_and(|since| since <= sample.read_at);
                if is_read && !is_covered || sample.read_at > now {
                    result = Err(TestCaseError::fail(format!("{sample:?} at {now}")));
                }
            }
        });
        result?;
    }
}

/// A value of the key that differs from what it would be unset.
pub(super) fn other_value(key: Key) -> Value {
    let text = match key.kind() {
        // The one that is true unless set to false.
        Kind::Flag if key.default() == Some(Value::Flag(true)) => "false",
        Kind::Flag => "true",
        Kind::Duration | Kind::Interval | Kind::DurationOrNever => "42m",
        Kind::Count { .. } | Kind::Number => "42",
        Kind::Percent | Kind::Percents => "42%",
        Kind::Size => "42KiB",
        Kind::Text => "/tmp/stay",
        Kind::Command => "sync,-f",
        Kind::Sleep => "hibernate",
        Kind::IdlePolicy => "leases_only",
        Kind::Reasons => "manual,external",
        Kind::Need => "counted",
        Kind::Schedule => r#"{ days = "mon", hours = "08:00-09:00", keep_awake = true }"#,
    };
    Value::read(key.kind(), &raw(key.kind(), text)).unwrap_or_else(|error| panic!("{key}: {error}"))
}

#[test]
fn every_key_changes_the_policy_at_every_level_and_names_it() {
    for key in Key::all() {
        for level in [Level::Global, Level::Region, Level::Type, Level::Group, Level::Owner, Level::Worker] {
            let layer = PolicyLayer::new(level, Some("x"), Source::File).with(key, other_value(key));
            let (policy, provenance) = resolve(&[layer]);
            let (unset, _) = resolve(&[]);
            assert_ne!(policy, unset, "{key} fills nothing");
            assert_eq!(provenance[&key].level, level, "{key}");
            assert_eq!(provenance[&key].source, Source::File, "{key}");
            // And nothing else is claimed by that layer.
            let claimed: Vec<&Key> =
                provenance.iter().filter(|(_, origin)| origin.level == level).map(|(key, _)| key).collect();
            assert_eq!(claimed, [&key]);
        }
    }
}

fn layers() -> impl Strategy<Value = Vec<PolicyLayer>> {
    let keys: Vec<Key> = Key::all().collect();
    let levels = [Level::Global, Level::Region, Level::Type, Level::Group, Level::Owner, Level::Worker];
    let sources = [Source::BuiltIn, Source::File, Source::RunTime, Source::Environment];
    let all: Vec<(Level, Source)> =
        levels.into_iter().flat_map(|level| sources.map(|source| (level, source))).collect();
    let values = prop::collection::vec((select(keys), any::<bool>()), 0..8);
    prop::sample::subsequence(all, 0..10).prop_flat_map(move |places| {
        places
            .into_iter()
            .map(|(level, source)| {
                values.clone().prop_map(move |values| {
                    values.into_iter().fold(
                        PolicyLayer::new(level, Some("x"), source),
                        |layer, (key, other)| {
                            let value = if other {
                                other_value(key)
                            } else {
                                key.default().unwrap_or_else(|| other_value(key))
                            };
                            layer.with(key, value)
                        },
                    )
                })
            })
            .collect::<Vec<_>>()
    })
}

proptest! {
    #[test]
    fn layers_resolve_the_same_one_by_one_at_once_and_in_any_order(
        (layers, shuffled) in layers().prop_flat_map(|layers| (Just(layers.clone()), Just(layers).prop_shuffle())),
    ) {
        let at_once = resolve(&layers);
        prop_assert_eq!(&at_once, &resolve(&shuffled));
        let mut stack = Stack::default();
        for layer in &shuffled {
            stack.push(layer);
            // Each is a policy of its own on the way, and looking at it changes nothing.
            let _ = stack.finish();
        }
        prop_assert_eq!(&at_once, &stack.finish());
        // No layer ever loses another's keys.
        for layer in &layers {
            for key in layer.values.keys() {
                prop_assert!(at_once.1[key].level >= layer.level || *key == Key::AutoPause);
            }
        }
        // False at any level means observe mode, unless a stronger source of that level says otherwise.
        let is_observed = [Level::Global, Level::Region, Level::Type, Level::Group, Level::Owner, Level::Worker]
            .into_iter()
            .any(|level| {
                let strongest = layers.iter().filter(|layer| layer.level == level)
                    .filter_map(|layer| layer.values.get(&Key::AutoPause).map(|value| (layer.source, value)))
                    .max_by_key(|(source, _)| *source);
                strongest.is_some_and(|(_, value)| *value == Value::Flag(false))
            });
        prop_assert_eq!(at_once.0.auto_pause, !is_observed);
    }
}
