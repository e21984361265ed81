//! A verdict in words: every reason, every signal, every setting with the layer that set it.

use std::collections::BTreeSet;
use std::time::Duration;

use drowse_core::evidence::Read;
use drowse_core::flap::Flap;
use drowse_core::hold::HoldKind;
use drowse_core::policy::exemption::{Expiry, From};
use drowse_core::policy::{Key, Level, PolicyLayer, Stack};
use drowse_core::reason::PauseReason;
use drowse_core::signal::{DriverKind, Measured, Reading, Signal, UnknownCause};
use drowse_core::status::{Sleep, Status, StatusKind};
use drowse_core::verdict::{Explanation, Verdict, explain};

use super::world::{World, at, exemption, hold, layer, minute, policy, secs};

/// Explains a verdict of a world whose policy comes from these layers.
fn explained(world: &World, layers: &[PolicyLayer], verdict: &Verdict) -> Explanation {
    let mut stack = Stack::default();
    for layer in layers {
        stack.push(layer);
    }
    let (policy, provenance) = stack.finish();
    let began = verdict.check_began_at;
    explain(&world.snapshot(began, verdict.at), &policy, &stack.set_values(), &provenance, verdict)
}

fn plainly(world: &World, verdict: &Verdict) -> Explanation {
    let (_, provenance) = drowse_core::policy::resolve(&[]);
    let began = verdict.check_began_at;
    let settings = Stack::default().set_values();
    explain(&world.snapshot(began, verdict.at), &world.policy, &settings, &provenance, verdict)
}

/// Worlds that show every reason between them.
fn gallery() -> Vec<(World, Verdict)> {
    let mut shown = Vec::new();
    let mut show = |mut world: World, change: &dyn Fn(&mut World), now| {
        change(&mut world);
        let verdict = world.check(now);
        shown.push((world, verdict));
    };
    let overdue = |values: &[(&str, &str)]| {
        let mut world = World::process(values);
        world.run_quiet(at(0), minute(60) - secs(1));
        world.quiet(minute(60));
        world
    };
    show(overdue(&[]), &|_| {}, minute(60));
    show(World::process(&[]), &|_| {}, at(0));
    show(World::process(&[("signals.cpu.use", "off")]), &|_| {}, at(0));
    show(overdue(&[]), &|world| world.active(Signal::Cpu, minute(60), minute(60)), minute(60));
    show(overdue(&[("auto_pause", "false")]), &|world| world.is_braked = true, minute(60));
    show(overdue(&[("protected", "true"), ("idle_timeout", "never")]), &|_| {}, minute(60));
    show(
        overdue(&[]),
        &|world| {
            for kind in HoldKind::ALL {
                world.holds.push(hold(kind, at(0), Some(minute(99))));
            }
        },
        minute(60),
    );
    show(overdue(&[]), &|world| world.status(StatusKind::Draining, at(0)), minute(60));
    show(overdue(&[("window", "3")]), &|world| world.worker.flap = Flap { undone_in_a_row: 9 }, minute(60));
    show(overdue(&[]), &|world| world.idle_warned = None, minute(60));
    show(overdue(&[("max_runtime", "1m")]), &|world| world.runtime_warned = None, minute(60));
    show(
        overdue(&[("max_runtime", "1h")]),
        &|world| world.exemptions.push(exemption(&[From::MaxRuntime], Expiry::Never)),
        minute(60),
    );
    let mut limited = World::routed(&[("max_runtime", "50m")]);
    let verdict = limited.run_quiet(at(0), minute(60));
    shown.push((limited, verdict));
    let mut curfew = World::routed(&[(
        "schedule",
        r#"{ days = "daily", hours = "00:30-24:00", sleep = true, force = true }"#,
    )]);
    let verdict = curfew.run_quiet(at(0), minute(60));
    shown.push((curfew, verdict));
    let mut asked = World::new(DriverKind::Qemu, policy(&[]));
    asked.quiet_check(at(0));
    let verdict = asked.check(minute(60));
    shown.push((asked, verdict));
    shown
}

