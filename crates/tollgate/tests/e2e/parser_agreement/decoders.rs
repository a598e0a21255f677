//! Models of how engines in three languages parse a path and a body: Go's `net/http` and `encoding/json`, Starlette
//! and Python's `json`, Express and JavaScript's `JSON.parse`; and the most lenient path matching of any server.
//!
//! Invariant: the models agree with the languages themselves, which `languages` tests.
//! Not here: the gate's own reading.

use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A model of one parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decoder {
    Go,
    Python,
    JavaScript,
    /// Maps a path to an operation in the most lenient way, and reads a body as Python does.
    Lenient,
}

pub(super) const DECODERS: [Decoder; 4] = [
    Decoder::Go,
    Decoder::Python,
    Decoder::JavaScript,
    Decoder::Lenient,
];

/// What a parser finds in a body. A member that is absent or null is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) model: Option<String>,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    pub(super) max_tokens: Option<u64>,
    pub(super) max_completion_tokens: Option<u64>,
    pub(super) max_output_tokens: Option<u64>,
    pub(super) n: Option<u64>,
    pub(super) best_of: Option<u64>,
    /// How many prompts `prompt` holds; 1 where it is no list of them.
    pub(super) prompts: u64,
}

impl Decoder {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Go => "Go",
            Self::Python => "Python",
            Self::JavaScript => "JavaScript",
            Self::Lenient => "a lenient server",
        }
    }

    /// The operation that an engine serves for this request line, by its name in the gate's records.
    /// The engine's API lies under `base`.
    pub(super) fn operation(self, method: &str, target: &str, base: &str) -> Option<&'static str> {
        let path = self.path(target)?;
        let base = base.trim_end_matches('/');
        let base = if self.folds_paths() {
            base.to_lowercase()
        } else {
            base.to_owned()
        };
        let rest = match &*base {
            "" => path.strip_prefix("/v1").unwrap_or(&path),
            base => path.strip_prefix(base)?,
        };
        let rest = if rest.len() > 1 {
            rest.trim_end_matches('/')
        } else {
            rest
        };
        match (method, rest) {
            ("POST", "/chat/completions") => Some("chat"),
            ("POST", "/completions") => Some("text_completion"),
            ("POST", "/responses") => Some("responses"),
            ("POST", "/messages") => Some("messages"),
            ("POST", "/embeddings") => Some("embeddings"),
            ("POST", "/messages/count_tokens") => Some("count_tokens"),
            ("GET" | "HEAD", "/models") => Some("models"),
            ("GET" | "HEAD", rest) if rest.starts_with("/models/") => Some("models"),
            _ => None,
        }
    }

    const fn folds_paths(self) -> bool {
        matches!(self, Self::JavaScript | Self::Lenient)
    }

    /// The path that the router looks up. `None` where it is refused.
    pub(super) fn path(self, target: &str) -> Option<String> {
        let path = target.split('?').next().unwrap_or_default();
        match self {
            // `URL.Path` is decoded, and `ServeMux` redirects to the clean path, which a client may follow.
            Self::Go => Some(clean(&decoded(path)?)),
            // `scope["path"]` is decoded where that is possible; nothing is cleaned.
            Self::Python => Some(decoded_where_possible(path)),
            // Express matches without case; its parameters and other routers decode.
            Self::JavaScript => Some(decoded(path)?.to_lowercase()),
            Self::Lenient => Some(lenient(path)),
        }
    }

    /// Reads a body. `None` where the parser refuses it.
    pub(super) fn read(self, body: &[u8]) -> Option<Call> {
        let members: Members = serde_json::from_slice(body).ok()?;
        let mut call = Call {
            prompts: 1,
            ..Call::default()
        };
        for (key, value) in &members.0 {
            let value = value.as_str();
            match self.name_of(key).as_str() {
                "model" => self.set(&mut call.model, value)?,
                "stream" => self.set(&mut call.stream, value)?,
                "stream_options" => self.set_options(&mut call, value)?,
                "max_tokens" => call.max_tokens = of(value)?,
                "max_completion_tokens" => call.max_completion_tokens = of(value)?,
                "max_output_tokens" => call.max_output_tokens = of(value)?,
                "n" => call.n = of(value)?,
                "best_of" => call.best_of = of(value)?,
                "prompt" => call.prompts = prompts(value),
                _ => {}
            }
        }
        Some(call)
    }

    fn name_of(self, key: &str) -> String {
        match self {
            Self::Go => folded(key),
            Self::Python | Self::JavaScript | Self::Lenient => key.to_owned(),
        }
    }

    /// The last value counts; in Go, null into a value that is no pointer changes nothing.
    fn set<T: Default + DeserializeOwned>(self, to: &mut T, value: &str) -> Option<()> {
        match value {
            "null" if self == Self::Go => {}
            "null" => *to = T::default(),
            value => *to = serde_json::from_str(value).ok()?,
        }
        Some(())
    }

    /// Go merges a second object into the first one.
    fn set_options(self, call: &mut Call, value: &str) -> Option<()> {
        if self != Self::Go || value == "null" {
            call.include_usage = false;
        }
        let options: Option<Members> = serde_json::from_str(value).ok()?;
        for (key, value) in &options.unwrap_or_default().0 {
            if self.name_of(key) == "include_usage" {
                self.set(&mut call.include_usage, value)?;
            }
        }
        Some(())
    }
}

