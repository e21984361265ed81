use std::path::Path;

use super::*;
use crate::sqlite;
use crate::store::Options;

const FRESH: Epoch = Epoch(7);

fn open(path: &Path) -> Connection {
    Connection::Sqlite(sqlite::Connection::open(path, &Options::new(FRESH)).unwrap())
}

fn file() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("drowse.db");
    (folder, path)
}

const FIRST: &str = "-- min_compatible: 1\nCREATE TABLE one (a INTEGER);";
/// Expands: a program of version 1 does not mind.
const EXPAND: &str = "-- min_compatible: 1\nALTER TABLE one ADD COLUMN b INTEGER;";
/// Contracts: a program of version 1 would miss the column.
const CONTRACT: &str = "-- min_compatible: 2\nALTER TABLE one DROP COLUMN a;";

#[test]
fn every_migration_says_which_program_may_use_its_outcome() {
    for dialect in [&sqlite::DIALECT, &crate::postgres::DIALECT] {
        for (index, migration) in dialect.migrations.iter().enumerate() {
            let number = u32::try_from(index).unwrap() + 1;
            assert!((1..=number).contains(&needs(migration)), "migration {number}");
        }
    }
    assert_eq!(sqlite::DIALECT.migrations.len(), crate::postgres::DIALECT.migrations.len());
}

#[test]
fn the_files_of_both_engines_have_the_same_names_and_each_is_used() {
    let names = |engine: &str| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(engine);
        let mut names: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names("sqlite"), names("postgres"));
    for (index, name) in names("sqlite").iter().enumerate() {
        assert!(name.to_str().unwrap().starts_with(&format!("{:04}_", index + 1)), "{name:?}");
    }
    assert_eq!(names("sqlite").len(), sqlite::DIALECT.migrations.len());
}

#[test]
fn an_older_program_may_use_a_database_that_was_only_expanded() {
    let (_folder, path) = file();
    bring_up_with(&mut open(&path), &[FIRST, EXPAND], FRESH).unwrap();
    bring_up_with(&mut open(&path), &[FIRST], FRESH).unwrap();
    let mut newest = open(&path);
    bring_up_with(&mut newest, &[FIRST, EXPAND, CONTRACT], FRESH).unwrap();
    newest.batch("INSERT INTO one (b) VALUES (1)").unwrap();
}

#[test]
fn a_program_that_is_too_old_is_refused_and_changes_nothing() {
    let (_folder, path) = file();
    bring_up_with(&mut open(&path), &[FIRST, EXPAND, CONTRACT], FRESH).unwrap();
    let refused = bring_up_with(&mut open(&path), &[FIRST], FRESH).unwrap_err();
    assert!(matches!(refused, StoreError::TooNew { database: 3, needs: 2, program: 1 }), "{refused:?}");
    assert!(refused.to_string().contains("newer Drowse"), "{refused}");
    open(&path).batch("INSERT INTO one (b) VALUES (1)").unwrap();
}

#[test]
fn a_migration_that_fails_leaves_the_version_before_it() {
    let (_folder, path) = file();
    let broken = "-- min_compatible: 1\nCREATE TABLE two (a INTEGER);\nNONSENSE;";
    assert!(bring_up_with(&mut open(&path), &[FIRST, broken], FRESH).is_err());
    let mut connection = open(&path);
    bring_up_with(&mut connection, &[FIRST], FRESH).unwrap();
    connection.batch("CREATE TABLE two (a INTEGER)").unwrap();
}
