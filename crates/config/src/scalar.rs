//! How single values are written: names, durations, sizes, rates, prices, header names.
//!
//! Invariant: a value that reads is in range; nothing later has to check it again.
//! Not here: addresses of backends (`target`).

use std::net::SocketAddr;
use std::time::Duration;

use policy::secret::Secret;
use serde_json::{Value, json};

use crate::decode::{Problem, Takes, Written, nearest};

/// A workload, route or backend.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Name(pub(crate) String);

impl Written for Name {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        let fine = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        if (1..=64).contains(&text.len()) && text.bytes().all(fine) {
            return Ok(Self(text.to_owned()));
        }
        Err(Problem::new(
            "is not a name",
            "use 1 to 64 of A-Z a-z 0-9 . _ -",
        ))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$" })
    }
}

/// A model, as it stands in a call.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Model(pub(crate) String);

impl Written for Model {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        if is_model(text) {
            return Ok(Self(text.to_owned()));
        }
        Err(Problem::new(
            "is not a model name",
            "use 1 to 256 of A-Z a-z 0-9 . _ : / @ -",
        ))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[A-Za-z0-9._:/@-]{1,256}$" })
    }
}

fn is_model(text: &str) -> bool {
    let fine = |b: u8| b.is_ascii_alphanumeric() || b"._:/@-".contains(&b);
    (1..=256).contains(&text.len()) && text.bytes().all(fine)
}

/// A model, or the start of one and a `*`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Pattern {
    Exact(String),
    Prefix(String),
}

impl Written for Pattern {
    const TAKES: Takes = Takes::Text;

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

    fn schema() -> Value {
        json!({ "type": "string", "pattern": r"^([A-Za-z0-9._:/@-]{1,256}\*?|\*)$" })
    }
}

/// A span of time.
#[derive(Clone, Copy)]
pub(crate) struct Span(pub(crate) Duration);

impl Written for Span {
    const TAKES: Takes = Takes::Either;

    fn read(text: &str) -> Result<Self, Problem> {
        const DAY_MS: u64 = 24 * 60 * 60 * 1000;
        const EXAMPLES: &str = "write 30s, 1m, 2h or 1d";
        let (digits, unit) = split_unit(text);
        if !digits.is_empty() && unit.is_empty() {
            return Err(Problem::new("has no unit", EXAMPLES));
        }
        let unit_ms = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60 * 1000,
            "h" => 60 * 60 * 1000,
            "d" => DAY_MS,
            _ => return Err(Problem::new("is not a duration", EXAMPLES)),
        };
        let count = digits.parse::<u64>();
        let Some(ms) = count.ok().and_then(|c| c.checked_mul(unit_ms)) else {
            return Err(Problem::new("is not a duration", EXAMPLES));
        };
        match ms {
            0 => Err(Problem::new("is no time at all", "write 1ms or more")),
            ms if ms > 366 * DAY_MS => Err(Problem::new("is too long", "write 366d or less")),
            ms => Ok(Self(Duration::from_millis(ms))),
        }
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[0-9]+(ms|s|m|h|d)$" })
    }
}

/// Digits first, then whatever follows.
fn split_unit(text: &str) -> (&str, &str) {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// A number of bytes.
#[derive(Clone, Copy)]
pub(crate) struct Size(pub(crate) u64);

impl Written for Size {
    const TAKES: Takes = Takes::Either;

    fn read(text: &str) -> Result<Self, Problem> {
        let (digits, unit) = split_unit(text);
        let unit = match unit.trim_start_matches(' ') {
            "" | "B" => 1,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            "KB" | "kB" => 1000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            _ => 0_u64,
        };
        match digits
            .parse::<u64>()
            .ok()
            .and_then(|count| count.checked_mul(unit))
        {
            Some(bytes) if unit > 0 && bytes > 0 => Ok(Self(bytes)),
            Some(_) if unit > 0 => Err(Problem::new("is nothing at all", "write 1 or more")),
            _ => Err(Problem::new(
                "is not a size",
                "write 65536, 64KiB, 32MiB or 1GB",
            )),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [
            { "type": "integer", "minimum": 1 },
            { "type": "string", "pattern": "^[0-9]+ *(B|KiB|MiB|GiB|kB|KB|MB|GB)?$" },
        ] })
    }
}

