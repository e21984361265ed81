//! The keeper of a door: does what its gate asks for, one thing at a time.
//!
//! There is one for each worker that is held, for as long as it is. It tells the edges, waits for wakes, proves
//! targets, and notices when the worker falls asleep against the will of those who are connected.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_wire::control::{Answer, Edge, EdgeCause, Refused, Slept};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{AcquireError, OwnedSemaphorePermit};

use crate::door::Door;
use crate::gate::Step;
use crate::prove::{self, Tried};
use crate::route::Target;
use crate::router::Inside;

/// A place in the row of those who come up.
type Asked = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

/// How soon a look is repeated that told nothing.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How long a worker that is awake and does not answer keeps others of its site from coming up.
const COMES_UP_FOR: Duration = Duration::from_secs(5);

/// How long one that is being started does. A hundred that are asked for at once are not to begin at once; but a few that
/// take minutes must not keep out the others, whose visitors wait for 30 s as a rule: that is three rounds.
const STARTS_FOR: Duration = Duration::from_secs(10);

/// That it is this worker's turn to come up.
struct Turn {
    _permit: OwnedSemaphorePermit,
    since: Timestamp,
}

impl Turn {
    fn of(router: &Inside, permit: Option<OwnedSemaphorePermit>) -> Option<Self> {
        permit.map(|permit| Self { _permit: permit, since: router.now() })
    }

    fn now(router: &Inside, door: &Door) -> Option<Self> {
        Self::of(router, door.budget().try_acquire_owned().ok())
    }
}

/// Keeps a door until there is nothing to be done.
pub(crate) async fn keep(router: Arc<Inside>, door: Arc<Door>) {
    let control = Arc::clone(&router.control);
    let worker: WorkerId = door.worker.clone();
    // Kept over the rounds: to watch a worker costs a look at the store.
    let mut watch: Option<Answer<'_, Slept>> = None;
    // The last look told nothing.
    let mut is_blind = false;
    // It comes up in its turn, however many are asked for at once.
    let mut turn: Option<Turn> = None;
    let mut asked: Option<Asked> = None;
    loop {
        let (step, decided) = {
            let mut guarded = door.lock();
            let (step, decided) = guarded.gate.next(router.now());
            // Under the lock: whoever comes after this starts another keeper.
            guarded.is_kept = step != Step::Rest;
            (step, decided)
        };
        door.apply(decided);
        if !matches!(step, Step::Wait { is_awake: true, .. } | Step::Prove(_)) {
            watch = None;
        }
        let is_new = matches!(step, Step::Tell { count: 1.., .. }) && !door.lock().gate.has_passing();
        if is_new && turn.is_none() {
            turn = Turn::now(&router, &door);
            // A worker that is awake need not come up, and what is frozen is there at once.
            if turn.is_none() && !control.is_at_hand(&worker).await.unwrap_or(false) {
                let until = door.lock().gate.next_deadline();
                // It keeps its place in the row whatever happens meanwhile.
                let asking = asked.get_or_insert_with(|| Box::pin(door.budget().acquire_owned()));
                tokio::select! {
                    biased;
                    given = asking => (turn, asked) = (Turn::of(&router, given.ok()), None),
                    () = door.news.notified() => {}
                    () = sleep_until(&router, until) => {}
                }
                // Much may have changed.
                continue;
            }
        }
        // Until it answers, or long enough for the others to have their turn too.
        let comes_up = match &step {
            Step::Tell { count, .. } => *count > 0,
            Step::Wake => true,
            Step::Prove(_) | Step::Wait { is_awake: true, .. } => {
                let is_on = |turn: &Turn| router.now() < turn.since + COMES_UP_FOR;
                door.waiting() > 0 && turn.as_ref().is_some_and(is_on)
            }
            Step::Wait { .. } | Step::Rest => false,
        };
        if !comes_up {
            (turn, asked) = (None, None);
        }
        match step {
            Step::Rest => return,
            Step::Tell { count, cause } => tell(&router, &door, count, cause).await,
            Step::Wake => wake(&router, &door, &mut turn).await,
            Step::Prove(targets) => prove(&router, &door, targets).await,
            Step::Wait { until, is_awake } => {
                let sleeping = async {
                    match watch.as_mut().filter(|_| is_awake) {
                        Some(watch) => watch.await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    slept = sleeping => {
                        watch = None;
                        let slept = match slept {
                            Ok(slept) => Some(slept),
                            // It has left the books, and nobody would ever wake it.
                            Err(Refused::NoSuchWorker) => Some(Slept::Asleep { since: None }),
                            // Nobody can tell: as before, until somebody can.
                            Err(_) => {
                                is_blind = true;
                                None
                            }
                        };
                        if let Some(slept) = slept {
                            let decided = door.lock().gate.slept(slept, router.now());
                            door.apply(decided);
                        }
                    }
                    () = door.news.notified() => {}
                    () = sleep_until(&router, until) => {}
                }
            }
        }
        if watch.is_none() {
            let (is_awake, is_falling) = {
                let guarded = door.lock();
                (guarded.gate.is_awake(), guarded.gate.is_falling())
            };
            let (after, control, worker) = (std::mem::take(&mut is_blind), &control, &worker);
            watch = is_awake.then(|| -> Answer<'_, Slept> {
                if !after {
                    return control.slept(worker, is_falling);
                }
                Box::pin(async move {
                    tokio::time::sleep(LOOK_AGAIN).await;
                    control.slept(worker, is_falling).await
                })
            });
        }
    }
}

