//! The router with real sockets: what comes in comes out, whatever the worker does meanwhile.

#![expect(clippy::unwrap_used, reason = "all of this is tests, its helpers too")]

mod door {
    mod breaks;
    mod budget;
    pub(crate) mod ends;
    mod hangs;
    mod http;
    mod leftovers;
    pub(crate) mod plane;
    mod proofs;
    mod silence;
    mod urgent;
    mod ways;
}

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use drowse_core::Timestamp;
use drowse_router::route::{Robots, Rules, Site, Sources};
use drowse_router::{Closing, Leads, Limits, Listener, Now, Open, Route, Router};
use drowse_wire::control::{Control, EdgeCause, Slept};
use tokio::runtime::Runtime;

use door::plane::{Plane, echo, id, program, until};

/// For no decision of ours: nobody has come since.
const ASLEEP: Slept = Slept::Asleep { since: None };

struct Bench {
    plane: Arc<Plane>,
    router: Router,
    now: Now,
    /// How far the router's clock is ahead of the machine's, in microseconds.
    ahead: Arc<AtomicU64>,
    runtime: Runtime,
}

impl Bench {
    fn new() -> Self {
        Self::with(Limits { threads: 1, ..Limits::default() })
    }

    #[expect(clippy::disallowed_methods, reason = "the machine's clock, injected")]
    fn with(limits: Limits) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let plane = Plane::new();
        let began = Instant::now();
        let ahead = Arc::new(AtomicU64::new(0));
        let skipped = Arc::clone(&ahead);
        let now: Now = Arc::new(move || {
            let skipped = Duration::from_micros(skipped.load(Ordering::SeqCst));
            Timestamp::from_secs(1_800_000_000) + began.elapsed() + skipped
        });
        let control: Arc<dyn Control> = plane.clone();
        let inside = runtime.enter();
        let router = Router::new(&control, &now, limits).unwrap();
        drop(inside);
        Self { plane, router, now, ahead, runtime }
    }

    /// Time passes in which nothing happens.
    fn skip(&self, time: Duration) {
        self.ahead.fetch_add(u64::try_from(time.as_micros()).unwrap(), Ordering::SeqCst);
    }

    fn door(&self, worker: &str, target: SocketAddr) -> Open {
        self.door_with(worker, target, Rules::default())
    }

    fn door_with(&self, worker: &str, target: SocketAddr, rules: Rules) -> Open {
        self.plane.set(worker, |_| {});
        let listener = Listener::bind(([127, 0, 0, 1], 0).into()).unwrap();
        self.router
            .open(listener, Leads::Port(Route { rules: Arc::new(rules), ..Route::to(id(worker), target) }))
    }

    fn door_at(&self, worker: &str, target: SocketAddr, site: Site) -> Open {
        self.plane.set(worker, |_| {});
        let listener = Listener::bind(([127, 0, 0, 1], 0).into()).unwrap();
        self.router.open(listener, Leads::Port(Route { site, ..Route::to(id(worker), target) }))
    }

    fn finish_within(&self, patience: Duration) {
        self.runtime.block_on(self.router.finish_within(patience));
    }

    fn open(&self, worker: &str) -> u64 {
        self.router.door(&id(worker)).counts().open
    }
}

fn call(door: &Open) -> TcpStream {
    let stream = TcpStream::connect(door.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

fn says(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).unwrap();
    let mut heard = vec![0; text.len()];
    stream.read_exact(&mut heard).unwrap();
    assert_eq!(String::from_utf8_lossy(&heard), text);
}

/// Everything to the end; that it ends at all.
fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
    }
    rest
}

/// It ends without another byte.
fn ends(stream: &mut TcpStream) {
    assert_eq!(rest(stream), b"");
}

#[test]
fn what_is_said_is_heard_and_only_the_edges_are_told() {
    let bench = Bench::new();
    let door = bench.door("web", program(echo));
    for _ in 0..5 {
        let mut stream = call(&door);
        says(&mut stream, "hello");
        says(&mut stream, "again");
    }
    let edges = until(
        "the hold is given back",
        || bench.plane.edges("web"),
        |edges| edges.last().is_some_and(|edge| edge.0 == 0),
    );
    assert_eq!(edges, [(1, EdgeCause::Came), (0, EdgeCause::Left)], "five in a row are one hold");
    let counts = bench.router.door(&id("web")).counts();
    assert_eq!((counts.let_through, counts.to_worker, counts.to_client), (5, 50, 50));
}

