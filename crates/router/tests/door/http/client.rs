//! Clients that mean no good, leave, or say their last; and ports that change under them.

use super::*;

#[test]
fn garbage_and_tricks_are_refused() {
    let bench = Bench::new();
    let door = web(&bench, &Rules::default(), tells);
    let table = [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: web.example.org\r\nHost: other\r\n\r\n", 400),
        ("CONNECT web.example.org:443 HTTP/1.1\r\nHost: web.example.org\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: ../etc\r\n\r\n", 400),
        ("nonsense\r\n\r\n", 400),
        ("\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: web.example.org\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy", 400),
    ];
    for (request, status) in table {
        assert_eq!(ask(&door, request).status, status, "{request:?}");
    }
    let mut stream = call(&door);
    let endless = format!("GET / HTTP/1.1\r\nHost: web.example.org\r\nX: {}", "y".repeat(100_000));
    let _ = stream.write_all(endless.as_bytes());
    let told = String::from_utf8(rest(&mut stream)).unwrap();
    assert!(told.is_empty() || told.starts_with("HTTP/1.1 4"), "{told}");
    assert_eq!(bench.plane.said(), []);
}

#[test]
fn a_client_that_leaves_is_waited_for_no_longer() {
    let bench = Bench::new();
    let door = web(&bench, &Rules::default(), tells);
    bench.plane.set("web", |subject| (subject.is_awake, subject.wakes) = (false, false));
    let mut stream = call(&door);
    stream.write_all(get("web.example.org", "").as_bytes()).unwrap();
    until("it waits", || bench.router.door(&id("web")).waiting(), |waiting| *waiting == 1);
    // Hard: whoever only says its last may still want the answer.
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    drop(stream);
    until("nobody waits", || bench.router.door(&id("web")).waiting(), |waiting| *waiting == 0);
    until("the hold is given back", || bench.plane.edges("web"), |edges| edges.last().unwrap().0 == 0);
}

#[test]
fn whoever_says_its_last_with_the_request_gets_the_answer() {
    let bench = Bench::new();
    let door = web(&bench, &Rules::default(), tells);
    bench.plane.set("web", |subject| (subject.is_awake, subject.wakes) = (false, false));
    let mut stream = BufReader::new(call(&door));
    stream.get_mut().write_all(get("web.example.org", "").as_bytes()).unwrap();
    stream.get_mut().shutdown(Shutdown::Write).unwrap();
    until("it waits", || bench.router.door(&id("web")).waiting(), |waiting| *waiting == 1);
    bench.plane.set("web", |subject| subject.wakes = true);
    assert_eq!(hear(&mut stream).status, 200);
    ends(stream.get_mut());
    until("it is let go", || bench.open("web"), |open| *open == 0);
}

#[test]
fn half_a_body_is_never_passed_off_as_a_whole_one() {
    let bench = Bench::new();
    // Down: the worker breaks off in the middle of its chunks, while the client is slow to read.
    let breaks_off = program(|mut stream| {
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        for _ in 0..40 {
            let _ = stream.write_all(format!("4000\r\n{}\r\n", "x".repeat(0x4000)).as_bytes());
        }
    });
    // Up: what the worker has heard, and whether it was all.
    let (tell, told) = std::sync::mpsc::channel();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let listens = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut all = Vec::new();
            let _ = stream.read_to_end(&mut all);
            let _ = tell.send(all);
        }
    });
    let workers = [("down", breaks_off.into()), ("up", listens.into())];
    let door = shared(&bench, &Rules::default(), &workers);
    for _ in 0..5 {
        let mut stream = call(&door);
        stream.write_all(get("down.example.org", "").as_bytes()).unwrap();
        let all = rest(&mut stream);
        assert!(all.len() > 1_000 && !all.ends_with(b"0\r\n\r\n"), "{} bytes", all.len());
    }
    for _ in 0..5 {
        let mut stream = call(&door);
        let head = "POST / HTTP/1.1\r\nHost: up.example.org\r\nTransfer-Encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        for _ in 0..3 {
            stream.write_all(b"5\r\nhello\r\n").unwrap();
        }
        drop(stream);
    }
    let heard: Vec<Vec<u8>> = std::iter::from_fn(|| told.recv_timeout(Duration::from_secs(20)).ok())
        .filter(|all: &Vec<u8>| all.starts_with(b"POST"))
        .take(5)
        .collect();
    assert_eq!(heard.len(), 5);
    for all in heard {
        assert!(!all.ends_with(b"0\r\n\r\n"), "{}", String::from_utf8_lossy(&all));
    }
}

