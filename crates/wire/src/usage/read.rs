//! One usage object → counts. OpenAI's two dialects and Anthropic's differ in names only, save that
//! Anthropic's `input_tokens` leaves out what the cache served and stored; we add it. Some engines
//! leave reasoning out of the completion and count it in the total; we add that too.
//!
//! Invariant: of members with the same name the last one counts, with all that it holds.
//! Not here: finding the object in a response (`unary`, `sse`).

use super::{Reading, TOKEN_LIMIT, Usage};
use crate::dialect::{Name, name, names};
use crate::json::{Kind, Reader};

/// Reads a usage value as it stands in a response.
pub fn read(raw: &[u8]) -> Reading {
    let mut reader = Reader::new(raw);
    let mut reading = Reading::Absent;
    let is_read = read_at(&mut reader, &mut reading).is_some();
    if is_read && reader.is_at_end() {
        reading
    } else {
        Reading::Invalid(Usage::default())
    }
}

/// Reads the usage value that starts here into `reading`, in place because it is large. `None` where the
/// text is not JSON.
pub(super) fn read_at(reader: &mut Reader<'_>, reading: &mut Reading) -> Option<()> {
    if reader.kind()? != Kind::Object {
        *reading = match reader.value()? {
            (Kind::Null, _) => Reading::Absent,
            _ => Reading::Invalid(Usage::default()),
        };
        return Some(());
    }
    let report = Report::of(reader)?;
    if report.read_into(reading).is_none() {
        *reading = Reading::Invalid(report.said());
    }
    Some(())
}

/// A count as it was reported: a number up to [`Count::MOST`], or one of two marks beyond it, for what is not
/// there or null and for what cannot be a count. In one word, as a report has seventeen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count(u64);

/// Two counts of interest out of the details of a count. Details that are no object are impossible as a whole.
type Details = [Count; 2];

/// What the members say, before they are compared.
#[derive(Clone, Copy, Debug)]
struct Report {
    prompt: [Count; 2],
    completion: [Count; 2],
    total: Count,
    cache_read: Count,
    cache_stored: Count,
    cache_writes: Details,
    cached: [Details; 2],
    reasoning: [Details; 2],
}

impl Report {
    const EMPTY: Self = Self {
        prompt: [Count::ABSENT; 2],
        completion: [Count::ABSENT; 2],
        total: Count::ABSENT,
        cache_read: Count::ABSENT,
        cache_stored: Count::ABSENT,
        cache_writes: [Count::ABSENT; 2],
        cached: [[Count::ABSENT; 2]; 2],
        reasoning: [[Count::ABSENT; 2]; 2],
    };

    /// `None` where no whole object starts here.
    fn of(reader: &mut Reader<'_>) -> Option<Self> {
        let mut report = Self::EMPTY;
        let Self {
            prompt: [prompt, input],
            completion: [completion, output],
            total,
            cache_read,
            cache_stored,
            cache_writes,
            cached: [prompt_details, input_details],
            reasoning: [completion_details, output_details],
        } = &mut report;
        let mut more = reader.open()?;
        while more {
            let name = reader.name()?;
            let is = |member: &str| *name == *member.as_bytes();
            let (count, details) = if is(PROMPT_TOKENS[0]) {
                (Some(&mut *prompt), None)
            } else if is(COMPLETION_TOKENS[0]) {
                (Some(&mut *completion), None)
            } else if is(TOTAL_TOKENS) {
                (Some(&mut *total), None)
            } else if is(PROMPT_TOKENS[1]) {
                (Some(&mut *input), None)
            } else if is(COMPLETION_TOKENS[1]) {
                (Some(&mut *output), None)
            } else if is(CACHE_READ) {
                (Some(&mut *cache_read), None)
            } else if is(CACHE_STORED) {
                (Some(&mut *cache_stored), None)
            } else if is(CACHE_WRITES) {
                (None, Some((&mut *cache_writes, WRITES)))
            } else if is(PROMPT_DETAILS[0]) {
                (None, Some((&mut *prompt_details, CACHED)))
            } else if is(PROMPT_DETAILS[1]) {
                (None, Some((&mut *input_details, CACHED)))
            } else if is(COMPLETION_DETAILS[0]) {
                (None, Some((&mut *completion_details, REASONING)))
            } else if is(COMPLETION_DETAILS[1]) {
                (None, Some((&mut *output_details, REASONING)))
            } else {
                (None, None)
            };
            match (count, details) {
                (Some(count), _) => *count = Count::read(reader)?,
                (None, Some((details, inner))) => *details = details_of(reader, inner)?,
                (None, None) => {
                    reader.pass()?;
                }
            }
            more = reader.more()?;
        }
        Some(report)
    }

