use super::*;

const GRACE: Duration = Duration::from_mins(1);
const TICK: Duration = Duration::from_micros(1);

fn at(secs: i64) -> Timestamp {
    Timestamp::from_secs(secs)
}

#[test]
fn a_running_worker_is_asked_and_then_killed() {
    let (mut plan, first) = StopPlan::begin(false, GRACE, at(100));
    assert_eq!(first, Action::Term);
    assert_eq!(plan.deadline(), Some(at(160)));
    assert_eq!(plan.tick(at(160) - TICK), None);
    assert_eq!(plan.tick(at(160)), Some(Action::Kill));
    assert_eq!(plan.tick(at(161)), None, "nobody is killed twice");
    assert_eq!(plan.deadline(), None);
}

#[test]
fn a_frozen_worker_is_thawed_first_and_has_its_whole_grace_afterwards() {
    let (mut plan, first) = StopPlan::begin(true, GRACE, at(100));
    assert_eq!(first, Action::Thaw);
    assert_eq!(
        (plan.tick(at(1_000)), plan.deadline()),
        (None, None),
        "grace does not run while it cannot hear"
    );
    assert_eq!(plan.thawed(at(105)), Some(Action::Term));
    assert_eq!(plan.thawed(at(106)), None, "asked once");
    assert_eq!(plan.deadline(), Some(at(165)));
    assert_eq!(plan.tick(at(165)), Some(Action::Kill));
    assert_eq!(plan.thawed(at(166)), None);
}

#[test]
fn a_plan_survives_a_restart_of_ours() {
    let (plan, _) = StopPlan::begin(false, GRACE, at(100));
    let text = serde_json::to_string(&plan).unwrap();
    let mut again: StopPlan = serde_json::from_str(&text).unwrap();
    assert_eq!(again, plan);
    assert_eq!(again.tick(at(500)), Some(Action::Kill), "what fell due meanwhile is done at once");
}

#[test]
fn no_grace_kills_at_once() {
    let (mut plan, first) = StopPlan::begin(false, Duration::ZERO, at(100));
    assert_eq!((first, plan.tick(at(100))), (Action::Term, Some(Action::Kill)));
}

#[test]
fn code_137_is_grace_exceeded_only_when_the_grace_was_over() {
    let (mut plan, _) = StopPlan::begin(false, GRACE, at(100));
    assert_eq!(plan.exited(137, at(160) - TICK), ExitNote::Killed);
    assert_eq!(plan.exited(137, at(160)), ExitNote::GraceExceeded, "the driver may have counted by itself");
    plan.tick(at(160));
    assert_eq!(plan.exited(137, at(161)), ExitNote::GraceExceeded);
    assert_eq!(plan.exited(137, at(161)).to_string(), "grace exceeded");
    assert_eq!(plan.exited(0, at(161)), ExitNote::Clean, "it made it at the last moment");
    assert_eq!(plan.exited(143, at(130)), ExitNote::Terminated);
    assert_eq!(plan.exited(3, at(130)), ExitNote::Failed { code: 3 });
    assert_eq!(ExitNote::of(137), ExitNote::Killed);
    let (thawing, _) = StopPlan::begin(true, GRACE, at(100));
    assert_eq!(thawing.exited(137, at(500)), ExitNote::Killed);
}

/// A process that runs for `lived` and is started again as soon as its backoff is over.
fn run(lived: Duration, exits: usize) -> Vec<Restart> {
    let mut crashes = CrashLoop::default();
    let mut started_at = at(1_000);
    let mut seen = Vec::new();
    for _ in 0..exits {
        let now = started_at + lived;
        let restart = crashes.exited(started_at, now);
        seen.push(restart);
        match restart {
            Restart::After(wait) => started_at = now + wait,
            Restart::GiveUp => break,
        }
        assert!(crashes.quick_exits.len() <= 5);
    }
    seen
}

fn after(secs: u64) -> Restart {
    Restart::After(Duration::from_secs(secs))
}

#[test]
fn five_exits_right_after_the_start_are_a_crash_loop() {
    let expected = [after(1), after(2), after(4), after(8), Restart::GiveUp];
    assert_eq!(run(Duration::ZERO, 9), expected);
    // Exactly ten seconds are still right after the start: 5 × 10 s and 15 s of waiting.
    assert_eq!(run(QUICK, 9), expected);
}

#[test]
fn one_microsecond_more_than_ten_seconds_is_a_run() {
    let seen = run(QUICK + TICK, 9);
    assert_eq!(
        seen,
        [after(1), after(2), after(4), after(8), after(16), after(32), after(60), after(60), after(60)]
    );
}

#[test]
fn the_fifth_quick_exit_counts_up_to_two_minutes_after_the_first() {
    for (last, expected) in [(at(120), Restart::GiveUp), (at(120) + TICK, after(16))] {
        let mut crashes = CrashLoop::default();
        for exit in [0, 30, 60, 90] {
            crashes.exited(at(exit), at(exit));
        }
        assert_eq!(crashes.exited(last, last), expected, "{last}");
    }
}

#[test]
fn a_run_of_more_than_two_minutes_starts_the_backoff_anew() {
    let mut crashes = CrashLoop::default();
    assert_eq!(crashes.exited(at(0), at(20)), after(1));
    assert_eq!(crashes.exited(at(21), at(141)), after(2), "exactly two minutes do not");
    assert_eq!(crashes.exited(at(143), at(264)), after(1));
}

#[test]
fn slow_failures_between_quick_ones_do_not_hide_a_loop() {
    let mut crashes = CrashLoop::default();
    for (started, ended) in [(0, 1), (2, 3), (5, 20), (24, 25), (33, 34)] {
        assert_ne!(crashes.exited(at(started), at(ended)), Restart::GiveUp);
    }
    assert_eq!(crashes.exited(at(50), at(51)), Restart::GiveUp);
}
