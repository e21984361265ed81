//! The TCP sockets of the machine, read by a thread of its own for all who have asked.
//!
//! `/proc/net/tcp` is not just memory: for each reader the kernel walks its whole hash table, empty places too, which
//! takes tens of milliseconds on a machine with much memory, whatever is in it. On a thread of the runtime that holds
//! up every wake, and once for each worker it fills a core with a few dozen workers. So one read serves everybody who
//! has asked before it began, and after it the thread rests for longer than it took.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;

use super::sockets::{self, Socket};
use crate::driver::Now;

/// How many times as long it rests: a quarter of a core at most.
const REST: u32 = 3;

/// However long a read took, or seemed to: the clock may have been set.
const LONGEST_REST: Duration = Duration::from_millis(500);

/// How many listeners are remembered.
const MOST_LISTENERS: usize = 100_000;

/// Asks that thread. It ends with this.
#[derive(Debug)]
pub(crate) struct Tables {
    ask: Sender<Asked>,
    /// Sockets that have been seen to listen, by their inodes, whose numbers come again after four thousand million.
    listeners: Mutex<HashSet<u64>>,
}

/// What was read, or why not.
type Read = Result<Arc<Vec<Socket>>, String>;

#[derive(Debug)]
struct Asked {
    /// Processes that share a network namespace.
    pids: Vec<i32>,
    answer: oneshot::Sender<Read>,
}

impl Tables {
    pub(crate) fn start(now: Now) -> io::Result<Self> {
        let (ask, asked) = channel();
        thread::Builder::new().name("drowse-sockets".into()).spawn(move || answer_all(&asked, &now))?;
        Ok(Self { ask, listeners: Mutex::default() })
    }

    /// Whether a socket is known to listen.
    pub(super) fn is_listener(&self, inode: u64) -> bool {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).contains(&inode)
    }

    /// The sockets that these processes see, read after this was asked.
    pub(crate) async fn read(&self, pids: &[i32]) -> io::Result<Arc<Vec<Socket>>> {
        let (answer, answered) = oneshot::channel();
        let gone = || io::Error::other("nobody reads the sockets of the machine");
        self.ask.send(Asked { pids: pids.to_vec(), answer }).map_err(|_| gone())?;
        let read = answered.await.map_err(|_| gone())?.map_err(io::Error::other)?;
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        if listeners.len() > MOST_LISTENERS {
            listeners.clear();
        }
        listeners.extend(read.iter().filter(|socket| socket.is_listener).map(|socket| socket.inode));
        drop(listeners);
        Ok(read)
    }
}

fn answer_all(asked: &Receiver<Asked>, now: &Now) {
    while let Ok(first) = asked.recv() {
        let began_at = now();
        let mut read: HashMap<u64, Read> = HashMap::new();
        // Whoever asks from here on may find sockets that were not there when a table was read.
        let waiting: Vec<Asked> = std::iter::once(first).chain(asked.try_iter()).collect();
        for Asked { pids, answer } in waiting {
            let once = || sockets::read_all(&pids).map(Arc::new).map_err(|error| error.to_string());
            let tables = match namespace(&pids) {
                Some(namespace) => read.entry(namespace).or_insert_with(once).clone(),
                // Not to be told: for itself then.
                None => once(),
            };
            // Whoever does not wait any more needs no answer.
            let _ = answer.send(tables);
        }
        // Nobody unparks it.
        thread::park_timeout((REST * now().since(began_at)).min(LONGEST_REST));
    }
}

/// Which network they live in. Any of them will do, and any may end meanwhile.
fn namespace(pids: &[i32]) -> Option<u64> {
    pids.iter().find_map(|pid| Some(std::fs::metadata(format!("/proc/{pid}/ns/net")).ok()?.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use drowse_core::Timestamp;

    #[tokio::test]
    async fn whoever_asks_sees_what_was_there_before() {
        let tables = Tables::start(Arc::new(|| Timestamp::from_micros(0))).unwrap();
        let pids = [i32::try_from(std::process::id()).expect("a pid fits")];
        for _ in 0..3 {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let _stream = std::net::TcpStream::connect(address).unwrap();
            let (one, other) = tokio::join!(tables.read(&pids), tables.read(&pids));
            for seen in [one.unwrap(), other.unwrap()] {
                assert!(seen.iter().any(|socket| socket.is_to(address)), "{seen:?}");
                let listening: Vec<_> = seen.iter().filter(|socket| socket.is_listener).collect();
                assert!(!listening.is_empty());
                assert!(listening.iter().all(|socket| tables.is_listener(socket.inode)));
                let talking = seen.iter().find(|socket| socket.is_to(address)).unwrap();
                assert!(!tables.is_listener(talking.inode), "who talks does not listen");
            }
        }
    }
}
