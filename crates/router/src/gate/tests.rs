//! The gate's laws, with a world that is a few lines of text.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use proptest::prelude::*;

use super::*;

const TERMS: Terms = Terms { places: 4, linger: Duration::from_millis(100) };

fn at(millis: i64) -> Timestamp {
    Timestamp::from_micros(millis * 1_000)
}

fn target(port: u16) -> Target {
    SocketAddr::from(([127, 0, 0, 1], port)).into()
}

fn visitor(who: u32) -> Visitor<u32> {
    Visitor {
        from: IpAddr::from([10, 0, 0, 1]),
        target: target(1),
        may_wake: true,
        wait_for: Duration::from_secs(30),
        who,
    }
}

fn standing(is_awake: bool) -> Standing {
    Standing { is_awake, boot: Some(BootId::new("first")), connection_idle: None }
}

fn not_allowed() -> Refused {
    Refused::NotAllowed { message: "no".to_owned(), sleep: None }
}

fn unavailable() -> Refused {
    Refused::Unavailable { message: "away".to_owned() }
}

fn step(gate: &mut Gate<u32>, millis: i64) -> Step {
    let (step, decided) = gate.next(at(millis));
    assert!(decided.turned.is_empty(), "{decided:?}");
    step
}

impl Gate<u32> {
    /// What a round of proofs came to: these have answered.
    fn proved(&mut self, answered: &[Target], now: Timestamp) -> Decided<u32> {
        let mut all = Decided { round: self.round(), ..Decided::default() };
        for target in answered {
            let decided = self.answered(target.clone());
            (all.round, all.was_asleep) = (decided.round, decided.was_asleep);
            all.pass.extend(decided.pass);
        }
        self.tried(now);
        all
    }
}

/// Awake, with the target proven and visitor 1 inside.
fn open() -> Gate<u32> {
    let mut gate = Gate::new(TERMS);
    gate.arrive(visitor(1), at(0));
    gate.told(EdgeCause::Came, Ok(standing(true)), at(0));
    assert_eq!(gate.proved(&[target(1)], at(0)).pass, [1]);
    gate
}

#[test]
fn the_first_is_counted_then_the_worker_woken_then_the_target_proven_and_only_then_do_they_pass() {
    let mut gate = Gate::new(TERMS);
    assert!(matches!(gate.arrive(visitor(1), at(0)), Arrival::Wait { is_news: true, .. }));
    assert_eq!(step(&mut gate, 0), Step::Tell { count: 1, cause: EdgeCause::Came });
    // Others come while the first edge is on its way: nothing more is told, and nobody is poked.
    assert!(matches!(gate.arrive(visitor(2), at(1)), Arrival::Wait { is_news: false, .. }));
    assert!(gate.told(EdgeCause::Came, Ok(standing(false)), at(2)).pass.is_empty());
    assert_eq!(step(&mut gate, 2), Step::Wake);
    assert!(matches!(gate.arrive(visitor(3), at(3)), Arrival::Wait { is_news: false, .. }));
    assert!(gate.woken(Ok(Some(BootId::new("first"))), at(4)).pass.is_empty());
    assert_eq!(step(&mut gate, 4), Step::Prove(vec![target(1)]));
    assert!(gate.proved(&[], at(5)).pass.is_empty());
    assert_eq!(step(&mut gate, 5), Step::Wait { until: Some(at(6)), is_awake: true }, "a millisecond later");
    assert_eq!(step(&mut gate, 6), Step::Prove(vec![target(1)]));
    assert_eq!(gate.proved(&[target(1)], at(7)).pass, [1, 2, 3], "in the order of their coming");
    assert!(matches!(gate.arrive(visitor(4), at(8)), Arrival::Pass(4, _)));
    assert_eq!(gate.count(), 4);
}

#[test]
fn proofs_are_tried_ever_more_slowly_up_to_fifty_milliseconds() {
    let mut gate = Gate::new(TERMS);
    gate.arrive(visitor(1), at(0));
    gate.told(EdgeCause::Came, Ok(standing(true)), at(0));
    let mut now = 0;
    let mut pauses = Vec::new();
    for _ in 0..8 {
        assert_eq!(step(&mut gate, now), Step::Prove(vec![target(1)]));
        gate.proved(&[], at(now));
        let Step::Wait { until: Some(until), .. } = step(&mut gate, now) else { panic!("it waits") };
        pauses.push(until.since(at(now)).as_millis());
        now = until.as_micros() / 1_000;
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 50, 50]);
}

