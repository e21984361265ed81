//! What the mark lets count, at its edges and over time.

use super::*;
use crate::telemetry::mark::{Fnv, fingerprint};

const MICRO: Duration = Duration::from_micros(1);

/// A mark at `high` that remembers nothing else.
fn mark_at(high: Timestamp) -> Mark {
    let mut mark = Mark::default();
    fetch_at(now().max(high), &mut mark, &[start_lab(high)]);
    mark
}

#[test]
fn the_stored_fingerprint_never_changes() {
    let event: Event<'_> = serde_json::from_str(
        r#"{"data": {"lab_id": "a", "n": 3, "user_id": "alice", "x": [1, {"y": null}]}}"#,
    )
    .unwrap();
    assert_eq!(Fnv::new().bytes(b"foobar").get(), 0x8594_4171_f739_67e8, "FNV-1a's published test");
    assert_eq!(fingerprint("start_lab", &event), 0x25cc_a456_7a76_7be9);
}

#[test]
fn a_late_event_counts_once_if_it_is_in_the_overlap() {
    let high = at("2026-03-01T11:00:00");
    let edge = high - OVERLAP;
    for (time, counts) in [
        (high + MICRO, true),
        (high, true),
        (high - MICRO, true),
        (edge + MICRO, true),
        (edge, true),
        (edge - MICRO, false),
    ] {
        let mut mark = mark_at(high);
        let late = json!({"category": "stop_lab", "timestamp": time.to_string(), "data": {}});
        let history = [start_lab(high), late];
        let digest = fetch(&mut mark, &history);
        assert_eq!(digest.relevant, u64::from(counts), "{time}");
        assert_eq!(digest.late, u64::from(counts && time < high), "{time}");
        assert_eq!(digest.latest_activity_at, counts.then_some(time));
        assert_eq!(mark.high(), Some(high.max(if counts { time } else { high })));
        assert_eq!(fetch(&mut mark, &history).relevant, 0, "{time}, again");
    }
}

#[test]
fn without_a_mark_the_whole_history_counts() {
    let history: Vec<_> = (1..=500).map(|day| start_lab(now() - Duration::from_hours(24 * day))).collect();
    let mut mark = Mark::default();
    // Newest first: the mark of this pass must not hide the rest of it.
    let digest = fetch(&mut mark, &history);
    assert_eq!((digest.relevant, digest.late), (500, 0));
    assert_eq!(digest.latest_activity_at, Some(now() - Duration::from_hours(24)));
    assert_eq!(mark.remembered(), 3);
    // A history without a person leaves no mark.
    let mut mark = Mark::default();
    fetch(&mut mark, &[json!({"category": "system_stats", "timestamp": "2026-03-01T11:00:00"})]);
    assert_eq!(mark.high(), None);
}

#[test]
fn an_event_from_the_future_counts_once_and_hides_nothing() {
    let mut mark = Mark::default();
    let future = start_lab(now() + Duration::from_hours(24 * 365));
    let digest = fetch(&mut mark, std::slice::from_ref(&future));
    assert_eq!((digest.relevant, digest.clamped, digest.latest_activity_at), (1, 1, Some(now())));
    assert_eq!(digest.recent[0].at, now());
    assert_eq!(mark.high(), Some(now()));

    // An hour later it is known, and what really happened meanwhile counts.
    let later = now() + Duration::from_hours(1);
    assert_eq!(fetch_at(later, &mut mark, std::slice::from_ref(&future)).relevant, 0);
    let real = start_lab(now() + Duration::from_mins(5));
    let digest = fetch_at(later, &mut mark, &[future.clone(), real.clone()]);
    assert_eq!((digest.relevant, digest.clamped), (1, 0));
    assert_eq!(digest.latest_activity_at, Some(now() + Duration::from_mins(5)));

    // When its time has come it is still known.
    let then = now() + Duration::from_hours(24 * 365 + 1);
    assert_eq!(fetch_at(then, &mut mark, &[future, real]).relevant, 0);

    // Exactly now is not the future.
    assert_eq!(fetch(&mut Mark::default(), &[start_lab(now())]).clamped, 0);
    assert_eq!(fetch(&mut Mark::default(), &[start_lab(now() + MICRO)]).clamped, 1);
}

#[test]
fn a_clock_that_is_put_back_loses_nothing() {
    let mut mark = mark_at(now());
    // The worker's zone was wrong by fourteen hours and is now right.
    let behind = start_lab(now() - Duration::from_hours(14));
    let digest = fetch(&mut mark, &[start_lab(now()), behind]);
    assert_eq!((digest.relevant, digest.late, digest.duplicates), (1, 1, 1));
}

#[test]
fn memory_is_bounded_and_forgetting_counts_nothing_twice() {
    let many: Vec<_> = (0..20_000).map(|n| start_lab(now() - Duration::from_millis(n))).collect();
    let mut mark = Mark::default();
    assert_eq!(fetch(&mut mark, &many).relevant, 20_000);
    assert!(mark.remembered() <= MAX_SEEN);
    assert_eq!(fetch(&mut mark, &many).relevant, 0);
    // As many at one instant: forgetting some must not bring them back.
    let burst: Vec<_> = (0..5_000)
        .map(|n| json!({"category": "start_node", "timestamp": "2026-03-01T12:00:00", "data": {"n": n}}))
        .collect();
    assert_eq!(fetch(&mut mark, &burst).relevant, 5_000);
    assert_eq!(fetch(&mut mark, &burst).relevant, 0);
    let digest = fetch_at(now() + MICRO, &mut mark, &[start_lab(now() + MICRO)]);
    assert_eq!(digest.relevant, 1);
}

#[test]
fn too_much_future_keeps_awake_and_hides_nothing() {
    let future: Vec<_> = (1..=5_000).map(|n| start_lab(now() + Duration::from_hours(n))).collect();
    let mut mark = Mark::default();
    assert_eq!(fetch(&mut mark, &future).clamped, 5_000);
    assert_eq!(fetch(&mut mark, &future).clamped, 5_000 - MAX_SEEN as u64, "those that were let go");
    let later = now() + Duration::from_mins(10);
    let digest = fetch_at(later, &mut mark, &[start_lab(now() + Duration::from_mins(5))]);
    assert_eq!(digest.latest_activity_at, Some(now() + Duration::from_mins(5)));
}
