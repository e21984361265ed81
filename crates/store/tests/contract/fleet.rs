//! Rule 8: the commit checklist, and that nothing of it changes between the look and the commit.

use drowse_core::brake::{Brake, Cause};
use drowse_core::id::BootId;
use drowse_core::policy::Level;
use drowse_core::policy::exemption::{Exemption, Expiry, From as ExemptFrom, Subject};
use drowse_core::refusal::{Overtaken, Refusal};
use drowse_core::status::StatusKind;
use drowse_store::{PolicyValue, Store, StoreError, Tx};
use serde_json::json;

use super::cluster;
use super::support::*;

fn value() -> PolicyValue {
    PolicyValue {
        level: Level::Group,
        name: Some("student".to_owned()),
        key: "idle_timeout".to_owned(),
        value: json!("30m"),
        author: "ann".to_owned(),
        at: at(1),
    }
}

fn exemption() -> Exemption {
    Exemption {
        subject: Subject::Worker("web".to_owned()),
        from: vec![ExemptFrom::IdleTimeout],
        reason: "grant deadline".to_owned(),
        approved_by: "carol".to_owned(),
        expires_on: Expiry::Never,
    }
}

fn engage(t: &Tx<'_>) -> Result<(), StoreError> {
    t.change_brake(|_| {
        let engaged =
            Brake::Engaged { cause: Cause::LoopStalled, since: at(1), counts_from: at(0), calm_since: None };
        Some((engaged, ()))
    })
    .map(|_| ())
}

fn attempt(store: &Store, judged: &drowse_core::machine::Judged) -> Option<Overtaken> {
    match store.tx(|t| pause(t, "web", judged, at(500))) {
        Ok(()) => None,
        Err(NotDone::Refused(Refusal::Overtaken(overtaken))) => Some(overtaken),
        Err(other) => panic!("{other:?}"),
    }
}

/// Each line fails when `found` fills its field with what was judged.
#[test]
fn whatever_changes_after_the_judgement_stops_the_commit() {
    type Change = fn(&Tx<'_>) -> Result<(), StoreError>;
    let changes: [(Change, Option<Overtaken>); 9] = [
        (|_| Ok(()), None),
        (|t| t.set_policy_value(&value()).map(|_| ()), Some(Overtaken::Policy)),
        (|t| t.reset_policy_value(Level::Group, Some("student"), "x").map(|_| ()), Some(Overtaken::Policy)),
        (|t| t.add_exemption(&exemption(), "ann", at(1)).map(|_| ()), Some(Overtaken::Policy)),
        (|t| t.bump_policy_epoch().map(|_| ()), Some(Overtaken::Policy)),
        (engage, Some(Overtaken::Brake)),
        (
            |t| {
                let mut locked = t.lock_worker(&id("web"))?.unwrap();
                locked.take_hold(&keep_awake("ann"))
            },
            Some(Overtaken::Hold),
        ),
        (
            |t| {
                let mut locked = t.lock_worker(&id("web"))?.unwrap();
                let mut worker = locked.record().without_terms().clone();
                worker.generation = worker.generation.next();
                locked.save(&worker, None)
            },
            Some(Overtaken::Generation),
        ),
        (
            |t| {
                let mut locked = t.lock_worker(&id("web"))?.unwrap();
                let mut worker = locked.record().without_terms().clone();
                worker.boot = Some(BootId::new("boot-2"));
                locked.save(&worker, None)
            },
            Some(Overtaken::Boot),
        ),
    ];
    // One server for all of them.
    let _server = cluster::running();
    for (change, expected) in changes {
        on_both(|database| {
            let store = with_worker(database, "web");
            let judged = judge(&store, "web");
            store.tx(change).unwrap();
            assert_eq!(attempt(&store, &judged), expected);
        });
    }
}

/// Somebody is exempted, and told so, between the pause's look and its commit. Fails on PostgreSQL when `found`
/// does not share the fleet's lock: the exemption is granted while the pause is on its way.
#[test]
fn a_policy_change_waits_for_the_pause_that_did_not_see_it() {
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
        let exempter = store.clone();
        let exempter = Party::start(move |_| {
            exempter.tx(|t| {
                t.add_exemption(&exemption(), "ann", at(1))?;
                Ok::<_, StoreError>(t.worker(&id("web"))?.unwrap().status().kind())
            })
        });
        exempter.until_blocked(database, &store);
        assert!(!exempter.is_over());
        pauser.finish().unwrap();
        assert_eq!(
            exempter.end().unwrap(),
            StatusKind::Pausing,
            "whoever grants it sees what it comes too late for"
        );
    });
}