#[test]
fn whoever_waits_for_an_answer_is_not_silent() {
    let bench = Bench::new();
    let (let_go, goes) = std::sync::mpsc::channel::<()>();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let thinks = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        // The first only looks whether it stands.
        let _looked = listener.accept().unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1024]);
        let _ = goes.recv();
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    let door = shared(&bench, &Rules::default(), &[("web", thinks.into())]);
    bench.plane.set("web", |subject| subject.connection_idle = Some(Duration::from_millis(50)));
    let mut stream = BufReader::new(call(&door));
    stream.get_mut().write_all(get("web.example.org", "").as_bytes()).unwrap();
    until("it is in", || bench.router.door(&id("web")).counts().let_through, |count| *count == 1);
    // So long that it would have fallen silent.
    let before = (bench.now)();
    until("a while", || (bench.now)().since(before), |passed| *passed > Duration::from_millis(300));
    assert_eq!(bench.plane.edges("web"), [(1, EdgeCause::Came)]);
    let_go.send(()).unwrap();
    assert_eq!(hear(&mut stream).text(), "ok");
}

#[test]
fn a_changed_configuration_reaches_connections_that_are_kept() {
    let bench = Bench::new();
    let door = web(&bench, &Rules::default(), tells);
    let mut stream = BufReader::new(call(&door));
    stream.get_mut().write_all(get("web.example.org", "").as_bytes()).unwrap();
    assert_eq!(hear(&mut stream).status, 200);
    door.lead(Leads::Http(Arc::default()));
    stream.get_mut().write_all(get("web.example.org", "").as_bytes()).unwrap();
    assert_eq!(hear(&mut stream).status, 404);
}

#[test]
fn a_port_that_is_one_workers_takes_requests_without_a_host() {
    let bench = Bench::new();
    bench.plane.set("web", |_| {});
    let worker = program(tells);
    let names = Names::any(Arc::new(Route::to(id("web"), worker)));
    let listener = Listener::bind(([127, 0, 0, 1], 0).into()).unwrap();
    let door = bench.router.open(listener, Leads::Http(Arc::new(names)));
    let heard = ask(&door, "GET / HTTP/1.0\r\n\r\n");
    let told = format!("GET / HTTP/1.1 {worker} 127.0.0.1 - 0");
    assert_eq!((heard.status, heard.text()), (200, told), "what goes on has one");
    // Of HTTP/1.1 that is no request.
    let heard = ask(&door, "GET / HTTP/1.1\r\n\r\n");
    let why = "drowse: the request names no host, as HTTP/1.1 demands\n";
    assert_eq!((heard.status, heard.text().as_str()), (400, why));
}

#[test]
fn a_full_house_says_so() {
    let bench = Bench::with(Limits { threads: 1, connections: 1, ..Limits::default() });
    let door = web(&bench, &Rules::default(), tells);
    let mut first = BufReader::new(call(&door));
    first.get_mut().write_all(get("web.example.org", "").as_bytes()).unwrap();
    assert_eq!(hear(&mut first).status, 200);
    let heard = hear(&mut BufReader::new(call(&door)));
    assert_eq!((heard.status, heard.header("retry-after")), (503, Some("1")), "{}", heard.head);
    assert_eq!(heard.text(), "drowse: there are too many connections\n");
}

#[test]
fn a_port_that_closes_answers_what_is_under_way_and_then_hangs_up() {
    let bench = Bench::new();
    let door = web(&bench, &Rules::default(), tells);
    bench.plane.set("web", |subject| (subject.is_awake, subject.wakes) = (false, false));
    let [mut idle, mut under_way] = [(); 2].map(|()| BufReader::new(call(&door)));
    under_way.get_mut().write_all(get("web.example.org", "").as_bytes()).unwrap();
    until("it waits", || bench.router.door(&id("web")).waiting(), |waiting| *waiting == 1);
    door.close(Closing::NobodyIn);
    bench.plane.set("web", |subject| subject.wakes = true);
    let heard = hear(&mut under_way);
    assert_eq!((heard.status, heard.header("connection")), (200, Some("close")), "{}", heard.head);
    ends(under_way.get_mut());
    ends(idle.get_mut());
}

