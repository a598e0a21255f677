//! One usage object → counts. OpenAI's two dialects and Anthropic's differ in names only, save that
//! Anthropic's `input_tokens` leaves out what the cache served and stored; we add it.
//!
//! Invariant: of members with the same name the last one counts, with all that it holds.
//! Not here: finding the object in a response (`unary`, `sse`).

use super::{Reading, TOKEN_LIMIT, Usage};
use crate::json::{Kind, Reader};

/// Reads a usage value as it stands in a response.
pub fn read(raw: &[u8]) -> Reading {
    let mut reader = Reader::new(raw);
    let reading = read_at(&mut reader);
    reading
        .filter(|_| reader.is_at_end())
        .unwrap_or(Reading::Invalid(Usage::default()))
}

/// Reads the usage value that starts here. `None` where the text is not JSON.
pub(super) fn read_at(reader: &mut Reader<'_>) -> Option<Reading> {
    if reader.kind()? != Kind::Object {
        return match reader.value()? {
            (Kind::Null, _) => Some(Reading::Absent),
            _ => Some(Reading::Invalid(Usage::default())),
        };
    }
    let report = Report::of(reader)?;
    let reading = report.reading();
    Some(reading.unwrap_or_else(|| Reading::Invalid(report.said())))
}

/// A count as it was reported: not there or null, a number, or something that cannot be a count.
#[derive(Clone, Copy, Debug, Default)]
enum Count {
    #[default]
    Absent,
    Tokens(u64),
    /// A whole number beyond what can be.
    Beyond(u64),
    Impossible,
}

/// The details of a count: not there or null, or an object; else all is impossible.
#[derive(Clone, Copy, Debug, Default)]
enum Details {
    #[default]
    Absent,
    Object(Count),
    Impossible,
}

/// What the members say, before they are compared.
#[derive(Clone, Copy, Debug, Default)]
struct Report {
    prompt: [Count; 2],
    completion: [Count; 2],
    total: Count,
    cache_read: Count,
    cache_stored: Count,
    cached: [Details; 2],
    reasoning: [Details; 2],
}

impl Report {
    /// `None` where no whole object starts here.
    fn of(reader: &mut Reader<'_>) -> Option<Self> {
        let mut report = Self::default();
        let Self {
            prompt: [prompt, input],
            completion: [completion, output],
            total,
            cache_read,
            cache_stored,
            cached: [prompt_details, input_details],
            reasoning: [completion_details, output_details],
        } = &mut report;
        let mut more = reader.open()?;
        while more {
            let name = reader.name()?;
            let is = |member: &[u8]| *name == *member;
            let (count, details) = if is(b"prompt_tokens") {
                (Some(&mut *prompt), None)
            } else if is(b"completion_tokens") {
                (Some(&mut *completion), None)
            } else if is(b"total_tokens") {
                (Some(&mut *total), None)
            } else if is(b"input_tokens") {
                (Some(&mut *input), None)
            } else if is(b"output_tokens") {
                (Some(&mut *output), None)
            } else if is(b"cache_read_input_tokens") {
                (Some(&mut *cache_read), None)
            } else if is(b"cache_creation_input_tokens") {
                (Some(&mut *cache_stored), None)
            } else if is(b"prompt_tokens_details") {
                (None, Some((&mut *prompt_details, CACHED)))
            } else if is(b"input_tokens_details") {
                (None, Some((&mut *input_details, CACHED)))
            } else if is(b"completion_tokens_details") {
                (None, Some((&mut *completion_details, REASONING)))
            } else if is(b"output_tokens_details") {
                (None, Some((&mut *output_details, REASONING)))
            } else {
                (None, None)
            };
            match (count, details) {
                (Some(count), _) => *count = Count::read(reader)?,
                (None, Some((details, inner))) => *details = Details::read(reader, inner)?,
                (None, None) => {
                    reader.pass()?;
                }
            }
            more = reader.more()?;
        }
        Some(report)
    }

    /// Prompt and completion where they are numbers, be they true or not.
    fn said(self) -> Usage {
        let first = |[first, second]: [Count; 2]| first.said().or(second.said());
        Usage {
            prompt: first(self.prompt),
            completion: first(self.completion),
            ..Usage::default()
        }
    }

