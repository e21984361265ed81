//! Through the front door of the product itself: `drowse up`, its workers frozen by order, and somebody who connects.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use drowse_server::Clock;
use postgres::Client;

use crate::floor::{BREATH, Floor, REQUEST, first_byte};
use crate::up::{Up, pause};

/// How many times the floor is measured in each round.
const FLOORS: usize = 20;

pub(crate) struct Doors {
    up: Up,
    open: Vec<SocketAddr>,
    clock: Clock,
    /// The first visit of all to each, frozen: that it answers is to be proven then, once in each run.
    first: Vec<Duration>,
}

/// What was measured in turns.
#[derive(Default)]
pub(crate) struct Rounds {
    /// A stopped process that nobody looks after.
    pub(crate) floor: Vec<Duration>,
    /// A frozen worker: connect to first byte.
    pub(crate) frozen: Vec<Duration>,
    /// A frozen worker to whom nobody had come in its present run.
    pub(crate) first: Vec<Duration>,
    /// The same worker, awake, a moment later.
    pub(crate) awake: Vec<Duration>,
    /// The shortest transaction of the database.
    pub(crate) commits: Vec<Duration>,
}

impl Doors {
    /// `workers` of the demo, all awake.
    pub(crate) fn open(workers: usize, database: Option<&str>) -> Self {
        let program = env!("CARGO_BIN_EXE_drowse");
        // So that they can be frozen by order, at once, and woken by a connection all the same.
        let mut config = String::from(
            "[policy]\nidle_timeout = \"1h\"\nstop_after = \"1h\"\nflap_guard = false\nwake_from = [\"manual\"]\n",
        );
        let mut open = Vec::new();
        let [.., high, low] = std::process::id().to_be_bytes();
        for number in 0..workers {
            // At an address of our own no port has to be looked for.
            let at = |base: usize| -> SocketAddr {
                ([127, 201, high, low], u16::try_from(base + number).expect("they are few")).into()
            };
            let (door, target) = (at(10_000), at(20_000));
            let _ = write!(
                config,
                "[[worker]]\nid = \"w{number}\"\ndriver = \"process\"\n\
                 command = [\"{program}\", \"__demo-worker\", \"w{number}\", \"{target}\"]\n\
                 listen = \"{door}\"\ntarget = \"{target}\"\n"
            );
            open.push(door);
        }
        let up = Up::start(&[], &config, database);
        let mut opened = Self { up, open, clock: Clock::system(), first: Vec::new() };
        opened.freeze_all();
        opened.first = opened.open.iter().map(|door| opened.visit(*door)).collect();
        opened
    }

    fn freeze_all(&mut self) {
        // A wake is over when it has been written down, which nobody waits for who comes by the door.
        self.up.wait_for_all("running");
        for number in 0..self.open.len() {
            let path = format!("/api/v1/workers/w{number}/pause");
            // Whoever has just left may still count for a moment.
            let answer = self.up.ask("POST", &path, r#"{"force":true}"#).expect("it answers");
            assert_eq!(answer.0, 202, "{}", answer.1);
        }
        self.up.wait_for_all("paused");
    }

    /// Visits all in turn, again and again, and the floor in between.
    pub(crate) fn rounds(&mut self, rounds: usize, floor: &Floor, mut database: Option<Client>) -> Rounds {
        let mut all = Rounds { first: self.first.clone(), ..Rounds::default() };
        for _ in 0..rounds {
            all.floor.extend(floor.stopped(FLOORS));
            if let Some(database) = &mut database {
                all.commits.extend((0..FLOORS).map(|_| commit(database, &self.clock)));
            }
            self.freeze_all();
            for door in &self.open {
                pause(BREATH);
                all.frozen.push(self.visit(*door));
            }
            for door in &self.open {
                pause(BREATH);
                all.awake.push(self.visit(*door));
            }
        }
        all
    }

    fn visit(&self, door: SocketAddr) -> Duration {
        let began_at = self.clock.now();
        first_byte(door);
        self.clock.now().since(began_at)
    }

    /// Freezes all, comes to all at once, and says how long it took until the last one had answered.
    pub(crate) fn all_at_once(&mut self, times: usize) -> Vec<Duration> {
        let once = |_| {
            self.freeze_all();
            let began_at = self.clock.now();
            let mut streams: Vec<TcpStream> =
                self.open.iter().map(|door| TcpStream::connect(door).expect("it is open")).collect();
            for stream in &mut streams {
                stream.write_all(REQUEST).expect("it is heard");
            }
            for stream in &mut streams {
                stream.read_exact(&mut [0]).expect("it answers");
            }
            self.clock.now().since(began_at)
        };
        (0..times).map(once).collect()
    }
}

/// The shortest transaction that changes something.
fn commit(database: &mut Client, clock: &Clock) -> Duration {
    let began_at = clock.now();
    let mut transaction = database.transaction().expect("it begins");
    transaction.execute("UPDATE one SET n = n + 1", &[]).expect("it is there");
    transaction.commit().expect("it commits");
    clock.now().since(began_at)
}
