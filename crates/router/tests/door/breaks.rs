//! Connections that break off: nobody takes half of something for the whole, and nobody is held by somebody who is gone.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use drowse_router::{Closing, Open};
use rustix::net::sockopt;

use super::plane::{echo, program, until};
use crate::door::plane::id;
use crate::{ASLEEP, Bench, call, says};

const MIB: usize = 1 << 20;

fn break_off(stream: TcpStream) {
    sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    drop(stream);
}

/// Time in which a pump looks around: it does so by the machine's clock.
#[expect(clippy::disallowed_methods, reason = "there is nothing to be seen by which it could be told")]
fn lets_pass(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

/// What is heard, and whether that was all.
fn hear(stream: &mut TcpStream) -> (usize, io::Result<()>) {
    let (mut heard, mut buffer) = (0, [0; 8192]);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return (heard, Ok(())),
            Ok(some) => heard += some,
            Err(error) => return (heard, Err(error)),
        }
    }
}

fn is_reset(end: &io::Result<()>) -> bool {
    end.as_ref().is_err_and(|error| error.kind() == ErrorKind::ConnectionReset)
}

/// It answers whoever comes, and has them go on.
fn answer(stream: &mut TcpStream) -> bool {
    let mut word = [0; 5];
    stream.read_exact(&mut word).is_ok() && stream.write_all(&word).is_ok()
}

/// Somebody orders the worker to sleep, whoever is there.
fn sleeps_by_force(bench: &Bench) {
    bench.plane.set("web", |subject| {
        (subject.is_awake, subject.may_wake, subject.fell) = (false, false, Some(ASLEEP));
    });
}

/// Its place is free when time has passed.
fn is_let_go_of_in_time(bench: &Bench) {
    let later = || {
        bench.skip(Duration::from_secs(2));
        bench.router.door(&id("web")).held()
    };
    until("its place is free", later, |held| *held == 0);
}

/// A client that has said so much that nothing goes through any more, for the worker takes none of it.
fn jammed(bench: &Bench, door: &Open) -> TcpStream {
    let mut stream = call(door);
    says(&mut stream, "hello");
    stream.set_nonblocking(true).unwrap();
    let mut counted = 0;
    let jam = || {
        while stream.write(&[7; 8192]).is_ok() {}
        let before = std::mem::replace(&mut counted, bench.router.door(&id("web")).counts().to_worker);
        before == counted && stream.write(&[7]).is_err()
    };
    until("it is jammed", jam, |is_jammed| *is_jammed);
    stream.set_nonblocking(false).unwrap();
    stream
}

/// A worker that answers once and takes nothing more.
fn deaf() -> SocketAddr {
    program(|mut stream| {
        answer(&mut stream);
        loop {
            std::thread::park();
        }
    })
}

/// A client that takes nothing, of a worker that has said so much and then broken off.
fn client_of_a_broken_worker(bench: &Bench, size: usize) -> (TcpStream, Open) {
    let (tell, told) = mpsc::channel::<()>();
    let told = std::sync::Mutex::new(told);
    let target = program(move |mut stream| {
        if answer(&mut stream) {
            stream.write_all(&vec![7; size]).unwrap();
            told.lock().unwrap().recv().unwrap();
            break_off(stream);
        }
    });
    let door = bench.door("web", target);
    let mut stream = call(&door);
    sockopt::set_socket_recv_buffer_size(&stream, 4096).unwrap();
    says(&mut stream, "hello");
    let counted = || bench.router.door(&id("web")).counts().to_client;
    until("the kernel has it", counted, |sent| *sent == 5 + size as u64);
    tell.send(()).unwrap();
    until("it counts no more", || bench.open("web"), |open| *open == 0);
    (stream, door)
}

#[test]
fn an_upload_that_breaks_off_is_not_taken_for_whole() {
    let bench = Bench::new();
    let (tell, told) = mpsc::channel();
    let target = program(move |mut stream| {
        if answer(&mut stream) {
            tell.send(hear(&mut stream)).unwrap();
        }
    });
    let door = bench.door("web", target);
    // As little as is copied, and as much as goes through a pipe.
    for size in [MIB / 64, MIB, 24 * MIB] {
        let mut stream = call(&door);
        says(&mut stream, "hello");
        stream.write_all(&vec![7; size]).unwrap();
        break_off(stream);
        let (heard, end) = told.recv().unwrap();
        assert!(is_reset(&end), "{heard} of {size} were taken for whole");
    }
}

#[test]
fn whoever_is_slow_has_all_that_came_before_the_break() {
    let bench = Bench::new();
    let size = MIB / 8;
    // The worker is gone, and its visitor holds it no more, however long they take.
    let (mut stream, _door) = client_of_a_broken_worker(&bench, size);
    let (heard, end) = hear(&mut stream);
    assert_eq!(heard, size);
    assert!(is_reset(&end), "half of it would have looked whole");
    until("its place is free", || bench.router.door(&id("web")).held(), |held| *held == 0);
}