#[test]
fn what_was_proven_stays_so_for_the_run_and_no_longer() {
    let mut gate = open();
    gate.slept(Slept::Restarting, at(1));
    assert!(matches!(gate.arrive(visitor(2), at(1)), Arrival::Wait { .. }));
    assert_eq!(gate.told(EdgeCause::Came, Ok(standing(true)), at(2)).pass, [2], "the same run");
    gate.slept(Slept::Restarting, at(3));
    gate.arrive(visitor(3), at(3));
    let other = Standing { boot: Some(BootId::new("second")), ..standing(true) };
    assert!(gate.told(EdgeCause::Came, Ok(other), at(4)).pass.is_empty());
    assert_eq!(step(&mut gate, 4), Step::Prove(vec![target(1)]));
}

#[test]
fn what_the_control_plane_refuses_is_turned_away_at_once_and_it_is_asked_again_a_moment_later() {
    let mut gate = Gate::new(TERMS);
    gate.arrive(visitor(1), at(0));
    gate.arrive(visitor(2), at(0));
    let decided = gate.told(EdgeCause::Came, Err(not_allowed()), at(1));
    assert_eq!(decided.turned.iter().map(|(who, _)| *who).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(step(&mut gate, 1), Step::Rest, "there is nothing to take back");
    // Those who come at once ask together, and what they hear is what holds then.
    for who in 3..6 {
        assert!(matches!(gate.arrive(visitor(who), at(2)), Arrival::Wait { .. }));
        assert_eq!(step(&mut gate, 100), Step::Wait { until: Some(at(101)), is_awake: false });
    }
    assert_eq!(step(&mut gate, 101), Step::Tell { count: 3, cause: EdgeCause::Came });
}

#[test]
fn whoever_gives_up_before_it_was_asked_for_them_costs_nothing() {
    let mut gate = Gate::new(TERMS);
    gate.arrive(visitor(1), at(0));
    assert_eq!(step(&mut gate, 0), Step::Tell { count: 1, cause: EdgeCause::Came });
    gate.told(EdgeCause::Came, Err(not_allowed()), at(1));
    let Arrival::Wait { ticket, .. } = gate.arrive(visitor(2), at(2)) else { panic!("they wait") };
    gate.give_up(ticket, at(3));
    assert_eq!(step(&mut gate, 3), Step::Rest);
    // One for whom it was asked, and nobody knows whether that was heard, is given back.
    let Arrival::Wait { ticket, .. } = gate.arrive(visitor(3), at(200)) else { panic!("they wait") };
    assert_eq!(step(&mut gate, 200), Step::Tell { count: 1, cause: EdgeCause::Came });
    gate.told(EdgeCause::Came, Err(unavailable()), at(201));
    gate.give_up(ticket, at(202));
    assert_eq!(step(&mut gate, 202), Step::Tell { count: 0, cause: EdgeCause::Left });
}

#[test]
fn a_refusal_of_those_who_may_not_wake_does_not_keep_whoever_may() {
    let stranger = |who| Visitor { may_wake: false, ..visitor(who) };
    let mut gate = Gate::new(TERMS);
    gate.arrive(stranger(1), at(0));
    gate.told(EdgeCause::CameToTheAwake, Err(not_allowed()), at(1));
    gate.arrive(stranger(2), at(2));
    assert_eq!(step(&mut gate, 2), Step::Wait { until: Some(at(101)), is_awake: false });
    assert!(matches!(gate.arrive(visitor(3), at(3)), Arrival::Wait { is_news: true, .. }));
    assert_eq!(step(&mut gate, 3), Step::Tell { count: 2, cause: EdgeCause::Came });
    // But what is refused to them is refused to all.
    gate.told(EdgeCause::Came, Err(not_allowed()), at(50));
    gate.arrive(stranger(4), at(51));
    assert_eq!(step(&mut gate, 101), Step::Wait { until: Some(at(150)), is_awake: false });
}

#[test]
fn whoever_may_not_wake_does_not_call_it_back_by_being_in_already() {
    let stranger = |who| Visitor { may_wake: false, ..visitor(who) };
    let mut gate = open();
    assert!(matches!(gate.arrive(stranger(2), at(1)), Arrival::Pass(..)));
    gate.slept(Slept::Falling { since: at(4) }, at(4));
    // Neither does whoever may and came before that was decided: it is asked for the new one alone.
    assert!(matches!(gate.arrive(stranger(3), at(5)), Arrival::Wait { is_news: true, .. }));
    assert_eq!(step(&mut gate, 5), Step::Tell { count: 3, cause: EdgeCause::CameToTheAwake });
    let decided = gate.told(EdgeCause::CameToTheAwake, Err(not_allowed()), at(6));
    assert_eq!((decided.turned.len(), decided.flow), (1, None), "those who are in end when it sleeps");
    assert!(gate.is_awake() && gate.is_falling());
    assert!(matches!(gate.arrive(stranger(4), at(7)), Arrival::Turned(4, _)), "that is known by now");
    // Whoever may calls it back for all.
    gate.arrive(visitor(5), at(8));
    assert_eq!(step(&mut gate, 8), Step::Tell { count: 3, cause: EdgeCause::Came });
    gate.told(EdgeCause::Came, Ok(standing(true)), at(9));

    gate.slept(Slept::Falling { since: at(10) }, at(10));
    assert_eq!(gate.slept(Slept::Asleep { since: Some(at(10)) }, at(11)).flow, Some(Flow::Cut));
}

#[test]
fn whoever_may_not_wake_and_went_on_after_it_was_to_sleep_ends_with_the_others() {
    let mut gate = open();
    let came = gate.arrive(Visitor { may_wake: false, ..visitor(2) }, at(5));
    assert!(matches!(came, Arrival::Pass(2, _)));
    assert_eq!(gate.slept(Slept::Asleep { since: Some(at(4)) }, at(6)).flow, Some(Flow::Cut));
    // And one who waits for a proof meanwhile is asked for, but does not call it back.
    let mut gate = open();
    gate.arrive(Visitor { may_wake: false, target: target(2), ..visitor(2) }, at(5));
    gate.slept(Slept::Falling { since: at(4) }, at(6));
    assert_eq!(step(&mut gate, 6), Step::Tell { count: 2, cause: EdgeCause::CameToTheAwake });
}

#[test]
fn those_who_may_not_wake_are_counted_again_after_an_outage_only_if_it_is_awake() {
    let mut gate = Gate::new(TERMS);
    gate.arrive(Visitor { may_wake: false, ..visitor(1) }, at(0));
    gate.told(EdgeCause::CameToTheAwake, Ok(standing(true)), at(0));
    assert_eq!(gate.proved(&[target(1)], at(0)).pass, [1]);
    gate.lost();
    assert_eq!(step(&mut gate, 1), Step::Tell { count: 1, cause: EdgeCause::CameToTheAwake });
    assert_eq!(gate.told(EdgeCause::CameToTheAwake, Ok(standing(true)), at(2)).flow, Some(Flow::Go));
    gate.lost();
    assert_eq!(gate.told(EdgeCause::CameToTheAwake, Err(not_allowed()), at(3)).flow, Some(Flow::Cut));
}

#[test]
fn whoever_may_not_wake_is_turned_away_alone() {
    let mut gate = Gate::new(TERMS);
    gate.arrive(Visitor { may_wake: false, ..visitor(1) }, at(0));
    assert_eq!(step(&mut gate, 0), Step::Tell { count: 1, cause: EdgeCause::CameToTheAwake });
    gate.arrive(visitor(2), at(0));
    let decided = gate.told(EdgeCause::CameToTheAwake, Err(not_allowed()), at(1));
    assert_eq!(decided.turned.len(), 1);
    assert_eq!(step(&mut gate, 1), Step::Tell { count: 1, cause: EdgeCause::Came }, "for the other one");
    // But once it is awake they are welcome.
    gate.arrive(Visitor { may_wake: false, ..visitor(3) }, at(1));
    gate.told(EdgeCause::Came, Ok(standing(true)), at(2));
    assert_eq!(gate.proved(&[target(1)], at(2)).pass, [2, 3]);
}

#[test]
fn a_worker_that_does_not_come_up_turns_away_for_a_moment_whoever_comes() {
    let mut gate = Gate::new(TERMS);
    gate.arrive(visitor(1), at(0));
    gate.told(EdgeCause::Came, Ok(standing(false)), at(1));
    let failed = Refused::DidNotComeUp { message: "crashed".to_owned() };
    assert_eq!(gate.woken(Err(failed), at(10)).turned.len(), 1);
    assert!(matches!(gate.arrive(visitor(2), at(11)), Arrival::Turned(2, Turned::DidNotComeUp { .. })));
    assert_eq!(step(&mut gate, 11), Step::Tell { count: 0, cause: EdgeCause::Left }, "it is held no more");
    gate.told(EdgeCause::Left, Ok(standing(false)), at(12));
    assert_eq!(step(&mut gate, 12), Step::Rest);
    assert!(matches!(gate.arrive(visitor(3), at(1_011)), Arrival::Turned(3, _)));
    assert!(matches!(gate.arrive(visitor(4), at(1_012)), Arrival::Wait { is_news: true, .. }));
}

#[test]
fn a_control_plane_that_does_not_answer_is_asked_again_and_nobody_is_turned_away_for_it() {
    let mut gate = Gate::new(TERMS);
    gate.arrive(visitor(1), at(0));
    assert!(gate.told(EdgeCause::Came, Err(unavailable()), at(0)).turned.is_empty());
    assert_eq!(step(&mut gate, 0), Step::Wait { until: Some(at(50)), is_awake: false });
    assert_eq!(step(&mut gate, 50), Step::Tell { count: 1, cause: EdgeCause::Came });
}

#[test]
fn whoever_waits_too_long_is_turned_away_and_the_hold_given_back() {
    let mut gate = Gate::new(TERMS);
    gate.arrive(visitor(1), at(0));
    gate.told(EdgeCause::Came, Ok(standing(false)), at(0));
    assert_eq!(step(&mut gate, 29_999), Step::Wake);
    let (step, decided) = gate.next(at(30_000));
    assert!(matches!(decided.turned[..], [(1, Turned::Late { is_up: false, .. })]), "{decided:?}");
    assert_eq!(step, Step::Tell { count: 0, cause: EdgeCause::Left });
}

#[test]
fn whoever_waits_too_long_at_one_that_runs_is_told_so() {
    let mut gate = Gate::new(TERMS);
    gate.arrive(visitor(1), at(0));
    gate.told(EdgeCause::Came, Ok(standing(true)), at(0));
    let (_, decided) = gate.next(at(30_000));
    assert!(matches!(decided.turned[..], [(1, Turned::Late { is_up: true, .. })]), "{decided:?}");
    let said = decided.turned[0].1.to_string();
    assert!(said.starts_with("it runs, but was not ready to answer within 30 s"), "{said}");
}

#[test]
fn the_hold_outlasts_the_last_one_for_a_moment_in_which_whoever_comes_needs_no_new_one() {
    let mut gate = open();
    let Arrival::Pass(_, round) = gate.arrive(visitor(2), at(1)) else { panic!("it is open") };
    assert!(!gate.leave(round, EdgeCause::Left, at(2)));
    assert!(gate.leave(round, EdgeCause::Left, at(3)), "that was the last one");
    assert_eq!(step(&mut gate, 3), Step::Wait { until: Some(at(103)), is_awake: true });
    assert!(matches!(gate.arrive(visitor(3), at(102)), Arrival::Pass(3, _)));
    assert_eq!(step(&mut gate, 103), Step::Wait { until: None, is_awake: true });
    gate.leave(round, EdgeCause::FellSilent, at(200));
    assert_eq!(step(&mut gate, 300), Step::Tell { count: 0, cause: EdgeCause::FellSilent });
    // Somebody comes while it is being told.
    assert!(matches!(gate.arrive(visitor(4), at(300)), Arrival::Wait { is_news: false, .. }));
    gate.told(EdgeCause::FellSilent, Ok(standing(true)), at(301));
    assert_eq!(step(&mut gate, 301), Step::Tell { count: 1, cause: EdgeCause::Came });
}

#[test]
fn a_release_that_cannot_be_told_is_tried_again_and_forgotten_when_somebody_comes() {
    let mut gate = open();
    gate.leave(gate.round(), EdgeCause::Left, at(0));
    assert_eq!(step(&mut gate, 100), Step::Tell { count: 0, cause: EdgeCause::Left });
    gate.told(EdgeCause::Left, Err(unavailable()), at(100));
    assert_eq!(step(&mut gate, 100), Step::Wait { until: Some(at(150)), is_awake: false });
    // Nobody knows whether it was heard: whoever comes is counted afresh.
    assert!(matches!(gate.arrive(visitor(2), at(120)), Arrival::Wait { is_news: true, .. }));
    assert_eq!(step(&mut gate, 120), Step::Tell { count: 1, cause: EdgeCause::Came });
}

#[test]
fn whoever_comes_while_a_release_is_told_does_not_wait_until_it_can_be() {
    let mut gate = open();
    gate.leave(gate.round(), EdgeCause::Left, at(0));
    assert_eq!(step(&mut gate, 100), Step::Tell { count: 0, cause: EdgeCause::Left });
    assert!(matches!(gate.arrive(visitor(2), at(101)), Arrival::Wait { is_news: false, .. }));
    gate.told(EdgeCause::Left, Err(unavailable()), at(102));
    assert_eq!(step(&mut gate, 102), Step::Tell { count: 1, cause: EdgeCause::Came });
}

#[test]
fn sleep_that_was_forced_cuts_those_inside_and_they_do_not_wake_it_again() {
    let mut gate = open();
    let old = gate.round();
    assert_eq!(
        gate.slept(Slept::Falling { since: at(4) }, at(4)).flow,
        None,
        "somebody may call it back yet"
    );
    assert_eq!(step(&mut gate, 4), Step::Wait { until: None, is_awake: true });
    assert_eq!(gate.slept(Slept::Asleep { since: Some(at(4)) }, at(5)).flow, Some(Flow::Cut));
    assert_eq!(step(&mut gate, 5), Step::Tell { count: 0, cause: EdgeCause::Left });
    assert!(!gate.leave(old, EdgeCause::Left, at(6)), "they count no more");
    gate.told(EdgeCause::Left, Ok(standing(false)), at(7));
    assert_eq!(step(&mut gate, 7), Step::Rest);
}

#[test]
fn whoever_comes_while_it_falls_asleep_calls_it_back_for_all() {
    let mut gate = open();
    gate.slept(Slept::Falling { since: at(4) }, at(4));
    assert!(matches!(gate.arrive(visitor(2), at(5)), Arrival::Wait { is_news: true, .. }));
    assert_eq!(step(&mut gate, 5), Step::Tell { count: 2, cause: EdgeCause::Came });
    gate.told(EdgeCause::Came, Ok(standing(false)), at(6));
    assert_eq!(step(&mut gate, 6), Step::Wake);
    let decided = gate.woken(Ok(Some(BootId::new("first"))), at(7));
    assert_eq!((decided.pass, decided.flow), (vec![2], Some(Flow::Go)));
    assert!(matches!(gate.arrive(visitor(3), at(8)), Arrival::Pass(3, _)));
}

#[test]
fn whoever_went_on_before_the_gate_heard_of_the_sleep_wakes_it_too() {
    for since in [4, 5] {
        let told = [Slept::Falling { since: at(since) }, Slept::Asleep { since: Some(at(since)) }];
        for slept in told {
            let mut gate = open();
            assert!(matches!(gate.arrive(visitor(2), at(5)), Arrival::Pass(2, _)));
            assert_eq!(gate.slept(slept, at(6)).flow, None);
            assert_eq!(step(&mut gate, 6), Step::Tell { count: 2, cause: EdgeCause::Came });
        }
    }
    let mut gate = open();
    gate.arrive(visitor(2), at(5));
    assert_eq!(gate.slept(Slept::Asleep { since: Some(at(6)) }, at(6)).flow, Some(Flow::Cut), "before it");
    let mut gate = open();
    gate.arrive(visitor(2), at(5));
    assert_eq!(gate.slept(Slept::Asleep { since: None }, at(6)).flow, Some(Flow::Cut), "it is gone");
}

#[test]
fn whoever_waited_for_a_proof_while_it_fell_asleep_has_come_too() {
    let mut gate = open();
    let other = Visitor { target: target(2), ..visitor(2) };
    assert!(matches!(gate.arrive(other, at(5)), Arrival::Wait { .. }));
    assert_eq!(gate.proved(&[target(2)], at(6)).pass, [2]);
    assert_eq!(gate.slept(Slept::Falling { since: at(4) }, at(7)).flow, None);
    assert_eq!(step(&mut gate, 7), Step::Tell { count: 2, cause: EdgeCause::Came });
    // Whoever came before the order is cut off by it, however late they were let in.
    let mut gate = open();
    gate.arrive(Visitor { target: target(2), ..visitor(2) }, at(5));
    gate.proved(&[target(2)], at(8));
    assert_eq!(gate.slept(Slept::Asleep { since: Some(at(7)) }, at(9)).flow, Some(Flow::Cut));
}

#[test]
fn a_hold_that_lingers_is_given_back_when_the_worker_falls_asleep_and_the_next_one_calls_it_back() {
    let mut gate = open();
    gate.leave(gate.round(), EdgeCause::Left, at(1));
    gate.slept(Slept::Falling { since: at(4) }, at(4));
    assert_eq!(step(&mut gate, 4), Step::Tell { count: 0, cause: EdgeCause::Left });
    // On its way when somebody comes: that is the next thing told.
    assert!(matches!(gate.arrive(visitor(2), at(5)), Arrival::Wait { .. }));
    gate.told(EdgeCause::Left, Ok(standing(false)), at(6));
    assert_eq!(step(&mut gate, 6), Step::Tell { count: 1, cause: EdgeCause::Came });
}

#[test]
fn those_inside_stop_when_the_session_is_lost_and_go_on_when_they_are_counted_again() {
    let mut gate = open();
    assert_eq!(gate.lost().flow, Some(Flow::Stop));
    assert!(matches!(gate.arrive(visitor(2), at(5)), Arrival::Wait { .. }));
    assert_eq!(step(&mut gate, 5), Step::Tell { count: 2, cause: EdgeCause::Came });
    assert_eq!(gate.told(EdgeCause::Came, Err(unavailable()), at(6)).flow, None);
    let decided = gate.told(EdgeCause::Came, Ok(standing(true)), at(60));
    assert_eq!((decided.flow, decided.pass), (Some(Flow::Go), vec![2]));
    // And if it was put to sleep for good meanwhile, they end.
    gate.lost();
    assert_eq!(gate.told(EdgeCause::Came, Err(not_allowed()), at(70)).flow, Some(Flow::Cut));
}

#[test]
fn whoever_comes_after_those_who_were_stopped_have_gone_may_move_bytes() {
    // The one who was inside leaves while the session is lost.
    let mut gate = open();
    assert_eq!(gate.lost().flow, Some(Flow::Stop));
    gate.leave(gate.round(), EdgeCause::Left, at(5));
    assert!(!gate.is_stopped(), "there is nobody to stop");
    gate.arrive(visitor(2), at(6));
    assert_eq!(gate.told(EdgeCause::Came, Ok(standing(true)), at(7)).pass, [2]);
    // Or is cut.
    gate.lost();
    assert_eq!(gate.told(EdgeCause::Came, Err(not_allowed()), at(8)).flow, Some(Flow::Cut));
    assert!(!gate.is_stopped());
}

#[test]
fn a_target_that_is_doubted_is_proven_again() {
    let mut gate = open();
    gate.doubt(&target(1));
    assert!(matches!(gate.arrive(visitor(2), at(5)), Arrival::Wait { is_news: true, .. }));
    assert_eq!(step(&mut gate, 5), Step::Prove(vec![target(1)]));
}

/// What happens next to a gate in [`anything_may_happen_in_any_order`].
#[derive(Clone, Copy, Debug)]
enum Move {
    Arrive { port: u16, may_wake: bool },
    Leave { which: usize, silently: bool },
    GiveUp { which: usize },
    Answer { how: u8 },
    Lost,
    Slept { how: u8 },
    Pass { millis: i64 },
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        4 => (1_u16..3, any::<bool>()).prop_map(|(port, may_wake)| Move::Arrive { port, may_wake }),
        3 => (0_usize..8, any::<bool>()).prop_map(|(which, silently)| Move::Leave { which, silently }),
        1 => (0_usize..8).prop_map(|which| Move::GiveUp { which }),
        8 => (0_u8..8).prop_map(|how| Move::Answer { how }),
        1 => Just(Move::Lost),
        1 => (0_u8..3).prop_map(|how| Move::Slept { how }),
        3 => prop_oneof![0_i64..5, 90_i64..110, 29_000_i64..31_000].prop_map(|millis| Move::Pass { millis }),
    ];
    prop::collection::vec(one, 0..120)
}

