//! Rule 9, outages of ours, and that a restart finds everything.

use core::time::Duration;
use std::collections::BTreeSet;

use drowse_core::lease::{Asked, Credential, LeaseTerms};
use drowse_store::{RouterSession, Store, StoreError, Tx};
use serde_json::json;

use super::support::*;

fn lease(store: &Store, name: &str, now: i64, ttl: u64) {
    store.tx(|t| take_lease(t, name, now, ttl)).unwrap();
}

fn take_lease(t: &Tx<'_>, name: &str, now: i64, ttl: u64) -> Result<(), StoreError> {
    let credential = Credential::new("token-1");
    let mut locked = t.lock_worker(&id(name))?.unwrap();
    let mut leases = locked.leases()?;
    let ttl = Duration::from_secs(ttl);
    let asked = Asked { credential: &credential, holder: None, ttl, reason: "build" };
    leases.take(&asked, &LeaseTerms::default(), at(now)).unwrap();
    locked.save_leases(&leases)
}

/// Fails when an outage changes nothing.
#[test]
fn a_lease_that_was_alive_when_we_went_away_gets_its_time_again() {
    on_both(|database| {
        let store = with_worker(database, "alive");
        for name in ["expired", "long"] {
            register(&store, name);
        }
        lease(&store, "expired", 0, 50);
        lease(&store, "alive", 60, 60);
        lease(&store, "long", 60, 3_600);
        store.flush_evidence("ingester", &[], at(1_001)).unwrap();
        drop(store);

        let store = database.open();
        assert_eq!(store.read(|t| t.ingested_through()).unwrap(), Some(at(1_001)));
        // We went away at 100 and are back at 1,000.
        assert_eq!(store.resume_leases(at(100), at(1_000)).unwrap(), 2);
        let ends = |name: &str| {
            let leases = store.read(|t| t.leases(&id(name))).unwrap();
            leases.alive(at(1_000)).map(|lease| lease.until).max()
        };
        assert_eq!(ends("alive"), Some(at(1_060)));
        assert_eq!(ends("long"), Some(at(4_600)));
        assert_eq!(ends("expired"), None, "it had ended before we went");
        assert_eq!(store.resume_leases(at(100), at(1_000)).unwrap(), 0, "once is enough");
    });
}

/// A hundred thousand books are not rewritten before anybody is served. Fails where a book is read as it is stored,
/// and where an outage is forgotten before every book has been written.
#[test]
fn whoever_reads_a_lease_before_the_outage_is_settled_finds_it_alive() {
    on_both(|database| {
        let store = with_worker(database, "web");
        lease(&store, "web", 60, 60);
        store.tx(|t| t.note_outage(at(100), at(1_000))).unwrap();
        drop(store);

        // We died again before it was settled, and were away from 1,010 to 2,000.
        let store = database.open();
        let is_held = |now| !store.read(|t| t.holds(&id("web"), at(now))).unwrap().is_empty();
        assert!(is_held(1_059) && !is_held(1_060));
        store.tx(|t| t.note_outage(at(1_010), at(2_000))).unwrap();
        assert!(is_held(2_059) && !is_held(2_060));
        assert_eq!(store.read(|t| t.all_holds(at(2_059))).unwrap().len(), 1);

        assert_eq!(store.settle_outages().unwrap(), 1);
        assert!(is_held(2_059) && !is_held(2_060));
        assert_eq!(store.settle_outages().unwrap(), 0, "once is enough");
        // What is taken afterwards is not concerned.
        lease(&store, "web", 2_100, 60);
        assert!(is_held(2_159) && !is_held(2_160));
    });
}

#[test]
fn more_books_than_fit_into_one_transaction_are_all_resumed() {
    on_both(|database| {
        let store = database.open();
        let names: Vec<_> = (0..450).map(|index| format!("w{index:03}")).collect();
        store
            .tx(|t| {
                for name in &names {
                    t.register(&running(name), "here", &json!({}), at(100))?;
                    take_lease(t, name, 60, 60)?;
                }
                Ok::<_, StoreError>(())
            })
            .unwrap();
        assert_eq!(store.resume_leases(at(100), at(1_000)).unwrap(), names.len());
    });
}

/// Whoever is in the middle of a transition when the process ends is found there by the next.
#[test]
fn an_open_intent_survives_the_process() {
    on_both(|database| {
        let store = with_worker(database, "web");
        let judged = judge(&store, "web");
        store.tx(|t| pause(t, "web", &judged, at(500))).unwrap();
        drop(store);
        let store = database.open();
        let found = record(&store, "web");
        let deadline = found.status().deadline().unwrap();
        assert!(found.status().intent().is_some());
        assert_eq!(store.read(|t| t.overdue(deadline, 9)).unwrap(), [id("web")]);
        let before = drowse_core::Timestamp::from_micros(deadline.as_micros() - 1);
        assert_eq!(store.read(|t| t.overdue(before, 9)).unwrap(), []);
        // And it is looked at by then without anybody remembering.
        let due = store.tx(|t| t.claim_due("next", deadline, deadline, 9, None)).unwrap();
        assert_eq!(due.len(), 1);
    });
}

