//! Lines of JSON over a socket in the data folder, which is for its owner alone.

use std::io;
use std::time::Duration;

use drowse_wire::guest::LONGEST;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// How long the other side may take to read what it is told.
const WITHIN: Duration = Duration::from_secs(10);

/// Whether whoever is at the other end may be: us, or the machine's owner.
pub(super) fn is_ours(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|peer| {
        let uid = rustix::process::geteuid().as_raw();
        peer.uid() == uid || peer.uid() == 0
    })
}

/// Whether the other side is gone or did not want us, and is not merely slow or hard to understand.
pub(super) fn is_hang_up(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionReset | BrokenPipe | ConnectionRefused)
}

/// Both directions.
pub(super) fn lines(stream: UnixStream) -> (Hearing, Saying) {
    let (read, write) = stream.into_split();
    (Hearing { read, heard: Vec::new() }, Saying { write })
}

/// What is heard.
#[derive(Debug)]
pub(super) struct Hearing {
    read: OwnedReadHalf,
    /// What is not a whole line yet, and lines that nobody has asked for.
    heard: Vec<u8>,
}

impl Hearing {
    /// The next line; `None`: there are no more. What is no line of ours is an error, and so is one without an end.
    ///
    /// May be given up and called again: nothing is lost.
    pub(super) async fn next<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        loop {
            if let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.heard.drain(..=end).collect();
                return Ok(Some(serde_json::from_slice(&line)?));
            }
            if self.heard.len() > LONGEST {
                return Err(io::Error::other("a line that does not end"));
            }
            if self.read.read_buf(&mut self.heard).await? == 0 {
                return Ok(None);
            }
        }
    }
}

/// What is said.
#[derive(Debug)]
pub(super) struct Saying {
    write: OwnedWriteHalf,
}

impl Saying {
    pub(super) async fn say<T: Serialize>(&mut self, word: &T) -> io::Result<()> {
        let mut line = serde_json::to_vec(word)?;
        line.push(b'\n');
        tokio::time::timeout(WITHIN, self.write.write_all(&line)).await?
    }
}

#[cfg(test)]
mod tests {
    use drowse_wire::guest::{Ask, Word};

    use super::*;

    #[tokio::test]
    async fn lines_arrive_whole_and_what_is_none_is_an_error() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        assert!(is_ours(&ours));
        let (_, mut saying) = lines(ours);
        let (mut hearing, _) = lines(theirs);
        let words = [Word::Ask { id: 1, ask: Ask::Renew }, Word::Cancel { id: 1 }];
        for word in &words {
            saying.say(word).await.unwrap();
        }
        for word in words {
            assert_eq!(hearing.next::<Word>().await.unwrap(), Some(word));
        }
        saying.write.write_all(b"{\"ask\": 1}\n").await.unwrap();
        let error = hearing.next::<Word>().await.unwrap_err();
        assert!(!is_hang_up(&error), "{error}");
        saying.write.write_all(&vec![b'x'; LONGEST + 1]).await.unwrap();
        assert_eq!(hearing.next::<Word>().await.unwrap_err().to_string(), "a line that does not end");
        drop(saying);
    }

    #[tokio::test]
    async fn an_end_is_no_word() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut hearing, _saying) = lines(theirs);
        drop(ours);
        assert_eq!(hearing.next::<Word>().await.unwrap(), None);
    }
}
