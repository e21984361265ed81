//! Days on which the clock jumps, in zones that do it differently.

use super::{schedule, ts};
use crate::Timestamp;
use crate::schedule::{Now, Schedule};

/// The stretches between two instants in which `is_open`, as the schedule's own changes cut them.
fn stretches(
    schedule: &Schedule,
    from: &str,
    until: &str,
    is_open: fn(&Now) -> bool,
) -> Vec<(Timestamp, Timestamp)> {
    let (mut at, end) = (ts(from), ts(until));
    let mut found: Vec<(Timestamp, Timestamp)> = Vec::new();
    while at < end {
        let now = schedule.at(at);
        let next = now.next_change_at.unwrap_or(end).min(end);
        if is_open(&now) {
            found.push((at, next));
        }
        at = next;
    }
    found
}

/// One case: the zone, the days and hours, the span of time to look at, and when a window that keeps awake
/// and one that puts to sleep are open in it.
struct Case {
    zone: &'static str,
    window: &'static str,
    day: (&'static str, &'static str),
    awake: &'static [(&'static str, &'static str)],
    asleep: &'static [(&'static str, &'static str)],
}

const fn same(
    zone: &'static str,
    window: &'static str,
    day: (&'static str, &'static str),
    open: &'static [(&'static str, &'static str)],
) -> Case {
    Case { zone, window, day, awake: open, asleep: open }
}

// Berlin: 02:00 becomes 03:00 on 2026-03-29 at 01:00Z.
const BERLIN_SPRING: (&str, &str) = ("2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z");
// Berlin: 03:00 becomes 02:00 on 2026-10-25 at 01:00Z.
const BERLIN_AUTUMN: (&str, &str) = ("2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z");
// New York: 02:00 becomes 03:00 on 2026-03-08 at 07:00Z; 02:00 becomes 01:00 on 2026-11-01 at 06:00Z.
const NEW_YORK_SPRING: (&str, &str) = ("2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z");
const NEW_YORK_AUTUMN: (&str, &str) = ("2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z");
// Lord Howe: 02:00 becomes 02:30 on 2026-10-04 at 15:30Z the day before; 02:00 becomes 01:30 on 2026-04-05
// at 15:00Z the day before.
const LORD_HOWE_SPRING: (&str, &str) = ("2026-10-03T13:30:00Z", "2026-10-04T13:00:00Z");
const LORD_HOWE_AUTUMN: (&str, &str) = ("2026-04-04T13:00:00Z", "2026-04-05T13:30:00Z");
// Apia: there was no 2011-12-30, a Friday; the jump was at 10:00Z.
const APIA: (&str, &str) = ("2011-12-29T10:00:00Z", "2011-12-31T10:00:00Z");
// Havana: 01:00 becomes 00:00 on 2026-11-01, a Sunday, at 05:00Z.
const HAVANA: (&str, &str) = ("2026-10-31T04:00:00Z", "2026-11-02T05:00:00Z");
// St John's: 00:01 of 2010-11-07, a Sunday, became 23:01 of the day before at 02:31Z.
const ST_JOHNS: (&str, &str) = ("2010-11-06T02:30:00Z", "2010-11-08T03:30:00Z");

