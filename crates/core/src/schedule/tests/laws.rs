//! What holds for every schedule at every instant.

use core::time::Duration;

use jiff::civil::DateTime;
use proptest::prelude::*;
use proptest::sample::select;

use crate::Timestamp;
use crate::schedule::{Effect, Now, Schedule, Sleep, TimeOfDay, Window, Zone};

const MICRO: Duration = Duration::from_micros(1);
const MINUTE: i64 = 60_000_000;
const DAY: i64 = 24 * 60;

/// Zones that never change their clocks.
const FIXED: &[&str] = &["UTC", "Asia/Kolkata", "Asia/Kathmandu", "Etc/GMT+5", "Pacific/Kiritimati"];
/// Zones that do, on Sundays, at midnight, by half an hour, by a day, on Fridays.
const MOVING: &[&str] = &[
    "Europe/Berlin",
    "America/New_York",
    "America/Havana",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Africa/Casablanca",
    "Asia/Gaza",
];

/// Minutes since Monday 00:00, and whether a window is open then: the simplest thing that can be right.
fn is_open(window: &Window, minute_of_week: i64) -> bool {
    let minutes = |time: TimeOfDay| i64::from(time.hour()) * 60 + i64::from(time.minute());
    let (from, until) = (minutes(window.from), minutes(window.until));
    let length = if until <= from { until + DAY - from } else { until - from };
    (0..7)
        .filter(|day| window.days.has(*day))
        .any(|day| (minute_of_week - (i64::from(day) * DAY + from)).rem_euclid(7 * DAY) < length)
}

fn open(schedule: &Schedule, minute_of_week: i64) -> impl Iterator<Item = Effect> + '_ {
    schedule.windows.iter().filter(move |window| is_open(window, minute_of_week)).map(|window| window.effect)
}

/// What is open, without its ends.
type Said = (bool, bool, Option<Duration>, Option<Sleep>);

fn said(now: &Now) -> Said {
    (now.keep_awake_until.is_some(), now.wake, now.idle_timeout, now.sleep)
}

fn model(schedule: &Schedule, minute_of_week: i64) -> Said {
    let open: Vec<Effect> = open(schedule, minute_of_week).collect();
    (
        open.iter().any(|effect| matches!(effect, Effect::KeepAwake { .. })),
        open.contains(&Effect::KeepAwake { wake: true }),
        open.iter()
            .filter_map(
                |effect| {
                    if let Effect::IdleTimeout(timeout) = effect { Some(*timeout) } else { None }
                },
            )
            .min(),
        if open.contains(&Effect::Sleep { force: true }) {
            Some(Sleep::Forced)
        } else {
            open.contains(&Effect::Sleep { force: false }).then_some(Sleep::Gentle)
        },
    )
}

fn local(zone: &Zone, at: Timestamp) -> DateTime {
    let zone = jiff::tz::TimeZoneDatabase::bundled().get(zone.name()).unwrap();
    zone.to_datetime(jiff::Timestamp::from_microsecond(at.as_micros()).unwrap())
}

fn minute_of_week(local: DateTime) -> i64 {
    i64::from(local.weekday().to_monday_zero_offset()) * DAY
        + i64::from(local.hour()) * 60
        + i64::from(local.minute())
}

fn windows() -> impl Strategy<Value = Vec<Window>> {
    // Whole hours, often: windows that meet are where mistakes hide.
    let time = prop_oneof![(0u8..24, Just(0u8)), (0u8..4, 0u8..60), (0u8..24, 0u8..60)]
        .prop_map(|(hour, minute)| TimeOfDay::new(hour, minute).unwrap());
    let until = prop_oneof![4 => time.clone(), 1 => Just(TimeOfDay::END)];
    let effect = prop_oneof![
        any::<bool>().prop_map(|wake| Effect::KeepAwake { wake }),
        (1u64..5).prop_map(|minutes| Effect::IdleTimeout(Duration::from_mins(minutes))),
        any::<bool>().prop_map(|force| Effect::Sleep { force }),
    ];
    let days = prop_oneof![
        Just("daily".to_string()),
        Just("sat,sun".to_string()),
        "(mon|tue|wed|thu|fri|sat|sun)-(mon|wed|fri|sun)",
        "(mon|tue|wed|thu|fri|sat|sun)",
    ]
    .prop_map(|days| days.parse().unwrap());
    let window = (days, time, until, effect).prop_map(|(days, from, until, effect)| Window {
        days,
        from,
        until,
        effect,
    });
    prop::collection::vec(window, 0..6)
}

fn schedules(zones: &'static [&'static str]) -> impl Strategy<Value = Schedule> {
    (select(zones), windows()).prop_map(|(zone, windows)| Schedule { zone: zone.parse().unwrap(), windows })
}