/// How many of something countable, at least one.
#[derive(Clone, Copy)]
pub(crate) struct Amount(pub(crate) u64);

impl Written for Amount {
    const TAKES: Takes = Takes::Either;

    fn read(text: &str) -> Result<Self, Problem> {
        const MOST: u64 = 1_000_000_000_000;
        let (digits, unit) = split_unit(text);
        let unit = match unit {
            "" => 1,
            "K" => 1000,
            "M" => 1_000_000,
            _ => return Err(not_whole()),
        };
        match digits
            .parse::<u64>()
            .ok()
            .and_then(|count| count.checked_mul(unit))
        {
            Some(0) => Err(Problem::new(
                "would let nothing through",
                "write 1 or more; to close a route, remove it",
            )),
            Some(count) if count <= MOST => Ok(Self(count)),
            Some(_) => Err(Problem::new("is too many", "write 1000000M or less")),
            None => Err(not_whole()),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [
            { "type": "integer", "minimum": 1 },
            { "type": "string", "pattern": "^[0-9]+[KM]?$" },
        ] })
    }
}

fn not_whole() -> Problem {
    Problem::new(
        "is not a whole number",
        "write digits, such as 100000, 100K or 1M",
    )
}

/// A whole number from 1 to `MOST`.
#[derive(Clone, Copy)]
pub(crate) struct Count<const MOST: u32>(pub(crate) u32);

impl<const MOST: u32> Written for Count<MOST> {
    const TAKES: Takes = Takes::Number;

    fn read(text: &str) -> Result<Self, Problem> {
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        match text.parse::<u32>() {
            Ok(count) if digits && (1..=MOST).contains(&count) => Ok(Self(count)),
            _ => Err(Problem::new(
                format!("is not a whole number from 1 to {MOST}"),
                "write digits alone",
            )),
        }
    }

    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 1, "maximum": MOST })
    }
}

/// A decimal number, exact: `digits / 10^places`.
#[derive(Clone, Copy)]
pub(crate) struct Decimal {
    pub(crate) digits: i128,
    pub(crate) places: u32,
}

impl Written for Decimal {
    const TAKES: Takes = Takes::Either;

    fn read(text: &str) -> Result<Self, Problem> {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
        let shaped = !whole.is_empty() && (text.len() > whole.len()) != part.is_empty();
        if !shaped || !digits(whole) || !digits(part) || whole.len() > 12 || part.len() > 18 {
            let hint = "write a plain decimal of at most 12 digits and 18 places, such as 0.10";
            return Err(Problem::new("is not a price", hint));
        }
        let places = u32::try_from(part.len()).unwrap_or(0);
        match format!("{whole}{part}").parse() {
            Ok(digits) => Ok(Self { digits, places }),
            Err(_) => Err(Problem::new(
                "is not a price",
                "write a plain decimal, such as 0.10",
            )),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [
            { "type": "number", "minimum": 0 },
            { "type": "string", "pattern": "^[0-9]{1,12}([.][0-9]{1,18})?$" },
        ] })
    }
}

/// How many tokens a price is for: a power of ten.
#[derive(Clone, Copy)]
pub(crate) struct PricePer(pub(crate) u32);

impl Written for PricePer {
    const TAKES: Takes = Takes::Either;

    fn read(text: &str) -> Result<Self, Problem> {
        match text {
            "1" => Ok(Self(0)),
            "1K" | "1000" => Ok(Self(3)),
            "1M" | "1000000" => Ok(Self(6)),
            _ => Err(Problem::new(
                "is not a number of tokens to price by",
                "write 1, 1K or 1M",
            )),
        }
    }

    fn schema() -> Value {
        json!({ "enum": [1, 1000, 1_000_000, "1", "1K", "1M", "1000", "1000000"] })
    }
}

/// An ISO 4217 code.
#[derive(Clone)]
pub(crate) struct Currency(pub(crate) String);

