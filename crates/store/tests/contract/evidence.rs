//! Rule 4: buffered evidence, and a pause that commits only when all of it is in.

use std::sync::Barrier;

use drowse_core::Timestamp;
use drowse_core::id::BootId;
use drowse_core::reason::PauseReason;
use drowse_core::refusal::{Overtaken, Refusal};
use drowse_core::status::StatusKind;
use drowse_store::{Arrival, Checked, Claimed, Flushed, Replica, Store, StoreError};
use serde_json::{Value, json};

use super::support::*;

fn arrival(name: &str, source: &str, activity: Option<i64>, read: i64) -> Arrival {
    Arrival {
        worker: id(name),
        source: source.to_owned(),
        boot: Some(BootId::new("boot-1")),
        activity_at: activity.map(at),
        read_at: at(read),
        doc: json!({"read": read}),
    }
}

fn flush(store: &Store, batch: &[Arrival], through: i64) -> Flushed {
    store.flush_evidence("ingester", batch, at(through)).unwrap()
}

fn refused(outcome: Result<(), NotDone>) -> Overtaken {
    match outcome {
        Err(NotDone::Refused(Refusal::Overtaken(overtaken))) => overtaken,
        other => panic!("{other:?}"),
    }
}

fn stored(store: &Store) -> Vec<(String, Option<Timestamp>, Timestamp, Value)> {
    let rows = store.read(|t| t.arrivals(&id("web"))).unwrap();
    rows.into_iter().map(|row| (row.source, row.activity_at, row.read_at, row.doc)).collect()
}

/// Fails when the statement takes over `excluded.activity_at` as it comes.
#[test]
fn activity_never_goes_back_and_the_newest_word_stands() {
    on_both(|database| {
        let store = with_worker(database, "web");
        flush(&store, &[arrival("web", "agent", Some(50), 60)], 1_001);
        let news = (String::from("agent"), Some(at(50)), at(90), json!({"read": 90}));
        // Quiet, then late ones, in one batch and in others.
        flush(&store, &[arrival("web", "agent", None, 90), arrival("web", "agent", Some(40), 70)], 1_002);
        assert_eq!(stored(&store), std::slice::from_ref(&news));
        flush(&store, &[arrival("web", "agent", Some(45), 80)], 1_003);
        assert_eq!(stored(&store), [news]);
        flush(&store, &[arrival("web", "agent", Some(55), 85)], 1_004);
        assert_eq!(store.read(|t| t.activity_at(&id("web"))).unwrap(), Some(at(55)));
        // Sources do not meet.
        flush(&store, &[arrival("web", "router-1", None, 95)], 1_005);
        assert_eq!(stored(&store).len(), 2);
        // Rule 12: the same batch once more, after a commit of which nobody knows, changes nothing.
        let before = stored(&store);
        flush(&store, &[arrival("web", "router-1", None, 95)], 1_005);
        assert_eq!(stored(&store), before);
    });
}

#[test]
fn one_unknown_worker_does_not_drop_the_others() {
    on_both(|database| {
        let store = with_worker(database, "web");
        let batch = [arrival("gone", "agent", Some(10), 20), arrival("web", "agent", Some(10), 20)];
        flush(&store, &batch, 1_001);
        assert_eq!(stored(&store).len(), 1);
        assert_eq!(store.read(|t| t.arrivals(&id("gone"))).unwrap(), []);
    });
}

/// Nobody inside a worker may keep the evidence of others from being written.
#[test]
fn no_text_from_outside_spoils_a_batch() {
    on_both(|database| {
        let store = with_worker(database, "web");
        let doc = json!({"text": "NUL \u{0}, quote \", newline \n, snowman ☃, \\u0000, {}[]'"});
        let strange = Arrival {
            boot: Some(BootId::new("a\u{0}b\"c")),
            doc: doc.clone(),
            ..arrival("web", "agent", Some(1), 2)
        };
        flush(&store, &[strange, arrival("web", "ro\u{0}uter", Some(1), 2)], 1_001);
        let stored = stored(&store);
        assert_eq!((stored.len(), &stored[0].3), (2, &doc));
    });
}

#[test]
fn ten_thousand_rows_are_one_batch() {
    on_both(|database| {
        let store = database.open();
        ingester(&store, "ingester", at(0));
        database.sql(
            "WITH RECURSIVE n (i) AS (SELECT 10000 UNION ALL SELECT i + 1 FROM n WHERE i < 19999)
             INSERT INTO worker (id, site, driver, status, generation, doc, spec, created_at)
             SELECT 'w' || i, 'here', 'process', 'running', 0, '{}', '{}', 0 FROM n",
        );
        for round in 1..=2 {
            let batch: Vec<_> = (10_000..20_000)
                .map(|index| arrival(&format!("w{index}"), "agent", Some(round), round))
                .collect();
            flush(&store, &batch, round);
        }
        for name in ["w10000", "w19999"] {
            assert_eq!(store.read(|t| t.activity_at(&id(name))).unwrap(), Some(at(2)));
        }
    });
}

