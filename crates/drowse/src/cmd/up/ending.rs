//! The end of a life: by a signal, or because another takes over.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use drowse_core::id::WorkerId;
use drowse_router::Closing;
use drowse_server::fleet::{ControlError, GUEST_FOR, Left};
use drowse_wire::guest::SESSION;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;

use super::api::Api;
use super::demo;
use super::drain::Draining;
use super::folder::{hex, random};
use super::guest::Guest;
use super::guests;
use super::life::Life;
use super::news::News;
use crate::output;

/// How long open connections may go on after we were asked to end: long enough for an answer under way.
pub(super) const CONNECTIONS_FOR: Duration = Duration::from_secs(5);

/// How long they may take to be cut, and the fleet to write down that they are.
pub(super) const CUT_FOR: Duration = Duration::from_secs(2);

/// How long the API may take to answer who is in, when another takes over: newcomers wait for it.
const API_FOR: Duration = Duration::from_secs(1);

/// How long the loop may take to come to its end by itself.
const LOOP_FOR: Duration = Duration::from_secs(1);

/// How long the fleet may take to hand its connections on: what was told of them holds for at least nine seconds more.
const HAND_ON_FOR: Duration = Duration::from_secs(8);

/// How long the thaw of all may take: longer than the thaw of one, shorter than the patience of `systemd`.
const THAW_FOR: Duration = Duration::from_secs(20);

impl Life<'_> {
    /// Ends in the way that is due, and tells the last news. What is to be carried on.
    pub(super) async fn leave(
        self,
        serving: JoinHandle<()>,
        mut ends: Ends,
        news: &mut News,
    ) -> Option<Draining> {
        let (is_quiet, fleet) = (self.args.quiet, self.fleet.clone());
        let draining = if self.is_taken_over {
            self.hand_on(serving, ends).await
        } else {
            self.end(serving, &mut ends).await;
            None
        };
        if !is_quiet {
            news.catch_up().await;
        }
        if draining.is_some() {
            fleet.leave_store().await;
        }
        draining
    }

    /// Ends: nobody new is let in, who is in may finish, nothing is decided any more, nothing stays frozen.
    async fn end(mut self, serving: JoinHandle<()>, ends: &mut Ends) {
        output::talk("drowse: ending\n");
        self.stop_api.send_replace(true);
        if let Some(guests) = &self.guests {
            guests.end();
        }
        Api::withdraw(self.folder);
        self.doors.close(Closing::NobodyIn);
        tokio::select! {
            () = async {
                self.router.finish().await;
                // Nobody can order a pause any more.
                let _ = serving.await;
            } => {}
            () = tokio::time::sleep(CONNECTIONS_FOR) => {}
            // Asked twice: now.
            () = ends.next() => {}
        }
        self.doors.close(Closing::Cut);
        self.router.finish_within(CUT_FOR).await;
        if self.args.demo {
            demo::end_workers(&self.fleet, &self.settings).await;
        }
        self.stop_loop.send_replace(true);
        if !self.ticking.is_finished() {
            let _ = (&mut self.ticking).await;
        }
        if self.args.demo {
            return;
        }
        let left = if self.args.keep_frozen {
            self.fleet.leave_frozen().await
        } else {
            self.fleet.leave(THAW_FOR).await
        };
        self.say_goodbye("ended", left).await;
    }

    async fn say_goodbye(&self, what: &str, left: Result<Left, ControlError>) {
        match left {
            Ok(left) => output::talk(&farewell(what, &left)),
            // Without the books: the ice is on the machine, and so are the records of it.
            Err(error) => {
                output::talk(&format!("drowse: the database does not answer at the end: {error}\n"));
                if !self.args.keep_frozen {
                    let folder = self.folder.path().to_owned();
                    self.tasks.block(move || thaw_anyway(&folder)).await;
                }
            }
        }
    }

    /// Another has taken over: decides nothing any more, and makes of this life a door that is the other's guest. What
    /// sleeps goes on sleeping. `None`: there is nobody to carry.
    async fn hand_on(mut self, serving: JoinHandle<()>, ends: Ends) -> Option<Draining> {
        self.stop_api.send_replace(true);
        Api::withdraw(self.folder);
        // Whoever is let in at the last moment is in.
        self.doors.let_nobody_in().await;
        let _ = tokio::time::timeout(API_FOR, serving).await;
        let is_empty = self.router.taken() == 0;
        if is_empty {
            // The fleet hears that the last one has left.
            self.router.finish_within(CUT_FOR).await;
        }
        self.stop_loop.send_replace(true);
        if !self.ticking.is_finished() {
            let _ = tokio::time::timeout(LOOP_FOR, &mut self.ticking).await;
        }
        self.link.stop_asking();
        let guest = if is_empty { None } else { self.become_guest().await };
        self.say_goodbye("handed over", self.fleet.leave_frozen().await).await;
        let guest = guest?;
        self.link.ask_as(Arc::clone(&guest));
        Some(Draining {
            router: self.router,
            doors: self.doors,
            guest,
            fleet: self.fleet,
            host: self.folder.path().join(guests::NAME),
            drain_for: self.settings.config.router.drain_for,
            ends,
        })
    }

    /// Hangs the connections on a session that outlives this fleet. If that fails they are cut: nobody carries what is
    /// not counted.
    async fn become_guest(&self) -> Option<Arc<Guest>> {
        let asked_at = self.fleet.clock().now();
        let handed_on = async {
            let session = format!("{SESSION}{}", hex(&random::<8>()?));
            let carried = tokio::time::timeout(HAND_ON_FOR, self.fleet.hand_on(&session));
            let carried = carried.await.context("it takes too long")??;
            anyhow::Ok((session, carried))
        };
        match handed_on.await {
            Ok((session, carried)) => {
                let now = self.fleet.clock().reader();
                Some(Arc::new(Guest::new(session, carried, asked_at + GUEST_FOR, now)))
            }
            Err(error) => {
                output::talk(&format!("drowse: connections cannot be carried on, and are cut: {error:#}\n"));
                self.doors.close(Closing::Cut);
                None
            }
        }
    }
}

pub(super) fn thaw_anyway(data: &Path) {
    match drowse_drivers::thaw_all(data) {
        Ok(thawed) => {
            for worker in thawed.iter().filter(|worker| !matches!(worker.outcome, Ok(false))) {
                let outcome =
                    worker.outcome.as_ref().map_or_else(ToString::to_string, |_| "thawed".to_owned());
                output::talk(&format!("drowse: {}: {outcome}\n", worker.worker));
            }
        }
        Err(error) => output::talk(&format!("drowse: cannot thaw: {error}\n")),
    }
}

fn farewell(what: &str, left: &Left) -> String {
    let mut text = format!("drowse: {what}; workers go on");
    for (ids, what) in
        [(&left.thawed, "thawed"), (&left.kept, "still frozen"), (&left.late, "not back in time")]
    {
        if !ids.is_empty() {
            let names: Vec<&str> = ids.iter().map(WorkerId::as_str).collect();
            let _ = write!(text, "; {what}: {}", names.join(", "));
        }
    }
    text.push('\n');
    text
}

pub(super) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Requests to end.
#[derive(Debug)]
pub(super) struct Ends {
    term: Signal,
    int: Signal,
}

impl Ends {
    pub(super) fn new() -> anyhow::Result<Self> {
        let waits = |kind| signal(kind).context("cannot wait for signals");
        Ok(Self { term: waits(SignalKind::terminate())?, int: waits(SignalKind::interrupt())? })
    }

    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }
}
