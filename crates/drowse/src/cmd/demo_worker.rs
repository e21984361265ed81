//! `drowse __demo-worker NAME ADDR`: a small web server to look after, so that the demo needs nothing installed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;

/// Serve a greeting over HTTP.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The name to answer with.
    name: String,
    /// Where to answer.
    address: SocketAddr,
    /// Use some of the processor all the time, as a build does.
    #[arg(long)]
    busy: bool,
}

/// Nobody needs longer to ask, and a thread that waits for ever is one too many.
const ASKS_WITHIN: Duration = Duration::from_secs(10);

/// Requests are a line and some headers.
const LONGEST_REQUEST: u64 = 64 * 1024;

#[expect(clippy::disallowed_methods, reason = "a program to look after, with a clock of its own")]
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let listener = TcpListener::bind(args.address)
        .with_context(|| format!("{} cannot listen on {}", args.name, args.address))?;
    let started = Instant::now();
    let requests = AtomicU64::new(0);
    std::thread::scope(|scope| {
        if args.busy {
            scope.spawn(work);
        }
        for stream in listener.incoming().flatten() {
            let requests = &requests;
            scope.spawn(move || {
                // Whoever hangs up has their reasons.
                let _ = answer(&stream, |asked| {
                    let number = requests.fetch_add(1, Ordering::Relaxed) + 1;
                    let (pid, up) = (std::process::id(), started.elapsed().as_secs());
                    format!(
                        "hello from {}: pid {pid}, up {up} s, request {number}, you asked: {asked}\n",
                        args.name
                    )
                });
            });
        }
    });
    Ok(ExitCode::SUCCESS)
}

/// About a tenth of a core.
#[expect(clippy::disallowed_methods, reason = "a program to look after, with a clock of its own")]
fn work() {
    loop {
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        std::thread::park_timeout(Duration::from_millis(180));
    }
}

fn answer(mut stream: &TcpStream, text: impl FnOnce(&str) -> String) -> std::io::Result<()> {
    stream.set_read_timeout(Some(ASKS_WITHIN))?;
    let mut lines = BufReader::new(stream.take(LONGEST_REQUEST)).lines();
    let Some(asked) = lines.next().transpose()? else {
        // Somebody looked whether we are there.
        return Ok(());
    };
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let body = text(&asked);
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}
