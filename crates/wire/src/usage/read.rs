//! Usage objects → counts. OpenAI's two dialects and Anthropic's differ in names only, save that
//! Anthropic's `input_tokens` leaves out what the cache served and stored; we add it. Some engines
//! leave reasoning out of the completion and count it in the total; we add that too. Google has it beside the completion by
//! name, and what its own tools gave beside the prompt. Amazon's means what Anthropic's does. Cohere's stands in objects of its own: what
//! was read counts before what is billed.
//!
//! Invariant: of members with the same name the last one counts, with all that it holds; several reports of one answer are
//! merged member by member before anything is compared, as one event may have a part and another its whole.
//! Not here: finding the object in a response (`unary`, `sse`), what of it can be true (`judge`).

use std::array::from_mut;

use super::Reading;
use super::cache_writes::cache_writes;
use super::count::Count;
use super::iterations::iterations;
use super::modality::audio;
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
    let mut report = Report::EMPTY;
    report.read_value(reader)?;
    report.judge(reading);
    Some(())
}

/// One count under the names that two dialects have for it.
type Pair = [Count; 2];
/// The same of three.
pub(super) type Triple = [Count; 3];

/// What the members say, before they are compared: of one report, or of all that one answer has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(super) prompt: Triple,
    pub(super) completion: Triple,
    /// What neither of the two names of a prompt holds, and no name of a completion.
    pub(super) beside: [Count; 2],
    pub(super) total: Pair,
    pub(super) cache_read: Count,
    pub(super) cache_stored: Count,
    /// By how long they are kept: five minutes, an hour.
    pub(super) cache_writes: [Count; 2],
    pub(super) cached: Pair,
    pub(super) cached_beside: Triple,
    pub(super) written: Pair,
    pub(super) audio_prompt: Triple,
    pub(super) reasoning: Pair,
    pub(super) audio_completion: Triple,
    /// Units of search; 0 where none is told.
    pub(super) searches: u32,
    /// Something was no report, or cannot be true and was replaced or left.
    pub(super) is_doubtful: bool,
    /// It was one, or may have been, and could not be read.
    pub(super) is_unread: bool,
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
        is_unread: false,
    };

    /// One that is no object.
    const NO_OBJECT: Self = Self {
        is_doubtful: true,
        ..Self::EMPTY
    };

    /// One that is too long to be read, or stands in what cannot be read.
    pub(crate) const UNREAD: Self = Self {
        is_unread: true,
        ..Self::NO_OBJECT
    };

    /// Reads a usage value as it stands in a response.
    pub(crate) fn read(raw: &[u8]) -> Self {
        let mut reader = Reader::new(raw);
        let mut report = Self::EMPTY;
        match report.read_value(&mut reader) {
            Some(()) if reader.is_at_end() => report,
            Some(()) | None => Self::NO_OBJECT,
        }
    }

    /// Reads the value that starts here into an empty report, in place because that is large. `None` where no whole value starts here.
    fn read_value(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        if reader.kind()? == Kind::Object {
            return self.read_object(reader);
        }
        if !matches!(reader.value()?, (Kind::Null, _)) {
            *self = Self::NO_OBJECT;
        }
        Some(())
    }

    /// `None` where no whole object starts here.
    fn read_object(&mut self, reader: &mut Reader<'_>) -> Option<()> {
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
            is_unread: _,
        } = self;
        let mut goes = None;
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
                (None, None) if is(PROMPT_DETAILS[2]) => {
                    [*input_cached, *input_audio] = details_by_kind(reader)?;
                }
                (None, None) if is(COMPLETION_DETAILS[2]) => {
                    [*output_reasoning, *output_audio, _] = details_of(reader, REASONING)?;
                }
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
                (None, None) if is(ITERATIONS) => goes = Some(reader.value()?.1),
                (None, None) => reader.pass()?,
            }
            more = reader.more()?;
        }
        if let Some(goes) = goes {
            self.take_iterations(goes);
        }
        Some(())
    }

    /// Has the counts of all goes of a message take the place of the sums beside them, which are not of all.
    #[cold]
    fn take_iterations(&mut self, list: &[u8]) {
        let Some(all) = iterations(list) else { return };
        let [_, input, _] = &mut self.prompt;
        let [_, output, _] = &mut self.completion;
        let [five_minutes, hour] = &mut self.cache_writes;
        let [first, second] = all.cache_writes;
        for (sum, count) in [
            (input, all.input),
            (output, all.output),
            (&mut self.cache_read, all.cache_read),
            (&mut self.cache_stored, all.cache_stored),
            (five_minutes, first),
            (hour, second),
        ] {
            if count != Count::ABSENT {
                *sum = count;
            }
        }
        self.is_doubtful |= all.is_of_another;
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
        // What comes later has it all.
        self.is_unread = later.is_unread || (self.is_unread && !has_sum);
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

/// Two names of one count, or those of two counts inside a details object.
type Two = [&'static str; 2];

pub(super) const PROMPT_TOKENS: Four = names(Name::PromptTokens);
pub(super) const COMPLETION_TOKENS: Four = names(Name::CompletionTokens);
const PROMPT_BESIDE: &str = name(Name::PromptBeside);
const REASONING_BESIDE: &str = name(Name::ReasoningBeside);
const TOTAL_TOKENS: Three = names(Name::TotalTokens);
pub(super) const CACHE_READ: Two = names(Name::CacheRead);
pub(super) const CACHE_STORED: Two = names(Name::CacheStored);
pub(super) const CACHE_WRITES: &str = name(Name::CacheWrites);
const CACHE_WRITE_LIST: &str = name(Name::CacheWriteList);
const PROMPT_DETAILS: Three = names(Name::PromptDetails);
const CACHED_DETAILS: &str = name(Name::CachedDetails);
const COMPLETION_DETAILS: Three = names(Name::CompletionDetails);

const ITERATIONS: &str = name(Name::Iterations);
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
pub(super) const WRITES: Three = [name(Name::CacheWrite5m), name(Name::CacheWrite1h), ""];

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

/// Reads details that part what was cached by what it is of: what was cached, and of the rest what is sound, as each token has one
/// price. `None` where the text is not JSON.
#[cold]
fn details_by_kind(reader: &mut Reader<'_>) -> Option<[Count; 2]> {
    if reader.kind()? != Kind::Object {
        let [cached, audio, _] = details_of(reader, CACHED)?;
        return Some([cached, audio]);
    }
    let [mut cached, mut audio, mut cached_audio] = [Count::ABSENT; 3];
    let mut more = reader.open()?;
    while more {
        let name = reader.name()?;
        let is = |member: &str| *name == *member.as_bytes();
        if is(CACHED[0]) {
            cached = Count::read(reader)?;
        } else if is(CACHED[1]) {
            audio = Count::read(reader)?;
        } else if is(CACHED_DETAILS) {
            [cached_audio, ..] = details_of(reader, ["audio_tokens", "", ""])?;
        } else {
            reader.pass()?;
        }
        more = reader.more()?;
    }
    if let (Some(all), Some(of_them)) = (audio.tokens(), cached_audio.tokens()) {
        audio = all.checked_sub(of_them).map_or(Count::IMPOSSIBLE, Count);
    }
    Some([cached, audio])
}

/// Reads details; those that are no object are impossible. `None` where the text is not JSON.
pub(super) fn details_of(reader: &mut Reader<'_>, names: Three) -> Option<[Count; 3]> {
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
