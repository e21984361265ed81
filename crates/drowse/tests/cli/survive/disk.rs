//! A disk that is full or read-only. The data folder lies on a small file system of its own, which only Drowse and
//! whoever looks through its eyes can see.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use drowse_core::worker::Power;

use super::law::{all_is_well, at_rest};
use super::stand::{Engine, Stand};
use super::truth;
use super::wait::{seconds, until};
use crate::text;
use crate::up::running::{Folder, Up};

/// `unshare` gives the process a view of its own of what is mounted; whoever is not root becomes it in there.
fn mounted(data: &Path, options: &str, then: &str) -> Vec<String> {
    fs::create_dir_all(data).unwrap();
    let script = format!("mount -t tmpfs -o {options} tmpfs \"$0\" && {then}exec \"$@\"");
    let mut words = vec!["/usr/bin/unshare", "--mount"];
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        words.extend(["--user", "--map-root-user"]);
    }
    words.extend(["--", "/bin/sh", "-c"]);
    let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    words.extend([script, data.display().to_string()]);
    words
}

/// Takes all the room that is left.
fn fill(data: &Path) -> PathBuf {
    let path = data.join("filler");
    let mut file = File::create(&path).unwrap();
    for block in [vec![0; 65_536], vec![0; 4_096], vec![0; 1]] {
        while file.write_all(&block).is_ok() {}
    }
    path
}

fn integrity(stand: &Stand) -> String {
    let folder = stand.copy().unwrap();
    let database = rusqlite::Connection::open(folder.path().join("copy.db")).unwrap();
    database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap()
}

fn look_through(stand: &Stand, up: &Up) {
    *stand.root.lock().unwrap() = Some(PathBuf::from(format!("/proc/{}/root", up.pid())));
}

#[test]
fn while_the_disk_is_full_nothing_is_put_to_sleep_and_connections_still_wake() {
    let mut stand = Stand::new(Engine::Sqlite);
    stand.worker(0, "policy.idle_timeout = \"1s\"\npolicy.stop_after = \"1h\"");
    stand.worker(1, "policy.idle_timeout = \"4s\"\npolicy.stop_after = \"1h\"");
    stand.folder.through = mounted(&stand.folder.data(), "size=12m,mode=700", "");
    let mut up = stand.up();
    look_through(&stand, &up);
    stand.wait_for(0, "paused");
    stand.ask(1).unwrap();
    let wakes = stand.count(0, "worker.resumed");
    let filler = fill(&stand.data());

    let line =
        up.wait_for("drowse: the database cannot be written to: there is no room left for the database");
    assert!(line.contains("nothing is put to sleep until it can"), "{line}");
    stand.ask(0).unwrap();
    assert_eq!(truth::power(stand.target(0)), Power::Running);
    until("it says that it is not ready", || if stand.is_ready() { Err(String::new()) } else { Ok(()) });
    let refused = stand.order(1, "pause").unwrap();
    assert_eq!(refused.0, 503, "{}", refused.1);
    // Longer than either of the timeouts.
    seconds(6.0);
    for number in [0, 1] {
        assert_eq!(truth::power(stand.target(number)), Power::Running, "{}", up.told());
    }

    fs::remove_file(filler).unwrap();
    up.wait_for("drowse: the database can be written to again");
    until("it is ready", || if stand.is_ready() { Ok(()) } else { Err(String::new()) });
    for number in [0, 1] {
        stand.wait_for(number, "paused");
        at_rest(&stand, number, "there is room again");
    }
    assert_eq!(stand.count(0, "worker.resumed"), wakes + 1, "{}", stand.story(0));
    all_is_well(&stand, 0, "afterwards");
    assert_eq!(integrity(&stand), "ok");
}

#[test]
fn a_disk_that_is_full_at_the_start_is_one_clear_line_and_no_data_is_lost() {
    let mut stand = Stand::new(Engine::Sqlite);
    stand.worker(0, "policy.idle_timeout = \"1h\"");
    let data = stand.folder.data();
    let mut up = stand.up();
    stand.wait_for(0, "running");
    assert_eq!(up.end(), Some(0));
    // Moved onto the small file system by the next start, and brought back by the one after it.
    let kept = data.with_file_name("kept");
    fs::rename(&data, &kept).unwrap();
    let then = format!(
        "cp -a \"{}/.\" \"$0\" && {{ dd if=/dev/zero of=\"$0/filler\" 2>/dev/null; true; }} && ",
        kept.display()
    );
    stand.folder.through = mounted(&data, "size=2m,mode=700", &then);
    let output = stand.folder.fails(&["--listen", "127.0.0.1:0"]);
    let told = text(&output.stderr);
    assert_eq!(told.lines().count(), 1, "{told}");
    let is_named = ["there is no room left for the database", "No space left on device"];
    assert!(is_named.iter().any(|words| told.contains(words)), "{told}");

    let then = format!("cp -a \"{}/.\" \"$0\" && ", kept.display());
    stand.folder.through = mounted(&data, "size=12m,mode=700", &then);
    let up = stand.up();
    look_through(&stand, &up);
    all_is_well(&stand, 0, "there is room");
    assert_eq!(integrity(&stand), "ok");
}

#[test]
fn a_data_folder_that_cannot_be_written_to_is_one_clear_line() {
    let mut folder = Folder::new();
    folder.through = mounted(&folder.data(), "ro,mode=700", "");
    let told = text(&folder.fails(&[]).stderr);
    let begins =
        format!("drowse: cannot use the data folder {}: Read-only file system", folder.data().display());
    assert!(told.starts_with(&begins), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
}
