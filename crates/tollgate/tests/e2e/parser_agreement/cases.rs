//! Generated requests: method, path, version of HTTP, address of the backend, operation, spelling of members.
//!
//! Invariant: a case depends only on the state of the generator.
//! Not here: how it is sent (`senders`), what it means (`decoders`).

use testing::Draw;

/// What is drawn from a seed.
pub(super) struct Rng(Draw);

impl Rng {
    pub(super) fn new(seed: u64) -> Self {
        Self(Draw::new(seed))
    }

    /// A number below `n`.
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0.below(n)
    }

    /// Whether this happens once in `n` times.
    pub(super) fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(super) fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

/// The framing that the head declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// There is none.
    Nothing,
    /// Its length.
    Declared,
    /// Chunks in HTTP/1.1, no length in HTTP/2.
    Undeclared,
}

/// The operation that the case was made from; its mutated path may be that of another operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Chat,
    Completions,
    Responses,
    Messages,
    Embeddings,
    Models,
    Other,
}

impl Operation {
    const fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Completions => "/v1/completions",
            Self::Responses => "/v1/responses",
            Self::Messages => "/v1/messages",
            Self::Embeddings => "/v1/embeddings",
            Self::Models => "/v1/models",
            Self::Other => "/v1/files",
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) version: Version,
    pub(super) framing: Framing,
    pub(super) operation: Operation,
    pub(super) backend: usize,
    pub(super) method: &'static str,
    pub(super) target: String,
    pub(super) body: String,
}

impl Case {
    pub(super) fn generate(rng: &mut Rng) -> Self {
        use Operation::{Chat, Completions, Embeddings, Messages, Models, Other, Responses};
        let operation = *rng.pick(&[
            &Chat,
            &Chat,
            &Chat,
            &Chat,
            &Completions,
            &Completions,
            &Completions,
            &Responses,
            &Messages,
            &Embeddings,
            &Models,
            &Other,
        ]);
        let reads = !matches!(operation, Models | Other);
        let method = if reads && !rng.once_in(20) {
            "POST"
        } else {
            rng.pick(&[
                "GET", "GET", "POST", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS",
            ])
        };
        let framing = if method == "POST" || rng.once_in(3) {
            [Framing::Declared, Framing::Declared, Framing::Undeclared][rng.below(3)]
        } else {
            Framing::Nothing
        };
        Self {
            version: [Version::One, Version::Two][rng.below(2)],
            framing,
            operation,
            backend: rng.below(super::ADDRESSES.len()),
            method,
            target: target(operation.path(), rng),
            body: body(rng),
        }
    }

    pub(super) fn is_of_models(&self) -> bool {
        self.operation == Operation::Models
    }

    /// Whether this is a request whose usage the engine reports, when it reaches it.
    pub(super) fn is_metered(&self) -> bool {
        self.method != "HEAD"
    }
}

/// The path, usually unchanged, sometimes a variant that a lenient server could map to it.
fn target(path: &str, rng: &mut Rng) -> String {
    let mut target = path.to_owned();
    let changes = [0, 0, 0, 1, 1, 2][rng.below(6)];
    for _ in 0..changes {
        change(&mut target, rng);
    }
    if rng.once_in(5) {
        target.push_str(rng.pick(&["?", "?a=b", "?model=dear", "?a=/../", "?x=%2e%2e", "?a?b"]));
    }
    target
}

fn change(target: &mut String, rng: &mut Rng) {
    let slashes: Vec<usize> = target.match_indices('/').map(|(at, _)| at).collect();
    let slash = slashes[rng.below(slashes.len())];
    let letters: Vec<usize> = target
        .char_indices()
        .filter(|(_, c)| c.is_ascii_alphabetic())
        .map(|(at, _)| at)
        .collect();
    let letter = letters[rng.below(letters.len())];
    let at = target.as_bytes()[letter];
    match rng.below(16) {
        0 => target.push('/'),
        1 => target.insert(slash, '/'),
        2 => target.insert_str(
            slash,
            rng.pick(&["/.", "/%2e", "/x/..", "/x/%2e%2e", "/x/.%2E"]),
        ),
        3 => target.replace_range(
            letter..=letter,
            &at.to_ascii_uppercase().escape_ascii().to_string(),
        ),
        4 => target.replace_range(letter..=letter, &format!("%{at:02x}")),
        5 => target.replace_range(
            letter..=letter,
            &format!("%{:02X}", at.to_ascii_uppercase()),
        ),
        6 => target.replace_range(
            slash..=slash,
            rng.pick(&["%2f", "%2F", "%5c", "\\", "%252f"]),
        ),
        7 => target.push_str(rng.pick(&[";x", ";", "%3bx", "%3B"])),
        8 => target.push_str(rng.pick(&["%20", "%09", "%00", "%0a", "%7f", "+", "."])),
        9 => target.insert_str(slash, rng.pick(&["/v1", "/V1", "/x", "/v2", "/openai"])),
        10 => target.push_str(rng.pick(&["/x", "/count_tokens", "/batches", "/..", "/."])),
        11 => target.push_str(rng.pick(&["%", "%4", "%zz", "%u0063"])),
        12 => *target = target.to_ascii_uppercase(),
        13 => *target = target.replacen("/v1", rng.pick(&["", "/v1beta", "/%76%31"]), 1),
        14 => target.insert_str(letter, rng.pick(&["_", "-", "%2d", "s"])),
        _ => *target = format!("{}{target}", rng.pick(&["/", "/.", "/x/.."])),
    }
    if !target.starts_with('/') {
        target.insert(0, '/');
    }
}

