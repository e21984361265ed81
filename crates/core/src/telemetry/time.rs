//! CML's times.
//!
//! They are seen without a zone (UTC is meant), with `Z`, with an offset, and with fractions of any length.
//! The usual fixed-width form is read by hand, because every event of a history has a time and reading it
//! is the filter's largest share of work; whatever is not of that form goes to jiff. Both agree wherever
//! both can read, which a property test holds them to.

use alloc::borrow::Cow;
use alloc::format;

use jiff::civil::DateTime;
use jiff::tz::Offset;

use crate::Timestamp;

/// Reads a time of CML; `None` if it is broken.
///
/// Finer than a microsecond is cut off. A time past the last instant that Drowse knows is that instant:
/// it will count as now, and a broken one would not count at all.
pub fn parse(text: &str) -> Option<Timestamp> {
    fixed_width(text.as_bytes()).or_else(|| general(text.trim()))
}

/// `YYYY-MM-DDTHH:MM:SS`, then perhaps `.` and digits, then perhaps `Z` or `±HH:MM`.
///
/// `None` means only that this is another form, or a leap second, or an odd offset.
fn fixed_width(text: &[u8]) -> Option<Timestamp> {
    let &[
        y0,
        y1,
        y2,
        y3,
        b'-',
        mo0,
        mo1,
        b'-',
        d0,
        d1,
        b'T',
        h0,
        h1,
        b':',
        mi0,
        mi1,
        b':',
        s0,
        s1,
        ref rest @ ..,
    ] = text
    else {
        return None;
    };
    let year = two_digits(y0, y1)? * 100 + two_digits(y2, y3)?;
    let days = days_since_epoch(year, two_digits(mo0, mo1)?, two_digits(d0, d1)?)?;
    let (hour, minute, second) = (two_digits(h0, h1)?, two_digits(mi0, mi1)?, two_digits(s0, s1)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (fraction, zone) = split_fraction(rest)?;
    let seconds = days * 86_400 + i64::from(hour * 3_600 + minute * 60 + second) - offset_seconds(zone)?;
    Some(Timestamp::from_micros(seconds * 1_000_000 + i64::from(fraction)).min(Timestamp::MAX))
}

#[inline]
fn two_digits(tens: u8, ones: u8) -> Option<u32> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens <= 9 && ones <= 9).then(|| u32::from(tens) * 10 + u32::from(ones))
}

/// The microseconds of a fraction and what follows it.
#[inline]
fn split_fraction(rest: &[u8]) -> Option<(u32, &[u8])> {
    let Some((b'.', digits)) = rest.split_first() else {
        return Some((0, rest));
    };
    let len = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if len == 0 {
        return None;
    }
    let (mut micros, mut place) = (0, 100_000);
    for digit in digits[..len].iter().take(6) {
        micros += u32::from(digit - b'0') * place;
        place /= 10;
    }
    Some((micros, &digits[len..]))
}

#[inline]
fn offset_seconds(zone: &[u8]) -> Option<i64> {
    match zone {
        [] | b"Z" => Some(0),
        &[sign @ (b'+' | b'-'), h0, h1, b':', m0, m1] => {
            let (hours, minutes) = (two_digits(h0, h1)?, two_digits(m0, m1)?);
            let seconds = i64::from(hours * 3_600 + minutes * 60);
            (hours <= 23 && minutes <= 59).then_some(if sign == b'-' { -seconds } else { seconds })
        }
        _ => None,
    }
}

/// Days from 1970-01-01 to a date of the Gregorian calendar; `None` if there is no such date.
#[inline]
fn days_since_epoch(year: u32, month: u32, day: u32) -> Option<i64> {
    /// Days of a common year before each month, and before the next year.
    const BEFORE: [u32; 13] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365];
    /// Days from 0001-01-01 to 1970-01-01, and the 400 years by which the count below begins sooner.
    const TO_EPOCH: i64 = 719_162 + 146_097;

    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let index = usize::try_from(month.checked_sub(1)?).ok()?;
    let (before, next) = (*BEFORE.get(index)?, *BEFORE.get(index + 1)?);
    let len = next - before + u32::from(is_leap && month == 2);
    if day < 1 || day > len {
        return None;
    }
    // Whole years before this one. 400 more leave the calendar as it is and keep year 0 above zero.
    let years = year + 399;
    let leap_days = years / 4 - years / 100 + years / 400;
    let days = years * 365 + leap_days + before + u32::from(is_leap && month > 2) + day - 1;
    Some(i64::from(days) - TO_EPOCH)
}

