//! A worker whose address is good for one run: what is said to it is never heard by whoever has the address next.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use drowse_router::route::{Place, Robots, Rules, Sources, Target};
use drowse_router::{Leads, Listener, Names, Open, Route};
use drowse_wire::control::{Run, Way};

use super::plane::{echo, id, program, until};
use crate::{Bench, call, ends, says};

/// Ends when it has been looked at so often.
#[derive(Debug)]
struct Mortal(AtomicUsize);

impl Run for Mortal {
    fn stands(&self) -> bool {
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
    }
}

fn way(address: SocketAddr, looks: usize) -> Way {
    Way { address, run: Arc::new(Mortal(AtomicUsize::new(looks))) }
}

/// Listens, and keeps what it hears.
fn stranger() -> (SocketAddr, Arc<Mutex<Vec<u8>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let (listener, keeps) = (std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap(), Arc::clone(&heard));
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let keeps = Arc::clone(&keeps);
            std::thread::spawn(move || {
                let mut buffer = [0; 1024];
                while let Ok(read @ 1..) = stream.read(&mut buffer) {
                    keeps.lock().unwrap().extend_from_slice(&buffer[..read]);
                }
            });
        }
    });
    (address, heard)
}

fn route(bench: &Bench, worker: &str, rules: Rules) -> Route {
    bench.plane.set(worker, |_| {});
    let target = Target { place: Place::Port(80), ready: None };
    Route { target, rules: Arc::new(rules), ..Route::to(id(worker), ([0, 0, 0, 0], 0).into()) }
}

fn listen() -> Listener {
    Listener::bind(([127, 0, 0, 1], 0).into()).unwrap()
}

fn door(bench: &Bench, worker: &str, rules: Rules) -> Open {
    bench.router.open(listen(), Leads::Port(route(bench, worker, rules)))
}

/// At whatever point the run ends: when it is found, proven, dialled, picked up. Then the address is another's.
#[test]
fn what_is_said_reaches_only_a_run_that_stood_when_it_picked_up() {
    for looks in 0..4 {
        let bench = Bench::new();
        let (elsewhere, heard) = stranger();
        bench.plane.lead("web", [way(elsewhere, looks), way(program(echo), usize::MAX)]);
        let door = door(&bench, "web", Rules::default());
        let mut client = call(&door);
        says(&mut client, "secret");
        assert_eq!(heard.lock().unwrap().as_slice(), b"", "after {looks} looks");
    }
}

#[test]
fn a_request_reaches_only_a_run_that_stood_when_it_picked_up() {
    for looks in 0..4 {
        let bench = Bench::new();
        let (elsewhere, heard) = stranger();
        let right = program(|mut stream: TcpStream| {
            let mut buffer = [0; 1024];
            if let Ok(1..) = stream.read(&mut buffer) {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nright");
            }
        });
        bench.plane.lead("web", [way(elsewhere, looks), way(right, usize::MAX)]);
        let names = Names::any(Arc::new(route(&bench, "web", Rules::default())));
        let door = bench.router.open(listen(), Leads::Http(Arc::new(names)));
        let mut client = call(&door);
        client.write_all(b"GET /secret HTTP/1.1\r\nhost: web\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("right"), "after {looks} looks: {answer}");
        assert_eq!(heard.lock().unwrap().as_slice(), b"", "after {looks} looks");
    }
}

#[test]
fn a_robot_is_led_to_the_present_run_or_turned_away() {
    let robots = Robots { sources: Sources::new(vec!["127.0.0.0/8".parse().unwrap()]), ..Robots::default() };
    let rules = Rules { robots, ..Rules::default() };
    for looks in 0..3 {
        let bench = Bench::new();
        let (elsewhere, heard) = stranger();
        bench.plane.lead("web", [way(elsewhere, looks), way(program(echo), usize::MAX)]);
        let door = door(&bench, "web", rules.clone());
        let mut client = call(&door);
        if looks == 0 {
            // It was gone before anybody could be led there.
            ends(&mut client);
        } else {
            says(&mut client, "secret");
        }
        assert_eq!(heard.lock().unwrap().as_slice(), b"", "after {looks} looks");
    }
}

/// A kept connection leads to whoever picked up; the next one is led where the worker is by then.
#[test]
fn two_workers_that_swap_addresses_are_never_mixed_up() {
    let bench = Bench::new();
    let [first, second] = [(); 2].map(|()| {
        program(|mut stream: TcpStream| {
            let own = stream.local_addr().unwrap().port().to_string();
            let mut buffer = [0; 1024];
            while let Ok(1..) = stream.read(&mut buffer) {
                if stream.write_all(format!("{own:>8}").as_bytes()).is_err() {
                    return;
                }
            }
        })
    });
    let asks = |client: &mut TcpStream| {
        client.write_all(b"who").unwrap();
        let mut answer = [0; 8];
        client.read_exact(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).trim().parse::<u16>().unwrap()
    };
    let runs = [(); 4].map(|()| Arc::new(Mortal(AtomicUsize::new(usize::MAX))));
    let lead = |worker: &str, address, run: &Arc<Mortal>| {
        bench.plane.lead(worker, [Way { address, run: Arc::<Mortal>::clone(run) }]);
    };
    lead("a", first, &runs[0]);
    lead("b", second, &runs[1]);
    let doors = ["a", "b"].map(|worker| door(&bench, worker, Rules::default()));
    let mut before = doors.each_ref().map(call);
    assert_eq!(before.each_mut().map(asks), [first.port(), second.port()]);
    // Both are stopped and started, and nobody has told the door.
    runs[0].0.store(0, Ordering::SeqCst);
    runs[1].0.store(0, Ordering::SeqCst);
    lead("a", second, &runs[2]);
    lead("b", first, &runs[3]);
    for _ in 0..3 {
        let mut after = doors.each_ref().map(call);
        assert_eq!(after.each_mut().map(asks), [second.port(), first.port()]);
    }
    assert_eq!(before.each_mut().map(asks), [first.port(), second.port()]);
    until("all are told apart", || bench.open("a"), |open| *open >= 1);
}
