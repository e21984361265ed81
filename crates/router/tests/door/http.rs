//! HTTP by host, with clients and workers that are sockets and a few lines of text.

mod broken;
mod client;
mod cut;
mod slow;
mod worker;

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use drowse_router::http::Page;
use drowse_router::route::{Ready, Robots, Rules, Sources, Target, Waiting, WakeToken};
use drowse_router::{Closing, Leads, Limits, Listener, Names, Open, Route};
use drowse_wire::control::{EdgeCause, Slept};

use super::plane::{id, program, until};
use crate::{Bench, call, ends, rest};

/// An answer.
#[derive(Debug)]
struct Heard {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Heard {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// Reads one answer and leaves the connection for the next.
fn hear(stream: &mut BufReader<TcpStream>) -> Heard {
    let mut head = String::new();
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).unwrap() > 0, "it ended after {head:?}");
        if line == "\r\n" {
            break;
        }
        head.push_str(&line);
    }
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut answer = Heard { status, head, body: Vec::new() };
    if let Some(length) = answer.header("content-length") {
        answer.body = vec![0; length.parse().unwrap()];
        stream.read_exact(&mut answer.body).unwrap();
    } else if answer.header("transfer-encoding") == Some("chunked") {
        loop {
            let mut size = String::new();
            stream.read_line(&mut size).unwrap();
            let size = usize::from_str_radix(size.trim(), 16).unwrap();
            let mut piece = vec![0; size + 2];
            stream.read_exact(&mut piece).unwrap();
            if size == 0 {
                break;
            }
            answer.body.extend(&piece[..size]);
        }
    }
    answer
}

fn ask(door: &Open, request: &str) -> Heard {
    let mut stream = BufReader::new(call(door));
    stream.get_mut().write_all(request.as_bytes()).unwrap();
    hear(&mut stream)
}

fn get(host: &str, more: &str) -> String {
    format!("GET /a?b HTTP/1.1\r\nHost: {host}\r\n{more}\r\n")
}

/// Answers every request with its first line, the body's length, and what it was told about the client.
fn tells(stream: TcpStream) {
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line == "\r\n" {
                break;
            }
            head.push_str(&line);
        }
        let field = |name: &str| {
            let found = head.lines().find_map(|line| line.split_once(": ").filter(|(key, _)| *key == name));
            found.map_or("-", |(_, value)| value).to_owned()
        };
        let mut body = vec![0; field("content-length").parse().unwrap_or(0)];
        reader.read_exact(&mut body).unwrap();
        let line = head.lines().next().unwrap();
        let text = format!(
            "{line} {} {} {} {}",
            field("host"),
            field("x-forwarded-for"),
            field("drowse-wake-token"),
            body.len()
        );
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len());
        if writer.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// A port that leads by host to these workers, all on the same terms.
fn shared(bench: &Bench, rules: &Rules, workers: &[(&str, Target)]) -> Open {
    let rules = Arc::new(rules.clone());
    let routes = workers.iter().map(|(name, target)| {
        bench.plane.set(name, |_| {});
        // The target is another than that of a route on the usual terms.
        let nowhere = ([0, 0, 0, 0], 0).into();
        let route =
            Route { rules: Arc::clone(&rules), target: target.clone(), ..Route::to(id(name), nowhere) };
        (format!("{name}.example.org").parse().unwrap(), Arc::new(route))
    });
    let names = Arc::new(Names::new(routes.collect::<Vec<_>>()));
    bench.router.open(Listener::bind(([127, 0, 0, 1], 0).into()).unwrap(), Leads::Http(names))
}

fn web(bench: &Bench, rules: &Rules, serve: fn(TcpStream)) -> Open {
    shared(bench, rules, &[("web", program(serve).into())])
}

fn sleeps(bench: &Bench, worker: &str) {
    bench.plane.set(worker, |subject| subject.is_awake = false);
}