/// The gate, and what the world knows about it.
struct World {
    gate: Gate<u32>,
    now: i64,
    next: u32,
    waiting: BTreeMap<u32, (Ticket, u16)>,
    inside: BTreeMap<u32, Round>,
    /// The control plane's books: somebody is counted, and what was told still holds.
    is_held: bool,
    is_awake: bool,
    boot: u32,
    answered: Vec<(u32, Target)>,
    /// What those who have passed were last told: not a byte. The door looks at the gate again with every flow that it
    /// is told of, and whenever somebody leaves.
    is_stopped: bool,
}

impl World {
    fn take(&mut self, decided: Decided<u32>) {
        if decided.flow == Some(Flow::Cut) {
            self.inside.clear();
        }
        if decided.flow.is_some() {
            self.is_stopped = self.gate.is_stopped();
        }
        let mut last = BTreeMap::new();
        for who in decided.pass {
            let (_, port) = self.waiting.remove(&who).expect("whoever passes has waited, once");
            self.may_pass(port);
            assert!(last.insert(port, who).is_none_or(|before| before < who), "out of order");
            self.inside.insert(who, decided.round);
        }
        for (who, _) in decided.turned {
            self.waiting.remove(&who).expect("whoever is turned away has waited, once");
        }
    }

    fn may_pass(&self, port: u16) {
        assert!(self.is_held, "somebody passed who is not counted");
        assert!(self.is_awake, "somebody passed to a worker that sleeps");
        assert!(self.answered.contains(&(self.boot, target(port))), "nobody has answered there");
    }

