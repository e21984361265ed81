//! Workers that break off in the middle of an answer.

use super::*;

/// What a client has heard when the worker has said this and hung up.
fn heard_of(asks: &str, says: &'static [u8]) -> Vec<u8> {
    let bench = Bench::new();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let breaks_off = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // Whoever only looks whether it stands says nothing.
            if stream.read(&mut [0; 1024]).unwrap_or(0) > 0 {
                let _ = stream.write_all(says);
            }
        }
    });
    let door = shared(&bench, &Rules::default(), &[("web", breaks_off.into())]);
    let mut stream = call(&door);
    stream.write_all(asks.as_bytes()).unwrap();
    rest(&mut stream)
}

#[test]
fn what_a_worker_said_before_it_broke_off_is_heard() {
    let heard = heard_of(
        &get("web.example.org", ""),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n",
    );
    let text = String::from_utf8(heard).unwrap();
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text:?}");
    assert!(text.ends_with("\r\n\r\n3\r\none\r\n"), "and not as if that were all: {text:?}");
}

#[test]
fn all_bytes_that_came_before_the_end_are_heard() {
    const HALF: usize = 90_000;
    static SAYS: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| {
        let mut says = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 2 * HALF).into_bytes();
        says.extend([b'x'; HALF]);
        says
    });
    for _ in 0..5 {
        let heard = heard_of(&get("web.example.org", ""), &SAYS);
        let body_at = heard.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
        assert_eq!(heard.len() - body_at, HALF);
    }
}

/// What an old client asks: it knows no chunks, and the end of the connection is the end of the answer.
const OLD: &[u8] = b"GET / HTTP/1.0\r\nHost: web.example.org\r\n\r\n";

/// Takes a request, and says the first part of an answer without a length.
fn half_an_answer(stream: &mut TcpStream) {
    let _ = stream.read(&mut [0; 1024]);
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
}

#[test]
fn an_old_client_takes_no_half_answer_for_a_whole_one() {
    let bench = Bench::new();
    let door = web(&bench, &Rules::default(), |mut stream| half_an_answer(&mut stream));
    let mut stream = call(&door);
    stream.write_all(OLD).unwrap();
    let mut heard = Vec::new();
    let ended = stream.read_to_end(&mut heard).map_err(|error| error.kind());
    assert_eq!(ended, Err(ErrorKind::ConnectionReset), "{}", String::from_utf8_lossy(&heard));
    assert!(heard.ends_with(b"one"), "{}", String::from_utf8_lossy(&heard));
}

#[test]
fn nor_when_it_is_cut_in_the_middle_of_it() {
    let bench = Bench::new();
    let door = web(&bench, &Rules::default(), |mut stream| {
        half_an_answer(&mut stream);
        let _ = stream.read(&mut [0]);
    });
    let mut stream = call(&door);
    stream.write_all(OLD).unwrap();
    let mut heard = Vec::new();
    while !heard.ends_with(b"one") {
        let mut some = [0; 1024];
        let read = stream.read(&mut some).unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&heard));
        heard.extend_from_slice(&some[..read]);
    }
    door.close(Closing::Cut);
    let ended = stream.read(&mut [0]).map_err(|error| error.kind());
    assert_eq!(ended, Err(ErrorKind::ConnectionReset));
}
