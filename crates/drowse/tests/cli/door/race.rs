//! People who come just when a worker falls asleep: again and again, with an idle timeout near the time between two
//! visits. Whatever they say comes back to the byte, and the worker has heard it exactly once.
//!
//! `cargo xtask race CYCLES` runs it for as long as that takes, with many workers at once.

use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use drowse_server::Clock;

use super::super::up::running::{Folder, Up};
use super::asleep::own_host;
use super::books;
use super::echo::{Chance, Echo, Talk, words};

/// Without looks at the sockets of the whole machine, which grow with all that is tested on it.
const FREEZES: &str =
    "policy.idle_timeout = \"1s\"\npolicy.flap_guard = false\npolicy.signals.tcp.use = \"off\"";
const STOPS: &str = "policy.idle_timeout = \"1s\"\npolicy.sleep = \"stop\"\npolicy.min_notice = \"0s\"\n\
                     policy.snooze = \"0s\"\npolicy.flap_guard = false";

/// A connection that says nothing for a moment does not keep the worker awake, and wakes it with its next word.
const SILENT: &str = "policy.idle_timeout = \"1s\"\npolicy.flap_guard = false\npolicy.signals.tcp.use = \"off\"\n\
                      policy.connection_idle = \"1s\"";

/// What `cargo xtask race` asks for.
const CYCLES: &str = "DROWSE_RACE_CYCLES";
const WORKERS: &str = "DROWSE_RACE_WORKERS";

/// Between two visits, in milliseconds: around the instant at which an idle worker is frozen, and around the one, a
/// flush later, at which that is final. From, and how much more at most.
const SPACINGS: [(u64, u64); 2] = [(1_000, 700), (2_000, 900)];

/// What a visitor does between two visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Between {
    Leaves,
    /// It keeps its connection and says nothing.
    Stays,
}

struct Race {
    folder: Folder,
    echoes: Vec<Echo>,
    /// Of each worker.
    visitors: &'static [Between],
    /// Frames that came back.
    heard: Mutex<Vec<(usize, u64)>>,
    /// What went wrong: nothing should.
    failed: Mutex<Vec<String>>,
    is_over: AtomicBool,
    next_id: AtomicU64,
}

/// What the journal says about sleep.
#[derive(Debug, Default)]
struct Journal {
    /// Put to sleep for good and woken by somebody.
    woken: usize,
    /// Called back on the way to sleep.
    undone: usize,
}

impl Journal {
    fn cycles(&self) -> usize {
        self.woken + self.undone
    }
}

impl Race {
    fn new(workers: usize, policy: &str, visitors: &'static [Between]) -> Self {
        let folder = Folder::new();
        let host = own_host();
        let at = |port: usize| -> SocketAddr {
            (host, u16::try_from(port).expect("there are fewer workers")).into()
        };
        let list = |number: usize| {
            Echo::list(&folder, &format!("e{number}"), at(10_000 + number), at(20_000 + number), policy)
        };
        let echoes = (0..workers).map(list).collect();
        Self {
            folder,
            echoes,
            visitors,
            heard: Mutex::default(),
            failed: Mutex::default(),
            is_over: AtomicBool::new(false),
            next_id: AtomicU64::new(1),
        }
    }

    /// Runs until the journal has so many cycles, and looks at what became of every word.
    fn run(&self, cycles: usize) -> Journal {
        let mut up = self.folder.up(&["--quiet"]);
        let journal = thread::scope(|scope| {
            for number in 0..self.echoes.len() {
                for between in self.visitors {
                    scope.spawn(move || self.visit_again_and_again(number, *between));
                }
            }
            let journal = self.wait_for(cycles, &mut up);
            self.is_over.store(true, Ordering::Release);
            journal
        });
        self.all_was_heard_once();
        journal
    }

    fn wait_for(&self, cycles: usize, up: &mut Up) -> Journal {
        let mut told = 0;
        loop {
            thread::park_timeout(Duration::from_secs(1));
            let journal = self.journal();
            let failed = self.failed.lock().expect("nobody panicked").clone();
            if journal.cycles() >= cycles || !failed.is_empty() || up.is_over() {
                return journal;
            }
            if journal.cycles() >= told + 1_000 {
                told = journal.cycles();
                eprintln!("{told} of {cycles} cycles");
            }
        }
    }

    fn journal(&self) -> Journal {
        let count = |kind| books::count(&self.folder, kind, None);
        Journal { woken: count("worker.resumed"), undone: count("worker.undone") }
    }