    /// Prompt and completion where they are numbers, be they true or not.
    fn said(&self) -> Usage {
        let first = |[first, second]: [Count; 2]| first.said().or(second.said());
        Usage {
            prompt: first(self.prompt),
            completion: first(self.completion),
            ..Usage::default()
        }
    }

    /// `None` where it cannot be true.
    fn read_into(&self, reading: &mut Reading) -> Option<()> {
        let cache_read = self.cache_read.tokens()?;
        let writes = self.cache_writes()?;
        let stored = writes.five_minutes.unwrap_or(0) + writes.hour.unwrap_or(0);
        let beside_cache = cache_read.unwrap_or(0) + stored;
        let [cached, audio_prompt] = first_details(self.cached)?;
        let [reasoning, audio_completion] = first_details(self.reasoning)?;
        let mut usage = Usage {
            prompt: first_of(self.prompt.map(Count::tokens))?.map(|prompt| prompt + beside_cache),
            completion: first_of(self.completion.map(Count::tokens))?,
            total: self.total.tokens()?,
            cached: cached.or(cache_read),
            cache_write_5m: writes.five_minutes,
            cache_write_1h: writes.hour,
            reasoning,
            audio_prompt,
            audio_completion,
            doubtful: writes.do_not_add_up,
        };
        if usage == Usage::default() {
            *reading = Reading::Absent;
            return Some(());
        }
        if !usage.is_possible() {
            return None;
        }
        add_up(&mut usage);
        *reading = Reading::Valid(usage);
        Some(())
    }

    /// What was written to caches: Anthropic's sum, which its details part by how long it is kept; what
    /// they do not part is kept five minutes, which is the default there. `None` where it cannot be true.
    fn cache_writes(&self) -> Option<CacheWrites> {
        let stored = self.cache_stored.tokens()?;
        let [five_minutes, hour] = both(self.cache_writes)?;
        if five_minutes.is_none() && hour.is_none() {
            return Some(CacheWrites {
                five_minutes: stored,
                ..CacheWrites::default()
            });
        }
        let parted = five_minutes.unwrap_or(0) + hour.unwrap_or(0);
        let rest = stored.unwrap_or(parted).saturating_sub(parted);
        Some(CacheWrites {
            five_minutes: Some(five_minutes.unwrap_or(0) + rest),
            hour,
            do_not_add_up: stored.is_some_and(|stored| stored != parted),
        })
    }
}

/// Prompt tokens written to caches, by how long they are kept.
#[derive(Clone, Copy, Debug, Default)]
struct CacheWrites {
    five_minutes: Option<u64>,
    hour: Option<u64>,
    do_not_add_up: bool,
}

/// Adds reasoning to the completion where the engine's sum has it beside, and marks what does not add up.
fn add_up(usage: &mut Usage) {
    let (Some(prompt), Some(completion)) = (usage.prompt, usage.completion) else {
        return;
    };
    let reasoning = usage.reasoning.unwrap_or(0);
    let beside = usage.total.map(|total| total - prompt - completion);
    if beside == Some(reasoning) && reasoning > 0 {
        usage.completion = Some(completion + reasoning);
        return;
    }
    let within = |part: Option<u64>, of: u64| part.is_none_or(|part| part <= of);
    usage.doubtful |= beside.is_some_and(|beside| beside > 0)
        || reasoning > completion
        || !within(usage.audio_prompt, prompt)
        || !within(usage.audio_completion, completion);
}

