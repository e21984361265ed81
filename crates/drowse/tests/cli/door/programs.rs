//! Programs that know nothing of Drowse, on both sides of the door, while the worker is asleep.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Duration;

use super::super::survive::cluster;
use super::super::text;
use super::super::up::running::{Folder, free_port};
use super::asleep::Sleeper;
use super::echo::{PYTHON, beside};
use super::nginx::{Nginx, curl};

const IDLE: &str = "policy.idle_timeout = \"2s\"";

/// Runs a client and gives what it said.
#[track_caller]
fn said(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn curl_wakes_nginx_and_asks_twice_on_one_connection() {
    let folder = Folder::new();
    let door = free_port();
    Nginx::list(&folder, "web", "web.example.org", &format!("listen = \"127.0.0.1:{door}\"\n{IDLE}"));
    let mut up = folder.up(&[]);
    up.wait_for("web paused: idle");
    let url = format!("http://127.0.0.1:{door}/");
    let answer = curl(&["--write-out", "%{http_code} %{num_connects}\n", &url, &url]);
    let told = "hello from web\n200 1\nhello from web\n200 0\n";
    assert_eq!(text(&answer.stdout), told, "{}", text(&answer.stderr));
    up.wait_for("web running again: wake, by connection");
}

#[test]
fn psql_and_pgbench_wake_postgresql() {
    let mut folder = Folder::new();
    // `runuser` is for administrators.
    folder.variables = vec![("PATH".to_owned(), "/usr/sbin:/usr/bin:/sbin:/bin".to_owned())];
    let place = tempfile::tempdir().expect("a folder");
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).expect("it is ours");
    let data = place.path().join("data").display().to_string();
    said(Command::new("cp").arg("-r").arg(cluster::template()).arg(&data));
    let server = cluster::as_postgres(&cluster::programs().join("postgres").display().to_string());
    let mut command = vec![server.get_program()];
    command.extend(server.get_args());
    let mut command: Vec<&str> = command.iter().map(|word| word.to_str().expect("UTF-8")).collect();
    if rustix::process::geteuid().is_root() {
        said(Command::new("chown").args(["-R", "postgres", &data]));
    }
    let socket = place.path().display().to_string();
    command.extend(["-D", &data, "-k", &socket, "-h", "127.0.0.1", "-p", "{port}", "-c", "fsync=off"]);
    let sleeper = Sleeper::list(&folder, "db", &command, IDLE);
    let door = sleeper.door.port().to_string();
    let client = |program: &str| {
        let mut client = Command::new(cluster::programs().join(program));
        client.args(["-h", "127.0.0.1", "-p", &door, "-U", "postgres"]).env("PGDATABASE", "postgres");
        client
    };

    let mut up = folder.up(&[]);
    sleeper.falls_asleep(&mut up);
    let answer = said(client("psql").args(["--no-psqlrc", "-At", "-c", "SELECT 6 * 7"]));
    assert_eq!(answer, "42\n");
    sleeper.was_woken(&mut up);
    said(client("pgbench").args(["-i", "-q", "-s", "1"]));

    sleeper.falls_asleep(&mut up);
    let answer = said(client("pgbench").args(["-n", "-c", "4", "-t", "25"]));
    assert!(answer.contains("number of transactions actually processed: 100/100"), "{answer}");
    assert!(answer.contains("number of failed transactions: 0 "), "{answer}");
    sleeper.was_woken(&mut up);

    // What was done is still there after another sleep.
    sleeper.falls_asleep(&mut up);
    let history =
        said(client("psql").args(["--no-psqlrc", "-At", "-c", "SELECT count(*) FROM pgbench_history"]));
    assert_eq!(history, "100\n");
}

#[test]
fn redis_cli_wakes_redis_which_has_forgotten_nothing() {
    let folder = Folder::new();
    let place = folder.file("redis");
    fs::create_dir(&place).expect("the folder is ours");
    let place = place.display().to_string();
    let command = ["redis-server", "--bind", "127.0.0.1", "--port", "{port}", "--save", "", "--dir", &place];
    let sleeper = Sleeper::list(&folder, "cache", &command, IDLE);
    let door = sleeper.door.port().to_string();
    let cli = |words: &[&str]| said(Command::new("redis-cli").args(["-p", &door]).args(words));

    let mut up = folder.up(&[]);
    sleeper.falls_asleep(&mut up);
    assert_eq!(cli(&["SET", "colour", "blue"]), "OK\n");
    sleeper.was_woken(&mut up);
    sleeper.falls_asleep(&mut up);
    assert_eq!(cli(&["GET", "colour"]), "blue\n");
    sleeper.was_woken(&mut up);
    assert_eq!(cli(&["-r", "100", "INCR", "count"]).lines().last(), Some("100"));
}

/// Events come for longer than the worker may be idle: an open stream holds it.
#[test]
fn a_client_of_server_sent_events_wakes_their_server_and_hears_them_all() {
    let folder = Folder::new();
    let script = beside("sse.py");
    let idle = "policy.idle_timeout = \"1s\"";
    let sleeper = Sleeper::list(&folder, "events", &[PYTHON, "-E", &script, "{port}"], idle);
    let mut up = folder.up(&[]);
    sleeper.falls_asleep(&mut up);
    let url = format!("http://{}/", sleeper.door);
    let answer = curl(&["--no-buffer", "--header", "accept: text/event-stream", &url]);
    let wanted =
        (0..6).fold(String::new(), |all, number| format!("{all}id: {number}\ndata: tick {number}\n\n"));
    assert_eq!(text(&answer.stdout), wanted, "{}", text(&answer.stderr));
    let before = up.told().len();
    sleeper.falls_asleep(&mut up);
    let meanwhile = &up.told()[before..];
    assert_eq!(meanwhile.matches("events paused").count(), 1, "it slept during the stream: {meanwhile}");
}

#[test]
fn a_websocket_client_wakes_its_server_and_stays_connected() {
    let folder = Folder::new();
    let script = beside("websocket.py");
    let idle = "policy.idle_timeout = \"1s\"";
    let sleeper = Sleeper::list(&folder, "shouts", &[PYTHON, "-E", &script, "{port}"], idle);
    let mut up = folder.up(&[]);
    sleeper.falls_asleep(&mut up);
    let url = format!("ws://{}/", sleeper.door);
    let (mut socket, answer) = tungstenite::connect(&url).expect("it is let in");
    assert_eq!(answer.status(), 101);
    let mut shout = |words: &str| {
        socket.send(words.into()).expect("it is heard");
        socket.read().expect("it is answered").into_text().expect("a text").to_string()
    };
    assert_eq!(shout("first words"), "FIRST WORDS");
    sleeper.was_woken(&mut up);
    // Silent for longer than the worker may be idle: the connection holds it.
    std::thread::park_timeout(Duration::from_secs(3));
    assert_eq!(sleeper.status(&up), "running");
    assert_eq!(shout(&"long ".repeat(1_000)), "LONG ".repeat(1_000));
    socket.close(None).expect("it says goodbye");
    while socket.read().is_ok() {}
    drop(socket);
    sleeper.falls_asleep(&mut up);
}
