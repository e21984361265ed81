//! What the old Drowse carries, when things go wrong: the new one is killed, ends, cannot write or is spoken to by strangers,
//! and the old one is told to end.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::super::survive::cluster::{self, Cluster};
use super::super::up::running::{Folder, signal, until};
use super::drain::{CARRIES_ONE, COUNTED, holds, is_up, sleepy, stays_awake, take_over, talks_until};
use super::echo::{PATIENCE, Talk, words};

#[test]
fn a_new_one_that_is_killed_and_started_again_is_found_again() {
    let folder = Folder::new();
    let web = sleepy(&folder);
    let mut old = folder.up(&[]);
    let mut talk = Talk::begin(web.door).unwrap();
    talk.say(1, b"before").unwrap();
    let mut new = take_over(&folder, &mut old);
    is_up(&mut new);
    let api = folder.api(&new);
    until("it is counted", || holds(&api, "web") == ["connection"]);
    new.kill();
    let again = folder.up(&[]);
    let api = folder.api(&again);
    talks_until(&mut talk, "it is counted", || holds(&api, "web") == ["connection"]);
    stays_awake(&again, &api, "web");
    talk.say(2, b"after").unwrap();
    assert!(!old.is_over());
}

/// Speaks until nothing comes back; what was said last.
#[track_caller]
fn stand_still(talk: &mut Talk) -> u64 {
    let mut id = 10_000;
    until("bytes stand still", || {
        id += 1;
        talk.send(id, &words(id, 3_000)).expect("it is open");
        talk.0.set_read_timeout(Some(Duration::from_secs(1))).expect("a second is a time");
        let has_stopped = talk.0.peek(&mut [0]).is_err();
        talk.0.set_read_timeout(Some(PATIENCE)).expect("a minute is a time");
        if !has_stopped {
            talk.hear(id, &words(id, 3_000)).expect("it goes on");
        }
        has_stopped
    });
    id
}

/// Past what it was promised not a byte moves, because nobody knows of the connection; and none is lost.
#[test]
fn without_a_drowse_bytes_stand_still_until_there_is_one_again() {
    let folder = Folder::new();
    let web = sleepy(&folder);
    let mut old = folder.up(&[]);
    let mut talk = Talk::begin(web.door).unwrap();
    talk.say(1, b"before").unwrap();
    let mut new = take_over(&folder, &mut old);
    is_up(&mut new);
    old.wait_for(COUNTED);
    new.kill();
    let id = stand_still(&mut talk);
    let again = folder.up(&[]);
    talk.hear(id, &words(id, 3_000)).unwrap();
    stays_awake(&again, &folder.api(&again), "web");
    talk.end().unwrap();
    until("the old one has ended", || old.is_over());
}

#[test]
fn on_postgres_too() {
    let cluster = cluster::running();
    let mut folder = Folder::new();
    folder.args = vec!["--database".to_owned(), cluster.url(&cluster.database())];
    let web = sleepy(&folder);
    let mut old = folder.up(&[]);
    let mut talk = Talk::begin(web.door).unwrap();
    talk.say(1, b"before").unwrap();
    let mut new = take_over(&folder, &mut old);
    is_up(&mut new);
    old.wait_for_all(CARRIES_ONE);
    old.wait_for(COUNTED);
    let api = folder.api(&new);
    stays_awake(&new, &api, "web");
    new.kill();
    let mut again = folder.up(&[]);
    old.wait_for(COUNTED);
    talk.say(2, &words(2, 300_000)).unwrap();
    assert_eq!(holds(&folder.api(&again), "web"), ["connection"]);
    talk.end().unwrap();
    until("the old one has ended", || old.is_over());
    assert_eq!(old.code(), Some(0));
    again.wait_for("web paused: idle for 2s");
}

/// Who is in the same process is counted in memory meanwhile; of a guest nobody would know after a crash.
#[test]
fn while_the_new_one_cannot_write_what_the_old_one_carries_stands_still() {
    let mut cluster = Cluster::start();
    let mut folder = Folder::new();
    folder.args = vec!["--database".to_owned(), cluster.url(&cluster.database())];
    let web = sleepy(&folder);
    let mut old = folder.up(&[]);
    let mut talk = Talk::begin(web.door).unwrap();
    talk.say(1, b"before").unwrap();
    let mut new = take_over(&folder, &mut old);
    is_up(&mut new);
    old.wait_for(COUNTED);
    cluster.down();
    let id = stand_still(&mut talk);
    assert!(!new.told().contains("web paused"), "{}", new.told());
    cluster.up();
    talk.hear(id, &words(id, 3_000)).unwrap();
    let api = folder.api(&new);
    until("it is counted", || holds(&api, "web") == ["connection"]);
    talk.say(2, b"after").unwrap();
    talk.end().unwrap();
    until("the old one has ended", || old.is_over());
}

