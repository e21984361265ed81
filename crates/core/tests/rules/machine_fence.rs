//! The commit checklist: each thing that changed, alone.

use drowse_core::Timestamp;
use drowse_core::event::Event;
use drowse_core::id::{BootId, Generation};
use drowse_core::machine::Fence;
use drowse_core::refusal::{Overtaken, Refusal};
use drowse_core::signal::DriverKind;
use drowse_core::status::StatusKind;

use super::machine_bench::Bench;

type Change = fn(&mut Fence);

/// What may change, what it is called, and whether it stops idleness and limits.
const CHANGES: &[(Overtaken, Change, bool, bool)] = &[
    (Overtaken::Generation, |fence| fence.judged.generation = Generation(99), true, true),
    (Overtaken::Boot, |fence| fence.judged.boot = Some(BootId::new("older")), true, true),
    (Overtaken::Boot, |fence| fence.judged.boot = None, true, true),
    (Overtaken::Policy, |fence| fence.found.policy_epoch += 1, true, true),
    (Overtaken::Claim, |fence| fence.found.claim += 1, true, true),
    (Overtaken::Brake, |fence| fence.found.is_braked = true, true, true),
    (Overtaken::Hold, |fence| fence.found.is_held = true, true, false),
    (Overtaken::Activity, |fence| fence.found.activity_at = Some(Timestamp::EPOCH), true, false),
    (Overtaken::Flush, |fence| fence.found.is_flushed = false, true, false),
    (Overtaken::Spared, |fence| fence.found.is_spared = true, false, true),
];

fn expect(mut bench: Bench, event: Event, overtaken: Option<Overtaken>) {
    if let Some(by) = overtaken {
        assert_eq!(bench.refused(event), Refusal::Overtaken(by));
    } else {
        bench.ok(event);
        assert_ne!(bench.kind(), StatusKind::Running);
    }
}

#[test]
fn each_thing_that_changed_since_the_verdict_stops_it_by_name() {
    let bench = Bench::running(DriverKind::Docker);
    for (by, change, stops_idleness, stops_limits) in CHANGES {
        let mut fence = Fence::alone(&bench.worker);
        change(&mut fence);
        let for_idleness = stops_idleness.then_some(*by);
        let for_limits = stops_limits.then_some(*by);
        expect(bench.clone(), Event::IdleConfirmed { fence: fence.clone() }, for_idleness);
        expect(bench.clone(), Event::ScaleDownConfirmed { fence: fence.clone() }, for_idleness);
        let asked = |force| Event::ScheduleSaidSleep { force, fence: fence.clone() };
        expect(bench.clone(), asked(false), for_idleness);
        expect(bench.clone(), asked(true), for_limits);
        expect(bench.clone(), Event::MaxRuntimeReached { fence: fence.clone() }, for_limits);
    }
}

#[test]
fn activity_that_was_judged_is_not_news() {
    let at = |secs| Some(Timestamp::from_secs(secs));
    for (judged, found, is_news) in [
        (None, None, false),
        (at(5), at(5), false),
        (at(5), at(4), false),
        (at(5), at(6), true),
        (None, at(1), true),
        (at(5), None, false),
    ] {
        let bench = Bench::running(DriverKind::Docker);
        let mut fence = Fence::alone(&bench.worker);
        fence.judged.activity_at = judged;
        fence.found.activity_at = found;
        expect(bench, Event::IdleConfirmed { fence }, is_news.then_some(Overtaken::Activity));
    }
}

#[test]
fn a_frozen_worker_is_fenced_against_its_limit_too() {
    let mut bench = Bench::running(DriverKind::Docker);
    let judged = Fence::alone(&bench.worker);
    bench.idles();
    let refusal = bench.refused(Event::MaxRuntimeReached { fence: judged });
    assert_eq!(refusal, Refusal::Overtaken(Overtaken::Generation));
}