#[test]
fn a_close_in_one_direction_closes_only_that_direction() {
    let bench = Bench::new();
    let answers_at_the_end = program(|mut stream| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        stream.write_all(format!("{} bytes", all.len()).as_bytes()).unwrap();
    });
    let door = bench.door("sum", answers_at_the_end);
    let mut stream = call(&door);
    stream.write_all(&vec![7; 300_000]).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(String::from_utf8(rest(&mut stream)).unwrap(), "300000 bytes");
}

#[test]
fn bulk_arrives_whole_both_ways() {
    let bench = Bench::new();
    let door = bench.door("bulk", program(echo));
    let sent: Vec<u8> = (0..32_u32 << 20).map(|n| (n ^ (n >> 8) ^ (n >> 16)).to_le_bytes()[0]).collect();
    let mut stream = call(&door);
    let mut writer = stream.try_clone().unwrap();
    let expected = sent.clone();
    let writing = std::thread::spawn(move || {
        writer.write_all(&sent).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let heard = rest(&mut stream);
    writing.join().unwrap();
    assert_eq!(heard.len(), expected.len());
    assert!(heard == expected, "the bytes differ");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "pauses are what is tried")]
fn questions_between_bulk_are_answered() {
    let bench = Bench::new();
    let door = bench.door("bulk", program(echo));
    let mut stream = call(&door);
    let much: Vec<u8> = (0..24_u32 << 20).map(|n| (n ^ (n >> 8) ^ (n >> 16)).to_le_bytes()[0]).collect();
    for question in 0..3_u8 {
        // So much that the door does not watch the sockets any more, but looks at them from time to time.
        let (mut writer, sent) = (stream.try_clone().unwrap(), much.clone());
        let writing = std::thread::spawn(move || writer.write_all(&sent).unwrap());
        let mut heard = vec![0; much.len()];
        stream.read_exact(&mut heard).unwrap();
        writing.join().unwrap();
        assert!(heard == much, "the bytes differ");
        // At once, and after pauses in which it may have stopped to look.
        for pause in [0, 0, 1, 5, 20] {
            std::thread::sleep(Duration::from_millis(pause));
            stream.write_all(&[question]).unwrap();
            let mut answer = [u8::MAX];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(answer, [question]);
        }
    }
    stream.shutdown(Shutdown::Write).unwrap();
    ends(&mut stream);
}

#[test]
fn a_sleeping_worker_is_woken_once_for_all_who_come_and_nobody_is_lost() {
    let bench = Bench::new();
    let door = bench.door("web", program(echo));
    bench.plane.set("web", |subject| (subject.is_awake, subject.wakes) = (false, false));
    let mut streams: Vec<TcpStream> = (0..100).map(|_| call(&door)).collect();
    for (number, stream) in streams.iter_mut().enumerate() {
        stream.write_all(format!("visitor {number}").as_bytes()).unwrap();
    }
    until("all wait", || bench.router.door(&id("web")).waiting(), |waiting| *waiting == 100);
    bench.plane.set("web", |subject| subject.wakes = true);
    for (number, stream) in streams.iter_mut().enumerate() {
        let expected = format!("visitor {number}");
        let mut heard = vec![0; expected.len()];
        stream.read_exact(&mut heard).unwrap();
        assert_eq!(String::from_utf8(heard).unwrap(), expected);
    }
    assert_eq!(bench.plane.wakes("web"), 1);
    assert_eq!(bench.plane.edges("web").len(), 1);
}

#[test]
fn what_may_not_be_woken_is_closed_at_once() {
    let bench = Bench::new();
    let door = bench.door("web", program(echo));
    bench.plane.set("web", |subject| (subject.is_awake, subject.may_wake) = (false, false));
    let mut stream = call(&door);
    ends(&mut stream);
    assert_eq!(bench.plane.wakes("web"), 0);
    assert_eq!(bench.open("web"), 0);
}

#[test]
fn whoever_may_not_wake_may_come_while_it_is_awake() {
    let bench = Bench::new();
    let others = Sources::new(vec!["10.0.0.0/8".parse().unwrap()]);
    let rules = Rules { may_wake: Some(others), ..Rules::default() };
    let door = bench.door_with("web", program(echo), rules);
    bench.plane.set("web", |subject| subject.is_awake = false);
    ends(&mut call(&door));
    bench.plane.set("web", |subject| subject.is_awake = true);
    says(&mut call(&door), "hello");
    let edges = bench.plane.edges("web");
    assert!(
        edges.iter().all(|(count, cause)| *count == 0 || *cause == EdgeCause::CameToTheAwake),
        "{edges:?}"
    );
}

#[test]
fn a_robot_neither_wakes_nor_counts_and_ends_with_the_sleep() {
    let bench = Bench::new();
    let robots = Sources::new(vec!["127.0.0.1".parse().unwrap()]);
    let door = bench.door_with(
        "web",
        program(echo),
        Rules { robots: Robots { sources: robots, ..Robots::default() }, ..Rules::default() },
    );
    bench.plane.set("web", |subject| subject.is_awake = false);
    ends(&mut call(&door));
    bench.plane.set("web", |subject| subject.is_awake = true);
    // That it was asleep is believed for a moment.
    let served = || {
        let mut stream = call(&door);
        let _ = stream.write_all(b"beep");
        matches!(stream.read(&mut [0; 4]), Ok(1..)).then_some(stream)
    };
    let mut stream = until("it is let in", served, Option::is_some).unwrap();
    says(&mut stream, "beep");
    assert!(bench.plane.edges("web").is_empty());
    bench.plane.set("web", |subject| (subject.is_awake, subject.fell) = (false, Some(ASLEEP)));
    ends(&mut stream);
}

#[test]
fn a_worker_that_is_put_to_sleep_by_force_ends_its_connections() {
    let bench = Bench::new();
    let door = bench.door("web", program(echo));
    let mut stream = call(&door);
    says(&mut stream, "hello");
    bench.plane.set("web", |subject| {
        (subject.is_awake, subject.may_wake, subject.fell) = (false, false, Some(ASLEEP));
    });
    ends(&mut stream);
    until("the hold is given back", || bench.plane.edges("web"), |edges| edges.last().unwrap().0 == 0);
    assert_eq!(
        bench.plane.edges("web").iter().filter(|edge| edge.0 > 0).count(),
        1,
        "nobody asked for it again"
    );
}

#[test]
fn a_worker_that_hangs_up_without_a_word_before_it_has_ever_answered_is_called_again() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let bench = Bench::new();
    // As a port forwarder does whose program is not there yet: it accepts, takes a moment to find out, hangs up.
    let target = program(|mut stream| {
        if CALLS.fetch_add(1, Ordering::SeqCst) < 6 {
            let mut some = [0; 4];
            let _ = stream.set_read_timeout(Some(Duration::from_millis(20)));
            let _ = stream.read(&mut some);
            return;
        }
        echo(stream);
    });
    let door = bench.door("slow", target);
    let mut stream = call(&door);
    says(&mut stream, "the first words");
    says(&mut stream, "and the next");
    assert!(CALLS.load(Ordering::SeqCst) >= 7);
}

