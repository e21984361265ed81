//! What somebody with a browser sees of a worker that takes its time.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::up::running::{Folder, free_port, until};

/// A browser without a window, steered by its own driver.
struct Browser {
    driver: Child,
    port: u16,
    session: String,
    profile: TempDir,
}

impl Browser {
    fn start() -> Self {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver is installed: apt-get install chromium-driver");
        let lines = BufReader::new(driver.stdout.take().expect("it is piped")).lines();
        let port = lines.map_while(Result::ok).find_map(|line| {
            let rest = line.split("started successfully on port ").nth(1)?;
            rest.trim_end_matches('.').parse().ok()
        });
        let profile = tempfile::tempdir().expect("a folder for temporary files");
        let mut browser =
            Self { driver, port: port.expect("it says where it listens"), session: String::new(), profile };
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            &format!("--user-data-dir={}", browser.profile.path().display()),
        ];
        let wanted = json!({"capabilities": {"alwaysMatch": {"goog:chromeOptions": {"args": arguments}}}});
        let answer = browser.send("POST", "/session", &wanted);
        let session = answer["sessionId"].as_str();
        session.unwrap_or_else(|| panic!("{answer}")).clone_into(&mut browser.session);
        browser
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the driver listens");
        stream.set_read_timeout(Some(Duration::from_secs(90))).expect("patience is not zero");
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("the driver listens");
        // It keeps the connection, whatever it is told, so the end is where it says.
        let mut answer = BufReader::new(stream);
        let (mut line, mut length) = (String::new(), 0);
        while line != "\r\n" {
            line.clear();
            answer.read_line(&mut line).expect("an answer");
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
        }
        let mut json = vec![0; length];
        answer.read_exact(&mut json).expect("an answer");
        let json: Value = serde_json::from_slice(&json).expect("JSON");
        json["value"].clone()
    }

    fn go(&self, url: &str) {
        self.send("POST", &format!("/session/{}/url", self.session), &json!({ "url": url }));
    }

    /// What stands on the page.
    fn text(&self) -> String {
        let script = json!({"script": "return document.body ? document.body.innerText : ''", "args": []});
        let text = self.send("POST", &format!("/session/{}/execute/sync", self.session), &script);
        text.as_str().unwrap_or_default().to_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.send("DELETE", &format!("/session/{}", self.session), &Value::Null);
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// A worker that stops when it is idle and comes up when there is a file that says so; its door.
fn slow_worker(folder: &Folder, may_start: &Path, until_then: &str) -> u16 {
    let (door, target) = (free_port(), free_port());
    let program = env!("CARGO_BIN_EXE_drowse");
    std::fs::write(may_start, "").expect("the folder is ours");
    folder.append(&format!(
        "[[worker]]\nid = \"slow\"\ndriver = \"process\"\n\
         command = [\"sh\", \"-c\", \"until [ -e {} ]; do {until_then}; done; exec {program} __demo-worker slow 127.0.0.1:{target}\"]\n\
         listen = \"127.0.0.1:{door}\"\ntarget = \"127.0.0.1:{target}\"\nprotocol = \"http\"\n\
         policy.idle_timeout = \"2s\"\npolicy.sleep = \"stop\"\npolicy.min_notice = \"0s\"\n",
        may_start.display()
    ));
    door
}

#[test]
fn a_page_waits_with_somebody_and_goes_on_when_the_worker_is_there() {
    let folder = Folder::new();
    let may_start = folder.file("may-start");
    let door = slow_worker(&folder, &may_start, "sleep 0.1");
    let mut up = folder.up(&[]);
    up.wait_for_all("slow stopped");
    std::fs::remove_file(&may_start).unwrap();
    let browser = Browser::start();
    browser.go(&format!("http://127.0.0.1:{door}/"));
    let page = browser.text();
    assert!(page.contains("Waking up") && page.contains("slow"), "{page}");
    // It tells how long it has been waiting, by and by.
    until("it counts the seconds", || browser.text().contains(" s"));
    std::fs::write(&may_start, "").unwrap();
    until("the worker's own page", || browser.text().contains("pid "));
    up.wait_for_all("slow running again: wake, by connection");
}

#[test]
fn a_page_that_has_waited_in_vain_says_so() {
    let folder = Folder::new();
    let may_start = folder.file("may-start");
    let door = slow_worker(&folder, &may_start, "sleep 2; exit 7");
    let mut up = folder.up(&[]);
    up.wait_for_all("slow stopped");
    std::fs::remove_file(&may_start).unwrap();
    let browser = Browser::start();
    browser.go(&format!("http://127.0.0.1:{door}/"));
    assert!(browser.text().contains("Waking up"), "{}", browser.text());
    until("it is told why", || browser.text().contains("It did not come up"));
    let page = browser.text();
    assert!(!page.contains("Waking up") && !page.contains("goes on by itself"), "{page}");
}
