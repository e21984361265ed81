//! Rule 3: claims are stamps, and a result counts only under its own.

use drowse_core::id::Generation;
use drowse_core::reason::PauseReason;
use drowse_core::refusal::{Overtaken, Refusal};
use drowse_store::{Checked, Claimed, Finished, Store, StoreError};

use super::support::*;

fn names(claimed: &[Claimed]) -> Vec<String> {
    let mut names: Vec<_> = claimed.iter().map(|claimed| claimed.worker.to_string()).collect();
    names.sort();
    names
}

fn due(store: &Store, by: &str, now: i64, until: i64) -> Vec<Claimed> {
    store.tx(|t| t.claim_due(by, at(now), at(until), 100, None)).unwrap()
}

fn finish(store: &Store, claimed: &Claimed, next: Option<i64>) -> Finished {
    let generation = running("web").generation;
    store.tx(|t| t.finish_check(claimed, generation, None, 1, next.map(at), at(120))).unwrap()
}

#[test]
fn a_worker_is_due_at_its_time_and_not_before() {
    on_both(|database| {
        let store = with_worker(database, "web");
        assert_eq!(store.read(|t| t.next_due_at()).unwrap(), Some(at(100)));
        assert_eq!(due(&store, "me", 99, 200), []);
        let claimed = due(&store, "me", 100, 200);
        assert_eq!(names(&claimed), ["web"]);
        assert_eq!(store.read(|t| t.next_due_at()).unwrap(), Some(at(200)));
        assert_eq!(finish(&store, &claimed[0], Some(300)), Finished::Written);
        assert_eq!(due(&store, "me", 299, 400), []);
        assert_eq!(names(&due(&store, "me", 300, 400)), ["web"]);
    });
}

/// Two replicas claim at once, and the first is slow to commit. Fails on PostgreSQL when `SKIP LOCKED` is taken
/// out (the second waits), and on SQLite when a claim leaves `next_check_at` as it was (the second gets all).
#[test]
fn two_that_claim_at_once_share_the_work() {
    on_both(|database| {
        let store = database.open();
        for index in 0..10 {
            register(&store, &format!("w{index}"));
        }
        let first = store.clone();
        let first = Party::start(move |steps| {
            first.tx(|t| {
                let claimed = t.claim_due("one", at(100), at(130), 4, None)?;
                steps.stop("claimed");
                Ok::<_, StoreError>(claimed)
            })
        });
        first.reaches("claimed");
        let second = store.clone();
        let second =
            Party::start(move |_| second.tx(|t| t.claim_due("two", at(100), at(130), 100, None)).unwrap());
        let (first, second) = if database.is_postgres() {
            // It takes what is left, and waits for nobody.
            let second = second.end();
            (first.finish().unwrap(), second)
        } else {
            second.until_blocked(database, &store);
            (first.finish().unwrap(), second.end())
        };
        assert_eq!((first.len(), second.len()), (4, 6));
        let mut all = [names(&first), names(&second)].concat();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 10);
    });
}

/// Fails when `AND claim_gen = $4` is taken out of `finish_check`.
#[test]
fn a_result_counts_only_under_its_own_claim() {
    on_both(|database| {
        let store = with_worker(database, "web");
        let slow = due(&store, "slow", 100, 130).remove(0);
        assert_eq!(due(&store, "other", 129, 160), [], "it is claimed");
        // The claim runs out by itself: nobody has to notice that its replica died.
        let quick = due(&store, "other", 130, 160).remove(0);
        assert_eq!(finish(&store, &slow, Some(999)), Finished::Lost);
        assert_eq!(record(&store, "web").claim_by.as_deref(), Some("other"));
        assert!(!store.tx(|t| t.renew_claim(&slow, at(500))).unwrap());
        assert!(store.tx(|t| t.renew_claim(&quick, at(170))).unwrap());
        assert_eq!(finish(&store, &quick, Some(300)), Finished::Written);
        assert_eq!(finish(&store, &quick, Some(999)), Finished::Lost, "a result counts once");
        assert_eq!(record(&store, "web").next_check_at, Some(at(300)));
    });
}

#[test]
fn a_pause_under_a_lost_claim_is_refused() {
    on_both(|database| {
        let store = with_worker(database, "web");
        due(&store, "slow", 100, 130);
        let judged = judge(&store, "web");
        due(&store, "other", 130, 160);
        let outcome = store.tx(|t| pause(t, "web", &judged, at(131)));
        assert!(
            matches!(outcome, Err(NotDone::Refused(Refusal::Overtaken(Overtaken::Claim)))),
            "{outcome:?}"
        );
    });
}