#[test]
fn an_answer_that_is_cut_short_does_not_look_whole() {
    let bench = Bench::new();
    let size = 3 * MIB;
    // It does not care for the upload, and to close over it has the kernel throw away what is left of the answer.
    let target = program(move |mut stream| {
        if answer(&mut stream) {
            stream.write_all(&vec![7; size]).unwrap();
        }
    });
    let door = bench.door("web", target);
    for _ in 0..40 {
        let mut stream = call(&door);
        says(&mut stream, "hello");
        let mut uploading = stream.try_clone().unwrap();
        let uploading = std::thread::spawn(move || _ = uploading.write_all(&vec![7; 300_000]));
        let (heard, end) = hear(&mut stream);
        assert!(heard == size || is_reset(&end), "{heard} of {size} looked whole: {end:?}");
        uploading.join().unwrap();
    }
}

#[test]
fn an_end_that_came_before_the_break_is_one() {
    let bench = Bench::new();
    let size = 100_000;
    let target = program(move |mut stream| {
        if answer(&mut stream) {
            stream.write_all(&vec![7; size]).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            // The end is known to have come when somebody has heard it.
            let _ = stream.read(&mut [0]);
            break_off(stream);
        }
    });
    let door = bench.door("web", target);
    for _ in 0..20 {
        let mut stream = call(&door);
        says(&mut stream, "hello");
        let (heard, end) = hear(&mut stream);
        assert_eq!((heard, end.is_ok()), (size, true));
        let _ = stream.write_all(b"!");
    }
}

#[test]
fn a_client_that_is_gone_is_noticed_while_the_worker_takes_nothing() {
    let bench = Bench::new();
    let door = bench.door("web", deaf());
    let stream = jammed(&bench, &door);
    break_off(stream);
    // What it said is still to be taken, for a while.
    bench.skip(Duration::from_secs(50));
    assert_eq!(bench.open("web"), 1);
    let gone_at_last = || {
        bench.skip(Duration::from_secs(2));
        bench.open("web")
    };
    until("it counts no more", gone_at_last, |open| *open == 0);
    is_let_go_of_in_time(&bench);
}

#[test]
fn what_a_client_said_before_it_hung_up_over_an_answer_is_heard() {
    let bench = Bench::new();
    let (tell, told) = mpsc::channel();
    let target = program(move |mut stream| {
        if answer(&mut stream) {
            let mut speaking = stream.try_clone().unwrap();
            // It speaks without end, and hears.
            std::thread::spawn(move || while speaking.write_all(&[7; 8192]).is_ok() {});
            tell.send(hear(&mut stream).0).unwrap();
        }
    });
    let door = bench.door("web", target);
    for _ in 0..20 {
        let mut stream = call(&door);
        says(&mut stream, "hello");
        stream.write_all(&[7; 1_000]).unwrap();
        // To close over what was not read is a break.
        stream.read_exact(&mut [0]).unwrap();
        drop(stream);
        assert_eq!(told.recv().unwrap(), 1_000);
    }
    until("nobody is held", || bench.open("web"), |open| *open == 0);
}

#[test]
fn sleep_that_was_forced_is_no_end_of_a_download() {
    let bench = Bench::new();
    let target = program(|mut stream| {
        if answer(&mut stream) {
            let _ = stream.write_all(&[7; 1000]);
            let _ = stream.read(&mut [0]);
        }
    });
    let door = bench.door("web", target);
    let mut stream = call(&door);
    says(&mut stream, "hello");
    let counted = || bench.router.door(&id("web")).counts().to_client;
    until("it is under way", counted, |sent| *sent == 1005);
    sleeps_by_force(&bench);
    let (heard, end) = hear(&mut stream);
    assert_eq!(heard, 1000);
    assert!(is_reset(&end), "{end:?}");
}

#[test]
fn a_jam_on_one_side_does_not_keep_the_other_waiting_for_the_break() {
    let bench = Bench::new();
    let door = bench.door("web", deaf());
    let mut stream = jammed(&bench, &door);
    sleeps_by_force(&bench);
    let (heard, end) = hear(&mut stream);
    assert_eq!(heard, 0);
    assert!(is_reset(&end), "{end:?}");
    assert_eq!(bench.router.door(&id("web")).held(), 1, "the worker may still take what is on its way");
    is_let_go_of_in_time(&bench);
}

#[test]
fn whoever_is_slow_has_time_as_long_as_they_take_something() {
    let bench = Bench::new();
    let size = MIB / 8;
    let (mut stream, _door) = client_of_a_broken_worker(&bench, size);
    // So much may have come already.
    stream.read_exact(&mut vec![0; size / 2]).unwrap();
    for _ in 0..8 {
        // Those who leave are looked at every tenth of a second.
        lets_pass(150);
        bench.skip(Duration::from_secs(20));
        stream.read_exact(&mut vec![0; size / 16]).expect("nothing is lost");
    }
    assert!(is_reset(&hear(&mut stream).1));
}