/// The members that determine the model and the cost of a call, with values for each.
const MEMBERS: [(&str, &[&str]); 11] = [
    (
        "model",
        &[
            "\"cheap\"",
            "\"cheap\"",
            "\"che\\u0061p\"",
            "\"dear\"",
            "null",
        ],
    ),
    ("stream", &["true", "true", "false", "null"]),
    (
        "stream_options",
        &[
            "{}",
            "null",
            "{\"include_usage\":true}",
            "{\"include_usage\":false}",
        ],
    ),
    ("max_tokens", &["1000", "2000", "9000", "null"]),
    ("max_completion_tokens", &["1000", "3000", "9000", "null"]),
    ("max_output_tokens", &["1000", "4000", "9000", "null"]),
    ("n", &["1", "2", "3", "null"]),
    ("best_of", &["1", "2", "4", "null"]),
    (
        "prompt",
        &[
            "\"a\"",
            "[\"a\",\"b\"]",
            "[1,2,3]",
            "[[1,2],[3]]",
            "[]",
            "[\"a\",\"]\\\"\",\"c\"]",
        ],
    ),
    (
        "messages",
        &[
            "[]",
            "[{\"role\":\"user\",\"model\":\"dear\",\"max_tokens\":9}]",
        ],
    ),
    (
        "user",
        &["\"u\"", "\"{\\\"model\\\":\\\"dear\\\"}\"", "null"],
    ),
];

fn body(rng: &mut Rng) -> String {
    let mut members = Vec::new();
    for (n, (name, values)) in MEMBERS.iter().enumerate() {
        // A call usually names its model and caps its output.
        let is_there = match n {
            0 => !rng.once_in(12),
            3..=5 => rng.once_in(2),
            _ => rng.once_in(3),
        };
        if is_there {
            let value = options(rng.pick(values), rng);
            members.push((spelled(name, rng, 60), value));
        }
    }
    // Sometimes a duplicate of a present member, usually in another case.
    if rng.once_in(4) {
        let (name, values) = MEMBERS[rng.below(MEMBERS.len())];
        let value = options(rng.pick(values), rng);
        members.push((spelled(name, rng, 1), value));
    }
    let mut text = String::new();
    while !members.is_empty() {
        let (name, value) = members.swap_remove(rng.below(members.len()));
        let blank = if rng.once_in(4) { " " } else { "" };
        let comma = if text.is_empty() { "" } else { "," };
        text.push_str(&format!(
            "{comma}{blank}\"{name}\"{blank}:{blank}{value}{blank}"
        ));
    }
    format!("{{{text}}}")
}

/// The value of `stream_options`, with a variant spelling of its own member where it has one.
fn options(value: &str, rng: &mut Rng) -> String {
    let name = spelled("include_usage", rng, 8);
    value.replacen("include_usage", &name, 1)
}

/// The name unchanged, or once in `odd_once_in` times a variant that some parsers accept for it.
pub(super) fn spelled(name: &str, rng: &mut Rng, odd_once_in: usize) -> String {
    if !rng.once_in(odd_once_in) {
        return name.to_owned();
    }
    let mut spelled = String::new();
    let all = rng.once_in(4);
    let one = rng.below(name.len());
    for (at, c) in name.chars().enumerate() {
        if at != one && !all {
            spelled.push(c);
            continue;
        }
        let upper = c.to_ascii_uppercase();
        let folded = match c {
            'k' => '\u{212a}',
            's' => '\u{17f}',
            'i' => ['\u{130}', '\u{131}'][rng.below(2)],
            _ => upper,
        };
        let escaped = |c: char| format!("\\u{:04x}", u32::from(c));
        match rng.below(6) {
            0 => spelled.push_str(&escaped(c)),
            1 | 2 => spelled.push(upper),
            3 => spelled.push_str(&escaped(upper)),
            4 => spelled.push(folded),
            _ => spelled.push_str(&escaped(folded)),
        }
    }
    spelled
}
