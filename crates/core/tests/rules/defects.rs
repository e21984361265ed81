//! One test for each defect of the systems that Drowse replaces, and of the kind they had.

use drowse_core::Timestamp;
use drowse_core::counter::{Meter, Total};
use drowse_core::evidence::Read;
use drowse_core::policy::exemption::{Exempt, Expiry, From, Record, RecordError, Subject, read_all};
use drowse_core::policy::{
    Key, Kind, Level, PolicyBook, PolicyLayer, Raw, Selectors, Source, Stack, Value, conflicts,
    environment_layer, resolve,
};
use drowse_core::reason::{PauseReason, ResumeReason, SleepMode};
use drowse_core::signal::{Reading, Signal, UnknownCause};
use drowse_core::verdict::{Action, Use};
use drowse_core::worker::Last;

use super::world::{World, at, layer, minute, policy, secs, value};

#[test]
fn null_does_not_overwrite_activity() {
    let mut world = World::process(&[]);
    world.active(Signal::Cpu, minute(5), minute(5));
    for cause in [UnknownCause::ProbeFailed, UnknownCause::SwitchedOff, UnknownCause::Vanished] {
        world.unknown(Signal::Cpu, cause, minute(6));
        assert_eq!(world.evidence.last_activity_at(), Some(minute(5)));
    }
    world.quiet(minute(7));
    assert_eq!(world.evidence.last_activity_at(), Some(minute(5)));
    assert_eq!(world.evidence.last_activity_by(), Some(Signal::Cpu));
}

#[test]
fn a_future_dated_event_does_not_keep_a_worker_awake_for_ever() {
    let mut world = World::process(&[]);
    world.active(Signal::Cpu, minute(100_000), minute(5));
    assert_eq!(world.evidence.last_activity_at(), Some(minute(5)));
}

#[test]
fn a_resumed_worker_is_not_paused_for_activity_of_before_its_sleep() {
    let mut world = World::routed(&[]);
    world.active(Signal::Cpu, at(0), at(0));
    world.worker.last_resume = Some(Last { at: minute(500), by: "ada".into(), reason: ResumeReason::Manual });
    let verdict = world.quiet_check(minute(501));
    assert!(!verdict.is_idle && verdict.action == Action::None);
}

#[test]
fn a_total_since_the_start_is_not_activity() {
    let policy = policy(&[]);
    let before = Total { value: 50 << 30, at: at(0) };
    let after = Total { value: 50 << 30, at: at(300) };
    assert_eq!(Meter::Network.read(Some(&before), &after, &policy, secs(300)).reading, Reading::Quiet);
}

#[test]
fn an_override_of_one_key_loses_none_of_the_others() {
    let layers = [
        layer(
            Level::Global,
            None,
            &[("max_runtime", "72h"), ("window", "4"), ("signals.cpu.active_above", "3%")],
        ),
        layer(Level::Group, Some("student"), &[("idle_timeout", "30m"), ("signals.gpu.active_above", "9%")]),
        layer(Level::Owner, Some("alice"), &[("idle_timeout", "2h")]),
    ];
    let (resolved, provenance) = resolve(&layers);
    assert_eq!(resolved.idle_timeout, Some(secs(7_200)));
    assert_eq!(resolved.max_runtime, Some(secs(72 * 3_600)));
    assert_eq!(resolved.window, 4);
    assert!((resolved.active_above[Signal::Cpu as usize] - 3.0).abs() < f64::EPSILON);
    assert!((resolved.active_above[Signal::Gpu as usize] - 9.0).abs() < f64::EPSILON);
    assert_eq!(provenance[&Key::IdleTimeout].to_string(), "owner alice");
    assert_eq!(provenance[&Key::Window].to_string(), "global");
}

#[test]
fn a_bare_number_is_never_a_duration() {
    for key in
        Key::all().filter(|key| matches!(key.kind(), Kind::Duration | Kind::Interval | Kind::DurationOrNever))
    {
        for bare in [Raw::Integer(48), Raw::Float(48.0), Raw::Float(0.5), Raw::Text("48".into())] {
            let error = Value::read(key.kind(), &bare).expect_err("a bare number").to_string();
            assert!(error.starts_with("a bare number has no unit"), "{key}: {error}");
        }
    }
    for kind in [Kind::Size, Kind::Percent] {
        let error = Value::read(kind, &Raw::Float(1.5)).expect_err("a bare number").to_string();
        assert!(error.starts_with("a bare number has no unit"), "{error}");
    }
}