/// Two names of one count, or those of two counts inside a details object.
type Two = [&'static str; 2];

const PROMPT_TOKENS: Two = names(Name::PromptTokens);
const COMPLETION_TOKENS: Two = names(Name::CompletionTokens);
const TOTAL_TOKENS: &str = name(Name::TotalTokens);
const CACHE_READ: &str = name(Name::CacheRead);
const CACHE_STORED: &str = name(Name::CacheStored);
const CACHE_WRITES: &str = name(Name::CacheWrites);
const PROMPT_DETAILS: Two = names(Name::PromptDetails);
const COMPLETION_DETAILS: Two = names(Name::CompletionDetails);

const CACHED: Two = [name(Name::CachedTokens), name(Name::AudioTokens)];
const REASONING: Two = [name(Name::ReasoningTokens), name(Name::AudioTokens)];
const WRITES: Two = [name(Name::CacheWrite5m), name(Name::CacheWrite1h)];

/// The counts of the first of two details objects that has them. Both must be possible.
fn first_details([first, second]: [Details; 2]) -> Option<[Option<u64>; 2]> {
    let ([a, b], [c, d]) = (both(first)?, both(second)?);
    Some([a.or(c), b.or(d)])
}

/// The first of two names for the same count that is there. Both must be possible.
fn first_of([first, second]: [Option<Option<u64>>; 2]) -> Option<Option<u64>> {
    let (first, second) = (first?, second?);
    Some(first.or(second))
}

impl Count {
    const ABSENT: Self = Self(u64::MAX);
    const IMPOSSIBLE: Self = Self(u64::MAX - 1);
    /// What a ledger can hold is kept, be it beyond [`TOKEN_LIMIT`].
    const MOST: u64 = i64::MAX.unsigned_abs();

    /// `None` where the text is not JSON.
    #[inline]
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        match reader.short_count() {
            Some(tokens) => Some(Self(tokens.into())),
            None => Self::read_other(reader),
        }
    }

    #[inline(never)]
    fn read_other(reader: &mut Reader<'_>) -> Option<Self> {
        let (kind, raw) = reader.value()?;
        Some(match kind {
            Kind::Null => Self::ABSENT,
            Kind::Number => Self::of(raw),
            _ => Self::IMPOSSIBLE,
        })
    }

    #[inline]
    fn tokens(self) -> Option<Option<u64>> {
        match self {
            Self(tokens @ ..=TOKEN_LIMIT) => Some(Some(tokens)),
            Self::ABSENT => Some(None),
            Self(_) => None,
        }
    }

    fn of(digits: &[u8]) -> Self {
        if let Some(tokens) = tokens(digits) {
            return Self(tokens);
        }
        let number = std::str::from_utf8(digits).ok();
        match number.and_then(|number| number.parse::<i64>().ok()) {
            Some(number) if !digits.starts_with(b"-") => Self(number.unsigned_abs()),
            Some(_) | None => Self::IMPOSSIBLE,
        }
    }

    const fn said(self) -> Option<u64> {
        match self {
            Self(number @ ..=Self::MOST) => Some(number),
            Self(_) => None,
        }
    }
}

/// Reads details. `None` where the text is not JSON.
fn details_of(reader: &mut Reader<'_>, names: Two) -> Option<Details> {
    match reader.kind()? {
        Kind::Object => {}
        Kind::Null => return reader.value().map(|_| [Count::ABSENT; 2]),
        _ => return reader.value().map(|_| [Count::IMPOSSIBLE; 2]),
    }
    let [mut first, mut second] = [Count::ABSENT; 2];
    let [first_name, second_name] = names;
    let mut more = reader.open()?;
    while more {
        let name = reader.name()?;
        if *name == *first_name.as_bytes() {
            first = Count::read(reader)?;
        } else if *name == *second_name.as_bytes() {
            second = Count::read(reader)?;
        } else {
            reader.pass()?;
        }
        more = reader.more()?;
    }
    Some([first, second])
}

/// `None` where one of them is impossible.
fn both([first, second]: Details) -> Option<[Option<u64>; 2]> {
    Some([first.tokens()?, second.tokens()?])
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
