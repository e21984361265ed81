//! How much of something each caller has: connections of an address, streams of a token.
//!
//! One caller that takes everything there is would keep everybody else out, whatever the limit for all of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::shared::lock;

/// What each caller has taken. Clones count together.
#[derive(Clone, Debug, Default)]
pub(super) struct Places(Arc<Mutex<HashMap<String, usize>>>);

/// One that was taken; dropping it gives it back.
#[derive(Debug)]
pub(super) struct Place {
    places: Places,
    of: String,
}

impl Places {
    /// Takes one, unless the caller has `most` already.
    pub(super) fn take(&self, of: &str, most: usize) -> Option<Place> {
        let mut taken = lock(&self.0);
        let count = taken.get(of).copied().unwrap_or(0);
        if count >= most {
            return None;
        }
        taken.insert(of.to_owned(), count + 1);
        Some(Place { places: self.clone(), of: of.to_owned() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = lock(&self.places.0);
        match taken.get_mut(&self.of) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) | None => {
                taken.remove(&self.of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_one_callers_and_comes_back() {
        let places = Places::default();
        let first = places.take("a", 2).unwrap();
        let second = places.take("a", 2).unwrap();
        assert!(places.take("a", 2).is_none());
        assert!(places.take("b", 2).is_some(), "nobody else's");
        drop(first);
        assert!(places.take("a", 2).is_some());
        drop(second);
        assert!(lock(&places.0).is_empty(), "whoever has nothing is forgotten");
    }
}
