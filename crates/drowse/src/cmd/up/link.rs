//! What the front door asks: the fleet of this process, and after a planned restart the one that has taken over.
//!
//! ```text
//!   Ours ──(stop asking)──▶ Between ──(handed on)──▶ Guest
//! ```
//!
//! What must stay true: once it has stopped, not a step is made in the fleet for the door, however far a call has come;
//! whoever waits for an answer then gets it from the other, and nobody is told that it failed.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard};
use std::task::Poll;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_server::Fleet;
use drowse_wire::control::{Answer, Awake, Control, Edge, Refused, Slept, Standing, Way};
use drowse_wire::guest::{Ask, Given};
use tokio::sync::watch;

use super::guest::Guest;

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// The fleet of this process.
    Ours,
    /// Nobody: whoever asks waits.
    Nobody,
    /// The one that has taken over.
    Theirs,
}

/// Whoever looks after the workers, now and after a planned restart.
#[derive(Debug)]
pub(super) struct Link {
    fleet: Fleet,
    asked: watch::Sender<Asked>,
    /// The same for those who make a step in the fleet, for as long as that takes.
    is_ours: RwLock<bool>,
    /// The same for those who look all the time.
    has_left: AtomicBool,
    /// Until when what was told holds after that, as long as there is no guest; in microseconds.
    left_until: AtomicI64,
    guest: OnceLock<Arc<Guest>>,
}

impl Link {
    pub(super) fn new(fleet: Fleet) -> Self {
        Self {
            fleet,
            asked: watch::Sender::new(Asked::Ours),
            is_ours: RwLock::new(true),
            has_left: AtomicBool::new(false),
            left_until: AtomicI64::new(0),
            guest: OnceLock::new(),
        }
    }

    /// The door asks the fleet nothing any more, not even to the end of what it is about.
    pub(super) fn stop_asking(&self) {
        let mut is_ours = self.is_ours.write().unwrap_or_else(PoisonError::into_inner);
        self.left_until.store(self.fleet.valid_until().as_micros(), Ordering::Release);
        self.has_left.store(true, Ordering::Release);
        *is_ours = false;
        drop(is_ours);
        self.asked.send_replace(Asked::Nobody);
    }

    /// From now on somebody else is asked.
    pub(super) fn ask_as(&self, guest: Arc<Guest>) {
        // There is one take-over in a life.
        let _ = self.guest.set(guest);
        self.asked.send_replace(Asked::Theirs);
    }

    fn is_ours(&self) -> RwLockReadGuard<'_, bool> {
        self.is_ours.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the fleet answers; `None`: it is not to be asked any more.
    async fn of_fleet<T>(&self, mut answer: Answer<'_, T>) -> Option<Result<T, Refused>> {
        let mut asked = self.asked.subscribe();
        let mut left = pin!(asked.wait_for(|asked| *asked != Asked::Ours));
        poll_fn(|context| {
            // Held over the step: whoever waits for all steps to be over waits for this one.
            let is_ours = self.is_ours();
            if !*is_ours || left.as_mut().poll(context).is_ready() {
                return Poll::Ready(None);
            }
            answer.as_mut().poll(context).map(Some)
        })
        .await
    }

    /// Whoever has taken over, as soon as it can be asked.
    async fn theirs(&self) -> &Guest {
        let mut asked = self.asked.subscribe();
        // The sender lives as long as this.
        let _ = asked.wait_for(|asked| *asked == Asked::Theirs).await;
        match self.guest.get() {
            Some(guest) => guest,
            None => std::future::pending().await,
        }
    }
}

fn nonsense() -> Refused {
    Refused::Unavailable { message: "the Drowse that has taken over answers something else".to_owned() }
}

fn standing(given: Given) -> Result<Standing, Refused> {
    if let Given::Standing(standing) = given { Ok(standing) } else { Err(nonsense()) }
}

impl Control for Link {
    fn connections<'a>(&'a self, worker: &'a WorkerId, edge: Edge) -> Answer<'a, Standing> {
        Box::pin(async move {
            if let Some(answer) = self.of_fleet(Control::connections(&self.fleet, worker, edge)).await {
                return answer;
            }
            self.theirs().await.connections(worker, edge).await.and_then(standing)
        })
    }

    fn head_start(&self, worker: &WorkerId, edge: Edge, counted: &mut dyn FnMut()) -> Option<Standing> {
        let is_ours = self.is_ours();
        if *is_ours { self.fleet.head_start(worker, edge, counted) } else { None }
    }

    fn wake<'a>(&'a self, worker: &'a WorkerId) -> Answer<'a, Awake> {
        Box::pin(async move {
            if let Some(answer) = self.of_fleet(Control::wake(&self.fleet, worker)).await {
                return answer;
            }
            let given = self.theirs().await.ask(Ask::Wake { worker: worker.clone() }).await?;
            if let Given::Awake(awake) = given { Ok(awake) } else { Err(nonsense()) }
        })
    }

    fn slept<'a>(&'a self, worker: &'a WorkerId, is_falling: bool) -> Answer<'a, Slept> {
        Box::pin(async move {
            if let Some(answer) = self.of_fleet(self.fleet.slept(worker, is_falling)).await {
                return answer;
            }
            let given = self.theirs().await.ask(Ask::Slept { worker: worker.clone(), is_falling }).await?;
            if let Given::Slept(slept) = given { Ok(slept) } else { Err(nonsense()) }
        })
    }

    fn look<'a>(&'a self, worker: &'a WorkerId) -> Answer<'a, Standing> {
        Box::pin(async move {
            if let Some(answer) = self.of_fleet(self.fleet.look(worker)).await {
                return answer;
            }
            self.theirs().await.ask(Ask::Look { worker: worker.clone() }).await.and_then(standing)
        })
    }

    fn is_at_hand<'a>(&'a self, worker: &'a WorkerId) -> Answer<'a, bool> {
        Box::pin(async move {
            if let Some(answer) = self.of_fleet(self.fleet.is_at_hand(worker)).await {
                return answer;
            }
            let given = self.theirs().await.ask(Ask::Look { worker: worker.clone() }).await?;
            Ok(standing(given)?.is_awake)
        })
    }

    /// By the drivers of this process in any case: that a run still stands has to be known without asking anybody.
    fn way<'a>(&'a self, worker: &'a WorkerId, port: u16) -> Answer<'a, Way> {
        self.fleet.way(worker, port)
    }

    fn saw_bytes(&self, worker: &WorkerId) -> bool {
        if let Some(guest) = self.guest.get() {
            return guest.saw_bytes(worker);
        }
        let is_ours = self.is_ours();
        *is_ours && self.fleet.saw_bytes(worker)
    }

    fn valid_until(&self) -> Timestamp {
        if !self.has_left.load(Ordering::Acquire) {
            return self.fleet.valid_until();
        }
        match self.guest.get() {
            Some(guest) => guest.valid_until(),
            None => Timestamp::from_micros(self.left_until.load(Ordering::Acquire)),
        }
    }
}