    /// `None` where it cannot be true.
    fn reading(self) -> Option<Reading> {
        let cache_read = self.cache_read.tokens()?;
        let beside_cache = cache_read.unwrap_or(0) + self.cache_stored.tokens()?.unwrap_or(0);
        let usage = Usage {
            prompt: first_of(self.prompt.map(Count::tokens))?.map(|prompt| prompt + beside_cache),
            completion: first_of(self.completion.map(Count::tokens))?,
            total: self.total.tokens()?,
            cached: first_of(self.cached.map(Details::tokens))?.or(cache_read),
            reasoning: first_of(self.reasoning.map(Details::tokens))?,
        };
        if usage == Usage::default() {
            return Some(Reading::Absent);
        }
        let cached_beyond_prompt = usage
            .prompt
            .zip(usage.cached)
            .is_some_and(|(prompt, cached)| cached > prompt);
        let parts = usage.prompt.unwrap_or(0) + usage.completion.unwrap_or(0);
        if cached_beyond_prompt || usage.total.is_some_and(|total| total < parts) {
            return None;
        }
        Some(Reading::Valid(usage))
    }
}

const CACHED: &[u8] = b"cached_tokens";
const REASONING: &[u8] = b"reasoning_tokens";

/// The first of two names for the same count that is there. Both must be possible.
fn first_of([first, second]: [Option<Option<u64>>; 2]) -> Option<Option<u64>> {
    let (first, second) = (first?, second?);
    Some(first.or(second))
}

impl Count {
    /// `None` where the text is not JSON.
    #[inline]
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        match reader.short_count() {
            Some(tokens) => Some(Self::Tokens(tokens.into())),
            None => Self::read_other(reader),
        }
    }

    #[inline(never)]
    fn read_other(reader: &mut Reader<'_>) -> Option<Self> {
        let (kind, raw) = reader.value()?;
        Some(match kind {
            Kind::Null => Self::Absent,
            Kind::Number => Self::of(raw),
            _ => Self::Impossible,
        })
    }

    fn tokens(self) -> Option<Option<u64>> {
        match self {
            Self::Absent => Some(None),
            Self::Tokens(tokens) => Some(Some(tokens)),
            Self::Beyond(_) | Self::Impossible => None,
        }
    }

    fn of(digits: &[u8]) -> Self {
        if let Some(tokens) = tokens(digits) {
            return Self::Tokens(tokens);
        }
        let number = std::str::from_utf8(digits).ok();
        // What a ledger can hold is kept.
        match number.and_then(|number| number.parse::<i64>().ok()) {
            Some(number) if !digits.starts_with(b"-") => Self::Beyond(number.unsigned_abs()),
            Some(_) | None => Self::Impossible,
        }
    }

    const fn said(self) -> Option<u64> {
        match self {
            Self::Tokens(number) | Self::Beyond(number) => Some(number),
            Self::Absent | Self::Impossible => None,
        }
    }
}

impl Details {
    /// `None` where the text is not JSON.
    fn read(reader: &mut Reader<'_>, name: &[u8]) -> Option<Self> {
        match reader.kind()? {
            Kind::Object => {}
            Kind::Null => return reader.value().map(|_| Self::Absent),
            _ => return reader.value().map(|_| Self::Impossible),
        }
        let mut count = Count::Absent;
        let mut more = reader.open()?;
        while more {
            if *reader.name()? == *name {
                count = Count::read(reader)?;
            } else {
                reader.pass()?;
            }
            more = reader.more()?;
        }
        Some(Self::Object(count))
    }

    fn tokens(self) -> Option<Option<u64>> {
        match self {
            Self::Absent => Some(None),
            Self::Object(count) => count.tokens(),
            Self::Impossible => None,
        }
    }
}

/// A number of plain digits, up to the limit.
fn tokens(digits: &[u8]) -> Option<u64> {
    if digits.len() > 13 {
        return None;
    }
    let mut tokens = 0;
    for digit in digits {
        let value = digit.wrapping_sub(b'0');
        if value > 9 {
            return None;
        }
        tokens = tokens * 10 + u64::from(value);
    }
    (tokens <= TOKEN_LIMIT).then_some(tokens)
}