const CASES: &[Case] = &[
    // What lies in the hour that is skipped.
    same(
        "Europe/Berlin",
        "sun 01:30-02:30",
        BERLIN_SPRING,
        &[("2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z")],
    ),
    same("Europe/Berlin", "sun 02:15-02:45", BERLIN_SPRING, &[]),
    same(
        "Europe/Berlin",
        "sun 02:30-04:00",
        BERLIN_SPRING,
        &[("2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z")],
    ),
    same("Europe/Berlin", "sun 02:00-03:00", BERLIN_SPRING, &[]),
    same(
        "Europe/Berlin",
        "sun 01:00-05:00",
        BERLIN_SPRING,
        &[("2026-03-29T00:00:00Z", "2026-03-29T03:00:00Z")],
    ),
    same("Europe/Berlin", "sun 00:00-24:00", BERLIN_SPRING, &[BERLIN_SPRING]),
    same(
        "America/New_York",
        "sun 02:30-03:30",
        NEW_YORK_SPRING,
        &[("2026-03-08T07:00:00Z", "2026-03-08T07:30:00Z")],
    ),
    same(
        "Australia/Lord_Howe",
        "sun 01:00-02:15",
        LORD_HOWE_SPRING,
        &[("2026-10-03T14:30:00Z", "2026-10-03T15:30:00Z")],
    ),
    same(
        "Australia/Lord_Howe",
        "sun 02:15-03:00",
        LORD_HOWE_SPRING,
        &[("2026-10-03T15:30:00Z", "2026-10-03T16:00:00Z")],
    ),
    same("Pacific/Apia", "fri 08:00-18:00", APIA, &[]),
    same("Pacific/Apia", "fri 00:00-24:00", APIA, &[]),
    same("Pacific/Apia", "thu 22:00-06:00", APIA, &[("2011-12-30T08:00:00Z", "2011-12-30T10:00:00Z")]),
    same("Pacific/Apia", "fri 22:00-06:00", APIA, &[("2011-12-30T10:00:00Z", "2011-12-30T16:00:00Z")]),
    same("Pacific/Apia", "thu-sat 00:00-24:00", APIA, &[APIA]),
    // What lies in the hour that comes twice.
    Case {
        zone: "Europe/Berlin",
        window: "sun 02:15-02:45",
        day: BERLIN_AUTUMN,
        awake: &[("2026-10-25T00:15:00Z", "2026-10-25T01:45:00Z")],
        asleep: &[],
    },
    Case {
        zone: "Europe/Berlin",
        window: "sun 01:00-02:30",
        day: BERLIN_AUTUMN,
        awake: &[("2026-10-24T23:00:00Z", "2026-10-25T01:30:00Z")],
        asleep: &[("2026-10-24T23:00:00Z", "2026-10-25T00:30:00Z")],
    },
    Case {
        zone: "Europe/Berlin",
        window: "sun 02:30-06:00",
        day: BERLIN_AUTUMN,
        awake: &[("2026-10-25T00:30:00Z", "2026-10-25T05:00:00Z")],
        asleep: &[("2026-10-25T01:30:00Z", "2026-10-25T05:00:00Z")],
    },
    // Its end is not in it: nothing of this window comes twice.
    same(
        "Europe/Berlin",
        "sun 01:00-02:00",
        BERLIN_AUTUMN,
        &[("2026-10-24T23:00:00Z", "2026-10-25T00:00:00Z")],
    ),
    same(
        "Europe/Berlin",
        "sun 03:00-04:00",
        BERLIN_AUTUMN,
        &[("2026-10-25T02:00:00Z", "2026-10-25T03:00:00Z")],
    ),
    Case {
        zone: "Europe/Berlin",
        window: "sun 02:00-03:00",
        day: BERLIN_AUTUMN,
        awake: &[("2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z")],
        asleep: &[("2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z")],
    },
    Case {
        zone: "America/New_York",
        window: "sun 01:30-03:00",
        day: NEW_YORK_AUTUMN,
        awake: &[("2026-11-01T05:30:00Z", "2026-11-01T08:00:00Z")],
        asleep: &[("2026-11-01T06:30:00Z", "2026-11-01T08:00:00Z")],
    },
    Case {
        zone: "Australia/Lord_Howe",
        window: "sun 01:45-02:00",
        day: LORD_HOWE_AUTUMN,
        awake: &[("2026-04-04T14:45:00Z", "2026-04-04T15:30:00Z")],
        asleep: &[("2026-04-04T15:15:00Z", "2026-04-04T15:30:00Z")],
    },
    // Midnight comes twice. Saturday ends at the first, and whole days run on through both.
    same("America/Havana", "sat 20:00-24:00", HAVANA, &[("2026-11-01T00:00:00Z", "2026-11-01T04:00:00Z")]),
    same("America/Havana", "sat,sun 00:00-24:00", HAVANA, &[HAVANA]),
    Case {
        zone: "America/St_Johns",
        window: "sat 22:00-24:00",
        day: ST_JOHNS,
        awake: &[("2010-11-07T00:30:00Z", "2010-11-07T03:30:00Z")],
        asleep: &[("2010-11-07T00:30:00Z", "2010-11-07T02:30:00Z")],
    },
    Case {
        zone: "America/St_Johns",
        window: "sun 00:00-01:00",
        day: ST_JOHNS,
        awake: &[("2010-11-07T02:30:00Z", "2010-11-07T04:30:00Z")],
        asleep: &[("2010-11-07T03:30:00Z", "2010-11-07T04:30:00Z")],
    },
    // No clock changes.
    same("UTC", "sun 02:15-02:45", BERLIN_SPRING, &[("2026-03-29T02:15:00Z", "2026-03-29T02:45:00Z")]),
    same(
        "Asia/Kolkata",
        "sun 08:00-09:00",
        BERLIN_AUTUMN,
        &[("2026-10-25T02:30:00Z", "2026-10-25T03:30:00Z")],
    ),
];