#[test]
fn whoever_has_said_everything_is_heard_by_the_next_call_too() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    static HEARD: AtomicUsize = AtomicUsize::new(0);
    let bench = Bench::new();
    // It hangs up over what it has not read, so that is a reset.
    let target = program(|mut stream| {
        if CALLS.fetch_add(1, Ordering::SeqCst) < 3 {
            let mut some = [0; 1];
            let _ = stream.set_read_timeout(Some(Duration::from_millis(20)));
            let _ = stream.read(&mut some);
            return;
        }
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).unwrap();
        // Somebody who only looks whether it is there yet says nothing.
        HEARD.fetch_add(usize::from(!heard.is_empty()), Ordering::SeqCst);
        stream.write_all(&heard).unwrap();
    });
    let door = bench.door("late", target);
    let mut stream = call(&door);
    stream.write_all(b"all that is to be said").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "all that is to be said");
    assert!(CALLS.load(Ordering::SeqCst) >= 4);
    assert_eq!(HEARD.load(Ordering::SeqCst), 1);
}

#[test]
fn a_worker_that_has_answered_once_may_hang_up() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let bench = Bench::new();
    let target = program(|mut stream| {
        let mut heard = [0; 4];
        if stream.read_exact(&mut heard).is_ok() {
            CALLS.fetch_add(1, Ordering::SeqCst);
            if heard == *b"echo" {
                stream.write_all(&heard).unwrap();
            }
        }
    });
    let door = bench.door("web", target);
    says(&mut call(&door), "echo");
    let mut stream = call(&door);
    stream.write_all(b"quit").unwrap();
    ends(&mut stream);
    assert_eq!(CALLS.load(Ordering::SeqCst), 2, "it heard every word once");
}

