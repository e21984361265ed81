//! What was said to a worker that has not answered yet in its present run: kept for as long as it may have to be said
//! again.
//!
//! All pumps together keep so much at most: a house full of people who send a lot to workers that have just come up
//! must not fill the memory. Whoever comes beyond that is served like anybody else, and not repeated.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How much of one client.
const AT_MOST: usize = 64 << 10;

/// And of all clients.
const ALL_AT_MOST: usize = 32 << 20;

/// How much is kept by all of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept(Arc<AtomicUsize>);

/// What one client has said.
#[derive(Debug)]
pub(super) struct Sent {
    bytes: Vec<u8>,
    /// As many of them are counted.
    counted: usize,
    kept: Kept,
}

impl Sent {
    pub(super) fn new(kept: &Kept) -> Self {
        Self { bytes: Vec::new(), counted: 0, kept: kept.clone() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let more = self.bytes.len() - self.counted;
        self.counted += more;
        self.kept.0.fetch_add(more, Ordering::Relaxed);
    }

    /// Whether it is more than can be kept.
    pub(super) fn is_too_much(&self) -> bool {
        !self.is_empty() && (self.bytes.len() > AT_MOST || self.kept.0.load(Ordering::Relaxed) > ALL_AT_MOST)
    }

    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        self.kept.0.fetch_sub(self.counted, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_all_clients_is_bounded() {
        let kept = Kept::default();
        let mut all: Vec<Sent> = Vec::new();
        let keeps = loop {
            let mut sent = Sent::new(&kept);
            sent.add(&vec![7; AT_MOST]);
            if sent.is_too_much() {
                break all.len();
            }
            all.push(sent);
        };
        assert_eq!(keeps, ALL_AT_MOST / AT_MOST);
        assert!(!Sent::new(&kept).is_too_much(), "whoever has said nothing costs nothing");
        let last = all.pop().unwrap();
        assert_eq!(last.into_bytes().len(), AT_MOST);
        let mut next = Sent::new(&kept);
        next.add(&vec![7; AT_MOST]);
        assert!(!next.is_too_much(), "there is room again");
        drop((all, next));
        assert_eq!(kept.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_is_kept_of_one_client_is_bounded() {
        let mut sent = Sent::new(&Kept::default());
        sent.add(&vec![7; AT_MOST]);
        assert!(!sent.is_too_much());
        sent.add(&[7]);
        assert!(sent.is_too_much());
    }
}
