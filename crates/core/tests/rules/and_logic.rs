//! Seed 004: idle only when GPU, CPU and network are ALL quiet, in N consecutive checks.

use core::time::Duration;

use drowse_core::Timestamp;
use drowse_core::counter::{Meter, Total};
use drowse_core::evidence::{Read, Streak};
use drowse_core::policy::Policy;
use drowse_core::signal::{DriverKind, Measured, Reading, Signal, UnknownCause};
use drowse_core::verdict::{Action, Reason, Use, Verdict};

use super::world::{IDLE, TICK, World, at, minute, policy, secs};

/// A container of a student: 30 min, CPU 2 %, three checks in a row.
const STUDENT: [(&str, &str); 4] =
    [("idle_timeout", "30m"), ("window", "3"), ("signals.cpu.active_above", "2%"), ("sleep", "stop")];

fn container(values: &[(&str, &str)]) -> World {
    World::new(DriverKind::Docker, policy(values))
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Says {
    Active,
    Quiet,
    Unknown,
}

fn say(world: &mut World, signal: Signal, says: Says, now: Timestamp) {
    let read = match says {
        Says::Active => Read::active(now, now),
        Says::Quiet => Read::quiet(now),
        Says::Unknown => Read::unknown(UnknownCause::ProbeFailed, now),
    };
    world.record(signal, read, now);
}

#[test]
fn all_combinations_of_gpu_cpu_and_network() {
    use Says::{Active, Quiet, Unknown};
    for gpu_was_read in [false, true] {
        for gpu in [Active, Quiet, Unknown] {
            for cpu in [Active, Quiet, Unknown] {
                for network in [Active, Quiet, Unknown] {
                    let mut world = container(&STUDENT);
                    world.worker.gpu_was_read = gpu_was_read;
                    say(&mut world, Signal::Gpu, gpu, at(0));
                    say(&mut world, Signal::Cpu, cpu, at(0));
                    say(&mut world, Signal::Network, network, at(0));
                    let verdict = world.check(at(0));
                    let all = [gpu, cpu, network];
                    // A GPU that could never be read is judged by the others; one that vanished is not.
                    let required = if gpu_was_read { &all[..] } else { &all[1..] };
                    let expected = if all.contains(&Active) {
                        Use::Active
                    } else if required.contains(&Unknown) {
                        Use::Unknown
                    } else {
                        Use::Quiet
                    };
                    assert_eq!(verdict.used, expected, "gpu was read: {gpu_was_read}, {all:?}");
                }
            }
        }
    }
}

#[test]
fn data_loading_keeps_a_container_with_a_quiet_gpu_awake() {
    let mut world = container(&STUDENT);
    world.worker.gpu_was_read = true;
    let seen = world.run(at(0), minute(300), |world, now| {
        world.quiet(now);
        world.active(Signal::Network, now, now);
    });
    assert!(seen.iter().all(|verdict| verdict.action == Action::None && verdict.used == Use::Active));
}

#[test]
fn a_gpu_that_could_never_be_read_does_not_keep_a_container_awake() {
    let mut world = container(&STUDENT);
    let seen = world.run(at(0), minute(60), |world, now| {
        world.quiet(now);
        world.unknown(Signal::Gpu, UnknownCause::ProbeFailed, now);
    });
    let last = seen.last().expect("at least one check");
    assert_eq!((last.at, last.action), (minute(30), IDLE));
    assert!(last.signals.unread.contains(Signal::Gpu));
}

#[test]
fn a_gpu_that_vanished_keeps_a_container_awake_for_ever() {
    let mut world = container(&STUDENT);
    world.worker.gpu_was_read = true;
    let seen = world.run(at(0), minute(3_000), |world, now| {
        world.quiet(now);
        world.unknown(Signal::Gpu, UnknownCause::Vanished, now);
    });
    assert!(seen.iter().all(|verdict| verdict.action == Action::None && verdict.streak.count == 0));
    let last = seen.last().expect("at least one check");
    assert!(last.reasons().any(|reason| reason == Reason::UnknownSignal { signal: Signal::Gpu }));
}

fn measured(signal: Signal, value: f64, policy: &Policy, now: Timestamp) -> Read {
    let measured = Measured { value, active_above: policy.threshold(signal, policy.check_interval) };
    Read { reading: measured.reading(now), read_at: now, measured: Some(measured), tells_gap: false }
}

#[test]
fn equal_to_a_threshold_is_quiet_and_above_it_is_active() {
    let mut world = container(&STUDENT);
    let quiet_network = world.policy.threshold(Signal::Network, world.policy.check_interval);
    for (signal, threshold) in [(Signal::Cpu, 2.0), (Signal::Gpu, 5.0), (Signal::Network, quiet_network)] {
        for (value, expected) in
            [(threshold.next_down(), Use::Quiet), (threshold, Use::Quiet), (threshold.next_up(), Use::Active)]
        {
            world.quiet(at(0));
            let read = measured(signal, value, &world.policy, at(0));
            world.record(signal, read, at(0));
            assert_eq!(world.check(at(0)).used, expected, "{signal} at {value}");
        }
    }
}

#[test]
fn a_megabyte_in_five_minutes_is_scaled_to_the_interval() {
    let policy = policy(&STUDENT);
    let scaled = |interval| policy.threshold(Signal::Network, interval);
    assert!((scaled(secs(300)) - 1_048_576.0).abs() < f64::EPSILON);
    assert!((scaled(secs(150)) - 524_288.0).abs() < f64::EPSILON);
    assert!((scaled(Duration::from_millis(1)) - 512.0).abs() < f64::EPSILON, "the floor");
}

/// Three checks, one interval apart, and what the streak says after each.
fn streaks(world: &mut World, times: &[Timestamp]) -> Vec<u32> {
    times.iter().map(|now| world.quiet_check(*now).streak.count).collect()
}

#[test]
fn the_window_opens_with_the_nth_quiet_check_and_not_before() {
    // The timeout is over after the first check, so that only the window keeps the worker awake.
    let values = [("idle_timeout", "30m"), ("window", "3"), ("check_interval", "10m")];
    let mut world = World::routed(&values);
    world.quiet(at(0));
    let verdict: Vec<Verdict> = [30, 40, 50]
        .map(|now| {
            world.record(Signal::Cpu, Read::quiet(minute(now)).telling_gap(), minute(now));
            world.record(Signal::Connections, Read::quiet(minute(now)).telling_gap(), minute(now));
            world.check(minute(now))
        })
        .into();
    let seen: Vec<(u32, Action)> =
        verdict.iter().map(|verdict| (verdict.streak.count, verdict.action)).collect();
    assert_eq!(seen, [(1, Action::None), (2, Action::None), (3, IDLE)]);
    assert!(verdict.iter().all(|verdict| verdict.target_pause_at == Some(minute(50))));
    assert!(verdict[1].reasons().any(|reason| reason == Reason::WindowNotFull));
}

#[test]
fn a_check_too_soon_does_not_raise_the_streak() {
    let mut world = container(&STUDENT);
    let interval = world.policy.check_interval;
    assert_eq!(interval, secs(300), "30 min / 4, at most 5 min");
    let soon = at(0) + interval - TICK;
    assert_eq!(streaks(&mut world, &[at(0), at(1), soon, at(300), at(301), at(600)]), [1, 1, 1, 2, 2, 3]);
}

#[test]
fn activity_resets_the_streak_at_once_however_soon_it_is_found() {
    let mut world = container(&STUDENT);
    assert_eq!(streaks(&mut world, &[at(0), at(300)]), [1, 2]);
    world.quiet(at(301));
    world.active(Signal::Cpu, at(301), at(301));
    assert_eq!(world.check(at(301)).streak, Streak::reset(at(301)));
    assert_eq!(streaks(&mut world, &[at(302), at(600), at(601), at(901)]), [0, 0, 1, 2]);
}

#[test]
fn activity_that_is_told_between_two_checks_resets_it_too() {
    let mut world = container(&STUDENT);
    assert_eq!(streaks(&mut world, &[at(0), at(300)]), [1, 2]);
    world.active(Signal::Activity, at(310), at(310));
    world.record(Signal::Activity, Read::quiet(at(320)), at(320));
    assert_eq!(world.look(at(330)).streak.count, 0);
    assert_eq!(streaks(&mut world, &[at(600), at(610), at(910)]), [0, 1, 2]);
}

#[test]
fn unknown_resets_the_streak() {
    let mut world = container(&STUDENT);
    assert_eq!(streaks(&mut world, &[at(0), at(300)]), [1, 2]);
    world.quiet(at(400));
    world.unknown(Signal::Cpu, UnknownCause::ProbeFailed, at(400));
    assert_eq!(world.check(at(400)).streak, Streak::reset(at(400)));
    assert_eq!(streaks(&mut world, &[at(600), at(700)]), [0, 1]);
}

#[test]
fn regular_checks_come_together_but_neither_the_window_nor_the_deadline_waits_for_that() {
    let mut world = container(&[("idle_timeout", "30m"), ("window", "2"), ("check_interval", "30s")]);
    let odd = |secs| at(secs) + TICK;
    assert_eq!(world.quiet_check(odd(0)).next_check_at, odd(30), "it counts, and no later than it may");
    let full = world.quiet_check(odd(30));
    assert_eq!((full.streak.count, full.next_check_at), (2, at(61)));
    let deadline = full.target_pause_at.expect("it is quiet");
    assert_ne!(deadline, deadline.to_the_second());
    let (mut verdict, mut together) = (full, 0);
    while verdict.action == Action::None {
        let next = verdict.next_check_at;
        together += u32::from(next == next.to_the_second());
        verdict = world.quiet_check(next);
    }
    assert_eq!(verdict.at, deadline);
    assert!(together > 50, "{together}");
}

#[test]
fn a_look_between_checks_leaves_the_streak_alone() {
    let mut world = container(&STUDENT);
    world.quiet_check(at(0));
    for now in 1..1_000 {
        assert_eq!(world.look(at(now)).streak.count, 1);
        assert_eq!(world.look(at(now)).used, Use::Quiet, "the last readings stand");
    }
}

#[test]
fn looks_between_the_regular_checks_do_not_put_off_the_end_of_the_window() {
    let mut world = container(&[("idle_timeout", "30m"), ("window", "3"), ("check_interval", "10m")]);
    world.quiet_check(at(0));
    // Somebody asks for a check at every minute: it may not raise the streak, nor delay the next that may.
    for now in 1..10 {
        let verdict = world.quiet_check(minute(now));
        assert_eq!(verdict.streak.count, 1);
        assert_eq!(verdict.next_check_at, minute(10));
    }
    assert_eq!(world.quiet_check(minute(10)).streak.count, 2);
}

#[test]
fn counters_give_differences_never_totals() {
    let policy = policy(&STUDENT);
    let total = |value, minutes| Total { value, at: minute(minutes) };
    let read = |before: Option<Total>, after: Total| {
        Meter::Network.read(before.as_ref(), &after, &policy, secs(300)).reading
    };
    // Ten gigabytes since the start, and not a byte in this interval.
    assert_eq!(read(Some(total(10 << 30, 0)), total(10 << 30, 5)), Reading::Quiet);
    assert_eq!(read(None, total(10 << 30, 0)), Reading::unknown(UnknownCause::FirstSample));
    assert_eq!(read(Some(total(9, 0)), total(8, 5)), Reading::unknown(UnknownCause::WentBackwards));
    let burst = read(Some(total(0, 0)), total((1 << 20) + 1, 5));
    assert_eq!(burst, Reading::Active { at: minute(5) });
}