/// Everything else that jiff knows: lower-case `t`, a space, `+0100`, a comma, hours and minutes alone.
pub(super) fn general(text: &str) -> Option<Timestamp> {
    let text = nine_digits(text);
    let instant = match text.parse::<jiff::Timestamp>() {
        Ok(instant) => instant,
        Err(_) => Offset::UTC.to_timestamp(text.parse::<DateTime>().ok()?).ok()?,
    };
    // Down, not towards zero: otherwise the two readers would disagree before 1970.
    i64::try_from(instant.as_nanosecond().div_euclid(1_000)).ok().map(Timestamp::from_micros)
}

/// Cuts a fraction to the nine digits that jiff takes.
fn nine_digits(text: &str) -> Cow<'_, str> {
    let Some(point) = text.find(['.', ',']) else {
        return Cow::Borrowed(text);
    };
    let (whole, fraction) = text.split_at(point + 1);
    let len = fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len());
    if len <= 9 {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{whole}{}{}", &fraction[..9], &fraction[len..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn micros(text: &str) -> Option<i64> {
        parse(text).map(Timestamp::as_micros)
    }

    #[test]
    fn a_time_without_a_zone_is_utc() {
        let expected = "2025-11-19T21:11:59Z".parse().ok();
        for text in [
            "2025-11-19T21:11:59",
            "2025-11-19T21:11:59Z",
            "2025-11-19T21:11:59.000",
            "2025-11-19T22:11:59+01:00",
            "2025-11-19T15:41:59-05:30",
            "2025-11-20T07:11:59.0+10:00",
            "2025-11-19 21:11:59",
            "2025-11-19t21:11:59z",
            "20251119T211159",
            "2025-11-19T22:11:59+0100",
            " 2025-11-19T21:11:59\n",
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn fractions_have_any_number_of_digits() {
        let whole = micros("2025-11-19T21:11:59").unwrap();
        for (fraction, expected) in [
            ("5", 500_000),
            ("25", 250_000),
            ("123456", 123_456),
            ("1234567", 123_456),
            ("123456789", 123_456),
            ("999999999999999999999999", 999_999),
        ] {
            for zone in ["", "Z", "+00:00"] {
                let fixed = format!("2025-11-19T21:11:59.{fraction}{zone}");
                let other = format!("2025-11-19 21:11:59,{fraction}{zone}");
                assert_eq!(micros(&fixed), Some(whole + expected), "{fixed}");
                assert_eq!(micros(&other), Some(whole + expected), "{other}");
            }
        }
    }

    #[test]
    fn what_is_no_time_is_broken() {
        for text in [
            "",
            "yesterday",
            "1763586719",
            "2025-13-01T00:00:00",
            "2025-02-29T00:00:00",
            "2025-11-19T24:00:01",
            "2025-11-19T21:60:00",
            "2025-11-19T21:11:59.",
            "2025-11-19T21:11:59.Z",
            "2025-11-19T21:11:59 UTC",
            "2025-11-19T21:11:59+99:00",
            "2025-11-19T21:11:59+01:0",
            "２025-11-19T21:11:59",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_leap_second_and_the_end_of_time_are_times() {
        assert_eq!(parse("2016-12-31T23:59:60"), parse("2016-12-31T23:59:59"));
        assert_eq!(parse("9999-12-31T23:59:59"), Some(Timestamp::MAX));
        assert_eq!(micros("1969-12-31T23:59:59.5"), Some(-500_000));
        assert_eq!(micros("2024-02-29T00:00:00"), Some(1_709_164_800_000_000));
    }

    proptest! {
        #[test]
        fn both_readers_agree(
            (year, month, day) in (0u16..9999, 0u8..14, 0u8..33),
            (hour, minute, second) in (0u8..26, 0u8..62, 0u8..62),
            fraction in "(\\.[0-9]{0,12})?",
            zone in "(Z|[+-](0[0-9]|1[0-9]|2[0-5]):[0-6][0-9])?",
        ) {
            let text =
                format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}{zone}");
            let fast = fixed_width(text.as_bytes());
            prop_assert!(fast.is_none() || fast == general(&text), "{}: {:?} and {:?}", text, fast, general(&text));
        }

        #[test]
        fn the_usual_forms_need_no_second_reader(
            secs in 0i64..253_402_200_000,
            fraction in "(\\.[0-9]{1,9})?",
            zone in "(Z|[+-](0[0-9]|1[0-9]|2[0-3]):[0-5][0-9])?",
        ) {
            let civil = Timestamp::from_secs(secs).to_string();
            let text = format!("{}{fraction}{zone}", civil.trim_end_matches('Z'));
            prop_assert!(fixed_width(text.as_bytes()).is_some(), "{}", text);
            prop_assert_eq!(fixed_width(text.as_bytes()), general(&text), "{}", text);
        }

        #[test]
        fn no_text_panics(text in ".{0,40}", tail in "[0-9.,:TZ+\\-]{0,40}") {
            let _ = (parse(&text), parse(&tail), parse(&format!("2025-11-19T21:11:59{tail}")));
        }
    }
}
