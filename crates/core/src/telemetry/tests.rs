//! Cases that the recorded history does not have.

mod mark;

use core::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn at(text: &str) -> Timestamp {
    parse_time(text).unwrap()
}

fn now() -> Timestamp {
    at("2026-03-01T12:00:00")
}

fn start_lab(time: Timestamp) -> serde_json::Value {
    json!({"category": "start_lab", "timestamp": time.to_string(), "data": {"lab_id": "a"}})
}

/// One fetch of a history, through the streaming reader.
fn fetch_at(now: Timestamp, mark: &mut Mark, history: &[serde_json::Value]) -> Digest {
    let categories = Categories::default();
    let text = serde_json::to_string(history).unwrap();
    let mut filter = Filter::new(&categories, mark, now);
    filter.read(&mut serde_json::Deserializer::from_str(&text)).unwrap();
    let (digest, next) = filter.finish();
    assert_eq!(digest.examined, digest.relevant + digest.excluded + digest.duplicates + digest.skipped_bad);
    assert!(next.high() <= Some(now) && next.remembered() <= MAX_SEEN);
    *mark = next;
    digest
}

fn fetch(mark: &mut Mark, history: &[serde_json::Value]) -> Digest {
    fetch_at(now(), mark, history)
}

#[test]
fn only_a_persons_user_activity_counts() {
    let robot = "00000000-0000-4000-a000-000000000000";
    for (data, counts) in [
        (json!({"user_id": "6b1c7a52-91d3-4a43-8c1e-0d8a3f1b2c4d"}), true),
        (json!({"user_id": "00000000-0001-4000-a000-000000000000"}), true),
        (json!({"user_id": ""}), true),
        (json!({"user_id": robot}), false),
        (json!({"user_id": null}), false),
        (json!({"user_id": 7}), false),
        (json!({"user_id": true}), false),
        (json!({"user_id": [robot]}), false),
        (json!({"user_id": {"id": "alice"}}), false),
        (json!({"user": "alice"}), false),
        (json!({}), false),
        (json!(null), false),
        (json!("alice"), false),
        (json!([{"user_id": "alice"}]), false),
    ] {
        let event = json!({"category": "user_activity", "timestamp": "2026-03-01T11:00:00", "data": data});
        let digest = fetch(&mut Mark::default(), &[event]);
        assert_eq!((digest.relevant, digest.excluded), if counts { (1, 0) } else { (0, 1) }, "{data}");
    }
    let without = json!({"category": "user_activity", "timestamp": "2026-03-01T11:00:00"});
    assert_eq!(fetch(&mut Mark::default(), &[without]).excluded, 1);
}

#[test]
fn other_categories_count_whoever_caused_them() {
    for (category, counts) in [
        ("wipe_node", true),
        ("packet_capture", true),
        ("create_lab", true),
        ("delete_lab", true),
        ("user_group", false),
        ("system_stats", false),
        ("something_new", false),
        ("", false),
    ] {
        let event =
            json!({"category": category, "timestamp": "2026-03-01T11:00:00", "data": {"user_id": null}});
        assert_eq!(fetch(&mut Mark::default(), &[event]).relevant == 1, counts, "{category}");
    }
}

#[test]
fn a_bad_event_is_counted_and_costs_only_itself() {
    let good = start_lab(at("2026-03-01T11:00:00"));
    let bad = [
        json!(null),
        json!(7),
        json!(-7.5),
        json!("start_lab"),
        json!(["start_lab", "2026-03-01T11:30:00"]),
        json!({}),
        json!({"category": "start_lab"}),
        json!({"timestamp": "2026-03-01T11:30:00"}),
        json!({"category": 1, "timestamp": "2026-03-01T11:30:00"}),
        json!({"category": {"name": "start_lab"}, "timestamp": "2026-03-01T11:30:00"}),
        json!({"category": "start_lab", "timestamp": null}),
        json!({"category": "start_lab", "timestamp": 1_772_364_600}),
        json!({"category": "start_lab", "timestamp": "half past eleven", "data": {"lab_id": "a"}}),
        json!({"category": "system_stats", "timestamp": "2026-02-30T11:30:00"}),
    ];
    let mut history = bad.to_vec();
    history.insert(5, good);
    let digest = fetch(&mut Mark::default(), &history);
    assert_eq!((digest.relevant, digest.skipped_bad), (1, 14));
    assert_eq!(Fetched::Events(digest).outcome(), Outcome::Active { at: at("2026-03-01T11:00:00") });
}

