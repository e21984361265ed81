//! An echo server as a worker, and clients that know what has to come back.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use super::super::up::running::Folder;

/// Debian's own: the path of whoever runs the tests may have another, or a wrapper that starts slowly.
pub(super) const PYTHON: &str = "/usr/bin/python3";

/// Whoever waits this long waits in vain.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

/// A file that lies beside this one.
pub(super) fn beside(name: &str) -> String {
    format!("{}/tests/cli/door/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A worker that is an echo server.
pub(super) struct Echo {
    pub(super) id: String,
    pub(super) door: SocketAddr,
    /// What it was asked, an id in each line.
    book: PathBuf,
}

impl Echo {
    /// Lists it in the configuration, with more keys of a worker.
    pub(super) fn list(folder: &Folder, id: &str, door: SocketAddr, target: SocketAddr, more: &str) -> Self {
        let book = folder.file(&format!("{id}.asked"));
        let (script, host, port) = (beside("echo.py"), target.ip(), target.port());
        folder.append(&format!(
            "[[worker]]\nid = \"{id}\"\ndriver = \"process\"\n\
             command = [\"{PYTHON}\", \"-S\", \"-E\", \"{script}\", \"{host}\", \"{port}\", \"{}\"]\n\
             listen = \"{door}\"\ntarget = \"{target}\"\n{more}\n",
            book.display()
        ));
        Self { id: id.to_owned(), door, book }
    }

    /// How often it was asked what.
    pub(super) fn asked(&self) -> HashMap<u64, usize> {
        let mut asked = HashMap::new();
        let text = fs::read_to_string(&self.book).unwrap_or_default();
        for number in text.lines().filter_map(|line| line.parse().ok()) {
            *asked.entry(number).or_default() += 1;
        }
        asked
    }
}

/// A connection to an echo server.
pub(super) struct Talk(pub(super) TcpStream);

impl Talk {
    pub(super) fn begin(door: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(door)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self(stream))
    }

    /// Says something and hears it back, to the byte.
    pub(super) fn say(&mut self, id: u64, words: &[u8]) -> io::Result<()> {
        self.send(id, words)?;
        self.hear(id, words)
    }

    pub(super) fn send(&mut self, id: u64, words: &[u8]) -> io::Result<()> {
        self.0.write_all(&frame(id, words))
    }

    pub(super) fn hear(&mut self, id: u64, words: &[u8]) -> io::Result<()> {
        let mut back = vec![0; 16 + words.len()];
        self.0.read_exact(&mut back)?;
        if back == frame(id, words) { Ok(()) } else { Err(io::Error::other("something else came back")) }
    }

    /// Has nothing more to say, and hears that nothing more comes.
    pub(super) fn end(mut self) -> io::Result<()> {
        self.0.shutdown(Shutdown::Write)?;
        match self.0.read(&mut [0])? {
            0 => Ok(()),
            _ => Err(io::Error::other("more came back than was said")),
        }
    }
}

fn frame(id: u64, words: &[u8]) -> Vec<u8> {
    let length = u32::try_from(words.len()).expect("they are few");
    [&id.to_be_bytes()[..], &length.to_be_bytes(), &checksum(words).to_be_bytes(), words].concat()
}

/// CRC-32 as everybody computes it.
fn checksum(words: &[u8]) -> u32 {
    !words.iter().fold(!0_u32, |sum, word| {
        (0..8).fold(sum ^ u32::from(*word), |sum, _| (sum >> 1) ^ (0xEDB8_8320 & (sum & 1).wrapping_neg()))
    })
}

/// Words of some length that are like no others.
pub(super) fn words(seed: u64, length: usize) -> Vec<u8> {
    let mut chance = Chance(seed | 1);
    (0..length).map(|_| chance.next().to_be_bytes()[0]).collect()
}

/// Chance that a failing run can be run again with.
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub(super) fn below(&mut self, most: u64) -> u64 {
        (self.next() >> 11) % most
    }
}