#[test]
fn every_reason_has_a_sentence_of_its_own() {
    let mut codes = BTreeSet::new();
    for (world, verdict) in gallery() {
        let explanation = plainly(&world, &verdict);
        let reasons: Vec<&str> = verdict.reasons().map(drowse_core::verdict::Reason::code).collect();
        let explained: Vec<&str> = explanation.reasons.iter().map(|reason| reason.code).collect();
        assert_eq!(explained, reasons, "all of them, in the same order");
        let sentences: BTreeSet<&String> =
            explanation.reasons.iter().map(|reason| &reason.sentence).collect();
        assert_eq!(sentences.len(), reasons.len(), "{:?}", explanation.reasons);
        assert!(sentences.iter().all(|sentence| sentence.len() > 10), "{sentences:?}");
        assert!(!explanation.summary.is_empty());
        codes.extend(reasons);
    }
    let all = [
        "recent_activity",
        "unknown_signal",
        "no_evidence",
        "not_idle_yet",
        "window_not_full",
        "idle_timeout_never",
        "observe_mode",
        "in_snooze_period",
        "held",
        "brake",
        "not_running",
        "protected",
        "notice_running",
        "agent_not_asked",
        "flap_guard",
        "max_runtime_exceeded",
        "exempt_from_max_runtime",
        "schedule_sleep",
        "idle_timeout_exceeded",
    ];
    assert_eq!(codes, BTreeSet::from(all));
}

#[test]
fn whatever_keeps_it_awake_says_what_would_have_to_change() {
    for (world, verdict) in gallery() {
        let explanation = plainly(&world, &verdict);
        let acts = verdict.eligible || verdict.runtime_ends_at.is_some_and(|end| end <= verdict.at);
        assert!(acts || !explanation.would_have_to_change.is_empty(), "{:?}", explanation.reasons);
    }
}

/// Nothing is wrong with what was only read once.
#[test]
fn a_first_sample_asks_for_nothing_but_the_next_check() {
    let mut world = World::process(&[]);
    world.unknown(Signal::Cpu, UnknownCause::FirstSample, at(0));
    let verdict = world.check(at(0));
    let changes = plainly(&world, &verdict).would_have_to_change;
    assert_eq!(changes[0], "cpu is read a second time, at the next check");
    assert!(changes.contains(&"it is quiet in one more check".to_owned()), "{changes:?}");
}

#[test]
fn every_setting_is_shown_with_the_layer_that_set_it() {
    let layers = [
        layer(Level::Global, None, &[("window", "2"), ("auto_pause", "true")]),
        layer(Level::Group, Some("lab"), &[("idle_timeout", "30m"), ("auto_pause", "false")]),
        layer(Level::Worker, Some("w"), &[("signals.cpu.active_above", "7%")]),
    ];
    let mut world = World::process(&[]);
    world.set_policy(drowse_core::policy::resolve(&layers).0);
    let verdict = world.quiet_check(at(0));
    let shown = explained(&world, &layers, &verdict).policy;
    let setting = |key: Key| (shown[&key].value.as_str(), shown[&key].from.as_str());
    assert_eq!(setting(Key::IdleTimeout), ("\"30m\"", "group lab"));
    assert_eq!(setting(Key::AutoPause), ("false", "group lab"), "the no that counts");
    assert_eq!(setting(Key::Window), ("2", "global"));
    assert_eq!(setting(Key::SignalAbove(Signal::Cpu)), ("\"7%\"", "worker w"));
    assert_eq!(setting(Key::CheckInterval), ("\"5m\"", "follows idle_timeout"));
    assert_eq!(setting(Key::Snooze), ("\"30m\"", "follows idle_timeout"));
    assert_eq!(setting(Key::MinNotice), ("\"5m\"", "follows idle_timeout"));
    assert_eq!(setting(Key::Grace), ("\"1m\"", "built-in"));
    assert_eq!(setting(Key::MaxRuntime), ("\"never\"", "built-in"));
    assert_eq!(setting(Key::Sleep), ("\"freeze\"", "driver process"));
    assert_eq!(setting(Key::SignalUse(Signal::Cpu)), ("\"required\"", "driver process"));
    // Only what is simply not there is left out.
    let missing: Vec<Key> = Key::all().filter(|key| !shown.contains_key(key)).collect();
    assert_eq!(missing, [Key::Schedule, Key::BeforePause, Key::AfterResume]);
}

