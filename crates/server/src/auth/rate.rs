//! How much one caller may ask: a bucket of requests that fills up again.
//!
//! It is there for the program that asks in a loop, so that it costs nobody else their turn. It is no defence
//! against guessing, which 256 random bits need none of.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use drowse_core::Timestamp;

/// More callers than this are not told apart for long: those with a full bucket are forgotten first.
const MOST_CALLERS: usize = 10_000;

/// The buckets of all callers.
#[derive(Debug)]
pub(crate) struct Rate {
    per_second: f64,
    burst: f64,
    buckets: Mutex<HashMap<String, Bucket>>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: Timestamp,
}

impl Rate {
    pub(crate) fn new(per_second: u32, burst: u32) -> Self {
        let (per_second, burst) = (f64::from(per_second.max(1)), f64::from(burst.max(1)));
        Self { per_second, burst, buckets: Mutex::default() }
    }

    /// Takes one request out of the caller's bucket; if it is empty, how long until there is one again.
    pub(crate) fn take(&self, caller: &str, now: Timestamp) -> Result<(), Duration> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MOST_CALLERS && !buckets.contains_key(caller) {
            buckets.retain(|_, bucket| self.refilled(*bucket, now).left < self.burst);
            // Ten thousand callers that are all in a hurry: start over rather than grow without end.
            if buckets.len() >= MOST_CALLERS {
                buckets.clear();
            }
        }
        let full = Bucket { left: self.burst, at: now };
        let bucket = buckets.entry(caller.to_owned()).or_insert(full);
        *bucket = self.refilled(*bucket, now);
        if bucket.left < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - bucket.left) / self.per_second));
        }
        bucket.left -= 1.0;
        Ok(())
    }

    fn refilled(&self, bucket: Bucket, now: Timestamp) -> Bucket {
        let earned = now.since(bucket.at).as_secs_f64() * self.per_second;
        Bucket { left: (bucket.left + earned).min(self.burst), at: now.max(bucket.at) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_empties_and_fills_again_and_is_nobody_elses() {
        let rate = Rate::new(2, 3);
        let now = Timestamp::from_secs(100);
        for _ in 0..3 {
            assert_eq!(rate.take("a", now), Ok(()));
        }
        assert_eq!(rate.take("a", now), Err(Duration::from_millis(500)));
        assert_eq!(rate.take("b", now), Ok(()));
        let later = now + Duration::from_millis(500);
        assert_eq!(rate.take("a", later), Ok(()));
        assert!(rate.take("a", later).is_err());
    }

    #[test]
    fn callers_without_number_do_not_grow_the_table_without_end() {
        let rate = Rate::new(1, 1);
        for caller in 0..2 * MOST_CALLERS {
            let _ = rate.take(&caller.to_string(), Timestamp::from_secs(1));
        }
        assert!(rate.buckets.lock().unwrap().len() <= MOST_CALLERS);
    }
}
