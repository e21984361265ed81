//! Workers that hang up, are not ready yet, or speak something else.

use super::*;

/// A worker that keeps connections open and hangs up on the second request of each, as servers do whose patience
/// has just ended.
fn forgetful(stream: TcpStream) {
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
    let _ = reader.read(&mut [0; 1]);
}

#[test]
fn a_connection_that_a_worker_has_given_up_loses_no_request() {
    let bench = Bench::new();
    let door = web(&bench, &Rules::default(), forgetful);
    let mut stream = BufReader::new(call(&door));
    for round in 0..20 {
        stream.get_mut().write_all(get("web.example.org", "").as_bytes()).unwrap();
        assert_eq!(hear(&mut stream).text(), "ok", "round {round}");
    }
}

static ASKED: AtomicUsize = AtomicUsize::new(0);

#[test]
fn a_worker_that_is_not_ready_yet_is_asked_until_it_is() {
    let bench = Bench::new();
    // A port forwarder: it takes connections and drops them until the program behind it is up.
    let hangs_up = program(|mut stream| {
        if ASKED.fetch_add(1, Ordering::SeqCst) < 5 {
            let _ = stream.read(&mut [0; 8]);
            return;
        }
        tells(stream);
    });
    let door = shared(&bench, &Rules::default(), &[("web", hangs_up.into())]);
    sleeps(&bench, "web");
    let request = "POST /once HTTP/1.1\r\nHost: web.example.org\r\nContent-Length: 5\r\n\r\nhello";
    let heard = ask(&door, request);
    assert_eq!(
        (heard.status, heard.text().as_str()),
        (200, "POST /once HTTP/1.1 web.example.org 127.0.0.1 - 5")
    );
    assert_eq!(bench.plane.wakes("web"), 1);
}

static READY: AtomicUsize = AtomicUsize::new(0);

#[test]
fn a_worker_that_says_when_it_is_ready_is_believed() {
    let bench = Bench::new();
    let warms_up = program(|mut stream| {
        let mut head = [0; 1024];
        let read = stream.read(&mut head).unwrap_or(0);
        if head[..read].starts_with(b"GET /ready ") {
            let status = if READY.fetch_add(1, Ordering::SeqCst) < 3 { "503 Wait" } else { "204 Ready" };
            let _ = stream.write_all(format!("HTTP/1.1 {status}\r\n\r\n").as_bytes());
            return;
        }
        let asked = READY.load(Ordering::SeqCst);
        let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{asked}").as_bytes());
    });
    let ready = Ready { place: warms_up.into(), path: "/ready".to_owned() };
    let target = Target { ready: Some(Arc::new(ready)), ..warms_up.into() };
    let door = shared(&bench, &Rules::default(), &[("web", target)]);
    sleeps(&bench, "web");
    assert_eq!(ask(&door, &get("web.example.org", "")).text(), "4", "not before it said so");
}

