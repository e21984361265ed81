//! What only an exemption spares a worker: audited once for each occasion.

use drowse_core::Timestamp;
use drowse_core::hold::HoldKind;
use drowse_core::policy::exemption::{Exemption, Expiry, From, Record, Subject};
use drowse_core::verdict::{Spared, Verdict};

use super::world::{World, at, exemption, hold, minute, secs};

fn quiet(world: &mut World, now: Timestamp) {
    world.quiet(now);
}

/// The occasions, in the order in which they were told.
fn told(seen: &[Verdict]) -> Vec<Spared> {
    let mut told = Spared::default();
    let mut all = Vec::new();
    for verdict in seen {
        let news = verdict.spared.news(told);
        told = verdict.spared.told(told);
        if !news.is_nothing() {
            all.push(news);
        }
    }
    all
}

fn exempt(settings: &[(&str, &str)], from: &[From]) -> World {
    let mut world = World::routed(settings);
    world.exemptions.push(exemption(from, Expiry::Never));
    world
}

#[test]
fn each_occasion_is_told_once_when_it_has_come() {
    let mut world = exempt(&[("max_runtime", "100m")], &[From::IdleTimeout, From::MaxRuntime]);
    let seen = world.run(at(0), minute(600), quiet);
    let [idle, runtime] = &told(&seen)[..] else { panic!("{:?}", told(&seen)) };
    assert!(idle.idle_since.is_some() && idle.runtime_over_at.is_none());
    assert_eq!((runtime.idle_since, runtime.runtime_over_at), (None, Some(minute(100))));
    let first = |is_it: fn(&Spared) -> bool| {
        seen.iter().find(|verdict| is_it(&verdict.spared)).expect("it was told").at
    };
    assert_eq!(first(|spared| spared.runtime_over_at.is_some()), minute(100));
    assert!(first(|spared| spared.idle_since.is_some()) >= minute(60));
    // Used again, and idle again: another occasion.
    world.active(drowse_core::signal::Signal::Cpu, minute(601), minute(601));
    world.check(minute(601));
    let again = world.run(minute(602), minute(800), quiet);
    assert_ne!(told(&again)[0].idle_since, idle.idle_since);
}

#[test]
fn who_would_not_have_been_touched_is_spared_nothing() {
    let both = [From::IdleTimeout, From::MaxRuntime];
    let mut held = exempt(&[], &both);
    held.holds.push(hold(HoldKind::Lease, at(0), None));
    let observed = exempt(&[("max_runtime", "100m"), ("auto_pause", "false")], &both);
    let protected = exempt(&[("max_runtime", "100m"), ("protected", "true")], &both);
    let mut braked = exempt(&[("max_runtime", "100m")], &both);
    braked.is_braked = true;
    for mut world in [held, observed, protected, braked] {
        assert_eq!(told(&world.run(at(0), minute(300), quiet)), []);
    }
}

#[test]
fn a_record_that_is_wrong_spares_whom_it_names_from_what_it_says_or_from_everything() {
    let record = |from: &[&str], expires_on: Option<&str>| Record {
        owner: Some("bob".into()),
        from: from.iter().map(|from| (*from).to_owned()).collect(),
        expires_on: expires_on.map(Into::into),
        ..Record::default()
    };
    let end = "2026-12-01T00:00:00Z";
    for (record, from, expires_on) in [
        (record(&["idle_timeout"], Some(end)), 1, Expiry::At(end.parse().expect("an instant"))),
        (record(&["idle"], Some("soon")), 2, Expiry::Never),
        (record(&[], None), 2, Expiry::Never),
    ] {
        let [spared] = &record.salvage()[..] else { panic!("{record:?}") };
        assert_eq!(spared.subject, Subject::Owner("bob".into()));
        assert_eq!((spared.from.len(), spared.expires_on), (from, expires_on));
    }
    assert_eq!(Record::default().salvage(), []);
    assert_eq!(Record { group: Some(" ".into()), ..Record::default() }.salvage(), []);
}

#[test]
fn an_exemption_is_expiring_in_its_last_week_and_not_when_it_is_over() {
    let week = secs(7 * 86_400);
    let end = at(100 * 86_400);
    let ends: Exemption = exemption(&[From::IdleTimeout], Expiry::At(end));
    let tick = secs(1);
    for (now, is_expiring) in
        [(end - week - tick, false), (end - week, true), (end - tick, true), (end, false)]
    {
        assert_eq!(ends.is_expiring(now), is_expiring, "{now}");
    }
    assert!(!exemption(&[From::IdleTimeout], Expiry::Never).is_expiring(end));
}
