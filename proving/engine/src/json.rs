//! JSON that keeps the order of members, because a tool's schema is rendered into the prompt in its own order.
//!
//! Invariant: of two equal members the last one's value counts, at the first one's place, as in Python.
//! Not here: numbers beyond what `serde_json` holds.

use std::borrow::Cow;
use std::fmt;

use prompts::tree::{PythonJson, Tree, python_json};

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::{Number, Value};

/// One JSON value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Json {
    #[default]
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// The member `name` of an object.
    pub(crate) fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Self::Object(members) => members
                .iter()
                .find(|(n, _)| n == name)
                .map(|(_, value)| value),
            _ => None,
        }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_array(&self) -> Option<&[Json]> {
        match self {
            Self::Array(all) => Some(all),
            _ => None,
        }
    }

    pub(crate) fn as_object(&self) -> Option<&[(String, Json)]> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// As Python's `json.dumps`, of what is beyond ASCII too unless that is to be escaped.
    pub(crate) fn dumps(&self, ascii: bool) -> String {
        let form = PythonJson {
            ascii,
            ..PythonJson::default()
        };
        python_json(&self.tree(), &form).unwrap_or_else(|| self.to_string())
    }

    /// The same value as it is rendered, whose texts are these.
    pub(crate) fn tree(&self) -> Tree<'_> {
        match self {
            Self::Null => Tree::Null,
            Self::Bool(is) => Tree::Bool(*is),
            Self::Number(number) => Tree::Number(number.clone()),
            Self::String(text) => Tree::from(text.as_str()),
            Self::Array(all) => Tree::List(all.iter().map(Self::tree).collect()),
            Self::Object(members) => {
                let mut tree = Vec::with_capacity(members.len());
                for (name, value) in members {
                    tree.push((Cow::Borrowed(name.as_str()), value.tree()));
                }
                Tree::Map(tree)
            }
        }
    }

    pub(crate) fn is_true(&self) -> bool {
        *self == Self::Bool(true)
    }

    /// The same value where order does not matter.
    pub(crate) fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Reads a typed request out of it; unknown members are passed over.
    pub(crate) fn into_typed<T: DeserializeOwned>(self) -> Result<T, serde_json::Error> {
        T::deserialize(self)
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

/// An object of these members, in this order.
pub(crate) fn object<'n>(members: impl IntoIterator<Item = (&'n str, Json)>) -> Json {
    let owned = |(name, value): (&str, Json)| (name.to_owned(), value);
    Json::Object(members.into_iter().map(owned).collect())
}

impl fmt::Display for Json {
    /// Compact JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tree().fmt(f)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.tree().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Tree::deserialize(deserializer).map(Self::from)
    }
}

impl From<Tree<'_>> for Json {
    fn from(tree: Tree<'_>) -> Self {
        match tree {
            Tree::Null => Self::Null,
            Tree::Bool(is) => Self::Bool(is),
            Tree::Number(number) => Self::Number(number),
            Tree::Text(text) => Self::String(text.into_owned()),
            Tree::List(all) => Self::Array(all.into_iter().map(Self::from).collect()),
            Tree::Map(members) => {
                let member = |(name, value): (Cow<'_, str>, Tree<'_>)| {
                    (name.into_owned(), Self::from(value))
                };
                Self::Object(members.into_iter().map(member).collect())
            }
        }
    }
}

impl<'de> IntoDeserializer<'de, serde_json::Error> for Json {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Json {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self {
            Self::Null => visitor.visit_unit(),
            Self::Bool(b) => visitor.visit_bool(b),
            Self::Number(n) => n.deserialize_any(visitor),
            Self::String(s) => visitor.visit_string(s),
            Self::Array(all) => visitor.visit_seq(SeqDeserializer::new(all.into_iter())),
            Self::Object(members) => visitor.visit_map(MapDeserializer::new(members.into_iter())),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self {
            Self::Null => visitor.visit_none(),
            some => visitor.visit_some(some),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.to_value().deserialize_enum(name, variants, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests;