#[test]
fn a_worker_without_an_answer_is_a_bad_gateway() {
    let bench = Bench::new();
    let silent = program(|mut stream| {
        let mut head = [0; 1024];
        // Whoever only looks whether it stands sends nothing.
        if stream.read(&mut head).unwrap_or(0) > 0 && head.starts_with(b"GET /first") {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let garbage = program(|mut stream| {
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.6\r\n");
    });
    let door = shared(&bench, &Rules::default(), &[("silent", silent.into()), ("garbage", garbage.into())]);
    assert_eq!(ask(&door, "GET /first HTTP/1.1\r\nHost: silent.example.org\r\n\r\n").status, 200);
    // It has answered in this run: what it does now is its own business, and a POST is not said twice.
    let heard = ask(&door, "POST / HTTP/1.1\r\nHost: silent.example.org\r\nContent-Length: 1\r\n\r\nx");
    assert_eq!(heard.status, 502);
    assert_eq!(heard.text(), "drowse: silent: it closed the connection without an answer\n");
    let heard = ask(&door, &get("garbage.example.org", ""));
    assert_eq!(heard.status, 502);
    assert!(heard.text().starts_with("drowse: garbage: its answer is no HTTP"), "{}", heard.text());
}

static DONE: AtomicUsize = AtomicUsize::new(0);

/// It does what it is asked, closes without a word, and says at `/ready` that all is well.
fn does_and_closes(mut stream: TcpStream) {
    let mut head = [0; 1024];
    let read = stream.read(&mut head).unwrap_or(0);
    if head[..read].starts_with(b"GET /ready ") {
        let _ = stream.write_all(b"HTTP/1.1 204 Ready\r\n\r\n");
    } else if read > 0 {
        DONE.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn what_a_worker_has_done_is_not_asked_for_again() {
    let bench = Bench::new();
    let address = program(does_and_closes);
    let ready = Ready { place: address.into(), path: "/ready".to_owned() };
    let target = Target { ready: Some(Arc::new(ready)), ..address.into() };
    let door = shared(&bench, &Rules::default(), &[("bare", address.into()), ("ready", target)]);
    for (worker, methods) in [("bare", &["POST"][..]), ("ready", &["POST", "GET"])] {
        sleeps(&bench, worker);
        for method in methods {
            DONE.store(0, Ordering::SeqCst);
            let request = format!("{method} /pay HTTP/1.1\r\nHost: {worker}.example.org\r\n");
            let heard = ask(&door, &(request + "Content-Length: 0\r\n\r\n"));
            assert_eq!(heard.status, 502, "{method} to {worker}: {}", heard.text());
            assert_eq!(DONE.load(Ordering::SeqCst), 1, "{method} to {worker}");
        }
    }
}

#[test]
fn what_is_said_after_a_body_is_heard_by_whoever_takes_it() {
    let bench = Bench::new();
    let door = web(&bench, &Rules::default(), |mut stream| {
        let mut head = [0; 1024];
        let read = stream.read(&mut head).unwrap_or(0);
        let is_taken = String::from_utf8_lossy(&head[..read]).contains("te: trailers\r\n");
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n";
        let _ = stream.write_all(format!("{head}2\r\nok\r\n0\r\nx-sum: {is_taken}\r\n\r\n").as_bytes());
    });
    let ends_with = |more: &str, end: &str| {
        let mut stream = call(&door);
        let request = get("web.example.org", &format!("Connection: close\r\n{more}"));
        stream.write_all(request.as_bytes()).unwrap();
        let heard = String::from_utf8(rest(&mut stream)).unwrap();
        assert!(heard.contains("trailer: x-sum\r\n") && heard.ends_with(end), "{heard}");
    };
    ends_with("TE: trailers\r\n", "2\r\nok\r\n0\r\nx-sum: true\r\n\r\n");
    ends_with("", "2\r\nok\r\n0\r\n\r\n");
}

#[test]
fn a_connection_that_has_carried_a_body_is_not_used_again() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let bench = Bench::new();
    // Says on which of its connections it was asked.
    let door = web(&bench, &Rules::default(), |stream| {
        let mut writer = stream.try_clone().unwrap();
        let mut reader = BufReader::new(stream);
        let mut number = None;
        loop {
            let (mut head, mut length) = (String::new(), 0);
            while !head.ends_with("\r\n\r\n") {
                if reader.read_line(&mut head).unwrap_or(0) == 0 {
                    return;
                }
            }
            if let Some((_, rest)) = head.split_once("content-length: ") {
                length = rest.lines().next().unwrap().parse().unwrap();
            }
            reader.read_exact(&mut vec![0; length]).unwrap();
            let number = number.get_or_insert_with(|| CALLS.fetch_add(1, Ordering::SeqCst));
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{number}");
            writer.write_all(answer.as_bytes()).unwrap();
        }
    });
    let mut stream = BufReader::new(call(&door));
    let mut asks = |method: &str| {
        let body = if method == "GET" { "\r\n" } else { "content-length: 5\r\n\r\nhello" };
        let request = format!("{method} / HTTP/1.1\r\nHost: web.example.org\r\n{body}");
        stream.get_mut().write_all(request.as_bytes()).unwrap();
        hear(&mut stream).text()
    };
    let on = ["GET", "GET", "POST", "GET", "GET", "PUT"].map(&mut asks);
    // Which of the others share one is a matter of luck: one that is left a moment too late is taken the next time.
    for with_body in [2, 5] {
        assert_eq!(on.iter().filter(|one| **one == on[with_body]).count(), 1, "{on:?}");
    }
}
