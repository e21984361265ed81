//! What every driver can be asked, and how it answers.
//!
//! Actions are **level-triggered**: they name the state to reach, not the step to take. Asking for what is
//! already so is [`Acted::AlreadyTrue`], so a caller that does not know whether its last call got through
//! simply asks again. Dropping the future of a call is allowed at any time and leaves nothing that asking
//! again would not put right.
//!
//! Every call has a budget, `within`. It is a duration and not an instant: it runs on the driver's own
//! monotonic clock, so a jump of the wall clock neither cuts a grace short nor prolongs a wait.
//!
//! See `docs/decisions/0006-driver-trait.md` for why the trait looks like this.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::counter::Total;
use drowse_core::event::Observation;
use drowse_core::id::{BootId, Generation, IntentId, WorkerId};
use drowse_core::reason::SleepMode;
use drowse_core::signal::{DriverKind, PerSignal, Signal, UnknownCause};
use drowse_core::worker::{Capabilities, Power};

use crate::hint::Hint;
use crate::{docker, process, sim};

/// The injected clock.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The future of a call. One allocation per call: a hundred nanoseconds beside a freeze of a hundred
/// microseconds or an API call of a hundred milliseconds.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Why a driver did not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It was asked and said no. Asking the same again will probably get the same answer.
    #[error("{message}")]
    Refused {
        /// For the journal and a person.
        message: String,
    },
    /// Whoever carries it out cannot be reached: an engine that is down, an API that throttles.
    #[error("the driver cannot be reached: {message}")]
    Unreachable {
        /// For the journal and a person.
        message: String,
    },
    /// Drowse may not: it does not run as root, or is kept from it otherwise. Nobody knows what is so.
    #[error("{message}")]
    Denied {
        /// For the journal and a person.
        message: String,
    },
    /// The budget is over and nobody knows yet. Ask again, or look.
    #[error("no answer within {within:?}")]
    TimedOut {
        /// The budget.
        within: Duration,
    },
    /// The worker no longer exists.
    #[error("it no longer exists")]
    Gone,
    /// This driver cannot do that at all.
    #[error("this driver cannot {what}")]
    Unsupported {
        /// A verb and its object.
        what: &'static str,
    },
}

impl Error {
    pub fn refused(message: impl Into<String>) -> Self {
        Error::Refused { message: message.into() }
    }
}

/// A look at a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// What was seen.
    pub power: Power,
    /// When the look began: what changed after that may not be in it.
    pub began_at: Timestamp,
    /// The run that was seen; of a stopped worker the last one, where the driver still knows it.
    pub boot: Option<BootId>,
    /// When that run began, where the driver tells.
    pub boot_started_at: Option<Timestamp>,
    /// When `power` came to be what it is, where the driver tells.
    pub dated_at: Option<Timestamp>,
    /// How the last run ended. `None` also when nobody can know: a process that Drowse did not start
    /// itself, because Drowse was restarted meanwhile, tells its end but not its code.
    pub exit_code: Option<i32>,
}

impl Seen {
    /// As the rules want it, with the generation that the caller had in mind when it looked.
    pub fn observation(&self, generation: Generation) -> Observation {
        Observation {
            power: self.power,
            began_at: self.began_at,
            generation,
            boot: self.boot.clone(),
            dated_at: self.dated_at,
        }
    }
}

/// How an action went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acted {
    /// It was so before. This is what was seen.
    AlreadyTrue(Seen),
    /// It is so now. This is what was seen.
    Done(Seen),
    /// It is under way and will get there by itself. Observe it, no sooner than after this time.
    Started {
        /// How long it takes at least.
        look_after: Duration,
    },
}

impl Acted {
    /// What was seen, if it is settled.
    pub fn seen(&self) -> Option<&Seen> {
        match self {
            Acted::AlreadyTrue(seen) | Acted::Done(seen) => Some(seen),
            Acted::Started { .. } => None,
        }
    }
}

/// What stands behind a worker, in the words of its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spec {
    /// A command on this machine.
    Process(process::Spec),
    /// A container.
    Docker(docker::Spec),
    /// An invention.
    Sim(Box<sim::Spec>),
}

/// A stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Whose stop this is. The same intent asked again goes on where it was: it is not signalled twice,
    /// and its grace does not start afresh. Another intent starts afresh.
    pub intent: IntentId,
    /// Stop or hibernate.
    pub mode: SleepMode,
    /// How long it may take from being asked to being killed.
    pub grace: Duration,
    /// It is believed to be frozen. A driver thaws what it finds frozen in any case.
    pub thaw_first: bool,
    /// The run that is to end. Where another is found, that one is over and was somebody else's to begin: it is left
    /// alone, and the answer is [`Acted::AlreadyTrue`] with what was seen. `None`: whichever there is; drivers whose
    /// workers nobody else starts need not look.
    pub run: Option<BootId>,
}

/// A deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminate {
    /// Whose deletion this is, as in [`Stop`].
    pub intent: IntentId,
    /// How long it may take from being asked to being killed.
    pub grace: Duration,
    /// The run that it is in or was in last, as in [`Stop`].
    pub run: Option<BootId>,
}

