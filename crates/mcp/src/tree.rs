//! A text of JSON as a tree that keeps what readers differ about: members of one name, each as often as it stands.
//!
//! Invariant: no tree has more values than its reader wants; how deep it nests is the parser's bound (128).
//! Not here: what is made of one (`arguments`, `pin`), messages on their way, of which no tree is built (`envelope`).

use std::cell::Cell;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Tree {
    Null,
    Bool(bool),
    Int(i64),
    Large(u64),
    Float(f64),
    Text(String),
    List(Vec<Tree>),
    /// Members in the order in which they stand.
    Map(Vec<(String, Tree)>),
}

impl Tree {
    /// Reads one of so many values at most, of lists and members each counted; none where it is none, or larger.
    pub(crate) fn read(text: &[u8], values_max: usize) -> Option<Self> {
        let left = Cell::new(values_max);
        let mut parser = serde_json::Deserializer::from_slice(text);
        let tree = Seed(&left).deserialize(&mut parser).ok()?;
        parser.end().ok()?;
        Some(tree)
    }
}

/// Reads one value, and counts down.
#[derive(Clone, Copy)]
struct Seed<'a>(&'a Cell<usize>);

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Tree;

    fn deserialize<D: Deserializer<'de>>(self, of: D) -> Result<Tree, D::Error> {
        let left = self.0.get().checked_sub(1);
        self.0
            .set(left.ok_or_else(|| de::Error::custom("too many values"))?);
        of.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(i64::try_from(value).map_or(Tree::Large(value), Tree::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Tree, E> {
        Ok(Tree::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut of: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = of.next_element_seed(self)? {
            list.push(value);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut of: A) -> Result<Tree, A::Error> {
        let mut map = Vec::new();
        while let Some(name) = of.next_key::<String>()? {
            map.push((name, of.next_value_seed(self)?));
        }
        Ok(Tree::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::Tree;

    #[test]
    fn members_of_one_name_are_all_kept_and_too_many_values_are_none() {
        let tree = Tree::read(br#"{"a":1,"a":[true,null],"b":"x"}"#, 6).expect("a tree");
        let Tree::Map(members) = tree else {
            panic!("a map");
        };
        let names: Vec<&str> = members.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["a", "a", "b"]);
        assert_eq!(members[1].1, Tree::List(vec![Tree::Bool(true), Tree::Null]));
        assert_eq!(Tree::read(br#"{"a":1,"a":[true,null],"b":"x"}"#, 5), None);
        assert_eq!(Tree::read(b"{} {}", 9), None);
        assert_eq!(Tree::read(&[b'['; 1_000], 10_000), None);
        let large = Tree::read(b"[18446744073709551615,-1,1.5]", 9);
        let wanted = vec![Tree::Large(u64::MAX), Tree::Int(-1), Tree::Float(1.5)];
        assert_eq!(large, Some(Tree::List(wanted)));
    }
}
