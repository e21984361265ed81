use std::time::Duration;

use drowse_core::evidence::{Evidence, Read};
use drowse_core::hold::{Hold, HoldKind};
use drowse_core::policy::exemption::Exempt;
use drowse_core::reason::PauseReason;
use drowse_core::signal::{DriverKind, Signal};
use drowse_core::status::Sleep;
use drowse_core::verdict::{Snapshot, judge};

use super::*;

fn minute(minutes: u64) -> Timestamp {
    Timestamp::EPOCH + Duration::from_mins(minutes)
}

/// An idle container without a door: warned at 48 minutes, frozen after 60.
struct Stage {
    worker: Worker,
    policy: Policy,
    evidence: Evidence,
    holds: Vec<Hold>,
    checked: Checked,
    board: Board,
    is_braked: bool,
}

impl Stage {
    fn new() -> Self {
        let policy = Policy::default();
        let id = WorkerId::new("web").unwrap();
        let mut worker = Worker::registered(id, DriverKind::Docker, &policy, minute(0));
        worker.status = Status::Running { since: minute(0) };
        worker.boot_started_at = Some(minute(0));
        let (evidence, holds, checked) = Default::default();
        Self { worker, policy, evidence, holds, checked, board: Board::default(), is_braked: false }
    }

    fn judge(&self, now: Timestamp) -> Verdict {
        let snapshot = Snapshot {
            worker: &self.worker,
            evidence: &self.evidence,
            holds: &self.holds,
            hold_ended_at: None,
            exempt: Exempt::default(),
            is_braked: self.is_braked,
            check_began_at: Some(now),
            is_seen: true,
            idle_warned: self.checked.idle_warned,
            runtime_warned: None,
            schedule_warned: None,
            stop_warned: self.checked.stop_warned,
            deletion_warned: None,
            can_scale_down: false,
        };
        judge(&snapshot, &self.policy, now)
    }

    /// One quiet check. True if something was said or taken back.
    fn check(&mut self, now: Timestamp) -> bool {
        let interval = self.policy.interval(&self.policy.needs(self.worker.nature()));
        for signal in [Signal::Cpu, Signal::Network] {
            self.evidence.record(signal, Read::quiet(now), true, interval, now);
        }
        let verdict = self.judge(now);
        verdict.note(&mut self.evidence);
        if let Some(warning) = verdict.idle_warning {
            self.checked.idle_warned = Some(warning.sent(self.checked.idle_warned, now));
            let said = Standing::warnings(&self.worker, &self.policy, vec![warning], now);
            self.board.note(&self.worker.id, said);
            return true;
        }
        let scene = Scene {
            worker: &self.worker,
            policy: &self.policy,
            verdict: &verdict,
            checked: &self.checked,
            is_seen: true,
            deletes: false,
        };
        match scene.correct(self.board.standing(&self.worker.id).as_ref(), now) {
            Correction::Keep => false,
            Correction::Note(standing) => {
                self.board.note(&self.worker.id, standing);
                false
            }
            Correction::Say(standing) => {
                self.board.note(&self.worker.id, standing);
                true
            }
        }
    }

    fn text(&self) -> String {
        self.board.standing(&self.worker.id).map(|standing| standing.text).unwrap_or_default()
    }

    /// Up to its first warning, which is said at 48 minutes.
    fn warned() -> Self {
        let mut stage = Self::new();
        for minutes in (0..=48).step_by(3) {
            stage.check(minute(minutes));
        }
        assert!(stage.text().contains("will be paused at 1970-01-01T01:00:00Z"), "{}", stage.text());
        stage
    }

    fn keep_awake(&mut self, until: Timestamp) {
        let (owner, reason) = ("ada".to_owned(), String::new());
        let kind = HoldKind::KeepAwake;
        self.holds.push(Hold { kind, owner, reason, since: minute(49), until: Some(until) });
    }