#[test]
fn every_request_of_a_connection_goes_to_the_host_that_it_names() {
    let bench = Bench::new();
    let [one, two] = [program(tells), program(tells)];
    let door = shared(&bench, &Rules::default(), &[("one", one.into()), ("two", two.into())]);
    sleeps(&bench, "two");
    let mut stream = BufReader::new(call(&door));
    for (host, name) in
        [("one.example.org", "one"), ("two.example.org:80", "two"), ("ONE.example.org", "one")]
    {
        stream.get_mut().write_all(get(host, "").as_bytes()).unwrap();
        let heard = hear(&mut stream);
        assert_eq!((heard.status, heard.text()), (200, format!("GET /a?b HTTP/1.1 {host} 127.0.0.1 - 0")));
        let is_cold = heard.header("drowse-cold-start-ms").is_some();
        assert_eq!(is_cold, name == "two", "{}", heard.head);
    }
    assert_eq!((bench.plane.wakes("one"), bench.plane.wakes("two")), (0, 1));
    // A connection that is only kept for the next request holds nobody.
    until("both are let go", || bench.open("one") + bench.open("two"), |open| *open == 0);
    for name in ["one", "two"] {
        until("the hold is given back", || bench.plane.edges(name), |edges| edges.last().unwrap().0 == 0);
    }
    stream.get_mut().write_all(get("nobody.example.org", "").as_bytes()).unwrap();
    let heard = hear(&mut stream);
    assert_eq!(
        (heard.status, heard.text().as_str()),
        (404, "drowse: no worker answers to nobody.example.org\n")
    );
    stream.get_mut().write_all(get("two.example.org", "").as_bytes()).unwrap();
    assert_eq!(hear(&mut stream).status, 200, "and the connection goes on");
}

