//! Waits for a state, with the last one seen in the message.

use std::time::Duration;

use super::truth::uptime;

/// The pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(60);

/// So many that only what never comes takes them: at least a minute and a half.
const MOST_LOOKS: usize = 1_500;

/// Looks until it is so. The error is what was seen instead.
#[track_caller]
pub(crate) fn until<T>(what: &str, look: impl FnMut() -> Result<T, String>) -> T {
    until_or(what, look, String::new)
}

/// The same with a story for the message, which is asked for once it is clear that there will be one.
#[track_caller]
pub(crate) fn until_or<T>(
    what: &str,
    mut look: impl FnMut() -> Result<T, String>,
    story: impl FnOnce() -> String,
) -> T {
    let mut last = String::new();
    for _ in 0..MOST_LOOKS {
        match look() {
            Ok(found) => return found,
            Err(seen) => last = seen,
        }
        // Nobody unparks this thread, so this is a pause.
        std::thread::park_timeout(LOOK_EVERY);
    }
    panic!("it did not come to be that {what}; last seen: {last}\n{}", story());
}

/// Whether it comes to be so soon; it need not.
pub(crate) fn within_a_moment(mut is_so: impl FnMut() -> bool) -> bool {
    (0..10).any(|_| {
        std::thread::park_timeout(LOOK_EVERY);
        is_so()
    })
}

/// Lets so many seconds pass. For what must *not* happen in a time: there is no state to wait for.
pub(crate) fn seconds(many: f64) {
    let end = uptime() + many;
    until("time passes", || if uptime() >= end { Ok(()) } else { Err(String::new()) });
}