impl Written for Currency {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        if text.len() == 3 && text.bytes().all(|b| b.is_ascii_uppercase()) {
            return Ok(Self(text.to_owned()));
        }
        Err(Problem::new(
            "is not a currency",
            "write three capitals, such as USD or EUR",
        ))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[A-Z]{3}$" })
    }
}

/// Where to listen.
#[derive(Clone, Copy)]
pub(crate) struct Address(pub(crate) SocketAddr);

impl Written for Address {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        text.parse().map(Self).map_err(|_| {
            let hint = "write 127.0.0.1:1975, 0.0.0.0:1975 or \"[::]:1975\"";
            Problem::new("is not an IP address and port", hint)
        })
    }

    fn schema() -> Value {
        json!({ "type": "string" })
    }
}

/// The header that names the workload, in lower case.
#[derive(Clone)]
pub(crate) struct IdentityHeader(pub(crate) String);

impl Written for IdentityHeader {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        let name = header_name(text)?;
        let key = matches!(name.as_str(), "authorization" | "x-api-key" | "api-key")
            || matches!(name.as_str(), "x-goog-api-key" | "cookie" | "set-cookie");
        if key {
            let hint = "name another, such as x-workload-app";
            return Err(Problem::new(
                "carries credentials, which are not identity",
                hint,
            ));
        }
        Ok(Self(name))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": HEADER_PATTERN })
    }
}

/// The header that carries a credential upstream, in lower case.
#[derive(Clone)]
pub(crate) struct CredentialHeader(pub(crate) String);

impl Written for CredentialHeader {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        // Whole header lines are pasted here, secret and all.
        header_name(text).map(Self).map_err(|problem| Problem {
            quotable: text.bytes().all(is_token) && text.len() <= 32,
            ..problem
        })
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": HEADER_PATTERN })
    }
}

const HEADER_PATTERN: &str = "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$";

/// A field name that the gate does not itself depend on.
fn header_name(text: &str) -> Result<String, Problem> {
    const RESERVED: &[&str] = &[
        "accept",
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "date",
        "expect",
        "host",
        "keep-alive",
        "proxy-connection",
        "server",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
        "via",
        "x-request-id",
    ];
    let name = text.to_ascii_lowercase();
    if name.is_empty() || name.len() > 128 || !name.bytes().all(is_token) {
        return Err(Problem::new(
            "is not a header name",
            "write a name such as x-workload-app",
        ));
    }
    if RESERVED.contains(&name.as_str()) {
        return Err(Problem::new(
            "is a header that HTTP or the gate needs",
            "name another",
        ));
    }
    Ok(name)
}

fn is_token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)
}

/// The word before a credential: `Bearer`, or nothing.
#[derive(Clone)]
pub(crate) struct Scheme(pub(crate) String);

impl Written for Scheme {
    const TAKES: Takes = Takes::Text;
    const SECRET: bool = true;

    fn read(text: &str) -> Result<Self, Problem> {
        if text.len() <= 64 && text.bytes().all(is_token) {
            return Ok(Self(text.to_owned()));
        }
        let hint = "write one word such as Bearer, or \"\" for none";
        Err(Problem::new("is not an authentication scheme", hint))
    }

    fn schema() -> Value {
        json!({ "type": "string", "maxLength": 64 })
    }
}

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

/// HTTP version towards a backend.
#[derive(Clone, Copy)]
pub(crate) struct Protocol(pub(crate) policy::snapshot::Protocol);

impl Written for Protocol {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        use policy::snapshot::Protocol as P;
        match text {
            "auto" => Ok(Self(P::Auto)),
            "http1" => Ok(Self(P::Http1)),
            "http2" => Ok(Self(P::Http2)),
            _ => Err(Problem::new(
                "is not a protocol",
                "write auto, http1 or http2",
            )),
        }
    }

    fn schema() -> Value {
        json!({ "enum": ["auto", "http1", "http2"] })
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
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        match text {
            "off" => Ok(Self::Off),
            "stdout" => Ok(Self::Stdout),
            path if path.contains(['/', '.']) && !path.contains('\0') => {
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

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^(off|stdout|.*[/.].*)$" })
    }
}

#[cfg(test)]
mod tests;
