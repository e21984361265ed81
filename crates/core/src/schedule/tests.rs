mod clock_changes;
mod laws;
mod text;

use core::time::Duration;

use super::*;

fn ts(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A schedule from the windows' text in TOML.
fn schedule(zone: &str, windows: &[&str]) -> Schedule {
    let windows: Vec<String> = windows.iter().map(|window| format!("{{ {window} }}")).collect();
    toml::from_str(&format!("zone = \"{zone}\"\nwindows = [{}]", windows.join(", "))).unwrap()
}

const OFFICE: &str = "days = 'mon-fri', from = '08:00', until = '18:00', keep_awake = true, wake = true";
const NIGHT: &str = "days = 'daily', hours = '22:00-06:00', idle_timeout = '10m'";
const WEEKEND: &str = "days = 'sat,sun', from = '00:00', until = '24:00', sleep = true, force = true";

#[test]
fn a_window_includes_its_opening_and_not_its_close() {
    let office = schedule("UTC", &[OFFICE]);
    let awake = |at: &str| office.at(ts(at)).keep_awake_until;
    // 2026-03-02 is a Monday.
    assert_eq!(awake("2026-03-02T07:59:59.999999Z"), None);
    assert_eq!(awake("2026-03-02T08:00:00Z"), Some(ts("2026-03-02T18:00:00Z")));
    assert_eq!(awake("2026-03-02T17:59:59.999999Z"), Some(ts("2026-03-02T18:00:00Z")));
    assert_eq!(awake("2026-03-02T18:00:00Z"), None);
    assert_eq!(
        office.at(ts("2026-03-06T18:00:00Z")).next_change_at,
        Some(ts("2026-03-09T08:00:00Z")),
        "from Friday evening to Monday morning"
    );
}

#[test]
fn everything_that_is_open_is_reported() {
    let all = schedule("UTC", &[OFFICE, NIGHT, WEEKEND, "days = 'fri', hours = '12:00-24:00', sleep = true"]);
    assert_eq!(
        all.at(ts("2026-03-06T12:00:00Z")),
        Now {
            keep_awake_until: Some(ts("2026-03-06T18:00:00Z")),
            wake: true,
            idle_timeout: None,
            sleep: Some(Sleep::Gentle),
            next_change_at: Some(ts("2026-03-06T18:00:00Z")),
        }
    );
    assert_eq!(
        all.at(ts("2026-03-06T23:00:00Z")),
        Now {
            keep_awake_until: None,
            wake: false,
            idle_timeout: Some(Duration::from_mins(10)),
            sleep: Some(Sleep::Gentle),
            next_change_at: Some(ts("2026-03-07T00:00:00Z")),
        }
    );
    assert_eq!(all.at(ts("2026-03-07T01:00:00Z")).sleep, Some(Sleep::Forced));
}

#[test]
fn windows_that_meet_or_overlap_are_one_stretch_awake() {
    let both = schedule(
        "UTC",
        &[
            "days = 'mon', hours = '08:00-12:00', keep_awake = true",
            "days = 'mon', hours = '12:00-20:00', keep_awake = true",
            "days = 'mon', hours = '19:00-02:00', keep_awake = true",
            "days = 'tue', hours = '02:01-03:00', keep_awake = true",
        ],
    );
    let now = both.at(ts("2026-03-02T09:00:00Z"));
    assert_eq!(now.keep_awake_until, Some(ts("2026-03-03T02:00:00Z")));
    assert_eq!(now.next_change_at, now.keep_awake_until);
}

#[test]
fn awake_time_goes_on_past_changes_of_other_kinds() {
    let now = schedule("UTC", &["days = 'daily', hours = '20:00-23:00', keep_awake = true", NIGHT])
        .at(ts("2026-03-02T21:00:00Z"));
    assert_eq!(now.next_change_at, Some(ts("2026-03-02T22:00:00Z")));
    assert_eq!(now.keep_awake_until, Some(ts("2026-03-02T23:00:00Z")));
}

#[test]
fn the_shortest_timeout_counts_and_never_lengthens() {
    let now = schedule("UTC", &[NIGHT, "days = 'daily', hours = '23:00-04:00', idle_timeout = '5m'"])
        .at(ts("2026-03-02T23:00:00Z"));
    assert_eq!(now.idle_timeout, Some(Duration::from_mins(5)));
    assert_eq!(now.shortened(Some(Duration::from_hours(1))), Some(Duration::from_mins(5)));
    assert_eq!(now.shortened(Some(Duration::from_mins(2))), Some(Duration::from_mins(2)));
    assert_eq!(now.shortened(None), None, "never stays never");
    let day = schedule("UTC", &[NIGHT]).at(ts("2026-03-02T12:00:00Z"));
    assert_eq!(day.shortened(Some(Duration::from_hours(1))), Some(Duration::from_hours(1)));
}

#[test]
fn equal_times_are_a_whole_day_and_whole_days_run_together() {
    let shift = schedule("UTC", &["days = 'mon', hours = '08:00-08:00', keep_awake = true"]);
    assert_eq!(shift.at(ts("2026-03-02T08:00:00Z")).keep_awake_until, Some(ts("2026-03-03T08:00:00Z")));
    let weekend = schedule("UTC", &[WEEKEND]);
    assert_eq!(weekend.at(ts("2026-03-07T03:00:00Z")).next_change_at, Some(ts("2026-03-09T00:00:00Z")));
    assert_eq!(weekend.at(ts("2026-03-08T23:00:00Z")).sleep, Some(Sleep::Forced));
    let openings: Vec<_> =
        weekend.openings(ts("2026-03-05T00:00:00Z"), ts("2026-03-15T00:00:00Z")).map(|(at, _)| at).collect();
    assert_eq!(openings, [ts("2026-03-07T00:00:00Z"), ts("2026-03-14T00:00:00Z")], "not again on Sunday");

    let but_sunday = schedule("UTC", &["days = 'mon-sat', hours = '00:00-24:00', keep_awake = true"]);
    for day in 2..8 {
        let now = but_sunday.at(ts(&format!("2026-03-0{day}T12:00:00Z")));
        assert_eq!(now.keep_awake_until, Some(ts("2026-03-08T00:00:00Z")), "2026-03-0{day}");
    }
}

#[test]
fn what_never_changes_says_so() {
    let always = schedule("Europe/Berlin", &["days = 'daily', hours = '00:00-24:00', keep_awake = true"]);
    let halves = schedule(
        "Europe/Berlin",
        &[
            "days = 'daily', hours = '00:00-13:00', keep_awake = true",
            "days = 'daily', hours = '13:00-24:00', keep_awake = true",
        ],
    );
    for schedule in [always, halves] {
        let now = schedule.at(ts("2026-03-25T12:00:00Z"));
        assert_eq!((now.keep_awake_until, now.next_change_at), (Some(Timestamp::MAX), None));
    }
    let nothing = schedule("UTC", &[]).at(ts("2026-03-25T12:00:00Z"));
    assert_eq!((nothing.keep_awake_until, nothing.sleep, nothing.next_change_at), (None, None, None));
}

#[test]
fn each_opening_is_told_once_in_order() {
    let all = schedule("Asia/Kolkata", &[WEEKEND, NIGHT, OFFICE]);
    // 08:00 in India is 02:30 in universal time.
    let friday = ts("2026-03-06T02:30:00Z");
    let saturday = ts("2026-03-06T18:30:00Z");
    let told = |after: Timestamp, until: Timestamp| {
        all.openings(after, until).map(|(at, window)| (at, window.to_string())).collect::<Vec<_>>()
    };
    let (office, weekend) = ("mon-fri 08:00-18:00 keep awake, wake", "sat,sun 00:00-24:00 sleep, force");
    assert_eq!(
        told(friday - Duration::from_micros(1), saturday),
        [(friday, office.to_string()), (saturday, weekend.to_string())]
    );
    assert_eq!(told(friday, saturday).len(), 1, "the opening at `after` was told before");
    assert_eq!(told(friday - Duration::from_micros(1), friday).len(), 1);
    assert_eq!(told(saturday, friday), []);
    let quiet = schedule("UTC", &[NIGHT, "days = 'daily', hours = '08:00-09:00', keep_awake = true"]);
    assert_eq!(
        quiet.openings(friday, friday + HORIZON).count(),
        0,
        "these have nothing to do at the opening"
    );
}

#[test]
fn the_ends_of_time_are_no_trouble() {
    let all = schedule("Pacific/Auckland", &[OFFICE, NIGHT, WEEKEND]);
    for now in [i64::MIN, -1, 0, Timestamp::MAX.as_micros() - 1, Timestamp::MAX.as_micros(), i64::MAX] {
        let now = Timestamp::from_micros(now);
        let _ = (all.at(now), all.openings(now, now + HORIZON).count());
    }
}