#[test]
fn a_request_is_held_with_its_body_until_the_worker_is_there() {
    let bench = Bench::new();
    let door = web(&bench, &Rules::default(), tells);
    bench.plane.set("web", |subject| (subject.is_awake, subject.wakes) = (false, false));
    let mut stream = BufReader::new(call(&door));
    let body = "x".repeat(200_000);
    let request =
        format!("POST /up HTTP/1.1\r\nHost: web.example.org\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let mut writer = stream.get_ref().try_clone().unwrap();
    let writing = std::thread::spawn(move || writer.write_all(request.as_bytes()).unwrap());
    until("it waits", || bench.router.door(&id("web")).waiting(), |waiting| *waiting == 1);
    bench.plane.set("web", |subject| subject.wakes = true);
    assert_eq!(hear(&mut stream).text(), "POST /up HTTP/1.1 web.example.org 127.0.0.1 - 200000");
    writing.join().unwrap();
    let counts = bench.router.door(&id("web")).counts();
    assert!(counts.to_worker >= 200_000 && counts.to_client > 0, "{counts:?}");
}

#[test]
fn somebody_with_a_browser_gets_a_page_that_tells_when_the_worker_is_there() {
    let bench = Bench::new();
    let door = web(&bench, &Rules::default(), tells);
    bench.plane.set("web", |subject| (subject.is_awake, subject.wakes) = (false, false));
    let html = "Accept: text/html,*/*;q=0.8\r\n";
    let page = ask(&door, &get("web.example.org", html));
    assert_eq!(page.status, 503, "{}", page.head);
    assert_eq!(page.header("drowse-state"), Some("waking"));
    assert_eq!(page.header("retry-after"), Some("2"));
    assert!(page.text().contains("being woken") && page.text().contains("/.well-known/drowse/wake"));

    let mut follows = BufReader::new(call(&door));
    let request = "GET /.well-known/drowse/wake HTTP/1.1\r\nHost: web.example.org\r\n\r\n";
    follows.get_mut().write_all(request.as_bytes()).unwrap();
    let mut heard = String::new();
    let mut until_line = |wanted: &str| {
        while !heard.ends_with(wanted) {
            assert!(follows.read_line(&mut heard).unwrap() > 0, "{heard}");
        }
    };
    until_line("\"ahead\":0}\n");
    bench.plane.set("web", |subject| subject.wakes = true);
    until_line("event: ready\n");
    assert_eq!(bench.open("web"), 1, "it is held until the page has loaded again");
    drop(follows);
    assert_eq!(ask(&door, &get("web.example.org", html)).status, 200);
    until("it is let go", || bench.open("web"), |open| *open == 0);
}

#[test]
fn what_is_back_at_once_is_no_page_but_the_answer() {
    let bench = Bench::new();
    let door = web(&bench, &Rules::default(), tells);
    sleeps(&bench, "web");
    let heard = ask(&door, &get("web.example.org", "Accept: text/html\r\n"));
    assert_eq!(heard.status, 200);
    assert!(heard.header("drowse-cold-start-ms").is_some());
}

#[test]
fn the_terms_say_who_gets_a_page_and_how_it_looks() {
    let bench = Bench::new();
    let page = Arc::new(Page::new("<p>{{worker}} is coming{{follow}}").unwrap());
    let rules = Rules { waiting: Waiting::Page, page, ..Rules::default() };
    let door = web(&bench, &rules, tells);
    bench.plane.set("web", |subject| (subject.is_awake, subject.wakes) = (false, false));
    let heard = ask(&door, &get("web.example.org", "Accept: text/html\r\n"));
    assert!(heard.text().starts_with("<p>web is coming<noscript>"), "{}", heard.text());
    let heard = ask(&door, &get("web.example.org", ""));
    assert_eq!(heard.status, 503);
    assert!(heard.text().starts_with("drowse: web: It was asleep and is being woken"), "{}", heard.text());

    let rules = Rules { waiting: Waiting::Hold, wait_for: Duration::from_secs(1), ..Rules::default() };
    let door = web(&bench, &rules, tells);
    let heard = ask(&door, &get("web.example.org", "Accept: text/html\r\n"));
    assert_eq!(
        (heard.status, heard.header("retry-after")),
        (503, Some("5")),
        "held to its end: {}",
        heard.head
    );
    assert!(heard.text().contains("it is still coming up after 1 s"), "{}", heard.text());
}

#[test]
fn whoever_may_not_wake_it_is_told_why() {
    let bench = Bench::new();
    let door = web(&bench, &Rules::default(), tells);
    bench.plane.set("web", |subject| (subject.is_awake, subject.may_wake) = (false, false));
    let heard = ask(&door, &get("web.example.org", ""));
    assert_eq!((heard.status, heard.header("drowse-state")), (503, Some("asleep")));
    assert_eq!(heard.text(), "drowse: web: a person put it to sleep\n");

    let rules = Rules { wake_token: Some(WakeToken("secret".to_owned())), ..Rules::default() };
    let door = web(&bench, &rules, tells);
    bench.plane.set("web", |subject| subject.may_wake = true);
    let lacks = |door: &Open| {
        let heard = ask(door, &get("web.example.org", ""));
        assert_eq!((heard.status, heard.header("drowse-state")), (503, Some("refused")), "{}", heard.text());
        let text = heard.text();
        text.strip_prefix("drowse: web: it is asleep, and you may not wake it: ").unwrap().to_owned()
    };
    assert_eq!(lacks(&door), "that takes a token in Drowse-Wake-Token\n");
    let may_wake = Some(Sources::new(vec!["10.0.0.0/8".parse().unwrap()]));
    let elsewhere = web(&bench, &Rules { may_wake: may_wake.clone(), ..Rules::default() }, tells);
    assert_eq!(lacks(&elsewhere), "your address is none that may\n");
    let both = web(&bench, &Rules { may_wake, ..rules }, tells);
    let neither = "your address is none that may, and you have shown no token in Drowse-Wake-Token\n";
    assert_eq!(lacks(&both), neither);
    assert_eq!(bench.plane.wakes("web"), 0);
    let heard = ask(&door, &get("web.example.org", "Drowse-Wake-Token: secret\r\n"));
    assert_eq!(heard.text(), "GET /a?b HTTP/1.1 web.example.org 127.0.0.1 - 0", "the token is not passed on");
    assert_eq!(ask(&door, &get("web.example.org", "")).status, 200, "and while it is awake all may come");
}

#[test]
fn a_robot_is_answered_by_those_who_are_awake_and_counts_for_nothing() {
    let bench = Bench::new();
    let robots =
        Robots { agents: vec!["uptime".to_owned()], paths: vec!["/healthz".to_owned()], ..Robots::default() };
    let door = web(&bench, &Rules { robots, ..Rules::default() }, tells);
    let by_agent = get("web.example.org", "User-Agent: Uptime-Kuma/1\r\n");
    assert_eq!(ask(&door, &by_agent).status, 200);
    bench.plane.set("web", |subject| {
        (subject.is_awake, subject.fell) = (false, Some(Slept::Asleep { since: None }));
    });
    until("that is heard", || ask(&door, &by_agent).status, |status| *status == 503);
    let by_path = "GET /healthz?x HTTP/1.1\r\nHost: web.example.org\r\n\r\n".to_owned();
    for request in [&by_agent, &by_path] {
        let heard = ask(&door, request);
        assert_eq!((heard.status, heard.header("drowse-state")), (503, Some("dormant")), "{}", heard.head);
    }
    assert_eq!(bench.plane.said(), [], "nothing was counted and nobody asked for");
}

#[test]
fn robots_without_end_are_looked_up_once_in_a_while() {
    let bench = Bench::new();
    let robots = Robots { paths: vec!["/*".to_owned()], ..Robots::default() };
    let door = web(&bench, &Rules { robots, ..Rules::default() }, tells);
    let request = get("web.example.org", "");
    for _ in 0..20 {
        assert_eq!(ask(&door, &request).status, 200);
    }
    assert_eq!((bench.plane.looks(), bench.plane.watches()), (1, 1));
    bench.plane.set("web", |subject| {
        (subject.is_awake, subject.fell) = (false, Some(Slept::Asleep { since: None }));
    });
    until("that is heard", || ask(&door, &request).status, |status| *status == 503);
    let before = bench.plane.looks();
    // One look in a tenth of a second, however many they are.
    let mut asked = 0;
    while bench.plane.looks() < before + 3 {
        assert_eq!(ask(&door, &request).header("drowse-state"), Some("dormant"));
        asked += 1;
    }
    assert!(asked > 6, "{asked} robots cost three looks");
}

#[test]
fn a_robot_ends_when_the_worker_sleeps() {
    let bench = Bench::new();
    let robots = Robots { paths: vec!["/*".to_owned()], ..Robots::default() };
    let door = web(&bench, &Rules { robots, ..Rules::default() }, |mut stream| {
        let _ = stream.read(&mut [0; 1024]);
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nfor ever").unwrap();
        // Until we hang up.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let mut stream = call(&door);
    stream.write_all(get("web.example.org", "").as_bytes()).unwrap();
    let mut first = [0; 8];
    stream.read_exact(&mut first).unwrap();
    bench.plane.set("web", |subject| {
        (subject.is_awake, subject.fell) = (false, Some(Slept::Asleep { since: None }));
    });
    let heard = String::from_utf8(rest(&mut stream)).unwrap();
    assert!(!heard.ends_with("0\r\n\r\n"), "it is not passed off as whole: {heard:?}");
}

#[test]
fn a_websocket_is_carried_like_any_connection() {
    let bench = Bench::new();
    let door = web(&bench, &Rules::default(), |mut stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(reader.read_line(&mut head).unwrap() > 0);
        }
        let asked = head.to_ascii_lowercase();
        assert!(
            asked.contains("connection: upgrade\r\n") && asked.contains("upgrade: websocket\r\n"),
            "{head}"
        );
        // The first words come with the answer.
        let answer =
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nwelcome ";
        stream.write_all(answer.as_bytes()).unwrap();
        let mut buffer = [0; 1024];
        while let Ok(read @ 1..) = reader.read(&mut buffer) {
            stream.write_all(&buffer[..read]).unwrap();
        }
    });
    sleeps(&bench, "web");
    bench.plane.set("web", |subject| subject.connection_idle = Some(Duration::from_millis(300)));
    let mut stream = BufReader::new(call(&door));
    // And so do the client's.
    let upgrade = get("web.example.org", "Connection: Upgrade\r\nUpgrade: websocket\r\n") + "early ";
    stream.get_mut().write_all(upgrade.as_bytes()).unwrap();
    let heard = hear(&mut stream);
    assert_eq!(heard.status, 101, "{}", heard.head);
    assert!(heard.header("upgrade").is_some(), "{}", heard.head);
    let mut words = [0; 14];
    stream.read_exact(&mut words).unwrap();
    assert_eq!(&words, b"welcome early ");
    assert_eq!(bench.open("web"), 1);
    let edges = until("it falls silent", || bench.plane.edges("web"), |edges| edges.len() == 2);
    assert_eq!(edges, [(1, EdgeCause::Came), (0, EdgeCause::FellSilent)]);
    sleeps(&bench, "web");
    stream.get_mut().write_all(b"again").unwrap();
    let mut words = [0; 5];
    stream.read_exact(&mut words).unwrap();
    assert_eq!((&words, bench.plane.wakes("web")), (b"again", 2), "a byte wakes it again");
    bench.plane.set("web", |subject| {
        (subject.is_awake, subject.fell) = (false, Some(Slept::Asleep { since: None }));
    });
    assert_eq!(rest(stream.get_mut()), b"", "and who is cut is cut");
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the worker is silent for longer than counts, which is the case to be tested"
)]
fn events_flow_as_they_come_and_silence_is_not_use() {
    let bench = Bench::new();
    let door = web(&bench, &Rules::default(), |mut stream| {
        let _ = stream.read(&mut [0; 1024]);
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        for event in ["one", "two"] {
            stream.write_all(format!("3\r\n{event}\r\n").as_bytes()).unwrap();
            std::thread::sleep(Duration::from_secs(1));
        }
        let _ = stream.write_all(b"0\r\n\r\n");
    });
    bench.plane.set("web", |subject| subject.connection_idle = Some(Duration::from_millis(200)));
    let mut stream = BufReader::new(call(&door));
    stream.get_mut().write_all(get("web.example.org", "").as_bytes()).unwrap();
    assert_eq!(hear(&mut stream).text(), "onetwo");
    let edges = until("it is let go", || bench.plane.edges("web"), |edges| edges.len() >= 4);
    assert_eq!(edges[..3], [(1, EdgeCause::Came), (0, EdgeCause::FellSilent), (1, EdgeCause::Came)]);
}

