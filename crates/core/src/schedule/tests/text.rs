//! What people write, and what they are told.

use proptest::prelude::*;

use super::{NIGHT, OFFICE, WEEKEND, schedule};
use crate::schedule::{Days, Hours, Schedule, TimeOfDay, Window, Zone};

fn window(text: &str) -> Result<Window, String> {
    toml::from_str(&text.replace(", ", "\n")).map_err(|error: toml::de::Error| error.message().to_string())
}

#[test]
fn days_are_read_and_written() {
    for (text, written) in [
        ("daily", "daily"),
        ("mon-sun", "daily"),
        ("tue-mon", "daily"),
        ("mon-fri", "mon-fri"),
        ("sat,sun", "sat,sun"),
        ("sat-sun", "sat,sun"),
        (" Mon , WED-Fri ", "mon,wed-fri"),
        ("sat-mon", "mon,sat,sun"),
        ("thu", "thu"),
        ("thu-thu", "thu"),
        ("fri,mon,tue,mon", "mon,tue,fri"),
    ] {
        assert_eq!(text.parse::<Days>().map(|days| days.to_string()), Ok(written.to_string()), "{text:?}");
    }
    for text in
        ["", ",", "mon,", "mon-", "-fri", "mon-wed-fri", "monday", "mo", "1-5", "daily,mon", "mon fri"]
    {
        assert_eq!(
            text.parse::<Days>().unwrap_err().to_string(),
            format!("expected days such as \"mon-fri\", \"sat,sun\" or \"daily\", found {text:?}")
        );
    }
}

#[test]
fn times_are_read_and_written() {
    for text in ["00:00", "08:05", "23:59", "24:00"] {
        assert_eq!(text.parse::<TimeOfDay>().unwrap().to_string(), text);
    }
    for text in
        ["", "8:00", "08:0", "08", "0800", "24:01", "25:00", "12:60", "-1:00", "+8:00", "08:00:00", "8am"]
    {
        assert_eq!(
            text.parse::<TimeOfDay>().unwrap_err().to_string(),
            format!("expected a time such as \"08:00\", found {text:?}")
        );
    }
    assert_eq!("08:00 - 18:30".parse::<Hours>().unwrap().to_string(), "08:00-18:30");
    for text in ["08:00", "08:00-", "08:00-18", "08:00–18:30", "08:00-12:00-18:00"] {
        assert_eq!(
            text.parse::<Hours>().unwrap_err().to_string(),
            format!("expected hours such as \"08:00-18:30\", found {text:?}")
        );
    }
}

#[test]
fn zones_are_found_by_name_alone() {
    assert_eq!("europe/berlin".parse::<Zone>().unwrap().to_string(), "Europe/Berlin");
    assert_eq!("UTC".parse::<Zone>(), Ok(Zone::UTC));
    assert_ne!("Europe/Berlin".parse::<Zone>(), "Europe/Paris".parse::<Zone>());
    for (text, suggestion) in [
        ("Europe/Berln", Some("Europe/Berlin")),
        ("Berlin", Some("Europe/Berlin")),
        ("America/New York", Some("America/New_York")),
        ("new york", Some("America/New_York")),
        ("Asia/Calcuta", Some("Asia/Calcutta")),
        ("Mars/Olympus", None),
        ("GMT+2", None),
        ("+02:00", None),
        ("Etc/Unknown", None),
        ("../../etc/passwd", None),
        ("", None),
    ] {
        let hint = suggestion.map(|name| format!("; did you mean {name:?}?")).unwrap_or_default();
        assert_eq!(
            text.parse::<Zone>().unwrap_err().to_string(),
            format!(
                "expected the name of a time zone such as \"Europe/Berlin\" or \"UTC\", found {text:?}{hint}"
            )
        );
    }
}

#[test]
fn windows_are_read() {
    for (text, written) in [
        (OFFICE, "mon-fri 08:00-18:00 keep awake, wake"),
        (NIGHT, "daily 22:00-06:00 idle timeout 10m"),
        (WEEKEND, "sat,sun 00:00-24:00 sleep, force"),
        (
            "days = 'mon', hours = '08:00-09:00', keep_awake = true, sleep = false",
            "mon 08:00-09:00 keep awake",
        ),
        ("days = 'mon', hours = '08:00-09:00', sleep = true, force = false", "mon 08:00-09:00 sleep"),
    ] {
        assert_eq!(window(text).map(|window| window.to_string()), Ok(written.to_string()), "{text}");
    }
}

