//! Established TCP connections of a set of processes.
//!
//! `/proc/PID/net/tcp` lists the sockets of a whole network namespace; which of them belong to a worker is
//! told by the inodes behind its file descriptors. Loopback does not count, nor does the router, which counts its
//! visitors itself. Whoever comes to a port that the router serves without asking it (a published port, the worker's
//! own address) is nobody the router knows of, and counts here.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::proc::is_no_process;
use super::tables::Tables;

/// One line of `/proc/net/tcp` or `tcp6`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Socket {
    local: SocketAddr,
    remote: SocketAddr,
    is_established: bool,
    pub(super) is_listener: bool,
    pub(super) inode: u64,
}

impl Socket {
    #[cfg(test)]
    pub(crate) fn is_to(&self, remote: SocketAddr) -> bool {
        self.remote == remote
    }

    fn counts(&self) -> bool {
        let is_loopback = |address: SocketAddr| address.ip().to_canonical().is_loopback();
        self.is_established && !is_loopback(self.local) && !is_loopback(self.remote)
    }

    fn is_routed(&self, routed_ports: &[u16]) -> bool {
        routed_ports.contains(&self.local.port())
    }
}

/// The same address, however a socket names it.
fn plainly(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// The first line is a heading; a line that cannot be read is an error, because it may be the one that counts.
fn parse(text: &str) -> Option<Vec<Socket>> {
    text.lines().skip(1).map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Socket> {
    let mut fields = line.split_ascii_whitespace();
    let local = parse_address(fields.nth(1)?)?;
    let remote = parse_address(fields.next()?)?;
    let state = fields.next()?;
    // tx:rx, tr:when, retrnsmt, uid, timeout
    let inode = fields.nth(5)?.parse().ok()?;
    let (is_established, is_listener) = (state == "01", state == "0A");
    Some(Socket { local, remote, is_established, is_listener, inode })
}

/// The kernel prints words in the machine's byte order, as they lie in memory in network order.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let word = |at: usize| Some(u32::from_str_radix(address.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    let ip = match address.len() {
        8 => IpAddr::from(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (index, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(index * 8)?);
            }
            IpAddr::from(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

/// How many connections these processes hold. They are taken to share one network namespace, that of
/// the first.
pub(crate) async fn established(tables: &Tables, pids: &[i32], routed_ports: &[u16]) -> io::Result<u64> {
    let mut inodes = BTreeSet::new();
    for pid in pids {
        match socket_inodes(*pid, &mut inodes) {
            Err(error) if is_no_process(&error) => {}
            other => other?,
        }
    }
    // Most servers that nobody uses have one socket, at which they listen, and it will never be a connection.
    inodes.retain(|inode| !tables.is_listener(*inode));
    if inodes.is_empty() {
        return Ok(0);
    }
    let sockets = tables.read(pids).await?;
    let theirs = sockets.iter().filter(|socket| inodes.contains(&socket.inode) && socket.counts());
    let (visits, others): (Vec<&Socket>, Vec<&Socket>) =
        theirs.partition(|socket| socket.is_routed(routed_ports));
    if visits.is_empty() {
        return Ok(others.len() as u64);
    }
    let own = own_ends(tables).await?;
    let strangers = visits.iter().filter(|visit| !own.contains(&plainly(visit.remote)));
    Ok((others.len() + strangers.count()) as u64)
}

/// This process's ends of its own connections: whoever is at one of them came through the router.
async fn own_ends(tables: &Tables) -> io::Result<HashSet<SocketAddr>> {
    let pid = i32::try_from(std::process::id()).map_err(io::Error::other)?;
    let mut inodes = BTreeSet::new();
    socket_inodes(pid, &mut inodes)?;
    let sockets = tables.read(&[pid]).await?;
    let own = sockets.iter().filter(|socket| inodes.contains(&socket.inode));
    Ok(own.map(|socket| plainly(socket.local)).collect())
}

/// All that these processes see, whosever they are. It takes long: see [`Tables`].
pub(super) fn read_all(pids: &[i32]) -> io::Result<Vec<Socket>> {
    let mut all = Vec::new();
    for table in ["tcp", "tcp6"] {
        let text = read_table(pids, table)?;
        let sockets = parse(&text).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, format!("/proc/net/{table} is not as expected"))
        })?;
        all.extend(sockets);
    }
    Ok(all)
}

