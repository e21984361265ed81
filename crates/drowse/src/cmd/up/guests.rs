//! The doors of former lives that still carry connections: they ask here, and are told to end when nobody follows.
//!
//! What must stay true: whoever says something that is none of our words only loses the line; a guest that is gone holds
//! nobody; and that this Drowse hands over to another ends no guest, whose session stands until it has found the next.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use drowse_core::id::WorkerId;
use drowse_server::Fleet;
use drowse_server::fleet::{Carried, ControlError};
use drowse_server::tasks::Tasks;
use drowse_wire::control::{Control, Refused};
use drowse_wire::guest::{Ask, Given, Reply, Word, is_session};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

use super::lines::{self, Hearing, Saying};
use crate::output;

/// Where they ask, in the data folder.
pub(super) const NAME: &str = "guests";

/// How many there are at most: each is a restart whose connections last.
const MOST: usize = 64;

/// How many questions one of them may have open: two for each worker at most, and then some.
const QUESTIONS: usize = 100_000;

/// How long whoever connects may take to say who they are.
const BEGIN_WITHIN: Duration = Duration::from_secs(10);

/// Where guests ask, until this is dropped.
#[derive(Debug)]
pub(super) struct Guests {
    path: PathBuf,
    ending: watch::Sender<bool>,
}

impl Guests {
    /// To be called by whoever holds the folder. If it cannot be had, nobody is carried on for long, and that is said.
    pub(super) fn receive(folder: &Path, fleet: &Fleet, tasks: &Tasks) -> Option<Self> {
        let received = Self::listen(folder, fleet, tasks);
        if let Err(error) = &received {
            output::talk(&format!("drowse: what the one before carries on cannot be counted: {error:#}\n"));
        }
        received.ok()
    }

    fn listen(folder: &Path, fleet: &Fleet, tasks: &Tasks) -> anyhow::Result<Self> {
        let path = folder.join(NAME);
        // The former one's, which is gone.
        let _ = std::fs::remove_file(&path);
        let listener =
            UnixListener::bind(&path).with_context(|| format!("cannot listen at {}", path.display()))?;
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600))?;
        let ending = watch::Sender::new(false);
        let house = Arc::new(House {
            fleet: fleet.clone(),
            tasks: tasks.clone(),
            ending: ending.subscribe(),
            here: Mutex::default(),
        });
        tasks.spawn(house.accept(listener));
        Ok(Self { path, ending })
    }

    /// Nobody follows this Drowse: they end too.
    pub(super) fn end(&self) {
        self.ending.send_replace(true);
    }
}

impl Drop for Guests {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What all guests have in common.
#[derive(Debug)]
struct House {
    fleet: Fleet,
    tasks: Tasks,
    ending: watch::Receiver<bool>,
    /// Which line is the present one of a session: one that is found broken later has nothing to end.
    here: Mutex<(u64, HashMap<String, u64>)>,
}

impl House {
    async fn accept(self: Arc<Self>, listener: UnixListener) {
        let places = Arc::new(Semaphore::new(MOST));
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
            if lines::is_ours(&stream) {
                let house = Arc::clone(&self);
                self.tasks.spawn(async move {
                    if let Err(error) = house.host(stream).await {
                        tracing::warn!(%error, "a front door of a former life was not understood");
                    }
                    drop(place);
                });
            }
        }
    }

    async fn host(self: &Arc<Self>, stream: UnixStream) -> io::Result<()> {
        let (mut hearing, mut saying) = lines::lines(stream);
        let first = tokio::time::timeout(BEGIN_WITHIN, hearing.next()).await??;
        let (id, session) = match first {
            Some(Word::Ask { id, ask: Ask::Begin { session } }) if is_session(&session) => (id, session),
            None => return Ok(()),
            Some(Word::Ask { .. } | Word::Cancel { .. } | Word::SawBytes { .. }) => {
                return Err(io::Error::other("it does not say who it is"));
            }
        };
        let (number, begun) = self.takes_in(&session).await;
        let is_in = begun.is_ok();
        let answered = saying.say(&Reply::to(id, given(begun))).await;
        let served = match answered {
            Ok(()) if is_in => self.serve(&session, &mut hearing, &mut saying).await,
            answered => answered,
        };
        // One that was not taken in, was not understood, or did not read may still carry somebody: it comes again, or its
        // session expires.
        let is_gone = is_in && served.as_ref().map_or_else(lines::is_hang_up, |()| true);
        self.has_left(&session, number, is_gone).await;
        if is_gone { Ok(()) } else { served }
    }

    /// The number of its line, and what came of it.
    async fn takes_in(&self, session: &str) -> (u64, Result<(), ControlError>) {
        let mut here = self.here.lock().await;
        here.0 += 1;
        let number = here.0;
        here.1.insert(session.to_owned(), number);
        (number, self.fleet.renew_guest(session).await)
    }

