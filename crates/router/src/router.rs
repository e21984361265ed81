//! All doors of a process, and what they have in common.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_wire::control::Control;
use rustix::fd::OwnedFd;
use rustix::process::{Resource, getrlimit};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use crate::door::Door;
use crate::gate::Terms;
use crate::keeper;
use crate::listener::{Leads, Listener};
use crate::port::{Lane, Port};
use crate::pump::{Common, Letter, Mailbox, Pump};
use crate::room::Room;
use crate::tally::Counts;

/// The injected clock.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// How often bytes that moved are told of.
const TELL_EVERY: Duration = Duration::from_millis(250);

/// How long a worker is held after its last connection.
const LINGER: Duration = Duration::from_millis(100);

/// How often it is looked whether all have left, at the end.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Files that are not for connections: the store, logs, what the rest of the program opens.
const OTHER_FILES: usize = 500;

/// How much a router takes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many wait for one worker at most.
    pub waiting: usize,
    /// How many connections there are at most; each is two files.
    pub connections: usize,
    /// On how many threads bytes are moved.
    pub threads: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let files = getrlimit(Resource::Nofile).current.unwrap_or(1 << 20);
        let files = usize::try_from(files).unwrap_or(usize::MAX);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            waiting: 2_048,
            connections: (files.saturating_sub(OTHER_FILES) / 2).max(1),
            // One moves a million small packets a second: more are for machines that do little else.
            threads: cores.min(4),
        }
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

/// All doors of a process. Cheap to clone; its threads end with the last clone.
#[derive(Clone, Debug)]
pub struct Router(Arc<Inside>);

pub(crate) struct Inside {
    pub(crate) control: Arc<dyn Control>,
    now: Now,
    handle: Handle,
    /// Keepers.
    tasks: TaskTracker,
    /// What goes on for as long as the router does.
    chores: TaskTracker,
    limits: Limits,
    room: Arc<Room>,
    pumps: Vec<Arc<Mailbox>>,
    doors: Mutex<HashMap<WorkerId, Arc<Door>>>,
    epochs: AtomicU64,
    ports: AtomicU64,
    /// Doors that the housekeeper has to look at.
    listed: Mutex<Vec<Arc<Door>>>,
}

impl fmt::Debug for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.post_all(|| Letter::End);
    }
}

/// A port that leads somewhere. It closes with this.
#[derive(Debug)]
pub struct Open {
    router: Router,
    port: Arc<Port>,
    /// Until nobody is let in any more.
    socket: Mutex<Option<Arc<OwnedFd>>>,
    address: SocketAddr,
}

impl Open {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it leads.
    pub fn leads(&self) -> Leads {
        self.port.leads()
    }

    /// Leads elsewhere from now on. Connections that were let through go on.
    pub fn lead(&self, leads: Leads) {
        self.port.set_lane(self.router.lane(leads));
    }

    /// Closes it, as far as that.
    pub fn close(&self, how_far: Closing) {
        if how_far >= Closing::NobodyIn {
            drop(self.stop_listening());
        }
        if how_far == Closing::Cut {
            self.router.0.post_all(|| Letter::CutPort(self.port.id));
        }
    }

    /// Closes it and waits until the port is free. Who is in goes on.
    pub async fn closed(self) {
        let mut done = self.stop_listening();
        // Nothing is ever sent: it is over when the last pump has let go.
        let _ = done.recv().await;
    }

    fn stop_listening(&self) -> mpsc::Receiver<()> {
        drop(lock(&self.socket).take());
        let (tell, done) = mpsc::channel(1);
        self.router.0.post_all(|| Letter::Close(self.port.id, tell.clone()));
        done
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        drop(self.stop_listening());
    }
}