#[test]
fn a_break_that_had_no_time_is_one_all_the_same() {
    let bench = Bench::new();
    let size = MIB / 8;
    let (mut stream, door) = client_of_a_broken_worker(&bench, size);
    // Drowse ends: whoever is here is cut, and what has not ended then is broken off.
    door.close(Closing::Cut);
    bench.finish_within(Duration::from_millis(20));
    let (heard, end) = hear(&mut stream);
    assert!(heard < size && is_reset(&end), "{heard} of {size}: {end:?}");
}

#[test]
fn what_has_not_ended_when_there_is_no_time_left_breaks_off() {
    let bench = Bench::new();
    let door = bench.door("web", deaf());
    let mut stream = call(&door);
    says(&mut stream, "hello");
    bench.finish_within(Duration::from_millis(20));
    let (heard, end) = hear(&mut stream);
    assert_eq!(heard, 0);
    assert!(is_reset(&end), "{end:?}");
    until("its place is free", || bench.router.door(&id("web")).held(), |held| *held == 0);
}

/// Has a client say so much that the router holds some and its own socket has more, but the client's kernel has none, and
/// come to its end. Says how much that was.
fn say_more_than_is_taken(bench: &Bench, mut stream: TcpStream) -> usize {
    let (mut said, mut stuck) = (0, 0);
    while stuck < 20 {
        let before = bench.router.door(&id("web")).counts().to_worker;
        stream.write_all(&[7; 8192]).unwrap();
        said += 8192;
        lets_pass(4);
        stuck = if before == bench.router.door(&id("web")).counts().to_worker { stuck + 1 } else { 0 };
    }
    drop(stream);
    lets_pass(20);
    said
}

#[test]
fn an_upload_that_came_to_its_end_waits_for_its_worker_for_as_long_as_it_takes() {
    let bench = Bench::new();
    let (tell, told) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let goes_on = std::sync::Mutex::new(goes_on);
    let target = program(move |mut stream| {
        if answer(&mut stream) {
            // It has nothing more to say, so the client's end is all that is left: its socket is gone with that.
            stream.shutdown(Shutdown::Write).unwrap();
            goes_on.lock().unwrap().recv().unwrap();
            tell.send(hear(&mut stream)).unwrap();
        }
    });
    let door = bench.door("web", target);
    let mut stream = call(&door);
    says(&mut stream, "hello");
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    let said = say_more_than_is_taken(&bench, stream);
    let other = bench.door("other", program(echo));
    for _ in 0..3 {
        bench.skip(Duration::from_secs(100));
        // The pump looks around when something happens.
        says(&mut call(&other), "hello");
    }
    assert_eq!(bench.open("web"), 1, "it is in use");
    go_on.send(()).unwrap();
    let (heard, end) = told.recv().unwrap();
    assert_eq!((heard, end.is_ok()), (said, true));
    until("nobody is held", || bench.open("web"), |open| *open == 0);
}

#[test]
fn the_end_of_an_upload_is_one_also_when_nobody_hears_the_answer() {
    let bench = Bench::new();
    let (tell, told) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let goes_on = std::sync::Mutex::new(goes_on);
    let target = program(move |mut stream| {
        if answer(&mut stream) {
            goes_on.lock().unwrap().recv().unwrap();
            stream.set_nodelay(true).unwrap();
            // The first has the client's kernel say that nobody listens, and nobody reads the last.
            for _ in 0..4 {
                stream.write_all(b"well done").unwrap();
                lets_pass(20);
            }
            tell.send(hear(&mut stream)).unwrap();
        }
    });
    let door = bench.door("web", target);
    let mut stream = call(&door);
    says(&mut stream, "hello");
    let said = say_more_than_is_taken(&bench, stream);
    go_on.send(()).unwrap();
    let (heard, end) = told.recv().unwrap();
    assert_eq!((heard, end.is_ok()), (said, true), "{end:?}");
    until("nobody is held", || bench.open("web"), |open| *open == 0);
}

#[test]
fn an_answer_is_heard_by_whoever_still_speaks_when_the_worker_has_gone() {
    let bench = Bench::new();
    let size = MIB / 8;
    let (tell, told) = mpsc::channel();
    let target = program(move |mut stream| {
        if answer(&mut stream) {
            stream.write_all(&vec![7; size]).unwrap();
            drop(stream);
            tell.send(()).unwrap();
        }
    });
    let door = bench.door("web", target);
    for comes_to_an_end in [false, true] {
        let mut stream = call(&door);
        sockopt::set_socket_recv_buffer_size(&stream, 4096).unwrap();
        let before = bench.router.door(&id("web")).counts().to_client;
        says(&mut stream, "hello");
        let counted = || bench.router.door(&id("web")).counts().to_client - before;
        until("the kernel has it", counted, |sent| *sent == 5 + size as u64);
        told.recv().unwrap();
        // The first finds out that the worker is gone; nobody reads the others.
        for _ in 0..10 {
            stream.write_all(&[7; 1_000]).unwrap();
            lets_pass(4);
        }
        if comes_to_an_end {
            stream.shutdown(Shutdown::Write).unwrap();
        }
        until("it counts no more", || bench.open("web"), |open| *open == 0);
        let (heard, end) = hear(&mut stream);
        assert_eq!((heard, end.is_ok()), (size, true), "{end:?}");
    }
}