#[test]
fn never_is_a_value_and_absent_is_inheritance() {
    let global = layer(Level::Global, None, &[("idle_timeout", "30m"), ("max_runtime", "24h")]);
    let owner = layer(Level::Owner, Some("bob"), &[("max_runtime", "never")]);
    let (resolved, provenance) = resolve(&[global, owner]);
    assert_eq!((resolved.max_runtime, resolved.idle_timeout), (None, Some(secs(1_800))));
    assert_eq!(provenance[&Key::MaxRuntime].level, Level::Owner);
    assert_eq!(Value::read(Kind::DurationOrNever, &Raw::Null), Ok(Value::Never));
    assert!(Value::read(Kind::Duration, &Raw::Null).is_err(), "grace cannot be never");
}

fn record(owner: &str) -> Record {
    Record {
        owner: Some(owner.into()),
        from: vec!["idle_timeout".into()],
        reason: Some("grant".into()),
        approved_by: Some("carol".into()),
        expires_on: Some("2026-12-01T00:00:00Z".into()),
        ..Record::default()
    }
}

#[test]
fn a_bad_exemption_record_is_named_and_drops_no_other() {
    let bad = [
        Record { expires_on: None, ..record("b") },
        Record { expires_on: Some("soon".into()), ..record("b") },
        Record { expires_on: Some("2026-12-01".into()), ..record("b") },
        Record { from: vec![], ..record("b") },
        Record { from: vec!["sleep".into()], ..record("b") },
        Record { reason: Some("  ".into()), ..record("b") },
        Record { approved_by: None, ..record("b") },
        Record { owner: None, ..record("b") },
        Record { worker: Some("w".into()), ..record("b") },
    ];
    for broken in bad {
        let (good, errors) = read_all(&[record("a"), broken.clone(), record("c")]);
        let owners: Vec<Subject> = good.into_iter().map(|exemption| exemption.subject).collect();
        assert_eq!(owners, [Subject::Owner("a".into()), Subject::Owner("c".into())], "{broken:?}");
        assert_eq!(errors.len(), 1);
        assert_eq!(errors[0].0, 1, "the record is named");
    }
    assert_eq!(Record { expires_on: None, ..record("a") }.read(), Err(RecordError::NoExpiry));
    let permanent = Record { expires_on: Some("never".into()), ..record("a") };
    assert_eq!(permanent.read().map(|read| read.expires_on), Ok(Expiry::Never));
}

#[test]
fn of_several_exemptions_the_one_that_ends_last_counts_and_only_for_its_subject() {
    let until = |secs| Expiry::At(at(secs));
    let of = |owner: &str, from: From, expires_on| drowse_core::policy::exemption::Exemption {
        subject: Subject::Owner(owner.into()),
        from: vec![from],
        reason: "r".into(),
        approved_by: "c".into(),
        expires_on,
    };
    let selectors = Selectors { owner: Some("bob".into()), ..Selectors::default() };
    let all = [
        of("bob", From::IdleTimeout, until(50)),
        of("bob", From::IdleTimeout, until(200)),
        of("bob", From::IdleTimeout, until(150)),
        of("eve", From::MaxRuntime, Expiry::Never),
    ];
    let exempt = Exempt::of(&all, &selectors, at(100));
    assert_eq!(exempt.idle_timeout, Some(until(200)));
    assert_eq!((exempt.max_runtime, exempt.idle_ended_at), (None, Some(at(50))));
    assert_eq!(Exempt::of(&all, &selectors, at(200)).idle_timeout, None, "over at its very end");
    assert_eq!(exempt.at(at(200)), Exempt::of(&all, &selectors, at(200)));
    assert_eq!(all[1].expiry_notice_at(), Some(at(200) - secs(7 * 86_400)));
    assert_eq!(all[3].expiry_notice_at(), None);
}

#[test]
fn the_environment_pins_the_global_layer_and_only_that() {
    let mut stack = Stack::default();
    for pinned in environment_layer([("WORKER_IDLE_TIMEOUT_MINUTES", "45"), ("HOME", "/root")]).expect("good")
    {
        stack.push(&pinned);
    }
    stack.push(&layer(Level::Global, None, &[("idle_timeout", "10m")]));
    let run_time = PolicyLayer::new(Level::Global, None, Source::RunTime)
        .with(Key::IdleTimeout, value(Key::IdleTimeout, "20m"));
    stack.push(&run_time);
    let (resolved, provenance) = stack.finish();
    assert_eq!(resolved.idle_timeout, Some(secs(45 * 60)));
    assert_eq!(
        provenance[&Key::IdleTimeout].to_string(),
        "global (environment, WORKER_IDLE_TIMEOUT_MINUTES)"
    );
    assert!(stack.is_pinned(Key::IdleTimeout) && !stack.is_pinned(Key::Window));
    stack.push(&layer(Level::Group, Some("g"), &[("idle_timeout", "5m")]));
    assert_eq!(stack.finish().0.idle_timeout, Some(secs(300)), "a more specific layer still wins");
}