/// Fails when `AND generation = $5` is taken out of `finish_check`.
#[test]
fn a_result_about_what_the_worker_was_before_is_dropped() {
    on_both(|database| {
        let store = with_worker(database, "web");
        let claimed = due(&store, "me", 100, 130).remove(0);
        put_to_sleep(&store, "web", PauseReason::Manual, at(110));
        let checked = Checked { evidence: evidence(Some(at(90))), ..Checked::default() };
        let outcome = store.tx(|t| {
            t.finish_check(&claimed, Generation::default(), Some(&checked), 1, Some(at(999)), at(120))
        });
        assert_eq!(outcome.unwrap(), Finished::Overtaken);
        assert_eq!(store.read(|t| t.checked(&id("web"))).unwrap(), Checked::default());
        let found = record(&store, "web");
        assert_eq!((found.next_check_at, found.claim_by), (Some(at(120)), None), "it is due again at once");
    });
}

/// A check reads, somebody nudges, the check writes its own later time. Fails when `finish_check` does not look
/// at `nudge_at`.
#[test]
fn a_nudge_during_a_check_is_not_lost() {
    on_both(|database| {
        let store = with_worker(database, "web");
        let claimed = due(&store, "me", 100, 130).remove(0);
        store.tx(|t| t.nudge(&id("web"), at(105))).unwrap();
        assert_eq!(store.read(|t| t.next_due_at()).unwrap(), Some(at(130)), "nobody spins on it");
        // Whoever finishes the check knows it too.
        assert_eq!([at(400), at(104)].map(|next| record(&store, "web").due_by(next)), [at(105), at(104)]);
        assert_eq!(finish(&store, &claimed, Some(400)), Finished::Written);
        assert_eq!(record(&store, "web").next_check_at, Some(at(105)));
        assert_eq!(record(&store, "web").due_by(at(400)), at(400));
        // The next check knows what the nudge was about.
        let claimed = due(&store, "me", 105, 130).remove(0);
        assert_eq!(finish(&store, &claimed, None), Finished::Written);
        assert_eq!(store.read(|t| t.next_due_at()).unwrap(), None);
        store.tx(|t| t.nudge(&id("web"), at(500))).unwrap();
        store.tx(|t| t.nudge(&id("web"), at(600))).unwrap();
        assert_eq!(record(&store, "web").next_check_at, Some(at(500)));
    });
}

#[test]
fn only_reachable_sites_are_claimed_and_no_more_than_asked_for() {
    on_both(|database| {
        let store = database.open();
        for index in 0..6 {
            let site = if index % 2 == 0 { "even" } else { "odd \"quoted\"" };
            let worker = running(&format!("w{index}"));
            store.tx(|t| t.register(&worker, site, &serde_json::json!({}), at(100 - index))).unwrap();
        }
        let claim = |limit, sites: Option<&[&str]>| {
            names(&store.tx(|t| t.claim_due("me", at(100), at(130), limit, sites)).unwrap())
        };
        assert_eq!(claim(9, Some(&[])), [""; 0]);
        assert_eq!(claim(1, Some(&["even"])), ["w4"], "the longest overdue first");
        assert_eq!(claim(9, Some(&["even", "elsewhere"])), ["w0", "w2"]);
        assert_eq!(claim(2, None).len(), 2);
        assert_eq!(claim(9, Some(&["odd \"quoted\""])).len(), 1);
    });
}

#[test]
fn one_worker_is_claimed_by_name_unless_somebody_has_it() {
    on_both(|database| {
        let store = with_worker(database, "web");
        let claim = |now| store.tx(|t| t.claim(&id("web"), "me", at(now), at(now + 30))).unwrap();
        assert!(claim(10).is_some());
        assert!(claim(39).is_none());
        assert!(claim(40).is_some());
        assert!(store.tx(|t| t.claim(&id("nobody"), "me", at(1), at(2))).unwrap().is_none());
    });
}

#[test]
fn a_change_of_policy_has_everybody_looked_at_again() {
    on_both(|database| {
        let store = database.open();
        for name in ["a", "b", "c"] {
            register(&store, name);
        }
        let claimed = store.tx(|t| t.claim(&id("b"), "me", at(1), at(30))).unwrap().unwrap();
        let nudge = |after: Option<&str>| {
            let last = store.tx(|t| t.nudge_outdated(after.map(id).as_ref(), at(10), 2)).unwrap();
            last.map(|last| last.to_string())
        };
        store.tx(|t| t.bump_policy_epoch()).unwrap();
        assert_eq!(nudge(None).as_deref(), Some("b"));
        assert_eq!(nudge(Some("b")).as_deref(), Some("c"));
        assert_eq!(nudge(Some("c")), None);
        assert_eq!(names(&due(&store, "me", 10, 40)), ["a", "c"]);
        assert_eq!(finish(&store, &claimed, Some(500)), Finished::Written);
        assert_eq!(record(&store, "b").next_check_at, Some(at(10)));
    });
}