/// Fails when `found` does not ask how far the ingesters are, or asks only for the furthest.
#[test]
fn a_pause_waits_for_the_evidence_of_every_live_ingester() {
    on_both(|database| {
        let store = database.open();
        register(&store, "web");
        let judged = judge(&store, "web");
        let attempt = || store.tx(|t| pause(t, "web", &judged, at(500)));
        assert_eq!(refused(attempt()), Overtaken::Flush, "nobody takes evidence in: an outage of ours");

        ingester(&store, "ingester", at(400));
        ingester(&store, "other", at(600));
        assert_eq!(refused(attempt()), Overtaken::Flush);
        flush(&store, &[], 499);
        assert_eq!(refused(attempt()), Overtaken::Flush);
        // Who is dead, or takes no evidence in, is not waited for.
        let replica = |name: &str, alive_until, flushed_through: Option<i64>| Replica {
            id: name.to_owned(),
            doc: json!({}),
            started_at: at(0),
            alive_until: at(alive_until),
            flushed_through: flushed_through.map(at),
        };
        store.tx(|t| t.announce_replica(&replica("dead", 500, Some(1)))).unwrap();
        store.tx(|t| t.announce_replica(&replica("controller", 9_999, None))).unwrap();
        flush(&store, &[], 500);
        attempt().unwrap();
        assert_eq!(record(&store, "web").status().kind(), StatusKind::Pausing);
    });
}

#[test]
fn how_far_an_ingester_is_never_goes_back_and_needs_an_announcement() {
    on_both(|database| {
        let store = with_worker(database, "web");
        flush(&store, &[], 2_000);
        flush(&store, &[], 1_500);
        ingester(&store, "ingester", at(1_700));
        assert_eq!(store.read(|t| t.flushed_through(at(1))).unwrap(), Some(at(2_000)));
        let stranger = store.flush_evidence("stranger", &[arrival("web", "agent", Some(1), 1)], at(1));
        assert!(matches!(stranger, Err(StoreError::Constraint(_))), "{stranger:?}");
        assert_eq!(stored(&store), [], "evidence of an ingester that nobody waits for");
    });
}

/// The flush commits first: the pause sees it. Fails when `found` reads no evidence.
#[test]
fn a_flush_that_commits_first_stops_the_pause() {
    on_both(|database| {
        let store = with_worker(database, "web");
        let judged = judge(&store, "web");
        flush(&store, &[arrival("web", "agent", Some(450), 460)], 1_001);
        assert_eq!(refused(store.tx(|t| pause(t, "web", &judged, at(500)))), Overtaken::Activity);
    });
}

/// So does what a check itself has found.
#[test]
fn activity_that_another_check_found_stops_the_pause_too() {
    on_both(|database| {
        let store = with_worker(database, "web");
        let judged = judge(&store, "web");
        let checked = Checked { evidence: evidence(Some(at(450))), ..Checked::default() };
        store.tx(|t| t.lock_worker(&id("web"))?.unwrap().save_checked(&checked)).unwrap();
        assert_eq!(refused(store.tx(|t| pause(t, "web", &judged, at(500)))), Overtaken::Activity);
    });
}

/// The flush has written and not committed when the pause commits, which does not see it. Then the flush tells
/// who must be woken. Fails on PostgreSQL when `touched` is asked inside the flush's transaction *before* its
/// last statement, where the pause has not committed yet.
#[test]
fn a_flush_that_commits_after_the_pause_tells_whom_to_wake() {
    on_both(|database| {
        let store = with_worker(database, "web");
        let judged = judge(&store, "web");
        let batch = vec![arrival("web", "agent", Some(510), 510), arrival("web", "router-1", None, 510)];
        let flushing = store.clone();
        let flush = move |_: &Steps| flushing.flush_evidence("ingester", &batch, at(1_001)).unwrap();
        let outcome = if let Database::Postgres { cluster, name } = database {
            // The last statement of the flush is made to wait, the evidence being written already.
            let mut bystander = cluster.connect(name);
            let mut row = bystander.transaction().unwrap();
            row.execute("SELECT FROM replica WHERE id = 'ingester' FOR UPDATE", &[]).unwrap();
            let flusher = Party::start(flush);
            until_blocked(database, &store, 1);
            store.tx(|t| pause(t, "web", &judged, at(500))).unwrap();
            row.rollback().unwrap();
            flusher.end()
        } else {
            store.tx(|t| pause(t, "web", &judged, at(500))).unwrap();
            Party::start(flush).end()
        };
        assert_eq!(outcome.touched.len(), 1);
        let touched = &outcome.touched[0];
        assert_eq!((touched.status, touched.activity_at), (StatusKind::Pausing, at(510)));
    });
}

