//! Values of the file, one reader for each kind.
//!
//! What the policy table has a kind for is read by the core, so that a duration is the same everywhere.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use toml::de::DeValue;

use drowse_core::policy::{Kind, Raw, Value};
use drowse_core::savings::Money;

use super::problem::Fault;
use super::section::describe;

/// The value as the core takes it.
pub(super) fn raw(value: &DeValue<'_>) -> Raw {
    match value {
        DeValue::String(text) => Raw::Text(text.to_string()),
        // A number that does not fit is still a number; the core says what belongs there.
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| Raw::Float(f64::INFINITY), Raw::Integer),
        DeValue::Float(number) => number.as_str().parse().map_or(Raw::Float(f64::NAN), Raw::Float),
        DeValue::Boolean(flag) => Raw::Bool(*flag),
        DeValue::Datetime(instant) => Raw::Text(instant.to_string()),
        DeValue::Array(items) => Raw::List(items.iter().map(|item| raw(item.get_ref())).collect()),
        DeValue::Table(_) => Raw::Table,
    }
}

/// A value of a kind that the core knows.
pub(super) fn value(kind: Kind, value: &DeValue<'_>) -> Result<Value, Fault> {
    Ok(Value::read(kind, &raw(value))?)
}

fn wrong(expected: impl Into<String>, found: &DeValue<'_>) -> Fault {
    Fault::expected(expected, describe(found))
}

/// A text that is not empty.
pub(super) fn text(value: &DeValue<'_>) -> Result<String, Fault> {
    match value.as_str() {
        Some(text) if !text.trim().is_empty() => Ok(text.to_owned()),
        _ => Err(wrong("a text", value)),
    }
}

/// A text that is shown in tables and compared with others. It may come from the labels of somebody's container.
pub(super) fn word(value: &DeValue<'_>) -> Result<String, Fault> {
    let text = text(value)?;
    if text.chars().any(char::is_control) || text.chars().count() > LONGEST_WORD {
        return Err(wrong("a text of at most 256 characters in one line", value));
    }
    Ok(text)
}

const LONGEST_WORD: usize = 256;

pub(super) fn path(value: &DeValue<'_>) -> Result<PathBuf, Fault> {
    match text(value) {
        Ok(path) => Ok(path.into()),
        Err(_) => Err(wrong("the path of a file", value)),
    }
}

pub(super) fn flag(value: &DeValue<'_>) -> Result<bool, Fault> {
    value.as_bool().ok_or_else(|| wrong("true or false", value))
}

/// A duration of at least a second.
pub(super) fn interval(value: &DeValue<'_>) -> Result<Duration, Fault> {
    if let Value::Duration(duration) = self::value(Kind::Interval, value)? {
        Ok(duration)
    } else {
        Err(wrong("a duration", value))
    }
}

pub(super) fn count(least: u32, most: u32) -> impl Fn(&DeValue<'_>) -> Result<u32, Fault> {
    move |value| {
        if let Value::Count(count) = self::value(Kind::Count { least, most }, value)? {
            Ok(count)
        } else {
            Err(wrong("a whole number", value))
        }
    }
}

pub(super) fn size(value: &DeValue<'_>) -> Result<u64, Fault> {
    if let Value::Size(bytes) = self::value(Kind::Size, value)? {
        Ok(bytes)
    } else {
        Err(wrong("a size", value))
    }
}

/// A program and its arguments.
pub(super) fn command(value: &DeValue<'_>) -> Result<Vec<String>, Fault> {
    if let Value::Command(words) = self::value(Kind::Command, value)?
        && !words[0].is_empty()
        // The system ends an argument there.
        && words.iter().all(|word| !word.contains('\0'))
    {
        return Ok(words);
    }
    Err(wrong(Kind::Command.expected(), value))
}

