//! One control plane for one database.

use std::sync::mpsc::channel;
use std::time::Duration;

use drowse_store::{Alone, StoreError};

use super::support::*;

fn take(database: &Database) -> Result<Alone, StoreError> {
    Alone::take(&database.url(), database.folder(), &options(), || {})
}

#[test]
fn a_database_is_looked_after_by_one_and_free_when_it_ends() {
    on_both(|database| {
        let first = take(database).unwrap();
        drop(database.open());
        let second = take(database).unwrap_err();
        assert!(matches!(second, StoreError::Taken), "{second:?}");
        drop(first);
        take(database).unwrap();
    });
}

#[test]
fn a_file_by_another_name_is_the_same_database() {
    let database = Database::sqlite();
    drop(database.open());
    let linked = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(database.folder(), linked.path().join("link")).unwrap();
    let _first = take(&database).unwrap();
    let second = Alone::take("sqlite://link/drowse.db", linked.path(), &options(), || {}).unwrap_err();
    assert!(matches!(second, StoreError::Taken), "{second:?}");
}

#[test]
fn two_databases_of_one_server_are_two() {
    let (one, other) = (Database::postgres(), Database::postgres());
    let _first = take(&one).unwrap();
    take(&other).unwrap();
}

/// A server that was started anew has forgotten the lock: it is taken again, and if somebody was quicker that is
/// told.
#[test]
fn a_lock_that_an_outage_took_is_taken_again_or_told_as_lost() {
    const ENDED: &str = "SELECT pg_terminate_backend(pid) FROM pg_locks
        WHERE locktype = 'advisory' AND classid = 1685221239 AND objid = 4
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    let database = Database::postgres();
    let (tell, told) = channel();
    let _first = Alone::take(&database.url(), database.folder(), &options(), move || {
        let _ = tell.send(());
    })
    .unwrap();
    // Tried for two seconds, in which the first comes back or does not: either way exactly one has it.
    database.sql(ENDED);
    match take(&database) {
        Ok(_second) => told.recv_timeout(Duration::from_mins(1)).unwrap(),
        Err(error) => {
            assert!(matches!(error, StoreError::Taken), "{error:?}");
            told.try_recv().unwrap_err();
        }
    }
}
