//! A JSON document with its members in order, because templates and tool descriptions render them in order.
//!
//! Invariant: a name that is repeated keeps its first place and its last value, as in Python's `json`.
//! Not here: scanning a body for a few members (`wire::json`).

mod numbers;
mod python;

pub(crate) use python::{PythonJson, python_float, python_json};

use std::collections::HashMap;
use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Any JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tree {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    Text(String),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
}

impl Tree {
    /// The member of this name, unless it is null.
    pub(crate) fn get(&self, name: &str) -> Option<&Tree> {
        self.member(name)
            .filter(|value| !matches!(value, Self::Null))
    }

    /// The member of this name, be it null.
    pub(crate) fn member(&self, name: &str) -> Option<&Tree> {
        match self {
            Self::Map(members) => members
                .iter()
                .find(|(key, _)| key == name)
                .map(|(_, value)| value),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn list(&self) -> Option<&[Tree]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn get_text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Self::text)
    }

    pub(crate) fn is_true(&self) -> bool {
        matches!(self, Self::Bool(true))
    }

    /// Builds an object.
    pub(crate) fn map<const N: usize>(members: [(&str, Tree); N]) -> Self {
        Self::Map(members.map(|(name, value)| (name.to_owned(), value)).into())
    }
}

impl From<&str> for Tree {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Compact JSON.
impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Growing)
    }
}

struct Growing;

impl<'de> Visitor<'de> for Growing {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(serde_json::Number::from_f64(value).map_or(Tree::Null, Tree::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Tree, E> {
        Ok(Tree::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let mut members = Members::default();
        while let Some((name, value)) = entries.next_entry()? {
            members.put(name, value);
        }
        Ok(Tree::Map(members.list))
    }
}

/// The members of an object, as they are read.
#[derive(Default)]
struct Members {
    list: Vec<(String, Tree)>,
    /// Where each name stands, once there are more than [`FEW`].
    places: HashMap<String, usize>,
}

/// Names that are compared one by one.
const FEW: usize = 16;

impl Members {
    fn put(&mut self, name: String, value: Tree) {
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
        self.list.push((name, value));
    }

    fn place(&self, name: &str) -> Option<usize> {
        if self.list.len() <= FEW {
            return self.list.iter().position(|(other, _)| other == name);
        }
        self.places.get(name).copied()
    }
}

impl Serialize for Tree {
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
