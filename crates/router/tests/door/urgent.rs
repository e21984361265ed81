//! Urgent data in the middle of a stream. The byte itself is lost on its way, as in other proxies; nothing else is.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::net::{SendFlags, send};

use super::plane::{echo, program, until};
use crate::{Bench, call};

const MIB: usize = 1 << 20;

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|n| (n ^ (n >> 8) ^ (n >> 16)).to_le_bytes()[0]).collect()
}

fn shout(stream: &TcpStream) {
    assert_eq!(send(stream, b"!", SendFlags::OOB).unwrap(), 1);
}

#[test]
fn a_stream_goes_on_after_urgent_data() {
    let bench = Bench::new();
    let door = bench.door("bulk", program(echo));
    // So little that the sockets are watched, and so much that they are not.
    for before in [4 * MIB, 24 * MIB] {
        let mut stream = call(&door);
        let mut writer = stream.try_clone().unwrap();
        let said = bytes(before + MIB);
        let sent = said.clone();
        let writing = std::thread::spawn(move || {
            writer.write_all(&sent[..before]).unwrap();
            shout(&writer);
            writer.write_all(&sent[before..]).unwrap();
        });
        let mut heard = vec![0; said.len()];
        stream.read_exact(&mut heard).unwrap();
        writing.join().unwrap();
        assert!(heard == said, "the bytes differ");
    }
}

/// Reads so much at once, then nothing until it is told to, and says in the end how much it was.
fn count(mut stream: TcpStream, at_once: usize, may_go_on: &AtomicBool) {
    let mut first = vec![0; at_once];
    stream.read_exact(&mut first).unwrap();
    until("it may go on", || may_go_on.load(Ordering::SeqCst), |may| *may);
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    stream.write_all((first.len() + rest.len()).to_string().as_bytes()).unwrap();
}

fn last_words_behind_urgent_data_arrive(
    at_once: usize,
    serve: fn(TcpStream),
    may_go_on: &'static AtomicBool,
) {
    let bench = Bench::new();
    let door = bench.door("sum", program(serve));
    let mut stream = call(&door);
    stream.write_all(&bytes(at_once)).unwrap();
    let mut writer = stream.try_clone().unwrap();
    // More than sockets take: whoever speaks waits for whoever listens.
    let much = bytes(16 * MIB);
    let writing = std::thread::spawn(move || {
        writer.write_all(&much).unwrap();
        shout(&writer);
        writer.write_all(&[7; 1_000]).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    may_go_on.store(true, Ordering::SeqCst);
    let mut sum = String::new();
    stream.read_to_string(&mut sum).unwrap();
    writing.join().unwrap();
    assert_eq!(sum, (at_once + 16 * MIB + 1_000).to_string());
}

#[test]
fn last_words_behind_urgent_data_are_not_lost() {
    static MAY_GO_ON: AtomicBool = AtomicBool::new(false);
    last_words_behind_urgent_data_arrive(MIB, |stream| count(stream, MIB, &MAY_GO_ON), &MAY_GO_ON);
}

#[test]
fn nor_are_they_where_a_stream_is_only_looked_at() {
    static MAY_GO_ON: AtomicBool = AtomicBool::new(false);
    last_words_behind_urgent_data_arrive(24 * MIB, |stream| count(stream, 24 * MIB, &MAY_GO_ON), &MAY_GO_ON);
}
