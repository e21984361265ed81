//! One entry of CML's history, as it was sent.
//!
//! Any JSON value can be read as an [`Event`]. What a good one needs and this one lacks is `None`: an error
//! from here would end the array around it, and one bad event must cost no more than itself.
//! Texts are borrowed where the parser can lend them.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::mark::Fnv;

/// One entry of the history.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event<'a> {
    /// What kind of thing happened; `None` if it is missing or no text.
    pub category: Option<Cow<'a, str>>,
    /// When it happened, as it was written; `None` if it is missing or no text.
    pub timestamp: Option<Cow<'a, str>>,
    /// Who did it, from `user_id` in the data.
    pub user: User<'a>,
    /// The other fields of the data, in the order they came.
    pub data: Vec<(Cow<'a, str>, Value<'a>)>,
}

/// Who caused an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum User<'a> {
    /// The data have no `user_id`, or there are none.
    #[default]
    Missing,
    /// The `user_id` is null.
    Null,
    /// The `user_id` is a number, a list or the like; it is kept among the data.
    NotText,
    /// The `user_id`.
    Text(Cow<'a, str>),
}

/// One value of an event's data.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// Null.
    Null,
    /// True or false.
    Bool(bool),
    /// A negative whole number.
    Negative(i64),
    /// Any other whole number.
    Whole(u64),
    /// Any other number.
    Float(f64),
    /// A text.
    Text(Cow<'a, str>),
    /// A list or an object, of which only a fingerprint is kept: enough to tell two events apart.
    Nested(u64),
}

impl<'a> Value<'a> {
    fn into_text(self) -> Option<Cow<'a, str>> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(super) fn fingerprint(&self, into: Fnv) -> Fnv {
        match self {
            Self::Null => into.byte(0),
            Self::Bool(value) => into.byte(1).byte(u8::from(*value)),
            Self::Negative(value) => into.byte(2).bytes(&value.to_le_bytes()),
            Self::Whole(value) => into.byte(3).bytes(&value.to_le_bytes()),
            Self::Float(value) => into.byte(4).bytes(&value.to_bits().to_le_bytes()),
            Self::Text(text) => into.byte(5).text(text),
            Self::Nested(value) => into.byte(6).bytes(&value.to_le_bytes()),
        }
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => fmt::Display::fmt(value, f),
            Self::Negative(value) => fmt::Display::fmt(value, f),
            Self::Whole(value) => fmt::Display::fmt(value, f),
            Self::Float(value) => fmt::Display::fmt(value, f),
            Self::Text(text) => f.write_str(text),
            Self::Nested(_) => f.write_str("…"),
        }
    }
}

/// What can be made of any JSON value, whatever its type.
trait Lenient<'de>: Sized {
    /// From all that is no object; a list comes as [`Value::Nested`].
    fn from_value(value: Value<'de>) -> Self;
    /// From an object.
    fn from_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error>;
}

impl<'de> Lenient<'de> for Value<'de> {
    fn from_value(value: Value<'de>) -> Self {
        value
    }

    fn from_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut sum = 0u64;
        while let Some((key, value)) = map.next_entry::<Value<'de>, Value<'de>>()? {
            // A sum, because the order of the fields means nothing and may change from fetch to fetch.
            sum = sum.wrapping_add(value.fingerprint(key.fingerprint(Fnv::new())).get());
        }
        Ok(Self::Nested(sum))
    }
}

/// The `data` of an event.
#[derive(Default)]
struct Data<'a> {
    user: User<'a>,
    fields: Vec<(Cow<'a, str>, Value<'a>)>,
}

impl<'de> Data<'de> {
    fn add(&mut self, key: Cow<'de, str>, value: Value<'de>) {
        if key == "user_id" {
            match value {
                Value::Text(id) => self.user = User::Text(id),
                Value::Null => self.user = User::Null,
                Value::Bool(_)
                | Value::Negative(_)
                | Value::Whole(_)
                | Value::Float(_)
                | Value::Nested(_) => {
                    self.user = User::NotText;
                    self.fields.push((key, value));
                }
            }
        } else {
            self.fields.push((key, value));
        }
    }
}

impl<'de> Lenient<'de> for Data<'de> {
    fn from_value(value: Value<'de>) -> Self {
        if value == Value::Null {
            return Self::default();
        }
        // Under a name, so that it is shown and tells two events apart.
        Self { user: User::Missing, fields: vec![(Cow::Borrowed("data"), value)] }
    }

    fn from_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut data = Self::default();
        while let Some((key, value)) = map.next_entry::<Value<'de>, Value<'de>>()? {
            if let Some(key) = key.into_text() {
                data.add(key, value);
            }
        }
        Ok(data)
    }
}

impl<'de> Lenient<'de> for Event<'de> {
    fn from_value(_: Value<'de>) -> Self {
        Self::default()
    }

    fn from_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut event = Self::default();
        while let Some(key) = map.next_key::<Value<'de>>()? {
            match key.into_text().as_deref() {
                Some("category") => event.category = map.next_value::<Value<'de>>()?.into_text(),
                Some("timestamp") => event.timestamp = map.next_value::<Value<'de>>()?.into_text(),
                Some("data") => {
                    let data = map.next_value::<Data<'de>>()?;
                    (event.user, event.data) = (data.user, data.fields);
                }
                Some(_) | None => {
                    map.next_value::<serde::de::IgnoredAny>()?;
                }
            }
        }
        Ok(event)
    }
}

/// Takes whatever comes and makes a `T` of it.
struct Any<T>(PhantomData<T>);

impl<'de, T: Lenient<'de>> Visitor<'de> for Any<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::from_value(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<T, E> {
        Ok(T::from_value(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<T, E> {
        Ok(T::from_value(u64::try_from(value).map_or(Value::Negative(value), Value::Whole)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<T, E> {
        Ok(T::from_value(Value::Whole(value)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<T, E> {
        Ok(T::from_value(Value::Float(value)))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<T, E> {
        Ok(T::from_value(Value::Text(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(T::from_value(Value::Text(Cow::Owned(String::from(text)))))
    }

    fn visit_string<E>(self, text: String) -> Result<T, E> {
        Ok(T::from_value(Value::Text(Cow::Owned(text))))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<T, A::Error> {
        let mut hash = Fnv::new();
        while let Some(item) = seq.next_element::<Value<'de>>()? {
            hash = item.fingerprint(hash);
        }
        Ok(T::from_value(Value::Nested(hash.get())))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::from_map(map)
    }
}

impl<'de> Deserialize<'de> for Value<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Data<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Event<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData))
    }
}
