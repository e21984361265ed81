//! From the first look to the last: what is started in which order, what signals do, and how it ends.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use drowse_core::id::WorkerId;
use drowse_core::signal::DriverKind;
use drowse_router::{Limits, Router};
use drowse_server::tasks::{Blocking, Tasks};
use drowse_server::{Fleet, Reconciler};
use drowse_wire::control::Control;
use rustix::fd::OwnedFd;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::api::Api;
use super::doors::{self, Door, Doors};
use super::drain::Draining;
use super::ending::{Ends, counted};
use super::folder::Folder;
use super::guests::Guests;
use super::handover::{self, Handover};
use super::inherit::Inherited;
use super::link::Link;
use super::lives::Lives;
use super::news::News;
use super::parts::Memory;
use super::settings::Settings;
use super::{Args, demo, parts};
use crate::output;

/// How soon a port that was taken is tried again.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(3);

/// Everything that is under way.
pub(super) struct Life<'a> {
    pub(super) args: &'a Args,
    pub(super) folder: &'a Folder,
    pub(super) settings: Settings,
    pub(super) fleet: Fleet,
    pub(super) tasks: Tasks,
    /// What the router asks.
    pub(super) link: Arc<Link>,
    pub(super) router: Router,
    pub(super) doors: Doors,
    /// Doors of former lives.
    pub(super) guests: Option<Guests>,
    pub(super) stop_api: watch::Sender<bool>,
    pub(super) stop_loop: watch::Sender<bool>,
    pub(super) ticking: JoinHandle<()>,
    /// Ports that were open before, until they are claimed.
    inherited: Inherited,
    /// Whose door does not open, and why.
    shut: BTreeMap<WorkerId, String>,
    pub(super) is_taken_over: bool,
}

/// Waits until another Drowse wants the ports.
async fn asked(handover: Option<&Handover>) -> UnixStream {
    match handover {
        Some(handover) => handover.asked().await,
        None => std::future::pending().await,
    }
}

/// Looks after the fleet until it is told to end. What it leaves to be carried on, if another takes over.
pub(super) async fn live(
    args: &Args,
    folder: &Folder,
    settings: Settings,
    memory: &Memory,
    mut inherited: Inherited,
) -> anyhow::Result<Option<Draining>> {
    // First of all: a signal that comes during the start ends it cleanly too.
    let mut ends = Ends::new()?;
    let mut is_lost = memory.is_lost.subscribe();
    let mut hangups = signal(SignalKind::hangup()).context("cannot wait for signals")?;
    let tasks = Tasks::new(Blocking::Threads);
    let api = Api::bind(settings.config.server.listen, args.plain_http, &mut inherited).await?;
    let api_socket = api.socket()?;
    let address = api.address;
    let doors = Doors::default();
    let listed = settings.doors();
    let bound = doors.bind(&listed, &mut inherited)?;
    let lives = Lives::begin(folder)?;
    let (fleet, freezer) = parts::fleet(&settings, folder, &lives, memory, &tasks)?;
    let mut news = News::new(fleet.clone()).await?;

    fleet.sync_listed(settings.listed.clone()).await.context("cannot take on the workers of the file")?;
    let reconciler = Reconciler::new(&fleet);
    reconciler.start().await.context("cannot take over what the last run left")?;
    lives.have_taken_over(folder)?;
    let guests = Guests::receive(folder.path(), &fleet, &tasks);
    let (stop_api, stop_loop) = (watch::Sender::new(false), watch::Sender::new(false));
    let stopped = is_so(stop_loop.subscribe());
    let ticking = tasks.spawn(async move { reconciler.run(stopped).await });
    fleet.look_for(settings.look_for());
    let (discovered, stopped) = (fleet.clone(), is_so(stop_loop.subscribe()));
    tasks.spawn(async move { discovered.run_discovery(stopped).await });
    let link = Arc::new(Link::new(fleet.clone()));
    let control: Arc<dyn Control> = Arc::<Link>::clone(&link);
    let mut limits = Limits::default();
    if let Some(waking) = settings.config.router.waking {
        limits.waking = waking as usize;
    }
    let router =
        Router::new(&control, &fleet.clock().reader(), limits).context("cannot start the front door")?;
    let mut life = Life {
        args,
        folder,
        settings,
        fleet,
        tasks,
        link,
        router,
        doors,
        guests,
        inherited,
        stop_api,
        stop_loop,
        ticking,
        shut: BTreeMap::new(),
        is_taken_over: false,
    };
    life.fleet.share_ports(life.settings.shared_ports());
    life.doors.apply(bound, &listed, &life.router).await?;
    let mut books = life.fleet.books();
    life.follow_books().await;
    for address in std::mem::take(&mut life.inherited).left() {
        output::talk(&format!("drowse: {address} was handed over and leads nowhere: it is closed\n"));
    }
    let handover = Handover::offer(folder.path());
    if let Err(error) = &handover {
        output::talk(&format!("drowse: no other can take over from this one: {error:#}\n"));
    }
    let all_doors = doors::counts_of(life.router.clone());
    let (serving, login) =
        api.serve(&life.fleet, all_doors, folder, &life.tasks, life.stop_api.subscribe()).await?;
    life.greet(address, &freezer, &login);
    // It may be that nobody waits to hear it.
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);

    let outcome = {
        let mut telling = std::pin::pin!(tell(args, &mut news));
        let mut store = life.fleet.watch_store();
        loop {
            tokio::select! {
                () = ends.next() => break Ok(()),
                _ = hangups.recv() => Box::pin(life.reload()).await,
                // Its sender lives as long as the fleet.
                Ok(()) = books.changed() => life.follow_books().await,
                () = tokio::time::sleep(TRY_AGAIN_AFTER), if !life.shut.is_empty() => life.follow_books().await,
                Ok(()) = store.changed() => output::talk(&about_store(store.borrow_and_update().as_deref())),
                ended = &mut life.ticking => break ended.context("the loop has failed"),
                stream = asked(handover.as_ref().ok()) => match life.hand_over(stream, &api_socket).await {
                    Ok(()) => break Ok(()),
                    Err(error) => output::talk(&format!("drowse: the ports could not be handed over: {error:#}\n")),
                },
                _ = is_lost.wait_for(|is_lost| *is_lost) => {
                    break Err(anyhow!("another Drowse has taken the database over while it did not answer"));
                }
                () = &mut telling => {}
            }
        }
    };
    let draining = life.leave(serving, ends, &mut news).await;
    outcome.map(|()| draining)
}

