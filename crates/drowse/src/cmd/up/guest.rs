//! A front door without a fleet: it asks the Drowse that has taken over, and finds it again when it is another.
//!
//! What was told stays told while the line is broken, for as long as the session is good; what was asked is asked again.
//! How long the session is good counts from when its renewal was asked for, so that an answer that was long on its way
//! promises nothing.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_router::Now;
use drowse_server::fleet::{Carried, GUEST_FOR};
use drowse_wire::control::{Edge, Refused};
use drowse_wire::guest::{Ask, Given, Reply, Word};
use tokio::net::UnixStream;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::MissedTickBehavior;

use super::lines::{self, Hearing, Saying};
use crate::output;

/// How soon it is tried again to find somebody: a start takes some tenths of a second, and people wait.
const TRY_EVERY: Duration = Duration::from_millis(20);

/// How soon after nobody took us in.
const NOT_TAKEN_IN_FOR: Duration = Duration::from_millis(500);

/// How often the session is renewed: a third of what it is good for, so that one renewal may be lost.
const RENEW_EVERY: Duration = Duration::from_secs(5);

/// How soon a renewal that was refused is asked for again.
const RENEW_AGAIN: Duration = Duration::from_secs(1);

/// How long a renewal may take.
const RENEWED_WITHIN: Duration = Duration::from_secs(10);

/// How long somebody who wants to know something waits for a host before they hear that there is none.
const HOST_WITHIN: Duration = Duration::from_secs(3);

/// How long the host may take to answer each of the first words.
const BEGIN_WITHIN: Duration = Duration::from_secs(10);

type Answered = Result<Given, Refused>;

/// A guest of whoever looks after the fleet.
pub(super) struct Guest {
    session: String,
    now: Now,
    /// Until when what was told holds, in microseconds.
    valid_until: AtomicI64,
    inner: Mutex<Inner>,
    has_host: watch::Sender<bool>,
    /// Somebody has said that it cannot take us in just now.
    is_put_off: Notify,
    is_to_end: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Inner {
    last_id: u64,
    /// What nobody has answered yet.
    open: HashMap<u64, (Ask, oneshot::Sender<Answered>)>,
    /// What the store holds for us, to be said again to the next host.
    carried: BTreeMap<WorkerId, (u64, u64)>,
    /// To the host, while there is one.
    out: Option<mpsc::UnboundedSender<Word>>,
}

impl Inner {
    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn say(&self, word: Word) -> bool {
        self.out.as_ref().is_some_and(|out| out.send(word).is_ok())
    }
}

impl std::fmt::Debug for Guest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guest").field("session", &self.session).finish_non_exhaustive()
    }
}

/// A question. Whoever does not wait for the answer any more takes it back.
struct Question<'a> {
    guest: &'a Guest,
    id: u64,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        let mut inner = self.guest.lock();
        if inner.open.remove(&self.id).is_some() {
            inner.say(Word::Cancel { id: self.id });
        }
    }
}

