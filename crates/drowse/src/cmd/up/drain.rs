//! The rest of a life that was taken over: no fleet, no database, no folder, only connections that have not ended.
//!
//! They are carried for as long as they last, as a guest of the Drowse that has taken over. It ends with the last of
//! them; when it is told to, by a signal or by its host; when `drain_for` is over; or when nobody has looked after the fleet
//! for so long that nobody will.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use drowse_router::{Closing, Router};
use drowse_server::Fleet;

use super::doors::Doors;
use super::ending::{CONNECTIONS_FOR, CUT_FOR, Ends, counted, thaw_anyway};
use super::folder::Folder;
use super::guest::Guest;
use crate::output;

/// How long there may be no Drowse: a start on a slow machine takes seconds.
const ALONE_FOR: Duration = Duration::from_mins(1);

/// How often it is looked whether anybody is left.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How often it is told how many are left, if that has changed.
const TELL_EVERY: Duration = Duration::from_mins(1);

/// Connections that outlive their Drowse.
#[derive(Debug)]
pub(super) struct Draining {
    pub(super) router: Router,
    pub(super) doors: Doors,
    pub(super) guest: Arc<Guest>,
    /// Its clock and its drivers are still used.
    pub(super) fleet: Fleet,
    /// Where the host is found.
    pub(super) host: PathBuf,
    /// How long they are carried at most.
    pub(super) drain_for: Option<Duration>,
    pub(super) ends: Ends,
}

impl Draining {
    /// Carries them to their end.
    pub(super) async fn carry_on(mut self) {
        let count = counted(self.router.taken(), "connection");
        output::talk(&format!("drowse: carrying on {count} to the end\n"));
        let (guest, host) = (Arc::clone(&self.guest), self.host.clone());
        let staying = guest.stay(&host);
        let cut = async {
            let why = self.is_to_be_cut().await;
            if let Some(why) = why {
                output::talk(&format!(
                    "drowse: cutting {}: {why}\n",
                    counted(self.router.taken(), "connection")
                ));
                self.doors.close(Closing::Cut);
            }
            // The fleet hears that they have left, if there is one.
            self.router.finish_within(CUT_FOR).await;
        };
        tokio::select! {
            () = staying => {}
            () = cut => {}
        }
        output::talk("drowse: all connections have ended\n");
    }

    /// Waits until everybody has left, or says why nobody waits for that.
    async fn is_to_be_cut(&mut self) -> Option<&'static str> {
        let (router, guest, fleet) = (&self.router, &self.guest, &self.fleet);
        let too_long = async {
            match self.drain_for {
                Some(drain_for) => tokio::time::sleep(drain_for).await,
                None => std::future::pending().await,
            }
        };
        let ends = &mut self.ends;
        let told_to_end = async {
            let why = tokio::select! {
                () = guest.is_to_end() => "the Drowse that has taken over ends",
                () = ends.next() => "told to end",
            };
            output::talk("drowse: ending\n");
            tokio::select! {
                () = tokio::time::sleep(CONNECTIONS_FOR) => {}
                // Asked twice: now.
                () = ends.next() => {}
            }
            why
        };
        tokio::select! {
            () = all_left(router) => None,
            () = tell(router, fleet) => None,
            () = too_long => Some("drain_for is over"),
            why = told_to_end => Some(why),
            () = guest.is_alone_for(ALONE_FOR) => {
                self.thaw_what_nobody_wakes();
                Some("no Drowse has looked after the fleet for a minute")
            }
        }
    }
}

impl Draining {
    /// What sleeps was left asleep for the one that took over. If that has never come, or is gone, nobody would wake it.
    fn thaw_what_nobody_wakes(&self) {
        let Some(data) = self.host.parent() else { return };
        // Whoever has the folder looks after it.
        if let Ok(folder) = Folder::open(data) {
            thaw_anyway(folder.path());
        }
    }
}

async fn all_left(router: &Router) {
    while router.taken() > 0 {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Tells how many are left, for ever.
async fn tell(router: &Router, fleet: &Fleet) {
    let mut told = router.taken();
    loop {
        tokio::time::sleep(TELL_EVERY).await;
        // The clock goes on following the machine's, which is what the host goes by.
        if fleet.clock().doubt().is_some() {
            fleet.clock().follow();
        }
        let left = router.taken();
        if left != told {
            output::talk(&format!("drowse: still carrying {}\n", counted(left, "connection")));
            told = left;
        }
    }
}
