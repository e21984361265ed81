//! `drowse up`, the program itself, until it is ready.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use drowse_server::Clock;

const WITHIN: Duration = Duration::from_mins(2);
/// Between two questions.
const ASK_EVERY: Duration = Duration::from_millis(5);

pub(crate) struct Up {
    child: Child,
    pub(crate) took: Duration,
}

impl Up {
    pub(crate) fn start(data: &Path, database: Option<&str>) -> Self {
        let address = free_address();
        let mut command = Command::new(env!("CARGO_BIN_EXE_drowse"));
        command.args(["up", "--quiet", "--listen", &address.to_string(), "--data"]).arg(data);
        if let Some(database) = database {
            command.args(["--database", database]);
        }
        // No drowse.toml lies there.
        command.current_dir(data).stderr(Stdio::piped()).stdin(Stdio::null());
        let clock = Clock::system();
        let began_at = clock.now();
        let mut child = command.spawn().expect("it starts");
        while !is_ready(address) {
            let is_over = clock.now() > began_at + WITHIN || child.try_wait().expect("ours").is_some();
            assert!(!is_over, "it did not get ready: {}", said(child));
            wait(ASK_EVERY);
        }
        Self { child, took: clock.now().since(began_at) }
    }

    pub(crate) fn kill_after(mut self, time: Duration) {
        wait(time);
        self.child.kill().expect("ours");
        self.child.wait().expect("ours");
    }
}

fn said(mut child: Child) -> String {
    let _ = child.kill();
    let mut text = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        let _ = stderr.read_to_string(&mut text);
    }
    let _ = child.wait();
    text
}

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address")
}

fn is_ready(address: SocketAddr) -> bool {
    let ask = || {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(WITHIN))?;
        let mut request = String::new();
        let _ = write!(request, "GET /readyz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok::<_, std::io::Error>(answer)
    };
    ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

#[expect(clippy::disallowed_methods, reason = "asking all the time would be part of what is measured")]
fn wait(time: Duration) {
    std::thread::sleep(time);
}
