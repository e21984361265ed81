//! All doors of a process, and what they have in common.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_wire::control::Control;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use crate::copy;
use crate::door::Door;
use crate::gate::Terms;
use crate::keeper;
use crate::listener::{Leads, Listener};
use crate::reach::reach;
use crate::route::WAIT_FOR;
use crate::tally::Counts;
use crate::tls;

/// The injected clock.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// How often bytes that moved are told of.
const TELL_EVERY: Duration = Duration::from_millis(250);

/// How long a worker is held after its last connection.
const LINGER: Duration = Duration::from_millis(100);

/// After `accept` failed for want of file descriptors or memory.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// How much a router takes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many wait for one worker at most.
    pub waiting: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { waiting: 2_048 }
    }
}

/// How far closing a port has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Closing {
    /// It is open.
    Open,
    /// Nobody is let in; who is in goes on.
    NobodyIn,
    /// Connections are cut.
    Cut,
}

/// All doors of a process. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Router(Arc<Inside>);

pub(crate) struct Inside {
    pub(crate) control: Arc<dyn Control>,
    now: Now,
    handle: Handle,
    /// Connections and keepers.
    tasks: TaskTracker,
    /// What goes on for as long as the router does.
    chores: TaskTracker,
    limits: Limits,
    doors: Mutex<HashMap<WorkerId, Arc<Door>>>,
    epochs: AtomicU64,
    /// Doors that the housekeeper has to look at.
    listed: Mutex<Vec<Arc<Door>>>,
}

impl fmt::Debug for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// A port that leads somewhere.
#[derive(Debug)]
pub struct Open {
    leads: watch::Sender<Leads>,
    closing: watch::Sender<Closing>,
    address: SocketAddr,
    accepting: tokio::task::JoinHandle<()>,
}

impl Open {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it leads.
    pub fn leads(&self) -> Leads {
        self.leads.borrow().clone()
    }

    /// Leads elsewhere from now on. Connections that were let through go on.
    pub fn lead(&self, leads: Leads) {
        self.leads.send_replace(leads);
    }

    /// Closes it, as far as that.
    pub fn close(&self, how_far: Closing) {
        self.closing.send_replace(how_far);
    }

    /// Closes it and waits until the port is free. Who is in goes on.
    pub async fn closed(self) {
        self.close(Closing::NobodyIn);
        let _ = self.accepting.await;
    }
}

impl Router {
    /// To be called on the runtime whose tasks are to talk to `control`.
    pub fn new(control: Arc<dyn Control>, now: Now, limits: Limits) -> Self {
        let inside = Arc::new(Inside {
            control,
            now,
            handle: Handle::current(),
            tasks: TaskTracker::new(),
            chores: TaskTracker::new(),
            limits,
            doors: Mutex::default(),
            epochs: AtomicU64::new(1),
            listed: Mutex::default(),
        });
        let weak = Arc::downgrade(&inside);
        let tidying = async move {
            loop {
                tokio::time::sleep(TELL_EVERY).await;
                let Some(inside) = weak.upgrade() else { return };
                inside.tidy();
            }
        };
        inside.chores.spawn_on(tidying, &inside.handle);
        Self(inside)
    }

    /// Lets people in through a port.
    pub fn open(&self, listener: Listener, leads: Leads) -> std::io::Result<Open> {
        let address = listener.address();
        let socket = {
            let _inside = self.0.handle.enter();
            tokio::net::TcpListener::from_std(listener.socket)?
        };
        let (leads, closing) = (watch::Sender::new(leads), watch::Sender::new(Closing::Open));
        let accept = accept(self.clone(), socket, leads.subscribe(), closing.subscribe());
        let accepting = self.0.tasks.spawn_on(accept, &self.0.handle);
        Ok(Open { leads, closing, address, accepting })
    }

    /// The door of a worker.
    pub fn door(&self, worker: &WorkerId) -> Arc<Door> {
        let mut doors = lock(&self.0.doors);
        let door = doors.entry(worker.clone()).or_insert_with(|| {
            let terms = Terms { wait_for: WAIT_FOR, places: self.0.limits.waiting, linger: LINGER };
            Arc::new(Door::new(worker.clone(), terms, Arc::downgrade(&self.0)))
        });
        Arc::clone(door)
    }

    /// What went through, by worker.
    pub fn counts(&self) -> Vec<(WorkerId, Counts)> {
        let doors: Vec<Arc<Door>> = lock(&self.0.doors).values().cloned().collect();
        doors.iter().map(|door| (door.worker().clone(), door.counts())).collect()
    }

    /// Waits until every connection has ended and the control plane knows.
    pub async fn finish(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}

impl Inside {
    pub(crate) fn now(&self) -> Timestamp {
        (self.now)()
    }

    pub(crate) fn next_epoch(&self) -> u64 {
        self.epochs.fetch_add(1, Ordering::Relaxed)
    }

    /// What was told holds.
    pub(crate) fn is_valid(&self) -> bool {
        self.now() < self.control.valid_until()
    }

    pub(crate) fn keep(self: &Arc<Self>, door: Arc<Door>) {
        self.tasks.spawn_on(keeper::keep(Arc::clone(self), door), &self.handle);
    }

    pub(crate) fn list(&self, door: Arc<Door>) {
        lock(&self.listed).push(door);
    }

    /// Tells of bytes that moved, and has the keepers look who is left.
    fn tidy(&self) {
        if !self.is_valid() {
            self.lapse();
        }
        for door in std::mem::take(&mut *lock(&self.listed)) {
            door.is_listed.store(false, Ordering::Release);
            let is_empty = door.lock().gate.count() == 0;
            if is_empty {
                door.poke();
            } else if door.tally.take_mark() {
                self.control.saw_bytes(&door.worker);
            }
        }
    }
}

/// What the control plane was told holds no more: nothing moves until it has been told again.
impl Inside {
    fn lapse(&self) {
        let doors: Vec<Arc<Door>> = lock(&self.doors).values().cloned().collect();
        for door in doors {
            let decided = door.lock().gate.lost();
            door.apply(decided);
            if door.lock().gate.count() > 0 {
                door.poke();
            }
        }
    }
}

async fn accept(
    router: Router,
    socket: tokio::net::TcpListener,
    leads: watch::Receiver<Leads>,
    mut closing: watch::Receiver<Closing>,
) {
    loop {
        let mut closed = closing.clone();
        let accepted = tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing > Closing::Open) => return,
            accepted = socket.accept() => accepted,
        };
        let Ok((client, from)) = accepted else {
            tokio::time::sleep(ACCEPT_AGAIN).await;
            continue;
        };
        let leads = leads.borrow().clone();
        let router = router.clone();
        let tasks = router.0.tasks.clone();
        tasks.spawn(async move {
            tokio::select! {
                () = serve(&router, leads, client, from) => {}
                _ = closed.wait_for(|closing| *closing == Closing::Cut) => {}
            }
        });
    }
}

async fn serve(router: &Router, leads: Leads, client: TcpStream, from: SocketAddr) {
    match leads {
        Leads::Port(route) => {
            if let Ok((pass, worker)) = reach(router, &route, from.ip()).await {
                // However it ends, both sides have been told by the closing of their sockets.
                let _ = copy::both_ways(&pass, client, worker).await;
            }
        }
        Leads::Tls(names) => tls::serve(router, &names, client, from).await,
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