    async fn has_left(&self, session: &str, number: u64, is_gone: bool) {
        // Held to the end: whoever comes again under that name is counted after it was ended.
        let mut here = self.here.lock().await;
        if here.1.get(session) != Some(&number) {
            return;
        }
        here.1.remove(session);
        if is_gone {
            // If it cannot be written, it expires.
            let _ = self.fleet.guest_left(session).await;
        }
    }

    async fn serve(
        self: &Arc<Self>,
        session: &str,
        hearing: &mut Hearing,
        saying: &mut Saying,
    ) -> io::Result<()> {
        let (tell, mut told) = mpsc::unbounded_channel();
        let mut open = HashMap::new();
        let outcome = self.converse(session, hearing, saying, &tell, &mut told, &mut open).await;
        // Whoever waits for something is gone; what counts somebody is done to its end before the count is ended.
        drop((open, tell));
        while told.recv().await.is_some() {}
        outcome
    }

    async fn converse(
        self: &Arc<Self>,
        session: &str,
        hearing: &mut Hearing,
        saying: &mut Saying,
        tell: &mpsc::UnboundedSender<Reply>,
        told: &mut mpsc::UnboundedReceiver<Reply>,
        open: &mut HashMap<u64, oneshot::Sender<()>>,
    ) -> io::Result<()> {
        let mut ending = self.ending.clone();
        let mut has_said = false;
        // Of those that are under way: what was taken back may yet have to come to its end.
        let questions = Arc::new(Semaphore::new(QUESTIONS));
        loop {
            tokio::select! {
                word = hearing.next() => match word? {
                    None => return Ok(()),
                    Some(Word::SawBytes { worker }) => {
                        self.fleet.saw_bytes(&worker);
                    }
                    Some(Word::Cancel { id }) => {
                        open.remove(&id);
                    }
                    Some(Word::Ask { id, ask }) => {
                        let Ok(place) = Arc::clone(&questions).try_acquire_owned() else {
                            return Err(io::Error::other("it asks too much at once"));
                        };
                        let (cancel, cancelled) = oneshot::channel();
                        open.insert(id, cancel);
                        self.find_out(session, id, ask, cancelled, (tell.clone(), place));
                    }
                },
                Some(reply) = told.recv() => {
                    if let Reply::Given { id, .. } | Reply::Refused { id, .. } = &reply {
                        open.remove(id);
                    }
                    saying.say(&reply).await?;
                }
                () = is_over(&mut ending), if !has_said => {
                    has_said = true;
                    saying.say(&Reply::End).await?;
                }
            }
        }
    }

    /// Has a question answered, unless it is taken back first.
    fn find_out(
        self: &Arc<Self>,
        session: &str,
        id: u64,
        ask: Ask,
        cancelled: oneshot::Receiver<()>,
        (tell, place): (mpsc::UnboundedSender<Reply>, OwnedSemaphorePermit),
    ) {
        let (house, session) = (Arc::clone(self), session.to_owned());
        self.tasks.spawn(async move {
            let fleet = &house.fleet;
            let waits = async {
                // Nothing is ever sent: it is dropped.
                let _ = cancelled.await;
            };
            let answer = match ask {
                // These count somebody or change something, and are not left half-way.
                Ask::Begin { .. } => Err(Refused::Unavailable { message: "it has begun".to_owned() }),
                Ask::Renew => given(fleet.renew_guest(&session).await),
                Ask::Carry { worker, epoch, count } => {
                    given(fleet.guest_carries(&session, Carried { worker, epoch, count }).await)
                }
                Ask::Connections { worker, edge } => {
                    fleet.guest_connections(&session, &worker, edge).await.map(Given::Standing)
                }
                Ask::Look { worker } => fleet.look(&worker).await.map(Given::Standing),
                Ask::Wake { worker } => tokio::select! {
                    awake = fleet.guest_wake(&worker) => awake.map(Given::Awake),
                    () = waits => return,
                },
                Ask::Slept { worker, is_falling } => tokio::select! {
                    slept = slept(fleet, &worker, is_falling) => slept,
                    () = waits => return,
                },
            };
            // It may be gone.
            let _ = tell.send(Reply::to(id, answer));
            drop(place);
        });
    }
}

async fn is_over(ending: &mut watch::Receiver<bool>) {
    if ending.wait_for(|ending| *ending).await.is_err() {
        // Another takes over, and will be found.
        std::future::pending::<()>().await;
    }
}

async fn slept(fleet: &Fleet, worker: &WorkerId, is_falling: bool) -> Result<Given, Refused> {
    fleet.slept(worker, is_falling).await.map(Given::Slept)
}

fn given(done: Result<(), ControlError>) -> Result<Given, Refused> {
    done.map(|()| Given::Done).map_err(|error| Refused::Unavailable { message: error.to_string() })
}
