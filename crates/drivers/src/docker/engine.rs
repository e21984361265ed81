//! The only file that speaks to the engine (through `kept`, where every check asks), and what its errors mean.
//!
//! Every conversation happens on a thread of its own. So a caller may leave at any time, whatever runtime it runs
//! on, and what has to be finished in spite of that (see [`Engine::pause`]) is.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bollard::errors::Error as Failure;
use bollard::models::{ContainerStatsResponse, ContainerSummary};
use bollard::query_parameters::{
    ContainerArchiveInfoOptionsBuilder, KillContainerOptions, ListContainersOptionsBuilder,
    RemoveContainerOptions, StartContainerOptions, StatsOptions, WaitContainerOptions,
};
use bollard::{ClientVersion, Docker};
use drowse_core::Timestamp;
use futures_util::StreamExt as _;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use super::inspected::Inspected;
use super::kept::Kept;
use crate::driver::Error;

/// What is a folder, a link, a device or the like, in the engine's own way to write a file's mode (Go's `ModeType`).
const NO_PLAIN_FILE: u32 = 0x8f28_0000;

/// The newest API that we know how to speak. The engine's own is used if that is older.
const NEWEST: ClientVersion = ClientVersion { major_version: 1, minor_version: 47 };

/// Longer than any call of ours: each has a budget of its own, and whoever gives up hangs up.
const NEVER: u64 = 24 * 60 * 60;

/// How long a freeze that its caller gave up is waited for, to be taken back.
const TAKE_BACK_WITHIN: Duration = Duration::from_mins(10);

/// The way to an engine.
pub(super) struct Engine {
    line: Arc<Line>,
    /// `Some` until it is dropped.
    room: Option<Runtime>,
}

/// What a conversation needs.
pub(super) struct Line {
    socket: PathBuf,
    /// A client that has agreed on a version with the engine.
    client: Mutex<Option<Docker>>,
    kept: Kept,
}

impl Engine {
    pub(super) fn open(socket: PathBuf) -> io::Result<Self> {
        let room = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("drowse-docker")
            .enable_all()
            .build()?;
        Ok(Self {
            line: Arc::new(Line { socket, client: Mutex::default(), kept: Kept::default() }),
            room: Some(room),
        })
    }

    pub(super) fn socket(&self) -> &Path {
        &self.line.socket
    }