#[test]
fn news_of_which_nothing_can_be_read_is_not_quiet() {
    let good = start_lab(at("2026-03-01T11:00:00"));
    let noise = json!({"category": "system_stats", "timestamp": "2026-03-01T11:20:00", "data": {}});
    let bad = |n: u8| json!({"category": "start_lab", "timestamp": format!("1.3.2026 11:{n}"), "data": {}});
    let unreadable = Outcome::Unknown(UnknownCause::Unreadable);

    let mut mark = Mark::default();
    let mut outcome = |history: &[serde_json::Value]| Fetched::Events(fetch(&mut mark, history)).outcome();
    assert_eq!(outcome(&[bad(1)]), unreadable);
    assert_eq!(outcome(&[bad(1)]), unreadable, "it is still all there is");
    assert!(matches!(outcome(&[bad(1), good.clone()]), Outcome::Active { .. }));
    assert_eq!(outcome(&[bad(1), good.clone()]), Outcome::Quiet, "an old bad event is no news");
    assert_eq!(
        outcome(&[bad(1), good.clone(), bad(2), noise.clone()]),
        Outcome::Quiet,
        "one among good ones"
    );
    assert_eq!(outcome(&[bad(1), good, bad(2), noise, bad(3)]), unreadable);
    assert_eq!(outcome(&[]), Outcome::Quiet, "a history that was cleared is still one that was read");
}

#[test]
fn a_copy_never_counts_twice() {
    let event = start_lab(at("2026-03-01T11:00:00"));
    let mut mark = Mark::default();
    let digest = fetch(&mut mark, &[event.clone(), event.clone()]);
    assert_eq!((digest.relevant, digest.duplicates, digest.recent.len()), (1, 1, 1));
    // The same instant and content, written otherwise.
    let again =
        json!({"data": {"lab_id": "a"}, "timestamp": "2026-03-01T12:00:00+01:00", "category": "start_lab"});
    assert_eq!(fetch(&mut mark, &[event, again]).duplicates, 2);
}

#[test]
fn what_differs_in_anything_is_no_copy() {
    let time = "2026-03-01T11:00:00";
    let variants = [
        json!({"category": "start_node", "timestamp": time, "data": {"node": "a", "lab": "b"}}),
        json!({"category": "stop_node", "timestamp": time, "data": {"node": "a", "lab": "b"}}),
        json!({"category": "start_node", "timestamp": time, "data": {"node": "b", "lab": "a"}}),
        json!({"category": "start_node", "timestamp": time, "data": {"node": "a", "lab": "b", "user_id": "c"}}),
        json!({"category": "start_node", "timestamp": time, "data": {"node": "a", "lab": "b", "user_id": null}}),
        json!({"category": "start_node", "timestamp": time, "data": {"node": "a", "lab": "b", "user_id": 1}}),
        json!({"category": "start_node", "timestamp": time, "data": {"node": "a", "lab": "b", "user_id": 2}}),
        json!({"category": "start_node", "timestamp": time, "data": {"node": "a", "lab": ["b"]}}),
        json!({"category": "start_node", "timestamp": time, "data": {"node": "a", "lab": {"b": 1}}}),
        json!({"category": "start_node", "timestamp": time, "data": {"node": "a", "lab": {"b": -1.5}}}),
        json!({"category": "start_node", "timestamp": time, "data": "a"}),
        json!({"category": "start_node", "timestamp": time}),
        json!({"category": "start_node", "timestamp": "2026-03-01T11:00:00.000001"}),
    ];
    assert_eq!(fetch(&mut Mark::default(), &variants).relevant, 13);
}