    fn step(&mut self) -> Step {
        let (step, decided) = self.gate.next(at(self.now));
        self.take(decided);
        step
    }

    /// The keeper does what is next, and the world answers as it likes.
    fn answer(&mut self, how: u8) {
        let now = at(self.now);
        let boot = Some(BootId::new(self.boot.to_string()));
        let decided = match (self.step(), how) {
            (Step::Rest | Step::Wait { .. }, _) => return,
            (Step::Tell { cause, .. }, 0) => self.gate.told(cause, Err(unavailable()), now),
            (Step::Tell { count: 0, cause }, _) => {
                self.is_held = false;
                self.gate.told(cause, Ok(standing(false)), now)
            }
            (Step::Tell { cause, .. }, 1) => {
                self.is_held = false;
                self.gate.told(cause, Err(not_allowed()), now)
            }
            (Step::Tell { cause, .. }, _) => {
                self.is_held = true;
                let is_awake = self.is_awake;
                self.gate.told(cause, Ok(Standing { is_awake, boot, connection_idle: None }), now)
            }
            (Step::Wake, 0) => self.gate.woken(Err(unavailable()), now),
            (Step::Wake, 1) => self.gate.woken(Err(Refused::DidNotComeUp { message: String::new() }), now),
            (Step::Wake, 2) => {
                self.boot += 1;
                self.is_awake = true;
                let boot = Some(BootId::new(self.boot.to_string()));
                self.gate.woken(Ok(boot), now)
            }
            (Step::Wake, _) => {
                self.is_awake = true;
                self.gate.woken(Ok(boot), now)
            }
            (Step::Prove(_), 0) => self.gate.proved(&[], now),
            (Step::Prove(targets), how) => {
                let reached = &targets[..=(usize::from(how) % targets.len())];
                self.answered.extend(reached.iter().map(|target| (self.boot, target.clone())));
                self.gate.proved(reached, now)
            }
        };
        self.take(decided);
    }

