//! What has been sent and has not arrived yet.

#![expect(unsafe_code, reason = "the kernel tells it by a call that rustix has no safe word for")]

use std::ffi::c_int;

use rustix::fd::OwnedFd;
use rustix::ioctl::{Getter, Opcode, ioctl};

#[expect(clippy::cast_possible_truncation, reason = "a small number, whose type is another on some machines")]
const OUTQ: Opcode = libc::TIOCOUTQ as Opcode;

/// How much is still on its way to a peer. Of one that is gone it says nothing.
pub(super) fn unsent(socket: &OwnedFd) -> u64 {
    // SAFETY: for a socket this asks for what is in its queue, and has the kernel write one int.
    let queued = unsafe { ioctl(socket, Getter::<OUTQ, c_int>::new()) };
    queued.ok().and_then(|queued| u64::try_from(queued).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn what_nobody_takes_is_on_its_way_until_it_is_taken() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        one.set_nonblocking(true).unwrap();
        while one.write(&[7; 4096]).is_ok() {}
        let one = OwnedFd::from(one);
        assert!(unsent(&one) > 0);
        let mut buffer = [0; 8192];
        while unsent(&one) > 0 {
            assert!(other.read(&mut buffer).unwrap() > 0);
        }
    }
}
