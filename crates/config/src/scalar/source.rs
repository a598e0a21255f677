//! Files, variables and inline secrets: where something else is kept.

use policy::secret::Secret;
use serde_json::{Value, json};

use crate::decode::{Problem, Takes, Written};

/// A file, absolute or relative to the document.
#[derive(Clone)]
pub(crate) struct File(pub(crate) String);

impl Written for File {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        if text.is_empty() || text.contains('\0') || text.len() > 4096 {
            return Err(Problem::new("is not a file name", "write a path"));
        }
        Ok(Self(text.to_owned()))
    }

    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1 })
    }
}

/// The name of an environment variable.
#[derive(Clone)]
pub(crate) struct Variable(pub(crate) String);

impl Written for Variable {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        if crate::vars::is_name(text) {
            return Ok(Self(text.to_owned()));
        }
        // A key pasted where its variable's name belongs must not be shown.
        let hint = "write the name alone, such as OPENAI_API_KEY";
        let is = "is not the name of a variable".into();
        Err(Problem {
            is,
            hint: hint.into(),
            quotable: false,
        })
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" })
    }
}

/// A credential written in the document itself.
#[derive(Clone)]
pub(crate) struct Inline(pub(crate) Secret);

impl Written for Inline {
    const TAKES: Takes = Takes::Text;
    const SECRET: bool = true;

    fn read(text: &str) -> Result<Self, Problem> {
        Ok(Self(Secret::new(text.as_bytes().to_vec())))
    }

    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1 })
    }
}
