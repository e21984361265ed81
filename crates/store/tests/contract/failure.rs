//! Everything that goes wrong outside of us: a typed error, one clear line, and the data intact.

use std::path::Path;
use std::time::Duration;

use drowse_store::{Options, Store, StoreError};

use super::cluster::Cluster;
use super::support::*;

fn open(url: &str, folder: &Path) -> StoreError {
    Store::open(url, folder, &options()).unwrap_err()
}

#[test]
fn an_address_that_is_none_is_refused_without_its_password() {
    let folder = tempfile::tempdir().unwrap();
    for url in ["", "drowse.db", "sqlite://", "mysql://x/y"] {
        assert!(matches!(open(url, folder.path()), StoreError::BadUrl { .. }), "{url:?}");
    }
    let bad = open("postgres://me:secret@host:port/db", folder.path());
    assert!(matches!(bad, StoreError::BadUrl { .. }) && !bad.to_string().contains("secret"), "{bad}");
}

#[test]
fn a_missing_folder_a_missing_file_and_no_database_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let missing = open("sqlite://no/such/folder/drowse.db", folder.path());
    assert!(matches!(missing, StoreError::Missing { .. }), "{missing:?}");
    let careful = Options { create: false, ..options() };
    let missing = Store::open("sqlite://drowse.db", folder.path(), &careful).unwrap_err();
    assert!(matches!(missing, StoreError::Missing { .. }), "{missing:?}");
    assert!(!folder.path().join("drowse.db").exists());

    std::fs::write(
        folder.path().join("text.db"),
        "this is no database, but long enough to be one ".repeat(99),
    )
    .unwrap();
    let garbage = open("sqlite://text.db", folder.path());
    assert!(matches!(garbage, StoreError::Corrupt(_)), "{garbage:?}");
    let is_folder = open("sqlite://.", folder.path());
    assert!(matches!(is_folder, StoreError::Missing { .. }), "{is_folder:?}");

    let Database::Postgres { cluster, .. } = Database::postgres() else { unreachable!("it was asked for") };
    let missing = open(&cluster.url("no_such_database"), folder.path());
    assert!(
        matches!(&missing, StoreError::Missing { name, .. } if name == "no_such_database"),
        "{missing:?}"
    );
    let stranger = cluster.url("postgres").replace("postgres@", "stranger@");
    assert!(matches!(open(&stranger, folder.path()), StoreError::Denied(_)));
    let nobody = open("postgres://postgres@127.0.0.1:1/x", folder.path());
    assert!(matches!(nobody, StoreError::Unavailable(_)) && nobody.is_outage(), "{nobody:?}");
}

#[test]
fn a_full_disk_is_told_and_loses_nothing() {
    let database = Database::sqlite();
    drop(with_worker(&database, "web"));
    let small = Options { sqlite_max_pages: Some(80), ..options() };
    let store = database.open_with(&small).unwrap();
    let mut stored = Vec::new();
    let full = loop {
        let name = format!("w{:04}", stored.len());
        let big = serde_json::json!("x".repeat(20_000));
        match store.tx(|t| t.register(&running(&name), "here", &big, at(1))) {
            Ok(_) => stored.push(name),
            Err(error) => break error,
        }
        assert!(stored.len() < 1_000, "it never fills up");
    };
    assert!(matches!(full, StoreError::Full(_)) && full.is_outage(), "{full:?}");
    for name in &stored {
        assert_eq!(record(&store, name).id(), &id(name));
    }
    // There is room again.
    let store = database.open();
    store.tx(|t| t.nudge(&id("web"), at(1))).unwrap();
    register(&store, "another");
}

#[test]
fn a_database_that_may_only_be_read_says_so() {
    let database = Database::postgres();
    drop(with_worker(&database, "web"));
    let Database::Postgres { cluster, name } = &database else { unreachable!("it was asked for") };
    cluster
        .admin()
        .batch_execute(&format!("ALTER DATABASE {name} SET default_transaction_read_only = on"))
        .unwrap();
    // Opening needs no write; writing does.
    let outcome = database.open_with(&options()).and_then(|store| store.tx(|t| t.nudge(&id("web"), at(1))));
    assert!(matches!(outcome, Err(StoreError::ReadOnly(_))), "{outcome:?}");
}

/// Somebody sits on a lock for ever.
#[test]
fn who_waits_for_too_long_is_told_to_come_again() {
    on_both(|database| {
        drop(with_worker(database, "web"));
        let impatient = Options { lock_for: Duration::from_millis(50), ..options() };
        let (store, other) = (database.open_with(&impatient).unwrap(), database.open());
        let sitting = Party::start(move |steps| {
            other.tx(|t| {
                t.lock_worker(&id("web"))?;
                steps.stop("sits");
                Ok::<_, StoreError>(())
            })
        });
        sitting.reaches("sits");
        let outcome = store.tx(|t| t.nudge(&id("web"), at(1)));
        assert!(
            matches!(&outcome, Err(error @ StoreError::Busy(_)) if error.is_worth_retrying()),
            "{outcome:?}"
        );
        sitting.finish().unwrap();
        store.tx(|t| t.nudge(&id("web"), at(1))).unwrap();
    });
}

