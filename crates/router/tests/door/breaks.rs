//! Connections that break off: nobody takes half of something for the whole, and nobody is held by somebody who is gone.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::Duration;

use rustix::net::sockopt;

use super::plane::{program, until};
use crate::door::plane::id;
use crate::{ASLEEP, Bench, call, says};

const MIB: usize = 1 << 20;

fn break_off(stream: TcpStream) {
    sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    drop(stream);
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
    let (tell, told) = mpsc::channel::<()>();
    let told = std::sync::Mutex::new(told);
    let size = MIB / 8;
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
    // The worker is gone, and its visitor holds it no more, however long they take.
    until("it counts no more", || bench.open("web"), |open| *open == 0);
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
            stream.shutdown(std::net::Shutdown::Write).unwrap();
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
    let target = program(|mut stream| {
        answer(&mut stream);
        loop {
            std::thread::park();
        }
    });
    let door = bench.door("web", target);
    let mut stream = call(&door);
    says(&mut stream, "hello");
    stream.set_nonblocking(true).unwrap();
    let mut counted = 0;
    // Until nothing goes through any more.
    let jam = || {
        while stream.write(&[7; 8192]).is_ok() {}
        let before = std::mem::replace(&mut counted, bench.router.door(&id("web")).counts().to_worker);
        before == counted && stream.write(&[7]).is_err()
    };
    until("it is jammed", jam, |is_jammed| *is_jammed);
    break_off(stream);
    // What it said is still to be taken, for a while.
    bench.skip(Duration::from_secs(50));
    assert_eq!(bench.open("web"), 1);
    let gone_at_last = || {
        bench.skip(Duration::from_secs(2));
        bench.open("web")
    };
    until("it counts no more", gone_at_last, |open| *open == 0);
    let free_at_last = || {
        bench.skip(Duration::from_secs(2));
        bench.router.door(&id("web")).held()
    };
    until("its place is free", free_at_last, |held| *held == 0);
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
    bench.plane.set("web", |subject| {
        (subject.is_awake, subject.may_wake, subject.fell) = (false, false, Some(ASLEEP));
    });
    let (heard, end) = hear(&mut stream);
    assert_eq!(heard, 1000);
    assert!(is_reset(&end), "{end:?}");
}
