//! Workers on the books, and transactions as closures (rules 2, 6, 10).

use std::panic::{AssertUnwindSafe, catch_unwind};

use drowse_core::event::{Event, Observation};
use drowse_core::policy::{Key, Level, PolicyLayer, Source, Value, resolve};
use drowse_core::reason::PauseReason;
use drowse_core::refusal::Refusal;
use drowse_core::status::{Status, StatusKind};
use drowse_core::worker::{Power, Terms, Worker};
use drowse_store::{EventFilter, Listing, Registered, Removal, StoreError};
use serde_json::json;

use super::support::*;

#[test]
fn a_worker_comes_back_as_it_was_stored_with_the_terms_of_today() {
    on_both(|database| {
        let store = database.open();
        let worker = running("web");
        let spec = json!({"command": ["sleep", "1"], "note": "déjà vu \u{0} \"quoted\""});
        assert_eq!(store.tx(|t| t.register(&worker, "here", &spec, at(5))).unwrap(), Registered::New);
        drop(store);

        let found = record(&database.open(), "web");
        assert_eq!((found.site.as_str(), &found.spec), ("here", &spec));
        assert_eq!(found.next_check_at, Some(at(5)));
        let layer = PolicyLayer::new(Level::Global, None, Source::File)
            .with(Key::Grace, Value::Duration(std::time::Duration::from_secs(7)));
        let (policy, _) = resolve(&[layer]);
        assert_eq!(found.worker(&policy), Worker { terms: Terms::of(&policy, worker.can), ..worker });
    });
}

#[test]
fn a_name_is_given_once_and_counts_on_when_it_is_given_again() {
    on_both(|database| {
        let store = database.open();
        register(&store, "web");
        let again = store.tx(|t| t.register(&running("web"), "there", &json!(1), at(9))).unwrap();
        assert_eq!(again, Registered::Exists);
        assert_eq!(record(&store, "web").site, "here");

        let claimed = store.tx(|t| t.claim(&id("web"), "me", at(1), at(50))).unwrap().unwrap();
        let removed = store.tx(|t| t.lock_worker(&id("web"))?.unwrap().remove(at(10))).unwrap();
        assert_eq!(removed, Removal::Removed);
        assert!(store.tx(|t| Ok::<_, StoreError>(t.lock_worker(&id("web"))?.is_none())).unwrap());
        assert_eq!(store.read(|t| t.workers(&Listing { limit: 9, ..Listing::default() })).unwrap(), []);

        let back = store.tx(|t| t.register(&running("web"), "there", &json!(2), at(20))).unwrap();
        assert_eq!(back, Registered::Again);
        let found = record(&store, "web");
        assert_eq!((found.site.as_str(), found.next_check_at), ("there", Some(at(20))));
        assert!(found.without_terms().generation > running("web").generation);
        assert!(found.claim_gen > claimed.claim_gen, "a claim of its former life would still count");
    });
}

/// Rule 10: nothing frozen that nothing wakes. Fails when `remove` does not ask `may_be_frozen`.
#[test]
fn a_worker_that_may_be_frozen_is_not_forgotten() {
    on_both(|database| {
        let store = with_worker(database, "web");
        put_to_sleep(&store, "web", PauseReason::IdleTimeout, at(1));
        let outcome = store.tx(|t| t.lock_worker(&id("web"))?.unwrap().remove(at(10))).unwrap();
        assert_eq!(outcome, Removal::Refused { status: StatusKind::Paused });
        assert_eq!(record(&store, "web").removed_at, None);
    });
}

