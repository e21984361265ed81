//! A thread of its own for a library that may hang.
//!
//! ```text
//!   Reader ── question ──▶ thread ──▶ NVML
//!      ◀── answer, or none in time ──┘
//! ```
//!
//! One question at a time. While one is unanswered, further ones are refused at once: a hung driver costs one thread and
//! one wait, not one for each check. When the library answers after all, that answer is thrown away, because whoever
//! asked has long been told that nothing is known, and the next question is asked afresh.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::{Call, Device, GpuError, Gpus};

type Answer = Result<Vec<Device>, GpuError>;

/// The last call that was begun, so that a hang can be named.
#[derive(Debug)]
pub(super) struct Progress(Mutex<Call>);

impl Default for Progress {
    fn default() -> Self {
        Self(Mutex::new(Call::Load))
    }
}

impl Progress {
    pub(super) fn during<T>(&self, call: Call, work: impl FnOnce() -> T) -> T {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = call;
        work()
    }

    fn latest(&self) -> Call {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads graphics processors on a thread of its own, with a limit to the time that a caller waits.
///
/// NVML is loaded with the first question, and again with the next if that failed: a driver may come later.
#[derive(Debug)]
pub struct Reader {
    questions: Sender<()>,
    answers: Receiver<Answer>,
    /// A question that has had no answer yet.
    is_waiting: bool,
    progress: Arc<Progress>,
}

impl Reader {
    /// Starts the thread, which ends with the `Reader` unless the library holds it.
    pub fn start(path: Option<PathBuf>) -> io::Result<Self> {
        let (questions, asked) = channel();
        let (answer, answers) = channel();
        let progress = Arc::new(Progress::default());
        let watched = Arc::clone(&progress);
        thread::Builder::new().name("gpus".to_owned()).spawn(move || {
            let mut gpus = None;
            for () in asked {
                let answered = ask(&mut gpus, path.as_ref(), &watched);
                if answer.send(answered).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { questions, answers, is_waiting: false, progress })
    }

    /// [`Gpus::look`], or [`GpuError::Hung`] after `within`.
    pub fn look(&mut self, within: Duration) -> Result<Vec<Device>, GpuError> {
        if self.is_waiting {
            // The answer to a question of long ago, if there is one by now.
            match self.answers.recv_timeout(Duration::ZERO) {
                Ok(_) => self.is_waiting = false,
                Err(error) => return Err(self.silence(error)),
            }
        }
        self.questions.send(()).map_err(|_| GpuError::Ended)?;
        self.is_waiting = true;
        let answer = self.answers.recv_timeout(within).map_err(|error| self.silence(error))?;
        self.is_waiting = false;
        answer
    }

    fn silence(&self, error: RecvTimeoutError) -> GpuError {
        match error {
            RecvTimeoutError::Timeout => GpuError::Hung { call: self.progress.latest() },
            RecvTimeoutError::Disconnected => GpuError::Ended,
        }
    }
}

fn ask(gpus: &mut Option<Gpus>, path: Option<&PathBuf>, progress: &Arc<Progress>) -> Answer {
    let mut loaded = match gpus.take() {
        Some(loaded) => loaded,
        None => Gpus::load_watched(path.map(PathBuf::as_path), Arc::clone(progress))?,
    };
    let answer = loaded.look();
    *gpus = Some(loaded);
    answer
}
