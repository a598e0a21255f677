//! One usage object → counts. OpenAI's two dialects and Anthropic's differ in names only, save that
//! Anthropic's `input_tokens` leaves out what the cache served and stored; we add it.

use super::{Reading, TOKEN_LIMIT, Usage};
use crate::json::{Found, Interest, Interests, Kind, Repeat, Scanner, Want};

const fn count(path: &'static str) -> Interest {
    Interest::new(path, Want::Raw(64), Repeat::LastWins)
}

const fn group(path: &'static str) -> Interest {
    Interest::new(path, Want::Place, Repeat::LastWins)
}

const PROMPT: [usize; 2] = [0, 1];
const COMPLETION: [usize; 2] = [2, 3];
const TOTAL: [usize; 1] = [4];
const CACHED: [usize; 2] = [5, 6];
const REASONING: [usize; 2] = [7, 8];
const CACHE_READ: [usize; 1] = [9];
const CACHE_STORED: [usize; 1] = [10];
const GROUPS: std::ops::Range<usize> = 11..15;

static ASKED: Interests = Interests::new(&[
    count("prompt_tokens"),
    count("input_tokens"),
    count("completion_tokens"),
    count("output_tokens"),
    count("total_tokens"),
    count("prompt_tokens_details.cached_tokens"),
    count("input_tokens_details.cached_tokens"),
    count("completion_tokens_details.reasoning_tokens"),
    count("output_tokens_details.reasoning_tokens"),
    count("cache_read_input_tokens"),
    count("cache_creation_input_tokens"),
    group("prompt_tokens_details"),
    group("input_tokens_details"),
    group("completion_tokens_details"),
    group("output_tokens_details"),
]);

/// Reads a usage value as it stands in a response.
pub fn read(raw: &[u8]) -> Reading {
    if raw == b"null" {
        return Reading::Absent;
    }
    let mut scanner = Scanner::new(&ASKED);
    match scanner.push(raw).and_then(|()| scanner.finish()) {
        Ok(found) if found.open.is_some() => counts(&found).unwrap_or(Reading::Invalid),
        _ => Reading::Invalid,
    }
}

/// A count that is there and cannot be true.
struct Impossible;

fn counts(found: &Found) -> Result<Reading, Impossible> {
    for at in GROUPS {
        if found
            .member(at)
            .is_some_and(|m| !matches!(m.kind, Kind::Object | Kind::Null))
        {
            return Err(Impossible);
        }
    }
    let cache_read = one_of(found, &CACHE_READ)?;
    let cache_stored = one_of(found, &CACHE_STORED)?;
    let beside_cache = cache_read.unwrap_or(0) + cache_stored.unwrap_or(0);
    let usage = Usage {
        prompt: one_of(found, &PROMPT)?.map(|prompt| prompt + beside_cache),
        completion: one_of(found, &COMPLETION)?,
        total: one_of(found, &TOTAL)?,
        cached: one_of(found, &CACHED)?.or(cache_read),
        reasoning: one_of(found, &REASONING)?,
    };
    if usage == Usage::default() {
        return Ok(Reading::Absent);
    }
    let cached_beyond_prompt = usage
        .prompt
        .zip(usage.cached)
        .is_some_and(|(prompt, cached)| cached > prompt);
    let parts = usage.prompt.unwrap_or(0) + usage.completion.unwrap_or(0);
    if cached_beyond_prompt || usage.total.is_some_and(|total| total < parts) {
        return Err(Impossible);
    }
    Ok(Reading::Valid(usage))
}

/// The first of these members that is there and not null. All of them must be possible.
fn one_of(found: &Found, interests: &[usize]) -> Result<Option<u64>, Impossible> {
    let mut first = None;
    for &interest in interests {
        let Some(member) = found.member(interest).filter(|m| m.kind != Kind::Null) else {
            continue;
        };
        let digits = found.raw(member);
        let plain =
            member.kind == Kind::Number && !member.cut && digits.iter().all(u8::is_ascii_digit);
        let number = std::str::from_utf8(digits)
            .ok()
            .filter(|_| plain)
            .and_then(|d| d.parse().ok());
        let number = number
            .filter(|&n: &u64| n <= TOKEN_LIMIT)
            .ok_or(Impossible)?;
        first = first.or(Some(number));
    }
    Ok(first)
}
