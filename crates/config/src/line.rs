//! On which line of a document a place stands that somebody else has a fault of: the host, which reads no documents.
//!
//! Not here: faults of the document itself, which know their lines (`decode`).

use std::path::Path;

use crate::document::{bytes_of, tree_of};
use crate::node::{Node, Value};
use crate::sources::Sources;

/// The line of `place`, such as `backends.up.credential.oauth`, in the document at `path`: of as much of it as is written there.
/// `None` where nothing of it is, or the document cannot be read.
#[must_use]
pub fn line_of(path: &Path, place: &str, sources: &dyn Sources) -> Option<usize> {
    let bytes = bytes_of(path, sources).ok()?;
    deepest(&tree_of(path, &bytes).ok()?, place)
}

fn deepest(node: &Node, place: &str) -> Option<usize> {
    let place = place.strip_prefix('.').unwrap_or(place);
    match &node.value {
        Value::Map(entries) => {
            // A name may hold a dot itself.
            let rest = |key: &str| {
                let rest = place.strip_prefix(key)?;
                (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
            };
            let mut found = entries.iter();
            let (entry, rest) = found.find_map(|entry| Some((entry, rest(&entry.key)?)))?;
            Some(deepest(&entry.node, rest).unwrap_or(entry.line))
        }
        Value::List(items) => {
            let (index, rest) = place.strip_prefix('[')?.split_once(']')?;
            let item = items.get(index.parse::<usize>().ok()?)?;
            Some(deepest(item, rest).unwrap_or(item.line))
        }
        Value::Scalar(_) => None,
    }
}

#[cfg(test)]
mod tests {
    //! Places of a small document.

    use std::path::Path;

    use super::line_of;
    use crate::tests::world::{DOCUMENT, World};

    #[test]
    fn a_place_has_the_line_of_as_much_of_it_as_is_written() {
        let world = World::with(
            "listen: { data: x }\nbackends:\n  a.b:\n    url: x\n    credential:\n      oauth: { token_url: x }\n\
             identity:\n  - header: x\n  - keys:\n      file: keys.jsonl\n",
        );
        for (place, line) in [
            ("listen", Some(1)),
            ("listen.admin", Some(1)),
            ("backends.a.b.credential.oauth", Some(6)),
            ("backends.a.b.credential.oauth.client_secret", Some(6)),
            ("backends.a", Some(2)),
            ("identity[1].keys.file", Some(10)),
            ("identity[2].keys", Some(7)),
            ("traces", None),
            ("/etc/tollgate/keys.jsonl", None),
            ("", None),
        ] {
            assert_eq!(line_of(Path::new(DOCUMENT), place, &world), line, "{place}");
        }
        assert_eq!(line_of(Path::new("none"), "listen", &world), None);
    }
}
