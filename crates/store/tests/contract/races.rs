//! Two stores on one database, as two replicas: threads that do what they do as fast as they can.

use std::sync::Barrier;

use drowse_core::event::Event;
use drowse_core::hold::HoldKind;
use drowse_core::policy::Policy;
use drowse_core::refusal::Refusal;
use drowse_core::status::{Status, StatusKind, WakeCause};
use drowse_store::{EventFilter, StoreError};

use super::support::*;

const ROUNDS: i64 = 60;

/// Either the pause sees the hold and is refused, or whoever takes the hold sees the pause and wakes. Fails on
/// PostgreSQL within a few rounds without the lock on the worker's row.
#[test]
fn no_worker_falls_asleep_under_a_hold() {
    on_both(|database| {
        let (one, other) = (with_worker(database, "web"), database.open());
        ingester(&one, "ingester", at(1_000_000 - 1));
        for round in 1..=ROUNDS {
            let now = at(1_000 * round);
            let judged = judge(&one, "web");
            let start = Barrier::new(2);
            let (paused, seen) = std::thread::scope(|scope| {
                let pauser = scope.spawn(|| {
                    start.wait();
                    one.tx(|t| pause(t, "web", &judged, now))
                });
                let holder = scope.spawn(|| {
                    start.wait();
                    other.tx(|t| {
                        let mut locked = t.lock_worker(&id("web"))?.unwrap();
                        locked.take_hold(&keep_awake("ann"))?;
                        Ok::<_, StoreError>(locked.record().status().kind())
                    })
                });
                (pauser.join().unwrap(), holder.join().unwrap().unwrap())
            });
            match (paused, seen) {
                (Ok(()), StatusKind::Pausing)
                | (Err(NotDone::Refused(Refusal::Overtaken(_))), StatusKind::Running) => {}
                other => panic!("round {round}: {other:?}"),
            }
            // Back to the start.
            one.tx(|t| {
                let mut locked = t.lock_worker(&id("web"))?.unwrap();
                locked.end_hold(HoldKind::KeepAwake, "ann", now)?;
                let mut worker = locked.record().worker(&Policy::default());
                worker.status = Status::Running { since: now };
                worker.generation = worker.generation.next();
                locked.save(&worker, None)
            })
            .unwrap();
        }
    });
}

/// Many wakes at once are one: one intent, one entry, and all the others find it under way.
#[test]
fn many_that_wake_a_worker_wake_it_once() {
    on_both(|database| {
        let stores = [with_worker(database, "web"), database.open()];
        put_to_sleep(&stores[0], "web", drowse_core::reason::PauseReason::IdleTimeout, at(1));
        let start = Barrier::new(8);
        std::thread::scope(|scope| {
            for number in 0..8 {
                let (store, start) = (&stores[number % 2], &start);
                scope.spawn(move || {
                    start.wait();
                    store
                        .tx(|t| {
                            let mut locked = t.lock_worker(&id("web"))?.unwrap();
                            step(&mut locked, &Event::WakeRequested { cause: WakeCause::Connection }, at(10))
                        })
                        .unwrap();
                });
            }
        });
        assert_eq!(record(&stores[0], "web").status().kind(), StatusKind::Waking);
        let wakes = EventFilter { worker: None, kind: Some("worker.wake_intended") };
        assert_eq!(stores[0].read(|t| t.events_after(0, 99, &wakes)).unwrap().len(), 1);
    });
}

/// Every due worker is claimed exactly once, however many claim. Fails on both when a claim leaves
/// `next_check_at` as it was.
#[test]
fn no_worker_is_claimed_twice() {
    on_both(|database| {
        let store = database.open();
        for index in 0..200 {
            register(&store, &format!("w{index:03}"));
        }
        let start = Barrier::new(4);
        let mut claimed: Vec<_> = std::thread::scope(|scope| {
            let claiming: Vec<_> = (0..4)
                .map(|number| {
                    let (store, start) = (database.open(), &start);
                    scope.spawn(move || {
                        let by = format!("replica-{number}");
                        let mut mine = Vec::new();
                        start.wait();
                        loop {
                            let some = store.tx(|t| t.claim_due(&by, at(100), at(130), 7, None)).unwrap();
                            if some.is_empty() {
                                return mine;
                            }
                            mine.extend(some.into_iter().map(|claimed| claimed.worker));
                            assert!(mine.len() <= 200, "there are no more than that");
                        }
                    })
                })
                .collect();
            claiming.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        claimed.sort();
        let all: Vec<_> = (0..200).map(|index| id(&format!("w{index:03}"))).collect();
        // With SKIP LOCKED one may end early while another still holds the last: nobody is claimed twice, and
        // who is left is claimed at the next look.
        let left: Vec<_> = store.tx(|t| t.claim_due("last", at(100), at(130), 999, None)).unwrap();
        claimed.extend(left.into_iter().map(|claimed| claimed.worker));
        claimed.sort();
        assert_eq!(claimed, all);
    });
}
