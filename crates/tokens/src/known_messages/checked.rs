//! JSON that is read as a tree would be, faults included, and not kept.
//!
//! Not here: the tree (`tree`).

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};

use prompts::tree::Name;

/// Whether this is one value of at most so many levels of lists and objects.
pub(super) fn is_json(json: &str, levels: usize) -> bool {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    Checking { levels }.deserialize(&mut deserializer).is_ok() && deserializer.end().is_ok()
}

#[derive(Clone, Copy)]
struct Checking {
    levels: usize,
}

impl Checking {
    fn deeper<E: Error>(self) -> Result<Self, E> {
        let levels = self.levels.checked_sub(1);
        let levels = levels.ok_or_else(|| E::custom("recursion limit exceeded"))?;
        Ok(Self { levels })
    }
}

impl<'de> DeserializeSeed<'de> for Checking {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Checking {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let deeper = self.deeper()?;
        while items.next_element_seed(deeper)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let deeper = self.deeper()?;
        while members.next_key::<Name<'_>>()?.is_some() {
            members.next_value_seed(deeper)?;
        }
        Ok(())
    }
}