    fn play(&mut self, one: Move) {
        let now = at(self.now);
        match one {
            Move::Arrive { port, may_wake } => {
                let who = self.next;
                self.next += 1;
                let came = Visitor { target: target(port), may_wake, ..visitor(who) };
                match self.gate.arrive(came, now) {
                    Arrival::Pass(passed, round) => {
                        assert_eq!(passed, who);
                        self.may_pass(port);
                        self.inside.insert(who, round);
                    }
                    Arrival::Wait { ticket, evicted, .. } => {
                        assert!(evicted.is_none(), "all come from one place");
                        self.waiting.insert(who, (ticket, port));
                    }
                    Arrival::Turned(turned, _) => assert_eq!(turned, who),
                }
            }
            Move::Leave { which, silently } => {
                let Some(who) = self.inside.keys().nth(which).copied() else { return };
                let round = self.inside.remove(&who).expect("it was just there");
                let cause = if silently { EdgeCause::FellSilent } else { EdgeCause::Left };
                self.gate.leave(round, cause, now);
                self.is_stopped &= self.gate.is_stopped();
            }
            Move::GiveUp { which } => {
                let Some(who) = self.waiting.keys().nth(which).copied() else { return };
                let (ticket, _) = self.waiting.remove(&who).expect("it was just there");
                assert_eq!(self.gate.give_up(ticket, now), Some(who));
            }
            Move::Answer { how } => self.answer(how),
            Move::Lost => {
                self.is_held = false;
                let decided = self.gate.lost();
                self.take(decided);
            }
            Move::Slept { how } => {
                // The keeper watches only what is awake.
                if self.gate.is_awake() {
                    self.is_awake = false;
                    let how = match how {
                        0 => Slept::Restarting,
                        1 => Slept::Falling { since: now },
                        _ => Slept::Asleep { since: Some(now) },
                    };
                    let decided = self.gate.slept(how, now);
                    self.take(decided);
                }
            }
            Move::Pass { millis } => self.now += millis,
        }
        let counted = self.waiting.len() + self.inside.len();
        assert_eq!(self.gate.count(), counted as u64, "{:?}", self.gate);
        assert_eq!(self.is_stopped, self.gate.is_stopped(), "nobody was told: {:?}", self.gate);
        assert!(!(self.gate.is_awake() && self.is_stopped), "whoever passes may move bytes: {:?}", self.gate);
        assert!(!self.is_stopped || !self.inside.is_empty(), "nobody is stopped: {:?}", self.gate);
    }
}