#[test]
fn a_program_that_listens_late_is_waited_for() {
    let bench = Bench::new();
    let place = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let target = place.local_addr().unwrap();
    drop(place);
    let door = bench.door("late", target);
    let mut stream = call(&door);
    stream.write_all(b"early").unwrap();
    until("somebody waits", || bench.router.door(&id("late")).waiting(), |waiting| *waiting == 1);
    let listener = std::net::TcpListener::bind(target).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || echo(stream));
        }
    });
    let mut heard = [0; 5];
    stream.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"early");
}

#[test]
fn whoever_waits_too_long_is_closed_and_whoever_hangs_up_before_is_forgotten() {
    let bench = Bench::new();
    let nobody = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let rules = Rules { wait_for: Duration::from_millis(300), ..Rules::default() };
    let door = bench.door_with("never", nobody, rules);
    let mut patient = call(&door);
    until("they wait", || bench.router.door(&id("never")).waiting(), |waiting| *waiting == 1);
    ends(&mut patient);
    until("nobody waits", || bench.open("never"), |open| *open == 0);
    until("the hold is given back", || bench.plane.edges("never"), |edges| edges.last().unwrap().0 == 0);
}

#[test]
fn a_silent_connection_stops_counting_and_the_next_byte_wakes_the_worker_first() {
    let bench = Bench::new();
    let door = bench.door("web", program(echo));
    bench.plane.set("web", |subject| subject.connection_idle = Some(Duration::from_millis(100)));
    let mut stream = call(&door);
    says(&mut stream, "hello");
    let edges = until("it fell silent", || bench.plane.edges("web"), |edges| edges.len() == 2);
    assert_eq!(edges, [(1, EdgeCause::Came), (0, EdgeCause::FellSilent)]);
    // It sleeps meanwhile.
    bench.plane.set("web", |subject| (subject.is_awake, subject.wakes) = (false, false));
    stream.write_all(b"anybody?").unwrap();
    until("the worker is woken", || bench.plane.wakes("web"), |wakes| *wakes == 1);
    bench.plane.set("web", |subject| subject.wakes = true);
    let mut heard = [0; 8];
    stream.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"anybody?");
    assert_eq!(bench.open("web"), 1);
    // And the end of a silent one wakes nobody.
    until("it fell silent again", || bench.plane.edges("web"), |edges| edges.len() == 4);
    bench.plane.set("web", |subject| subject.is_awake = false);
    drop(stream);
    until("it is closed", || bench.router.door(&id("web")).held(), |held| *held == 0);
    assert_eq!(bench.plane.wakes("web"), 1);
}

#[test]
fn whoever_takes_again_what_was_sent_long_ago_gets_all_of_it() {
    let bench = Bench::new();
    let sends = program(|mut stream| {
        let _ = stream.write_all(&vec![7; 8 << 20]);
    });
    let door = bench.door("web", sends);
    bench.plane.set("web", |subject| subject.connection_idle = Some(Duration::from_millis(100)));
    let mut stream = call(&door);
    // It does not read, until it counts no more.
    let edges = until("it fell silent", || bench.plane.edges("web"), |edges| edges.len() == 2);
    assert_eq!(edges[1], (0, EdgeCause::FellSilent));
    assert_eq!(rest(&mut stream).len(), 8 << 20);
}

#[test]
fn robots_leave_nothing_behind() {
    let bench = Bench::new();
    let robots = Sources::new(vec!["127.0.0.1".parse().unwrap()]);
    let rules = Rules { robots: Robots { sources: robots, ..Robots::default() }, ..Rules::default() };
    let door = bench.door_with("web", program(echo), rules);
    for _ in 0..20 {
        says(&mut call(&door), "hello");
    }
    until("they have left", || bench.router.door(&id("web")).held(), |held| *held == 0);
    until("nobody watches for them", || bench.plane.watches(), |watches| *watches == 0);
    // And one that is in when the worker sleeps ends, also after others were turned away.
    let mut stream = call(&door);
    says(&mut stream, "hello");
    bench.plane.set("web", |subject| (subject.is_awake, subject.fell) = (false, Some(ASLEEP)));
    ends(&mut stream);
    ends(&mut call(&door));
}

