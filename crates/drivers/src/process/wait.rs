//! Waiting for a state.

use std::thread;
use std::time::Duration;

use crate::driver::Error;

/// The kernel freezes and thaws within some ten microseconds; a timer would make a millisecond of it.
const QUICK_LOOKS: u32 = 20;
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// Asks until it is so. The caller's budget ends it.
pub(super) async fn until(mut is_so: impl FnMut() -> Result<bool, Error>) -> Result<(), Error> {
    for _ in 0..QUICK_LOOKS {
        if is_so()? {
            return Ok(());
        }
        thread::yield_now();
    }
    let mut pause = FIRST_PAUSE;
    while !is_so()? {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    Ok(())
}
