//! What the commands ask, what they print and how they end.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::server::{answer, drowse, golden, run, run_raw, serve};

fn ok(name: &str) -> (u16, String) {
    (200, golden(name).to_string())
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn one_page() -> (u16, String) {
    let mut page = golden("worker_page");
    page["next"] = Value::Null;
    let mut asleep = page["workers"][0].clone();
    asleep["id"] = "db".into();
    asleep["status"] = "paused".into();
    asleep["sleep"] = golden("sleep");
    asleep["target_pause_at"] = Value::Null;
    asleep["target_pause_blocked_by"] = "not_running".into();
    asleep["last_activity_at"] = Value::Null;
    asleep["owner"] = Value::Null;
    page["workers"].as_array_mut().expect("a list").push(asleep);
    (200, page.to_string())
}

#[test]
fn ps_says_what_keeps_each_worker_awake_and_when_it_sleeps() {
    let ran = run(&["ps", "--owner", "alice"], vec![one_page()]);
    assert_eq!(
        ran.stdout,
        "\
WORKER  STATUS   KEPT AWAKE BY                SLEEPS  LAST ACTIVITY  OWNER
web     running  connections, lease of build  in 40m  10m ago        alice
db      paused   (asleep: manual, alice)      -       -              -
"
    );
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(ran.asked, ["GET /api/v1/workers?owner=alice"]);
    let ran = run(&["ps", "--json"], vec![one_page()]);
    assert_eq!(json_of(&ran.stdout)["workers"][0]["id"], "web");
}

/// A sleep that is vetoed each time looks like one in sight, and a deletion is no mere sleep.
#[test]
fn ps_says_that_a_sleep_was_vetoed_and_that_a_deletion_is_in_sight() {
    let mut page: Value = serde_json::from_str(&one_page().1).expect("a page");
    page["at"] = "2026-03-01T10:00:00Z".into();
    let awake = |id: &str| {
        let mut worker = page["workers"][0].clone();
        worker["id"] = id.into();
        worker["reasons"] = json!([]);
        worker["target_pause_at"] = "2026-03-01T10:05:00Z".into();
        worker["target_pause_reason"] = "idle_timeout".into();
        worker["last_activity_at"] = Value::Null;
        worker
    };
    let (mut vetoed, mut spare) = (awake("vetoed"), awake("spare"));
    vetoed["vetoes"] = 3.into();
    spare["target_pause_reason"] = "scale_down".into();
    let mut asleep = page["workers"][1].clone();
    asleep["stops_at"] = "2026-03-01T10:01:00Z".into();
    asleep["deletes_at"] = "2026-03-02T10:00:00Z".into();
    page["workers"] = json!([vetoed, spare, asleep]);
    let ran = run(&["ps"], vec![(200, page.to_string())]);
    assert_eq!(
        ran.stdout,
        "\
WORKER  STATUS   KEPT AWAKE BY                   SLEEPS                        LAST ACTIVITY  OWNER
vetoed  running  vetoed by before_pause 3 times  in 5m                         -              alice
spare   running  -                               deleted in 5m                 -              alice
db      paused   (asleep: manual, alice)         stopped in 1m, deleted in 1d  -              -
"
    );
    let ran = run(&["ps", "--json"], vec![(200, page.to_string())]);
    let listed = json_of(&ran.stdout);
    assert_eq!(listed["workers"][0]["vetoes"], 3);
    assert_eq!(listed["workers"][2]["deletes_at"], "2026-03-02T10:00:00Z");
}

#[test]
fn explain_gives_reasons_signals_holds_and_policy() {
    let ran = run(&["explain", "web"], vec![ok("explanation")]);
    assert_eq!(ran.code, Some(0));
    for part in [
        "web (running): awake",
        "\nreasons\n  recent_activity",
        "\nwhat would have to change for it to sleep\n  connections becomes quiet\n",
        "  cpu          required  quiet    10s old",
        "\nholds\n  lease  build  ends in 10m  nightly build\n",
        "  idle_timeout  30m    owner alice (run-time, bob)\n",
        "\nnext check in ",
    ] {
        assert!(ran.stdout.contains(part), "{part:?} is not in\n{}", ran.stdout);
    }
    assert!(!ran.stdout.contains("heartbeat_interval"), "built-in settings only with --all");
    let ran = run(&["explain", "web", "--all", "--at", "2026-03-01T09:30:00Z"], vec![ok("explanation")]);
    assert!(ran.stdout.contains("heartbeat_interval"));
    assert_eq!(ran.asked, ["GET /api/v1/workers/web/explain?at=2026-03-01T09%3A30%3A00Z"]);
}

#[test]
fn show_is_about_one_worker() {
    let answers = || vec![ok("worker"), ok("worker_activity"), ok("worker_idle_status")];
    let ran = run(&["show", "web"], answers());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for part in
        ["last paused    40m ago (idle_timeout, by drowse)", "start_lab  lab_id=l-7", "3 automatic, 0 manual"]
    {
        assert!(ran.stdout.contains(part), "{part:?} is not in\n{}", ran.stdout);
    }
    let ran = run(&["show", "web", "--json"], answers());
    assert_eq!(json_of(&ran.stdout)["activity"]["auto_pause_count"], 3);
}

#[test]
fn an_action_says_no_more_than_is_true() {
    let mut accepted = golden("action_answer");
    accepted["answer"] = "accepted".into();
    accepted["status"] = "pausing".into();
    let ran = run(&["pause", "web", "-m", "noon", "--force"], vec![(202, accepted.to_string())]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "web is pausing\n"));
    assert_eq!(ran.asked, [r#"POST /api/v1/workers/web/pause {"message":"noon","force":true}"#]);
    let ran = run(&["resume", "web"], vec![ok("action_answer")]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "web is already running\n"));
    let ran = run(&["drain", "web", "--cancel", "--json"], vec![ok("action_answer")]);
    assert_eq!(ran.asked, ["DELETE /api/v1/workers/web/drain"]);
    assert_eq!(json_of(&ran.stdout)["worker_id"], "web");
}

#[test]
fn a_worker_is_forgotten() {
    let ran = run_raw(&["forget", "web"], vec![answer(204, "text/plain", b"")]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "web is forgotten\n"));
    assert_eq!(ran.asked, ["DELETE /api/v1/workers/web"]);
}

