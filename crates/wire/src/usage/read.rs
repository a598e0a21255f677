//! Usage objects → counts. OpenAI's two dialects and Anthropic's differ in names only, save that
//! Anthropic's `input_tokens` leaves out what the cache served and stored; we add it. Some engines
//! leave reasoning out of the completion and count it in the total; we add that too. Google has it beside the completion by
//! name, and what its own tools gave beside the prompt. Amazon's means what Anthropic's does. Cohere's stands in objects of its own: what
//! was read counts before what is billed.
//!
//! Invariant: of members with the same name the last one counts, with all that it holds; several reports of one answer are
//! merged member by member before anything is compared, as one event may have a part and another its whole.
//! Not here: finding the object in a response (`unary`, `sse`).

use std::array::from_mut;

use super::cache_writes::cache_writes;
use super::modality::audio;
use super::{Reading, TOKEN_LIMIT, Usage};
use crate::dialect::{Name, cohere, name, names};
use crate::json::{Kind, Reader};

/// Reads a usage value as it stands in a response.
pub fn read(raw: &[u8]) -> Reading {
    let mut reading = Reading::Absent;
    Report::read(raw).judge(&mut reading);
    reading
}

/// Reads the usage value that starts here into `reading`, in place because it is large. `None` where the
/// text is not JSON.
pub(super) fn read_at(reader: &mut Reader<'_>, reading: &mut Reading) -> Option<()> {
    Report::of_value(reader)?.judge(reading);
    Some(())
}

/// A count as it was reported: a number up to [`Count::MOST`], or one of two marks beyond it, for what is not
/// there or null and for what cannot be a count. In one word, as a report has twenty-five.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count(u64);

/// One count under the names that two dialects have for it.
type Pair = [Count; 2];
/// The same of three.
type Triple = [Count; 3];

/// What the members say, before they are compared: of one report, or of all that one answer has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    prompt: Triple,
    completion: Triple,
    /// What neither of the two names of a prompt holds, and no name of a completion.
    beside: [Count; 2],
    total: Pair,
    cache_read: Count,
    cache_stored: Count,
    /// By how long they are kept: five minutes, an hour.
    cache_writes: [Count; 2],
    cached: Pair,
    cached_beside: Triple,
    written: Pair,
    audio_prompt: Triple,
    reasoning: Pair,
    audio_completion: Triple,
    /// Units of search; 0 where none is told.
    searches: u32,
    /// Something was no report, or cannot be true and was replaced or left.
    is_doubtful: bool,
}

impl Report {
    const EMPTY: Self = Self {
        prompt: [Count::ABSENT; 3],
        completion: [Count::ABSENT; 3],
        beside: [Count::ABSENT; 2],
        total: [Count::ABSENT; 2],
        cache_read: Count::ABSENT,
        cache_stored: Count::ABSENT,
        cache_writes: [Count::ABSENT; 2],
        cached: [Count::ABSENT; 2],
        cached_beside: [Count::ABSENT; 3],
        written: [Count::ABSENT; 2],
        audio_prompt: [Count::ABSENT; 3],
        reasoning: [Count::ABSENT; 2],
        audio_completion: [Count::ABSENT; 3],
        searches: 0,
        is_doubtful: false,
    };

    /// One that is no object, or too long to be read.
    pub(crate) const UNREADABLE: Self = Self {
        is_doubtful: true,
        ..Self::EMPTY
    };

    /// Reads a usage value as it stands in a response.
    pub(crate) fn read(raw: &[u8]) -> Self {
        let mut reader = Reader::new(raw);
        match Self::of_value(&mut reader) {
            Some(report) if reader.is_at_end() => report,
            Some(_) | None => Self::UNREADABLE,
        }
    }

    /// `None` where no whole value starts here.
    fn of_value(reader: &mut Reader<'_>) -> Option<Self> {
        if reader.kind()? == Kind::Object {
            return Self::of(reader);
        }
        Some(match reader.value()? {
            (Kind::Null, _) => Self::EMPTY,
            _ => Self::UNREADABLE,
        })
    }

