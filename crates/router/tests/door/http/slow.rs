//! Clients and workers that are slow, and what that costs.

use super::*;

/// How much may be on its way in Drowse itself between two of whom one does not read.
const AT_MOST: u64 = 128 << 10;

/// What the kernel holds of a connection on its way: not yet taken by the other side, and not yet read from it.
fn in_kernel(one: SocketAddr, other: SocketAddr) -> u64 {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let hex = |address: SocketAddr| format!("0100007F:{:04X}", address.port());
    let queues = |from: SocketAddr, to: SocketAddr| {
        let line = table.lines().find(|line| line.contains(&format!(" {} {} ", hex(from), hex(to))));
        let (sent, read) = line.unwrap().split_whitespace().nth(4).unwrap().split_once(':').unwrap();
        (u64::from_str_radix(sent, 16).unwrap(), u64::from_str_radix(read, 16).unwrap())
    };
    queues(one, other).0 + queues(other, one).1
}

/// Writes for ever, says how much was taken, and where.
fn writes(mut stream: TcpStream, taken: &AtomicUsize) {
    let piece = vec![b'x'; 16 << 10];
    while let Ok(written @ 1..) = stream.write(&piece) {
        taken.fetch_add(written, Ordering::SeqCst);
    }
}

/// Waits until nothing moves any more.
#[expect(clippy::disallowed_methods, reason = "that nothing moves is seen only over a while")]
fn settled(taken: &AtomicUsize) -> u64 {
    let look = || {
        let before = taken.load(Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(300));
        (before, taken.load(Ordering::SeqCst))
    };
    until("it is stuck", look, |(before, after)| *before > 0 && before == after).1 as u64
}

fn in_drowse(taken: u64, waits: u64) {
    let ours = taken.saturating_sub(waits);
    // Something is always on its way: otherwise this counts nothing.
    assert!((1..=AT_MOST).contains(&ours), "{ours} of {taken} bytes");
}

#[test]
fn a_client_that_does_not_read_costs_little() {
    static TAKEN: AtomicUsize = AtomicUsize::new(0);
    let bench = Bench::new();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let worker = listener.local_addr().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // Whoever only looks whether it stands says nothing.
            if stream.read(&mut [0; 1024]).unwrap_or(0) > 0 {
                tell.send(stream.peer_addr().unwrap()).unwrap();
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
                writes(stream, &TAKEN);
            }
        }
    });
    let door = shared(&bench, &Rules::default(), &[("web", worker.into())]);
    let mut client = call(&door);
    client.write_all(get("web.example.org", "").as_bytes()).unwrap();
    let drowse = told.recv_timeout(Duration::from_secs(20)).unwrap();
    let taken = settled(&TAKEN);
    let waits = in_kernel(worker, drowse) + in_kernel(door.address(), client.local_addr().unwrap());
    in_drowse(taken, waits);
}

#[test]
fn a_worker_that_does_not_read_costs_little() {
    static TAKEN: AtomicUsize = AtomicUsize::new(0);
    let bench = Bench::new();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let worker = listener.local_addr().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        // The first only looks whether it stands.
        let _looked = listener.accept().unwrap();
        let (mut stream, drowse) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 1]).unwrap();
        tell.send((drowse, stream)).unwrap();
    });
    let door = shared(&bench, &Rules::default(), &[("web", worker.into())]);
    let mut client = call(&door);
    let address = client.local_addr().unwrap();
    let head = "POST / HTTP/1.1\r\nHost: web.example.org\r\nContent-Length: 1000000000\r\n\r\n";
    client.write_all(head.as_bytes()).unwrap();
    std::thread::spawn(move || writes(client, &TAKEN));
    let (drowse, _stream) = told.recv_timeout(Duration::from_secs(20)).unwrap();
    let taken = settled(&TAKEN);
    let waits = in_kernel(address, door.address()) + in_kernel(drowse, worker);
    in_drowse(taken, waits);
}

#[test]
fn an_upload_that_the_worker_does_not_take_is_no_silence() {
    static TAKEN: AtomicUsize = AtomicUsize::new(0);
    let bench = Bench::new();
    let door = web(&bench, &Rules::default(), |mut stream| {
        let _ = stream.read_exact(&mut [0; 1]);
        // It thinks, until the test is over.
        loop {
            std::thread::park();
        }
    });
    bench.plane.set("web", |subject| subject.connection_idle = Some(Duration::from_millis(50)));
    let mut client = call(&door);
    let head = "POST / HTTP/1.1\r\nHost: web.example.org\r\nContent-Length: 1000000000\r\n\r\n";
    client.write_all(head.as_bytes()).unwrap();
    std::thread::spawn(move || writes(client, &TAKEN));
    settled(&TAKEN);
    settled(&TAKEN);
    assert_eq!(bench.plane.edges("web"), [(1, EdgeCause::Came)], "it is in use all the while");
}

#[test]
fn a_small_request_that_comes_slowly_goes_on_as_it_comes() {
    let bench = Bench::new();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let worker = listener.local_addr().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut writer = stream.try_clone().unwrap();
            let mut reader = BufReader::new(stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap_or(0) > 0 {}
            for _ in 0..2 {
                let mut half = [0; 5];
                if reader.read_exact(&mut half).is_ok() {
                    tell.send(String::from_utf8_lossy(&half).into_owned()).unwrap();
                }
            }
            let _ = writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let door = shared(&bench, &Rules::default(), &[("web", worker.into())]);
    // It has just come up, so that a small request is kept to be said again.
    sleeps(&bench, "web");
    let mut stream = BufReader::new(call(&door));
    let head = "POST / HTTP/1.1\r\nHost: web.example.org\r\nContent-Length: 10\r\n\r\n";
    for (said, heard) in [(head, None), ("begin", Some("begin")), (" ends", Some(" ends"))] {
        stream.get_mut().write_all(said.as_bytes()).unwrap();
        if let Some(heard) = heard {
            assert_eq!(told.recv_timeout(Duration::from_secs(20)).as_deref(), Ok(heard));
        }
    }
    assert_eq!(hear(&mut stream).status, 200);
}
