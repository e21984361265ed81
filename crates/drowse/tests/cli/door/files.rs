//! How many files processes have and may have.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::super::up::running::{Folder, until};
use super::asleep::Sleeper;

/// How many a process has open.
pub(super) fn open_in(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).expect("it lives").count()
}

/// How many kibibytes of memory it has.
pub(super) fn memory_of(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the kernel tells");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// The soft and the hard limit, as the kernel writes them.
fn limits_of(pid: u32) -> [String; 2] {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).expect("it lives");
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("the kernel tells");
    let mut words = line.split_whitespace().map(str::to_owned);
    [words.next().expect("soft"), words.next().expect("hard")]
}

/// Lets this process open as many as it can be let.
pub(super) fn raise_our_own() {
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).expect("up to the hard limit");
}

/// Starts Drowse with this limit; soft and hard, or `-S`: the soft one alone.
pub(super) fn limited(which: &str, files: u32) -> Vec<String> {
    let script = format!("ulimit {which}n {files} && exec \"$0\" \"$@\"");
    vec!["/bin/sh".to_owned(), "-c".to_owned(), script]
}

#[test]
fn drowse_takes_all_files_it_can_have_and_its_children_have_what_they_would_have_had() {
    let mut folder = Folder::new();
    folder.through = limited("-S", 300);
    let told = folder.file("hook.told");
    let hook = format!("ulimit -Sn > {}.new && mv {0}.new {0}", told.display());
    let hook = serde_json::to_string(&["/bin/sh", "-c", &hook]).expect("texts");
    let program = env!("CARGO_BIN_EXE_drowse");
    let command = [program, "__demo-worker", "web", "127.0.0.1:{port}"];
    let more = format!("policy.idle_timeout = \"1s\"\npolicy.before_pause = {hook}");
    let sleeper = Sleeper::list(&folder, "web", &command, &more);
    let mut up = folder.up(&[]);
    let [soft, hard] = limits_of(up.pid());
    assert_eq!(soft, hard);
    sleeper.falls_asleep(&mut up);
    let record = fs::read_to_string(folder.data().join("process/web/state.json")).expect("it is there");
    let record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
    let worker = record["identity"]["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("a pid");
    assert_eq!(limits_of(worker), ["300".to_owned(), hard]);
    until("the hook has told", || told.exists());
    assert_eq!(fs::read_to_string(&told).expect("it is there"), "300\n");
}
