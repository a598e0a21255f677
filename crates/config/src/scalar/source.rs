//! Files, variables, inline secrets and names of keys: where something else is kept. And where the access log goes.
//!
//! Invariant: of what stands where a secret is named, only what must be a path is ever shown.

use std::path::Path;

use policy::secret::Secret;
use serde_json::{Value, json};

use super::text::is_of;
use crate::decode::{HIDDEN, Problem, Written, nearest};
use crate::mask::{looks_like_key, quoted};

/// A file, absolute or relative to the document.
#[derive(Clone)]
pub(crate) struct File(pub(crate) String);

impl Written for File {
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
    const HOLDS_SECRET: bool = true;

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
    const HOLDS_SECRET: bool = true;
    /// A key is pasted where its variable's name belongs.
    const IS_SHOWN: bool = false;
    const PATTERN: &'static str = "^[A-Za-z_][A-Za-z0-9_]*$";

    fn read(text: &str) -> Result<Self, Problem> {
        if crate::vars::is_name(text) {
            return Ok(Self(text.to_owned()));
        }
        let hint = "write the name alone, such as OPENAI_API_KEY";
        Err(Problem::new("is not the name of a variable", hint))
    }
}

/// A credential written in the document itself.
#[derive(Clone)]
pub(crate) struct Inline(pub(crate) Secret);

impl Written for Inline {
    const HOLDS_SECRET: bool = true;
    const IS_SHOWN: bool = false;

    fn read(text: &str) -> Result<Self, Problem> {
        Ok(Self(Secret::new(text.as_bytes().to_vec())))
    }

    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1 })
    }
}

/// The id of a key at AWS. Its secret is pasted here, too.
#[derive(Clone)]
pub(crate) struct AccessKeyId(pub(crate) String);

impl Written for AccessKeyId {
    const HOLDS_SECRET: bool = true;
    const IS_SHOWN: bool = false;
    const PATTERN: &'static str = "^[A-Z0-9]{16,128}$";

    fn read(text: &str) -> Result<Self, Problem> {
        let is_plain = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit();
        if text.len() >= 16 && is_of(text, 128, is_plain) {
            return Ok(Self(text.to_owned()));
        }
        let hint =
            "it has 16 to 128 capitals and digits; the secret goes under `secret_access_key`";
        Err(Problem::new("is not the id of a key", hint))
    }
}

/// Where access-log lines go: `off`, `stdout` or a file.
#[derive(Clone)]
pub(crate) enum LogTarget {
    Off,
    Stdout,
    File(String),
}

impl Written for LogTarget {
    const PATTERN: &'static str = "^(off|stdout|.*[/.].*)$";

    fn read(text: &str) -> Result<Self, Problem> {
        match text {
            "off" => Ok(Self::Off),
            "stdout" => Ok(Self::Stdout),
            path if path.contains(['/', '.']) && !path.contains('\0') && !path.contains("://") => {
                Ok(Self::File(path.to_owned()))
            }
            other => {
                let hint = match nearest(other, &["off", "stdout"]) {
                    Some(word) => format!("did you mean {word}? A file is written as ./{other}"),
                    None => "write off, stdout, or a path such as ./access.log".into(),
                };
                Err(Problem::new("is not a place for the access log", hint))
            }
        }
    }
}

/// Whether this can only be a file's name. A password may hold a `/`, too, and then has capitals
/// inside of words, which files have rarely.
fn is_path(text: &str) -> bool {
    let capital_inside = text.as_bytes().windows(2).any(|pair| {
        let [one, next] = [pair.first(), pair.last()];
        one.is_some_and(u8::is_ascii_lowercase) && next.is_some_and(u8::is_ascii_uppercase)
    });
    (text.contains('/') || is_file_name(text))
        && !text.contains("://")
        && !capital_inside
        && !looks_like_key(text)
}

/// Whether this is one word and ends as files of keys and certificates do.
fn is_file_name(text: &str) -> bool {
    let (stem, extension) = text.rsplit_once('.').unwrap_or_default();
    let of_word = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    let is_word = !stem.is_empty() && stem.bytes().all(of_word);
    is_word && matches!(extension, "key" | "pem" | "crt" | "txt")
}

#[cfg(test)]
mod tests;
