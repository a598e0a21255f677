//! Texts that are kept as they stand: names, models and what is compared or sent as it is written.
//!
//! Not here: texts that are brought into another form, or that no message shows (`header`, `web`, `source`).

use policy::attribution::is_unseen;
use serde_json::json;

use crate::decode::{Problem, Written};

/// Types of texts: which fit, what another one is not, what to write in its place, and what the JSON Schema says of
/// them.
macro_rules! texts {
    ($(
        $(#[doc = $about:literal])*
        $name:ident if $fits:expr, else $is:literal, $hint:literal; { $($schema:tt)* }
    )*) => {$(
        $(#[doc = $about])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) struct $name(pub(crate) String);

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Written for $name {

            fn read(text: &str) -> Result<Self, Problem> {
                let fits: fn(&str) -> bool = $fits;
                if fits(text) {
                    return Ok(Self(text.to_owned()));
                }
                Err(Problem::new($is, $hint))
            }

            fn schema() -> serde_json::Value {
                json!({ "type": "string", $($schema)* })
            }
        }
    )*};
}

texts! {
    /// A workload, route or backend.
    Name if |text| is_of(text, 64, |b| b.is_ascii_alphanumeric() || b"._-".contains(&b)),
    else "is not a name", "use 1 to 64 of A-Z a-z 0-9 . _ -";
    { "pattern": "^[A-Za-z0-9._-]{1,64}$" }

    /// A method or the name of a field, as browsers are told it, or `*`.
    CorsName if |text| is_of(text, 128, |b| b.is_ascii_alphanumeric() || b"!#$%&'*+.^_`|~-".contains(&b)) && (text == "*" || !text.contains('*')),
    else "is neither a method nor the name of a field", "write a name, such as GET or x-request-id, or \"*\" for all";
    { "pattern": "^(\\*|[!#$%&'+.^_`|~0-9A-Za-z-]{1,128})$" }

    /// A listener: a part of an object of Kubernetes, with that object's name and namespace where several may have it.
    ListenerName if |text| is_of(text, 600, |b| b.is_ascii_alphanumeric() || b"._/-".contains(&b)),
    else "is not the name of a listener", "use 1 to 600 of A-Z a-z 0-9 . _ / -";
    { "pattern": "^[A-Za-z0-9._/-]{1,600}$" }

    /// A server of tools: a part of the names of its tools, in front of two underscores, which it must not hold itself.
    ServerName if |text| text.len() <= 32 && text.split(['_', '-']).all(|part| is_of(part, 32, |b| b.is_ascii_alphanumeric())),
    else "is not the name of a server", "use at most 32 of A-Z a-z 0-9, and single _ or - between them";
    { "pattern": "^[A-Za-z0-9]+([_-][A-Za-z0-9]+)*$", "maxLength": 32 }

    /// A name of a tool, a prompt or a URI, in which each `*` stands for any text.
    NameGlob if |text| (1..=256).contains(&text.len()) && !text.contains(char::is_control),
    else "is not a name with or without *", "write 1 to 256 bytes, such as get_* or *";
    { "minLength": 1, "maxLength": 256 }

    /// A name of a tool as its server has it.
    ToolName if |text| (1..=256).contains(&text.len()) && !text.contains(char::is_control),
    else "is not the name of a tool", "write 1 to 256 bytes";
    { "minLength": 1, "maxLength": 256 }

    /// The digest of a tool's definition.
    ToolDigest if |text| text.strip_prefix("sha256:").is_some_and(|digits| digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))),
    else "is no digest of a tool", "write sha256: and 64 of 0-9 a-f, as tollgate mcp list --pins prints it";
    { "pattern": "^sha256:[0-9a-f]{64}$" }

    /// The name of an environment variable that a command is given.
    EnvironmentName if crate::vars::is_name,
    else "is not the name of a variable", "write a name such as GITHUB_TOKEN";
    { "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" }

    /// An argument of a command.
    Argument if |text| text.len() <= 8192 && !text.contains('\0'),
    else "is no argument", "write at most 8192 bytes";
    { "maxLength": 8192 }

    /// A model, as it stands in a call.
    Model if is_model,
    else "is not a model name", "use 1 to 256 of A-Z a-z 0-9 . _ : / @ -";
    { "pattern": "^[A-Za-z0-9._:/@-]{1,256}$" }

    /// An expression of CEL; it is checked when it is compiled.
    Expression if |text| !text.trim().is_empty() && text.len() <= 8192,
    else "is no expression", "write 1 to 8192 bytes, such as 'workload == \"chat\"'";
    { "minLength": 1, "maxLength": 8192 }

    /// The value of a header that a backend adds.
    HeaderValue if |text| text.trim() == text && is_of(text, 1024, |b| (b' '..=b'~').contains(&b)),
    else "is not the value of a header", "write 1 to 1024 of visible ASCII, without spaces at the ends";
    { "minLength": 1, "maxLength": 1024 }

    /// A value of `anthropic-beta`, or the start of one with a `*` at its end.
    Beta if |text| is_of(text.strip_suffix('*').unwrap_or(text), 128, |b| b.is_ascii_alphanumeric() || b"._-".contains(&b)),
    else "is no value of anthropic-beta", "write one such as context-1m-2025-08-07, or the start of one and a single `*`";
    { "pattern": "^[A-Za-z0-9._-]{1,128}\\*?$" }

    /// The value of a member of a query that a backend adds, before it is encoded.
    QueryValue if |text| text.len() <= 1024 && !text.contains(char::is_control),
    else "is not the value of a query's member", "write at most 1024 bytes without control characters";
    { "maxLength": 1024 }

    /// A text that is compared as it stands: an issuer, an audience, the value of a claim, a name of a certificate.
    Text if |text| (1..=1024).contains(&text.len()) && !text.contains(is_unseen),
    else "cannot be compared with anything", "write 1 to 1024 bytes without characters that nobody sees";
    { "minLength": 1, "maxLength": 1024 }

    /// The name of a claim: a member of the token, or with dots a member of a member.
    Claim if |text| is_of(text, 256, is_unquoted),
    else "is not the name of a claim", "write a name such as azp, or a path such as realm_access.roles";
    { "minLength": 1, "maxLength": 256 }

    /// A scope of OAuth (RFC 6749, 3.3).
    Scope if |text| is_of(text, 256, is_unquoted),
    else "is not a scope", "write one word for each scope, such as [profile, email]";
    { "minLength": 1, "maxLength": 256 }

    /// The name of a tag with its value.
    Tag if |text| text.len() <= 321 && text.split_once('=').is_some_and(|(name, value)| !name.is_empty() && !value.is_empty())
        && !text.contains(is_unseen),
    else "is not a tag", "write its name and its value, such as team=research, without characters that nobody sees";
    { "pattern": "^[^=]+=.+$", "maxLength": 321 }

    /// An ISO 4217 code.
    Currency if |text| text.len() == 3 && is_of(text, 3, |b| b.is_ascii_uppercase()),
    else "is not a currency", "write three capitals, such as USD or EUR";
    { "pattern": "^[A-Z]{3}$" }
}

/// Whether a text has some bytes, at most so many, and all of them fit.
pub(super) fn is_of(text: &str, most: usize, fits: impl Fn(u8) -> bool) -> bool {
    (1..=most).contains(&text.len()) && text.bytes().all(fits)
}

fn is_unquoted(b: u8) -> bool {
    b.is_ascii_graphic() && !matches!(b, b'"' | b'\\')
}

fn is_model(text: &str) -> bool {
    is_of(text, 256, |b| {
        b.is_ascii_alphanumeric() || b"._:/@-".contains(&b)
    })
}

/// A model, or the start of one and a `*`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Pattern {
    Exact(String),
    Prefix(String),
}

impl Written for Pattern {
    const PATTERN: &'static str = r"^([A-Za-z0-9._:/@-]{1,256}\*?|\*)$";

    fn read(text: &str) -> Result<Self, Problem> {
        match text.strip_suffix('*') {
            Some("") => Ok(Self::Prefix(String::new())),
            Some(start) if is_model(start) => Ok(Self::Prefix(start.to_owned())),
            None if is_model(text) => Ok(Self::Exact(text.to_owned())),
            _ => Err(Problem::new(
                "is not a model pattern",
                "write a model name, or the start of one and a single `*` at the end",
            )),
        }
    }
}