    fn freeze(&mut self, now: Timestamp) {
        let reason = PauseReason::IdleTimeout;
        let by = reason.code().to_owned();
        let sleep = Sleep { reason, by, message: String::new(), at: now, forced: false };
        let stops_at = Some(now + Duration::from_mins(5));
        self.worker.status = Status::Paused { since: now, sleep };
        self.worker.stop_announced_for = stops_at;
        let said = Standing::asleep(&self.worker, stops_at, now).unwrap();
        self.board.note(&self.worker.id, said);
    }
}

#[test]
fn what_is_off_is_taken_back_once() {
    let mut stage = Stage::warned();
    assert!(!stage.check(minute(49)), "it is true");
    stage.keep_awake(minute(120));
    assert!(stage.check(minute(50)));
    assert_eq!(stage.text(), "");
    assert!(!stage.check(minute(51)) && !stage.check(minute(52)), "once");
}

#[test]
fn what_was_held_back_past_its_time_is_taken_back_once() {
    let mut stage = Stage::warned();
    stage.is_braked = true;
    assert!([51, 54, 57, 59].into_iter().all(|minutes| !stage.check(minute(minutes))), "it may still come");
    assert!(stage.check(minute(60)));
    assert_eq!(stage.text(), "");
    assert!(!stage.check(minute(61)), "once");
}

#[test]
fn what_a_policy_makes_of_a_sleep_is_said_anew() {
    let mut stage = Stage::warned();
    stage.worker.terms.sleep = drowse_core::reason::SleepMode::Stop;
    assert!(stage.check(minute(50)));
    assert!(stage.text().contains("will be stopped at 1970-01-01T01:00:00Z, in 10m"), "{}", stage.text());
    assert!(!stage.check(minute(51)), "once");
}

#[test]
fn what_a_former_life_said_is_kept_if_it_holds_and_else_taken_away() {
    let mut stage = Stage::warned();
    stage.board = Board::default();
    assert!(!stage.check(minute(49)), "it holds");
    stage.keep_awake(minute(120));
    assert!(stage.check(minute(50)), "and now it does not");
    stage.board = Board::default();
    assert!(stage.check(minute(51)), "nobody knows what stands there");
    assert!(!stage.check(minute(52)), "once");
    // Nor what the run before has left.
    stage.worker.boot = Some(BootId::new("another"));
    assert!(stage.check(minute(53)) && !stage.check(minute(54)));
}

#[test]
fn what_was_said_at_a_freeze_follows_the_stop_and_the_thaw() {
    let mut stage = Stage::new();
    stage.freeze(minute(60));
    assert!(!stage.check(minute(61)), "it is true");
    stage.policy.stop_after = Some(Duration::from_hours(1));
    assert!(stage.check(minute(62)));
    assert!(stage.text().contains("stopped at 1970-01-01T02:00:00Z"), "{}", stage.text());
    assert!(!stage.check(minute(63)), "once");
    stage.policy.stop_after = None;
    assert!(stage.check(minute(64)));
    assert!(
        stage.text().contains("is paused since") && !stage.text().contains("stopped"),
        "{}",
        stage.text()
    );
    stage.worker.status = Status::Running { since: minute(65) };
    assert!(stage.check(minute(65)));
    assert!(stage.text().contains("is awake again since"), "{}", stage.text());
    assert!(!stage.check(minute(66)), "once");
}

#[test]
fn nothing_is_said_twice_and_nothing_old_last() {
    let driver = serde_json::json!({ "driver": { "kind": "sim" } });
    let (stage, spec) = (Stage::new(), serde_json::from_value::<WorkerSpec>(driver).unwrap());
    let id = &stage.worker.id;
    assert!(stage.board.post(id, Standing::awake(&stage.worker, minute(1)), spec.clone()));
    assert!(!stage.board.post(id, Standing::awake(&stage.worker, minute(2)), spec.clone()), "said already");
    assert!(
        !stage.board.post(id, Standing::nothing(&stage.worker, minute(3)), spec),
        "somebody is on the way"
    );
    let said: Vec<_> =
        std::iter::from_fn(|| stage.board.next(id)).map(|(standing, _)| standing.about).collect();
    assert_eq!(said, [About::Awake, About::Nothing]);
}
