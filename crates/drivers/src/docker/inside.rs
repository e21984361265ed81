//! Files and terminals inside a container, seen from this machine through its first process.
//!
//! Nothing runs in the container for this, so nothing of it is counted as the container's use. Paths are resolved as the
//! container would: a link that leads out of it leads nowhere else (`openat2` below its root).

use std::fs::File;
use std::io;
use std::io::Write as _;
use std::os::fd::{AsRawFd as _, OwnedFd};

use drowse_core::Timestamp;
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, StatxFlags, fstat, fstatfs, major, openat, openat2,
    renameat, statx, unlinkat,
};
use rustix::io::Errno;

use super::run::check_is_of;

/// Where the latest warning is kept in the container.
pub const WARNING_FILE: &str = "/run/drowse-warning";

/// A terminal that nobody reads is not waited for; and there are not so many that somebody does.
const MOST_TERMINALS: usize = 64;

/// The kernel's numbers for terminals of its own making.
const TERMINALS: std::ops::RangeInclusive<u32> = 136..=143;

/// File systems whose root is at hand, by the kernel's numbers: overlayfs (which takes nothing from afar for its upper
/// part), ext4, XFS, Btrfs, tmpfs.
const AT_HAND: [i64; 5] = [0x794c_7630, 0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994];

/// The root of a container, as its first process sees it.
#[derive(Debug)]
pub(super) struct Root(OwnedFd);

impl Root {
    /// Of the container with this id, whose first process has this number.
    pub(super) fn of(pid: u32, container: &str) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(format!("/proc/{pid}/root"), flags, Mode::empty())?;
        // Looked at afterwards: if the number is still one of the container's, it was when the root was opened.
        check_is_of(pid, container)?;
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

    /// Whether it is on a disk of this machine, or in its memory: to open the root itself waits for nobody then. Whatever
    /// is mounted below it may be far away all the same.
    pub(super) fn is_at_hand(&self) -> bool {
        fstatfs(&self.0).is_ok_and(|found| AT_HAND.contains(&found.f_type))
    }

    /// Whether the kernel knows by heart that a file is not there. False: it may be there, or somebody has to look.
    pub(super) fn is_absent_at_a_glance(&self, path: &str) -> bool {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Kernels before 5.12 know no such question, and refuse it.
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS | ResolveFlags::CACHED;
        openat2(&self.0, path, flags, Mode::empty(), resolve).is_err_and(|errno| is_absent(&errno.into()))
    }