#[test]
fn every_variable_of_the_seeds_works() {
    let all = [
        ("WORKER_IDLE_TIMEOUT_MINUTES", "30"),
        ("WORKER_AUTO_PAUSE_ENABLED", "False"),
        ("WORKER_AUTO_PAUSE_SNOOZE_MINUTES", "0"),
        ("WORKER_ACTIVITY_DETECTION_ENABLED", "false"),
        ("WORKER_ACTIVITY_DETECTION_INTERVAL", "600"),
        ("IDLE_DETECTION_INTERVAL", "120"),
        ("SCALE_DOWN_ENABLED", "true"),
    ];
    let (resolved, _) = resolve(&environment_layer(all).expect("all are lawful"));
    assert_eq!(resolved.idle_timeout, Some(secs(1_800)));
    assert_eq!(
        (resolved.snooze, resolved.telemetry_interval, resolved.check_interval),
        (secs(0), secs(600), secs(120))
    );
    assert!(!resolved.auto_pause && !resolved.activity_detection && resolved.scale_down);
    for bad in ["", "0", "-1", "1.5", "30m", "never"] {
        assert!(environment_layer([("WORKER_IDLE_TIMEOUT_MINUTES", bad)]).is_err(), "{bad:?}");
    }
}

#[test]
fn what_a_type_ships_with_is_not_overridden_from_further_away() {
    let selectors = |kind: &str| Selectors {
        worker: "w".into(),
        kind: Some(kind.into()),
        region: Some("eu".into()),
        ..Selectors::default()
    };
    let far = vec![
        layer(Level::Global, None, &[("idle_timeout", "2h"), ("grace", "5s"), ("sleep", "freeze")]),
        layer(Level::Region, Some("eu"), &[("idle_timeout", "3h"), ("grace", "6s")]),
    ];
    let resolved = |book: &PolicyBook, kind: &str| book.resolve_for(&selectors(kind)).0;
    let book = PolicyBook::new(far.clone());
    assert_eq!(resolved(&book, "microvm").idle_timeout, Some(secs(60)));
    for (kind, grace) in [("gpu", 60), ("devcontainer", 30), ("compose", 45)] {
        let policy = resolved(&book, kind);
        assert_eq!((policy.grace, policy.sleep), (secs(grace), Some(SleepMode::Stop)), "{kind}");
        assert_eq!(policy.idle_timeout, Some(secs(3 * 3_600)), "{kind} ships no timeout");
    }
    assert_eq!(resolved(&book, "own").grace, secs(6));
    for near in [
        layer(Level::Type, Some("microvm"), &[("idle_timeout", "5m")]),
        layer(Level::Worker, Some("w"), &[("idle_timeout", "5m")]),
    ] {
        let mut book = PolicyBook::new(far.clone());
        book.push(near);
        assert_eq!(resolved(&book, "microvm").idle_timeout, Some(secs(300)));
    }
}

#[test]
fn a_layer_of_another_name_does_not_apply() {
    let book = PolicyBook::new(vec![
        layer(Level::Group, Some("student"), &[("window", "3")]),
        layer(Level::Worker, Some("other"), &[("window", "9")]),
    ]);
    let of = |group: Option<&str>| Selectors {
        worker: "w".into(),
        group: group.map(Into::into),
        ..Selectors::default()
    };
    assert_eq!(book.resolve_for(&of(Some("student"))).0.window, 3);
    assert_eq!(book.resolve_for(&of(Some("faculty"))).0.window, 1);
    assert_eq!(book.resolve_for(&of(None)).0.window, 1);
}

/// The conflicts of two layers, as they are told.
fn told(global: &[(&str, &str)], group: &[(&str, &str)]) -> Vec<String> {
    let layers = [layer(Level::Global, None, global), layer(Level::Group, Some("lab"), group)];
    let (resolved, provenance) = resolve(&layers);
    conflicts(&resolved, &provenance, false).iter().map(ToString::to_string).collect()
}

