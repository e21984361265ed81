//! Urgent data in the middle of a stream. The byte itself is lost on its way, as in other proxies; nothing else is.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use rustix::net::{SendFlags, send};

use super::plane::{echo, program};
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

/// Says in the end how much it was.
fn sum(mut stream: TcpStream) {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    stream.write_all(all.len().to_string().as_bytes()).unwrap();
}

#[test]
fn last_words_behind_urgent_data_are_not_lost() {
    let bench = Bench::new();
    let door = bench.door("sum", program(sum));
    for before in [4 * MIB, 24 * MIB] {
        let mut stream = call(&door);
        stream.write_all(&bytes(before)).unwrap();
        shout(&stream);
        stream.write_all(&[7; 1_000]).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut sum = String::new();
        stream.read_to_string(&mut sum).unwrap();
        assert_eq!(sum, (before + 1_000).to_string());
    }
}
