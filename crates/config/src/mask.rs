//! Pieces of a document as messages may show them.
//!
//! A secret ends up anywhere: as a name, as a number, in an address. So what looks like a key is
//! shown as `***` wherever it stands; line and path still say where.
//! Invariant: every message passes here (`quoted`, `masked`), and every path of one (`decode::child`).
//! Not here: fields that hold secrets, of which nothing is shown (`Written::shown`), `/config` (`redact`).

/// In place of what is not shown.
const MASK: &str = "***";

/// How keys of providers and forges begin, in lower case. Names begin as some others do (`hf_cache`,
/// `xai-grok-4`, `pplx-7b-chat`): those keys are known by their long tails.
const STARTS: [&str; 16] = [
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
    "gsk_",
    "nvapi-",
    "aiza",
    "akia",
    "eyj",
];

/// Letters and digits in one run; words of people and models have fewer.
const RUN_MAX: usize = 20;
/// Longest id that clouds and clusters put into names, which is as random as a key.
const ID_MAX: usize = 12;
/// Longest name of anything here, bytes.
const NAME_MAX: usize = 256;
/// As far as a text is looked at, which is further than it is shown.
const LOOKED_AT: usize = 1024;

/// A piece of the document in quotes, short enough for a line.
#[must_use]
pub fn quoted(text: &str) -> String {
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
#[must_use]
pub fn masked(message: &str) -> String {
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

/// Whether some run of letters and digits is too long for a word, or its kinds change by chance; never of what is no
/// longer than an id, as most names of fields are.
fn is_random(text: &str) -> bool {
    text.len() > ID_MAX && is_random_somewhere(text)
}

fn is_random_somewhere(text: &str) -> bool {
    runs(text).any(is_random_run) || text.split(|c| !is_of_token(c)).any(is_random_token)
}

fn is_random_run(run: &str) -> bool {
    let is_number = run.bytes().all(|b| b.is_ascii_digit());
    let words = turns(run) + 1;
    !is_number && (run.len() > RUN_MAX || run.len() > ID_MAX && words * 3 > run.len())
}

/// Whether the runs of a token do together what a longer run would. Between two of them nothing is
/// counted: in names that is where kinds change (`17B-128E`).
/// By chance a word ends at half of the places, in names of models seldom at more than a third.
fn is_random_token(token: &str) -> bool {
    if has_shape_of_uuid(token) {
        return true;
    }
    let rest = without_pod(token);
    let long: usize = runs(rest).map(str::len).sum();
    let pairs = long - runs(rest).count();
    let turns: usize = runs(rest).map(turns).sum();
    long >= RUN_MAX && turns * 5 > pairs * 2
}

fn runs(text: &str) -> impl Iterator<Item = &str> {
    let runs = text.split(|c: char| !c.is_ascii_alphanumeric());
    runs.filter(|run| !run.is_empty())
}

/// Base64 of either alphabet.
fn is_of_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+' | '=' | '/')
}

/// How often a word ends inside a run, a word being one kind of letter or a capital and what
/// follows: `Deep Seek V 3`, `w Jalr X Utn FEMI`.
fn turns(run: &str) -> usize {
    let kinds: Vec<Kind> = run.bytes().map(Kind::of).collect();
    let ends = |at: &usize| {
        let kind = |at: usize| kinds.get(at).copied();
        match (kind(*at), kind(at + 1)) {
            (Some(Kind::Capital), Some(Kind::Small)) => false,
            (Some(Kind::Capital), Some(Kind::Capital)) => kind(at + 2) == Some(Kind::Small),
            (one, next) => next.is_some() && one != next,
        }
    };
    (0..kinds.len()).filter(ends).count()
}

fn has_shape_of_uuid(token: &str) -> bool {
    let is_hex = |part: &str| part.bytes().all(|b| b.is_ascii_hexdigit());
    let parts = token.split(['-', '/']).collect::<Vec<_>>();
    parts.windows(5).any(|parts| {
        let lengths = parts.iter().map(|part| part.len());
        lengths.eq([8, 4, 4, 4, 12]) && parts.iter().all(|part| is_hex(part))
    })
}

/// A token without what Kubernetes adds to the name of a pod: `-7d9f8b6c5d-x2k4q`.
fn without_pod(token: &str) -> &str {
    let is_added = |part: &str| {
        part.bytes()
            .all(|b| b"bcdfghjklmnpqrstvwxz2456789".contains(&b))
    };
    let mut parts = token.rsplitn(3, '-');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(pod), Some(set), Some(name))
            if pod.len() == 5
                && (8..=10).contains(&set.len())
                && is_added(pod)
                && is_added(set) =>
        {
            name
        }
        _ => token,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Small,
    Capital,
    Digit,
}

impl Kind {
    fn of(byte: u8) -> Self {
        match byte {
            b'a'..=b'z' => Self::Small,
            b'A'..=b'Z' => Self::Capital,
            _ => Self::Digit,
        }
    }
}

#[cfg(test)]
mod tests;