#[test]
fn a_stale_threshold_of_two_heartbeats_is_refused_naming_both_layers() {
    assert_eq!(told(&[("heartbeat_interval", "30s")], &[("stale_after", "61s")]), Vec::<String>::new());
    let refused = told(&[("heartbeat_interval", "30s")], &[("stale_after", "60s")]);
    assert_eq!(refused.len(), 1);
    assert!(
        refused[0].contains("stale_after is set by: group lab; heartbeat_interval by: global"),
        "{}",
        refused[0]
    );
}

#[test]
fn an_explicit_interval_whose_window_outlasts_the_timeout_is_refused_naming_both_layers() {
    let global = [("check_interval", "10m"), ("window", "3")];
    assert_eq!(told(&global, &[("idle_timeout", "30m")]), Vec::<String>::new(), "equal is lawful");
    let refused = told(&global, &[("idle_timeout", "1799s")]);
    assert_eq!(refused.len(), 1);
    assert!(
        refused[0].contains("check_interval is set by: global; idle_timeout by: group lab"),
        "{}",
        refused[0]
    );
    // What nobody set follows the timeout and fits.
    assert_eq!(told(&[("window", "1000")], &[("idle_timeout", "1s")]), Vec::<String>::new());
}

#[test]
fn what_follows_the_timeout_follows_it() {
    for (timeout, window, check, telemetry, snooze) in [
        ("60m", "1", 300, 1_800, 3_600),
        ("2m", "1", 60, 60, 120),
        ("10s", "3", 2, 2, 10),
        ("1s", "4", 1, 1, 1),
        ("10h", "1", 300, 1_800, 3_600),
        ("never", "1", 300, 1_800, 3_600),
    ] {
        let policy = policy(&[("idle_timeout", timeout), ("window", window)]);
        let found =
            [policy.check_interval, policy.telemetry_interval, policy.snooze].map(|value| value.as_secs());
        assert_eq!(found, [check, telemetry, snooze], "{timeout} / {window}");
    }
}

#[test]
fn a_look_is_no_check_and_never_acts() {
    let mut world = World::routed(&[]);
    world.run_quiet(at(0), minute(59));
    for now in 60..2_000 {
        let verdict = world.look(minute(now));
        assert_eq!(verdict.action, Action::None);
        assert_eq!(verdict.used, Use::Quiet);
    }
}

#[test]
fn three_looks_in_a_second_are_not_three_looks() {
    let mut world = World::routed(&[("window", "3"), ("idle_timeout", "3s")]);
    let counts: Vec<u32> = (0..3)
        .map(|tick| world.quiet_check(at(5) + core::time::Duration::from_millis(tick)).streak.count)
        .collect();
    assert_eq!(counts, [1, 1, 1]);
}

#[test]
fn an_overtaken_message_does_not_end_a_newer_state() {
    let mut world = World::routed(&[]);
    world.record(Signal::Connections, Read::active(at(10), at(10)), at(10));
    world.record(Signal::Connections, Read::quiet(at(9)), at(11));
    assert_eq!(world.look(at(11)).used, Use::Active, "a delayed release must not undo a newer hold");
}

#[test]
fn counters_only_grow() {
    use drowse_core::event::{Event, Request};
    use drowse_core::machine::step;
    let mut worker = World::routed(&[]).worker;
    worker.boot = Some(drowse_core::id::BootId::new("b"));
    let total = |worker: &drowse_core::worker::Worker| {
        let counters = worker.counters;
        [counters.manual_pause, counters.manual_resume, counters.auto_pause, counters.auto_resume]
    };
    let mut seen = total(&worker);
    let mut now: Timestamp = at(0);
    for round in 1..=3 {
        let request = Request { by: "ada".into(), message: String::new(), force: false, holds: vec![] };
        for event in [Event::PauseRequested(request), Event::ResumeRequested { by: "ada".into() }] {
            worker = step(&worker, &event, now).expect("lawful").worker;
            let intent = worker.status.intent().expect("on its way");
            let done = if matches!(event, Event::PauseRequested(_)) {
                Event::DriverDone { intent, exit_code: None, asked_at: None }
            } else {
                Event::DriverReady { intent, boot: None, started_at: None }
            };
            now = now + secs(10);
            worker = step(&worker, &done, now).expect("lawful").worker;
            let then = total(&worker);
            assert!(then.iter().zip(seen).all(|(new, old)| *new >= old));
            seen = then;
        }
        assert_eq!(seen, [round, round, 0, 0]);
        assert_eq!(worker.last_pause.as_ref().map(|last| last.reason), Some(PauseReason::Manual));
    }
}