async fn tell(router: &Arc<Inside>, door: &Arc<Door>, count: u64, cause: EdgeCause) {
    // Numbered when it is told and not before: the newest word is the one that counts.
    let edge = Edge { epoch: router.next_epoch(), count, cause };
    if count == 0 {
        // The edge itself is the last use: what would be told after it is over.
        door.tally.take_mark();
    }
    let mut answer = router.control.connections(&door.worker, edge).await;
    if count > 0 && !router.is_valid() {
        answer = Err(Refused::Unavailable { message: "the control plane does not answer".to_owned() });
    }
    if let Ok(standing) = &answer {
        door.set_connection_idle(standing.connection_idle);
    }
    let decided = door.lock().gate.told(cause, answer, router.now());
    door.apply(decided);
}

/// Tries to reach them all at once, until each has been tried. Whoever waits for one that answers does not wait for the
/// others.
async fn prove(router: &Arc<Inside>, door: &Arc<Door>, targets: Vec<Target>) {
    let mut under_way = targets.len();
    let mut attempts: FuturesUnordered<_> =
        targets.iter().map(|target| prove::attempt(door, target.clone(), true)).collect();
    let mut tried = targets;
    while under_way > 0 {
        let until = door.lock().gate.next_deadline();
        tokio::select! {
            biased;
            Some(Tried { target, answers, is_first }) = attempts.next() => {
                under_way -= usize::from(is_first);
                if !answers {
                    attempts.push(prove::attempt(door, target, false));
                    continue;
                }
                if target.ready.is_some() {
                    // It has said so itself: from here on a close is its answer.
                    door.has_answered();
                }
                let decided = door.lock().gate.answered(target);
                door.apply(decided);
            }
            () = door.news.notified() => {}
            () = sleep_until(router, until) => {}
        }
        let (step, decided) = door.lock().gate.next(router.now());
        door.apply(decided);
        let Step::Prove(wanted) = step else { return };
        for target in wanted {
            if !tried.contains(&target) {
                under_way += 1;
                attempts.push(prove::attempt(door, target.clone(), true));
                tried.push(target);
            }
        }
    }
    door.lock().gate.tried(router.now());
}

async fn wake(router: &Arc<Inside>, door: &Arc<Door>, turn: &mut Option<Turn>) {
    let mut waking = router.control.wake(&door.worker);
    loop {
        let until = door.lock().gate.next_deadline();
        let turn_until = turn.as_ref().map(|turn| turn.since + STARTS_FOR);
        tokio::select! {
            biased;
            answer = &mut waking => {
                let answer = answer.map(|awake| awake.boot);
                let decided = door.lock().gate.woken(answer, router.now());
                door.apply(decided);
                return;
            }
            () = door.news.notified() => {}
            () = sleep_until(router, until) => {}
            () = sleep_until(router, turn_until) => *turn = None,
        }
        let (step, decided) = door.lock().gate.next(router.now());
        door.apply(decided);
        if step != Step::Wake {
            return;
        }
    }
}

async fn sleep_until(router: &Inside, until: Option<Timestamp>) {
    match until {
        Some(until) => tokio::time::sleep(until.since(router.now())).await,
        None => std::future::pending().await,
    }
}