    fn visit_again_and_again(&self, number: usize, between: Between) {
        let (mut chance, clock) = (Chance(number as u64 * 7_919 + between as u64 + 1), Clock::system());
        let mut kept = None;
        while !self.is_over.load(Ordering::Acquire) {
            let began_at = clock.now();
            let visited = match between {
                Between::Leaves => self.visit(number, &mut chance),
                Between::Stays => self.talk_on(number, &mut chance, &mut kept),
            };
            if let Err(error) = visited {
                let id = &self.echoes[number].id;
                let after = clock.now().since(began_at);
                self.failed
                    .lock()
                    .expect("nobody panicked")
                    .push(format!("{id}: {error} ({:?}), {after:?} after it came", error.kind()));
                return;
            }
            let (from, more) = SPACINGS[usize::try_from(chance.below(2)).expect("one or the other")];
            thread::park_timeout(Duration::from_millis(from + chance.below(more)));
        }
    }

    fn visit(&self, number: usize, chance: &mut Chance) -> io::Result<()> {
        let mut talk = Talk::begin(self.echoes[number].door)?;
        // Some only knock.
        let times = chance.below(4);
        self.talk(number, chance, &mut talk, times)?;
        // Some leave without a word, some wait for the last one.
        if times > 0 && chance.below(2) == 0 { talk.end() } else { Ok(()) }
    }

    fn talk_on(&self, number: usize, chance: &mut Chance, kept: &mut Option<Talk>) -> io::Result<()> {
        let mut talk = match kept.take() {
            Some(talk) => talk,
            None => Talk::begin(self.echoes[number].door)?,
        };
        let times = 1 + chance.below(3);
        self.talk(number, chance, &mut talk, times)?;
        *kept = Some(talk);
        Ok(())
    }

    fn talk(&self, number: usize, chance: &mut Chance, talk: &mut Talk, times: u64) -> io::Result<()> {
        for _ in 0..times {
            let id = self.next_id.fetch_add(1, Ordering::Relaxed);
            // Some say more than fits into any buffer on the way.
            let most = if chance.below(16) == 0 { 300_000 } else { 3_000 };
            let said = words(id, usize::try_from(chance.below(most)).expect("it is small"));
            talk.say(id, &said)?;
            self.heard.lock().expect("nobody panicked").push((number, id));
        }
        Ok(())
    }

    fn all_was_heard_once(&self) {
        let failed = self.failed.lock().expect("nobody panicked");
        assert!(failed.is_empty(), "{} lost or reset: {failed:#?}", failed.len());
        let heard = self.heard.lock().expect("nobody panicked");
        for (number, echo) in self.echoes.iter().enumerate() {
            let asked = echo.asked();
            let twice: Vec<_> = asked.iter().filter(|(_, times)| **times != 1).collect();
            assert!(twice.is_empty(), "{} was asked more than once: {twice:?}", echo.id);
            let said = heard.iter().filter(|(by, _)| *by == number).count();
            assert_eq!(asked.len(), said, "{} was asked something that nobody said", echo.id);
        }
        assert!(!heard.is_empty());
    }
}

fn from_outside(name: &str, unless: usize) -> usize {
    std::env::var(name).map_or(unless, |text| text.parse().expect("a whole number"))
}

fn race(name: &str, workers: usize, cycles: usize, policy: &str, visitors: &'static [Between]) {
    let race = Race::new(workers, policy, visitors);
    let journal = race.run(cycles);
    let heard = race.heard.lock().expect("nobody panicked").len();
    eprintln!(
        "{name}: {} cycles ({} woken, {} called back) of {workers} workers, {heard} echoes: 0 lost, 0 reset, 0 twice",
        journal.cycles(),
        journal.woken,
        journal.undone
    );
    assert!(journal.woken > 0, "nobody was ever woken: {journal:?}");
}

#[test]
fn whoever_comes_while_a_worker_is_frozen_or_thawed_is_heard_exactly_once() {
    race("freeze", from_outside(WORKERS, 12), from_outside(CYCLES, 60), FREEZES, &[Between::Leaves]);
}

#[test]
fn whoever_comes_while_a_worker_is_stopped_or_started_is_heard_exactly_once() {
    // A start costs a hundred times what a thaw does.
    let (workers, cycles) = (from_outside(WORKERS, 60).div_ceil(10), from_outside(CYCLES, 200).div_ceil(10));
    race("stop", workers, cycles, STOPS, &[Between::Leaves]);
}

#[test]
fn whoever_stays_silent_over_a_sleep_is_heard_exactly_once() {
    let (workers, cycles) = (from_outside(WORKERS, 12), from_outside(CYCLES, 80).div_ceil(4));
    race("silent", workers, cycles, SILENT, &[Between::Stays, Between::Leaves]);
}