/// A replica that stopped in the middle of a transaction must not stop the others.
#[test]
fn a_transaction_that_falls_silent_is_ended() {
    let database = Database::postgres();
    drop(with_worker(&database, "web"));
    let silent = Options { idle_for: Duration::from_millis(50), ..options() };
    let (silent, store) = (database.open_with(&silent).unwrap(), database.open());
    let party = Party::start(move |steps| {
        silent.tx(|t| {
            t.nudge(&id("web"), at(1))?;
            steps.stop("fell silent");
            t.nudge(&id("web"), at(2))
        })
    });
    party.reaches("fell silent");
    store.tx(|t| t.nudge(&id("web"), at(3))).unwrap();
    let outcome = party.finish();
    assert!(matches!(outcome, Err(StoreError::Unavailable(_))), "{outcome:?}");
    assert_eq!(record(&store, "web").next_check_at, Some(at(3)));
}

fn kill_backends(database: &Database) {
    let Database::Postgres { cluster, name } = database else { unreachable!("it was asked for") };
    let sql = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = $1";
    cluster.admin().execute(sql, &[name]).unwrap();
}

#[test]
fn a_connection_that_broke_is_made_anew() {
    let database = Database::postgres();
    let store = with_worker(&database, "web");
    kill_backends(&database);
    store.tx(|t| t.nudge(&id("web"), at(1))).unwrap();
    assert_eq!(record(&store, "web").next_check_at, Some(at(1)));

    // In the middle nothing is repeated: the closure may have done things that count.
    let outcome = store.tx(|t| {
        t.nudge(&id("web"), at(0))?;
        kill_backends(&database);
        t.nudge(&id("web"), at(0))
    });
    assert!(matches!(outcome, Err(StoreError::Unavailable(_))), "{outcome:?}");
    assert_eq!(record(&store, "web").next_check_at, Some(at(1)));
}

/// The answer to the commit is lost: it may have been done, and the caller must look.
#[test]
fn a_connection_that_breaks_during_the_commit_leaves_it_open_what_happened() {
    let database = Database::postgres();
    let store = with_worker(&database, "web");
    let outcome = store.tx(|t| {
        t.nudge(&id("web"), at(1))?;
        kill_backends(&database);
        Ok::<_, StoreError>(())
    });
    assert!(matches!(outcome, Err(StoreError::CommitUnknown(_))), "{outcome:?}");
    assert!(!outcome.unwrap_err().is_worth_retrying());
    store.tx(|t| t.nudge(&id("web"), at(2))).unwrap();
}

#[test]
fn a_server_that_goes_away_and_comes_back() {
    let mut cluster = Cluster::start();
    let name = cluster.database();
    let store = Store::open(&cluster.url(&name), Path::new("/"), &options()).unwrap();
    register(&store, "web");
    cluster.down();
    let outcome = store.tx(|t| t.nudge(&id("web"), at(1)));
    assert!(matches!(&outcome, Err(error) if error.is_outage()), "{outcome:?}");
    let outcome = store.read(|t| t.worker(&id("web")));
    assert!(matches!(outcome, Err(StoreError::Unavailable(_))), "{outcome:?}");
    cluster.up();
    store.tx(|t| t.nudge(&id("web"), at(1))).unwrap();
    assert_eq!(record(&store, "web").next_check_at, Some(at(1)));
}

#[test]
fn a_document_that_cannot_be_read_is_named() {
    on_both(|database| {
        let store = with_worker(database, "web");
        database.sql("UPDATE worker SET doc = '{\"broken\"'");
        let outcome = store.read(|t| t.worker(&id("web")));
        assert!(matches!(&outcome, Err(StoreError::Unreadable { of, .. }) if of == "web"), "{outcome:?}");
    });
}

#[test]
fn a_backup_is_whole_and_overwrites_nothing() {
    let database = Database::sqlite();
    let store = with_worker(&database, "web");
    let copy = database.folder().join("copy.db");
    store.backup(&copy).unwrap();
    assert!(matches!(store.backup(&copy), Err(StoreError::Exists(_))));
    let files: Vec<_> = std::fs::read_dir(database.folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("copy"))
        .collect();
    assert_eq!(files, ["copy.db"], "one file, and nothing half done beside it");
    assert_eq!(
        record(&Store::open("sqlite://copy.db", database.folder(), &options()).unwrap(), "web").site,
        "here"
    );

    let store = Database::postgres().open();
    assert!(matches!(store.backup(Path::new("/nowhere")), Err(StoreError::Unsupported(_))));
}
