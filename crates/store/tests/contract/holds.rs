//! Rule 1, the common lock, and rule 7, connections that hang on a router's session.
//!
//! The interleavings fail on PostgreSQL when `FOR NO KEY UPDATE` is taken out of `lock_worker`: then the second
//! party does not wait, reads what was before the first, and both commit.

use core::time::Duration;

use drowse_core::hold::HoldKind;
use drowse_core::lease::{Asked, Credential, LeaseTerms};
use drowse_core::refusal::{Overtaken, Refusal};
use drowse_core::status::StatusKind;
use drowse_store::{RouterSession, Store, StoreError};

use super::support::*;

#[test]
fn a_hold_that_comes_first_keeps_the_pause_from_committing() {
    on_both(|database| {
        let store = with_worker(database, "web");
        let judged = judge(&store, "web");
        let holder = store.clone();
        let holder = Party::start(move |steps| {
            holder.tx(|t| {
                let mut locked = t.lock_worker(&id("web"))?.unwrap();
                assert_eq!(locked.record().status().kind(), StatusKind::Running);
                steps.stop("locked");
                locked.take_hold(&keep_awake("ann"))?;
                steps.stop("taken");
                Ok::<_, StoreError>(())
            })
        });
        holder.reaches("locked");
        let pauser = store.clone();
        let pauser = Party::start(move |_| pauser.tx(|t| pause(t, "web", &judged, at(500))));
        pauser.until_blocked(database, &store);
        holder.go_on();
        holder.reaches("taken");
        assert!(!pauser.is_over(), "it did not wait for the lock");
        holder.finish().unwrap();
        let outcome = pauser.end();
        assert!(matches!(outcome, Err(NotDone::Refused(Refusal::Overtaken(Overtaken::Hold)))), "{outcome:?}");
        assert_eq!(record(&store, "web").status().kind(), StatusKind::Running);
    });
}

#[test]
fn a_pause_that_comes_first_is_seen_by_whoever_takes_a_hold() {
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
        let holder = store.clone();
        let holder = Party::start(move |_| {
            holder.tx(|t| {
                let mut locked = t.lock_worker(&id("web"))?.unwrap();
                locked.take_hold(&keep_awake("ann"))?;
                Ok::<_, StoreError>(locked.record().status().kind())
            })
        });
        holder.until_blocked(database, &store);
        pauser.finish().unwrap();
        // So it knows that it must wake the worker, and does not leave it frozen under a hold.
        assert_eq!(holder.end().unwrap(), StatusKind::Pausing);
    });
}

fn lease(store: &Store, holder: &str, now: i64, ttl: u64) {
    let credential = Credential::new("token-1");
    store
        .tx(|t| {
            let mut locked = t.lock_worker(&id("web"))?.unwrap();
            let mut leases = locked.leases()?;
            let asked = Asked {
                credential: &credential,
                holder: Some(holder),
                ttl: Duration::from_secs(ttl),
                reason: "build",
            };
            leases.take(&asked, &LeaseTerms::default(), at(now)).unwrap();
            locked.save_leases(&leases)
        })
        .unwrap();
}

#[test]
fn leases_and_taken_holds_stand_side_by_side_and_end() {
    on_both(|database| {
        let store = with_worker(database, "web");
        lease(&store, "build", 10, 60);
        store
            .tx(|t| {
                let mut locked = t.lock_worker(&id("web"))?.unwrap();
                let file = drowse_core::hold::Hold {
                    kind: HoldKind::KeepAliveFile,
                    until: Some(at(100)),
                    ..keep_awake("agent")
                };
                locked.take_hold(&file)?;
                locked.take_hold(&keep_awake("ann"))
            })
            .unwrap();
        let kinds = |secs| {
            let holds = store.read(|t| t.holds(&id("web"), at(secs))).unwrap();
            holds.iter().map(|hold| hold.kind).collect::<Vec<_>>()
        };
        let ended = |secs| store.read(|t| t.hold_ended_at(&id("web"), at(secs))).unwrap();
        assert_eq!(kinds(20), [HoldKind::Lease, HoldKind::KeepAliveFile, HoldKind::KeepAwake]);
        assert_eq!(store.read(|t| t.all_holds(at(20))).unwrap().len(), 3);
        assert_eq!(
            (kinds(70), ended(70)),
            (vec![HoldKind::KeepAliveFile, HoldKind::KeepAwake], Some(at(70)))
        );
        assert_eq!((kinds(100), ended(100)), (vec![HoldKind::KeepAwake], Some(at(100))));

        let sweep = |secs| {
            store.tx(|t| t.lock_worker(&id("web"))?.unwrap().sweep_holds(at(secs), at(secs))).unwrap().len()
        };
        assert_eq!(store.read(|t| t.unswept(at(150), at(150), 9)).unwrap(), [id("web")]);
        assert_eq!((sweep(150), sweep(150)), (1, 0));
        assert_eq!(ended(150), Some(at(100)), "the end of a hold was lost with its row");

        let end = |owner: &str| {
            let owner = owner.to_owned();
            store
                .tx(move |t| {
                    t.lock_worker(&id("web"))?.unwrap().end_hold(HoldKind::KeepAwake, &owner, at(200))
                })
                .unwrap()
        };
        assert!(end("bob").is_none() && end("ann").is_some() && end("ann").is_none());
        assert_eq!(ended(200), Some(at(100)), "a keep-awake only holds back");
    });
}