#[test]
fn only_a_clear_opt_in_lets_an_empty_history_mean_quiet() {
    let empty = || Ok::<_, ()>(Digest::default());
    let unknown = |cause| Outcome::Unknown(cause);
    for (opt_in, events, outcome) in [
        (Some(true), empty(), Outcome::Quiet),
        (Some(true), Err(()), unknown(UnknownCause::FetchFailed)),
        (Some(false), empty(), unknown(UnknownCause::OptedOut)),
        (Some(false), Err(()), unknown(UnknownCause::OptedOut)),
        (None, empty(), unknown(UnknownCause::OptedOut)),
        (None, Err(()), unknown(UnknownCause::OptedOut)),
    ] {
        assert_eq!(Fetched::new(opt_in, events).outcome(), outcome);
    }
}

#[test]
fn recent_events_carry_short_details() {
    let event = json!({"category": "start_node", "timestamp": "2026-03-01T11:00:00", "data": {
        "user_id": "alice", "count": 4, "drift": -2, "load": 0.5, "ok": true, "none": null, "nested": {"a": 1},
        "long": "ä".repeat(100), "ninth": "kept", "tenth": "left out",
    }});
    let digest = fetch(&mut Mark::default(), &[event]);
    let detail = digest.recent[0].detail();
    let long = "ä".repeat(60);
    assert_eq!(
        detail,
        format!(
            "count=4, drift=-2, load=0.5, long={long}…, nested=…, ninth=kept, none=null, ok=true, user_id=alice"
        )
    );
    let stored = serde_json::to_value(&digest.recent[0]).unwrap();
    assert_eq!(stored["timestamp"], "2026-03-01T11:00:00Z");
    assert_eq!(stored["data"]["user_id"], "alice");
    assert_eq!(serde_json::from_value::<Activity>(stored).unwrap(), digest.recent[0]);
}

#[test]
fn a_filter_keeps_as_many_events_as_it_is_told() {
    let categories = Categories::default();
    let mark = Mark::default();
    let history: Vec<_> = (0..5).map(|n| start_lab(now() - Duration::from_secs(n))).collect();
    let text = serde_json::to_string(&history).unwrap();
    for keep in [0, 1, 3, 7] {
        let mut filter = Filter::new(&categories, &mark, now()).keeping(keep);
        filter.read(&mut serde_json::Deserializer::from_str(&text)).unwrap();
        assert_eq!(filter.finish().0.recent.len(), keep.min(5));
    }
}

proptest! {
    /// Whatever came in whichever fetch: each once, and the newest time wins.
    #[test]
    fn fetches_add_up(
        minutes in prop::collection::vec(0u64..2_000, 1..40),
        cuts in prop::collection::vec(0usize..40, 0..5),
    ) {
        let history: Vec<_> = minutes.iter().map(|m| start_lab(now() - Duration::from_mins(*m))).collect();
        let mut mark = Mark::default();
        let (mut counted, mut latest, mut recent) = (0, None, Vec::new());
        for cut in cuts.into_iter().map(|cut| cut.min(history.len())).chain([history.len()]) {
            let digest = fetch(&mut mark, &history[..cut]);
            counted += digest.relevant;
            latest = latest.max(digest.latest_activity_at);
            recent = keep_newest(recent, digest.recent, RECENT_EVENTS);
            // A restart between any two.
            mark = serde_json::from_str(&serde_json::to_string(&mark).unwrap()).unwrap();
        }
        let whole = fetch(&mut Mark::default(), &history);
        prop_assert_eq!((counted, latest, recent), (whole.relevant, whole.latest_activity_at, whole.recent));
    }

    #[test]
    fn keeping_the_newest_does_not_depend_on_the_order(
        a in prop::collection::vec(0i64..30, 0..15),
        b in prop::collection::vec(0i64..30, 0..15),
        n in 0usize..12,
    ) {
        let list = |secs: &[i64]| -> Vec<Activity> {
            let activity = |secs: &i64| Activity {
                at: Timestamp::from_secs(*secs),
                category: "start_lab".into(),
                data: alloc::collections::BTreeMap::new(),
            };
            secs.iter().map(activity).collect()
        };
        let merged = keep_newest(list(&a), list(&b), n);
        prop_assert_eq!(&merged, &keep_newest(list(&b), list(&a), n));
        prop_assert_eq!(&merged, &keep_newest(merged.clone(), list(&b), n));
        prop_assert!(merged.len() <= n && merged.is_sorted_by(|x, y| x > y));
    }
}