#[test]
fn each_signal_is_shown_against_its_threshold_with_its_age() {
    let mut world = World::routed(&[]);
    world.quiet(at(0));
    let measured = Measured { value: 1.25, active_above: 2.0 };
    let read = Read { reading: Reading::Quiet, read_at: at(0), measured: Some(measured), tells_gap: false };
    world.record(Signal::Cpu, read, at(0));
    world.unknown(Signal::Tcp, UnknownCause::ProbeFailed, at(0));
    world.active(Signal::Connections, at(0), at(0));
    let verdict = world.look(at(90));
    let sentences: Vec<String> =
        plainly(&world, &verdict).signals.into_iter().map(|signal| signal.sentence).collect();
    assert_eq!(
        sentences,
        [
            "connections showed use 1m30s ago",
            "tcp could not be read",
            "cpu is quiet: 1.2%, active above 2.0%",
            "network is quiet",
        ]
    );
    let view = plainly(&world, &verdict);
    assert!(view.signals.iter().all(|signal| signal.age == Some(secs(90))));
}

#[test]
fn what_leases_only_does_not_count_is_shown_all_the_same() {
    let mut world = World::new(DriverKind::Qemu, policy(&[("idle_policy", "leases_only")]));
    world.evidence.record(Signal::Activity, Read::active(at(0), at(0)), false, secs(60), at(0));
    let verdict = world.look(at(5));
    let sentence = &plainly(&world, &verdict).signals[0].sentence;
    assert_eq!(sentence, "activity showed use 5s ago, which leases_only does not count");
}

#[test]
fn a_sleep_that_the_driver_cannot_do_is_said() {
    let mut world = World::new(DriverKind::Ec2, policy(&[("sleep", "freeze")]));
    let verdict = world.check(at(0));
    let notes = plainly(&world, &verdict).notes;
    assert_eq!(notes, ["sleep = \"freeze\" is beyond the driver ec2: it becomes \"stop\""]);
    let mut world = World::new(DriverKind::Ec2, policy(&[("sleep", "hibernate")]));
    let verdict = world.check(at(0));
    assert!(plainly(&world, &verdict).notes.is_empty());
}

#[test]
fn an_explanation_can_be_sent_as_json_and_its_verdict_read_back() {
    for (world, verdict) in gallery() {
        let explanation = plainly(&world, &verdict);
        let json = serde_json::to_value(&explanation).expect("serialises");
        assert!(json["verdict"]["next_check_at"].is_string());
        assert!(json["policy"]["idle_timeout"]["value"].is_string());
        assert_eq!(json["reasons"].as_array().map(Vec::len), Some(explanation.reasons.len()));
        let journalled = serde_json::to_string(&verdict).expect("serialises");
        let read: Verdict = serde_json::from_str(&journalled).expect("reads");
        assert_eq!(serde_json::to_string(&read).expect("serialises"), journalled);
        assert_eq!((read.action, read.target_pause_at), (verdict.action, verdict.target_pause_at));
    }
}

#[test]
fn a_check_that_took_its_time_is_explained_by_what_it_read() {
    let mut world = World::process(&[]);
    world.run_quiet(at(0), minute(60) - secs(1));
    world.quiet(minute(60));
    // Read at once, and judged when there was time for it.
    let later = minute(60) + secs(3);
    let verdict = drowse_core::judge(&world.snapshot(Some(minute(60)), later), &world.policy, later);
    assert!(verdict.is_idle, "{verdict:?}");
    let told = plainly(&world, &verdict);
    let cpu = told.signals.iter().find(|view| view.signal == Signal::Cpu).unwrap();
    assert!(!cpu.sentence.contains("not read"), "{}", cpu.sentence);
}

