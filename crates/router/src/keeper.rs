//! The keeper of a door: does what its gate asks for, one thing at a time.
//!
//! There is one for each worker that is held, for as long as it is. It tells the edges, waits for wakes, proves
//! targets, and notices when the worker falls asleep against the will of those who are connected.

use std::pin::Pin;
use std::sync::Arc;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_wire::control::{Answer, Edge, EdgeCause, Refused, Slept};
use tokio::sync::{AcquireError, OwnedSemaphorePermit};

use crate::door::Door;
use crate::gate::Step;
use crate::prove;
use crate::router::Inside;

/// A place in the row of those who come up.
type Asked = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

/// Keeps a door until there is nothing to be done.
pub(crate) async fn keep(router: Arc<Inside>, door: Arc<Door>) {
    let control = Arc::clone(&router.control);
    let worker: WorkerId = door.worker.clone();
    // Kept over the rounds: to watch a worker costs a look at the store.
    let mut watch: Option<Answer<'_, Slept>> = None;
    // It comes up in its turn, however many are asked for at once.
    let mut turn: Option<OwnedSemaphorePermit> = None;
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
        let comes_up = match &step {
            Step::Tell { count, .. } => *count > 0,
            Step::Wake | Step::Prove(_) => true,
            // Between two attempts to reach it: it is still coming up.
            Step::Wait { is_awake: true, .. } => door.waiting() > 0,
            Step::Wait { .. } | Step::Rest => false,
        };
        if !comes_up {
            (turn, asked) = (None, None);
        } else if turn.is_none() && matches!(step, Step::Tell { .. }) {
            turn = door.budget().try_acquire_owned().ok();
            if turn.is_none() {
                let until = door.lock().gate.next_deadline();
                // It keeps its place in the row whatever happens meanwhile.
                let asking = asked.get_or_insert_with(|| Box::pin(door.budget().acquire_owned()));
                tokio::select! {
                    biased;
                    given = asking => (turn, asked) = (given.ok(), None),
                    () = door.news.notified() => {}
                    () = sleep_until(&router, until) => {}
                }
                // Much may have changed.
                continue;
            }
        }
        match step {
            Step::Rest => return,
            Step::Tell { count, cause } => tell(&router, &door, count, cause).await,
            Step::Wake => wake(&router, &door).await,
            Step::Prove(targets) => {
                let answered = prove::all(&targets).await;
                let decided = door.lock().gate.proved(&answered, router.now());
                door.apply(decided);
            }
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
                        // Nobody can tell: as before, until somebody can.
                        if let Ok(slept) = slept {
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
            watch = is_awake.then(|| control.slept(&worker, is_falling));
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

async fn wake(router: &Arc<Inside>, door: &Arc<Door>) {
    let mut waking = router.control.wake(&door.worker);
    loop {
        let until = door.lock().gate.next_deadline();
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
