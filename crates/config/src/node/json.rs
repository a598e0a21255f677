//! A text of JSON as a tree: an object that an API server holds, and that nobody wrote line by line.
//!
//! Invariant: it is bounded as a text of YAML is, and reads as the same text of YAML would; nothing in it has a line (0).
//! Not here: JSON that a person wrote, which is read as YAML.

use serde_json::Value as Json;

use super::{DEPTH_MAX, Entry, Filled, NODES_MAX, Node, Scalar, Value};
use crate::fault::Fault;

/// Reads one text of JSON.
///
/// # Errors
/// What is not JSON, or is more than may be read.
pub fn parse_json(text: &str) -> Result<Node, Fault> {
    let broken = |says: String| Fault {
        file: None,
        path: String::new(),
        line: None,
        says,
        hint: String::new(),
    };
    let read = serde_json::from_str(text).map_err(|_| broken("is not JSON".to_owned()))?;
    let mut left = NODES_MAX;
    node(read, DEPTH_MAX, &mut left).ok_or_else(|| {
        broken(format!(
            "holds more than {NODES_MAX} values, or is nested deeper than {DEPTH_MAX} levels"
        ))
    })
}

fn node(json: Json, depth: usize, left: &mut usize) -> Option<Node> {
    *left = left.checked_sub(1)?;
    let value = match json {
        Json::Null => plain("null".to_owned()),
        Json::Bool(flag) => plain(flag.to_string()),
        Json::Number(number) => plain(number.to_string()),
        Json::String(text) => Value::Scalar(Scalar::quoted(&text)),
        Json::Array(items) => {
            let depth = depth.checked_sub(1)?;
            let items = items.into_iter().map(|item| node(item, depth, left));
            Value::List(items.collect::<Option<_>>()?)
        }
        Json::Object(members) => {
            let depth = depth.checked_sub(1)?;
            let entry = |(key, value)| {
                Some(Entry {
                    key,
                    line: 0,
                    node: node(value, depth, left)?,
                })
            };
            Value::Map(members.into_iter().map(entry).collect::<Option<_>>()?)
        }
    };
    Some(Node { line: 0, value })
}

/// What YAML reads as more than text.
fn plain(raw: String) -> Value {
    Value::Scalar(Scalar {
        text: raw.clone(),
        raw,
        plain: true,
        filled: Filled::No,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Shape, parse_all};
    use super::*;

    fn shown(node: &Node) -> String {
        match &node.value {
            Value::Scalar(scalar) => format!("{:?} {:?}", scalar.shape(), scalar.raw),
            Value::List(items) => format!("{:?}", items.iter().map(shown).collect::<Vec<_>>()),
            Value::Map(entries) => {
                let entry = |entry: &Entry| format!("{}: {}", entry.key, shown(&entry.node));
                format!("{:?}", entries.iter().map(entry).collect::<Vec<_>>())
            }
        }
    }

    #[test]
    fn json_reads_as_the_same_text_of_yaml_and_what_yaml_cannot_say_reads_too() {
        let text = r#"{"a":[1,-2.5,true,null,"null","7","$X"],"b":{"c":"x: y","d":{}}}"#;
        let yaml = parse_all(text).expect("YAML");
        let json = parse_json(text).expect("JSON");
        assert_eq!(shown(&json), shown(&yaml[0]));
        let odd = parse_json(r#"["\ud83d\ude00", "\u007f\u2028"]"#).expect("JSON");
        assert_eq!(
            shown(&odd),
            "[\"Text \\\"😀\\\"\", \"Text \\\"\\\\u{7f}\\\\u{2028}\\\"\"]"
        );
    }

    #[test]
    fn json_is_bounded_and_what_is_none_is_told_without_its_text() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(parse_json(&deep(DEPTH_MAX)).is_ok());
        let says = parse_json(&deep(DEPTH_MAX + 1)).expect_err("too deep").says;
        assert!(says.ends_with("deeper than 32 levels"), "{says}");
        let many = format!("[{}0]", "0,".repeat(NODES_MAX));
        assert!(parse_json(&many).is_err());
        assert_eq!(
            parse_json("{\"secret").expect_err("no JSON").says,
            "is not JSON"
        );
        assert_eq!(Shape::Nothing, {
            let node = parse_json("null").expect("JSON");
            let Value::Scalar(scalar) = node.value else {
                panic!("a scalar")
            };
            scalar.shape()
        });
    }
}