    /// When a plain file was last touched; `None`: there is none.
    pub(super) fn touched(&self, path: &str) -> io::Result<Option<Timestamp>> {
        let file = match self.open(path, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(file) => file,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let wanted = StatxFlags::MTIME | StatxFlags::CTIME | StatxFlags::TYPE;
        let found = statx(&file, c"", AtFlags::EMPTY_PATH, wanted)?;
        // A link may lead to something that is always young.
        if FileType::from_raw_mode(u32::from(found.stx_mode)) != FileType::RegularFile {
            return Ok(None);
        }
        let micros = |at: rustix::fs::StatxTimestamp| {
            let micros = at.tv_sec.saturating_mul(1_000_000).saturating_add(i64::from(at.tv_nsec / 1_000));
            Timestamp::from_micros(micros.max(0))
        };
        // The one can be set to any time; the other is when somebody last did something to it.
        Ok(Some(micros(found.stx_mtime).min(micros(found.stx_ctime))))
    }

    /// Leaves a text in a file, in the place of what was there.
    pub(super) fn leave(&self, path: &str, text: &str) -> io::Result<()> {
        let (folder, name) = path.rsplit_once('/').unwrap_or_default();
        let folder = self.open(folder, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?;
        // A file of its own, put in the place of whatever is there: to open a device that somebody has made under
        // that name would be to use a device of this machine.
        let new = format!(".{name}.new");
        match unlinkat(&folder, &new, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&folder, &new, flags, Mode::from_raw_mode(0o644))?;
        let written = File::from(file).write_all(text.as_bytes());
        let placed = written.and_then(|()| renameat(&folder, &new, &folder, name).map_err(Into::into));
        if placed.is_err() {
            // Half a warning in a full container helps nobody, and neither does an old one.
            let _ = unlinkat(&folder, &new, AtFlags::empty());
            let _ = unlinkat(&folder, name, AtFlags::empty());
        }
        placed
    }

    /// Takes a file away, if it is there.
    pub(super) fn take_away(&self, path: &str) -> io::Result<()> {
        let (folder, name) = path.rsplit_once('/').unwrap_or_default();
        let folder = match self.open(folder, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()) {
            Ok(folder) => folder,
            Err(error) if is_absent(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        match unlinkat(&folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a text to every terminal, on lines of its own; how many there were.
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
            // Looked at before it is opened: only what is really a terminal.
            let flags = OFlags::PATH | OFlags::NOFOLLOW;
            let Ok(place) = self.open(&format!("/dev/pts/{name}"), flags, Mode::empty()) else { continue };
            let found = fstat(&place)?;
            let is_terminal = FileType::from_raw_mode(found.st_mode) == FileType::CharacterDevice
                && TERMINALS.contains(&major(found.st_rdev));
            if !is_terminal {
                continue;
            }
            let again = format!("/proc/self/fd/{}", place.as_raw_fd());
            let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let Ok(terminal) = rustix::fs::open(again, flags, Mode::empty()) else { continue };
            // One that is full, because nobody reads it, or closed by now: nobody sits there.
            if File::from(terminal).write_all(on_terminal(text).as_bytes()).is_ok() {
                told += 1;
            }
        }
        Ok(told)
    }
}

/// A prompt may stand in the line where the cursor is.
fn on_terminal(text: &str) -> String {
    format!("\r\n{}", text.replace('\n', "\r\n"))
}

fn is_absent(error: &io::Error) -> bool {
    // Links that lead in a circle lead to nothing.
    let is_circle = error.raw_os_error() == Some(Errno::LOOP.raw_os_error());
    is_circle || matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt as _, symlink};
    use std::path::Path;

    use super::*;

    #[test]
    fn a_terminal_has_the_words_on_lines_of_their_own() {
        assert_eq!(on_terminal("one\ntwo\n"), "\r\none\r\ntwo\r\n");
    }

    fn root(folder: &Path) -> Root {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Root(rustix::fs::open(folder, flags, Mode::empty()).unwrap())
    }

    fn pipe(path: &Path) {
        rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    }

    #[test]
    fn only_a_plain_file_is_a_keep_alive_file_and_its_age_cannot_be_made_up() {
        let folder = tempfile::tempdir().unwrap();
        let (inside, at) = (root(folder.path()), |name: &str| folder.path().join(name));
        assert_eq!(inside.touched("/none").unwrap(), None);
        std::fs::write(at("file"), "").unwrap();
        let touched = inside.touched("/file").unwrap().unwrap();
        let far = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(4_000_000_000);
        File::options().write(true).open(at("file")).unwrap().set_modified(far).unwrap();
        let again = inside.touched("/file").unwrap().unwrap();
        assert!(again >= touched && again < Timestamp::from_secs(4_000_000_000), "{again}");
        symlink("/proc/uptime", at("young")).unwrap();
        symlink("circle", at("circle")).unwrap();
        pipe(&at("pipe"));
        for name in ["/young", "/circle", "/circle/file", "/pipe", "/file/below"] {
            assert_eq!(inside.touched(name).unwrap(), None, "{name}");
        }
    }

    #[test]
    fn what_is_there_is_never_absent_at_a_glance() {
        let folder = tempfile::tempdir().unwrap();
        let inside = root(folder.path());
        // Looked for once, so that the kernel remembers.
        assert_eq!(inside.touched("/file").unwrap(), None);
        let was_remembered = inside.is_absent_at_a_glance("/file");
        std::fs::write(folder.path().join("file"), "").unwrap();
        assert!(!inside.is_absent_at_a_glance("/file"), "remembered before: {was_remembered}");
        std::fs::remove_file(folder.path().join("file")).unwrap();
        symlink("/proc/uptime", folder.path().join("file")).unwrap();
        assert!(!inside.is_absent_at_a_glance("/file"), "a link is for somebody to look at");
    }

    #[test]
    fn a_warning_takes_the_place_of_whatever_is_there_and_opens_nothing() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("run")).unwrap();
        let (inside, at) = (root(folder.path()), folder.path().join("run/warning"));
        inside.leave("/run/warning", "one").unwrap();
        assert_eq!(std::fs::read_to_string(&at).unwrap(), "one");
        std::fs::remove_file(&at).unwrap();
        pipe(&at);
        // Nobody reads it: to open it for writing would fail or wait.
        inside.leave("/run/warning", "two").unwrap();
        assert!(!std::fs::metadata(&at).unwrap().file_type().is_fifo());
        assert_eq!(std::fs::read_to_string(&at).unwrap(), "two");
        let elsewhere = folder.path().join("elsewhere");
        std::fs::write(&elsewhere, "untouched").unwrap();
        std::fs::remove_file(&at).unwrap();
        symlink("/elsewhere", &at).unwrap();
        symlink("/elsewhere", folder.path().join("run/.warning.new")).unwrap();
        inside.leave("/run/warning", "three").unwrap();
        assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "untouched");
        assert_eq!(std::fs::read_to_string(&at).unwrap(), "three");
        inside.take_away("/run/warning").unwrap();
        assert!(!at.exists() && elsewhere.exists());
        // What is not there is gone already, and so is what is below nothing.
        inside.take_away("/run/warning").unwrap();
        inside.take_away("/none/warning").unwrap();
    }
}