proptest! {
    /// Nobody passes uncounted, to the sleeping or to the silent; everybody comes out once and in order; and when
    /// all have gone the control plane is told so.
    #[test]
    fn anything_may_happen_in_any_order(moves in moves()) {
        let mut world = World {
            gate: Gate::new(TERMS),
            now: 0,
            next: 0,
            waiting: BTreeMap::new(),
            inside: BTreeMap::new(),
            is_held: false,
            is_awake: false,
            boot: 1,
            answered: Vec::new(),
            is_stopped: false,
        };
        for one in moves {
            world.play(one);
        }
        // The end: all leave, everything answers, and after that there is nothing left to do.
        for (_, round) in std::mem::take(&mut world.inside) {
            world.gate.leave(round, EdgeCause::Left, at(world.now));
        }
        world.now += 60_000;
        for _ in 0..20 {
            world.answer(7);
            for (_, round) in std::mem::take(&mut world.inside) {
                world.gate.leave(round, EdgeCause::Left, at(world.now));
            }
            world.now += 10_000;
        }
        prop_assert_eq!(world.step(), Step::Rest);
        prop_assert!(!world.is_held, "it is held for nobody: {:?}", world.gate);
    }
}

#[test]
fn whoever_was_counted_before_a_refusal_is_taken_off_the_books() {
    let mut gate = Gate::new(TERMS);
    gate.arrive(visitor(1), at(0));
    gate.told(EdgeCause::Came, Ok(standing(true)), at(1));
    gate.proved(&[target(1)], at(1));
    // A person puts it to sleep over the one who is in, and somebody comes who may not undo that.
    gate.slept(Slept::Falling { since: at(2) }, at(2));
    gate.arrive(visitor(2), at(3));
    let decided = gate.told(EdgeCause::Came, Err(not_allowed()), at(4));
    assert_eq!(decided.flow, Some(Flow::Cut));
    assert_eq!(step(&mut gate, 4), Step::Tell { count: 0, cause: EdgeCause::Left });
    gate.told(EdgeCause::Left, Ok(standing(false)), at(5));
    assert_eq!(step(&mut gate, 5), Step::Rest);
}

