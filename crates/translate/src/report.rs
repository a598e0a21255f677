//! Reports of usage, read member by member.
//!
//! Invariant: what stands in a report is never a reason to lose an answer: what is not of the kind that its API documents is none.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A count of tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) Option<u64>);

/// An object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Told<T>(pub(crate) Option<T>);

/// A text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) Option<String>);

/// A list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

/// What is made of a value, which may be of any kind.
trait Lenient<'de>: Default {
    fn of_whole(_: u64) -> Self {
        Self::default()
    }

    fn of_text(_: &str) -> Self {
        Self::default()
    }

    fn of_list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }

    fn of_object<A: MapAccess<'de>>(mut object: A) -> Result<Self, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
}

impl Lenient<'_> for Count {
    fn of_whole(count: u64) -> Self {
        Self(Some(count))
    }
}

impl<'de, T: Deserialize<'de> + Default> Lenient<'de> for Told<T> {
    fn of_object<A: MapAccess<'de>>(object: A) -> Result<Self, A::Error> {
        let read = T::deserialize(MapAccessDeserializer::new(object))?;
        Ok(Self(Some(read)))
    }
}

impl Lenient<'_> for Word {
    fn of_text(text: &str) -> Self {
        Self(Some(text.to_owned()))
    }
}

impl<'de, T: Deserialize<'de> + Default> Lenient<'de> for List<T> {
    fn of_list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Self(items))
    }
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData))
    }
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData))
    }
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Told<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData))
    }
}

struct Any<T>(PhantomData<T>);

impl<'de, T: Lenient<'de>> Visitor<'de> for Any<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_u64<E>(self, count: u64) -> Result<T, E> {
        Ok(T::of_whole(count))
    }

    fn visit_i64<E>(self, _: i64) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_f64<E>(self, count: f64) -> Result<T, E> {
        // A count all the same, of whoever counts in numbers with a point.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is whole, and neither negative nor large"
        )]
        let whole = || count as u64;
        let is_whole = count.fract() == 0.0 && (0.0..9e15).contains(&count);
        Ok(if is_whole {
            T::of_whole(whole())
        } else {
            T::default()
        })
    }

    fn visit_bool<E>(self, _: bool) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(T::of_text(text))
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::of_list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<T, A::Error> {
        T::of_object(object)
    }
}