/// The flush happens wholly between the pause's look and its commit: neither sees the other. That is why the
/// pause looks again, in a second transaction, before the worker counts as paused.
#[test]
fn a_flush_between_the_look_and_the_commit_is_found_by_the_second_look() {
    on_both(|database| {
        let store = with_worker(database, "web");
        let judged = judge(&store, "web");
        let pauser = store.clone();
        let pauser = Party::start(move |steps| {
            pauser.tx(|t| {
                let mut locked = t.lock_worker(&id("web"))?.unwrap();
                let found = locked.found(at(500), at(500))?;
                steps.stop("looked");
                commit_pause(&mut locked, &judged, found, at(500))
            })
        });
        pauser.reaches("looked");
        let batch = vec![arrival("web", "agent", Some(510), 510)];
        let flusher = store.clone();
        let flusher = Party::start(move |_| flusher.flush_evidence("ingester", &batch, at(1_001)).unwrap());
        if database.is_postgres() {
            // A batch never waits for a transition, although that has locked the worker.
            assert_eq!(flusher.end(), Flushed::default());
            pauser.finish().unwrap();
        } else {
            until_blocked(database, &store, 1);
            pauser.finish().unwrap();
            assert_eq!(flusher.end().touched.len(), 1);
        }
        let again = store.tx(|t| t.lock_worker(&id("web"))?.unwrap().found(at(502), at(502))).unwrap();
        assert_eq!(again.activity_at, Some(at(510)));
    });
}

#[test]
fn only_who_falls_asleep_or_is_frozen_and_was_used_since_is_to_be_woken() {
    on_both(|database| {
        let store = with_worker(database, "awake");
        register(&store, "frozen");
        register(&store, "frozen-after");
        put_to_sleep(&store, "frozen", PauseReason::IdleTimeout, at(100));
        put_to_sleep(&store, "frozen-after", PauseReason::IdleTimeout, at(200));
        let batch: Vec<_> = ["awake", "frozen", "frozen-after"]
            .iter()
            .map(|name| arrival(name, "agent", Some(150), 150))
            .collect();
        let flushed = flush(&store, &batch, 1_001);
        assert_eq!(
            flushed.touched.iter().map(|touched| &touched.worker).collect::<Vec<_>>(),
            [&id("frozen")]
        );
        let beats = [arrival("frozen", "agent", None, 160)];
        assert_eq!(flush(&store, &beats, 1_002), Flushed::default(), "a heartbeat is no activity");
    });
}

/// Fails now and then on PostgreSQL, with a deadlock, when the rows of a batch are not sorted.
#[test]
fn two_replicas_that_flush_the_same_workers_do_not_deadlock() {
    on_both(|database| {
        let store = database.open();
        ingester(&store, "one", at(0));
        ingester(&store, "two", at(0));
        let names: Vec<_> = (0..50).map(|index| format!("w{index:02}")).collect();
        for name in &names {
            register(&store, name);
        }
        let barrier = Barrier::new(2);
        std::thread::scope(|scope| {
            for replica in ["one", "two"] {
                let (store, barrier) = (database.open(), &barrier);
                let mut batch: Vec<_> = names.iter().map(|name| arrival(name, "agent", Some(1), 1)).collect();
                if replica == "two" {
                    batch.reverse();
                }
                scope.spawn(move || {
                    for round in 0..40 {
                        barrier.wait();
                        store.flush_evidence(replica, &batch, at(round)).unwrap();
                    }
                });
            }
        });
    });
}

/// The telemetry mark and the activity that came with it are one row: what the mark knows is not told again.
#[test]
fn what_a_check_concluded_comes_back_whole() {
    on_both(|database| {
        let store = with_worker(database, "web");
        let claimed: Claimed = store.tx(|t| t.claim(&id("web"), "me", at(1), at(30))).unwrap().unwrap();
        let warned = drowse_core::verdict::Warned {
            kind: drowse_core::verdict::WarningKind::Idle,
            deadline: at(900),
            first_at: at(800),
            percent: 80.0,
            is_fyi: false,
        };
        let checked =
            Checked { evidence: evidence(Some(at(7))), idle_warned: Some(warned), ..Checked::default() };
        let generation = running("web").generation;
        store.tx(|t| t.finish_check(&claimed, generation, Some(&checked), 3, Some(at(60)), at(2))).unwrap();
        assert_eq!(store.read(|t| t.checked(&id("web"))).unwrap(), checked);
        assert_eq!(store.read(|t| t.activity_at(&id("web"))).unwrap(), Some(at(7)));
        assert_eq!(record(&store, "web").policy_epoch, 3);
    });
}
