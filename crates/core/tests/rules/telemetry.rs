//! The telemetry filter over a recorded history.

use drowse_core::Timestamp;
use drowse_core::telemetry::{Categories, Digest, Event, Fetched, Filter, Mark, Outcome, UnknownCause};
use proptest::prelude::*;

const FIXTURE: &str = include_str!("../fixtures/cml_telemetry.json");

fn now() -> Timestamp {
    Timestamp::from_secs(1_767_225_600)
}

fn history() -> Vec<Event<'static>> {
    serde_json::from_str(FIXTURE).expect("the fixture is valid")
}

fn pass<'e>(mark: &Mark, events: impl IntoIterator<Item = &'e Event<'static>>) -> (Digest, Mark) {
    let categories = Categories::seed_000();
    let mut filter = Filter::new(&categories, mark, now());
    for event in events {
        filter.feed(event);
    }
    filter.finish()
}

#[test]
fn the_recorded_history_holds_226_events_of_a_person() {
    let (digest, mark) = pass(&Mark::default(), &history());
    assert_eq!((digest.examined, digest.relevant), (3_136, 226));
    assert_eq!((digest.excluded, digest.duplicates, digest.skipped_bad), (2_910, 0, 0));
    assert_eq!((digest.clamped, digest.late, digest.unreadable), (0, 0, false));
    assert_eq!(digest.recent.len(), 10);
    assert_eq!(Some(digest.recent[0].at), digest.latest_activity_at);
    assert!(digest.recent.is_sorted_by(|a, b| a.at >= b.at));
    assert!(digest.recent.iter().all(|event| event.data.contains_key("lab_id")));
    assert_eq!(mark.high(), digest.latest_activity_at);
    assert!(mark.remembered() < 226, "only the overlap is remembered, not {}", mark.remembered());
}

#[test]
fn the_same_history_again_brings_nothing() {
    let (first, mark) = pass(&Mark::default(), &history());
    let (second, same) = pass(&mark, &history());
    assert_eq!((second.relevant, second.duplicates, second.latest_activity_at), (0, 226, None));
    assert_eq!(second.recent, []);
    assert_eq!(same, mark);
    assert_eq!(Fetched::Events(second).outcome(), Outcome::Quiet);
    let at = first.latest_activity_at.unwrap();
    assert_eq!(Fetched::Events(first).outcome(), Outcome::Active { at });
}

#[test]
fn a_restart_counts_nothing_twice() {
    let (_, mark) = pass(&Mark::default(), &history());
    let stored = serde_json::to_string(&mark).unwrap();
    let read: Mark = serde_json::from_str(&stored).unwrap();
    assert_eq!(read, mark);
    assert_eq!(pass(&read, &history()).0.relevant, 0);
    // A mark of a version that knew less of it.
    assert_eq!(serde_json::from_str::<Mark>("{}").unwrap(), Mark::default());
}

#[test]
fn a_streamed_answer_is_the_same_as_parsed_events() {
    let categories = Categories::seed_000();
    let mark = Mark::default();
    let expected = pass(&mark, &history());

    let mut borrowed = Filter::new(&categories, &mark, now());
    borrowed.read(&mut serde_json::Deserializer::from_str(FIXTURE)).unwrap();
    assert_eq!(borrowed.finish(), expected);

    let mut copied = Filter::new(&categories, &mark, now());
    copied.read(&mut serde_json::Deserializer::from_reader(FIXTURE.as_bytes())).unwrap();
    assert_eq!(copied.finish(), expected);
}

#[test]
fn an_answer_that_breaks_off_is_a_failed_fetch() {
    let categories = Categories::seed_000();
    let mark = Mark::default();
    for answer in [&FIXTURE[..FIXTURE.len() / 2], "{\"code\": 503, \"description\": \"busy\"}", "", "null"] {
        let mut filter = Filter::new(&categories, &mark, now());
        let read = filter.read(&mut serde_json::Deserializer::from_str(answer));
        let fetched = Fetched::new(Some(true), read.map(|()| filter.finish().0));
        assert_eq!(fetched.outcome(), Outcome::Unknown(UnknownCause::FetchFailed));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_order_of_the_events_leaves_no_trace(
        events in Just(history()).prop_shuffle(),
        known in 0usize..3_136,
    ) {
        prop_assert_eq!(pass(&Mark::default(), &events), pass(&Mark::default(), &history()));

        // In two fetches, the second with the whole history, it is no different in the end.
        let old = &history()[..known];
        let (first, mark) = pass(&Mark::default(), old);
        let (second, mark) = pass(&mark, &events);
        let (once, whole) = pass(&Mark::default(), &history());
        prop_assert_eq!(first.relevant + second.relevant, once.relevant);
        prop_assert_eq!(first.latest_activity_at.max(second.latest_activity_at), once.latest_activity_at);
        prop_assert_eq!(mark, whole);
    }

    #[test]
    fn every_event_ends_in_exactly_one_count(events in Just(history()).prop_shuffle(), copies in 0usize..500) {
        let (digest, _) = pass(&Mark::default(), events.iter().chain(&events[..copies]));
        prop_assert_eq!(
            digest.examined,
            digest.relevant + digest.excluded + digest.duplicates + digest.skipped_bad
        );
        prop_assert_eq!(digest.relevant, 226);
    }
}
