//! One worker with a history, made by the core: the golden files about workers are what becomes of it.
//!
//! `DROWSE_GOLDEN=write` writes them anew.

use std::collections::BTreeSet;
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::evidence::{Evidence, Read};
use drowse_core::hold::{Hold, HoldKind};
use drowse_core::id::{BootId, WorkerId};
use drowse_core::lease::LeaseSummary;
use drowse_core::policy::exemption::Exempt;
use drowse_core::policy::{Key, Level, Policy, PolicyBook, PolicyLayer, Source, Value};
use drowse_core::reason::{PauseReason, ResumeReason};
use drowse_core::signal::{DriverKind, Measured, Signal, UnknownCause};
use drowse_core::status::Status;
use drowse_core::telemetry::Activity;
use drowse_core::verdict::{Snapshot, explain, judge};
use drowse_core::worker::{Counters, Last, Worker};
use drowse_wire::v1;
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::golden::{file_of, read};

fn at(text: &str) -> Timestamp {
    text.parse().expect("an instant")
}

fn check(name: &str, message: &impl Serialize) {
    let mut found = serde_json::to_value(message).expect("messages are JSON");
    if std::env::var_os("DROWSE_GOLDEN").is_some_and(|value| value == "write") {
        std::fs::write(file_of(name), format!("{found:#}\n")).expect("the golden files can be written");
    }
    let mut golden = read(name);
    hide_words(&mut found);
    hide_words(&mut golden);
    let mut differences = Vec::new();
    compare("", &found, &golden, &mut differences);
    assert!(
        differences.is_empty(),
        "{name}; if this is meant, DROWSE_GOLDEN=write:\n{}",
        differences.join("\n")
    );
}

/// Sentences for people may change their words; fields and codes may not.
fn hide_words(value: &mut Json) {
    if let Json::Object(fields) = value {
        for (name, field) in fields {
            if matches!(name.as_str(), "summary" | "sentence" | "because" | "would_have_to_change" | "from") {
                *field = Json::Null;
            }
            hide_words(field);
        }
    } else if let Json::Array(items) = value {
        items.iter_mut().for_each(hide_words);
    }
}

fn compare(path: &str, found: &Json, golden: &Json, differences: &mut Vec<String>) {
    match (found, golden) {
        (Json::Object(a), Json::Object(b)) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                compare(&format!("{path}.{name}"), &found[name], &golden[name], differences);
            }
        }
        (Json::Array(a), Json::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{index}]"), a, b, differences);
            }
        }
        _ if found != golden => differences.push(format!("{path}: {found} is not {golden}")),
        _ => {}
    }
}

fn book() -> PolicyBook {
    let minutes = |minutes| Value::Duration(Duration::from_mins(minutes));
    let mut change = PolicyLayer::new(Level::Owner, Some("alice"), Source::RunTime)
        .with(Key::IdleTimeout, minutes(30))
        .with(Key::MaxRuntime, Value::Never);
    change.author = Some("bob".to_owned());
    PolicyBook::new(vec![
        PolicyLayer::new(Level::Global, None, Source::File).with(Key::Window, Value::Count(2)),
        change,
    ])
}

fn worker(book: &PolicyBook) -> Worker {
    let id: WorkerId = "web".parse().expect("an id");
    let mut worker =
        Worker::registered(id, DriverKind::Process, &Policy::default(), at("2026-03-01T08:00:00Z"));
    worker.selectors.owner = Some("alice".to_owned());
    worker.selectors.group = Some("student".to_owned());
    let (policy, _) = book.resolve_for(&worker.selectors);
    worker.terms = drowse_core::worker::Terms::of(&policy, worker.can);
    worker.is_routed = true;
    worker.status = Status::Running { since: at("2026-03-01T09:00:00Z") };
    worker.boot = Some(BootId::new("b-1"));
    worker.boot_started_at = Some(at("2026-03-01T08:00:05Z"));
    worker.last_pause =
        Some(Last { at: at("2026-03-01T08:50:00Z"), by: "drowse".into(), reason: PauseReason::IdleTimeout });
    worker.last_resume =
        Some(Last { at: at("2026-03-01T09:00:00Z"), by: "connection".into(), reason: ResumeReason::Wake });
    worker.counters = Counters { auto_pause: 3, auto_resume: 2, manual_resume: 1, ..Counters::default() };
    worker
}

fn evidence(now: Timestamp) -> Evidence {
    let minute = Duration::from_mins(1);
    let mut evidence = Evidence::default();
    let read_at = at("2026-03-01T09:29:50Z");
    let measured = |value, active_above| Some(Measured { value, active_above });
    let cpu = Read { measured: measured(0.4, 2.0), ..Read::quiet(read_at) };
    let tcp = Read { measured: measured(0.0, 0.0), ..Read::quiet(read_at) };
    evidence.record(Signal::Cpu, cpu, true, minute, now);
    evidence.record(Signal::Tcp, tcp, true, minute, now);
    evidence.record(
        Signal::Connections,
        Read::active(at("2026-03-01T09:20:00Z"), read_at),
        true,
        minute,
        now,
    );
    evidence.record(Signal::Network, Read::unknown(UnknownCause::FirstSample, read_at), true, minute, now);
    evidence.last_check_at = Some(read_at);
    evidence
}