    /// `None` where no whole object starts here.
    fn of(reader: &mut Reader<'_>) -> Option<Self> {
        let mut report = Self::EMPTY;
        let Self {
            prompt: [prompt, input, asked],
            completion: [completion, output, made],
            beside: [prompt_beside, reasoning_beside],
            total: [total, sum],
            cache_read,
            cache_stored,
            cache_writes: [five_minutes, hour],
            cached: [prompt_cached, input_cached],
            cached_beside: [cache_hit, cached_alone, cached_content],
            written: [prompt_written, input_written],
            audio_prompt: [prompt_audio, input_audio, asked_audio],
            reasoning: [completion_reasoning, output_reasoning],
            audio_completion: [completion_audio, output_audio, made_audio],
            searches,
            is_doubtful: _,
        } = &mut report;
        let mut more = reader.open()?;
        while more {
            let name = reader.name()?;
            let is = |member: &str| *name == *member.as_bytes();
            let (count, details) = if is(PROMPT_TOKENS[0]) {
                (Some(&mut *prompt), None)
            } else if is(COMPLETION_TOKENS[0]) {
                (Some(&mut *completion), None)
            } else if is(TOTAL_TOKENS[0]) {
                (Some(&mut *total), None)
            } else if is(PROMPT_TOKENS[1]) {
                (Some(&mut *input), None)
            } else if is(COMPLETION_TOKENS[1]) {
                (Some(&mut *output), None)
            } else if is(CACHE_READ[0]) {
                (Some(&mut *cache_read), None)
            } else if is(CACHE_STORED[0]) {
                (Some(&mut *cache_stored), None)
            } else if is(CACHE_WRITES) {
                (None, Some(([&mut *five_minutes, &mut *hour], None, WRITES)))
            } else if is(PROMPT_DETAILS[0]) {
                let details = [&mut *prompt_cached, &mut *prompt_audio];
                (None, Some((details, Some(&mut *prompt_written), CACHED)))
            } else if is(PROMPT_DETAILS[1]) {
                let details = [&mut *input_cached, &mut *input_audio];
                (None, Some((details, Some(&mut *input_written), CACHED)))
            } else if is(COMPLETION_DETAILS[0]) {
                let details = [&mut *completion_reasoning, &mut *completion_audio];
                (None, Some((details, None, REASONING)))
            } else if is(COMPLETION_DETAILS[1]) {
                let details = [&mut *output_reasoning, &mut *output_audio];
                (None, Some((details, None, REASONING)))
            } else if is(CACHED_BESIDE[0]) {
                (Some(&mut *cache_hit), None)
            } else if is(CACHED_BESIDE[1]) {
                (Some(&mut *cached_alone), None)
            } else if is(PROMPT_TOKENS[2]) {
                (Some(&mut *asked), None)
            } else if is(COMPLETION_TOKENS[2]) {
                (Some(&mut *made), None)
            } else if is(TOTAL_TOKENS[1]) {
                (Some(&mut *sum), None)
            } else if is(REASONING_BESIDE) {
                (Some(&mut *reasoning_beside), None)
            } else if is(CACHED_BESIDE[2]) {
                (Some(&mut *cached_content), None)
            } else if is(PROMPT_BESIDE) {
                (Some(&mut *prompt_beside), None)
            } else if is(PROMPT_TOKENS[3]) {
                (Some(&mut *input), None)
            } else if is(COMPLETION_TOKENS[3]) {
                (Some(&mut *output), None)
            } else if is(TOTAL_TOKENS[2]) {
                (Some(&mut *total), None)
            } else if is(CACHE_READ[1]) {
                (Some(&mut *cache_read), None)
            } else if is(CACHE_STORED[1]) {
                (Some(&mut *cache_stored), None)
            } else if is(PROMPT_DETAILS[2]) {
                let details = [&mut *input_cached, &mut *input_audio];
                (None, Some((details, Some(&mut *input_written), CACHED)))
            } else {
                (None, None)
            };
            match (count, details) {
                (Some(count), _) => *count = Count::read(reader)?,
                (None, Some((into, into_third, inner))) => {
                    let [first, second, third] = details_of(reader, inner)?;
                    let [into_first, into_second] = into;
                    (*into_first, *into_second) = (first, second);
                    if let Some(into_third) = into_third {
                        *into_third = third;
                    }
                }
                (None, None) if is(PROMPT_MODALITIES) => *asked_audio = audio_of(reader)?,
                (None, None) if is(COMPLETION_MODALITIES) => *made_audio = audio_of(reader)?,
                (None, None) if is(UNITS[0]) || is(UNITS[1]) => {
                    let is_read = is(UNITS[0]);
                    if reader.kind()? == Kind::Object {
                        let [asked, made, searched] = details_of(reader, OF_UNITS)?;
                        for (into, count) in [(&mut *input, asked), (&mut *output, made)] {
                            if is_read && count != Count::ABSENT || *into == Count::ABSENT {
                                *into = count;
                            }
                        }
                        let searched = searched.tokens().map(u32::try_from);
                        *searches = searched.map_or(*searches, |units| units.unwrap_or(u32::MAX));
                    } else {
                        reader.pass()?;
                    }
                }
                (None, None) if is(CACHE_WRITE_LIST) => {
                    [*five_minutes, *hour] = cache_writes_of(reader)?;
                }
                (None, None) => reader.pass()?,
            }
            more = reader.more()?;
        }
        Some(report)
    }

