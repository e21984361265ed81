//! A server of a few lines that gives golden answers, and the binary that asks it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::thread::JoinHandle;

use serde_json::Value;

/// What the binary did and what it asked.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// `METHOD PATH BODY` of each request.
    pub(crate) asked: Vec<String>,
}

/// A message of the contract.
pub(crate) fn golden(name: &str) -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../wire/tests/golden/{name}.json"));
    let text = std::fs::read_to_string(&file).expect("there is a golden file for each message");
    serde_json::from_str(&text).expect("golden files are JSON")
}

/// Runs the binary against a server that gives these answers, one to each request.
pub(crate) fn run(args: &[&str], answers: Vec<(u16, String)>) -> Ran {
    let answers = answers
        .into_iter()
        .map(|(status, body)| {
            let kind = if status < 400 { "application/json" } else { "application/problem+json" };
            answer(status, kind, body.as_bytes())
        })
        .collect();
    run_raw(args, answers)
}

/// The same with whole answers.
pub(crate) fn run_raw(args: &[&str], answers: Vec<Vec<u8>>) -> Ran {
    let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback works");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let server = serve(listener, answers);
    let output = drowse(args, &[("DROWSE_URL", &url), ("DROWSE_TOKEN", "s3cret")]);
    let asked = server.join().expect("the server ends when it has answered");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("Drowse prints UTF-8");
    Ran { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr), asked }
}

pub(crate) fn drowse(args: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_drowse"))
        .args(args)
        .env_clear()
        .envs(variables.iter().copied())
        .output()
        .expect("cargo has built the binary")
}

pub(crate) fn answer(status: u16, kind: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

pub(crate) fn serve(listener: TcpListener, answers: Vec<Vec<u8>>) -> JoinHandle<Vec<String>> {
    std::thread::spawn(move || {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().expect("somebody asks");
            asked.push(read(&mut stream));
            stream.write_all(&answer).expect("whoever asked reads the answer");
        }
        asked
    })
}

fn read(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a request has an end");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("a head is text");
    assert!(head.contains("Bearer s3cret"), "{head}");
    let length = head
        .to_ascii_lowercase()
        .lines()
        .find_map(|header| {
            header.strip_prefix("content-length: ").map(|length| length.parse().expect("a number"))
        })
        .unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).expect("a body is as long as it says");
    let line = head.lines().next().expect("a request has a first line");
    let line = line.trim_end_matches(" HTTP/1.1");
    let last = head.to_ascii_lowercase();
    let last = last.lines().find(|header| header.starts_with("last-event-id")).unwrap_or_default();
    format!("{line} {last}{}", String::from_utf8_lossy(&body)).trim_end().to_owned()
}