#[test]
fn one_that_sleeps_says_why_and_how_it_goes_on() {
    let mut world = World::routed(&[("stop_after", "10m"), ("terminate_after", "2d")]);
    world.run_quiet(at(0), minute(10));
    world.status(StatusKind::Paused, minute(60));
    let verdict = world.look(minute(62));
    let explanation = plainly(&world, &verdict);
    assert_eq!(explanation.summary, "paused for 2m, since 2026-03-02T01:00:00Z, by drowse (idle_timeout)");
    assert_eq!(
        explanation.notes,
        [
            "it is stopped in 8m (2026-03-02T01:10:00Z), unless it is woken",
            "it is deleted in 1d23h (2026-03-04T01:00:00Z), unless it is woken",
            "whoever connects wakes it, and so does: drowse resume w",
        ]
    );
    assert!(explanation.would_have_to_change.is_empty(), "{:?}", explanation.would_have_to_change);
    let codes: Vec<&str> = explanation.reasons.iter().map(|reason| reason.code).collect();
    assert_eq!(codes, ["not_running"]);
}

#[test]
fn a_sleep_that_a_person_asked_for_has_their_words() {
    let mut world = World::routed(&[("stop_after", "10m")]);
    let sleep = Sleep {
        reason: PauseReason::Manual,
        by: "alice".into(),
        message: "for a test".into(),
        at: minute(60),
        forced: false,
    };
    world.worker.status = Status::Paused { since: minute(60), sleep };
    let explanation = plainly(&world, &world.look(minute(61)));
    assert_eq!(
        explanation.summary,
        "paused for 1m, since 2026-03-02T01:00:00Z, by alice (manual): for a test"
    );
    assert_eq!(
        explanation.notes,
        ["no connection wakes it (wake_from is without manual); a person does: drowse resume w"]
    );
}

#[test]
fn no_time_is_named_while_it_cannot_be_read() {
    let mut world = World::process(&[]);
    world.run_quiet(at(0), minute(10));
    world.unknown(Signal::Cpu, UnknownCause::NotItsOwn, minute(11));
    let verdict = world.check(minute(11));
    assert!(verdict.target_pause_at.is_some(), "the earliest is known all the same");
    let explanation = plainly(&world, &verdict);
    assert_eq!(explanation.summary, "awake; it does not sleep while cpu is unknown");
    let change = &explanation.would_have_to_change;
    assert!(change.iter().any(|change| change.ends_with("signals.cpu.use = \"off\"")), "{change:?}");
}

#[test]
fn numbers_have_the_units_that_people_read() {
    let mut world = World::process(&[]);
    let now = minute(10) + Duration::from_millis(358);
    for (signal, value, active_above) in
        [(Signal::Network, 729_088.0, 69_306.3), (Signal::Tcp, 0.0, 0.0), (Signal::Cpu, 1.25, 2.0)]
    {
        let read = Read { measured: Some(Measured { value, active_above }), ..Read::quiet(now) };
        world.record(signal, read, now);
    }
    let explanation = plainly(&world, &world.look(now));
    let sentence = |signal: Signal| {
        explanation
            .signals
            .iter()
            .find(|view| view.signal == signal)
            .map(|view| view.sentence.clone())
            .unwrap()
    };
    assert_eq!(
        sentence(Signal::Network),
        "network is quiet: 712KiB, active above 68KiB, both since the check before"
    );
    assert_eq!(sentence(Signal::Tcp), "tcp is quiet: 0 sockets, active above 0 sockets");
    assert_eq!(sentence(Signal::Cpu), "cpu is quiet: 1.2%, active above 2.0%");
    let all = format!("{:?} {}", explanation.reasons, explanation.summary);
    assert!(!all.contains("ms"), "{all}");
}
