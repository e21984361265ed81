//! An HTTP server of a few lines: it gives the answers that it was given, one connection each, and remembers what
//! it was asked.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

pub(crate) struct Asked {
    /// The first line, such as `GET /api/v1/brake HTTP/1.1`.
    pub(crate) line: String,
    /// The headers, in lower case.
    pub(crate) headers: String,
    pub(crate) body: String,
}

pub(crate) struct Server {
    pub(crate) url: String,
    thread: JoinHandle<Vec<Asked>>,
}

/// Answers each of `answers` to one connection, then stops listening.
pub(crate) fn serve(answers: Vec<Vec<u8>>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        answers
            .into_iter()
            .map(|answer| {
                let (mut stream, _) = listener.accept().unwrap();
                let asked = read(&mut stream);
                stream.write_all(&answer).unwrap();
                asked
            })
            .collect()
    });
    Server { url, thread }
}

impl Server {
    pub(crate) fn asked(self) -> Vec<Asked> {
        self.thread.join().unwrap()
    }
}

fn read(stream: &mut TcpStream) -> Asked {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let (line, headers) = head.split_once("\r\n").unwrap();
    let headers = headers.to_ascii_lowercase();
    let length = headers
        .lines()
        .find_map(|header| header.strip_prefix("content-length: "))
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    Asked { line: line.to_owned(), headers, body: String::from_utf8(body).unwrap() }
}

pub(crate) fn answer(status: u16, kind: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
