//! `drowse up` with real processes: what sleeps, what wakes, what survives.

#[path = "up/running.rs"]
pub(crate) mod running;

use std::net::TcpListener;

use super::text;
use running::{Folder, free_port, get};

#[test]
fn a_worker_sleeps_when_idle_and_a_connection_wakes_it() {
    let folder = Folder::new();
    let web = folder.worker("web", "2s");
    let mut up = folder.up(&[]);
    up.wait_for("web running for the first time");
    up.wait_for("web paused: idle for 2s");
    let answer = get(web.door, "/first-bytes");
    assert!(answer.contains("hello from web"), "{answer}");
    assert!(answer.contains("you asked: GET /first-bytes HTTP/1.1"), "{answer}");
    up.wait_for("web running again: wake, by connection");
    up.wait_for("web paused: idle for 2s");
}

#[test]
fn a_worker_that_was_frozen_when_drowse_was_killed_is_woken_by_the_next_one() {
    let folder = Folder::new();
    let web = folder.worker("web", "2s");
    let mut up = folder.up(&[]);
    let before = running::pid_in(&get(web.door, "/"));
    up.wait_for("web paused");
    up.kill();

    let mut up = folder.up(&[]);
    let answer = get(web.door, "/after");
    assert!(answer.contains("you asked: GET /after"), "{answer}");
    assert_eq!(running::pid_in(&answer), before, "it was started again instead of adopted");
    up.wait_for("web running again");
}

#[test]
fn a_clean_end_leaves_workers_running_and_none_frozen() {
    let folder = Folder::new();
    let web = folder.worker("web", "2s");
    let mut up = folder.up(&[]);
    let before = running::pid_in(&get(web.door, "/"));
    up.wait_for("web paused");
    let code = up.end();
    assert_eq!(code, Some(0), "{}", up.told());
    assert!(up.told().contains("; thawed: web\n"), "{}", up.told());
    // Past the door, which is gone: a frozen worker would not answer.
    assert_eq!(running::pid_in(&get(web.target, "/")), before);
    assert!(!folder.data().join("address").exists(), "nobody answers there any more");

    let mut up = folder.up(&[]);
    assert_eq!(running::pid_in(&get(web.door, "/")), before, "it was started again instead of adopted");
    up.wait_for("web paused");
    assert!(!up.told().contains("changed from outside"), "{}", up.told());
}

#[test]
fn what_is_frozen_can_be_left_so_for_a_restart() {
    let folder = Folder::new();
    let web = folder.worker("web", "2s");
    let mut up = folder.up(&["--keep-frozen"]);
    up.wait_for("web paused");
    assert_eq!(up.end(), Some(0), "{}", up.told());
    assert!(up.told().contains("; still frozen: web\n"), "{}", up.told());

    let mut up = folder.up(&[]);
    assert!(get(web.door, "/").contains("hello from web"));
    up.wait_for("web running again: wake, by connection");
}

#[test]
fn a_configuration_is_read_again_and_an_invalid_one_keeps_the_old() {
    let folder = Folder::new();
    folder.worker("one", "1h");
    let mut up = folder.up(&[]);
    up.wait_for("one running for the first time");

    folder.append("this is no toml\n");
    up.hang_up();
    up.wait_for("drowse: the old configuration stays: drowse.toml:");
    folder.rewrite(|old| old.replace("this is no toml\n", ""));
    let two = folder.worker("two", "1h");
    up.hang_up();
    up.wait_for("drowse: the configuration was read again: 2 listed workers");
    assert!(get(two.door, "/").contains("hello from two"));
}

#[test]
fn two_never_share_a_data_folder() {
    let folder = Folder::new();
    let up = folder.up(&[]);
    let output = folder.fails(&["--listen", "127.0.0.1:0"]);
    let data = folder.data();
    let line = format!("the data folder {} is in use by another Drowse (pid {})", data.display(), up.pid());
    assert_eq!(text(&output.stderr), format!("drowse: {line}\n"));
}