impl Guest {
    /// `carried` hangs on the session, which is good until then.
    pub(super) fn new(session: String, carried: Vec<Carried>, valid_until: Timestamp, now: Now) -> Self {
        let carried = carried.into_iter().map(|carried| (carried.worker, (carried.epoch, carried.count)));
        Self {
            session,
            now,
            valid_until: AtomicI64::new(valid_until.as_micros()),
            inner: Mutex::new(Inner { carried: carried.collect(), ..Inner::default() }),
            has_host: watch::Sender::new(false),
            is_put_off: Notify::new(),
            is_to_end: watch::Sender::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn valid_until(&self) -> Timestamp {
        Timestamp::from_micros(self.valid_until.load(Ordering::Acquire))
    }

    /// Whether it was told, to somebody who is there.
    pub(super) fn saw_bytes(&self, worker: &WorkerId) -> bool {
        self.lock().say(Word::SawBytes { worker: worker.clone() })
    }

    /// Tells of an edge. Told twice, it is the same edge.
    pub(super) async fn connections(&self, worker: &WorkerId, edge: Edge) -> Answered {
        let answer = self.ask(Ask::Connections { worker: worker.clone(), edge }).await;
        if answer.is_ok() {
            let carried = &mut self.lock().carried;
            if edge.count > 0 {
                carried.insert(worker.clone(), (edge.epoch, edge.count));
            } else {
                carried.remove(worker);
            }
        }
        answer
    }

    /// Asks, and asks again whoever comes after one that is gone.
    pub(super) async fn ask(&self, ask: Ask) -> Answered {
        let mut has_host = self.has_host.subscribe();
        let (tell, told) = oneshot::channel();
        let question = {
            let mut inner = self.lock();
            let id = inner.next_id();
            inner.say(Word::Ask { id, ask: ask.clone() });
            inner.open.insert(id, (ask, tell));
            Question { guest: self, id }
        };
        let nobody = async {
            loop {
                let _ = has_host.wait_for(|has_host| !has_host).await;
                let comes = has_host.wait_for(|has_host| *has_host);
                if tokio::time::timeout(HOST_WITHIN, comes).await.is_err() {
                    return;
                }
            }
        };
        let answer = tokio::select! {
            biased;
            answer = told => answer.ok(),
            () = nobody => None,
        };
        drop(question);
        let gone = || Refused::Unavailable { message: "no Drowse answers just now".to_owned() };
        answer.unwrap_or_else(|| Err(gone()))
    }

    /// Waits until nobody has been there for so long. One that cannot write just now is there.
    pub(super) async fn is_alone_for(&self, so_long: Duration) {
        let mut has_host = self.has_host.subscribe();
        loop {
            let _ = has_host.wait_for(|has_host| !has_host).await;
            let comes = async {
                tokio::select! {
                    _ = has_host.wait_for(|has_host| *has_host) => {}
                    () = self.is_put_off.notified() => {}
                }
            };
            if tokio::time::timeout(so_long, comes).await.is_err() {
                return;
            }
        }
    }

    /// Waits until the host ends and nobody follows it.
    pub(super) async fn is_to_end(&self) {
        let mut is_to_end = self.is_to_end.subscribe();
        let _ = is_to_end.wait_for(|is_to_end| *is_to_end).await;
    }

    /// Is the guest of whoever is there, for ever.
    pub(super) async fn stay(&self, at: &Path) {
        loop {
            let mut pause = TRY_EVERY;
            if let Ok(stream) = UnixStream::connect(at).await
                && lines::is_ours(&stream)
            {
                let visited = self.visit(stream).await;
                self.lock().out = None;
                self.has_host.send_replace(false);
                if let Err(error) = visited {
                    pause = NOT_TAKEN_IN_FOR;
                    if error.kind() == io::ErrorKind::ConnectionRefused {
                        self.is_put_off.notify_one();
                    }
                    if !lines::is_hang_up(&error) {
                        // We have hung up, so the host takes us for gone: nothing holds until it is told again.
                        self.valid_until.store((self.now)().as_micros(), Ordering::Release);
                    }
                }
            }
            tokio::time::sleep(pause).await;
        }
    }

    async fn visit(&self, stream: UnixStream) -> io::Result<()> {
        let (mut hearing, mut saying) = lines::lines(stream);
        let asked_at = (self.now)();
        self.begin(&mut hearing, &mut saying).await?;
        self.is_valid_from(asked_at);
        output::talk("drowse: counted by the Drowse that has taken over\n");
        let (out, mut words) = mpsc::unbounded_channel();
        {
            let mut inner = self.lock();
            for (id, (ask, _)) in &inner.open {
                // Said while answers are heard: both would wait for each other over so many.
                let _ = out.send(Word::Ask { id: *id, ask: ask.clone() });
            }
            inner.out = Some(out);
        }
        self.has_host.send_replace(true);
        let mut renewing = Renewing::new();
        if (self.now)().since(asked_at) > RENEW_EVERY {
            // We carry so many that saying it took most of what we were promised.
            renewing.ticks.reset_immediately();
        }
        loop {
            tokio::select! {
                // Its sender is ours, and stays until we are through.
                Some(word) = words.recv() => saying.say(&word).await?,
                is_due = renewing.is_due() => {
                    if !is_due {
                        // It is there and does not answer: as good as nobody.
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    let id = self.lock().next_id();
                    renewing.ask(id, (self.now)());
                    saying.say(&Word::Ask { id, ask: Ask::Renew }).await?;
                }
                reply = hearing.next() => match reply? {
                    None => return Ok(()),
                    Some(Reply::End) => {
                        self.is_to_end.send_replace(true);
                    }
                    Some(Reply::Given { id, given }) => {
                        if let Some(asked_at) = renewing.answered(id, true) {
                            self.is_valid_from(asked_at);
                        } else {
                            self.answer(id, Ok(given));
                        }
                    }
                    Some(Reply::Refused { id, refused }) => {
                        if renewing.answered(id, false).is_none() {
                            self.answer(id, Err(refused));
                        }
                    }
                },
            }
        }
    }

    /// Says who we are and whom we carry.
    async fn begin(&self, hearing: &mut Hearing, saying: &mut Saying) -> io::Result<()> {
        let mut asks = vec![Ask::Begin { session: self.session.clone() }];
        asks.extend(self.lock().carried.iter().map(|(worker, (epoch, count))| Ask::Carry {
            worker: worker.clone(),
            epoch: *epoch,
            count: *count,
        }));
        for ask in asks {
            let id = self.lock().next_id();
            let is_first = matches!(ask, Ask::Begin { .. });
            saying.say(&Word::Ask { id, ask }).await?;
            let answer = loop {
                match tokio::time::timeout(BEGIN_WITHIN, hearing.next()).await?? {
                    // It is still there, and what we carry counts until the end.
                    Some(Reply::End) => drop(self.is_to_end.send_replace(true)),
                    answer => break answer,
                }
            };
            match answer {
                Some(Reply::Given { id: answered, .. }) if answered == id => {}
                None => return Err(io::ErrorKind::ConnectionReset.into()),
                // Not just now: what it knows of us stands.
                Some(Reply::Refused { .. }) if is_first => {
                    return Err(io::ErrorKind::ConnectionRefused.into());
                }
                Some(Reply::Given { .. } | Reply::Refused { .. } | Reply::End) => {
                    return Err(io::Error::other("it does not take us in"));
                }
            }
        }
        Ok(())
    }

    fn is_valid_from(&self, asked_at: Timestamp) {
        self.valid_until.fetch_max((asked_at + GUEST_FOR).as_micros(), Ordering::AcqRel);
    }

    fn answer(&self, id: u64, answer: Answered) {
        // Whoever asked may have taken it back.
        if let Some((_, tell)) = self.lock().open.remove(&id) {
            let _ = tell.send(answer);
        }
    }
}

/// When the session is renewed.
#[derive(Debug)]
struct Renewing {
    ticks: tokio::time::Interval,
    /// It was asked for, and when.
    asked: Option<(u64, Timestamp)>,
}

impl Renewing {
    fn new() -> Self {
        let mut ticks = tokio::time::interval(RENEW_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first one is at once, and we have just been taken in.
        ticks.reset();
        Self { ticks, asked: None }
    }

    fn ask(&mut self, id: u64, now: Timestamp) {
        self.asked = Some((id, now));
        self.ticks.reset_after(RENEWED_WITHIN);
    }

    /// Waits until it is time for a renewal. False: it is time for the answer to the last one.
    async fn is_due(&mut self) -> bool {
        self.ticks.tick().await;
        self.asked.is_none()
    }

    /// When that was asked for, if it was a renewal.
    fn answered(&mut self, id: u64, is_granted: bool) -> Option<Timestamp> {
        let (_, asked_at) = self.asked.take_if(|(asked, _)| *asked == id)?;
        self.ticks.reset_after(if is_granted { RENEW_EVERY } else { RENEW_AGAIN });
        Some(asked_at)
    }
}
