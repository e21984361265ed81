use std::io::{Read as _, Write as _};

use super::super::bulk::tests::gathering;
use super::*;

#[test]
fn nobody_looks_for_more_after_the_end() {
    let mut way = Way { bulk: gathering(), ..Way::default() };
    assert!(way.waits_for_a_look());
    way.end = End::Heard;
    assert!(!way.waits_for_a_look() && !way.gathers());
    way.end = End::PassedOn;
    assert!(!way.waits_for_a_look() && !way.gathers());
}

fn connected() -> (OwnedFd, std::net::TcpStream) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let one = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (other, _) = listener.accept().unwrap();
    other.set_nonblocking(true).unwrap();
    (OwnedFd::from(other), one)
}

#[test]
fn words_behind_urgent_data_that_nobody_told_of_are_not_lost() {
    // With a pipe, and without.
    for pipes in [1, 0] {
        let ((source, mut speaker), (sink, mut listener)) = (connected(), connected());
        speaker.write_all(&vec![1; 50_000]).unwrap();
        assert_eq!(send(&speaker, b"!", SendFlags::OOB).unwrap(), 1);
        speaker.write_all(&[2; 1_000]).unwrap();
        drop(speaker);
        let mut kit = Kit::new(pipes);
        // That it was the last is all that is told of a source that is looked at.
        let mut way = Way { bulk: gathering(), source: Source::Closing, ..Way::of_a_stranger() };
        while !way.is_over() {
            way.is_readable = true;
            way.run(&source, &sink, &mut kit, Terms::default());
        }
        let mut heard = Vec::new();
        listener.read_to_end(&mut heard).unwrap();
        assert_eq!(heard.len(), 51_000, "with {pipes} pipes");
    }
}

#[test]
fn whoever_takes_nothing_keeps_no_pipe_that_others_need() {
    let ((source, mut speaker), (sink, mut listener)) = (connected(), connected());
    let mut kit = Kit::new(1);
    let mut way = Way { bulk: gathering(), ..Way::of_a_stranger() };
    let speaking = std::thread::spawn(move || {
        let said: Vec<u8> = (0..16_u32 << 20).map(|n| (n ^ (n >> 8) ^ (n >> 16)).to_le_bytes()[0]).collect();
        speaker.write_all(&said).unwrap();
        said
    });
    while !way.is_full {
        way.is_readable = true;
        way.run(&source, &sink, &mut kit, Terms::default());
    }
    assert!(matches!(way.held, Held::InPipe { .. }) && kit.pipes.are_scarce());
    assert!(way.spare_pipe(&mut kit));
    assert!(matches!(way.held, Held::Bytes { .. }) && !kit.pipes.are_scarce());
    let hearing = std::thread::spawn(move || {
        let mut heard = Vec::new();
        listener.read_to_end(&mut heard).unwrap();
        heard
    });
    while !way.is_over() {
        (way.is_full, way.is_readable) = (false, true);
        way.run(&source, &sink, &mut kit, Terms::default());
    }
    assert!(hearing.join().unwrap() == speaking.join().unwrap(), "the bytes differ");
    assert_eq!(kit.held, 0);
}

#[test]
fn an_end_is_not_passed_on_before_what_came_before_it() {
    let pair = || {
        let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
        one.set_nonblocking(true).unwrap();
        (OwnedFd::from(one), other)
    };
    let ((source, mut speaker), (sink, mut listener)) = (pair(), pair());
    let mut kit = Kit::new(1);
    let mut way = Way::of_a_stranger();
    let mut said = 0;
    while !way.is_full {
        speaker.write_all(&[7; 4096]).unwrap();
        said += 4096;
        way.is_readable = true;
        way.run(&source, &sink, &mut kit, Terms::default());
    }
    drop(speaker);
    assert!(way.holds());
    way.pass_end_on(&sink);
    assert!(!way.is_over(), "something is held");
    let heard = std::thread::spawn(move || {
        let mut heard = Vec::new();
        listener.read_to_end(&mut heard).unwrap();
        heard.len()
    });
    while !way.is_over() {
        (way.is_full, way.is_readable) = (false, true);
        way.run(&source, &sink, &mut kit, Terms::default());
    }
    assert_eq!(heard.join().unwrap(), said);
}

#[test]
fn where_much_is_held_nothing_more_is_and_whoever_takes_everything_is_served_as_ever() {
    let ((source, mut speaker), (sink, mut listener)) = (connected(), connected());
    let mut kit = Kit::new(0);
    kit.held = HELD_AT_MOST + 1;
    let mut way = Way::of_a_stranger();
    // More than fits into the sockets: the sink is full time and again.
    let said: Vec<u8> = (0..16_u32 << 20).map(|n| (n ^ (n >> 8) ^ (n >> 16)).to_le_bytes()[0]).collect();
    let speaking = std::thread::spawn(move || {
        speaker.write_all(&said).unwrap();
        said
    });
    while !way.is_full {
        way.is_readable = true;
        way.run(&source, &sink, &mut kit, Terms::default());
    }
    assert!(way.holds(), "somebody has words that were not taken");
    let hearing = std::thread::spawn(move || {
        let mut heard = Vec::new();
        listener.read_to_end(&mut heard).unwrap();
        heard
    });
    let mut moved = 0;
    while !way.is_over() {
        (way.is_full, way.is_readable) = (false, true);
        // As the kernel tells of it, at some time.
        way.source = if speaking.is_finished() { Source::Closing } else { Source::Speaks };
        moved += way.run(&source, &sink, &mut kit, Terms::default()).moved;
        assert_eq!(kit.held, HELD_AT_MOST + 1, "in the socket, and not here");
    }
    assert!(hearing.join().unwrap() == speaking.join().unwrap(), "the bytes differ");
    assert!(moved > 0);
}
