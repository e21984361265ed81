//! Whether a worker that is awake answers, and who waits for that.

use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use drowse_router::route::{Place, Ready, Target};
use drowse_router::{Leads, Listener, Route};

use super::plane::{echo, id, program, until};
use crate::{Bench, call, says};

#[test]
fn whoever_comes_to_a_port_that_answers_does_not_wait_for_one_that_hangs() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    static LEFT: AtomicUsize = AtomicUsize::new(0);
    let bench = Bench::new();
    let hangs = program(|mut stream| {
        let _ = stream.read(&mut [0; 1]);
        ASKED.fetch_add(1, Ordering::SeqCst);
        let _ = stream.read_to_end(&mut Vec::new());
        LEFT.fetch_add(1, Ordering::SeqCst);
    });
    let ready = Some(Arc::new(Ready { place: Place::Address(hangs), path: "/".to_owned() }));
    let route = Route { target: Target { ready, ..Target::from(hangs) }, ..Route::to(id("web"), hangs) };
    bench.plane.set("web", |_| {});
    let listener = Listener::bind(([127, 0, 0, 1], 0).into()).unwrap();
    let (slow, quick) = (bench.router.open(listener, Leads::Port(route)), bench.door("web", program(echo)));
    let _waits = call(&slow);
    until("it is asked whether it is ready", || ASKED.load(Ordering::SeqCst), |asked| *asked == 1);
    says(&mut call(&quick), "hello");
    assert_eq!(LEFT.load(Ordering::SeqCst), 0, "it has still not said whether it is");
}
