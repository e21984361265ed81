//! A control plane in a few lines, and programs to wake.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use drowse_core::Timestamp;
use drowse_core::id::{BootId, WorkerId};
use drowse_wire::control::{
    Answer, Awake, Control, Edge, EdgeCause, Refused, SleepTold, Slept, Standing, Way,
};
use tokio::sync::watch;

/// Everything that was said to the control plane, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Edge(WorkerId, Edge),
    Wake(WorkerId),
    Bytes(WorkerId),
}

/// A worker, as the control plane sees it.
#[expect(clippy::struct_excessive_bools, reason = "a test sets each of them by itself")]
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) is_awake: bool,
    /// It need only be told to go on.
    pub(crate) is_frozen: bool,
    pub(crate) boot: u32,
    /// A connection may wake it.
    pub(crate) may_wake: bool,
    /// A wake is answered only when the test says so.
    pub(crate) wakes: bool,
    pub(crate) connection_idle: Option<Duration>,
    pub(crate) fell: Option<Slept>,
}

impl Default for Subject {
    fn default() -> Self {
        Self {
            is_awake: true,
            is_frozen: false,
            boot: 1,
            may_wake: true,
            wakes: true,
            connection_idle: None,
            fell: None,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Plane {
    said: Mutex<Vec<Said>>,
    subjects: watch::Sender<HashMap<WorkerId, Subject>>,
    valid_until: Mutex<Timestamp>,
    /// Where workers are that have to be asked for: each answer once, and the last one always.
    ways: Mutex<HashMap<WorkerId, Vec<Way>>>,
    /// Those who wait for a worker to fall asleep.
    watches: AtomicUsize,
    /// How often somebody looked how a worker stands.
    looks: AtomicUsize,
}

pub(crate) fn id(text: &str) -> WorkerId {
    text.parse().unwrap()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Plane {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            said: Mutex::default(),
            subjects: watch::Sender::new(HashMap::new()),
            valid_until: Mutex::new(Timestamp::MAX),
            ways: Mutex::default(),
            watches: AtomicUsize::new(0),
            looks: AtomicUsize::new(0),
        })
    }

    pub(crate) fn set(&self, worker: &str, change: impl FnOnce(&mut Subject)) {
        self.subjects.send_modify(|subjects| change(subjects.entry(id(worker)).or_default()));
    }

    /// It leaves the books.
    pub(crate) fn forget(&self, worker: &str) {
        self.subjects.send_modify(|subjects| {
            subjects.remove(&id(worker));
        });
    }

    /// Has a worker be found there, at one after the other.
    pub(crate) fn lead(&self, worker: &str, ways: impl IntoIterator<Item = Way>) {
        lock(&self.ways).insert(id(worker), ways.into_iter().collect());
    }

    pub(crate) fn watches(&self) -> usize {
        self.watches.load(Ordering::SeqCst)
    }

    pub(crate) fn looks(&self) -> usize {
        self.looks.load(Ordering::SeqCst)
    }

    pub(crate) fn set_valid_until(&self, at: Timestamp) {
        *lock(&self.valid_until) = at;
    }

    pub(crate) fn said(&self) -> Vec<Said> {
        lock(&self.said).clone()
    }

    /// The counts of all edges of a worker, in the order of their telling.
    pub(crate) fn edges(&self, worker: &str) -> Vec<(u64, EdgeCause)> {
        let worker = id(worker);
        let edges = self.said().into_iter().filter_map(|said| match said {
            Said::Edge(whose, edge) if whose == worker => Some((edge.count, edge.cause)),
            Said::Edge(..) | Said::Wake(_) | Said::Bytes(_) => None,
        });
        edges.collect()
    }

    pub(crate) fn wakes(&self, worker: &str) -> usize {
        let wake = Said::Wake(id(worker));
        self.said().iter().filter(|said| **said == wake).count()
    }

    fn subject(&self, worker: &WorkerId) -> Result<Subject, Refused> {
        self.subjects.borrow().get(worker).cloned().ok_or(Refused::NoSuchWorker)
    }
}

fn standing(subject: &Subject) -> Standing {
    let boot = Some(BootId::new(subject.boot.to_string()));
    Standing { is_awake: subject.is_awake, boot, connection_idle: subject.connection_idle }
}

struct Watches<'a>(&'a AtomicUsize);

