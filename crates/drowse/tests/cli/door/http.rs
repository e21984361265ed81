//! HTTP by host, with nginx and curl.

use std::fs;

use super::super::text;
use super::super::up::running::{Folder, ask, free_port};
use super::nginx::{Nginx, curl};

/// Asks a host at a port of ours.
fn http(host: &str, port: u16, path: &str, more: &[&str]) -> String {
    let resolve = format!("{host}:{port}:127.0.0.1");
    let url = format!("http://{host}:{port}{path}");
    let answer = curl(&[&["--resolve", &resolve, "--include", &url], more].concat());
    assert!(answer.status.success(), "{}", text(&answer.stderr));
    text(&answer.stdout).replace("\r\n", "\n")
}

#[test]
fn a_request_wakes_the_worker_whose_host_it_names() {
    let folder = Folder::new();
    let shared = free_port();
    folder.append(&format!("[router]\nhttp = [\"127.0.0.1:{shared}\"]\nrobot_paths = [\"/healthz\"]\n"));
    let more = |name: &str| format!("host = \"{name}\"\npolicy.idle_timeout = \"2s\"");
    Nginx::list(&folder, "lab", "lab.example.org", &more("lab.example.org"));
    Nginx::list(&folder, "web", "web.example.org", &more("*.example.org"));
    let mut up = folder.up(&[]);
    up.wait_for_all("lab paused: idle for 2s");

    let answer = http("lab.example.org", shared, "/", &[]);
    assert!(answer.starts_with("HTTP/1.1 200 OK\n") && answer.ends_with("hello from lab\n"), "{answer}");
    assert!(answer.contains("drowse-cold-start-ms: "), "{answer}");
    up.wait_for("lab running again: wake, by connection");
    let answer = http("any.example.org", shared, "/headers", &[]);
    assert!(answer.ends_with(&format!("any.example.org:{shared}|127.0.0.1|http")), "{answer}");

    // Both hosts on one connection, which stays: each request is led by itself, and a pause between two is none of
    // the worker's business.
    let twice = curl(&[
        "--resolve",
        &format!("lab.example.org:{shared}:127.0.0.1"),
        "--write-out",
        "%{num_connects} ",
        &format!("http://lab.example.org:{shared}/"),
        &format!("http://lab.example.org:{shared}/"),
    ]);
    assert_eq!(text(&twice.stdout), "hello from lab\n1 hello from lab\n0 ", "{}", text(&twice.stderr));

    let answer = http("elsewhere.example.net", shared, "/", &[]);
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    assert!(answer.ends_with("drowse: no worker answers to elsewhere.example.net\n"), "{answer}");

    up.wait_for("lab paused");
    let answer = http("lab.example.org", shared, "/healthz", &[]);
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("drowse-state: dormant\n"), "{answer}");
    // Whom a person put to sleep, a person wakes; whoever asks is told by whom.
    let api = folder.api(&up);
    http("lab.example.org", shared, "/", &[]);
    up.wait_for("lab running again");
    let paused =
        api.send("POST", "/api/v1/workers/lab/pause", "{\"message\":\"spring cleaning\",\"force\":true}");
    assert!(paused.starts_with("HTTP/1.1 20"), "{paused}");
    up.wait_for("lab paused");
    let answer = http("lab.example.org", shared, "/", &[]);
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("drowse-state: asleep\n"), "{answer}");
    assert_eq!(answer.matches("put to sleep by admin").count(), 1, "who, and once: {answer}");
    assert!(answer.contains("spring cleaning"), "why: {answer}");
}

#[test]
fn a_port_of_its_own_can_speak_http_with_a_page_of_ones_own() {
    let folder = Folder::new();
    let listen = free_port();
    fs::write(folder.file("waiting.html"), "<h1>{{worker}} gets up</h1>{{follow}}").unwrap();
    fs::write(folder.file("wake.token"), "0123456789abcdef\n").unwrap();
    Nginx::list(
        &folder,
        "web",
        "web.example.org",
        &format!(
            "listen = \"127.0.0.1:{listen}\"\nprotocol = \"http\"\nwaiting_page = \"waiting.html\"\n\
             wake_token_file = \"wake.token\"\nready_path = \"/missing\"\nwait_for = \"2s\"\n\
             policy.idle_timeout = \"2s\""
        ),
    );
    let mut up = folder.up(&[]);
    up.wait_for_all("web paused: idle for 2s");
    let answer = ask(listen, "/", "");
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("drowse-state: refused"), "{answer}");
    // It is never ready, as it says itself, so the page stays, and who waits is told in the end.
    let token = "drowse-wake-token: 0123456789abcdef\r\n";
    let page = ask(listen, "/", &format!("accept: text/html\r\n{token}"));
    assert!(page.contains("<h1>web gets up</h1><noscript>"), "{page}");
    let answer = ask(listen, "/", token);
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("retry-after: 5"), "{answer}");
    assert!(answer.contains("drowse: web: it runs, but was not ready to answer within 2 s"), "{answer}");

    folder.rewrite(|old| old.replace("/missing", "/"));
    up.hang_up();
    up.wait_for("drowse: the configuration was read again");
    let answer = ask(listen, "/", token);
    assert!(answer.ends_with("hello from web\n"), "{answer}");
}

#[test]
fn what_is_wrong_with_the_terms_is_one_clear_line() {
    let folder = Folder::new();
    folder.append("[router]\nwaiting_page = \"page.html\"\n");
    let failed = folder.fails(&[]);
    let said = text(&failed.stderr);
    assert!(said.contains("waiting_page page.html: No such file or directory"), "{said}");
    fs::write(folder.file("page.html"), "hello").unwrap();
    let said = text(&folder.fails(&[]).stderr);
    assert!(said.contains("it lacks {{follow}}"), "{said}");
    folder.rewrite(|_| "[router]\nwake_token_file = \"token\"\n".to_owned());
    fs::write(folder.file("token"), "short\n").unwrap();
    let said = text(&folder.fails(&[]).stderr);
    assert!(said.contains("expected one word of at least 16 letters and digits"), "{said}");
    assert!(!said.contains("short"), "a secret stays one: {said}");
}
