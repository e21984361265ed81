//! Policy at run time.

use std::time::Duration;

use drowse_core::policy::exemption::{Exemption, Expiry, From, Subject};
use drowse_core::policy::{Key, Level, PolicyLayer, Source, Value};
use drowse_core::status::StatusKind;
use drowse_server::ControlError;
use drowse_server::fleet::PolicyChange;

use super::bench::{Bench, global};

fn change(level: Level, name: Option<&str>, key: Key, value: Option<Value>) -> PolicyChange {
    PolicyChange { level, name: name.map(str::to_owned), key, value, by: "alice".to_owned() }
}

fn secs(secs: u64) -> Value {
    Value::Duration(Duration::from_secs(secs))
}

#[test]
fn a_change_applies_at_once_to_running_workers_and_survives_a_restart() {
    let mut bench = Bench::new(1, vec![global(3_600)]);
    let web = bench.add("web", true);
    bench.pass_secs(600);
    assert!(bench.is(&web, StatusKind::Running));
    let it = change(Level::Global, None, Key::IdleTimeout, Some(secs(30)));
    bench.ask(|fleet| async move { fleet.set_policy(it).await }).unwrap();
    let changed = bench.now();
    bench.tick();
    bench.pass_until("it sleeps", |bench| bench.is(&web, StatusKind::Paused));
    assert!(bench.now() < changed + Duration::from_secs(10), "it has been idle for long enough already");

    bench.restart(false);
    let id = web.clone();
    let card = bench.ask(|fleet| async move { fleet.get(&id).await }).unwrap();
    assert_eq!(card.policy.policy.idle_timeout, Some(Duration::from_secs(30)));
    assert_eq!(card.policy.provenance[&Key::IdleTimeout].author.as_deref(), Some("alice"));

    let it = change(Level::Global, None, Key::IdleTimeout, None);
    bench.ask(|fleet| async move { fleet.set_policy(it).await }).unwrap();
    let id = web.clone();
    let card = bench.ask(|fleet| async move { fleet.get(&id).await }).unwrap();
    assert_eq!(card.policy.policy.idle_timeout, Some(Duration::from_hours(1)));
}

#[test]
fn what_is_pinned_or_does_not_go_together_is_refused_and_changes_nothing() {
    let mut pin = PolicyLayer::new(Level::Global, None, Source::Environment)
        .with(Key::Snooze, Value::Duration(Duration::from_mins(5)));
    pin.author = Some("WORKER_AUTO_PAUSE_SNOOZE_MINUTES".to_owned());
    let mut bench = Bench::new(2, vec![global(60), pin]);
    bench.add("web", true);
    let before = bench.ask(|fleet| async move { fleet.policies().await }).unwrap().epoch;
    for (it, expected) in [
        (change(Level::Global, None, Key::Snooze, Some(secs(1))), "pinned"),
        (change(Level::Worker, Some("web"), Key::CheckInterval, Some(secs(61))), "conflicting"),
        (change(Level::Worker, Some("nobody"), Key::Window, Some(Value::Count(2))), "none"),
        (change(Level::Global, Some("web"), Key::Window, Some(Value::Count(2))), "invalid"),
        (change(Level::Global, None, Key::Window, Some(secs(1))), "invalid"),
        (change(Level::BuiltIn, None, Key::Window, None), "invalid"),
        (change(Level::Global, None, Key::Window, None), "none"),
    ] {
        let shown = format!("{it:?}");
        let refused = bench.ask(|fleet| async move { fleet.set_policy(it).await }).unwrap_err();
        let found = match refused {
            ControlError::Pinned { .. } => "pinned",
            ControlError::Conflicting { .. } => "conflicting",
            ControlError::NoSuch { .. } => "none",
            ControlError::Invalid { .. } => "invalid",
            ControlError::NotFound(_)
            | ControlError::Refused(_)
            | ControlError::LeaseRefused(_)
            | ControlError::Conflict { .. }
            | ControlError::Driver(_)
            | ControlError::Unavailable(_) => "something else",
        };
        assert_eq!(found, expected, "{shown}");
    }
    assert_eq!(bench.ask(|fleet| async move { fleet.policies().await }).unwrap().epoch, before);
}

#[test]
fn enabling_and_disabling_is_the_worker_layer_of_auto_pause() {
    let mut bench = Bench::new(3, vec![global(10)]);
    let (web, api) = (bench.add("web", true), bench.add("api", true));
    let id = web.clone();
    let resolved =
        bench.ask(|fleet| async move { fleet.set_idle_detection(&id, false, "alice").await }).unwrap();
    assert!(!resolved.policy.auto_pause);
    bench.pass_until("the other sleeps", |bench| bench.is(&api, StatusKind::Paused));
    bench.pass_secs(30);
    assert!(bench.is(&web, StatusKind::Running));
    let id = web.clone();
    bench.ask(|fleet| async move { fleet.set_idle_detection(&id, true, "alice").await }).unwrap();
    bench.pass_until("it sleeps too", |bench| bench.is(&web, StatusKind::Paused));
}

#[test]
fn an_exemption_spares_and_its_end_restarts_the_clock() {
    let mut bench = Bench::new(4, vec![global(10)]);
    let web = bench.add("web", true);
    let end = bench.now() + Duration::from_mins(1);
    let exemption = Exemption {
        subject: Subject::Worker("web".to_owned()),
        from: vec![From::IdleTimeout],
        reason: "demo".to_owned(),
        approved_by: "carol".to_owned(),
        expires_on: Expiry::At(end),
    };
    bench.ask(|fleet| async move { fleet.add_exemption(exemption, "alice").await }).unwrap();
    bench.pass_until("it sleeps", |bench| bench.is(&web, StatusKind::Pausing));
    assert!(bench.now() >= end + Duration::from_secs(10));
    let listed = bench.ask(|fleet| async move { fleet.exemptions().await }).unwrap();
    let granted = listed[0].id.unwrap();
    bench.ask(|fleet| async move { fleet.remove_exemption(granted, "alice").await }).unwrap();
    let again = bench.ask(|fleet| async move { fleet.remove_exemption(granted, "alice").await });
    assert!(matches!(again, Err(ControlError::NoSuch { .. })));
}