/// Which signals to read.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// One flag for each signal.
    pub signals: PerSignal<bool>,
    /// Ports that the router serves: it counts those connections itself.
    pub routed_ports: &'a [u16],
    /// Since when, where a signal tells of a stretch and not of a moment; `None`: nobody has looked before.
    pub since: Option<Timestamp>,
}

impl<'a> Wanted<'a> {
    pub fn of(signals: &[Signal], routed_ports: &'a [u16]) -> Self {
        let mut wanted = [false; Signal::COUNT];
        for signal in signals {
            wanted[*signal as usize] = true;
        }
        Self { signals: wanted, routed_ports, since: None }
    }

    #[must_use]
    pub const fn since(mut self, since: Option<Timestamp>) -> Self {
        self.since = since;
        self
    }

    pub fn wants(&self, signal: Signal) -> bool {
        self.signals[signal as usize]
    }
}

/// One raw value. The rules turn it into a reading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measure {
    /// A running total of this run: microseconds of processor time, or bytes.
    Total(Total),
    /// A value as it is now: sockets, processes, per cent.
    Level {
        /// In the unit of the signal.
        value: f64,
        /// When it was read.
        at: Timestamp,
    },
    /// A part of it could be read and came to this much; of the rest nobody can tell. Above the threshold that is use, and
    /// below it nothing at all.
    AtLeast {
        /// In the unit of the signal.
        value: f64,
        /// When it was read.
        at: Timestamp,
        /// Why the rest is not known.
        cause: UnknownCause,
    },
    /// It was asked for and could not be read. Never the same as zero.
    Unknown(UnknownCause),
}

/// What was read of a worker.
#[derive(Clone, Debug, PartialEq)]
pub struct Measures {
    /// The run it was read from: totals of different runs have nothing to do with each other.
    pub boot: Option<BootId>,
    /// `None`: not asked for, or this driver has no such signal for this worker.
    pub by_signal: PerSignal<Option<Measure>>,
    /// Why not, in words, for what is unknown.
    pub because: Vec<(Signal, String)>,
    /// Memory in use, in bytes, where it is known. It is shown and judges nobody.
    pub memory_bytes: Option<u64>,
    /// It was given graphics processors, or was seen on one.
    pub has_gpus: bool,
}

impl Measures {
    pub fn none(boot: Option<BootId>) -> Self {
        let by_signal = [None; Signal::COUNT];
        Self { boot, by_signal, because: Vec::new(), memory_bytes: None, has_gpus: false }
    }

    pub fn get(&self, signal: Signal) -> Option<Measure> {
        self.by_signal[signal as usize]
    }

    pub fn set(&mut self, signal: Signal, measure: Measure) {
        self.by_signal[signal as usize] = Some(measure);
    }

    /// It could not be read, and this is why.
    pub fn cannot(&mut self, signal: Signal, cause: UnknownCause, why: String) {
        self.set(signal, Measure::Unknown(cause));
        self.because.push((signal, why));
    }
}

/// A hook to run for a worker.
#[derive(Clone, Copy, Debug)]
pub struct Hook<'a> {
    /// `before_pause` or `after_resume`.
    pub name: &'static str,
    /// The program and its arguments.
    pub command: &'a [String],
}

/// How a hook ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookEnd {
    /// 128 + signal if it was killed.
    pub code: i32,
    /// The end of what it said, for the journal.
    pub output: String,
}

/// To whom something was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// On how many terminals.
    pub terminals: usize,
    /// Whether it could be left in a file, or why not.
    pub file: Result<(), String>,
}

/// Somebody who asks to be looked after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What others call it.
    pub name: String,
    /// How this driver finds it again, and nobody else by that name.
    pub spec: Spec,
    /// What is written on it.
    pub labels: BTreeMap<String, String>,
    /// It was given graphics processors.
    pub has_gpus: bool,
    /// Why not enough is known of it to look after it. It is there all the same.
    pub problem: Option<String>,
}

/// Where a port of a worker is found, for as long as one run of it stands.
#[derive(Clone, Debug)]
pub struct Located {
    /// Where.
    pub address: SocketAddr,
    /// The run whose address it is.
    pub boot: Option<BootId>,
    /// Whether it still is.
    pub run: Arc<dyn Run>,
}

/// A run whose addresses were told.
pub trait Run: Send + Sync + Debug {
    /// Whether what was told still holds. It never waits, and once it is false it stays so.
    fn stands(&self) -> bool;
}

/// What observes and acts on one kind of worker.
///
/// Calls about different workers do not wait for each other. Actions on the same worker do, and the wait
/// is part of their budget; [`observe`](Driver::observe) and [`read`](Driver::read) never wait for an action.
pub trait Driver: Send + Sync + Debug {
    fn kind(&self) -> DriverKind;

    /// What it can do here and how long it may take.
    fn capabilities(&self) -> Capabilities;