#[test]
fn what_the_core_says_becomes_the_golden_messages() {
    let now = at("2026-03-01T09:30:00Z");
    let book = book();
    let worker = worker(&book);
    let evidence = evidence(now);
    let hold = |kind, owner: &str, until: Option<&str>| Hold {
        kind,
        owner: owner.into(),
        reason: "nightly build".into(),
        since: at("2026-03-01T09:10:00Z"),
        until: until.map(at),
    };
    let holds = [
        hold(HoldKind::Lease, "build", Some("2026-03-01T09:40:00Z")),
        hold(HoldKind::KeepAwake, "alice", Some("2026-03-01T09:15:00Z")),
    ];
    let stack = book.stack_for(&worker.selectors);
    let (policy, provenance) = stack.finish();
    let snapshot = Snapshot {
        worker: &worker,
        evidence: &evidence,
        holds: &holds,
        hold_ended_at: None,
        exempt: Exempt::default(),
        is_braked: false,
        check_began_at: None,
        is_seen: true,
        idle_warned: None,
        runtime_warned: None,
        schedule_warned: None,
        stop_warned: None,
        deletion_warned: None,
        can_scale_down: false,
    };
    let verdict = judge(&snapshot, &policy, now);
    let explained = explain(&snapshot, &policy, &stack.set_values(), &provenance, &verdict);
    let settings = v1::settings(&policy, &stack.set_values(), &provenance);
    let view = v1::WorkerView {
        worker: &worker,
        evidence: &evidence,
        verdict: &verdict,
        holds: &holds,
        leases: &LeaseSummary {
            lease_held: true,
            lease_reason: Some("nightly build".into()),
            lease_expires_at: holds[0].until,
        },
        liveness: None,
        listen: Some("127.0.0.1:8001"),
        target: Some("127.0.0.1:9001"),
        is_idle_detection_enabled: true,
    };
    let message = v1::Worker::of(&view);
    assert_eq!(message.holds.len(), 1, "the hold that is over is left out");
    check("Worker", &message);
    check("WorkerPage", &v1::WorkerPage { at: now, workers: vec![message], next: Some("web".into()) });
    check("WorkerIdleStatus", &v1::WorkerIdleStatus::of(&worker.id, &evidence, &verdict));
    check("IdleDetectionResult", &v1::IdleDetectionResult::of(&worker.id, &verdict, false));
    check("Explanation", &v1::Explanation::of(&worker.id, &explained, settings));
    let readings = explained.signals.iter().map(Into::into).collect();
    let memory_bytes = Some(700 << 20);
    check("Readings", &v1::Readings { worker_id: "web".into(), at: now, readings, memory_bytes });
    let recent: Activity = serde_json::from_value(json!({
        "timestamp": "2026-03-01T09:20:00Z", "category": "start_lab", "data": { "lab_id": "l-7" },
    }))
    .unwrap();
    check("WorkerActivity", &v1::WorkerActivity::of(&worker, &evidence, &verdict, &[recent], true));
    check("ActionAnswer", &v1::ActionAnswer::of(&worker, v1::Answer::AlreadyTrue));
    check(
        "PolicyList",
        &v1::PolicyList {
            layers: book.layers().iter().map(|layer| v1::PolicyLayer::of(layer, None)).collect(),
        },
    );
}

#[test]
fn the_seeds_find_every_field_under_its_name() {
    let fields = |name: &str| read(name).as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let activity = fields("WorkerActivity");
    for field in [
        "last_activity_at",
        "last_activity_check_at",
        "recent_activity_events",
        "auto_pause_count",
        "manual_pause_count",
        "auto_resume_count",
        "manual_resume_count",
        "last_paused_at",
        "last_resumed_at",
        "paused_by",
        "last_paused_by",
        "pause_reason",
        "resumed_by",
        "resume_reason",
        "next_idle_check_at",
        "target_pause_at",
        "is_idle_detection_enabled",
    ] {
        assert!(activity.iter().any(|known| known == field), "{field}");
    }
    let mut expected = vec![
        "worker_id",
        "checked_at",
        "telemetry_fetched",
        "activity_updated",
        "idle_check_performed",
        "auto_pause_triggered",
        "is_idle",
        "idle_minutes",
        "eligible_for_pause",
        "in_snooze_period",
        "error",
    ];
    expected.sort_unstable();
    let mut found = fields("IdleDetectionResult");
    found.sort_unstable();
    assert_eq!(found, expected);
    let idle = fields("WorkerIdleStatus");
    for field in [
        "worker_id",
        "is_idle",
        "idle_minutes",
        "idle_threshold_minutes",
        "last_activity_at",
        "in_snooze_period",
        "snooze_until",
        "auto_pause_enabled",
        "eligible_for_pause",
        "next_idle_check_at",
        "target_pause_at",
        "checked_at",
    ] {
        assert!(idle.iter().any(|known| known == field), "{field}");
    }
}
