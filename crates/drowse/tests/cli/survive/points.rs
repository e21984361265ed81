//! `kill -9` at every named point of a pause, a wake, a stop and a start, on both engines.
//!
//! Which points there are is not written here: the first run of each act tells which it passes, and how often.
//! Then, for each of them, Drowse dies there, the first time and the last, is started again, and everything must
//! be as if it had not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::thread;

use super::act::{Act, Ended};
use super::law::all_is_well;
use super::stand::{Engine, Stand};

/// How many die beside each other. They mostly wait, for the second in which evidence may still arrive.
const AT_ONCE: usize = 6;

/// A point, and at the how manieth passing of it.
type Death = (String, usize);

fn stand(engine: Engine, act: Act) -> Stand {
    let stand = Stand::new(engine);
    stand.worker(0, act.policy());
    stand
}

/// What an act passes when nobody dies.
fn deaths(engine: Engine, act: Act) -> Vec<Death> {
    let stand = stand(engine, act);
    let mut up = stand.up();
    stand.wait_for(0, "running");
    act.begin(&stand);
    let before = stand.passed_length();
    assert_eq!(act.perform(&stand, &mut up), Ended::Done);
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for point in stand.passed(before) {
        *times.entry(point).or_default() += 1;
    }
    for point in act.passes() {
        assert!(times.contains_key(*point), "{act:?} does not pass {point}: {times:?}");
    }
    times
        .into_iter()
        .flat_map(|(point, times)| BTreeSet::from([(point.clone(), 1), (point, times)]))
        .collect()
}

fn dies_everywhere(engine: Engine, act: Act) {
    let left = Mutex::new(deaths(engine, act));
    let next = || left.lock().unwrap().pop();
    let died_at = Mutex::new(BTreeSet::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                let stand = stand(engine, act);
                let mut up = stand.up();
                stand.wait_for(0, "running");
                while let Some((point, nth)) = next() {
                    let what = format!("{engine:?}, {act:?}, died at {point}, {nth}");
                    act.begin(&stand);
                    stand.arm(&point, nth);
                    match act.perform(&stand, &mut up) {
                        Ended::Died => {
                            assert_eq!(stand.passed(0).last(), Some(&point), "{what}");
                            died_at.lock().unwrap().insert(point);
                        }
                        // It was not passed so often this time, such as what is done once in ten seconds.
                        Ended::Done => up.kill(),
                    }
                    stand.disarm();
                    up = stand.up();
                    all_is_well(&stand, 0, &what);
                }
            });
        }
    });
    let died_at = died_at.into_inner().unwrap();
    for point in act.passes() {
        assert!(died_at.contains(*point), "{engine:?}, {act:?}: nobody died at {point}: {died_at:?}");
    }
}

mod sqlite {
    use super::{Act, Engine, dies_everywhere};

    #[test]
    fn a_pause() {
        dies_everywhere(Engine::Sqlite, Act::Pause);
    }

    #[test]
    fn a_pause_that_a_connection_takes_back() {
        dies_everywhere(Engine::Sqlite, Act::PauseUndone);
    }

    #[test]
    fn a_resume() {
        dies_everywhere(Engine::Sqlite, Act::Resume);
    }

    #[test]
    fn a_wake() {
        dies_everywhere(Engine::Sqlite, Act::Wake);
    }

    #[test]
    fn a_stop() {
        dies_everywhere(Engine::Sqlite, Act::Stop);
    }

    #[test]
    fn a_stop_of_a_frozen_worker() {
        dies_everywhere(Engine::Sqlite, Act::StopFrozen);
    }

    #[test]
    fn a_start() {
        dies_everywhere(Engine::Sqlite, Act::Start);
    }

    #[test]
    fn an_idle_worker_that_sinks_and_comes_back() {
        dies_everywhere(Engine::Sqlite, Act::Idle);
    }

    #[test]
    fn an_idle_pause_that_a_connection_takes_back() {
        dies_everywhere(Engine::Sqlite, Act::IdleUndone);
    }
}

mod postgres {
    use super::{Act, Engine, dies_everywhere};

    #[test]
    fn a_pause() {
        dies_everywhere(Engine::Postgres, Act::Pause);
    }

    #[test]
    fn a_pause_that_a_connection_takes_back() {
        dies_everywhere(Engine::Postgres, Act::PauseUndone);
    }

    #[test]
    fn a_resume() {
        dies_everywhere(Engine::Postgres, Act::Resume);
    }

    #[test]
    fn a_wake() {
        dies_everywhere(Engine::Postgres, Act::Wake);
    }

    #[test]
    fn a_stop() {
        dies_everywhere(Engine::Postgres, Act::Stop);
    }

    #[test]
    fn a_stop_of_a_frozen_worker() {
        dies_everywhere(Engine::Postgres, Act::StopFrozen);
    }

    #[test]
    fn a_start() {
        dies_everywhere(Engine::Postgres, Act::Start);
    }

    #[test]
    fn an_idle_worker_that_sinks_and_comes_back() {
        dies_everywhere(Engine::Postgres, Act::Idle);
    }

    #[test]
    fn an_idle_pause_that_a_connection_takes_back() {
        dies_everywhere(Engine::Postgres, Act::IdleUndone);
    }
}