#[test]
fn the_first_to_come_to_what_has_answered_in_this_run_may_go_ahead_and_is_still_told() {
    let mut gate = Gate::new(TERMS);
    gate.arrive(visitor(1), at(0));
    gate.told(EdgeCause::Came, Ok(standing(true)), at(1));
    let decided = gate.proved(&[target(1)], at(1));
    gate.leave(decided.round, EdgeCause::Left, at(2));
    gate.slept(Slept::Falling { since: at(3) }, at(3));
    assert_eq!(step(&mut gate, 3), Step::Tell { count: 0, cause: EdgeCause::Left });
    gate.told(EdgeCause::Left, Ok(standing(false)), at(4));

    let Arrival::Wait { ticket, is_news: true, .. } = gate.arrive(visitor(2), at(9)) else {
        panic!("they wait")
    };
    assert!(gate.may_go_ahead(ticket));
    let other = BootId::new("another run");
    assert!(gate.go_ahead(ticket, Some(&other)).is_none(), "it has not answered in that run");
    let same = standing(true).boot;
    let (who, round) = gate.go_ahead(ticket, same.as_ref()).unwrap();
    assert_eq!(who, 2);
    assert_eq!(
        step(&mut gate, 9),
        Step::Tell { count: 1, cause: EdgeCause::Came },
        "the edge is told as ever"
    );
    // Whoever comes meanwhile waits for that.
    let Arrival::Wait { ticket, .. } = gate.arrive(visitor(3), at(9)) else { panic!("they wait") };
    assert!(!gate.may_go_ahead(ticket), "only the first");
    gate.told(EdgeCause::Came, Ok(standing(false)), at(10));
    assert_eq!(gate.woken(Ok(same), at(11)).pass, [3]);
    assert!(!gate.leave(round, EdgeCause::Left, at(12)), "one is left");
}
