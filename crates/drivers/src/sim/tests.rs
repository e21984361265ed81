use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::id::{IntentId, WorkerId};
use drowse_core::reason::SleepMode;
use drowse_core::signal::Signal;
use drowse_core::worker::Power;

use super::*;
use crate::driver::Measure;

const START: Timestamp = Timestamp::from_secs(1_700_000_000);
const LONG: Duration = Duration::from_hours(1);

fn worker() -> WorkerId {
    WorkerId::new("web").unwrap()
}

fn sim(spec: Spec) -> Sim {
    let sim = Sim::new(1, START);
    run(&sim, sim.adopt(&worker(), &driver::Spec::Sim(Box::new(spec)), LONG)).unwrap();
    sim
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Jumps from one instant at which something happens to the next, until the call is answered.
fn run<T>(sim: &Sim, call: impl Future<Output = T>) -> T {
    let mut call = pin!(call);
    loop {
        if let Poll::Ready(answer) = poll(call.as_mut()) {
            return answer;
        }
        sim.tick(sim.next_at().expect("a call that waits, waits for an instant"));
    }
}

fn observe(sim: &Sim) -> Seen {
    run(sim, sim.observe(&worker(), LONG)).unwrap()
}

fn hint(sim: &Sim) -> Option<Hint> {
    match poll(pin!(sim.next_hint())) {
        Poll::Ready(hint) => Some(hint),
        Poll::Pending => None,
    }
}

#[test]
fn a_call_lasts_exactly_as_long_as_it_takes() {
    let takes = Takes { freeze: Span::exactly(millis(30)), ..Takes::default() };
    let sim = sim(Spec { takes, ..Spec::default() });
    let worker = worker();
    let mut call = sim.freeze(&worker, LONG);
    assert!(poll(call.as_mut()).is_pending());
    sim.tick(START + millis(29));
    assert!(poll(call.as_mut()).is_pending());
    assert_eq!(observe(&sim).power, Power::Running);
    sim.tick(START + millis(30));
    let Poll::Ready(Ok(Acted::Done(seen))) = poll(call.as_mut()) else { panic!("it is not done") };
    assert_eq!((seen.power, seen.dated_at), (Power::Paused, Some(START + millis(30))));
}

#[test]
fn the_same_seed_gives_the_same_fate() {
    let fate = |seed| {
        let takes = Takes { freeze: Span::between(millis(1), millis(900)), ..Takes::default() };
        let spec = Spec { takes, refuses_one_in: Some(3), ..Spec::default() };
        let sim = Sim::new(seed, START);
        run(&sim, sim.adopt(&worker(), &driver::Spec::Sim(Box::new(spec)), LONG)).unwrap();
        (0..20)
            .map(|_| {
                let frozen = run(&sim, sim.freeze(&worker(), LONG)).is_ok();
                let thawed = run(&sim, sim.thaw(&worker(), LONG)).is_ok();
                (frozen, thawed, sim.now())
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(fate(7), fate(7));
    assert_ne!(fate(7), fate(8));
    assert!(fate(7).iter().any(|(frozen, _, _)| !frozen), "nothing was refused");
}

#[test]
fn an_action_can_begin_and_be_looked_at_later() {
    let takes = Takes { start: Span::exactly(Duration::from_mins(2)), ..Takes::default() };
    let sim = sim(Spec { takes, is_running: false, manner: Manner::Begins, ..Spec::default() });
    let started = Acted::Started { look_after: Duration::from_mins(2) };
    assert_eq!(run(&sim, sim.start(&worker(), millis(100))), Ok(started));
    assert_eq!(sim.now(), START, "it answers at once");
    sim.tick(START + Duration::from_mins(1));
    assert_eq!(observe(&sim).power, Power::Stopped);
    // Asked again it is still the same start.
    let again = run(&sim, sim.start(&worker(), millis(100)));
    assert!(
        matches!(again, Ok(Acted::Started { look_after }) if look_after == Duration::from_mins(1)),
        "{again:?}"
    );
    sim.tick(START + Duration::from_mins(2));
    assert_eq!(observe(&sim).power, Power::Running);
}

#[test]
fn silence_is_deaf_mute_or_down() {
    let cases = [
        (Silence::Deaf, Err(Error::TimedOut { within: millis(50) }), Power::Running),
        (Silence::Mute, Err(Error::TimedOut { within: millis(50) }), Power::Paused),
        (
            Silence::Down,
            Err(Error::Unreachable { message: "the simulated way to it is broken".into() }),
            Power::Running,
        ),
    ];
    for (silence, expected, power) in cases {
        let sim = sim(Spec::default());
        sim.silence(&worker(), silence, START + millis(50));
        assert_eq!(run(&sim, sim.freeze(&worker(), millis(50))), expected, "{silence:?}");
        sim.tick(START + millis(50));
        assert_eq!(observe(&sim).power, power, "{silence:?}");
    }
}

#[test]
fn a_freeze_that_is_too_slow_or_given_up_does_not_come_after_all() {
    let takes = Takes { freeze: Span::exactly(millis(100)), ..Takes::default() };
    let sim = sim(Spec { takes, ..Spec::default() });
    let slow = run(&sim, sim.freeze(&worker(), millis(10)));
    assert_eq!(slow, Err(Error::TimedOut { within: millis(10) }));
    let worker = worker();
    let mut given_up = sim.freeze(&worker, LONG);
    assert!(poll(given_up.as_mut()).is_pending());
    drop(given_up);
    sim.tick(START + LONG);
    assert_eq!(observe(&sim).power, Power::Running);
}

#[test]
fn what_others_do_is_hinted_at_and_seen() {
    let sim = sim(Spec::default());
    let boot = observe(&sim).boot;
    for (secs, change) in
        [(1, Change::Frozen), (2, Change::Thawed), (3, Change::Stopped), (4, Change::Started)]
    {
        sim.happens(START + Duration::from_secs(secs), &worker(), change);
    }
    for (secs, power) in [(1, Power::Paused), (2, Power::Running), (3, Power::Stopped), (4, Power::Running)] {
        let at = START + Duration::from_secs(secs);
        assert_eq!(sim.next_at(), Some(at));
        sim.tick(at);
        assert_eq!(hint(&sim), Some(Hint::Changed { worker: worker() }));
        let seen = observe(&sim);
        assert_eq!((seen.power, seen.dated_at), (power, Some(at)));
    }
    assert_ne!(observe(&sim).boot, boot);
    sim.lose_hints(true);
    sim.happens(sim.now(), &worker(), Change::Deleted);
    sim.tick(sim.now());
    assert_eq!((hint(&sim), observe(&sim).power), (None, Power::Gone));
}

#[test]
fn a_look_shows_what_was_so_when_it_began() {
    let takes = Takes { observe: Span::exactly(millis(100)), ..Takes::default() };
    let sim = sim(Spec { takes, ..Spec::default() });
    sim.happens(START + millis(50), &worker(), Change::Stopped);
    let seen = observe(&sim);
    assert_eq!((seen.power, seen.began_at, sim.now()), (Power::Running, START, START + millis(100)));
}

#[test]
fn each_run_crashes_once() {
    let crash = Crash { after: Span::exactly(Duration::from_secs(5)), code: 9 };
    let sim = sim(Spec { crash: Some(crash), ..Spec::default() });
    for _ in 0..3 {
        let boot = observe(&sim).boot.unwrap();
        sim.tick(sim.now() + Duration::from_secs(5));
        assert_eq!(hint(&sim), Some(Hint::Exited { worker: worker(), boot, code: Some(9) }));
        assert_eq!(hint(&sim), None);
        run(&sim, sim.start(&worker(), LONG)).unwrap();
    }
}

#[test]
fn a_stop_takes_what_the_worker_needs_and_at_most_its_grace() {
    let stop = |on_term, grace| {
        let sim = sim(Spec { on_term, ..Spec::default() });
        let stop = Stop { intent: IntentId(1), mode: SleepMode::Stop, grace, thaw_first: false, run: None };
        let Ok(Acted::Done(seen)) = run(&sim, sim.stop(&worker(), stop, LONG)) else { panic!("not done") };
        (seen.exit_code, sim.now().since(START))
    };
    let slow = OnTerm::Ends { after: millis(300), code: 0 };
    assert_eq!(stop(slow, millis(300)), (Some(0), millis(300)));
    assert_eq!(stop(slow, millis(299)), (Some(137), millis(299)));
    assert_eq!(stop(OnTerm::Ignores, millis(500)), (Some(137), millis(500)));
}

#[test]
fn a_scripted_refusal_is_used_up() {
    let sim = sim(Spec::default());
    sim.refuse_next(&worker(), Op::Freeze, "not today");
    assert_eq!(run(&sim, sim.freeze(&worker(), LONG)), Err(Error::refused("not today")));
    assert!(run(&sim, sim.freeze(&worker(), LONG)).is_ok());
}

#[test]
fn load_is_counted_while_it_runs() {
    let sim = sim(Spec::default());
    let read = |signal| run(&sim, sim.read(&worker(), Wanted::of(&[signal], &[]), LONG)).unwrap().get(signal);
    let cpu = || match read(Signal::Cpu) {
        Some(Measure::Total(total)) => total.value,
        other => panic!("{other:?}"),
    };
    sim.load(&worker(), Signal::Cpu, Load::PerSecond(20_000));
    sim.tick(START + Duration::from_secs(10));
    assert_eq!(cpu(), 200_000);
    run(&sim, sim.freeze(&worker(), LONG)).unwrap();
    sim.tick(START + Duration::from_secs(20));
    assert_eq!(cpu(), 200_000);
    run(&sim, sim.thaw(&worker(), LONG)).unwrap();
    sim.tick(START + Duration::from_secs(21));
    assert_eq!(cpu(), 220_000);
    assert_eq!(read(Signal::Tcp), None);
    sim.load(&worker(), Signal::Tcp, Load::Level(2.0));
    assert!(matches!(read(Signal::Tcp), Some(Measure::Level { value: 2.0, .. })));
    sim.load(&worker(), Signal::Tcp, Load::Unreadable);
    assert!(matches!(read(Signal::Tcp), Some(Measure::Unknown(_))));
}