#[test]
fn a_worker_that_leaves_the_books_takes_its_connections_with_it() {
    let bench = Bench::new();
    let door = bench.door("web", program(echo));
    let mut stream = call(&door);
    says(&mut stream, "hello");
    bench.plane.forget("web");
    ends(&mut stream);
    until("nobody is left", || bench.open("web"), |open| *open == 0);
}

#[test]
fn past_its_validity_not_a_byte_moves_until_it_is_counted_again() {
    let bench = Bench::new();
    let door = bench.door("web", program(echo));
    let mut stream = call(&door);
    says(&mut stream, "hello");
    bench.plane.set_valid_until(Timestamp::EPOCH);
    until("it is asked for again", || bench.plane.edges("web"), |edges| edges.len() >= 3);
    stream.write_all(b"held").unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let silence = stream.read(&mut [0; 4]).unwrap_err();
    assert!(matches!(silence.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{silence}");
    bench.plane.set_valid_until((bench.now)() + Duration::from_hours(1));
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut heard = [0; 4];
    stream.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"held");
    let edges = bench.plane.edges("web");
    assert!(edges.iter().all(|edge| *edge == (1, EdgeCause::Came)), "{edges:?}");
}

#[test]
fn a_port_that_closes_lets_those_who_are_in_finish() {
    let bench = Bench::new();
    let door = bench.door("web", program(echo));
    let mut stream = call(&door);
    says(&mut stream, "hello");
    let address = door.address();
    door.close(Closing::NobodyIn);
    until("nobody is let in", || TcpStream::connect(address).is_ok(), |is_open| !is_open);
    says(&mut stream, "still here");
    door.close(Closing::Cut);
    ends(&mut stream);
}

#[test]
fn a_port_that_leads_elsewhere_keeps_those_who_are_in() {
    let bench = Bench::new();
    let door = bench.door("one", program(echo));
    let mut old = call(&door);
    says(&mut old, "hello");
    let other = program(|mut stream| stream.write_all(b"the other one").unwrap());
    bench.plane.set("two", |_| {});
    door.lead(Leads::Port(Route::to(id("two"), other)));
    assert_eq!(rest(&mut call(&door)), b"the other one");
    says(&mut old, "still here");
}

#[test]
fn one_workers_visitors_do_not_keep_out_anothers() {
    let bench = Bench::with(Limits { threads: 1, connections: 160, waiting: 1_000, ..Limits::default() });
    let (greedy, modest) = (bench.door("greedy", program(echo)), bench.door("modest", program(echo)));
    let mut first = call(&modest);
    says(&mut first, "hello");
    let crowd: Vec<TcpStream> = (0..200).map(|_| call(&greedy)).collect();
    let turned = || bench.router.door(&id("greedy")).counts().turned_away;
    until("the crowd is told", turned, |turned| *turned == 52);
    says(&mut call(&modest), "there is room");
    drop(crowd);
    until("they have left", || bench.open("greedy"), |open| *open == 0);
    says(&mut call(&greedy), "hello");
}

#[test]
fn many_threads_and_many_connections_lose_nothing() {
    let bench = Bench::with(Limits { threads: 3, ..Limits::default() });
    let door = bench.door("web", program(echo));
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let door = &door;
            scope.spawn(move || {
                for round in 0..40 {
                    let mut stream = call(door);
                    for _ in 0..3 {
                        says(&mut stream, &format!("{worker} {round} and so on"));
                    }
                }
            });
        }
    });
    let counts = bench.router.door(&id("web")).counts();
    assert_eq!((counts.let_through, counts.turned_away), (320, 0));
    until("all have left", || bench.open("web"), |open| *open == 0);
    // A byte is counted when it was taken, which whoever hears it does not wait for.
    let counts = bench.router.door(&id("web")).counts();
    assert_eq!(counts.to_worker, counts.to_client);
}