#[test]
fn a_window_does_exactly_one_thing_at_one_time() {
    for (text, error) in [
        (
            "hours = '08:00-09:00'",
            "expected one of keep_awake = true, idle_timeout and sleep = true, found none",
        ),
        (
            "hours = '08:00-09:00', keep_awake = true, sleep = true",
            "expected one of keep_awake = true, idle_timeout and sleep = true, found several",
        ),
        (
            "hours = '08:00-09:00', idle_timeout = '1m', sleep = true",
            "expected one of keep_awake = true, idle_timeout and sleep = true, found several",
        ),
        ("hours = '08:00-09:00', sleep = true, wake = true", "wake = true needs keep_awake = true"),
        ("hours = '08:00-09:00', idle_timeout = '1m', force = true", "force = true needs sleep = true"),
        (
            "hours = '08:00-09:00', idle_timeout = '0s'",
            "expected an idle_timeout longer than 0s; to put a worker to sleep write sleep = true",
        ),
        ("from = '08:00', sleep = true", "expected from and until, or hours such as \"08:00-18:30\""),
        ("sleep = true", "expected from and until, or hours such as \"08:00-18:30\""),
        (
            "from = '08:00', hours = '08:00-09:00', sleep = true",
            "expected either hours or from and until, found both",
        ),
        (
            "hours = '24:00-09:00', sleep = true",
            "a window cannot open at 24:00: write \"00:00\" and the next day",
        ),
    ] {
        assert_eq!(window(&format!("days = 'mon', {text}")), Err(error.to_string()), "{text}");
    }
    let error = window("hours = '08:00-09:00', sleep = true").unwrap_err();
    assert_eq!(error, "missing field `days`");
    let error = window("days = 'mon', hours = '08:00-09:00', keepawake = true").unwrap_err();
    assert!(error.starts_with("unknown field `keepawake`, expected one of"), "{error}");
    let error = window("days = 'mon', hours = '08:00-09:00', idle_timeout = 10").unwrap_err();
    assert!(error.contains("integer"), "{error}");
}

#[test]
fn an_error_is_found_where_it_was_made() {
    let file = "zone = 'Europe/Berlin'\nwindows = [\n  { days = 'mon', from = '8:00', until = '09:00', sleep = true },\n]";
    let error = toml::from_str::<Schedule>(file).unwrap_err();
    assert_eq!(&file[error.span().unwrap()], "'8:00'");
    assert!(toml::from_str::<Schedule>("zone = 'UTC'\nwindows = []\nwindow = []").is_err());
}

#[test]
fn the_example_of_the_documentation_is_true() {
    #[derive(serde::Deserialize)]
    struct Policy {
        schedule: Schedule,
    }
    let example: Vec<&str> = include_str!("../../schedule.rs")
        .lines()
        .skip_while(|line| *line != "//! ```toml")
        .skip(1)
        .take_while(|line| *line != "//! ```")
        .map(|line| line.trim_start_matches("//!"))
        .collect();
    let policy: Policy = toml::from_str(&example.join("\n")).unwrap();
    assert_eq!(policy.schedule, schedule("Europe/Berlin", &[OFFICE, NIGHT, WEEKEND]));
}

#[test]
fn a_schedule_is_written_as_it_is_read() {
    let json = serde_json::to_value(schedule("Europe/Berlin", &[OFFICE, NIGHT])).unwrap();
    assert_eq!(
        json,
        serde_json::json!({
            "zone": "Europe/Berlin",
            "windows": [
                { "days": "mon-fri", "from": "08:00", "until": "18:00", "keep_awake": true, "wake": true },
                { "days": "daily", "from": "22:00", "until": "06:00", "idle_timeout": "10m" },
            ],
        })
    );
}

proptest! {
    #[test]
    fn no_text_panics(text in ".{0,40}", near in "[-a-z0-9:,/ ]{0,24}") {
        for text in [text, near] {
            let _ = (text.parse::<Days>(), text.parse::<TimeOfDay>(), text.parse::<Hours>(), text.parse::<Zone>());
        }
    }
}