/// Clock changes of these zones.
const CHANGES: &[&str] = &[
    "2026-03-29T01:00:00Z",
    "2026-10-25T01:00:00Z",
    "2026-03-08T07:00:00Z",
    "2026-11-01T05:00:00Z",
    "2010-11-07T02:31:00Z",
    "2026-10-03T15:30:00Z",
    "2026-04-04T15:00:00Z",
    "2011-12-30T10:00:00Z",
];

/// Whole minutes: any from 2008 to 2037, and within three days of a clock change of one of the zones.
fn instants() -> impl Strategy<Value = Timestamp> {
    let near = (select(CHANGES), -3 * DAY..3 * DAY)
        .prop_map(|(change, minutes)| change.parse::<Timestamp>().unwrap().as_micros() + minutes * MINUTE);
    let any = (20_000_000i64..35_000_000).prop_map(|minutes| minutes * MINUTE);
    prop_oneof![near, any].prop_map(Timestamp::from_micros)
}

fn later(at: Timestamp, minutes: i64) -> Timestamp {
    Timestamp::from_micros(at.as_micros() + minutes * MINUTE)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn without_clock_changes_it_is_what_a_walk_minute_by_minute_finds(
        schedule in schedules(FIXED),
        now in instants(),
    ) {
        let minute = minute_of_week(local(&schedule.zone, now));
        let expected = model(&schedule, minute);
        let found = schedule.at(now);
        prop_assert_eq!(said(&found), expected);

        let week = 1..=7 * DAY;
        let change = week.clone().find(|ahead| model(&schedule, minute + ahead) != expected);
        prop_assert_eq!(found.next_change_at, change.map(|ahead| later(now, ahead)));
        let end = week.clone().find(|ahead| !model(&schedule, minute + ahead).0);
        let end = end.map_or(Timestamp::MAX, |ahead| later(now, ahead));
        prop_assert_eq!(found.keep_awake_until, expected.0.then_some(end));

        let openings: Vec<Timestamp> = schedule.openings(now, later(now, 7 * DAY)).map(|(at, _)| at).collect();
        let mut walked = Vec::new();
        for ahead in week {
            let opens = schedule.windows.iter().filter(|window| {
                window.effect.acts_at_opening()
                    && is_open(window, minute + ahead)
                    && !is_open(window, minute + ahead - 1)
            });
            walked.extend(opens.map(|_| later(now, ahead)));
        }
        prop_assert_eq!(openings, walked);
    }
}

proptest! {
    #[test]
    fn nothing_changes_before_the_next_change_and_something_does_at_it(
        schedule in schedules(MOVING),
        now in instants(),
    ) {
        let found = schedule.at(now);
        if let Some(until) = found.keep_awake_until {
            prop_assert!(until > now);
            if until < Timestamp::MAX {
                prop_assert!(schedule.at(until - MICRO).keep_awake_until == Some(until));
                prop_assert_eq!(schedule.at(until).keep_awake_until, None);
            }
        }
        if let Some(change) = found.next_change_at {
            prop_assert!(change > now);
            prop_assert_eq!(schedule.at(change - MICRO), found);
            prop_assert_ne!(said(&schedule.at(change)), said(&found));
        }
    }

    /// Where a clock shows a time of the window the worker is kept awake, and only there is it put to sleep.
    #[test]
    fn whatever_the_clock_does_it_errs_towards_awake(schedule in schedules(MOVING), now in instants()) {
        let shown = minute_of_week(local(&schedule.zone, now));
        let (awake, wake, timeout, sleep) = said(&schedule.at(now));
        let (shown_awake, shown_wake, shown_timeout, shown_sleep) = model(&schedule, shown);
        prop_assert!(awake || !shown_awake);
        prop_assert!(wake || !shown_wake);
        prop_assert!(sleep <= shown_sleep);
        if let Some(timeout) = timeout {
            prop_assert!(shown_timeout.is_some_and(|shown| timeout >= shown));
        }
    }

    #[test]
    fn openings_of_two_halves_are_those_of_the_whole(
        schedule in schedules(MOVING),
        after in instants(),
        first in 0..20 * DAY,
        second in 0..20 * DAY,
    ) {
        let (middle, until) = (later(after, first), later(after, first + second));
        let whole: Vec<_> = schedule.openings(after, until).collect();
        let halves: Vec<_> = schedule.openings(after, middle).chain(schedule.openings(middle, until)).collect();
        prop_assert_eq!(&whole, &halves);
        for (at, window) in whole {
            let now = schedule.at(at);
            match window.effect {
                Effect::KeepAwake { wake } => prop_assert!(wake && now.wake),
                Effect::Sleep { .. } => prop_assert!(now.sleep.is_some()),
                Effect::IdleTimeout(_) => prop_assert!(false, "nothing to do at this opening"),
            }
        }
    }

    #[test]
    fn what_is_written_can_be_read_again(schedule in schedules(MOVING)) {
        let json = serde_json::to_string(&schedule).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Schedule>(&json).unwrap(), &schedule);
        let file = toml::to_string(&schedule).unwrap();
        prop_assert_eq!(&toml::from_str::<Schedule>(&file).unwrap(), &schedule);
    }
}
