//! TLS by server name.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::super::text;
use super::super::up::running::{Folder, free_port};
use super::nginx::Nginx;

#[test]
fn a_tls_client_wakes_the_worker_that_it_names() {
    let folder = Folder::new();
    let shared = free_port();
    folder.append(&format!("router.tls = [\"127.0.0.1:{shared}\"]\n"));
    let more = |name: &str| {
        format!(
            "sni = \"{name}\"
tls_target = \"127.0.0.1:{{tls}}\"
policy.idle_timeout = \"2s\""
        )
    };
    let lab = Nginx::list(&folder, "lab", "lab.example.org", &more("lab.example.org"));
    let web = Nginx::list(&folder, "web", "web.example.org", &more("*.example.org"));
    let mut up = folder.up(&[]);
    up.wait_for_all("lab paused: idle for 2s");

    // The certificate is the worker's own: nobody on the way could have shown it.
    let answer = lab.https("lab.example.org", shared, "/");
    assert_eq!(text(&answer.stdout), "hello from lab\n", "{}", text(&answer.stderr));
    up.wait_for("lab running again: wake, by connection");
    let answer = web.https("web.example.org", shared, "/");
    assert_eq!(text(&answer.stdout), "hello from web\n", "{}", text(&answer.stderr));

    let answer = lab.https("elsewhere.example.net", shared, "/");
    assert_eq!(answer.status.code(), Some(35), "{}", text(&answer.stderr));
    assert!(text(&answer.stderr).contains("unrecognized name"), "{}", text(&answer.stderr));

    // Nobody can put a page into a TLS connection, so there is one beside it.
    let api = folder.api(&up);
    up.wait_for("lab paused");
    let page = api.send("GET", "/wake/lab", "");
    assert!(page.contains("It is paused.") && page.contains("<button>Wake it</button>"), "{page}");
    let woken = api.send("POST", "/wake/lab", "");
    assert!(woken.starts_with("HTTP/1.1 303 ") && woken.contains("location: /wake/lab"), "{woken}");
    up.wait_for("lab running again: wake, by connection");
    let page = api.send("GET", "/wake/lab", "");
    assert!(page.contains(&format!("url=https://lab.example.org:{shared}/")), "{page}");

    // Garbage is told nothing, and costs nobody else anything.
    let mut stream = TcpStream::connect(("127.0.0.1", shared)).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: lab.example.org\r\n\r\n").unwrap();
    let mut told = Vec::new();
    let _ = stream.read_to_end(&mut told);
    assert!(told.is_empty(), "{told:?}");

    // The name leads elsewhere as soon as the configuration says so.
    folder.rewrite(|old| old.replace("sni = \"lab.example.org\"", "sni = \"new.example.org\""));
    up.hang_up();
    up.wait_for("drowse: the configuration was read again");
    let answer = lab.https("lab.example.org", shared, "/");
    assert!(!answer.status.success(), "now it is the star's, whose certificate is another");
    up.wait_for_all("lab paused");
}