#[test]
fn a_refusal_is_told_and_the_others_are_still_asked_for() {
    let refused = (409, golden("problem").to_string());
    let ran = run(&["stop", "web"], vec![refused.clone()]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert_eq!(
        ran.stderr,
        "drowse: 1 hold(s) keep the worker awake; --force (in the API, force) overrules them [held]\n  \
         lease of build until 2026-03-01T09:40:00Z: nightly build\n"
    );
    let ran = run(&["stop", "web", "db"], vec![refused, ok("action_answer")]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "web is already running\n"));
    assert!(ran.stderr.starts_with("drowse: web: 1 hold(s)"), "{}", ran.stderr);
}

#[test]
fn nobody_there_is_exit_code_3_and_wrong_usage_2() {
    let address = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("it is bound");
    let url = format!("http://{address}");
    for args in [&["ps"][..], &["pause", "web", "db"], &["events"], &["brake", "status"]] {
        let output = drowse(args, &[("DROWSE_URL", &url)]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{args:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(stderr.contains("start one with `drowse up`"), "{stderr}");
    }
    for args in [&["pause"][..], &["terminate", "web"], &["snooze", "web", "--for", "48"], &["nap"]] {
        assert_eq!(drowse(args, &[("DROWSE_URL", &url)]).status.code(), Some(2), "{args:?}");
    }
    assert_eq!(drowse(&["ps", "--url", "https://x"], &[]).status.code(), Some(1));
}

#[test]
fn a_keep_awake_is_taken_and_ended() {
    let ran = run(&["snooze", "web", "--for", "90m", "-m", "demo"], vec![ok("hold")]);
    assert_eq!(ran.stdout, "web is kept awake until 2026-03-01T09:40:00Z\n");
    assert_eq!(ran.asked, [r#"POST /api/v1/workers/web/snooze {"for":"1h30m","message":"demo"}"#]);
    let ran = run_raw(&["snooze", "web", "--end"], vec![answer(204, "text/plain", b"")]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
    assert_eq!(ran.asked, ["DELETE /api/v1/workers/web/snooze"]);
}

#[test]
fn policy_is_listed_and_changed() {
    let ran = run(&["policy", "list"], vec![ok("policy_list")]);
    assert!(ran.stdout.contains("owner/alice  max_runtime   never  run-time  bob\n"), "{}", ran.stdout);
    let args = ["policy", "set", "group/student", "idle_timeout=30m", "window=3", "-m", "exams"];
    let ran = run(&args, vec![ok("policy_change")]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(
        ran.asked,
        [
            r#"PATCH /api/v1/policies/group/student {"set":{"idle_timeout":"30m","window":3},"reset":[],"message":"exams"}"#
        ]
    );
    let ran = run(&["policy", "reset", "global", "window"], vec![ok("policy_change")]);
    assert_eq!(ran.asked, [r#"PATCH /api/v1/policies/global {"set":{},"reset":["window"],"message":""}"#]);
}

#[test]
fn switches_tokens_brake_and_exemptions() {
    let ran = run(&["disable", "web"], vec![ok("idle_detection")]);
    assert_eq!(ran.stdout, "web is only observed\n");
    assert_eq!(ran.asked, ["POST /api/v1/workers/web/idle-detection/disable {}"]);

    let ran = run(
        &["token", "create", "grafana", "--role", "viewer"],
        vec![(201, golden("created_token").to_string())],
    );
    assert_eq!(ran.stdout, "not-a-real-secret\n", "only the secret is data");
    assert_eq!(ran.asked, [r#"POST /api/v1/tokens {"name":"grafana","role":"viewer"}"#]);
    let ran = run(&["token", "list"], vec![ok("token_list")]);
    assert!(ran.stdout.contains("t-1    grafana  viewer"), "{}", ran.stdout);

    let ran = run(&["brake", "release", "-m", "planned"], vec![ok("brake")]);
    assert_eq!(ran.asked, [r#"POST /api/v1/brake/release {"message":"planned"}"#]);
    assert!(ran.stdout.starts_with("engaged, fleet gone (12 of 30 workers), since"), "{}", ran.stdout);

    let args = [
        "exempt",
        "add",
        "--owner",
        "bob",
        "--reason",
        "r",
        "--approved-by",
        "carol",
        "--expires-on",
        "never",
    ];
    let ran = run(&args, vec![(201, golden("exemption").to_string())]);
    assert!(ran.stdout.contains("x-1        owner/bob  idle_timeout, max_runtime"), "{}", ran.stdout);
    let sent = json!({ "owner": "bob", "from": ["idle_timeout", "max_runtime"], "reason": "r",
        "approved_by": "carol", "expires_on": "never" });
    let body = ran.asked[0].split_once('{').map(|(_, body)| format!("{{{body}")).expect("a body");
    assert_eq!(json_of(&body), sent);

    let ran = run(&["detect", "web"], vec![ok("idle_detection_result")]);
    assert!(ran.stdout.starts_with("web: idle for "), "{}", ran.stdout);
}

#[test]
fn events_are_shown_oldest_first() {
    let mut page = golden("event_page");
    let mut older = page["events"][0].clone();
    older["id"] = "1f-41".into();
    older["message"] = "older".into();
    page["events"].as_array_mut().expect("a list").push(older);
    let ran = run(&["events", "-n", "2", "--worker", "web"], vec![(200, page.to_string())]);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(lines[0].ends_with("older") && lines[1].ends_with("by drowse"), "{}", ran.stdout);
    assert_eq!(ran.asked, ["GET /api/v1/events?limit=2&worker=web"]);
    let ran = run(&["events", "--json"], vec![(200, page.to_string())]);
    assert_eq!(
        ran.stdout.lines().map(|line| json_of(line)["id"].clone()).collect::<Vec<_>>(),
        ["1f-41", "1f-42"]
    );
}

#[test]
fn following_goes_on_after_a_break_where_it_was() {
    let event = |id: &str| {
        let mut event = golden("event");
        event["id"] = id.into();
        format!("id: {id}\nevent: worker.paused\ndata: {event}\n\n")
    };
    let stream = |body: String| {
        let head = "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        [head.as_bytes(), body.as_bytes()].concat()
    };
    let page = answer(200, "application/json", golden("event_page").to_string().as_bytes());
    let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback works");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let server = serve(listener, vec![page, stream(event("1f-43")), stream(event("1f-44"))]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_drowse"))
        .args(["events", "--follow", "--json", "--url", &url])
        .env_clear()
        .env("DROWSE_TOKEN", "s3cret")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("cargo has built the binary");
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let ids: Vec<Value> = lines.take(3).map(|line| json_of(&line.expect("UTF-8"))["id"].clone()).collect();
    child.kill().expect("it runs until it is ended");
    child.wait().expect("it is our child");
    assert_eq!(ids, ["1f-42", "1f-43", "1f-44"]);
    assert_eq!(
        server.join().expect("it has answered"),
        [
            "GET /api/v1/events?limit=20",
            "GET /api/v1/events/stream last-event-id: 1f-42",
            "GET /api/v1/events/stream last-event-id: 1f-43"
        ]
    );
}

#[test]
fn a_backup_is_whole_or_not_there() {
    let dir = tempfile::tempdir().expect("a folder for temporary files");
    let path = dir.path().join("copy.db");
    let file = path.to_string_lossy().into_owned();
    let mut database = vec![0; 2 * 4096];
    database[..16].copy_from_slice(b"SQLite format 3\0");
    database[16..18].copy_from_slice(&4096_u16.to_be_bytes());
    database[28..32].copy_from_slice(&2_u32.to_be_bytes());
    let backup = |args: &[&str], body: &[u8]| {
        run_raw(&[&["backup", &file], args].concat(), vec![answer(200, "application/vnd.sqlite3", body)])
    };

    for broken in [&b"<html>"[..], &database[..4096]] {
        let ran = backup(&[], broken);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert_eq!(std::fs::read_dir(dir.path()).expect("a folder").count(), 0, "nothing is left behind");
    }
    let ran = backup(&["--json"], &database);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(json_of(&ran.stdout)["size_bytes"], 8192);
    assert_eq!(ran.asked, ["POST /api/v1/backup"]);
    assert_eq!(std::fs::read(&path).expect("the copy"), database);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = path.metadata().expect("the copy").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "it holds hashes of tokens");
    }
    let output = drowse(&["backup", &file], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--force replaces it"));
}