/// Whoever holds the lock of the data folder knows that its last owner is dead, and need not wait for its silence.
#[test]
fn what_a_dead_replica_left_is_free_at_once_and_what_others_have_is_not() {
    on_both(|database| {
        let store = with_worker(database, "web");
        for name in ["api", "zzz"] {
            register(&store, name);
        }
        for (replica, worker, flushed) in [("dead", "web", 200), ("alive", "zzz", 400)] {
            let session = RouterSession { id: replica.into(), started_at: at(0), alive_until: at(500) };
            ingester(&store, replica, at(flushed));
            store
                .tx(|t| {
                    t.renew_session(&session)?;
                    t.claim(&id(worker), replica, at(300), at(330))?;
                    let mut locked = t.lock_worker(&id(worker))?.unwrap();
                    locked.set_connections(replica, 7, 1, at(300))
                })
                .unwrap();
        }
        let flushed = |now| store.read(|t| t.flushed_through(at(now))).unwrap();
        assert_eq!(flushed(310), Some(at(200)), "the dead one is waited for");

        store.bury_replica("dead", at(310)).unwrap();
        store.bury_replica("nobody", at(310)).unwrap();
        assert_eq!(flushed(310), Some(at(400)));
        let free = store.tx(|t| t.claim_due("next", at(310), at(340), 9, None)).unwrap();
        let free: BTreeSet<&str> = free.iter().map(|claimed| claimed.worker.as_str()).collect();
        assert_eq!(free, ["api", "web"].into());
        let found = record(&store, "web");
        assert_eq!((found.claim_by.as_deref(), found.hold_ended_at), (Some("next"), Some(at(310))));
        let is_held = |name| !store.read(|t| t.holds(&id(name), at(311))).unwrap().is_empty();
        assert!(!is_held("web") && is_held("zzz"));
        assert_eq!(store.read(|t| t.connections(&id("web"))).unwrap()[0].count, 0, "ended, and not unknown");
        assert_eq!(store.read(|t| t.ingested_through()).unwrap(), Some(at(1_000)), "the row is still there");
    });
}

/// Whoever goes on carrying connections while another looks after the fleet is not buried with its former name.
#[test]
fn connections_that_are_moved_to_another_session_outlive_the_burial_of_the_first() {
    on_both(|database| {
        let store = with_worker(database, "web");
        for name in ["api", "quiet", "zzz"] {
            register(&store, name);
        }
        let session =
            |id: &str, until| RouterSession { id: id.into(), started_at: at(0), alive_until: at(until) };
        let tell = |of: &str, worker: &str, epoch, count, now| {
            store
                .tx(|t| t.lock_worker(&id(worker))?.unwrap().set_connections(of, epoch, count, at(now)))
                .unwrap()
        };
        store.tx(|t| t.renew_session(&session("old", 500))).unwrap();
        for (worker, epoch, count) in [("web", 7, 2), ("api", 8, 1), ("quiet", 9, 0)] {
            assert!(tell("old", worker, epoch, count, 300));
        }
        let moved = store.move_connections("old", &session("guest", 325)).unwrap();
        let moved: Vec<_> =
            moved.iter().map(|(worker, row)| (worker.as_str(), row.epoch, row.count)).collect();
        assert_eq!(moved, [("api", 8, 1), ("web", 7, 2)]);
        store.bury_replica("old", at(311)).unwrap();

        let held = |name: &str, now| store.read(|t| t.holds(&id(name), at(now))).unwrap();
        let web = held("web", 312);
        assert_eq!((web.len(), web[0].owner.as_str(), web[0].since), (1, "guest", at(300)), "since stays");
        assert_eq!(record(&store, "web").hold_ended_at, None, "nothing has ended");
        assert!(held("quiet", 312).is_empty());
        assert!(held("web", 326).is_empty(), "nobody has renewed it");
        // It goes on with its own epochs, and what comes late from before does nothing.
        store.tx(|t| t.renew_session(&session("guest", 600))).unwrap();
        assert!(!tell("guest", "web", 7, 2, 330) && tell("guest", "web", 10, 0, 340));
        assert_eq!(record(&store, "web").hold_ended_at, Some(at(340)));

        // It is gone without having told so, and may come again with what it had.
        store.end_session("guest", at(350)).unwrap();
        store.end_session("nobody", at(350)).unwrap();
        assert!(held("api", 351).is_empty());
        assert_eq!(record(&store, "api").hold_ended_at, Some(at(350)));
        assert!(store.read(|t| t.router_sessions()).unwrap().iter().all(|known| known.id != "guest"));
        store.tx(|t| t.renew_session(&session("guest", 600))).unwrap();
        assert!(tell("guest", "api", 8, 1, 360));
        assert_eq!(held("api", 361).len(), 1);
    });
}

/// Fails when whoever could not renew a session is taken for gone.
#[test]
fn a_session_that_was_alive_when_we_went_away_has_time_to_be_renewed() {
    on_both(|database| {
        let store = with_worker(database, "web");
        let session =
            |id: &str, until| RouterSession { id: id.to_owned(), started_at: at(0), alive_until: at(until) };
        let sessions = [session("alive", 110), session("over", 90), session("long", 2_000)];
        store.tx(|t| sessions.iter().try_for_each(|session| t.renew_session(session))).unwrap();
        // We went away at 100 and are back at 1,000.
        assert_eq!(store.tx(|t| t.resume_sessions(at(100), at(1_015))).unwrap(), 1);
        let ends: Vec<_> = store.read(|t| t.router_sessions()).unwrap();
        let ends: Vec<_> = ends.iter().map(|session| (session.id.as_str(), session.alive_until)).collect();
        assert_eq!(ends, [("alive", at(1_015)), ("long", at(2_000)), ("over", at(90))]);
    });
}
