//! Pieces of a document as messages may show them.
//!
//! A secret ends up anywhere: as a name, as a number, in an address. So what looks like a key is
//! shown as `***` wherever it stands; line and path still say where.
//! Invariant: every message passes here (`quoted`, `masked`), and every path of one (`decode::child`).
//! Not here: fields that hold secrets, of which nothing is shown (`Written::shown`), `/config` (`redact`).

/// In place of what is not shown.
const MASK: &str = "***";

/// How keys of providers and forges begin, in lower case.
const STARTS: [&str; 19] = [
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "hf_",
    "gsk_",
    "xai-",
    "pplx-",
    "nvapi-",
    "aiza",
    "akia",
    "eyj",
];

/// Letters and digits in one run; words of people and models have fewer.
const RUN_MAX: usize = 20;
/// Longest name of anything here, bytes.
const NAME_MAX: usize = 256;
/// As far as a text is looked at, which is further than it is shown.
const LOOKED_AT: usize = 1024;

/// A piece of the document in quotes, short enough for a line.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN_CHARS: usize = 80;
    if looks_like_key(text) {
        return format!("{MASK:?}");
    }
    if text.chars().count() <= SHOWN_CHARS {
        return format!("{text:?}");
    }
    let start: String = text.chars().take(SHOWN_CHARS).collect();
    format!("{:?}", start + "…")
}

/// A message without the words that look like keys.
pub(crate) fn masked(message: &str) -> String {
    let word = |word: &str| {
        let is_edge = |c: char| !c.is_alphanumeric();
        let core = word.trim_matches(is_edge);
        if looks_like_key(core) {
            word.replace(core, MASK)
        } else {
            word.to_owned()
        }
    };
    let words: Vec<String> = message.split(' ').map(word).collect();
    words.join(" ")
}

/// Whether a text could be a key: by how it begins, by what it holds, or because no person would
/// choose such words.
pub(crate) fn looks_like_key(text: &str) -> bool {
    let end = text.floor_char_boundary(LOOKED_AT);
    let start = text.get(..end).unwrap_or(text).to_ascii_lowercase();
    let holds_user = start
        .split_once("://")
        .is_some_and(|(_, rest)| rest.contains('@'));
    let is_scheme = ["bearer ", "basic "]
        .iter()
        .any(|scheme| start.contains(scheme));
    let is_long = text.len() > NAME_MAX && !text.contains(' ');
    holds_user
        || is_scheme
        || is_long
        || start.contains("-----begin")
        || begins_like_key(&start)
        || is_random(text.get(..end).unwrap_or(text))
}

/// Whether some word begins as keys do, and goes on.
fn begins_like_key(text: &str) -> bool {
    let mut before = ' ';
    text.char_indices().any(|(at, c)| {
        let begins = !before.is_ascii_alphanumeric();
        before = c;
        let goes_on = |start: &&str| {
            let rest = text.get(at..).and_then(|text| text.strip_prefix(*start));
            rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
        };
        begins && STARTS.iter().any(goes_on)
    })
}

/// Whether letters, capitals and digits change places as they do by chance.
fn is_random(text: &str) -> bool {
    let is_mixed = |run: &str, long: usize| {
        let turns = run.as_bytes().windows(2);
        let turns = turns.filter(|pair| pair.first().map(kind) != pair.last().map(kind));
        run.len() >= long && turns.count() * 3 > run.len()
    };
    let mut runs = text.split(|c: char| !c.is_ascii_alphanumeric());
    let of_token = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '+' | '=');
    let mut tokens = text.split(of_token);
    runs.any(|run| {
        let is_number = run.bytes().all(|b| b.is_ascii_digit());
        !is_number && (run.len() > RUN_MAX || is_mixed(run, 8))
    }) || tokens.any(|token| {
        let joined: String = token.chars().filter(char::is_ascii_alphanumeric).collect();
        is_mixed(&joined, RUN_MAX)
    })
}

fn kind(byte: &u8) -> u8 {
    match byte {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests;
