//! The connection to the database is cut again and again in the middle of a commit, before it is done or after: nobody
//! can know which. A small proxy between the two speaks as much of the protocol as it takes to know a commit.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use super::cluster::Cluster;
use super::law::{all_is_well, at_rest};
use super::stand::Stand;
use super::wait::seconds;

/// One of so many commits is cut.
const ONE_IN: u64 = 6;

/// Enough that it has hit every transaction of a pause and a wake, both ways.
const CUTS: u64 = 60;

struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    socket: PathBuf,
    cuts: AtomicBool,
    commits: AtomicU64,
    /// Before it was done, and after.
    done: [AtomicU64; 2],
    open: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    fn start(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let shared = Arc::new(Shared {
            socket,
            cuts: AtomicBool::new(false),
            commits: AtomicU64::new(0),
            done: Default::default(),
            open: Mutex::default(),
        });
        let proxy = Self { address: listener.local_addr().unwrap(), shared: Arc::clone(&shared) };
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.serve(&client));
            }
        });
        proxy
    }

    fn cut(&self, how: usize) -> u64 {
        self.shared.done[how].load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        for stream in self.shared.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn serve(&self, client: &TcpStream) {
        // A server that is not there is no server.
        let Ok(server) = UnixStream::connect(&self.socket) else { return };
        self.open.lock().unwrap().push(client.try_clone().unwrap());
        let is_mute = AtomicBool::new(false);
        thread::scope(|scope| {
            let back = scope.spawn(|| answer(&server, client, &is_mute));
            let _ = self.ask(client, &server, &is_mute);
            let _ = server.shutdown(Shutdown::Write);
            let _ = back.join();
            let _ = client.shutdown(Shutdown::Both);
        });
    }

    /// Passes on what the client says, message by message.
    fn ask(&self, mut client: &TcpStream, mut server: &UnixStream, is_mute: &AtomicBool) -> io::Result<()> {
        // The first message has no type.
        let mut message = vec![0; 4];
        client.read_exact(&mut message)?;
        rest(client, &mut message, 0)?;
        server.write_all(&message)?;
        let mut writes = false;
        loop {
            let mut message = vec![0; 5];
            client.read_exact(&mut message)?;
            rest(client, &mut message, 1)?;
            let text = String::from_utf8_lossy(&message[5..]);
            let is_query = message[0] == b'Q';
            if is_query && text.starts_with("BEGIN") {
                writes = !text.contains("READ ONLY");
            }
            if is_query && writes && text.starts_with("COMMIT") && self.cuts.load(Ordering::Relaxed) {
                let number = self.commits.fetch_add(1, Ordering::Relaxed);
                if number.is_multiple_of(ONE_IN) {
                    let how = usize::from(number / ONE_IN % 2 == 1);
                    self.done[how].fetch_add(1, Ordering::Relaxed);
                    if how == 1 {
                        is_mute.store(true, Ordering::Release);
                        server.write_all(&message)?;
                    }
                    return Ok(());
                }
            }
            server.write_all(&message)?;
        }
    }
}

/// Reads the rest of a message whose length stands at this place.
fn rest(mut client: &TcpStream, message: &mut Vec<u8>, at: usize) -> io::Result<()> {
    let length = u32::from_be_bytes(message[at..at + 4].try_into().unwrap());
    let from = message.len();
    message.resize(at + length as usize, 0);
    client.read_exact(&mut message[from..])
}

/// Passes on what the server says, until it is to be kept from the client.
fn answer(mut server: &UnixStream, mut client: &TcpStream, is_mute: &AtomicBool) {
    let mut buffer = [0; 16_384];
    loop {
        match server.read(&mut buffer) {
            Ok(length) if length > 0 && !is_mute.load(Ordering::Acquire) => {
                if client.write_all(&buffer[..length]).is_err() {
                    return;
                }
            }
            // When the answer is here, the commit is done.
            Ok(_) | Err(_) => return,
        }
    }
}

#[test]
fn commits_of_which_nobody_knows_whether_they_were_done_lose_and_double_nothing() {
    let cluster = Cluster::start();
    let name = cluster.database();
    let url = cluster.url(&name);
    let folder = url.strip_prefix("postgres://postgres@").and_then(|rest| rest.split('/').next()).unwrap();
    let proxy = Proxy::start(PathBuf::from(folder.replace("%2F", "/")).join(".s.PGSQL.5432"));
    let stand = Stand::at(format!("postgres://postgres@{}/{name}", proxy.address));
    for number in 0..3 {
        let policy = "policy.idle_timeout = \"1s\"\npolicy.stop_after = \"1h\"\npolicy.flap_guard = false";
        stand.worker(number, policy);
    }
    let mut up = stand.up();
    for number in 0..3 {
        stand.wait_for(number, "running");
    }
    proxy.shared.cuts.store(true, Ordering::Relaxed);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 0..3 {
            let (stand, is_over, proxy) = (&stand, &is_over, &proxy);
            scope.spawn(move || {
                let pause = 1.1 + 0.7 * f64::from(number);
                while !is_over.load(Ordering::Acquire) {
                    if let Err(error) = stand.ask(number) {
                        is_over.store(true, Ordering::Release);
                        proxy.shared.cuts.store(false, Ordering::Relaxed);
                        panic!("w{number} did not answer: {error}: {}", stand.story(number));
                    }
                    seconds(pause);
                }
            });
        }
        while !is_over.load(Ordering::Acquire) && proxy.cut(0) + proxy.cut(1) < CUTS {
            seconds(0.5);
        }
        is_over.store(true, Ordering::Release);
    });
    proxy.shared.cuts.store(false, Ordering::Relaxed);
    assert!(proxy.cut(0) > 0 && proxy.cut(1) > 0);
    for number in 0..3 {
        all_is_well(&stand, number, "after all cuts");
        stand.wait_for(number, "paused");
        at_rest(&stand, number, "after all cuts");
    }
    assert_eq!(up.end(), Some(0), "{}", up.told());
}
