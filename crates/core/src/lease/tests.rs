use super::*;
use proptest::prelude::*;

const TICK: Duration = Duration::from_micros(1);
const HOUR: i64 = 3_600;

fn at(secs: i64) -> Timestamp {
    Timestamp::from_secs(secs)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn terms() -> LeaseTerms {
    LeaseTerms::default()
}

fn who(name: &str) -> Credential {
    Credential::new(name)
}

fn take(book: &mut LeaseBook, name: &str, holder: &str, ttl: u64, now: i64) -> Result<Granted, LeaseRefusal> {
    let credential = who(name);
    let asked = Asked {
        credential: &credential,
        holder: Some(holder),
        ttl: secs(ttl),
        reason: "a build of the site",
    };
    book.take(&asked, &terms(), at(now))
}

/// Renews a lease of an hour every half hour from `from` on, until `to` or a refusal; returns the last answer.
fn keep(book: &mut LeaseBook, name: &str, from: i64, to: i64) -> Result<Granted, LeaseRefusal> {
    let mut answer = take(book, name, "job", 3_600, from);
    let mut now = from + 1_800;
    while answer.is_ok() && now <= to {
        answer = take(book, name, "job", 3_600, now);
        now += 1_800;
    }
    answer
}

#[test]
fn a_lease_is_alive_until_the_very_instant_of_its_expiry() {
    let mut book = LeaseBook::default();
    assert_eq!(take(&mut book, "agent", "", 30, 100).unwrap().until, at(130));
    assert_eq!(book.alive(at(130) - TICK).count(), 1);
    assert_eq!(book.alive(at(100)).next().unwrap().holder, DEFAULT_HOLDER);
    assert_eq!(book.alive(at(130)).count(), 0);
    assert_eq!(book.deadline(), Some(at(130)));
    assert!(book.expire(at(130) - TICK).is_empty());
    let ended = book.expire(at(500));
    assert_eq!(
        (ended[0].at, ended[0].by),
        (at(130), EndedBy::Expiry),
        "dated by its end, not by who noticed"
    );
    assert_eq!(book.last_ended_at(at(500)), Some(at(130)));
    assert_eq!(book.deadline(), None);
}

#[test]
fn what_cannot_be_granted_is_refused_with_its_reason() {
    let credential = who("agent");
    let long = "x".repeat(201);
    let asked = |ttl: Duration, reason| Asked { credential: &credential, holder: None, ttl, reason };
    let mut book = LeaseBook::default();
    for (asked, code) in [
        (asked(Duration::ZERO, ""), Some("lease_ttl_missing")),
        (asked(TICK, ""), None),
        (asked(secs(3_600), ""), None),
        (asked(secs(3_600) + TICK, ""), Some("lease_ttl_too_long")),
        (asked(secs(1), &long[..200]), None),
        (asked(secs(1), &long), Some("lease_reason_too_long")),
        (Asked { holder: Some(&long[..129]), ..asked(secs(1), "") }, Some("lease_holder_too_long")),
    ] {
        let answer = book.take(&asked, &terms(), at(100));
        assert_eq!(answer.as_ref().err().map(LeaseRefusal::code), code, "{answer:?}");
    }
}

#[test]
fn a_holder_releases_only_its_own() {
    let mut book = LeaseBook::default();
    take(&mut book, "agent", "build", 600, 100).unwrap();
    take(&mut book, "agent", "test", 600, 100).unwrap();
    take(&mut book, "ann", "build", 600, 100).unwrap();
    assert_eq!(book.release(&who("agent"), None, at(110)), None, "nobody holds the default one");
    assert_eq!(book.release(&who("bob"), Some("build"), at(110)), None);
    let ended = book.release(&who("agent"), Some("build"), at(110)).unwrap();
    assert_eq!((ended.at, ended.by), (at(110), EndedBy::Holder));
    assert_eq!(book.release(&who("agent"), Some("build"), at(111)), None, "a release may be repeated");
    let left: Vec<_> =
        book.alive(at(111)).map(|lease| (lease.credential.0.as_str(), lease.holder.as_str())).collect();
    assert_eq!(left, [("agent", "test"), ("ann", "build")]);
}

#[test]
fn an_old_timer_cannot_end_a_renewed_lease() {
    let mut book = LeaseBook::default();
    let first = take(&mut book, "agent", "job", 30, 100).unwrap();
    let second = take(&mut book, "agent", "job", 30, 129).unwrap();
    assert_eq!(book.expire_timer(&who("agent"), "job", first.generation, at(130)), None);
    assert_eq!(book.expire_timer(&who("agent"), "job", first.generation, at(999)), None, "not even late");
    assert_eq!(book.expire_timer(&who("agent"), "job", second.generation, at(159) - TICK), None, "nor early");
    assert!(book.expire_timer(&who("agent"), "job", second.generation, at(159)).is_some());
}

#[test]
fn a_renewal_resets_the_expiry_and_may_shorten_it() {
    let mut book = LeaseBook::default();
    take(&mut book, "agent", "job", 600, 100).unwrap();
    assert_eq!(take(&mut book, "agent", "job", 10, 101).unwrap().until, at(111));
    assert_eq!(book.alive(at(102)).next().unwrap().taken_at, at(100));
}

#[test]
fn at_most_64_holders() {
    let mut book = LeaseBook::default();
    for holder in 0..64 {
        take(&mut book, "agent", &format!("h{holder}"), 60, 100).unwrap();
    }
    assert_eq!(take(&mut book, "agent", "one more", 60, 100), Err(LeaseRefusal::TooManyHolders));
    assert!(take(&mut book, "agent", "h63", 60, 101).is_ok(), "a renewal needs no new place");
    let granted = take(&mut book, "agent", "one more", 60, 160).unwrap();
    assert_eq!(granted.ended.len(), 63, "expired ones make room, and are reported");
}

#[test]
fn the_one_that_ends_last_stands_for_all() {
    let mut book = LeaseBook::default();
    let nothing = LeaseSummary { lease_held: false, lease_reason: None, lease_expires_at: None };
    assert_eq!(book.summary(at(100)), nothing);
    take(&mut book, "agent", "short", 10, 100).unwrap();
    take(&mut book, "agent", "long", 60, 100).unwrap();
    let summary = book.summary(at(105));
    assert_eq!((summary.lease_held, summary.lease_expires_at), (true, Some(at(160))));
    assert_eq!(summary.lease_reason.as_deref(), Some("a build of the site"));
    assert_eq!(book.summary(at(160)), nothing);
}

#[test]
fn no_expiry_lies_past_the_ceiling_and_a_renewal_there_is_refused() {
    let mut book = LeaseBook::default();
    let answer = keep(&mut book, "agent", 0, 23 * HOUR + 1_800).unwrap();
    assert_eq!(answer.until, at(24 * HOUR), "cut to half an hour");
    let ceiling = LeaseRefusal::Ceiling { since: at(0), ceiling: secs(86_400) };
    assert_eq!(take(&mut book, "agent", "another name", 60, 24 * HOUR - 1).unwrap().until, at(24 * HOUR));
    for holder in ["job", "a third name"] {
        let refused = take(&mut book, "agent", holder, 60, 24 * HOUR);
        assert_eq!(refused, Err(ceiling.clone()));
        assert_eq!(refused.unwrap_err().code(), "lease_ceiling");
    }
    assert!(take(&mut book, "ann", "job", 60, 24 * HOUR).is_ok(), "another credential has its own count");
}

#[test]
fn ninety_per_cent_of_the_ceiling_is_told_once() {
    let warn_at = 21 * HOUR + 2_160;
    let mut book = LeaseBook::default();
    keep(&mut book, "agent", 0, 21 * HOUR + 1_800).unwrap();
    assert_eq!(book.deadline(), Some(at(warn_at)), "without waiting for a renewal");
    assert!(book.clone().ceiling_warnings(at(warn_at) - TICK).is_empty());
    assert_eq!(book.clone().ceiling_warnings(at(warn_at)), [who("agent")]);
    assert!(!take(&mut book.clone(), "agent", "job", 60, warn_at - 1).unwrap().warn_ceiling);
    assert!(take(&mut book, "agent", "job", 60, warn_at).unwrap().warn_ceiling);
    assert!(!take(&mut book, "agent", "job", 60, warn_at + 1).unwrap().warn_ceiling);
    assert!(book.ceiling_warnings(at(warn_at + 2)).is_empty());
}

#[test]
fn the_count_starts_again_after_sleep_or_a_long_time_without_any_lease() {
    let mut full = LeaseBook::default();
    keep(&mut full, "agent", 0, 23 * HOUR + 1_800).unwrap();
    let end = 24 * HOUR;
    // Two idle timeouts of an hour, and refused requests in between do not interrupt them.
    let mut book = full.clone();
    for now in (end..end + 2 * HOUR).step_by(600) {
        assert!(take(&mut book, "agent", "job", 60, now).is_err());
    }
    assert!(take(&mut book, "agent", "job", 60, end + 2 * HOUR - 1).is_err());
    assert!(take(&mut book, "agent", "job", 60, end + 2 * HOUR).is_ok());

    // Somebody else's lease: the worker was not lease-free.
    let mut book = full.clone();
    take(&mut book, "ann", "job", 60, end + HOUR).unwrap();
    assert!(take(&mut book, "agent", "job", 60, end + 2 * HOUR).is_err());
    assert!(take(&mut book, "agent", "job", 60, end + 3 * HOUR + 60).is_ok());

    let mut book = full.clone();
    book.slept();
    assert_eq!(take(&mut book, "agent", "job", 60, end).unwrap().until, at(end + 60));
}

#[test]
fn ten_minutes_without_a_lease_are_the_least() {
    for idle_timeout in [Some(secs(60)), None] {
        let terms = LeaseTerms { ceiling: secs(100), idle_timeout, ..terms() };
        let credential = who("agent");
        let asked = Asked { credential: &credential, holder: None, ttl: secs(100), reason: "" };
        let mut book = LeaseBook::default();
        book.take(&asked, &terms, at(0)).unwrap();
        assert!(book.take(&asked, &terms, at(100 + 600) - TICK).is_err());
        assert!(book.take(&asked, &terms, at(100 + 600)).is_ok());
    }
}

#[test]
fn a_lease_of_a_second_every_hour_does_not_keep_a_worker_for_ever() {
    let mut book = LeaseBook::default();
    let refused_at = (0..48).map(|n| n * 3_540).find(|now| take(&mut book, "agent", "job", 1, *now).is_err());
    assert_eq!(refused_at, Some(25 * 3_540), "the first one after 24 h");
}

#[test]
fn all_leases_end_with_the_run_of_the_worker() {
    let mut book = LeaseBook::default();
    take(&mut book, "agent", "over", 10, 100).unwrap();
    take(&mut book, "agent", "job", 600, 100).unwrap();
    let ended: Vec<_> = book.clear(at(200)).into_iter().map(|ended| (ended.at, ended.by)).collect();
    assert_eq!(ended, [(at(110), EndedBy::Expiry), (at(200), EndedBy::Stop)]);
    assert_eq!((book.alive(at(200)).count(), book.last_ended_at(at(200))), (0, Some(at(200))));
}

#[test]
fn no_lease_is_lost_through_an_outage_of_ours() {
    let mut book = LeaseBook::default();
    take(&mut book, "agent", "dead before", 10, 100).unwrap();
    let alive = take(&mut book, "agent", "alive", 30, 100).unwrap();
    take(&mut book, "agent", "long", 3_600, 100).unwrap();
    let text = serde_json::to_string(&book).unwrap();
    let mut book: LeaseBook = serde_json::from_str(&text).unwrap();

    assert!(book.resume_after_outage(at(110), at(500)));
    let ended = book.expire(at(500));
    assert_eq!(ended.len(), 1);
    assert_eq!((ended[0].lease.holder.as_str(), ended[0].at), ("dead before", at(110)));
    assert_eq!(book.expire_timer(&who("agent"), "alive", alive.generation, at(600)), None);
    assert!(book.expire(at(530) - TICK).is_empty());
    assert_eq!(book.expire(at(530)).len(), 1);
    assert_eq!(book.expire(at(4_099)).len(), 0, "its own hour from the resumption on");
    assert_eq!(book.expire(at(4_100)).len(), 1);
}

#[test]
fn an_outage_at_the_ceiling_takes_nothing_back() {
    let mut book = LeaseBook::default();
    keep(&mut book, "agent", 0, 23 * HOUR + 1_800).unwrap();
    book.resume_after_outage(at(23 * HOUR + 1_801), at(24 * HOUR - 60));
    let until = at(24 * HOUR - 60 + 1_800);
    assert_eq!(book.summary(at(24 * HOUR - 60)).lease_expires_at, Some(until));
    assert_eq!(
        take(&mut book, "agent", "job", 3_600, 24 * HOUR - 30).unwrap().until,
        until,
        "nor adds to it"
    );
    assert!(take(&mut book, "agent", "job", 3_600, 24 * HOUR).is_err());
}

#[derive(Clone, Debug)]
enum Move {
    Take { who: u8, holder: u8, ttl: u64 },
    Release { who: u8, holder: u8 },
    OldTimer { who: u8, holder: u8, back: u64 },
    Expire,
    Restart,
}

fn moves() -> impl Strategy<Value = Vec<(u64, Move)>> {
    let one = prop_oneof![
        6 => (0u8..2, 0u8..3, 1u64..400).prop_map(|(who, holder, ttl)| Move::Take { who, holder, ttl }),
        1 => (0u8..2, 0u8..3).prop_map(|(who, holder)| Move::Release { who, holder }),
        2 => (0u8..2, 0u8..3, 1u64..4).prop_map(|(who, holder, back)| Move::OldTimer { who, holder, back }),
        1 => Just(Move::Expire),
        1 => Just(Move::Restart),
    ];
    prop::collection::vec((0u64..300, one), 1..120)
}

proptest! {
    #[test]
    fn the_laws_of_leases(moves in moves()) {
        let terms = LeaseTerms { ttl_max: secs(300), ceiling: secs(3_000), idle_timeout: Some(secs(200)) };
        let (mut book, mut now) = (LeaseBook::default(), at(1_000));
        for (wait, step) in moves {
            now = now + secs(wait);
            let before = book.clone();
            match step {
                Move::Take { who: name, holder, ttl } => {
                    let (credential, holder) = (who(&name.to_string()), holder.to_string());
                    let old = before.alive(now).find(|l| l.credential == credential && l.holder == holder);
                    let asked = Asked { credential: &credential, holder: Some(&holder), ttl: secs(ttl), reason: "" };
                    if let Ok(granted) = book.take(&asked, &terms, now) {
                        prop_assert!(granted.until > now && granted.until <= now + secs(ttl));
                        // A renewal that asks for no less extends or equals.
                        if let Some(old) = old && secs(ttl) >= old.ttl() {
                            prop_assert!(granted.until >= old.until);
                        }
                    } else {
                        prop_assert_eq!(&book, &before);
                    }
                }
                Move::Release { who: name, holder } => {
                    book.release(&who(&name.to_string()), Some(&holder.to_string()), now);
                    prop_assert_eq!(book.position(&who(&name.to_string()), &holder.to_string()), None);
                }
                Move::OldTimer { who: name, holder, back } => {
                    let (credential, holder) = (who(&name.to_string()), holder.to_string());
                    let own = book.leases.iter().find(|l| l.credential == credential && l.holder == holder);
                    let old = own.map_or(0, |own| own.generation.0.saturating_sub(back));
                    prop_assert_eq!(book.expire_timer(&credential, &holder, Generation(old), now), None);
                    prop_assert_eq!(&book, &before);
                }
                Move::Expire => {
                    book.expire(now);
                    prop_assert!(book.leases.iter().all(|lease| lease.until > now));
                }
                Move::Restart => {
                    book = serde_json::from_str(&serde_json::to_string(&book).unwrap()).unwrap();
                    prop_assert_eq!(&book, &before);
                }
            }
            prop_assert!(book.leases.len() <= MOST_HOLDERS);
            prop_assert!(book.last_ended_at(now) >= before.last_ended_at(now));
            // No expiry past the ceiling of its credential's count: so leased time is within it too.
            for lease in &book.leases {
                let own = |stretch: &&Stretch| stretch.credential == lease.credential;
                let stretch = book.stretches.iter().find(own).unwrap();
                prop_assert!(lease.until <= stretch.since + terms.ceiling);
            }
        }
    }
}
