//! Migrations by several processes at once.

use std::sync::Barrier;

use drowse_store::{Epoch, Options, Registered, StoreError};
use serde_json::json;

use super::support::*;

/// Fails on PostgreSQL when the migration's lock is taken out: two create the same table.
#[test]
fn several_that_start_on_an_empty_database_make_one() {
    on_both(|database| {
        let barrier = Barrier::new(6);
        let epochs: Vec<_> = std::thread::scope(|scope| {
            let starting: Vec<_> = (0..6)
                .map(|number| {
                    let barrier = &barrier;
                    scope.spawn(move || {
                        barrier.wait();
                        let options = Options { connections: 1, ..Options::new(Epoch(number)) };
                        let store = database.open_with(&options).unwrap();
                        store.read(|t| t.epoch()).unwrap()
                    })
                })
                .collect();
            starting.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(epochs.iter().all(|epoch| *epoch == epochs[0]), "each believes it made it: {epochs:?}");
    });
}

/// A migration under way in another process is waited for.
#[test]
fn who_comes_second_waits_and_finds_the_work_done() {
    let database = Database::postgres();
    let Database::Postgres { cluster, name } = &database else { unreachable!("it was asked for") };
    let mut other = cluster.connect(name);
    let mut other = other.transaction().unwrap();
    other.execute("SELECT pg_advisory_xact_lock(1685221239, 3)", &[]).unwrap();
    let url = database.url();
    let second = Party::start(move |_| {
        drowse_store::Store::open(&url, std::path::Path::new("/"), &options()).unwrap()
    });
    let mut admin = cluster.admin();
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND wait_event_type = 'Lock'";
    let mut waits = 0;
    for _ in 0..100_000 {
        waits = admin.query_one(sql, &[name]).unwrap().get::<_, i64>(0);
        if waits == 1 {
            break;
        }
    }
    assert_eq!(waits, 1, "it did not wait");
    other.commit().unwrap();
    second.end();
}

#[test]
fn opening_again_changes_nothing() {
    on_both(|database| {
        register(&database.open(), "web");
        let store = database.open();
        let again = store.tx(|t| t.register(&running("web"), "x", &json!(1), at(1))).unwrap();
        assert_eq!(again, Registered::Exists);
    });
}

#[test]
fn a_database_of_a_newer_program_is_left_alone() {
    on_both(|database| {
        drop(with_worker(database, "web"));
        database.sql("UPDATE meta SET value = '8' WHERE key = 'schema'");
        assert!(database.open_with(&options()).is_ok(), "it was only expanded");
        database.sql("UPDATE meta SET value = '7' WHERE key = 'min_compatible'");
        let refused = database.open_with(&options()).unwrap_err();
        assert!(matches!(refused, StoreError::TooNew { database: 8, needs: 7, .. }), "{refused:?}");
        database.sql("UPDATE meta SET value = '1' WHERE key = 'min_compatible'");
        assert_eq!(record(&database.open(), "web").id(), &id("web"));
    });
}
