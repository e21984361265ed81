//! The liveness of a machine, derived from the workers that run on it.

use super::Standing;

/// Rolls the workers of one machine up: online while any of them is, else offline since the last of them went
/// and for its reason. None if no worker of it ever enrolled.
///
/// `was` is what is recorded: a machine stays online *without a break* when one worker takes over from
/// another, which the workers' own times do not tell.
pub fn machine_liveness(
    was: Option<Standing>,
    workers: impl IntoIterator<Item = Option<Standing>>,
) -> Option<Standing> {
    let is = workers.into_iter().flatten().reduce(joined)?;
    Some(match (was, is) {
        (None, is) => is,
        (Some(Standing::Online { since }), Standing::Online { .. }) => Standing::Online { since },
        // Still offline; its last worker may have a better reason now.
        (Some(Standing::Offline { since, .. }), Standing::Offline { reason, .. }) => {
            Standing::Offline { since, reason }
        }
        // Dated no earlier than the record it follows, however late the news was.
        (Some(was), Standing::Online { since }) => Standing::Online { since: since.max(was.since()) },
        (Some(was), Standing::Offline { since, reason }) => {
            Standing::Offline { since: since.max(was.since()), reason }
        }
    })
}

fn joined(one: Standing, other: Standing) -> Standing {
    match (one, other) {
        // Online since the first of them came.
        (Standing::Online { since }, Standing::Online { since: too }) => {
            Standing::Online { since: since.min(too) }
        }
        (online @ Standing::Online { .. }, Standing::Offline { .. })
        | (Standing::Offline { .. }, online @ Standing::Online { .. }) => online,
        // Offline since the last of them went.
        (Standing::Offline { since, .. }, Standing::Offline { since: too, .. }) => {
            if since >= too {
                one
            } else {
                other
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::OfflineReason::{self, Stale, Stopped};
    use super::*;
    use crate::Timestamp;

    fn online(since: i64) -> Standing {
        Standing::Online { since: Timestamp::from_secs(since) }
    }

    fn offline(since: i64, reason: OfflineReason) -> Standing {
        Standing::Offline { since: Timestamp::from_secs(since), reason }
    }

    #[test]
    fn a_machine_is_online_while_any_of_its_workers_is() {
        for (workers, expected) in [
            (vec![], None),
            (vec![None, None], None),
            (vec![Some(online(7)), None, Some(online(5))], Some(online(5))),
            (vec![Some(offline(9, Stale)), Some(online(7))], Some(online(7))),
            (vec![Some(online(7)), Some(offline(9, Stale))], Some(online(7))),
            (vec![Some(offline(9, Stale)), Some(offline(7, Stopped)), None], Some(offline(9, Stale))),
        ] {
            assert_eq!(machine_liveness(None, workers.clone()), expected, "{workers:?}");
        }
    }

    #[test]
    fn one_worker_that_takes_over_from_another_is_no_break() {
        let workers = [Some(offline(90, Stale)), Some(online(60))];
        assert_eq!(machine_liveness(Some(online(5)), workers), Some(online(5)));
    }

    #[test]
    fn the_machine_goes_with_its_last_worker_and_comes_back_with_the_first() {
        let gone = [Some(offline(90, Stopped)), Some(offline(120, Stale))];
        let was = machine_liveness(Some(online(5)), gone);
        assert_eq!(was, Some(offline(120, Stale)));
        let stopped = [gone[0], Some(offline(120, Stopped))];
        assert_eq!(machine_liveness(was, stopped), Some(offline(120, Stopped)));
        assert_eq!(machine_liveness(was, [gone[0], Some(online(130))]), Some(online(130)));
        assert_eq!(machine_liveness(was, [Some(online(100))]), Some(online(120)));
    }
}