async fn is_so(mut told: watch::Receiver<bool>) {
    let _ = told.wait_for(|is_so| *is_so).await;
}

/// Said also to whoever wants no news: it needs somebody.
fn about_store(failure: Option<&str>) -> String {
    match failure {
        Some(why) => format!(
            "drowse: the database cannot be written to: {why}; nothing is put to sleep until it can, and \
             connections still wake what is frozen\n"
        ),
        None => "drowse: the database can be written to again\n".to_owned(),
    }
}

async fn tell(args: &Args, news: &mut News) {
    if args.quiet {
        std::future::pending::<()>().await;
    }
    news.follow().await;
}

const NOT_ROOT: &str = "drowse: this is not root: the files and networks of containers cannot be read, and what cannot \
                        be read is never put to sleep; run it as root\n";

impl Life<'_> {
    /// Says where it is found, and what to do next.
    fn greet(&self, address: SocketAddr, freezer: &str, login: &str) {
        let workers = self.settings.listed.len();
        output::talk(&format!(
            "drowse: up at http://{address}, {} with {}{}, data in {}, freezing by {freezer}\n",
            counted(workers, "listed worker"),
            counted(self.doors.len(), "door"),
            self.looks_for(),
            self.folder.path().display()
        ));
        if self.uses_docker() && !rustix::process::geteuid().is_root() {
            output::talk(NOT_ROOT);
        }
        output::talk(&format!("drowse: the page, once, within the hour: http://{address}{login}\n"));
        if self.args.demo {
            output::talk(&demo::what_to_try(&self.settings, self.folder));
        }
    }

    /// What becomes a worker besides; who that is, is told as they are found.
    fn looks_for(&self) -> String {
        let label = self.settings.config.docker.discover.as_deref();
        label.map_or_else(String::new, |label| format!(" and the containers with {label}"))
    }

    /// Whether containers are looked for or listed.
    fn uses_docker(&self) -> bool {
        let listed =
            self.settings.listed.iter().any(|worker| worker.spec.driver.kind() == DriverKind::Docker);
        listed || self.settings.config.docker.discover.is_some()
    }

    /// Reads the configuration again. An invalid one keeps the old and says so.
    async fn reload(&mut self) {
        match self.try_reload().await {
            Ok(()) => output::talk(&format!(
                "drowse: the configuration was read again: {}\n",
                counted(self.settings.listed.len(), "listed worker")
            )),
            Err(error) => output::talk(&format!("drowse: the old configuration stays: {error:#}\n")),
        }
    }

    async fn try_reload(&mut self) -> anyhow::Result<()> {
        let new = self.settings.again()?;
        if new.config.server != self.settings.config.server {
            bail!("[server] changes with a restart only");
        }
        let (docker, before) = (&new.config.docker, &self.settings.config.docker);
        if (&docker.socket, &docker.nvml) != (&before.socket, &before.nvml) {
            bail!("the socket and nvml of [driver.docker] change with a restart only");
        }
        if new.config.router.waking != self.settings.config.router.waking {
            bail!("[router] waking changes with a restart only");
        }
        let Err(error) = Box::pin(self.switch_to(&new)).await else {
            new.remember_members();
            self.settings = new;
            return Ok(());
        };
        // What was done of it is taken back: either all of a file applies, or nothing.
        let back = Box::pin(self.switch_to(&self.settings.clone())).await;
        Err(match back {
            Ok(()) => error,
            Err(again) => error.context(format!("and not all of it could be put back ({again:#})")),
        })
    }

    /// Makes fleet and doors what these settings say. What needs a free port is found out first.
    async fn switch_to(&mut self, settings: &Settings) -> anyhow::Result<()> {
        let mut wanted = settings.doors();
        let bound = self.doors.bind(&wanted, &mut self.inherited)?;
        // A label that nobody checked does not keep a file from being followed.
        let (mut others, mut shut) = self.others(settings).await?;
        let (more, failed) = self.doors.bind_each(&mut others, &mut self.inherited);
        shut.extend(failed);
        self.are_shut(shut);
        let bound = bound.and(more);
        wanted.extend(others);
        self.fleet.reload(settings.layers(), "file").await?;
        self.fleet.sync_listed(settings.listed.clone()).await?;
        self.fleet.keep_history_for(settings.config.journal.keep);
        self.fleet.look_for(settings.look_for());
        self.fleet.share_ports(settings.shared_ports());
        self.doors.apply(bound, &wanted, &self.router).await
    }

    /// The doors of those whom the file does not list, and who has none because the file gives it to somebody else.
    async fn others(&self, settings: &Settings) -> anyhow::Result<(Vec<Door>, BTreeMap<WorkerId, String>)> {
        let listed = settings.doors();
        let (mut others, mut shut) = (Vec::new(), BTreeMap::new());
        for (worker, listen, target) in self.fleet.unlisted_doors().await? {
            if let Some(door) = listed.iter().find(|door| door.listen == listen) {
                let why =
                    format!("the file gives {listen} to {}; it is wanted for worker {worker}", door.whose);
                shut.insert(worker, why);
            } else {
                others.push(settings.door(&worker, listen, target));
            }
        }
        Ok((others, shut))
    }

    /// Tells whose doors do not open, as far as that is new.
    fn are_shut(&mut self, shut: BTreeMap<WorkerId, String>) {
        for (worker, why) in &shut {
            if self.shut.get(worker) != Some(why) {
                output::talk(&format!("drowse: a door does not open: {why}\n"));
            }
        }
        for worker in self.shut.keys().filter(|worker| !shut.contains_key(*worker)) {
            output::talk(&format!("drowse: nothing is in the way of worker {worker}'s door any more\n"));
        }
        self.fleet.doors_are_shut(shut.clone());
        self.shut = shut;
    }

    /// Workers came onto the books or left them: their doors open and close with that.
    async fn follow_books(&mut self) {
        let outcome = async {
            let mut wanted = self.settings.doors();
            let (others, mut shut) = self.others(&self.settings).await?;
            wanted.extend(others);
            // One whose port is taken, by a label that nobody checked, stands in nobody else's way.
            let (bound, failed) = self.doors.bind_each(&mut wanted, &mut self.inherited);
            shut.extend(failed);
            self.doors.apply(bound, &wanted, &self.router).await?;
            anyhow::Ok(shut)
        };
        match outcome.await {
            Ok(shut) => self.are_shut(shut),
            Err(error) => output::talk(&format!("drowse: doors cannot be opened: {error:#}\n")),
        }
    }

    /// Gives the ports to the Drowse that follows this one.
    async fn hand_over(&mut self, stream: UnixStream, api: &OwnedFd) -> anyhow::Result<()> {
        let mut ports = self.doors.sockets()?;
        ports.push(api.try_clone()?);
        self.tasks.block(move || handover::send(&stream, &ports)).await?;
        output::talk("drowse: another takes over\n");
        // What sleeps goes on sleeping: the next one is there at once.
        self.is_taken_over = true;
        Ok(())
    }
}