    /// Whether it has a completion that can be true.
    pub(crate) fn tells_completion(&self) -> bool {
        let [_, reasoning_beside] = self.beside;
        let mut counts = self.completion.into_iter().chain([reasoning_beside]);
        counts.any(Count::is_readable)
    }

    /// Takes a later report of the same answer, member by member: each count that it has replaces the earlier one,
    /// unless only the earlier one can be true.
    pub(crate) fn take_later(&mut self, later: &Self) {
        let mut sums = later.prompt.into_iter().chain(later.completion);
        let has_sum = sums.any(Count::is_readable);
        let has_sum = has_sum || later.beside.into_iter().any(Count::is_readable);
        if later.total == [Count::ABSENT; 2] && has_sum {
            // A sum is of the counts beside it.
            self.total = [Count::ABSENT; 2];
        }
        self.leave_earlier_writes(later);
        let are_doubtful = [
            replace(&mut self.prompt, later.prompt),
            replace(&mut self.completion, later.completion),
            replace_each(&mut self.beside, later.beside),
            replace(&mut self.total, later.total),
            replace(from_mut(&mut self.cache_read), [later.cache_read]),
            replace(from_mut(&mut self.cache_stored), [later.cache_stored]),
            replace_each(&mut self.cache_writes, later.cache_writes),
            replace(&mut self.cached, later.cached),
            replace(&mut self.cached_beside, later.cached_beside),
            replace(&mut self.written, later.written),
            replace(&mut self.audio_prompt, later.audio_prompt),
            replace(&mut self.reasoning, later.reasoning),
            replace(&mut self.audio_completion, later.audio_completion),
        ];
        if later.searches > 0 {
            self.searches = later.searches;
        }
        self.is_doubtful |= later.is_doubtful || are_doubtful.contains(&true);
    }

    /// Leaves what an earlier report said of cache writes where the later one says it otherwise: parts that are more than
    /// its sum, or a sum that it parts anew. A sum that has not shrunk leaves the parts: it seldom repeats them.
    fn leave_earlier_writes(&mut self, later: &Self) {
        let said = later.cache_writes.map(Count::tokens);
        if let [Some(_), Some(_)] = said {
            self.cache_stored = Count::ABSENT;
        }
        let parts = self.cache_writes.map(Count::tokens).into_iter().flatten();
        if said == [None; 2]
            && let Some(stored) = later.cache_stored.tokens()
            && parts.sum::<u64>() > stored
        {
            self.cache_writes = [Count::ABSENT; 2];
        }
    }

