//! What is wrong before anything is begun: one clear line, an exit code, and nothing is touched.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;

use super::cluster::Cluster;
use super::law::all_is_well;
use super::stand::{Engine, Stand};
use crate::text;

/// Expects one line that begins so, and nothing else.
#[track_caller]
fn refuses(stand: &Stand, args: &[&str], begins: &str) {
    let output = stand.folder.fails(&[&["--listen", "127.0.0.1:0"], args].concat());
    let told = text(&output.stderr);
    assert!(told.starts_with(begins), "{told:?} does not begin with {begins:?}");
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn a_file_that_is_no_database_is_left_as_it_is() {
    let stand = Stand::new(Engine::Sqlite);
    let file = stand.folder.data().join("drowse.db");
    DirBuilder::new().mode(0o700).create(stand.folder.data()).unwrap();
    for no_database in
        [b"a letter to the editor. ".repeat(400), b"SQLite format 3\0and nothing of the kind".to_vec()]
    {
        fs::write(&file, &no_database).unwrap();
        let begins = format!(
            "drowse: cannot open the database {}: the database is damaged, or is none",
            file.display()
        );
        refuses(&stand, &[], &begins);
        assert_eq!(fs::read(&file).unwrap(), no_database);
    }
}

#[test]
fn a_database_of_a_newer_drowse_is_left_as_it_is() {
    let cluster = Cluster::start();
    let name = cluster.database();
    for url in ["sqlite://drowse.db".to_owned(), cluster.url(&name)] {
        let stand = Stand::at(url.clone());
        stand.worker(0, "policy.idle_timeout = \"1h\"");
        let mut up = stand.up();
        stand.wait_for(0, "running");
        assert_eq!(up.end(), Some(0), "{}", up.told());
        let say = |version: u32| {
            let sql =
                format!("UPDATE meta SET value = '{version}' WHERE key IN ('schema', 'min_compatible')");
            if url.starts_with("sqlite") {
                let file = stand.folder.data().join("drowse.db");
                rusqlite::Connection::open(file).unwrap().execute_batch(&sql).unwrap();
            } else {
                cluster.connect(&name).batch_execute(&sql).unwrap();
            }
        };
        say(99);
        refuses(&stand, &[], "drowse: cannot open the database ");
        let told = text(&stand.folder.fails(&[]).stderr);
        assert!(told.contains("the database was written by a newer Drowse (version 99"), "{told}");
        say(1);
        let _up = stand.up();
        all_is_well(&stand, 0, "nothing was lost");
    }
}

#[test]
fn a_server_without_the_database_or_without_leave_is_one_clear_line() {
    let cluster = Cluster::start();
    let stand = Stand::at(cluster.url("no_such_database"));
    let url = cluster.url("no_such_database");
    refuses(
        &stand,
        &[],
        &format!("drowse: cannot open the database {url}: there is no database no_such_database"),
    );
    let url = cluster.url("postgres").replace("postgres@", "stranger@");
    let stand = Stand::at(url.clone());
    refuses(
        &stand,
        &[],
        &format!("drowse: cannot open the database {url}: access to the database is refused"),
    );
}