#[test]
fn a_skipped_hour_ends_at_the_jump_and_a_repeated_one_counts_as_awake() {
    for case in CASES {
        let Case { zone, window, day: (from, until), .. } = case;
        let (days, hours) = window.split_once(' ').unwrap();
        let instants = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| (ts(a), ts(b))).collect::<Vec<_>>();
        let of = |effect: &str| schedule(zone, &[&format!("days = '{days}', hours = '{hours}', {effect}")]);

        let awake = stretches(&of("keep_awake = true"), from, until, |now| now.keep_awake_until.is_some());
        assert_eq!(awake, instants(case.awake), "{zone} {window} keep awake");
        let asleep = stretches(&of("sleep = true"), from, until, |now| now.sleep.is_some());
        assert_eq!(asleep, instants(case.asleep), "{zone} {window} sleep");
        let short = stretches(&of("idle_timeout = '1m'"), from, until, |now| now.idle_timeout.is_some());
        assert_eq!(short, asleep, "{zone} {window} idle timeout");
    }
}

#[test]
fn office_hours_move_with_the_clock() {
    let office = schedule("Europe/Berlin", &[super::OFFICE]);
    let openings: Vec<_> = office
        .openings(ts("2026-03-27T00:00:00Z"), ts("2026-03-31T00:00:00Z"))
        .map(|(at, _)| at.to_string())
        .collect();
    assert_eq!(openings, ["2026-03-27T07:00:00Z", "2026-03-30T06:00:00Z"]);
}

#[test]
fn a_break_that_is_skipped_once_is_found_a_week_later() {
    // Awake all week but for half an hour, which does not exist on 2026-03-29.
    let schedule = schedule(
        "Europe/Berlin",
        &[
            "days = 'mon-sat', hours = '00:00-24:00', keep_awake = true",
            "days = 'sun', hours = '00:00-02:15', keep_awake = true",
            "days = 'sun', hours = '02:45-24:00', keep_awake = true",
        ],
    );
    let now = schedule.at(ts("2026-03-22T12:00:00Z"));
    assert_eq!(now.keep_awake_until, Some(ts("2026-04-05T00:15:00Z")));
    assert_eq!(now.next_change_at, now.keep_awake_until);
}

#[test]
fn an_opening_is_told_while_the_calendar_is_back_at_the_day_before() {
    // Sunday began at 02:30Z and was Saturday again from 02:31Z.
    let sunday = schedule(
        "America/St_Johns",
        &["days = 'sun', hours = '00:00-10:00', keep_awake = true, wake = true"],
    );
    let openings: Vec<_> =
        sunday.openings(ts("2010-11-07T02:00:00Z"), ts("2010-11-07T02:45:00Z")).map(|(at, _)| at).collect();
    assert_eq!(openings, [ts("2010-11-07T02:30:00Z")]);
}
