//! Requests that Drowse itself ends before they are answered.

use super::*;

/// A port to a worker that hears a request, says so, and hangs up without an answer when it is told to.
fn thinks(
    bench: &Bench,
    rules: &Rules,
) -> (Open, std::sync::mpsc::Receiver<()>, std::sync::mpsc::Sender<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let worker = listener.local_addr().unwrap();
    let (tell, heard) = std::sync::mpsc::channel();
    let (hang_up, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 1024];
            // Whoever only looks whether it stands says nothing.
            let is_asked = stream.read(&mut request).unwrap_or(0) > 0;
            if request.starts_with(b"GET /first") {
                let _ =
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            } else if is_asked {
                tell.send(()).unwrap();
                let _ = told.recv();
            }
        }
    });
    (shared(bench, rules, &[("web", worker.into())]), heard, hang_up)
}

fn asks(door: &Open, heard: &std::sync::mpsc::Receiver<()>) -> BufReader<TcpStream> {
    let mut stream = BufReader::new(call(door));
    stream.get_mut().write_all(get("web.example.org", "").as_bytes()).unwrap();
    heard.recv_timeout(Duration::from_secs(20)).unwrap();
    stream
}

fn falls_asleep(bench: &Bench, may_wake: bool) {
    bench.plane.set("web", |subject| {
        (subject.is_awake, subject.may_wake) = (false, may_wake);
        subject.fell = Some(Slept::Asleep { since: None });
    });
}

#[test]
fn whoever_is_cut_is_told_who_put_the_worker_to_sleep() {
    let bench = Bench::new();
    let (door, heard, _hang_up) = thinks(&bench, &Rules::default());
    let mut stream = asks(&door, &heard);
    falls_asleep(&bench, false);
    let heard = hear(&mut stream);
    assert_eq!((heard.status, heard.header("drowse-state")), (503, Some("asleep")), "{}", heard.text());
    assert_eq!(heard.text(), "drowse: web: a person put it to sleep\n");
}

#[test]
fn nobody_is_woken_for_an_answer_that_is_over() {
    let bench = Bench::new();
    let (door, heard, _hang_up) = thinks(&bench, &Rules::default());
    let mut stream = asks(&door, &heard);
    falls_asleep(&bench, true);
    let heard = hear(&mut stream);
    assert_eq!((heard.status, heard.header("drowse-state")), (503, Some("asleep")), "{}", heard.text());
    assert_eq!(heard.text(), "drowse: web: it was put to sleep before it had answered\n");
    assert_eq!(bench.plane.wakes("web"), 0);
}

#[test]
fn a_worker_that_is_stopped_is_not_blamed_for_hanging_up() {
    let bench = Bench::new();
    let (door, heard, hang_up) = thinks(&bench, &Rules::default());
    // It has answered in this run, and is not called again.
    assert_eq!(ask(&door, "GET /first HTTP/1.1\r\nHost: web.example.org\r\n\r\n").status, 200);
    let mut stream = asks(&door, &heard);
    bench.plane.set("web", |subject| {
        (subject.is_awake, subject.may_wake) = (false, false);
        subject.fell = Some(Slept::Falling { since: (bench.now)() });
    });
    hang_up.send(()).unwrap();
    falls_asleep(&bench, false);
    let heard = hear(&mut stream);
    assert_eq!((heard.status, heard.header("drowse-state")), (503, Some("asleep")), "{}", heard.text());
    assert_eq!(heard.text(), "drowse: web: a person put it to sleep\n");
}

#[test]
fn a_robot_that_is_cut_is_told_that_the_worker_is_dormant() {
    let bench = Bench::new();
    let robots = Robots { paths: vec!["/*".to_owned()], ..Robots::default() };
    let (door, heard, _hang_up) = thinks(&bench, &Rules { robots, ..Rules::default() });
    let mut stream = asks(&door, &heard);
    falls_asleep(&bench, true);
    let heard = hear(&mut stream);
    assert_eq!((heard.status, heard.header("drowse-state")), (503, Some("dormant")), "{}", heard.text());
}

#[test]
fn a_request_that_is_cut_while_nothing_may_move_is_answered() {
    let bench = Bench::new();
    let (door, heard, _hang_up) = thinks(&bench, &Rules::default());
    let mut stream = BufReader::new(call(&door));
    let begins = "POST / HTTP/1.1\r\nHost: web.example.org\r\nContent-Length: 8\r\n\r\nhalf";
    stream.get_mut().write_all(begins.as_bytes()).unwrap();
    heard.recv_timeout(Duration::from_secs(20)).unwrap();
    let before = bench.plane.edges("web").len();
    bench.plane.set_valid_until(drowse_core::Timestamp::EPOCH);
    until("it is asked for again", || bench.plane.edges("web"), |edges| edges.len() > before);
    // This waits until bytes may move, and that will not be.
    stream.get_mut().write_all(b"half").unwrap();
    bench.plane.set("web", |subject| (subject.is_awake, subject.may_wake) = (false, false));
    bench.plane.set_valid_until((bench.now)() + Duration::from_hours(1));
    let heard = hear(&mut stream);
    assert_eq!((heard.status, heard.header("drowse-state")), (503, Some("asleep")), "{}", heard.text());
}

#[test]
fn whoever_comes_after_one_who_was_held_back_has_gone_is_answered() {
    let bench = Bench::new();
    let (door, heard, hang_up) = thinks(&bench, &Rules::default());
    let stream = asks(&door, &heard);
    let before = bench.plane.edges("web").len();
    bench.plane.set_valid_until(drowse_core::Timestamp::EPOCH);
    until("it is asked for again", || bench.plane.edges("web"), |edges| edges.len() > before);
    rustix::net::sockopt::set_socket_linger(stream.get_ref(), Some(Duration::ZERO)).unwrap();
    drop(stream);
    until("it has left", || bench.open("web"), |open| *open == 0);
    hang_up.send(()).unwrap();
    bench.plane.set_valid_until((bench.now)() + Duration::from_hours(1));
    assert_eq!(ask(&door, "GET /first HTTP/1.1\r\nHost: web.example.org\r\n\r\n").status, 200);
}