#[test]
fn workers_are_listed_by_id_a_page_at_a_time() {
    on_both(|database| {
        let store = database.open();
        for name in ["c", "a", "d", "b"] {
            register(&store, name);
        }
        put_to_sleep(&store, "c", PauseReason::Manual, at(1));
        let list = |after: Option<&str>, status| {
            let listing = Listing { after: after.map(id), limit: 2, status };
            let page = store.read(|t| t.workers(&listing)).unwrap();
            page.iter().map(|record| record.id().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(list(None, None), ["a", "b"]);
        assert_eq!(list(Some("b"), None), ["c", "d"]);
        assert_eq!(list(None, Some(StatusKind::Paused)), ["c"]);
        let counts = store.read(|t| t.count_by_status()).unwrap();
        assert_eq!(counts, [(StatusKind::Paused, 1), (StatusKind::Running, 3)]);
    });
}

/// Rule 2. Fails when `View` does not roll back on drop.
#[test]
fn a_transaction_that_fails_or_panics_leaves_nothing_behind() {
    on_both(|database| {
        let store = with_worker(database, "web");
        let write = |t: &drowse_store::Tx<'_>| {
            let mut locked = t.lock_worker(&id("web"))?.unwrap();
            locked.take_hold(&keep_awake("ann"))?;
            t.nudge(&id("web"), at(1))
        };
        let refused: Result<(), StoreError> = store.tx(|t| {
            write(t)?;
            Err(StoreError::NoWorker(id("web")))
        });
        assert!(refused.is_err());
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            store.tx(|t| {
                write(t)?;
                panic!("in the middle");
                #[expect(unreachable_code, reason = "says of which type it would have been")]
                Ok::<(), StoreError>(())
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(store.read(|t| t.holds(&id("web"), at(2))).unwrap(), []);
        assert_eq!(record(&store, "web").next_check_at, Some(at(100)));
        store.tx(|t| t.nudge(&id("web"), at(3))).unwrap();
    });
}

/// PostgreSQL answers the commit of a failed transaction with a silent rollback. Fails on it when `end` does
/// not look at the state.
#[test]
fn a_failure_that_is_passed_over_is_not_taken_for_success() {
    on_both(|database| {
        let store = with_worker(database, "web");
        let outcome = store.tx(|t| {
            t.nudge(&id("web"), at(1))?;
            let token = drowse_store::Token {
                id: "t".to_owned(),
                name: String::new(),
                role: String::new(),
                worker: None,
                created_at: at(0),
                expires_at: None,
                revoked_at: None,
            };
            t.add_token(&token, b"hash")?;
            assert!(matches!(t.add_token(&token, b"hash"), Err(StoreError::Constraint(_))));
            Ok::<(), StoreError>(())
        });
        assert!(matches!(outcome, Err(StoreError::Failed)), "{outcome:?}");
        assert_eq!(record(&store, "web").next_check_at, Some(at(100)));
    });
}

#[test]
fn a_reader_sees_one_instant_and_waits_for_nobody() {
    on_both(|database| {
        let store = with_worker(database, "web");
        let writer = store.clone();
        let party = Party::start(move |steps| {
            writer.tx(|t| {
                t.lock_worker(&id("web"))?.unwrap().take_hold(&keep_awake("ann"))?;
                steps.stop("written");
                Ok::<_, StoreError>(())
            })
        });
        party.reaches("written");
        store
            .read(|t| {
                assert_eq!(t.holds(&id("web"), at(1))?, [], "what is not committed is not seen");
                party.finish()?;
                assert_eq!(t.holds(&id("web"), at(1))?, [], "a view does not change while it is used");
                Ok::<_, StoreError>(())
            })
            .unwrap();
        assert_eq!(store.read(|t| t.holds(&id("web"), at(1))).unwrap().len(), 1);
    });
}

/// Rule 6: what one replica saw once, another sees for the second time; and a look that began before the last
/// transition says nothing.
#[test]
fn a_contradiction_is_remembered_between_replicas() {
    on_both(|database| {
        let (one, other) = (with_worker(database, "web"), database.open());
        let look = |store: &drowse_store::Store, secs| {
            store.tx(|t| {
                let mut locked = t.lock_worker(&id("web"))?.unwrap();
                let event = Event::Observed(Observation {
                    power: Power::Stopped,
                    began_at: at(secs),
                    generation: running("web").generation,
                    boot: None,
                    dated_at: None,
                });
                step(&mut locked, &event, at(secs))
            })
        };
        look(&one, 10).unwrap();
        assert_eq!(record(&other, "web").status().kind(), StatusKind::Running);
        look(&other, 20).unwrap();
        let found = record(&one, "web");
        assert!(
            matches!(found.status(), Status::Stopped { sleep, .. } if sleep.reason == PauseReason::External)
        );
        let kinds = one.read(|t| t.events_after(0, 9, &EventFilter::default())).unwrap();
        assert!(kinds.iter().any(|entry| entry.event.kind == "worker.external"), "{kinds:?}");
        let late = look(&one, 30);
        assert!(
            matches!(late, Err(NotDone::Refused(Refusal::Late { .. } | Refusal::Ignored { .. }))),
            "{late:?}"
        );
    });
}
