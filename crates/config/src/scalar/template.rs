//! Texts with facts of a call in them.

use serde_json::{Value, json};

use crate::decode::{Problem, Written};
use crate::host::{Fact, Piece};

/// A text with facts of a call in it, in braces.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Template(pub(crate) Vec<Piece>);

const TEMPLATE_BYTES_MAX: usize = 253;

impl Written for Template {
    fn read(text: &str) -> Result<Self, Problem> {
        let is_plain = |c: char| !c.is_control() && !c.is_whitespace();
        if text.is_empty() || text.len() > TEMPLATE_BYTES_MAX || !text.chars().all(is_plain) {
            let hint =
                "write 1 to 253 bytes without white space, such as \"models\" or \"{model}\"";
            return Err(Problem::new("names nothing of Kubernetes", hint));
        }
        let (mut pieces, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once('{') {
            if !before.is_empty() {
                pieces.push(Piece::Text(before.into()));
            }
            let fact = after.split_once('}').and_then(|(name, rest)| {
                let known = FACTS.iter().find(|(known, _)| *known == name);
                known.map(|(_, fact)| (*fact, rest))
            });
            let Some((fact, after)) = fact else {
                let hint = "write {workload}, {model}, {backend}, {route} or {method}";
                return Err(Problem::new("has a brace around no fact of a call", hint));
            };
            pieces.push(Piece::Fact(fact));
            rest = after;
        }
        if rest.contains('}') {
            let is = "has a brace that nothing opens";
            return Err(Problem::new(is, "write {model} with both braces"));
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.into()));
        }
        Ok(Self(pieces))
    }

    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1, "maxLength": TEMPLATE_BYTES_MAX })
    }
}

const FACTS: [(&str, Fact); 5] = [
    ("workload", Fact::Workload),
    ("model", Fact::Model),
    ("backend", Fact::Backend),
    ("route", Fact::Route),
    ("method", Fact::Method),
];