#[test]
fn two_never_share_a_database_and_the_death_of_one_makes_room_at_once() {
    for database in ["sqlite", "postgres"] {
        let cluster = crate::survive::cluster::running();
        let (mut one, mut other) = (Folder::new(), Folder::new());
        let url = match database {
            "sqlite" => format!("sqlite://{}", one.data().with_file_name("shared.db").display()),
            _ => cluster.url(&cluster.database()),
        };
        for folder in [&mut one, &mut other] {
            folder.args = vec!["--database".to_owned(), url.clone()];
        }
        let up = one.up(&[]);
        let output = other.fails(&["--listen", "127.0.0.1:0"]);
        let told = text(&output.stderr);
        let end = ": another Drowse looks after this database already; two cannot share one yet\n";
        assert!(told.starts_with("drowse: cannot open the database ") && told.ends_with(end), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
        up.kill();
        let _up = other.up(&[]);
    }
}

/// The looks are quicker than the hint of its end: whichever comes first, it exited and nobody stopped it.
#[test]
fn a_command_that_fails_at_once_is_started_again_and_given_up_in_the_end() {
    let folder = Folder::new();
    folder.append(
        "[[worker]]\nid = \"bad\"\ndriver = \"process\"\ncommand = [\"/bin/sh\", \"-c\", \"exit 7\"]\n\
         [[worker]]\nid = \"done\"\ndriver = \"process\"\ncommand = [\"true\"]\n",
    );
    let mut up = folder.up(&[]);
    for _ in 0..5 {
        up.wait_for("bad exited by itself with code 7");
    }
    up.wait_for("bad failed: it exited with code 7 right after its start, again and again");
    assert!(up.told().contains("done exited by itself with code 0"), "{}", up.told());
    assert!(!up.told().contains("changed from outside"), "{}", up.told());
    assert!(!up.told().contains("refused"), "{}", up.told());
}

#[test]
fn a_command_that_cannot_run_says_why_and_fails_after_the_third_time() {
    let folder = Folder::new();
    folder.append("[[worker]]\nid = \"bad\"\ndriver = \"process\"\ncommand = [\"/no/such/program\"]\n");
    let mut up = folder.up(&[]);
    for attempt in 1..=3 {
        let line = up.wait_for("bad driver refused (");
        assert!(line.contains("/no/such/program") && line.contains(&format!("({attempt} of 3)")), "{line}");
    }
    up.wait_for("bad failed: the driver refused three times: ");
    let token = std::fs::read_to_string(folder.data().join("admin-token")).unwrap();
    let address = std::fs::read_to_string(folder.data().join("address")).unwrap();
    let port: u16 = address.trim().rsplit(':').next().unwrap().parse().unwrap();
    let header = format!("authorization: Bearer {}\r\n", token.trim());
    let answer = running::ask(port, "/api/v1/workers/bad", &header);
    assert!(answer.contains("\"failed\"") && answer.contains("/no/such/program"), "{answer}");
}

#[test]
fn what_lies_in_the_data_folder_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    folder.worker("web", "1h");
    let mut up = folder.up(&[]);
    up.wait_for("web running for the first time");
    for file in ["drowse.db", "drowse.db-wal", "drowse.db.lock", "process/web/state.json", "admin-token"] {
        let mode = folder.data().join(file).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{file} {mode:o}");
    }
    assert!(!up.told().contains("others may look"), "{}", up.told());
    up.end();
    std::fs::set_permissions(folder.data(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut up = folder.start(&["--listen", "127.0.0.1:0"]);
    up.wait_for("others may look into the data folder");
    up.wait_for("drowse: up at");
}

#[test]
fn a_worker_that_is_frozen_when_the_file_drops_it_runs_again_and_leaves() {
    let folder = Folder::new();
    let web = folder.worker("web", "2s");
    let mut up = folder.up(&[]);
    up.wait_for("web paused: idle for 2s");
    folder.rewrite(|_| String::new());
    up.hang_up();
    up.wait_for("drowse: the configuration was read again: 0 listed workers");
    up.wait_for("web running again: undo, by removal");
    // Past the door, which is gone: a frozen worker would not answer.
    assert!(get(web.target, "/").contains("hello from web"));
    folder.api(&up).wait_until_gone("web");
    assert!(get(web.target, "/").contains("hello from web"));
    assert_eq!(up.end(), Some(0), "{}", up.told());
    assert_eq!(up.told().matches("web paused").count(), 1, "{}", up.told());
}

#[test]
fn a_worker_that_comes_by_the_api_has_a_door_and_takes_it_with_it() {
    let folder = Folder::new();
    let web = folder.worker("web", "1h");
    let mut up = folder.up(&[]);
    up.wait_for("web running for the first time");
    let (door, target) = (free_port(), free_port());
    let program = env!("CARGO_BIN_EXE_drowse");
    let body = |door: u16, target: u16| {
        format!(
            "{{\"id\":\"api\",\"driver\":\"process\",\"listen\":\"127.0.0.1:{door}\",\"target\":\"127.0.0.1:{target}\",\
             \"command\":[\"{program}\",\"__demo-worker\",\"api\",\"127.0.0.1:{target}\"]}}"
        )
    };
    let api = folder.api(&up);
    // Another's door, and a way round in a circle.
    for (door, target) in [(web.door, target), (door, web.door)] {
        let answer = api.send("POST", "/api/v1/workers", &body(door, target));
        assert!(answer.starts_with("HTTP/1.1 422 ") && answer.contains("worker web"), "{answer}");
    }
    let answer = api.send("POST", "/api/v1/workers", &body(door, target));
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    up.wait_for("api running for the first time");
    assert!(get(door, "/").contains("hello from api"));
    up.end();

    // Its door is in the books.
    let up = folder.up(&[]);
    assert!(get(door, "/").contains("hello from api"));
    let answer = folder.api(&up).send("DELETE", "/api/v1/workers/api", "");
    assert!(answer.starts_with("HTTP/1.1 2"), "{answer}");
    running::until("the door is closed", || std::net::TcpStream::connect(("127.0.0.1", door)).is_err());
}

#[test]
fn a_deleted_worker_that_the_file_still_lists_is_made_anew_when_it_is_read_again() {
    let folder = Folder::new();
    let web = folder.worker("web", "1h");
    let mut up = folder.up(&[]);
    up.wait_for("web running for the first time");
    let before = running::pid_in(&get(web.door, "/"));
    // By force: that connection may still be counted.
    let answer = folder.api(&up).send("POST", "/api/v1/workers/web/terminate", "{\"force\":true}");
    assert!(answer.starts_with("HTTP/1.1 2"), "{answer}");
    up.wait_for("web gone");
    up.hang_up();
    up.wait_for("web running for the first time");
    assert_ne!(running::pid_in(&get(web.door, "/")), before);
}

#[test]
fn a_reload_that_cannot_be_done_changes_nothing() {
    let folder = Folder::new();
    let web = folder.worker("web", "1h");
    let mut up = folder.up(&[]);
    up.wait_for("web running for the first time");
    // The policy is right and the new worker is, but its port is not free.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    folder.rewrite(|old| format!("policy.window = 7\n{}", old.replace("\"1h\"", "\"2h\"")));
    folder.append(&format!(
        "[[worker]]\nid = \"late\"\ndriver = \"process\"\ncommand = [\"sleep\", \"1000\"]\n\
         listen = \"127.0.0.1:{port}\"\ntarget = \"127.0.0.1:1\"\n"
    ));
    up.hang_up();
    up.wait_for("drowse: the old configuration stays: ");
    let answer = folder.api(&up).send("GET", "/api/v1/workers/web/explain", "");
    assert!(!answer.contains("\"2h\""), "{answer}");
    let all = folder.api(&up).send("GET", "/api/v1/workers", "");
    assert!(!all.contains("\"late\""), "{all}");
    assert!(get(web.door, "/").contains("hello from web"));
}

/// Stops everything of a worker by hand, where Drowse freezes by cgroup: it is paused from outside, and a person's
/// resume lets it go on.
#[test]
fn a_worker_stopped_by_hand_is_paused_from_outside_and_can_be_resumed() {
    let folder = Folder::new();
    let web = folder.worker("web", "1h");
    let mut up = folder.up(&[]);
    let pid = running::pid_in(&get(web.door, "/"));
    running::signal("-STOP", &pid.to_string());
    let api = folder.api(&up);
    running::until("it is seen", || {
        api.send("POST", "/api/v1/workers/web/detect-idle", "{}");
        api.send("GET", "/api/v1/workers/web", "").contains("\"paused\"")
    });
    up.wait_for_all("web changed from outside: paused");
    let answer = api.send("POST", "/api/v1/workers/web/resume", "{}");
    assert!(answer.starts_with("HTTP/1.1 2"), "{answer}");
    up.wait_for("web running again: manual");
    assert_eq!(running::pid_in(&get(web.door, "/")), pid);
}

/// A worker in crash back-off is not frozen: the end does not wait for its next try.
#[test]
fn the_end_does_not_wait_for_a_worker_that_will_be_tried_again() {
    let folder = Folder::new();
    folder.append("[[worker]]\nid = \"bad\"\ndriver = \"process\"\ncommand = [\"false\"]\n");
    let mut up = folder.up(&[]);
    for _ in 0..4 {
        up.wait_for("bad exited by itself with code 1");
    }
    assert_eq!(up.end(), Some(0), "{}", up.told());
    // Waited for, it would have been tried for the last time and given up.
    assert!(!up.told().contains("bad failed"), "{}", up.told());
    assert!(!up.told().contains("not back in time"), "{}", up.told());
}

#[test]
fn a_port_in_use_is_named_with_whose_it_was_to_be() {
    let folder = Folder::new();
    let web = folder.worker("web", "2s");
    let taken = TcpListener::bind(("127.0.0.1", web.door)).unwrap();
    let output = folder.fails(&["--listen", "127.0.0.1:0"]);
    let line = format!("port {} of 127.0.0.1 is already in use; it is wanted for worker web", web.door);
    assert_eq!(text(&output.stderr), format!("drowse: {line}\n"));
    drop(taken);

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let output = folder.fails(&["--listen", &format!("127.0.0.1:{port}")]);
    let line = format!("port {port} of 127.0.0.1 is already in use; it is wanted for the API");
    assert!(text(&output.stderr).starts_with(&format!("drowse: {line}")), "{}", text(&output.stderr));
}

#[test]
fn a_folder_or_a_database_that_cannot_be_used_is_one_clear_line() {
    let folder = Folder::new();
    let nowhere = format!("postgres://nobody@127.0.0.1:{}/none", free_port());
    for (args, begins) in [
        (&["--data", "drowse.toml/data"][..], "drowse: cannot use the data folder drowse.toml/data: "),
        (&["--database", "sqlite://no/such/folder.db"], "drowse: cannot open the database "),
        (&["--database", &nowhere], &format!("drowse: cannot open the database {nowhere}: ")),
        (&["--database", "mysql://x"], "drowse: --database: expected \"sqlite://FILE\""),
        (&["--database", "postgres://a:secret@h/d"], "drowse: --database: secrets do not stand"),
    ] {
        let output = folder.fails(args);
        let told = text(&output.stderr);
        assert!(told.starts_with(begins), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(!told.contains("secret@"), "{told}");
    }
}

#[test]
fn a_bad_configuration_is_one_clear_line_and_nothing_is_touched() {
    for (config, line) in [
        ("[policy]\nwindow = 0\nidle_timout = \"5m\"\n", "drowse.toml:2:10: window: "),
        (
            "[[worker]]\nid = \"a\"\ndriver = \"sim\"\n",
            "drowse.toml: worker a: the sim driver is for tests only",
        ),
    ] {
        let folder = Folder::new();
        folder.rewrite(|_| config.to_owned());
        let output = folder.fails(&[]);
        let told = text(&output.stderr);
        assert!(told.starts_with(&format!("drowse: {line}")), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(!folder.data().exists());
    }
}

#[test]
fn the_demo_says_what_to_try_and_leaves_nothing_behind() {
    let folder = Folder::new();
    let mut up = folder.start(&["--demo"]);
    let line = up.wait_for("curl http://");
    let door: u16 = line.trim().rsplit(':').next().unwrap().parse().unwrap();
    for worker in ["web-1", "web-2", "build"] {
        up.wait_for_all(&format!("{worker} running for the first time"));
    }
    assert!(get(door, "/").contains("hello from web-1"));
    assert_eq!(up.end(), Some(0), "{}", up.told());
    assert!(!folder.data().join("demo").exists());
    assert!(std::net::TcpStream::connect(("127.0.0.1", door)).is_err());
}

#[test]
fn the_api_answers_to_the_token_in_the_data_folder_and_to_nobody_else() {
    let folder = Folder::new();
    folder.worker("web", "1h");
    let mut up = folder.up(&[]);
    up.wait_for("web running for the first time");
    let read = |name: &str| std::fs::read_to_string(folder.data().join(name)).unwrap().trim().to_owned();
    let port: u16 = read("address").rsplit(':').next().unwrap().parse().unwrap();
    let token = read("admin-token");
    let ask = |header: &str| running::ask(port, "/api/v1/workers", header);
    assert!(ask(&format!("authorization: Bearer {token}\r\n")).starts_with("HTTP/1.1 200 "));
    assert!(ask("").starts_with("HTTP/1.1 401 "));
    up.end();

    // Kept over a restart, so that a script need not read it again.
    let _up = folder.up(&[]);
    assert_eq!(read("admin-token"), token);
}

#[test]
fn plain_http_beyond_this_machine_must_be_asked_for_by_name() {
    let folder = Folder::new();
    let output = folder.fails(&["--listen", "0.0.0.0:0"]);
    assert!(text(&output.stderr).ends_with("or insist with --plain-http\n"), "{}", text(&output.stderr));
}
