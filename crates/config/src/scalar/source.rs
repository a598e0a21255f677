//! Files, variables and inline secrets: where something else is kept.
//!
//! Invariant: of what stands where a secret is named, only what must be a path is ever shown.

use std::path::Path;

use policy::secret::Secret;
use serde_json::{Value, json};

use crate::decode::{HIDDEN, Problem, Takes, Written};
use crate::mask::quoted;

/// A file, absolute or relative to the document.
#[derive(Clone)]
pub(crate) struct File(pub(crate) String);

impl Written for File {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        let is_path = !text.is_empty() && !text.contains('\0') && !text.contains("://");
        if !is_path || text.len() > 4096 {
            return Err(Problem::new("is not a file name", "write a path"));
        }
        Ok(Self(text.to_owned()))
    }

    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1 })
    }
}

impl AsRef<Path> for File {
    fn as_ref(&self) -> &Path {
        Path::new(&self.0)
    }
}

/// A file that holds a secret. The secret itself is pasted here, too.
#[derive(Clone)]
pub(crate) struct SecretFile(File);

impl Written for SecretFile {
    const TAKES: Takes = File::TAKES;

    fn read(text: &str) -> Result<Self, Problem> {
        File::read(text).map(Self)
    }

    fn shown(raw: &str) -> String {
        if is_path(raw) {
            quoted(raw)
        } else {
            HIDDEN.into()
        }
    }

    fn schema() -> Value {
        File::schema()
    }
}

impl AsRef<Path> for SecretFile {
    fn as_ref(&self) -> &Path {
        self.0.as_ref()
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
        let hint = "write the name alone, such as OPENAI_API_KEY";
        Err(Problem::new("is not the name of a variable", hint))
    }

    /// A key is pasted where its variable's name belongs.
    fn shown(_: &str) -> String {
        HIDDEN.into()
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

    fn read(text: &str) -> Result<Self, Problem> {
        Ok(Self(Secret::new(text.as_bytes().to_vec())))
    }

    fn shown(_: &str) -> String {
        HIDDEN.into()
    }

    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1 })
    }
}

/// Longest word of a path; keys have longer runs of letters and digits.
const PATH_WORD_MAX: usize = 20;

/// Whether this can only be a path: it has a separator, and its words look like words.
/// A key has long runs, capitals inside of them, or digits and letters by turns.
fn is_path(text: &str) -> bool {
    let is_word = |run: &str| {
        let turns = run.as_bytes().windows(2).filter(|pair| {
            let [a, b] = [pair.first(), pair.last()].map(|c| c.is_some_and(u8::is_ascii_digit));
            a != b
        });
        let capitals_inside = run.chars().skip(1).any(|c| c.is_ascii_uppercase());
        let has_small = run.chars().any(|c| c.is_ascii_lowercase());
        run.len() <= PATH_WORD_MAX && turns.count() <= 3 && !(capitals_inside && has_small)
    };
    text.contains('/')
        && !text.contains("://")
        && text
            .split(|c: char| !c.is_ascii_alphanumeric())
            .all(is_word)
}

#[cfg(test)]
mod tests;