#[test]
fn with_the_run_its_leases_end_but_neither_a_keep_awake_nor_who_waits_at_the_door() {
    on_both(|database| {
        let store = with_worker(database, "web");
        lease(&store, "build", 10, 60);
        begin_session(&store, 1_000);
        let ended = store
            .tx(|t| {
                let mut locked = t.lock_worker(&id("web"))?.unwrap();
                locked.take_hold(&keep_awake("ann"))?;
                locked.set_connections("router-1", 1, 1, at(15))?;
                locked.end_run(at(20))
            })
            .unwrap();
        assert_eq!(ended.iter().map(|hold| hold.kind).collect::<Vec<_>>(), [HoldKind::Lease]);
        let left = store.read(|t| t.holds(&id("web"), at(21))).unwrap();
        let mut left: Vec<_> = left.iter().map(|hold| hold.kind).collect();
        left.sort_unstable();
        assert_eq!(left, [HoldKind::Connection, HoldKind::KeepAwake]);
    });
}

fn begin_session(store: &Store, alive_until: i64) {
    let session =
        RouterSession { id: "router-1".to_owned(), started_at: at(0), alive_until: at(alive_until) };
    store.tx(|t| t.renew_session(&session)).unwrap();
}

fn edge(store: &Store, epoch: u64, count: u64, now: i64) -> Result<bool, StoreError> {
    store.tx(|t| t.lock_worker(&id("web"))?.unwrap().set_connections("router-1", epoch, count, at(now)))
}

/// Fails when `WHERE hold.epoch < excluded.epoch` is taken out.
#[test]
fn a_release_that_was_delayed_does_not_undo_a_newer_hold() {
    on_both(|database| {
        let store = with_worker(database, "web");
        assert!(matches!(edge(&store, 1, 1, 10), Err(StoreError::Constraint(_))), "there is no session yet");
        begin_session(&store, 1_000);
        assert!(edge(&store, 1, 1, 10).unwrap());
        assert!(edge(&store, 3, 1, 30).unwrap());
        assert!(!edge(&store, 2, 0, 31).unwrap(), "an older edge was taken for news");
        assert_eq!(store.read(|t| t.holds(&id("web"), at(32))).unwrap().len(), 1);
        assert!(edge(&store, 4, 0, 40).unwrap());
        assert!(!edge(&store, 3, 1, 41).unwrap(), "the epoch was forgotten with the hold");
        assert_eq!(store.read(|t| t.holds(&id("web"), at(42))).unwrap(), []);
        assert_eq!(store.read(|t| t.hold_ended_at(&id("web"), at(42))).unwrap(), Some(at(40)));
    });
}

#[test]
fn a_router_that_falls_silent_holds_nothing_and_is_remembered() {
    on_both(|database| {
        let store = with_worker(database, "web");
        begin_session(&store, 25);
        edge(&store, 1, 2, 10).unwrap();
        let held = |secs| !store.read(|t| t.holds(&id("web"), at(secs))).unwrap().is_empty();
        assert!(held(24) && !held(25));
        let counts = store.read(|t| t.connections(&id("web"))).unwrap();
        assert_eq!((counts[0].count, counts[0].alive_until), (2, Some(at(25))), "unknown, and not quiet");
        assert_eq!(store.read(|t| t.hold_ended_at(&id("web"), at(30))).unwrap(), Some(at(25)));
        // It is back in time.
        begin_session(&store, 60);
        assert!(held(40));
        // It is gone for good.
        let sweep = |now: i64| {
            store
                .tx(|t| {
                    let swept = t.lock_worker(&id("web"))?.unwrap().sweep_holds(at(now), at(now - 60))?;
                    Ok::<_, StoreError>((swept.len(), t.forget_sessions(at(now - 60))?))
                })
                .unwrap()
        };
        assert_eq!(sweep(100), (0, 0));
        assert_eq!(sweep(121), (1, 1));
        assert_eq!(store.read(|t| t.hold_ended_at(&id("web"), at(130))).unwrap(), Some(at(60)));
    });
}

#[test]
fn what_is_derived_is_not_stored() {
    on_both(|database| {
        let store = with_worker(database, "web");
        for kind in [HoldKind::Exemption, HoldKind::Schedule, HoldKind::Lease, HoldKind::Connection] {
            let hold = drowse_core::hold::Hold { kind, ..keep_awake("x") };
            let outcome = store.tx(|t| t.lock_worker(&id("web"))?.unwrap().take_hold(&hold));
            assert!(matches!(outcome, Err(StoreError::Unsupported(_))), "{kind}");
        }
    });
}

/// Two transactions that lock `a` and `b` in opposite order would wait for each other for ever. Fails when
/// `order_worker` lets everything through.
#[test]
fn locks_are_taken_in_one_order() {
    on_both(|database| {
        let store = with_worker(database, "b");
        register(&store, "a");
        let locking = |names: &[&str]| {
            store.tx(|t| {
                for name in names {
                    t.lock_worker(&id(name))?;
                }
                Ok::<_, StoreError>(())
            })
        };
        locking(&["a", "b", "b", "a"]).unwrap();
        assert!(matches!(locking(&["b", "a"]), Err(StoreError::LockOrder { .. })));
        let after_fleet = store.tx(|t| {
            t.bump_policy_epoch()?;
            t.lock_worker(&id("a")).map(|_| ())
        });
        assert!(matches!(after_fleet, Err(StoreError::LockOrder { .. })), "{after_fleet:?}");
    });
}
