//! Money without a currency, exact to a millionth.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::ops::{Add, Sub};
use core::str::FromStr;
use core::time::Duration;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An amount in millionths of a unit, so that sums over a fleet and a year do not drift as floats do.
///
/// Arithmetic saturates. Which currency it is, the reader of the price list knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money(i64);

const MICROS: u32 = 1_000_000;
const MICROS_PER_HOUR: i128 = 3_600_000_000;

/// A text or number that is not an amount.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an amount such as 0.34, found {found:?}")]
pub struct NotMoney {
    found: String,
}

impl Money {
    pub const ZERO: Money = Money(0);

    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Taken as a price per hour: what `duration` costs, rounded down so that no saving is overstated.
    #[must_use]
    pub fn for_hours(self, duration: Duration) -> Self {
        let micros = i128::try_from(duration.as_micros()).unwrap_or(i128::MAX);
        Self::saturating(i128::from(self.0).saturating_mul(micros).div_euclid(MICROS_PER_HOUR))
    }

    /// The decimal number that `value` is written as: 0.34 is 34 hundredths, not the float next to it.
    pub fn from_number(value: f64) -> Result<Self, NotMoney> {
        format!("{value}").parse()
    }

    fn saturating(micros: i128) -> Self {
        Self(i64::try_from(micros).unwrap_or(if micros < 0 { i64::MIN } else { i64::MAX }))
    }
}

impl Add for Money {
    type Output = Money;
    fn add(self, other: Money) -> Money {
        Money(self.0.saturating_add(other.0))
    }
}

impl Sub for Money {
    type Output = Money;
    fn sub(self, other: Money) -> Money {
        Money(self.0.saturating_sub(other.0))
    }
}

impl FromStr for Money {
    type Err = NotMoney;

    /// Reads `0.34`, `12`, `-0.5`. What is finer than a millionth is cut off: as a price per hour it is
    /// less than a hundredth in a year.
    fn from_str(text: &str) -> Result<Self, NotMoney> {
        let not_money = || NotMoney { found: text.to_string() };
        let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(fraction) {
            return Err(not_money());
        }
        let fraction: i64 = fraction
            .bytes()
            .chain(core::iter::repeat(b'0'))
            .take(6)
            .fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
        whole
            .parse::<i64>()
            .ok()
            .and_then(|whole| whole.checked_mul(i64::from(MICROS))?.checked_add(fraction))
            .map(|micros| Self(sign * micros))
            .ok_or_else(not_money)
    }
}

impl fmt::Display for Money {
    /// With two decimals at least: `12.50`, `0.000001`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let micros = self.0.unsigned_abs();
        let (whole, fraction) = (micros / u64::from(MICROS), micros % u64::from(MICROS));
        let fraction = format!("{fraction:06}");
        let (cents, rest) = fraction.split_at(2);
        write!(f, "{sign}{whole}.{cents}{}", rest.trim_end_matches('0'))
    }
}

impl Serialize for Money {
    /// As a number, like the prices in the configuration file.
    #[expect(
        clippy::cast_precision_loss,
        reason = "beyond nine thousand million units a millionth may be lost in print"
    )]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0 as f64 / f64::from(MICROS))
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Amount;

        impl Visitor<'_> for Amount {
            type Value = Money;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an amount such as 0.34")
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Money, E> {
                Money::from_number(value).map_err(E::custom)
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Money, E> {
                value.to_string().parse().map_err(E::custom)
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Money, E> {
                value.to_string().parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_any(Amount)
    }
}