/// A list of texts, at least one.
pub(super) fn texts(expected: &'static str) -> impl Fn(&DeValue<'_>) -> Result<Vec<String>, Fault> {
    move |value| {
        let items = value.as_array().filter(|items| !items.is_empty());
        items
            .ok_or_else(|| wrong(expected, value))?
            .iter()
            .map(|item| text(item.get_ref()).map_err(|_| wrong(expected, item.get_ref())))
            .collect()
    }
}

/// An amount of money that somebody could have to pay.
pub(super) fn price(value: &DeValue<'_>) -> Result<Money, Fault> {
    let price = match raw(value) {
        Raw::Integer(number) => number.to_string().parse().ok(),
        Raw::Float(number) => Money::from_number(number).ok(),
        Raw::Null | Raw::Bool(_) | Raw::Text(_) | Raw::List(_) | Raw::Schedule(_) | Raw::Table => None,
    };
    price
        .filter(|price| *price >= Money::ZERO)
        .ok_or_else(|| wrong("a price of at least 0 such as 0.34", value))
}

/// An address and a port to listen on; port 0 lets the system choose.
pub(super) fn address(value: &DeValue<'_>) -> Result<SocketAddr, Fault> {
    value
        .as_str()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| wrong("an address and a port such as \"127.0.0.1:8001\"", value))
}

/// `http://HOST…` or `https://HOST…`, without a name and password in it.
pub(super) fn url(value: &DeValue<'_>) -> Result<String, Fault> {
    let expected = || wrong("a URL such as \"https://cml.example:443\"", value);
    let text = value.as_str().ok_or_else(expected)?;
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")).ok_or_else(expected)?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('@') {
        return Err(Fault::Secret { instead: "the URL without it" });
    }
    let is_written_well = !host.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control());
    if is_written_well { Ok(text.to_owned()) } else { Err(expected()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T>(read: impl Fn(&DeValue<'_>) -> Result<T, Fault>, toml: &str) -> Result<T, String> {
        read(DeValue::parse(toml).unwrap().get_ref()).map_err(|fault| fault.to_string())
    }

    #[test]
    fn prices_are_amounts_that_are_not_negative() {
        for (toml, micros) in [("0.34", 340_000), ("0", 0), ("2", 2_000_000), ("0.000001", 1)] {
            assert_eq!(read(price, toml), Ok(Money::from_micros(micros)), "{toml}");
        }
        for (toml, found) in [
            ("-0.5", "the number -0.5"),
            ("nan", "the number nan"),
            ("1e300", "the number 1e300"),
            ("99999999999999999999", "the number 99999999999999999999"),
            ("\"0.34\"", "\"0.34\""),
        ] {
            let error = format!("expected a price of at least 0 such as 0.34, found {found}");
            assert_eq!(read(price, toml), Err(error), "{toml}");
        }
    }

    #[test]
    fn addresses_have_a_port() {
        assert!(read(address, "\"127.0.0.1:0\"").is_ok());
        assert!(read(address, "\"[::1]:80\"").is_ok());
        for toml in ["\"127.0.0.1\"", "\"localhost:80\"", "80", "\":80\"", "\"1.2.3.4:99999\""] {
            assert!(read(address, toml).is_err(), "{toml}");
        }
    }

    #[test]
    fn urls_name_a_host_and_no_secret() {
        for toml in ["\"http://127.0.0.1:5000\"", "\"https://cml.example/x?y\""] {
            assert!(read(url, toml).is_ok(), "{toml}");
        }
        for toml in
            ["\"cml.example\"", "\"ftp://x\"", "\"https://\"", "\"https:///x\"", "\"http://a b\"", "3"]
        {
            assert!(read(url, toml).unwrap_err().starts_with("expected a URL"), "{toml}");
        }
        assert!(read(url, "\"https://me:pw@host\"").unwrap_err().starts_with("secrets do not stand"));
    }

    #[test]
    fn a_number_that_does_not_fit_is_no_panic() {
        let error = read(count(1, 10), "99999999999999999999").unwrap_err();
        assert!(error.starts_with("expected a whole number from 1 to 10"), "{error}");
        assert!(read(interval, "-9223372036854775808").is_err());
    }
}
