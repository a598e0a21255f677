//! What rules are written in.

use serde_json::{Value, json};

use crate::decode::{Problem, Takes, Written};
use crate::host::{Fact, Piece};

/// Most bytes of an expression.
const EXPRESSION_BYTES_MAX: usize = 8 << 10;

/// An expression of CEL; it is checked when it is compiled.
#[derive(Clone)]
pub(crate) struct Expression(pub(crate) String);

impl Written for Expression {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        if text.trim().is_empty() || text.len() > EXPRESSION_BYTES_MAX {
            let hint = "write 1 to 8192 bytes, such as 'workload == \"chat\"'";
            return Err(Problem::new("is no expression", hint));
        }
        Ok(Self(text.to_owned()))
    }

    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1, "maxLength": EXPRESSION_BYTES_MAX })
    }
}

/// What becomes of a call where nobody answers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnFailure {
    Deny,
    Allow,
}

impl Written for OnFailure {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        match text {
            "deny" => Ok(Self::Deny),
            "allow" => Ok(Self::Allow),
            _ => Err(Problem::new("is not a way to fail", "write deny or allow")),
        }
    }

    fn schema() -> Value {
        json!({ "enum": ["deny", "allow"] })
    }
}

/// A header that an authorisation service sees, in lower case.
#[derive(Clone)]
pub(crate) struct SecretHeader(pub(crate) String);

impl Written for SecretHeader {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        let name = text.to_ascii_lowercase();
        let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if name.is_empty() || name.len() > 128 || !name.bytes().all(is_token) {
            let hint = "write a name such as authorization";
            return Err(Problem::new("is not a header name", hint));
        }
        Ok(Self(name))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$" })
    }
}

/// A text with facts of a call in it, in braces.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Template(pub(crate) Vec<Piece>);

const TEMPLATE_BYTES_MAX: usize = 253;

impl Written for Template {
    const TAKES: Takes = Takes::Text;

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

/// Whether names of the cluster's own are believed of any source.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct SystemNames(pub(crate) bool);

impl Written for SystemNames {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        match text {
            "trusted" => Ok(Self(true)),
            "refused" => Ok(Self(false)),
            _ => Err(Problem::new(
                "is no way to take names of the cluster's own",
                "write trusted or refused",
            )),
        }
    }

    fn schema() -> Value {
        json!({ "enum": ["trusted", "refused"] })
    }
}
