//! The digest of a tool's definition: of all that a model and a client are told of it, but its name.
//!
//! Invariant: what no reader of JSON tells apart (blanks, the order of members, how a text is escaped) has one digest; what some reader could
//! tell apart has two.
//! Not here: what is pinned ([`policy::mcp::Pins`]).

use std::fmt::Write as _;

use policy::mcp::Digest;
use ring::digest::{SHA256, digest};

use crate::tree::Tree;

/// Most values in a definition that is compared whatever the order of its members; of a larger one the text is.
const VALUES_MAX: usize = 10_000;
/// What stands before the digits.
const MARK: &str = "sha256:";
/// Members of a definition that say nothing of what the tool is: its name, which the pin has, and what is between server and client.
const LEFT_OUT: [&str; 2] = ["name", "_meta"];

/// The digest of an item as its server wrote it. One that is no object has that of its text.
#[must_use]
pub fn of(item: &[u8]) -> Digest {
    let mut canonical = String::new();
    match Tree::read(item, VALUES_MAX) {
        Some(Tree::Map(mut members)) => {
            members.retain(|(name, _)| !LEFT_OUT.contains(&&**name));
            write_map(members, &mut canonical);
        }
        _ => canonical = String::from_utf8_lossy(item).into_owned(),
    }
    let mut out = Digest::default();
    for (to, from) in out
        .iter_mut()
        .zip(digest(&SHA256, canonical.as_bytes()).as_ref())
    {
        *to = *from;
    }
    out
}

/// A digest as it is written.
#[must_use]
pub fn shown(digest: &Digest) -> String {
    let mut out = MARK.to_owned();
    for byte in digest {
        let _fits = write!(out, "{byte:02x}");
    }
    out
}

fn write(tree: Tree, out: &mut String) {
    let _fits = match tree {
        Tree::Null => write!(out, "null"),
        Tree::Bool(value) => write!(out, "{value}"),
        Tree::Int(value) => write!(out, "{value}"),
        Tree::Large(value) => write!(out, "{value}"),
        Tree::Float(value) => write!(out, "{value:?}"),
        // As Rust escapes it: no other text is written so.
        Tree::Text(text) => write!(out, "{text:?}"),
        Tree::List(list) => {
            out.push('[');
            for value in list {
                write(value, out);
                out.push(',');
            }
            out.push(']');
            Ok(())
        }
        Tree::Map(members) => {
            write_map(members, out);
            Ok(())
        }
    };
}

/// By name, those of one name in the order in which they stand: readers take the first or the last.
fn write_map(mut members: Vec<(String, Tree)>, out: &mut String) {
    members.sort_by(|(a, _), (b, _)| a.cmp(b));
    out.push('{');
    for (name, value) in members {
        let _fits = write!(out, "{name:?}:");
        write(value, out);
        out.push(',');
    }
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_has_one_digest_however_it_is_written_and_another_where_anything_of_it_changes()
    {
        let one = of(br#"{"name":"a","description":"Reads.","inputSchema":{"type":"object","properties":{"x":{"type":"string"}}}}"#);
        let same = of(b"{ \"inputSchema\": {\"properties\":{\"x\":{\"type\":\"string\"}}, \"type\":\"object\"},\n\
            \"description\":\"Re\\u0061ds.\", \"name\":\"b\", \"_meta\":{\"at\":1} }");
        assert_eq!(one, same);
        for other in [
            &br#"{"name":"a","description":"Reads!","inputSchema":{"type":"object","properties":{"x":{"type":"string"}}}}"#[..],
            br#"{"name":"a","description":"Reads.","inputSchema":{"type":"object","properties":{"x":{"type":"number"}}}}"#,
            br#"{"name":"a","description":"Reads.","title":"A","inputSchema":{"type":"object","properties":{"x":{"type":"string"}}}}"#,
            br#"{"name":"a","description":"Evil.","description":"Reads.","inputSchema":{"type":"object","properties":{"x":{"type":"string"}}}}"#,
        ] {
            assert_ne!(of(other), one, "{}", String::from_utf8_lossy(other));
        }
        let shown = shown(&one);
        assert!(
            shown.starts_with("sha256:") && shown.len() == 7 + 64,
            "{shown}"
        );
    }
}
