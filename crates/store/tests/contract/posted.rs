//! Transactions that are posted to the one writer share commits and nothing else.

use std::sync::mpsc::{Receiver, channel};

use drowse_store::{Lane, Options, Outcome, Store, StoreError, Tx};
use serde_json::json;

use super::support::*;

type Told = Receiver<Outcome<(), StoreError>>;

fn post(
    store: &Store,
    lane: Lane,
    work: impl FnOnce(&Tx<'_>) -> Result<(), StoreError> + Send + 'static,
) -> Told {
    let (tell, told) = channel();
    let reply = move |outcome| {
        // Not every test wants to know.
        let _ = tell.send(outcome);
    };
    let posted = store.post(lane, work, reply);
    assert!(posted.is_ok(), "SQLite has one writer");
    told
}

fn add(name: &'static str) -> impl FnOnce(&Tx<'_>) -> Result<(), StoreError> + Send + 'static {
    move |t| t.register(&running(name), "here", &json!({}), at(100)).map(|_| ())
}

fn exists(store: &Store, name: &str) -> bool {
    store.read(|t| t.worker(&id(name))).unwrap().is_some()
}

/// Somebody writes, so that what is posted meanwhile becomes one group.
fn while_busy(store: &Store, posts: impl FnOnce()) {
    let busy = store.clone();
    let party = Party::start(move |steps| {
        busy.tx(|_| {
            steps.stop("writes");
            Ok::<_, StoreError>(())
        })
    });
    party.reaches("writes");
    posts();
    party.finish().unwrap();
}

#[test]
fn nobody_is_told_before_it_is_committed() {
    let database = Database::sqlite();
    let (store, reader) = (database.open(), database.open());
    let (tell, told) = channel();
    while_busy(&store, || {
        for name in ["a", "b", "c"] {
            let (tell, reader) = (tell.clone(), reader.clone());
            let reply = move |outcome: Outcome<(), StoreError>| {
                outcome.unwrap().unwrap();
                tell.send((name, exists(&reader, name))).unwrap();
            };
            assert!(store.post(Lane::Ordinary, add(name), reply).is_ok());
        }
        assert!(!exists(&reader, "a"));
    });
    let told: Vec<_> = told.iter().take(3).collect();
    assert_eq!(told, [("a", true), ("b", true), ("c", true)], "in order, and there to be seen");
}

/// Without a savepoint for each, the failure of one took back what the others did, or kept half of its own.
#[test]
fn one_that_fails_takes_back_what_it_did_and_nothing_else() {
    let database = Database::sqlite();
    let store = database.open();
    let mut told = Vec::new();
    while_busy(&store, || {
        told.push(post(&store, Lane::Ordinary, add("before")));
        told.push(post(&store, Lane::Ordinary, |t| {
            add("half")(t)?;
            Err(StoreError::NoWorker(id("nobody")))
        }));
        told.push(post(&store, Lane::Ordinary, |t| {
            add("panics")(t)?;
            panic!("in the middle of it");
        }));
        told.push(post(&store, Lane::Ordinary, add("after")));
    });
    let outcomes: Vec<_> = told.iter().map(|told| told.recv().unwrap()).collect();
    assert!(matches!(outcomes[0], Ok(Ok(()))), "{:?}", outcomes[0]);
    assert!(matches!(outcomes[1], Ok(Err(StoreError::NoWorker(_)))), "{:?}", outcomes[1]);
    assert!(outcomes[2].is_err(), "a panic is told to who posted it");
    assert!(matches!(outcomes[3], Ok(Ok(()))), "{:?}", outcomes[3]);
    let found = ["before", "half", "panics", "after"].map(|name| exists(&store, name));
    assert_eq!(found, [true, false, false, true]);
}

#[test]
fn a_wake_goes_ahead_of_what_was_posted_before_it() {
    let database = Database::sqlite();
    let store = database.open();
    let (tell, told) = channel();
    while_busy(&store, || {
        for (name, lane) in [("a", Lane::Ordinary), ("b", Lane::Ordinary), ("wake", Lane::Wake)] {
            let tell = tell.clone();
            let work = move |t: &Tx<'_>| {
                tell.send(name).unwrap();
                add(name)(t)
            };
            post(&store, lane, work);
        }
    });
    assert_eq!(told.iter().take(3).collect::<Vec<_>>(), ["wake", "a", "b"]);
}