#[test]
fn an_old_one_ends_when_it_is_told_to_and_when_its_time_is_over() {
    let folder = Folder::new();
    folder.append("[router]\ndrain_for = \"3s\"\n");
    let web = sleepy(&folder);
    let mut old = folder.up(&[]);
    let mut talk = Talk::begin(web.door).unwrap();
    talk.say(1, b"before").unwrap();
    let mut new = take_over(&folder, &mut old);
    is_up(&mut new);
    old.wait_for("drowse: cutting 1 connection: drain_for is over");
    assert_eq!(talk.0.read(&mut [0]).unwrap_or(0), 0, "it is cut");
    until("the old one has ended", || old.is_over());
    assert_eq!(old.code(), Some(0));

    let mut talk = Talk::begin(web.door).unwrap();
    talk.say(2, b"again").unwrap();
    let mut third = take_over(&folder, &mut new);
    is_up(&mut third);
    new.wait_for_all(CARRIES_ONE);
    // Told once it gives them some seconds, told twice none.
    signal("-TERM", &new.pid().to_string());
    new.wait_for_all("drowse: ending");
    assert_eq!(new.end(), Some(0), "{}", new.told());
    assert!(new.told().contains("drowse: cutting 1 connection: told to end"), "{}", new.told());
    assert_eq!(talk.0.read(&mut [0]).unwrap_or(0), 0, "it is cut");
    third.wait_for("web paused: idle for 2s");
}

#[test]
fn an_old_one_that_is_killed_holds_nobody() {
    let folder = Folder::new();
    let web = sleepy(&folder);
    let mut old = folder.up(&[]);
    let mut talk = Talk::begin(web.door).unwrap();
    talk.say(1, b"before").unwrap();
    let mut new = take_over(&folder, &mut old);
    is_up(&mut new);
    old.wait_for(COUNTED);
    let api = folder.api(&new);
    assert_eq!(holds(&api, "web"), ["connection"]);
    old.kill();
    until("it is ended at once", || holds(&api, "web").is_empty());
    new.wait_for("web paused: idle for 2s");
}

#[test]
fn when_the_new_one_ends_so_does_the_old() {
    let folder = Folder::new();
    let web = sleepy(&folder);
    let mut old = folder.up(&[]);
    let mut talk = Talk::begin(web.door).unwrap();
    talk.say(1, b"before").unwrap();
    let mut new = take_over(&folder, &mut old);
    is_up(&mut new);
    old.wait_for(COUNTED);
    assert_eq!(new.end(), Some(0), "{}", new.told());
    // It has the time that it has at any end.
    talk.say(2, b"goodbye").unwrap();
    old.wait_for("drowse: cutting 1 connection: the Drowse that has taken over ends");
    until("the old one has ended", || old.is_over());
    assert_eq!(old.code(), Some(0));
}

#[test]
fn a_word_that_is_none_disturbs_nobody() {
    let folder = Folder::new();
    let web = sleepy(&folder);
    let mut old = folder.up(&[]);
    let mut talk = Talk::begin(web.door).unwrap();
    talk.say(1, b"before").unwrap();
    let mut new = take_over(&folder, &mut old);
    is_up(&mut new);
    let socket = folder.data().join("guests");
    assert_eq!(socket.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let begin = br#"{"ask":{"id":1,"ask":{"begin":{"session":"guest-00"}}}}"#;
    let begin = [&begin[..], b"\n"].concat();
    let worse = [begin.clone(), b"{\"ask\":{\"id\":2,\"ask\":\"burn\"}}\n".to_vec()].concat();
    for broken in [
        b"\n".to_vec(),
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        br#"{"ask":{"id":1,"ask":{"begin":{"session":"web"}}}}"#.iter().chain(b"\n").copied().collect(),
        vec![b'x'; 1 << 20],
        vec![0xff; 100],
        worse,
        begin,
    ] {
        hangs_up_on(&socket, &broken);
    }
    let api = folder.api(&new);
    stays_awake(&new, &api, "web");
    talk.say(2, b"after").unwrap();
    talk.end().unwrap();
    until("the old one has ended", || old.is_over());
    new.wait_for("web paused: idle for 2s");
}

/// Says something and has nothing more to say.
fn hangs_up_on(socket: &Path, words: &[u8]) {
    let mut stream = UnixStream::connect(socket).expect("it is up");
    // It may have heard enough before the end.
    let _ = stream.write_all(words);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
}
