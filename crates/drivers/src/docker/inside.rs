//! Files and terminals inside a container, seen from this machine through its first process.
//!
//! Nothing runs in the container for this, so nothing of it is counted as the container's use. Paths are resolved as the
//! container would: a link that leads out of it leads nowhere else (`openat2` below its root).

use std::fs::File;
use std::io;
use std::io::Write as _;
use std::os::fd::OwnedFd;

use drowse_core::Timestamp;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, StatxFlags, fstat, openat2, statx};
use rustix::io::Errno;

/// Where the latest warning is kept in the container.
pub const WARNING_FILE: &str = "/run/drowse-warning";

/// A terminal that nobody reads is not waited for; and there are not so many that somebody does.
const MOST_TERMINALS: usize = 64;

/// The root of a container, as its first process sees it.
#[derive(Debug)]
pub(super) struct Root(OwnedFd);

impl Root {
    /// Of the container with this id, whose first process has this number.
    pub(super) fn of(pid: u32, container: &str) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(format!("/proc/{pid}/root"), flags, Mode::empty())?;
        // Looked at afterwards: if the number is still one of the container's, it was when the root was opened.
        if !std::fs::read_to_string(format!("/proc/{pid}/cgroup"))?.contains(container) {
            return Err(io::Error::other("its first process has ended"));
        }
        Ok(Self(root))
    }

    fn open(&self, path: &str, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        // Nothing else goes with a mere path.
        let besides =
            if flags.contains(OFlags::PATH) { OFlags::empty() } else { OFlags::NOCTTY | OFlags::NONBLOCK };
        let flags = flags | besides | OFlags::CLOEXEC;
        // A mount that somebody makes meanwhile can interrupt the walk.
        for _ in 0..10 {
            match openat2(&self.0, path, flags, mode, ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS) {
                Err(Errno::AGAIN) => {}
                other => return other.map_err(Into::into),
            }
        }
        Err(Errno::AGAIN.into())
    }

    /// When a file was last touched; `None`: there is none.
    pub(super) fn touched(&self, path: &str) -> io::Result<Option<Timestamp>> {
        let file = match self.open(path, OFlags::PATH, Mode::empty()) {
            Ok(file) => file,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let found = statx(&file, c"", AtFlags::EMPTY_PATH, StatxFlags::MTIME)?;
        let at = found.stx_mtime;
        let micros = at.tv_sec.saturating_mul(1_000_000).saturating_add(i64::from(at.tv_nsec / 1_000));
        Ok(Some(Timestamp::from_micros(micros.max(0))))
    }

    /// Leaves a text in a file, in the place of what was there.
    pub(super) fn leave(&self, path: &str, text: &str) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW;
        let file = self.open(path, flags, Mode::from_raw_mode(0o644))?;
        // A pipe or a device of that name is nobody's warning.
        if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("it is no plain file"));
        }
        File::from(file).write_all(text.as_bytes())
    }

    /// Writes a text to every terminal; how many there were.
    pub(super) fn write_to_terminals(&self, text: &str) -> io::Result<usize> {
        let folder = match self.open("/dev/pts", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()) {
            Ok(folder) => folder,
            Err(error) if is_absent(&error) => return Ok(0),
            Err(error) => return Err(error),
        };
        let mut told = 0;
        for entry in Dir::new(folder)?.take(MOST_TERMINALS) {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !name.bytes().all(|byte| byte.is_ascii_digit()) {
                continue;
            }
            let flags = OFlags::WRONLY | OFlags::NOFOLLOW;
            let Ok(terminal) = self.open(&format!("/dev/pts/{name}"), flags, Mode::empty()) else { continue };
            if FileType::from_raw_mode(fstat(&terminal)?.st_mode) != FileType::CharacterDevice {
                continue;
            }
            // One that is full, because nobody reads it, or closed by now: nobody sits there.
            if File::from(terminal).write_all(text.replace('\n', "\r\n").as_bytes()).is_ok() {
                told += 1;
            }
        }
        Ok(told)
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
