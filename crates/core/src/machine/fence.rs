//! The commit checklist: what must still be so when a decision is carried out.
//!
//! A verdict is computed on what was read; by the time it is committed the world may have moved. Under
//! the worker's lock the shell reads again and hands both here. A compare-and-swap beside a look for
//! holds would not fence: under READ COMMITTED both sides commit.

use crate::clock::Timestamp;
use crate::event::Event;
use crate::id::{BootId, Generation};
use crate::refusal::{Overtaken, Refusal};
use crate::signal::Signal;
use crate::worker::Worker;

/// What the verdict was computed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The worker's generation.
    pub generation: Generation,
    /// The run.
    pub boot: Option<BootId>,
    /// Grows with every change of policy, exemption or schedule.
    pub policy_epoch: u64,
    /// The stamp of the replica that judged.
    pub claim: u64,
    /// The newest counted activity.
    pub activity_at: Option<Timestamp>,
}

/// What was found under the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a checklist is a list of yes and no")]
pub struct Found {
    /// The policy's epoch now.
    pub policy_epoch: u64,
    /// The claim's stamp now.
    pub claim: u64,
    /// The newest counted activity now.
    pub activity_at: Option<Timestamp>,
    /// A live hold stands in the way of sleep for idleness.
    pub is_held: bool,
    /// Every live ingester has written all evidence up to the decision.
    pub is_flushed: bool,
    /// The brake is engaged.
    pub is_braked: bool,
    /// An exemption or a keep-awake spares it from a limit.
    pub is_spared: bool,
}

/// Both, to be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    pub judged: Judged,
    pub found: Found,
}

/// What a decision rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Nobody used it: holds, activity and evidence on its way count.
    Idleness,
    /// A limit or a forced schedule: only what spares it counts.
    Limit,
}

impl Fence {
    /// A fence around what nobody else can touch: for replays, which have no second party.
    pub fn alone(worker: &Worker) -> Fence {
        Fence {
            judged: Judged {
                generation: worker.generation,
                boot: worker.boot.clone(),
                policy_epoch: 0,
                claim: 0,
                activity_at: None,
            },
            found: Found {
                policy_epoch: 0,
                claim: 0,
                activity_at: None,
                is_held: false,
                is_flushed: true,
                is_braked: false,
                is_spared: false,
            },
        }
    }

    /// The second look, when the driver has acted: what has to be told to the worker before its answer.
    ///
    /// Holds need no second look: whoever takes one locks the worker and asks for it, so that it is in
    /// `wake` already. Buffered evidence is what can arrive unseen.
    pub fn arrived_meanwhile(&self, by: Signal) -> Option<Event> {
        (self.found.activity_at > self.judged.activity_at).then_some(Event::ActivityArrived { by })
    }

    /// Refuses when anything that the decision rests on has changed.
    pub(super) fn check(&self, worker: &Worker, basis: Basis) -> Result<(), Refusal> {
        let Fence { judged, found } = self;
        let overtaken = |by| Err(Refusal::Overtaken(by));
        if judged.generation != worker.generation {
            return overtaken(Overtaken::Generation);
        }
        if judged.boot != worker.boot {
            return overtaken(Overtaken::Boot);
        }
        if judged.policy_epoch != found.policy_epoch {
            return overtaken(Overtaken::Policy);
        }
        if judged.claim != found.claim {
            return overtaken(Overtaken::Claim);
        }
        if found.is_braked {
            return overtaken(Overtaken::Brake);
        }
        match basis {
            Basis::Idleness => {
                if found.is_held {
                    return overtaken(Overtaken::Hold);
                }
                if found.activity_at > judged.activity_at {
                    return overtaken(Overtaken::Activity);
                }
                if !found.is_flushed {
                    return overtaken(Overtaken::Flush);
                }
            }
            Basis::Limit => {
                if found.is_spared {
                    return overtaken(Overtaken::Spared);
                }
            }
        }
        Ok(())
    }
}