/// A count; null is `None`.
fn of(value: &str) -> Option<Option<u64>> {
    serde_json::from_str(value).ok()
}

/// `foldName` of `encoding/json`: the smallest rune of each simple case folding, here as lower-case ASCII.
fn folded(name: &str) -> String {
    let fold = |c| match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        c => char::to_ascii_lowercase(&c),
    };
    name.chars().map(fold).collect()
}

fn prompts(text: &str) -> u64 {
    let Ok(list) = serde_json::from_str::<Vec<Box<RawValue>>>(text) else {
        return 1;
    };
    let is_list_of_prompts = list.iter().any(|item| item.get().starts_with(['"', '[']));
    if is_list_of_prompts {
        list.len() as u64
    } else {
        1
    }
}

/// The path with percent escapes decoded. `None` where an escape is invalid.
fn decoded(path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        (bytes, rest) = match escaped(rest) {
            Some(value) => (push(bytes, value), &rest[3..]),
            None if byte == b'%' => return None,
            None => (push(bytes, byte), after),
        };
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The path with valid percent escapes decoded and invalid ones left as they are.
fn decoded_where_possible(path: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        (bytes, rest) = match escaped(rest) {
            Some(value) => (push(bytes, value), &rest[3..]),
            None => (push(bytes, byte), after),
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn push(mut bytes: Vec<u8>, byte: u8) -> Vec<u8> {
    bytes.push(byte);
    bytes
}

/// The byte of a percent escape at the start of `text`.
fn escaped(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = *text else {
        return None;
    };
    let digit = |byte| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

/// Decoded twice, folded, cut where a parameter may begin, and clean.
fn lenient(path: &str) -> String {
    let twice = decoded_where_possible(&decoded_where_possible(path));
    let plain = |c: char| match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        '\\' => '/',
        c => c.to_ascii_lowercase(),
    };
    let folded: String = twice.chars().map(plain).collect();
    let cut = folded
        .split([';', '?', '#', '\0'])
        .next()
        .unwrap_or_default();
    let is_edge = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '.' | '/');
    clean(cut.trim_end_matches(is_edge))
}

/// The path without empty segments and with `.` and `..` resolved.
fn clean(path: &str) -> String {
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    format!("/{}", segments.join("/"))
}

/// The members of an object in order, with their values as written.
#[derive(Debug, Default)]
struct Members(Vec<(String, String)>);

impl<'de> serde::Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Members;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    members.push((key, value.get().to_owned()));
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Reader)
    }
}