/// Any member will do, and any may end meanwhile. A kernel without IPv6 has no `tcp6`.
fn read_table(pids: &[i32], table: &str) -> io::Result<String> {
    for pid in pids {
        match fs::read_to_string(format!("/proc/{pid}/net/{table}")) {
            Err(error) if is_no_process(&error) => {}
            other => return other,
        }
    }
    Ok(String::new())
}

fn socket_inodes(pid: i32, inodes: &mut BTreeSet<u64>) -> io::Result<()> {
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
        let target = match fs::read_link(entry?.path()) {
            // Closed while we looked.
            Err(error) if is_no_process(&error) => continue,
            other => other?,
        };
        let inode = target.to_str().and_then(|text| text.strip_prefix("socket:[")?.strip_suffix(']'));
        inodes.extend(inode.and_then(|inode| inode.parse::<u64>().ok()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    // Written by a kernel on a little-endian machine.
    const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 100 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 101 1 0000000000000000 20 4 30 10 -1
   2: 0A00000A:2329 0B00000A:C350 01 00000000:00000000 00:00000000 00000000     0        0 102 1 0000000000000000 20 4 30 10 -1
   3: 0A00000A:C351 08080808:01BB 01 00000000:00000000 00:00000000 00000000     0        0 103 1 0000000000000000 20 4 30 10 -1
   4: 0A00000A:C352 08080808:01BB 06 00000000:00000000 00:00000000 00000000     0        0 0 1 0000000000000000 20 4 30 10 -1
";
    const TCP6: &str = "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000001000000:0016 00000000000000000000000001000000:C350 01 00000000:00000000 00:00000000 00000000     0        0 200 1 0000000000000000 20 4 30 10 -1
   1: 0000000000000000FFFF00000100007F:0016 0000000000000000FFFF00000100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 201 1 0000000000000000 20 4 30 10 -1
   2: B80D0120000000000000000001000000:0016 B80D0120000000000000000002000000:C350 01 00000000:00000000 00:00000000 00000000     0        0 202 1 0000000000000000 20 4 30 10 -1
";

    fn counted(text: &str, routed_ports: &[u16]) -> Vec<u64> {
        let sockets = parse(text).unwrap();
        let counted = sockets.iter().filter(|socket| socket.counts() && !socket.is_routed(routed_ports));
        counted.map(|socket| socket.inode).collect()
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn loopback_listeners_and_routed_ports_do_not_count() {
        assert_eq!(counted(TCP, &[]), [102, 103]);
        assert_eq!(counted(TCP, &[9001]), [103]);
        assert_eq!(counted(TCP6, &[]), [202]);
        assert_eq!(counted(TCP6, &[22]), [] as [u64; 0]);
    }

    #[test]
    fn a_line_that_cannot_be_read_is_not_passed_over() {
        assert_eq!(parse("heading\n 0: 0100007F:1F90 what\n"), None);
        assert_eq!(parse(&TCP.replace("0100007F", "01007F")), None);
        assert_eq!(parse(""), Some(vec![]));
    }

    #[tokio::test]
    async fn our_own_loopback_connection_is_seen_and_not_counted() {
        let tables = Tables::start(std::sync::Arc::new(|| drowse_core::Timestamp::from_micros(0))).unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let pid = i32::try_from(std::process::id()).expect("a pid fits");
        let mut inodes = BTreeSet::new();
        socket_inodes(pid, &mut inodes).unwrap();
        assert!(inodes.len() >= 2, "{inodes:?}");
        assert_eq!(established(&tables, &[pid], &[]).await.unwrap(), 0);
        drop(stream);
    }
}
