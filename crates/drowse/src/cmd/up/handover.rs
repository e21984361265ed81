//! A planned restart that refuses nobody: the old Drowse hands its ports to the new one and leaves the data folder at
//! once; whoever it has let in it carries to their end ([`super::drain`]). Meanwhile new connections wait in the system's
//! queue.
//!
//! ```text
//!   new                                   old
//!    │── connects to `handover` ─────────▶│
//!    │◀───────── all ports ───────────────│
//!    │── has them ───────────────────────▶│  lets nobody in any more
//!    │  waits for the lock                │  decides nothing any more, lets go of database and lock
//!    │  starts as always ◀────────────────│
//!    │◀── is asked at `guests` ───────────│  carries those who are in, as the new one's guest
//! ```

use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use tokio::net::UnixListener;

use super::inherit::Inherited;
use super::lines;

/// Where it is asked for, in the data folder, which is its owner's alone.
const NAME: &str = "handover";

/// How many ports go into one message; the kernel takes 253.
const AT_ONCE: usize = 64;

/// How long the other side may take for one message.
const WITHIN: Duration = Duration::from_secs(10);

const PORTS: u8 = b'P';
const END: u8 = b'.';
const HAVE: u8 = b'K';

/// Where the next Drowse asks for the ports.
#[derive(Debug)]
pub(super) struct Handover {
    listener: UnixListener,
    path: PathBuf,
}

impl Handover {
    /// To be called by whoever holds the folder.
    pub(super) fn offer(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(NAME);
        // The former one's, which is gone.
        let _ = std::fs::remove_file(&path);
        let listener =
            UnixListener::bind(&path).with_context(|| format!("cannot listen at {}", path.display()))?;
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600))?;
        Ok(Self { listener, path })
    }

    /// Waits until another Drowse asks.
    pub(super) async fn asked(&self) -> UnixStream {
        loop {
            let Ok((stream, _)) = self.listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            if lines::is_ours(&stream)
                && let Ok(stream) = stream.into_std()
                && stream.set_nonblocking(false).is_ok()
                && stream.set_write_timeout(Some(WITHIN)).is_ok()
            {
                return stream;
            }
        }
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Sends all ports.
pub(super) fn send(mut stream: &UnixStream, ports: &[OwnedFd]) -> io::Result<()> {
    for part in ports.chunks(AT_ONCE) {
        let files: Vec<_> = part.iter().map(|port| port.as_fd()).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(AT_ONCE))];
        let mut message = SendAncillaryBuffer::new(&mut space);
        if !message.push(SendAncillaryMessage::ScmRights(&files)) {
            return Err(io::Error::other("too many ports for one message"));
        }
        sendmsg(stream, &[IoSlice::new(&[PORTS])], &mut message, SendFlags::NOSIGNAL)?;
    }
    stream.write_all(&[END])?;
    // Only whoever has them says so: without that word nothing is given away.
    stream.set_read_timeout(Some(WITHIN))?;
    let mut word = [0];
    stream.read_exact(&mut word)?;
    if word == [HAVE] { Ok(()) } else { Err(io::Error::other("the other one does not want them")) }
}

fn receive(stream: &UnixStream) -> anyhow::Result<Inherited> {
    stream.set_read_timeout(Some(WITHIN))?;
    let mut inherited = Inherited::default();
    loop {
        let mut kind = [0];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(AT_ONCE))];
        let mut message = RecvAncillaryBuffer::new(&mut space);
        let mut into = [IoSliceMut::new(&mut kind)];
        let read = recvmsg(stream, &mut into, &mut message, RecvFlags::CMSG_CLOEXEC)?;
        if read.bytes == 0 {
            bail!("it ended before it had handed over all ports");
        }
        for part in message.drain() {
            if let RecvAncillaryMessage::ScmRights(files) = part {
                for file in files {
                    inherited.add(TcpListener::from(file))?;
                }
            }
        }
        match kind[0] {
            PORTS => {}
            END => return Ok(inherited),
            _ => bail!("it speaks another language: it is of another version"),
        }
    }
}

/// Asks the Drowse of a folder for its ports. `None`: there is none.
pub(super) fn take_over(folder: &Path) -> anyhow::Result<Option<Inherited>> {
    let path = folder.join(NAME);
    let stream = match UnixStream::connect(&path) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            return Ok(None);
        }
        Err(error) => return Err(error).with_context(|| format!("cannot ask at {}", path.display())),
    };
    let inherited = receive(&stream).context("cannot take over from the Drowse that runs")?;
    let confirmed = (&stream).write_all(&[HAVE]);
    confirmed.context("cannot take over from the Drowse that runs")?;
    Ok(Some(inherited))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_arrive_whole_however_many_there_are() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let ports: Vec<TcpListener> = (0..150).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let files: Vec<OwnedFd> = ports.iter().map(|port| port.try_clone().unwrap().into()).collect();
        let sending = std::thread::spawn(move || send(&ours, &files).unwrap());
        let mut inherited = receive(&theirs).unwrap();
        (&theirs).write_all(&[HAVE]).unwrap();
        sending.join().unwrap();
        for port in &ports {
            let address = port.local_addr().unwrap();
            assert_eq!(inherited.take(address).unwrap().local_addr().unwrap(), address);
        }
        assert!(inherited.left().is_empty());
    }

    #[test]
    fn without_a_word_that_they_arrived_nothing_is_given_away() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let port: OwnedFd = TcpListener::bind("127.0.0.1:0").unwrap().into();
        let receiving = std::thread::spawn(move || drop(receive(&theirs)));
        send(&ours, &[port]).unwrap_err();
        receiving.join().unwrap();
    }

    #[test]
    fn an_end_too_early_is_an_error() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(ours);
        let error = receive(&theirs).unwrap_err().to_string();
        assert_eq!(error, "it ended before it had handed over all ports");
    }

    #[test]
    fn where_nobody_runs_there_is_nothing_to_take_over() {
        let folder = tempfile::tempdir().unwrap();
        assert!(take_over(folder.path()).unwrap().is_none());
    }
}
