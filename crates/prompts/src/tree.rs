//! A JSON document with its members in order, because templates and tool descriptions render them in order.
//!
//! Invariant: a name that is repeated keeps its first place and its last value, as in Python's `json`.
//! Not here: scanning a body for a few members (`wire::json`).

mod lax;
mod numbers;
mod python;

pub use python::{PythonJson, python_float, python_json};

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Any JSON value; text without escapes is that of the document.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree<'a> {
    /// Null.
    Null,
    /// True or false.
    Bool(bool),
    /// A number.
    Number(serde_json::Number),
    /// A string.
    Text(Cow<'a, str>),
    /// An array.
    List(Vec<Tree<'a>>),
    /// An object.
    Map(Vec<Member<'a>>),
}

/// A member of an object.
pub type Member<'a> = (Cow<'a, str>, Tree<'a>);

impl<'a> Tree<'a> {
    /// Reads a document of at most so many levels of lists and objects, and no more than the parser's own limit.
    ///
    /// # Errors
    /// When it is none.
    pub fn read(json: &'a str, levels: usize) -> Result<Self, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let tree = Growing { levels }.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(tree)
    }

    /// The member of this name, unless it is null.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Self> {
        self.member(name)
            .filter(|value| !matches!(value, Self::Null))
    }

    /// The member of this name, be it null.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Map(members) => members
                .iter()
                .find(|(key, _)| key == name)
                .map(|(_, value)| value),
            _ => None,
        }
    }

    /// It as a text, if it is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Its items, if it is a list.
    #[must_use]
    pub fn list(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    /// The member of this name, if it is a text.
    #[must_use]
    pub fn get_text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Self::text)
    }

    /// Whether it is the flag that is true.
    #[must_use]
    pub const fn is_true(&self) -> bool {
        matches!(self, Self::Bool(true))
    }

    /// About as many bytes as it takes to hand it on.
    #[must_use]
    pub fn bytes(&self) -> usize {
        const EACH: usize = 8;
        EACH + match self {
            Self::Null | Self::Bool(_) | Self::Number(_) => 0,
            Self::Text(text) => text.len(),
            Self::List(items) => items.iter().map(Self::bytes).sum(),
            Self::Map(members) => {
                let bytes = |(name, value): &Member<'_>| name.len() + value.bytes();
                members.iter().map(bytes).sum()
            }
        }
    }

    /// Builds an object.
    #[must_use]
    pub fn map<const N: usize>(members: [(&'a str, Self); N]) -> Self {
        Self::Map(
            members
                .map(|(name, value)| (Cow::Borrowed(name), value))
                .into(),
        )
    }
}

impl<'a> From<&'a str> for Tree<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

/// Compact JSON.
impl fmt::Display for Tree<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Tree<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // How deep it may be is the parser's business.
        let levels = usize::MAX;
        Growing { levels }.deserialize(deserializer)
    }
}

/// A tree that is read.
#[derive(Clone, Copy)]
struct Growing {
    /// Of lists and objects, one in the other.
    levels: usize,
}

impl Growing {
    fn deeper<E: Error>(self) -> Result<Self, E> {
        let levels = self.levels.checked_sub(1);
        let levels = levels.ok_or_else(|| E::custom("recursion limit exceeded"))?;
        Ok(Self { levels })
    }
}

impl<'de> DeserializeSeed<'de> for Growing {
    type Value = Tree<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Growing {
    type Value = Tree<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Tree<'de>, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree<'de>, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree<'de>, E> {
        Ok(Tree::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree<'de>, E> {
        Ok(Tree::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree<'de>, E> {
        Ok(serde_json::Number::from_f64(value).map_or(Tree::Null, Tree::Number))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Tree<'de>, E> {
        Ok(Tree::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree<'de>, E> {
        Ok(Tree::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_string<E>(self, value: String) -> Result<Tree<'de>, E> {
        Ok(Tree::Text(Cow::Owned(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree<'de>, A::Error> {
        let deeper = self.deeper()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(deeper)? {
            reserve(&mut list, 1);
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree<'de>, A::Error> {
        let deeper = self.deeper()?;
        let mut members = Members::default();
        while let Some(Name(name)) = entries.next_key()? {
            members.put(name, entries.next_value_seed(deeper)?);
        }
        Ok(Tree::Map(members.list))
    }
}

/// The name of a member.
#[derive(Debug)]
pub struct Name<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Name<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Naming).map(Self)
    }
}

struct Naming;

impl<'de> Visitor<'de> for Naming {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

/// The members of an object, as they are put together.
#[derive(Debug, Default)]
pub struct Members<'a> {
    /// All of them, in order.
    pub list: Vec<Member<'a>>,
    /// Where each name stands, once there are more than [`FEW`].
    places: HashMap<Cow<'a, str>, usize>,
}

/// Room for the first few: a body of nothing but the shortest lists and objects would hold four places for each.
fn reserve<T>(list: &mut Vec<T>, few: usize) {
    if list.capacity() == 0 {
        list.reserve_exact(few);
    }
}

/// Names that are compared one by one.
const FEW: usize = 16;

impl<'a> Members<'a> {
    /// Adds a member, or gives the one of this name another value.
    pub fn put(&mut self, name: Cow<'a, str>, value: Tree<'a>) {
        if let Some((_, before)) = self.place(&name).and_then(|at| self.list.get_mut(at)) {
            *before = value;
            return;
        }
        if self.list.len() == FEW {
            let names = self.list.iter().enumerate();
            self.places = names.map(|(at, (name, _))| (name.clone(), at)).collect();
        }
        if self.list.len() >= FEW {
            self.places.insert(name.clone(), self.list.len());
        }
        reserve(&mut self.list, 2);
        self.list.push((name, value));
    }

    fn place(&self, name: &str) -> Option<usize> {
        if self.list.len() <= FEW {
            return self.list.iter().position(|(other, _)| other == name);
        }
        self.places.get(name).copied()
    }
}

impl Serialize for Tree<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(number) => number.serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(item)?;
                }
                list.end()
            }
            Self::Map(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (name, value) in members {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    }
}