#[test]
fn many_requests_at_one_sleeping_worker_are_one_wake() {
    let bench = Bench::new();
    let door = web(&bench, &Rules::default(), tells);
    bench.plane.set("web", |subject| (subject.is_awake, subject.wakes) = (false, false));
    let mut streams: Vec<_> = (0..300).map(|_| BufReader::new(call(&door))).collect();
    for stream in &mut streams {
        stream.get_mut().write_all(get("web.example.org", "").as_bytes()).unwrap();
    }
    until("all wait", || bench.router.door(&id("web")).waiting(), |waiting| *waiting == 300);
    bench.plane.set("web", |subject| subject.wakes = true);
    for stream in &mut streams {
        assert_eq!(hear(stream).status, 200);
    }
    assert_eq!(bench.plane.wakes("web"), 1);
}

/// Answers with the head that it was sent.
fn mirrors(mut stream: TcpStream) {
    let mut head = [0; 4096];
    let read = stream.read(&mut head).unwrap_or(0);
    let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {read}\r\n\r\n").as_bytes());
    let _ = stream.write_all(&head[..read]);
}

#[test]
fn what_a_client_says_of_itself_is_taken_only_from_a_proxy_that_is_trusted() {
    let said = "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Host: bank.example\r\nX-Forwarded-Proto: https\r\n\
        X-Real-IP: 192.0.2.7\r\nForwarded: for=192.0.2.7\r\n";
    let told = |trusted: &[&str]| {
        let bench = Bench::new();
        let networks = trusted.iter().map(|network| network.parse().unwrap());
        let trusted_proxies = Sources::new(networks.collect());
        let door = web(&bench, &Rules { trusted_proxies, ..Rules::default() }, mirrors);
        let heard = ask(&door, &get("web.example.org", said)).text();
        let of_client = |line: &&str| line.contains("forwarded") || line.contains("real");
        let mut told: Vec<String> = heard.lines().filter(of_client).map(str::to_owned).collect();
        told.sort();
        told
    };
    let ours = ["x-forwarded-for: 127.0.0.1", "x-forwarded-host: web.example.org", "x-forwarded-proto: http"];
    assert_eq!(told(&[]), ours);
    assert_eq!(told(&["10.0.0.0/8"]), ours);
    assert_eq!(
        told(&["127.0.0.0/8"]),
        [
            "forwarded: for=192.0.2.7",
            "x-forwarded-for: 192.0.2.7, 127.0.0.1",
            "x-forwarded-host: bank.example",
            "x-forwarded-proto: https",
            "x-real-ip: 192.0.2.7",
        ]
    );
}

#[test]
fn a_head_may_have_large_cookies_and_what_is_too_large_is_answered() {
    let bench = Bench::new();
    let door = web(&bench, &Rules::default(), tells);
    let cookie = |size| format!("Cookie: a={}\r\n", "x".repeat(size));
    assert_eq!(ask(&door, &get("web.example.org", &cookie(30 << 10))).status, 200);
    // Also where it says more than is read of it.
    for size in [60 << 10, 300 << 10] {
        assert_eq!(ask(&door, &get("web.example.org", &cookie(size))).status, 431, "{size} bytes");
    }
}

#[test]
fn whoever_is_still_uploading_when_it_is_turned_away_hears_why() {
    let bench = Bench::new();
    let door = web(&bench, &Rules::default(), tells);
    bench.plane.set("web", |subject| (subject.is_awake, subject.may_wake) = (false, false));
    let mut stream = BufReader::new(call(&door));
    let begins = "POST / HTTP/1.1\r\nHost: web.example.org\r\nContent-Length: 16777216\r\n\r\n";
    stream.get_mut().write_all(begins.as_bytes()).unwrap();
    // It says all of it before it listens.
    stream.get_mut().write_all(&vec![b'x'; 16 << 20]).unwrap();
    let heard = hear(&mut stream);
    assert_eq!((heard.status, heard.header("drowse-state")), (503, Some("asleep")));
    drop(stream);
    until("the place is free", || bench.router.taken(), |taken| *taken == 0);
}
