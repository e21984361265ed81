//! A list that one thread empties and others fill, with as few calls of the bell as will do.
//!
//! What must stay true: after whoever was told to ring has rung, the thread finds every letter, and nobody needs
//! to ring twice for letters that it has not looked for yet.

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, PoisonError};

#[derive(Debug)]
pub(crate) struct Post<T> {
    letters: Mutex<Vec<T>>,
    is_rung: AtomicBool,
}

impl<T> Post<T> {
    pub(crate) fn new() -> Self {
        Self { letters: Mutex::new(Vec::new()), is_rung: AtomicBool::new(false) }
    }

    /// Leaves a letter. True: the bell has to be rung.
    pub(crate) fn leave(&self, letter: T) -> bool {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner).push(letter);
        !self.is_rung.swap(true, Ordering::AcqRel)
    }

    /// All letters. To be called after the bell was silenced: whoever leaves one after this rings again, and
    /// whoever left one before it and was not told to ring is in the list.
    pub(crate) fn take(&self) -> Vec<T> {
        self.is_rung.swap(false, Ordering::AcqRel);
        std::mem::take(&mut *self.letters.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