    /// What of it can be true.
    pub(crate) fn judge(&self, reading: &mut Reading) {
        let mut judge = Judge {
            is_doubtful: self.is_doubtful,
        };
        let cache_read = judge.count(self.cache_read);
        let writes = self.cache_writes(&mut judge);
        let stored = writes.five_minutes.unwrap_or(0) + writes.hour.unwrap_or(0);
        let [prompt, input, asked] = self.prompt;
        // What the cache served and stored is beside `input_tokens`, and part of what has another name.
        let prompt = match [prompt, input, asked].map(|count| judge.count(count)) {
            [None, Some(input), _] => Count(input + cache_read.unwrap_or(0) + stored),
            [None, None, Some(asked)] => Count(asked),
            [None, None, None] if prompt == Count::ABSENT && input == Count::ABSENT => asked,
            _ => prompt,
        };
        let [prompt_beside, reasoning_beside] = self.beside;
        let prompt = judge.with(prompt, prompt_beside);
        let completion = judge.first_of(self.completion);
        let completion = judge.with(completion, reasoning_beside);
        let prompt_said = said([prompt, input, asked]);
        let [first, second, third] = self.completion;
        let completion_said = said([completion, first, second, third]);
        let [cached, written] = [self.cached, self.written].map(|pair| judge.first(pair));
        let cached_beside = judge.first(self.cached_beside);
        let mut usage = Usage {
            prompt: judge.count(prompt),
            completion: judge.count(completion),
            total: judge.first(self.total),
            cached: cached.or(cached_beside).or(cache_read),
            cache_write_5m: writes.five_minutes.or(written),
            cache_write_1h: writes.hour,
            reasoning: judge.first(self.reasoning).or(reasoning_beside.tokens()),
            audio_prompt: judge.first(self.audio_prompt),
            audio_completion: judge.first(self.audio_completion),
            searches: self.searches,
            ..Usage::default()
        };
        judge.compare(&mut usage);
        usage.doubtful = judge.is_doubtful;
        if usage.prompt.is_none() {
            usage.prompt_said = prompt_said;
        }
        if usage.completion.is_none() {
            usage.completion_said = completion_said;
        }
        let has_sum = usage.prompt.is_some() || usage.completion.is_some();
        *reading = if usage == Usage::default() {
            Reading::Absent
        } else if has_sum || !usage.doubtful {
            Reading::Valid(usage)
        } else {
            Reading::Invalid(Usage {
                prompt_said,
                completion_said,
                ..Usage::default()
            })
        };
    }

    /// What was written to caches: Anthropic's sum, which its details part by how long it is kept; what
    /// they do not part is kept five minutes, which is the default there.
    fn cache_writes(&self, judge: &mut Judge) -> CacheWrites {
        let stored = judge.count(self.cache_stored);
        let [five_minutes, hour] = self.cache_writes.map(|count| judge.count(count));
        if five_minutes.is_none() && hour.is_none() {
            return CacheWrites {
                five_minutes: stored,
                hour: None,
            };
        }
        let parted = five_minutes.unwrap_or(0) + hour.unwrap_or(0);
        judge.is_doubtful |= stored.is_some_and(|stored| stored != parted);
        let rest = stored.unwrap_or(parted).saturating_sub(parted);
        CacheWrites {
            five_minutes: Some(five_minutes.unwrap_or(0) + rest),
            hour,
        }
    }
}

/// Reads counts, and remembers whether anything had to be dropped.
#[derive(Clone, Copy, Debug)]
struct Judge {
    is_doubtful: bool,
}

impl Judge {
    #[inline]
    fn count(&mut self, count: Count) -> Option<u64> {
        let tokens = count.tokens();
        self.is_doubtful |= tokens.is_none() && count != Count::ABSENT;
        tokens
    }

    /// The first name that has a count.
    #[inline]
    fn first<const NAMES: usize>(&mut self, names: [Count; NAMES]) -> Option<u64> {
        let mut first = None;
        for count in names {
            // Most names are none of a report's.
            if count != Count::ABSENT {
                let tokens = self.count(count);
                first = first.or(tokens);
            }
        }
        first
    }

    /// The same as a count, which is none or impossible where no name has one.
    fn first_of(&mut self, names: Triple) -> Count {
        match self.first(names) {
            Some(tokens) => Count(tokens),
            None if names == [Count::ABSENT; 3] => Count::ABSENT,
            None => Count::IMPOSSIBLE,
        }
    }

    /// A sum with what its member leaves out.
    #[inline]
    fn with(&mut self, sum: Count, beside: Count) -> Count {
        match (sum, self.count(beside)) {
            (Count::ABSENT, Some(more)) => Count(more),
            (Count(tokens), Some(more)) if sum.is_readable() => Count(tokens + more),
            _ => sum,
        }
    }