impl Router {
    /// To be called on the runtime whose tasks are to talk to `control`.
    pub fn new(control: &Arc<dyn Control>, now: &Now, limits: Limits) -> io::Result<Self> {
        let handle = Handle::current();
        let threads = limits.threads.max(1);
        let pumps: io::Result<Vec<_>> = (0..threads).map(|_| Mailbox::new().map(Arc::new)).collect();
        let inside = Arc::new(Inside {
            control: Arc::clone(control),
            now: Arc::clone(now),
            handle,
            tasks: TaskTracker::new(),
            chores: TaskTracker::new(),
            limits,
            room: Arc::new(Room::new(limits.connections)),
            pumps: pumps?,
            doors: Mutex::default(),
            epochs: AtomicU64::new(1),
            ports: AtomicU64::new(1),
            listed: Mutex::default(),
        });
        for (number, mailbox) in inside.pumps.iter().enumerate() {
            let common = Common {
                control: Arc::clone(control),
                now: Arc::clone(now),
                room: Arc::clone(&inside.room),
                router: Arc::downgrade(&inside),
            };
            let pump = Pump::new(common, Arc::clone(mailbox), threads)?;
            std::thread::Builder::new().name(format!("router-{number}")).spawn(move || pump.run())?;
        }
        let weak = Arc::downgrade(&inside);
        let tidying = async move {
            loop {
                tokio::time::sleep(TELL_EVERY).await;
                let Some(inside) = weak.upgrade() else { return };
                inside.tidy();
            }
        };
        inside.chores.spawn_on(tidying, &inside.handle);
        Ok(Self(inside))
    }

    /// Lets people in through a port.
    pub fn open(&self, listener: Listener, leads: Leads) -> Open {
        let address = listener.address();
        let id = self.0.ports.fetch_add(1, Ordering::Relaxed);
        let port = Arc::new(Port::new(id, self.lane(leads)));
        let socket: Arc<OwnedFd> = Arc::new(listener.socket.into());
        self.0.post_all(|| Letter::Listen(Arc::clone(&port), Arc::clone(&socket)));
        Open { router: self.clone(), port, socket: Mutex::new(Some(socket)), address }
    }

    fn lane(&self, leads: Leads) -> Lane {
        let Leads::Port(route) = leads;
        Lane { door: self.door(&route.worker), route }
    }

    /// The door of a worker.
    pub fn door(&self, worker: &WorkerId) -> Arc<Door> {
        let mut doors = lock(&self.0.doors);
        let door = doors.entry(worker.clone()).or_insert_with(|| {
            let terms = Terms { places: self.0.limits.waiting, linger: LINGER };
            Arc::new(Door::new(worker.clone(), terms, Arc::downgrade(&self.0)))
        });
        Arc::clone(door)
    }

    /// What went through, by worker.
    pub fn counts(&self) -> Vec<(WorkerId, Counts)> {
        self.0.all_doors().iter().map(|door| (door.worker().clone(), door.counts())).collect()
    }

    /// Waits until every connection has ended and the control plane knows.
    pub async fn finish(&self) {
        while self.0.room.taken() > 0 {
            tokio::time::sleep(LOOK_EVERY).await;
        }
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

    /// Starts a task that ends with the router.
    pub(crate) fn spawn<F>(self: &Arc<Self>, work: impl FnOnce(Arc<Self>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.chores.spawn_on(work(Arc::clone(self)), &self.handle);
    }

    pub(crate) fn keep(self: &Arc<Self>, door: Arc<Door>) {
        self.tasks.spawn_on(keeper::keep(Arc::clone(self), door), &self.handle);
    }

    pub(crate) fn post_all(&self, mut letter: impl FnMut() -> Letter) {
        for pump in &self.pumps {
            pump.post(letter());
        }
    }

    pub(crate) fn list(&self, door: Arc<Door>) {
        lock(&self.listed).push(door);
    }

    fn all_doors(&self) -> Vec<Arc<Door>> {
        lock(&self.doors).values().cloned().collect()
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

    /// What the control plane was told holds no more: nothing moves until it has been told again.
    pub(crate) fn lapse(&self) {
        for door in self.all_doors() {
            let (decided, count) = {
                let mut guarded = door.lock();
                (guarded.gate.lost(), guarded.gate.count())
            };
            door.apply(decided);
            if count > 0 {
                door.poke();
            }
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