#[test]
fn what_is_in_no_hurry_keeps_its_turn_and_is_done_without_others_too() {
    let database = Database::sqlite();
    let store = database.open();
    let (tell, told) = channel();
    while_busy(&store, || {
        for (name, lane) in [("a", Lane::Unhurried), ("b", Lane::Ordinary), ("c", Lane::Unhurried)] {
            let tell = tell.clone();
            let work = move |t: &Tx<'_>| {
                tell.send(name).unwrap();
                add(name)(t)
            };
            post(&store, lane, work);
        }
    });
    assert_eq!(told.iter().take(3).collect::<Vec<_>>(), ["a", "b", "c"]);
    let alone = post(&store, Lane::Unhurried, add("alone"));
    assert!(matches!(alone.recv().unwrap(), Ok(Ok(()))));
    assert!(exists(&store, "alone"));
    // More than share one commit.
    let many: Vec<_> = (0..100).map(|_| post(&store, Lane::Unhurried, |_| Ok(()))).collect();
    // Of one that is being closed nothing is lost.
    drop(store);
    assert!(many.into_iter().all(|told| matches!(told.recv().unwrap(), Ok(Ok(())))));
}

#[test]
fn what_is_late_lets_others_go_ahead_but_not_for_ever() {
    let database = Database::sqlite();
    let store = database.open();
    let (tell, told) = channel();
    while_busy(&store, || {
        for index in 0..14 {
            let (name, lane) = if index < 2 { ("late", Lane::Late) } else { ("due", Lane::Ordinary) };
            let tell = tell.clone();
            let work = move |_: &Tx<'_>| {
                tell.send(name).unwrap();
                Ok(())
            };
            post(&store, lane, work);
        }
    });
    drop(tell);
    let order: Vec<_> = told.iter().collect();
    let late: Vec<_> =
        order.iter().enumerate().filter(|(_, name)| **name == "late").map(|(at, _)| at).collect();
    assert_eq!((order.len(), late), (14, vec![4, 9]), "{order:?}");
}

#[test]
fn a_disk_that_fills_up_fails_those_who_did_not_fit_and_loses_nobody_who_was_told() {
    let database = Database::sqlite();
    drop(database.open());
    let store = database.open_with(&Options { sqlite_max_pages: Some(80), ..options() }).unwrap();
    let mut told = Vec::new();
    while_busy(&store, || {
        for index in 0..60 {
            let name = format!("w{index:02}");
            told.push((
                name.clone(),
                post(&store, Lane::Ordinary, move |t| {
                    let big = json!("x".repeat(20_000));
                    t.register(&running(&name), "here", &big, at(1)).map(|_| ())
                }),
            ));
        }
    });
    let outcomes: Vec<_> =
        told.into_iter().map(|(name, told)| (name, told.recv().unwrap().unwrap())).collect();
    assert!(
        outcomes.iter().any(|(_, outcome)| matches!(outcome, Err(StoreError::Full(_)))),
        "it never filled up"
    );
    for (name, outcome) in outcomes {
        assert_eq!(exists(&store, &name), outcome.is_ok(), "{name}: {outcome:?}");
    }
}

#[test]
fn what_was_posted_is_done_before_the_store_is_closed() {
    let database = Database::sqlite();
    let store = database.open();
    let told: Vec<Told> = ["a", "b", "c"].map(|name| post(&store, Lane::Ordinary, add(name))).into();
    drop(store);
    for told in told {
        told.recv().unwrap().unwrap().unwrap();
    }
    assert!(["a", "b", "c"].iter().all(|name| exists(&database.open(), name)));
}

#[test]
fn here_and_now_is_for_when_nobody_else_writes() {
    let database = Database::sqlite();
    let store = database.open();
    assert!(matches!(store.tx_if_free(add("a")), Ok(Ok(()))));
    while_busy(&store, || assert!(store.tx_if_free(add("b")).is_err(), "it would have waited"));
    assert!(exists(&store, "a") && !exists(&store, "b"));
    let nested = store.tx(|_| store.read_if_embedded(|t| t.worker(&id("a"))).ok().unwrap().map(|_| ()));
    assert!(matches!(nested, Err(StoreError::Nested)), "{nested:?}");

    let postgres = Database::postgres().open();
    assert!(postgres.tx_if_free(add("a")).is_err(), "a server is elsewhere, and there is always a wait");
    assert!(postgres.post(Lane::Wake, add("a"), |_| {}).is_err());
}