/// The other order. Fails on PostgreSQL when a change of policy does not take the fleet's lock.
#[test]
fn a_pause_waits_for_a_policy_change_under_way_and_then_sees_it() {
    on_both(|database| {
        let store = with_worker(database, "web");
        let judged = judge(&store, "web");
        let exempter = store.clone();
        let exempter = Party::start(move |steps| {
            exempter.tx(|t| {
                t.add_exemption(&exemption(), "ann", at(1))?;
                steps.stop("granted");
                Ok::<_, StoreError>(())
            })
        });
        exempter.reaches("granted");
        let pauser = store.clone();
        let pauser = Party::start(move |_| attempt(&pauser, &judged));
        pauser.until_blocked(database, &store);
        exempter.finish().unwrap();
        assert_eq!(pauser.end(), Some(Overtaken::Policy));
    });
}

/// Two replicas see the same trouble. Fails when `change_brake` reads before it locks.
#[test]
fn the_brake_engages_once() {
    on_both(|database| {
        let store = database.open();
        assert!(!store.read(|t| t.brake()).unwrap().is_engaged());
        let change = |store: &Store| {
            let change = |brake: &Brake| {
                let engaged = Brake::Engaged {
                    cause: Cause::ClockJumped,
                    since: at(1),
                    counts_from: at(0),
                    calm_since: None,
                };
                (!brake.is_engaged()).then_some((engaged, ()))
            };
            store.tx(|t| t.change_brake(change)).unwrap().is_some()
        };
        let first = store.clone();
        let first = Party::start(move |steps| {
            first.tx(|t| {
                engage(t)?;
                steps.stop("engaged");
                Ok::<_, StoreError>(())
            })
        });
        first.reaches("engaged");
        let second = store.clone();
        let second = Party::start(move |_| change(&second));
        second.until_blocked(database, &store);
        first.finish().unwrap();
        assert!(!second.end());
        assert!(database.open().read(|t| t.brake()).unwrap().is_engaged());
    });
}

#[test]
fn values_and_exemptions_are_kept_with_their_author_and_undone() {
    on_both(|database| {
        let store = database.open();
        let epoch = store.read(|t| t.policy_epoch()).unwrap();
        assert_eq!(store.tx(|t| t.set_policy_value(&value())).unwrap(), epoch + 1);
        let changed = PolicyValue { value: json!(null), author: "bob".to_owned(), ..value() };
        let global = PolicyValue { level: Level::Global, name: None, ..value() };
        store.tx(|t| t.set_policy_value(&changed)).unwrap();
        store.tx(|t| t.set_policy_value(&global)).unwrap();
        let store = database.open();
        assert_eq!(store.read(|t| t.policy_values()).unwrap(), [global.clone(), changed]);
        let reset = || store.tx(|t| t.reset_policy_value(Level::Global, None, &global.key)).unwrap();
        assert!(reset() && !reset());

        let one = store.tx(|t| t.add_exemption(&exemption(), "ann", at(1))).unwrap();
        store.tx(|t| t.add_exemption(&exemption(), "bob", at(2))).unwrap();
        database.sql("UPDATE exemption SET doc = '{}' WHERE author = 'bob'");
        // One that a newer program has written spares whom it names, and everything.
        store.tx(|t| t.add_exemption(&exemption(), "eve", at(3))).unwrap();
        database
            .sql("UPDATE exemption SET doc = replace(doc, 'idle_timeout', 'weekends') WHERE author = 'eve'");
        let read = store.read(|t| t.exemptions()).unwrap();
        assert_eq!(read.len(), 3);
        let spared = &read[2].as_ref().unwrap().exemption;
        assert_eq!(spared.subject, exemption().subject);
        assert_eq!(spared.from, ExemptFrom::ALL);
        assert_eq!(read[0].as_ref().unwrap().exemption, exemption());
        assert!(matches!(read[1], Err(StoreError::Unreadable { .. })), "one bad record drops no other");
        assert!(store.tx(|t| t.remove_exemption(one)).unwrap().is_some());
        assert!(store.tx(|t| t.remove_exemption(one)).unwrap().is_none());
    });
}