    /// Adds reasoning to the completion where the engine's sum has it beside, and drops what is more than the whole
    /// that it is part of.
    fn compare(&mut self, usage: &mut Usage) {
        if let (Some(prompt), Some(completion)) = (usage.prompt, usage.completion) {
            let beside = usage
                .total
                .map(|total| total.checked_sub(prompt + completion));
            if beside == Some(None) {
                usage.total = None;
            }
            let reasoning = usage.reasoning.filter(|reasoning| *reasoning > 0);
            if reasoning.is_some() && beside == Some(reasoning) {
                usage.completion = Some(completion + reasoning.unwrap_or(0));
            } else {
                self.is_doubtful |= beside.is_some_and(|beside| beside != Some(0));
            }
        }
        self.keep_within(&mut usage.cached, usage.prompt);
        let left = usage
            .prompt
            .map(|prompt| prompt.saturating_sub(usage.cached.unwrap_or(0)));
        self.keep_within(&mut usage.cache_write_1h, left);
        let left = left.map(|left| left.saturating_sub(usage.cache_write_1h.unwrap_or(0)));
        self.keep_within(&mut usage.cache_write_5m, left);
        self.keep_within(&mut usage.audio_prompt, usage.prompt);
        self.keep_within(&mut usage.reasoning, usage.completion);
        self.keep_within(&mut usage.audio_completion, usage.completion);
    }

    #[inline]
    fn keep_within(&mut self, part: &mut Option<u64>, whole: Option<u64>) {
        if let (Some(tokens), Some(whole)) = (*part, whole)
            && tokens > whole
        {
            *part = None;
            self.is_doubtful = true;
        }
    }
}

/// Puts a later count, under whichever of its names, in place of an earlier one, unless only the earlier one can be true.
/// Gives whether one of them cannot.
fn replace<const NAMES: usize>(earlier: &mut [Count; NAMES], later: [Count; NAMES]) -> bool {
    if later == [Count::ABSENT; NAMES] {
        return false;
    }
    let can_be = |counts: &[Count]| counts.iter().any(|count| count.is_readable());
    let cannot = |counts: &[Count]| {
        let mut counts = counts.iter();
        counts.any(|count| !count.is_readable() && *count != Count::ABSENT)
    };
    let is_doubtful = cannot(earlier) || cannot(&later);
    if can_be(&later) || !can_be(earlier) {
        *earlier = later;
    }
    is_doubtful
}

/// Likewise for counts that have nothing to do with each other.
fn replace_each([first, second]: &mut [Count; 2], [later, also]: [Count; 2]) -> bool {
    let first = replace(from_mut(first), [later]);
    replace(from_mut(second), [also]) || first
}

/// The first that has a whole number, be it true or not.
fn said<const NAMES: usize>(names: [Count; NAMES]) -> Option<u64> {
    names.into_iter().find_map(Count::said)
}

/// Prompt tokens written to caches, by how long they are kept.
#[derive(Clone, Copy, Debug, Default)]
struct CacheWrites {
    five_minutes: Option<u64>,
    hour: Option<u64>,
}