#[test]
fn past_its_validity_not_a_byte_of_a_body_moves() {
    let bench = Bench::new();
    let door = web(&bench, &Rules::default(), |mut stream| {
        let mut byte = [0; 1];
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n").unwrap();
        let mut rest = [0; 8];
        stream.read_exact(&mut rest).unwrap();
        stream.write_all(&rest).unwrap();
    });
    let mut stream = BufReader::new(call(&door));
    let request = "POST / HTTP/1.1\r\nHost: web.example.org\r\nContent-Length: 8\r\n\r\n";
    stream.get_mut().write_all(request.as_bytes()).unwrap();
    until("it is in", || bench.router.door(&id("web")).counts().let_through, |count| *count == 1);
    bench.plane.set_valid_until(drowse_core::Timestamp::EPOCH);
    until("it is asked for again", || bench.plane.edges("web"), |edges| edges.len() >= 2);
    stream.get_mut().write_all(b"held now").unwrap();
    stream.get_mut().set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut buffer = [0; 512];
    let mut heard = Vec::new();
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        heard.extend(&buffer[..read]);
    }
    assert!(!String::from_utf8_lossy(&heard).contains("held now"));
    bench.plane.set_valid_until((bench.now)() + Duration::from_hours(1));
    stream.get_mut().set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    while !heard.ends_with(b"held now") {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&heard));
        heard.extend(&buffer[..read]);
    }
}

/// An address where nobody listens.
fn nobody() -> SocketAddr {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap()
}

#[test]
fn a_worker_that_never_answers_is_a_503_that_says_when_to_come_again() {
    let bench = Bench::new();
    let rules = Rules { wait_for: Duration::from_millis(400), ..Rules::default() };
    let door = shared(&bench, &rules, &[("never", nobody().into())]);
    let heard = ask(&door, &get("never.example.org", ""));
    assert_eq!((heard.status, heard.header("retry-after")), (503, Some("5")), "{}", heard.head);
    // Nobody has said that it failed: it may yet answer.
    assert_eq!(heard.header("drowse-state"), Some("waking"));
}