    /// Starts something that goes on whatever becomes of its caller. It ends with the driver.
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.room.as_ref().expect("it is there until it is dropped").spawn(work)
    }

    /// Runs what blocks its thread. `None`: the driver is being closed.
    pub(super) async fn block<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        self.room.as_ref()?.spawn_blocking(work).await.ok()
    }

    pub(super) fn line(&self) -> Arc<Line> {
        Arc::clone(&self.line)
    }

    /// Asks the engine. A caller that leaves hangs up.
    pub(super) async fn ask<T, F>(&self, ask: impl FnOnce(Docker) -> F + Send + 'static) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send,
    {
        let line = self.line();
        self.converse(async move {
            let client = line.client().await?;
            let answer = ask(client).await;
            answer.map_err(|failure| line.meaning(failure))
        })
        .await
    }

    async fn converse<T: Send + 'static>(
        &self,
        conversation: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let mut asking = HangUp(self.spawn(conversation));
        match (&mut asking.0).await {
            Ok(answer) => answer,
            Err(_) => Err(Error::Unreachable { message: "the conversation was cut".to_owned() }),
        }
    }

    pub(super) async fn inspect(&self, container: &str) -> Result<Inspected, Error> {
        let (line, container) = (self.line(), escaped(container));
        let found = self.converse(async move {
            let version = line.client().await?.client_version();
            let path = format!("/v{version}/containers/{container}/json");
            let found = line.kept.get(&line.socket, &path).await;
            let found = found.and_then(|body| Ok(serde_json::from_slice(&body)?));
            found.map_err(|failure| line.meaning(failure))
        });
        found.await.map_err(while_looking)
    }

    /// All containers with a label, running or not.
    pub(super) async fn list(&self, label: &str) -> Result<Vec<ContainerSummary>, Error> {
        let filters = HashMap::from([("label".to_owned(), vec![label.to_owned()])]);
        let found = self.ask(async move |docker: Docker| {
            let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
            docker.list_containers(Some(options)).await
        });
        found.await.map_err(while_looking)
    }

    /// What it uses, as the engine counts it. Takes a second.
    pub(super) async fn stats(&self, container: &str) -> Result<ContainerStatsResponse, Error> {
        let container = container.to_owned();
        let said = self.ask(async move |docker: Docker| {
            let options = StatsOptions { stream: false, one_shot: true };
            docker.stats(&container, Some(options)).next().await.transpose()
        });
        let nothing =
            || Error::Unreachable { message: "the engine tells nothing of what it uses".to_owned() };
        said.await.map_err(while_looking)?.ok_or_else(nothing)
    }

    pub(super) async fn start(&self, container: &str) -> Result<(), Error> {
        let container = container.to_owned();
        self.ask(async move |docker: Docker| {
            docker.start_container(&container, None::<StartContainerOptions>).await
        })
        .await
    }

    /// Sends a signal. Refused if it does not run.
    pub(super) async fn kill(&self, container: &str, signal: &str) -> Result<(), Error> {
        let (container, signal) = (container.to_owned(), signal.to_owned());
        self.ask(async move |docker: Docker| {
            docker.kill_container(&container, Some(KillContainerOptions { signal })).await
        })
        .await
    }

    /// Waits until it does not run.
    pub(super) async fn ended(&self, container: &str) -> Result<(), Error> {
        let container = container.to_owned();
        self.ask(async move |docker: Docker| {
            let options = WaitContainerOptions { condition: "not-running".to_owned() };
            match docker.wait_container(&container, Some(options)).next().await {
                // An exit code other than 0 is told as an error there.
                Some(Ok(_) | Err(Failure::DockerContainerWaitError { .. })) | None => Ok(()),
                Some(Err(failure)) => Err(failure),
            }
        })
        .await
    }

    pub(super) async fn unpause(&self, container: &str) -> Result<(), Error> {
        let container = container.to_owned();
        self.ask(async move |docker: Docker| docker.unpause_container(&container).await).await
    }

    /// Freezes it. A caller that leaves before the engine has answered does not get its freeze: nobody else
    /// would know of it, so it is taken back as soon as the engine answers, however late that is.
    pub(super) async fn pause(&self, container: &str) -> Result<(), Error> {
        let (line, container) = (self.line(), container.to_owned());
        let (answer, answered) = tokio::sync::oneshot::channel();
        self.spawn(async move {
            let paused = async {
                let client = line.client().await?;
                client.pause_container(&container).await.map_err(|failure| line.meaning(failure))
            };
            let paused = tokio::time::timeout(TAKE_BACK_WITHIN, paused)
                .await
                .unwrap_or(Err(Error::TimedOut { within: TAKE_BACK_WITHIN }));
            if answer.send(paused).is_err()
                && let Ok(client) = line.client().await
            {
                // Refused if it never got that far.
                let _ = client.unpause_container(&container).await;
            }
        });
        answered
            .await
            .unwrap_or_else(|_| Err(Error::Unreachable { message: "the conversation was cut".to_owned() }))
    }

    /// When a file in a container that does not run was last changed; `None`: there is no such file.
    pub(super) async fn touched(&self, container: &str, path: &str) -> Result<Option<Timestamp>, Error> {
        let (container, path) = (container.to_owned(), path.to_owned());
        let found = self.ask(async move |docker: Docker| {
            let options = ContainerArchiveInfoOptionsBuilder::default().path(&path).build();
            docker.get_container_archive_info(&container, Some(options)).await
        });
        match found.await {
            // A link may lead to something that is always young, and a folder is no such file.
            Ok(found) if found.file_mode & NO_PLAIN_FILE != 0 => Ok(None),
            Ok(found) => {
                let touched = found.modification_time.as_deref().and_then(|text| text.parse().ok());
                let unsaid = || Error::Unreachable { message: "the engine does not say when".to_owned() };
                touched.map(Some).ok_or_else(unsaid)
            }
            Err(Error::Gone) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Deletes what does not run, with the volumes that nobody named.
    pub(super) async fn remove(&self, container: &str) -> Result<(), Error> {
        let container = container.to_owned();
        self.ask(async move |docker: Docker| {
            let options = RemoveContainerOptions { v: true, force: false, link: false };
            docker.remove_container(&container, Some(options)).await
        })
        .await
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(room) = self.room.take() {
            // Whoever drops the driver may stand on a runtime, where waiting is forbidden.
            room.shutdown_background();
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("socket", &self.line.socket).finish_non_exhaustive()
    }
}

impl Line {
    /// A client that speaks the engine's version.
    pub(super) async fn client(&self) -> Result<Docker, Error> {
        if let Some(client) = self.lock().clone() {
            return Ok(client);
        }
        let socket = self.socket.to_string_lossy();
        let client = Docker::connect_with_unix(&socket, NEVER, &NEWEST);
        let client = client.map_err(|failure| self.meaning(failure))?;
        let client = client.negotiate_version().await.map_err(|failure| self.meaning(failure))?;
        *self.lock() = Some(client.clone());
        Ok(client)
    }

    /// The engine may be another one now, with another version.
    pub(super) fn begin_afresh(&self) {
        *self.lock() = None;
        self.kept.close();
    }

    fn lock(&self) -> MutexGuard<'_, Option<Docker>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn meaning(&self, failure: Failure) -> Error {
        let Failure::DockerResponseServerError { status_code, message } = failure else {
            let message = format!("{}: {}", self.socket.display(), cause(&failure));
            return Error::Unreachable { message };
        };
        match status_code {
            404 => Error::Gone,
            503 => Error::Unreachable { message },
            _ => Error::Refused { message },
        }
    }
}

/// What somebody calls a container, as a part of a path: there may be anything in it.
fn escaped(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

/// An engine that cannot say what is so has not said that it is not.
fn while_looking(error: Error) -> Error {
    match error {
        Error::Refused { message } => Error::Unreachable { message },
        Error::Unreachable { .. }
        | Error::Denied { .. }
        | Error::TimedOut { .. }
        | Error::Gone
        | Error::Unsupported { .. } => error,
    }
}

/// What went wrong, in the words of whoever knows: the client's own name what it was doing in its own terms.
fn cause(failure: &Failure) -> String {
    if let Failure::SocketNotFoundError(_) = failure {
        return "there is no such socket: the engine does not run, or listens elsewhere".to_owned();
    }
    let mut last: &dyn std::error::Error = failure;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

/// Ends a conversation whose caller has left.
struct HangUp<T>(JoinHandle<T>);

impl<T> Drop for HangUp<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_part_of_a_path_whatever_is_in_it() {
        assert_eq!(escaped("web-1_a.b~2"), "web-1_a.b~2");
        assert_eq!(escaped("../a b?c"), "..%2Fa%20b%3Fc");
    }

    #[test]
    fn an_engine_that_is_away_is_told_in_plain_words() {
        let folder = tempfile::tempdir().unwrap();
        let said = |socket: PathBuf| {
            let engine = Engine::open(socket).unwrap();
            let asking = engine.list("drowse.enable=true");
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(asking).unwrap_err().to_string()
        };
        let socket = folder.path().join("docker.sock");
        let beginning = format!("the driver cannot be reached: {}: ", socket.display());
        let away = "there is no such socket: the engine does not run, or listens elsewhere";
        assert_eq!(said(socket.clone()), format!("{beginning}{away}"));
        // It was there, and its engine has ended.
        drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
        assert_eq!(said(socket), format!("{beginning}Connection refused (os error 111)"));
    }
}