/// Two names of one count, or those of two counts inside a details object.
type Two = [&'static str; 2];

const PROMPT_TOKENS: Four = names(Name::PromptTokens);
const COMPLETION_TOKENS: Four = names(Name::CompletionTokens);
const PROMPT_BESIDE: &str = name(Name::PromptBeside);
const REASONING_BESIDE: &str = name(Name::ReasoningBeside);
const TOTAL_TOKENS: Three = names(Name::TotalTokens);
const CACHE_READ: Two = names(Name::CacheRead);
const CACHE_STORED: Two = names(Name::CacheStored);
const CACHE_WRITES: &str = name(Name::CacheWrites);
const CACHE_WRITE_LIST: &str = name(Name::CacheWriteList);
const PROMPT_DETAILS: Three = names(Name::PromptDetails);
const COMPLETION_DETAILS: Two = names(Name::CompletionDetails);

const UNITS: Two = names(Name::Units);

const PROMPT_MODALITIES: &str = name(Name::PromptModalities);
const COMPLETION_MODALITIES: &str = name(Name::CompletionModalities);

const CACHED_BESIDE: Three = names(Name::CachedBeside);

/// Three names of one count, or up to three counts inside a details object.
type Three = [&'static str; 3];
/// Four names of one count.
type Four = [&'static str; 4];

const CACHED: Three = [
    name(Name::CachedTokens),
    name(Name::AudioTokens),
    name(Name::WrittenTokens),
];
const REASONING: Three = [name(Name::ReasoningTokens), name(Name::AudioTokens), ""];
const OF_UNITS: Three = [
    cohere::INPUT_TOKENS,
    cohere::OUTPUT_TOKENS,
    name(Name::SearchUnits),
];
const WRITES: Three = [name(Name::CacheWrite5m), name(Name::CacheWrite1h), ""];

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
        reader.value().map(Self::of_value)
    }

    fn of_value(value: (Kind, &[u8])) -> Self {
        match value {
            (Kind::Null, _) => Self::ABSENT,
            (Kind::Number, number) | (Kind::String, [b'"', number @ .., b'"']) => Self::of(number),
            _ => Self::IMPOSSIBLE,
        }
    }

    /// A whole number, however it is written: `7`, `7.0`, `70e-1`.
    fn of(number: &[u8]) -> Self {
        match whole(number) {
            Some(tokens @ ..=Self::MOST) => Self(tokens),
            Some(_) | None => Self::IMPOSSIBLE,
        }
    }

    #[inline]
    fn tokens(self) -> Option<u64> {
        self.is_readable().then_some(self.0)
    }

    #[inline]
    const fn is_readable(self) -> bool {
        self.0 <= TOKEN_LIMIT
    }

    const fn said(self) -> Option<u64> {
        match self {
            Self(number @ ..=Self::MOST) => Some(number),
            Self(_) => None,
        }
    }
}

/// Reads a list of counts for what it says of sound. `None` where the text is not JSON.
fn audio_of(reader: &mut Reader<'_>) -> Option<Count> {
    Some(match reader.value()? {
        (Kind::Array, list) => audio(list).map_or(Count::ABSENT, Count::of_value),
        (Kind::Null, _) => Count::ABSENT,
        _ => Count::IMPOSSIBLE,
    })
}

/// Reads a list of what was written to caches, by how long it is kept. `None` where the text is not JSON.
fn cache_writes_of(reader: &mut Reader<'_>) -> Option<[Count; 2]> {
    Some(match reader.value()? {
        (Kind::Array, list) => {
            cache_writes(list).map(|kept| kept.map_or(Count::ABSENT, Count::of_value))
        }
        (Kind::Null, _) => [Count::ABSENT; 2],
        _ => [Count::IMPOSSIBLE; 2],
    })
}

/// Reads details; those that are no object are impossible. `None` where the text is not JSON.
fn details_of(reader: &mut Reader<'_>, names: Three) -> Option<[Count; 3]> {
    match reader.kind()? {
        Kind::Object => {}
        Kind::Null => return reader.value().map(|_| [Count::ABSENT; 3]),
        _ => return reader.value().map(|_| [Count::IMPOSSIBLE; 3]),
    }
    let [mut first, mut second, mut third] = [Count::ABSENT; 3];
    let [first_name, second_name, third_name] = names;
    let mut more = reader.open()?;
    while more {
        let name = reader.name()?;
        if *name == *first_name.as_bytes() {
            first = Count::read(reader)?;
        } else if *name == *second_name.as_bytes() {
            second = Count::read(reader)?;
        } else if !third_name.is_empty() && *name == *third_name.as_bytes() {
            third = Count::read(reader)?;
        } else {
            reader.pass()?;
        }
        more = reader.more()?;
    }
    Some([first, second, third])
}

/// The value of a JSON number that is whole and not negative.
fn whole(number: &[u8]) -> Option<u64> {
    let number = std::str::from_utf8(number).ok()?;
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (number, 0),
    };
    let (is_negative, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => (true, mantissa),
        None => (false, mantissa),
    };
    let (digits, fraction) = match mantissa.split_once('.') {
        Some((_, "")) => return None,
        Some((digits, fraction)) => (digits, fraction),
        None => (mantissa, ""),
    };
    if digits.is_empty() || digits.len() > 1 && digits.starts_with('0') {
        return None;
    }
    let kept = fraction.trim_end_matches('0');
    let mut value = 0_u64;
    for digit in digits.bytes().chain(kept.bytes()) {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        value = value.checked_mul(10)?.checked_add(digit.into())?;
    }
    if value == 0 || is_negative {
        return (value == 0).then_some(0);
    }
    let shift = exponent.checked_sub(i32::try_from(kept.len()).ok()?)?;
    let factor = 10_u64.checked_pow(shift.unsigned_abs());
    if shift >= 0 {
        return value.checked_mul(factor?);
    }
    let factor = factor?;
    value.is_multiple_of(factor).then_some(value / factor)
}