impl Drop for Watches<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Control for Plane {
    fn connections<'a>(&'a self, worker: &'a WorkerId, edge: Edge) -> Answer<'a, Standing> {
        lock(&self.said).push(Said::Edge(worker.clone(), edge));
        let answer = self.subject(worker).and_then(|subject| {
            let is_refused = match edge.cause {
                EdgeCause::Came => !subject.is_awake && !subject.may_wake,
                EdgeCause::CameToTheAwake => !subject.is_awake,
                EdgeCause::Left | EdgeCause::FellSilent => false,
            };
            if is_refused {
                let by_person =
                    SleepTold { by: "anna".to_owned(), reason: "manual".to_owned(), at: Timestamp::EPOCH };
                let (message, sleep) = if subject.may_wake {
                    ("it cannot be woken from there", None)
                } else {
                    ("a person put it to sleep", Some(by_person))
                };
                Err(Refused::NotAllowed { message: message.to_owned(), sleep })
            } else {
                Ok(standing(&subject))
            }
        });
        Box::pin(async move { answer })
    }

    fn wake<'a>(&'a self, worker: &'a WorkerId) -> Answer<'a, Awake> {
        Box::pin(async move {
            lock(&self.said).push(Said::Wake(worker.clone()));
            let mut subjects = self.subjects.subscribe();
            let _ = subjects.wait_for(|subjects| subjects[worker].wakes).await;
            self.subjects.send_modify(|subjects| {
                subjects.get_mut(worker).expect("it is known").is_awake = true;
            });
            Ok(Awake { boot: standing(&self.subject(worker)?).boot })
        })
    }

    fn slept<'a>(&'a self, worker: &'a WorkerId, is_falling: bool) -> Answer<'a, Slept> {
        Box::pin(async move {
            self.watches.fetch_add(1, Ordering::SeqCst);
            let _watches = Watches(&self.watches);
            let mut subjects = self.subjects.subscribe();
            let is_news = |fell: &Slept| !is_falling || !matches!(fell, Slept::Falling { .. });
            let fell = subjects
                .wait_for(|subjects| {
                    subjects.get(worker).is_none_or(|subject| subject.fell.as_ref().is_some_and(is_news))
                })
                .await;
            let subjects = fell.expect("the plane is there");
            let subject = subjects.get(worker).ok_or(Refused::NoSuchWorker)?;
            Ok(subject.fell.expect("it was just there"))
        })
    }

    fn look<'a>(&'a self, worker: &'a WorkerId) -> Answer<'a, Standing> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        let subject = self.subject(worker);
        Box::pin(async move { Ok(standing(&subject?)) })
    }

    fn is_at_hand<'a>(&'a self, worker: &'a WorkerId) -> Answer<'a, bool> {
        let subject = self.subject(worker);
        Box::pin(async move { subject.map(|subject| subject.is_awake || subject.is_frozen) })
    }

    fn way<'a>(&'a self, worker: &'a WorkerId, _port: u16) -> Answer<'a, Way> {
        let mut ways = lock(&self.ways);
        let left = ways.get_mut(worker);
        let way =
            left.and_then(|left| if left.len() > 1 { Some(left.remove(0)) } else { left.first().cloned() });
        let unknown = || Refused::Unavailable { message: "nobody knows".to_owned() };
        Box::pin(std::future::ready(way.ok_or_else(unknown)))
    }

    fn saw_bytes(&self, worker: &WorkerId) -> bool {
        lock(&self.said).push(Said::Bytes(worker.clone()));
        true
    }

    fn valid_until(&self) -> Timestamp {
        *lock(&self.valid_until)
    }
}

/// Gives back what it gets, to the end.
pub(crate) fn echo(mut stream: TcpStream) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
}

/// Listens on a port of its own, with a thread for each connection.
pub(crate) fn program(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let serve = Arc::new(serve);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || serve(stream));
        }
    });
    address
}

/// Waits for a state, and says what it was instead when it does not come.
#[expect(
    clippy::disallowed_methods,
    reason = "a test waits for a state, with a deadline, on the machine's clock"
)]
pub(crate) fn until<T: std::fmt::Debug>(
    what: &str,
    mut look: impl FnMut() -> T,
    is_it: impl Fn(&T) -> bool,
) -> T {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let seen = look();
        if is_it(&seen) {
            return seen;
        }
        assert!(Instant::now() < deadline, "{what}: not within 20 s; last seen: {seen:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