    /// Takes a worker on, with whatever run of it there is, and answers with what it finds. Again: the new
    /// spec counts from the next start.
    fn adopt<'a>(&'a self, worker: &'a WorkerId, spec: &'a Spec, within: Duration) -> Answer<'a, Seen>;

    /// Lets go of a worker without touching it. Refused while it is frozen: nothing would wake it.
    fn forget<'a>(&'a self, worker: &'a WorkerId, within: Duration) -> Answer<'a, ()>;

    /// Looks.
    fn observe<'a>(&'a self, worker: &'a WorkerId, within: Duration) -> Answer<'a, Seen>;

    /// Freezes it where it is. If that cannot be confirmed in time it is thawed again, so that nothing is
    /// left half frozen.
    fn freeze<'a>(&'a self, worker: &'a WorkerId, within: Duration) -> Answer<'a, Acted>;

    /// Lets it go on.
    fn thaw<'a>(&'a self, worker: &'a WorkerId, within: Duration) -> Answer<'a, Acted>;

    /// Lets it go on without waiting for anything, not even for its turn, and without confirming or writing down that
    /// it does: a [`thaw`](Driver::thaw) follows. `ready` is asked when there is nothing left but to say the word, and may
    /// still say no. True: the word was said. False: nothing was done, which is no failure.
    fn thaw_at_once(&self, _worker: &WorkerId, _ready: &mut dyn FnMut() -> bool) -> bool {
        false
    }

    /// Another looks after the workers from now on: nothing of theirs is touched any more, and nobody calls but to
    /// [`locate`](Driver::locate).
    fn rest(&self) {}

    /// Makes it run. That it answers is for others to find out.
    fn start<'a>(&'a self, worker: &'a WorkerId, within: Duration) -> Answer<'a, Acted>;

    /// Ends its run: asked to, then made to.
    fn stop<'a>(&'a self, worker: &'a WorkerId, stop: Stop, within: Duration) -> Answer<'a, Acted>;

    /// Ends it for good and leaves nothing behind.
    fn terminate<'a>(
        &'a self,
        worker: &'a WorkerId,
        terminate: Terminate,
        within: Duration,
    ) -> Answer<'a, Acted>;

    /// Reads raw values. One that cannot be read is [`Measure::Unknown`] and does not spoil the others.
    fn read<'a>(&'a self, worker: &'a WorkerId, wanted: Wanted<'a>, within: Duration)
    -> Answer<'a, Measures>;

    /// Runs a hook to its end. One that does not end in time is killed, and that is [`Error::TimedOut`].
    fn run_hook<'a>(&'a self, worker: &'a WorkerId, hook: Hook<'a>, within: Duration) -> Answer<'a, HookEnd>;

    /// When a file in the worker was last touched; `None`: there is none.
    fn touched<'a>(
        &'a self,
        _worker: &'a WorkerId,
        _path: &'a str,
        _within: Duration,
    ) -> Answer<'a, Option<Timestamp>> {
        Box::pin(async { Err(Error::Unsupported { what: "look at files in a worker" }) })
    }

    /// Tells whoever sits in front of a worker, without any of it counting as the worker's use.
    fn tell<'a>(&'a self, _worker: &'a WorkerId, _text: &'a str, _within: Duration) -> Answer<'a, Told> {
        Box::pin(async { Err(Error::Unsupported { what: "tell anybody in a worker" }) })
    }

    /// Takes away what was left there by the last [`Driver::tell`], without a word to anybody. That nothing is there is
    /// already true.
    fn take_back<'a>(&'a self, _worker: &'a WorkerId, _within: Duration) -> Answer<'a, ()> {
        Box::pin(async { Err(Error::Unsupported { what: "tell anybody in a worker" }) })
    }

    /// Where a port of a worker is found in its present run. Whoever has an address that never changes need not be
    /// asked.
    ///
    /// What it notices on its way, such as that the worker has ended, is hinted like anything else.
    fn locate<'a>(&'a self, _worker: &'a WorkerId, _port: u16, _within: Duration) -> Answer<'a, Located> {
        Box::pin(async { Err(Error::Unsupported { what: "say where a worker is" }) })
    }

    /// What is written on a worker, as it was last looked at.
    fn labels(&self, _worker: &WorkerId) -> Result<BTreeMap<String, String>, Error> {
        Ok(BTreeMap::new())
    }

    /// Everybody who asks to be looked after, by what this driver calls a filter. All or an error: who is missing from
    /// an answer is not there.
    fn discover<'a>(&'a self, _filter: &'a str, _within: Duration) -> Answer<'a, Vec<Found>> {
        Box::pin(async { Err(Error::Unsupported { what: "discover workers" }) })
    }

    /// Waits for the next hint. Each is given to one caller only; dropping the future loses none.
    fn next_hint(&self) -> Pin<Box<dyn Future<Output = Hint> + Send + '_>>;
}

/// Gives up when the budget is over. What has been begun is put right by guards, or by asking again.
pub(crate) async fn bounded<T>(
    within: Duration,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::time::timeout(within, work).await.unwrap_or(Err(Error::TimedOut { within }))
}
