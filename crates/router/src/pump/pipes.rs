//! Pipes for `splice`, from a pool: making one costs more than moving a buffer, and files are few.

use rustix::fd::OwnedFd;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

/// How much is put into one at once. Fewer and larger batches cost this thread less, up to what the processors' caches keep
/// until the receiver comes for it: see `docs/decisions/0029-a-batch-between.md`.
pub(super) const BATCH: usize = 384 << 10;

/// How much would fit: the kernel counts places, one for each fragment, and those that come over a network are small. It
/// grants this much to anybody.
const SIZE: usize = 1 << 20;

/// A pipe that is empty, unless it is in somebody's hands.
#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) out: OwnedFd,
    pub(super) into: OwnedFd,
}

/// The pipes of one pump.
#[derive(Debug)]
pub(super) struct Pipes {
    idle: Vec<Pipe>,
    /// How many may still be made. Beyond a share of memory the kernel would make them tiny, and each is two files.
    left: usize,
}

impl Pipes {
    pub(super) fn new(most: usize) -> Self {
        Self { idle: Vec::new(), left: most }
    }

    /// One that is empty; `None`: all are in use, so bytes go through memory.
    pub(super) fn take(&mut self) -> Option<Pipe> {
        if let Some(pipe) = self.idle.pop() {
            return Some(pipe);
        }
        self.left = self.left.checked_sub(1)?;
        let made = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC).ok();
        let Some((out, into)) = made else {
            self.left += 1;
            return None;
        };
        // A smaller one works too.
        let _ = fcntl_setpipe_size(&into, SIZE);
        Some(Pipe { out, into })
    }

    /// Whether the next one who needs one gets none.
    pub(super) fn are_scarce(&self) -> bool {
        self.idle.is_empty() && self.left == 0
    }

    /// Takes one back that is empty.
    pub(super) fn give_back(&mut self, pipe: Pipe) {
        self.idle.push(pipe);
    }

    /// One was thrown away with what was in it.
    pub(super) fn lost(&mut self) {
        self.left += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_so_many_and_no_more() {
        let mut pipes = Pipes::new(2);
        let one = pipes.take().expect("the first");
        let two = pipes.take().expect("the second");
        assert!(pipes.take().is_none());
        pipes.give_back(one);
        let again = pipes.take().expect("the first again");
        drop((again, two));
        pipes.lost();
        assert!(pipes.take().is_some(), "another in place of the one that was thrown away");
    }
}
