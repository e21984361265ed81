//! `kill -9` at every named point of a pause, a wake, a stop and a start, on both engines.
//!
//! Which points there are is not written here: the first run of each act tells which it passes, and how often.
//! Then, for each of them, Drowse dies there, is started again, and everything must be as if it had not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::thread;

use super::act::{Act, BY_PEOPLE, Ended, SOON_IDLE};
use super::law::all_is_well;
use super::stand::{Engine, Stand};
use super::wait::within_a_moment;
use crate::up::running::Up;

/// How many die beside each other. They mostly wait, for the second in which evidence may still arrive.
const AT_ONCE: usize = 6;

/// An act, a point, and at the how manieth passing of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Death {
    act: Act,
    point: String,
    nth: usize,
}

/// How often an act is performed until it passes what it should.
const TRIES: usize = 5;

/// What an act passes when nobody dies.
fn deaths(stand: &Stand, up: &mut Up, act: Act) -> BTreeSet<Death> {
    let mut perform = || {
        act.begin(stand);
        let before = stand.passed_length();
        assert_eq!(act.perform(stand, up), Ended::Done);
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        for point in stand.passed(before) {
            *times.entry(point).or_default() += 1;
        }
        times
    };
    let lacks = |times: &BTreeMap<String, usize>| {
        act.passes().iter().find(|point| !times.contains_key(**point)).copied()
    };
    let mut times = perform();
    // A pause shows in the books a moment before all know of it, and whoever comes in between gets no head start.
    for _ in 1..TRIES {
        if lacks(&times).is_some() {
            times = perform();
        }
    }
    assert_eq!(lacks(&times), None, "{act:?} does not pass it: {times:?}");
    // Between the first check and the one that decides, an idle worker passes the same points again and again.
    let last = |times| if matches!(act, Act::Idle | Act::IdleUndone) { times } else { 1 };
    let first_and_last =
        times.into_iter().flat_map(|(point, times)| [(point.clone(), 1), (point, last(times))]);
    first_and_last.map(|(point, nth)| Death { act, point, nth }).collect()
}

/// Dies at every point of these acts, all of which happen to workers with this policy.
fn die_everywhere(engine: Engine, policy: &str, acts: &[Act]) {
    let stand = || {
        let stand = Stand::new(engine);
        stand.worker(0, policy);
        let up = stand.up();
        stand.wait_for(0, "running");
        (stand, up)
    };
    let all: BTreeSet<Death> = {
        let (stand, mut up) = stand();
        acts.iter().flat_map(|act| deaths(&stand, &mut up, *act)).collect()
    };
    let left = Mutex::new(all);
    let next = || left.lock().unwrap().pop_first();
    let died_at = Mutex::new(BTreeSet::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                let (stand, mut up) = stand();
                while let Some(death) = next() {
                    let what = format!("{engine:?}, {death:?}");
                    death.act.begin(&stand);
                    stand.arm(&death.point, death.nth);
                    let ended = death.act.perform(&stand, &mut up);
                    // After a commit its outcome shows before the point is reached.
                    if ended == Ended::Died || within_a_moment(|| up.is_over()) {
                        assert_eq!(stand.passed(0).last(), Some(&death.point), "{what}");
                        died_at.lock().unwrap().insert((death.act, death.point));
                    } else {
                        // It was not passed so often this time, such as what is done once in ten seconds.
                        up.kill();
                    }
                    stand.disarm();
                    up = stand.up();
                    all_is_well(&stand, 0, &what);
                }
            });
        }
    });
    let died_at = died_at.into_inner().unwrap();
    for act in acts {
        for point in act.passes() {
            let death = (*act, (*point).to_owned());
            assert!(died_at.contains(&death), "{engine:?}: nobody died at {death:?}: {died_at:?}");
        }
    }
}

// Three tests for each engine rather than one, so that they share the machine's processors.

fn pauses_and_wakes(engine: Engine) {
    die_everywhere(engine, BY_PEOPLE, &[Act::Pause, Act::PauseUndone, Act::Resume, Act::Wake]);
}

fn stops_and_starts(engine: Engine) {
    die_everywhere(engine, BY_PEOPLE, &[Act::Stop, Act::StopFrozen, Act::Start]);
}

fn idleness(engine: Engine) {
    die_everywhere(engine, SOON_IDLE, &[Act::Idle, Act::IdleUndone]);
}

#[test]
fn death_at_every_point_of_pauses_and_wakes_on_sqlite() {
    pauses_and_wakes(Engine::Sqlite);
}

#[test]
fn death_at_every_point_of_pauses_and_wakes_on_postgres() {
    pauses_and_wakes(Engine::Postgres);
}

#[test]
fn death_at_every_point_of_stops_and_starts_on_sqlite() {
    stops_and_starts(Engine::Sqlite);
}

#[test]
fn death_at_every_point_of_stops_and_starts_on_postgres() {
    stops_and_starts(Engine::Postgres);
}

#[test]
fn death_at_every_point_of_falling_asleep_idle_on_sqlite() {
    idleness(Engine::Sqlite);
}

#[test]
fn death_at_every_point_of_falling_asleep_idle_on_postgres() {
    idleness(Engine::Postgres);
}
