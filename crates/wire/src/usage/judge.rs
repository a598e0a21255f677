//! What of a report can be true: counts under several names are one, and parts are held against their wholes.
//!
//! Invariant: what cannot be true is left or replaced, never believed, and the usage says that it is doubtful.
//! Not here: reading the members, and merging reports (`read`).

use super::count::Count;
use super::read::{Report, Triple};
use super::{Reading, Usage};

impl Report {
    /// What of it can be true.
    pub(crate) fn judge(&self, reading: &mut Reading) {
        let mut judge = Judge::of(self);
        match self.usual(&mut judge) {
            Some(mut usage) => {
                judge.compare(&mut usage);
                usage.doubtful = judge.is_doubtful;
                usage.is_unread = self.is_unread;
                *reading = Reading::Valid(usage);
            }
            None => self.judge_any(reading),
        }
    }

    /// What a report says that has no counts but those of nearly all, which are OpenAI's of its chats: most of what could be said is not.
    /// `None` of another one.
    #[inline]
    fn usual(&self, judge: &mut Judge) -> Option<Usage> {
        let Self {
            prompt: [prompt, input, asked],
            completion: [completion, output, made],
            beside: [prompt_beside, reasoning_beside],
            total: [total, sum],
            cache_read,
            cache_stored,
            cache_writes: [five_minutes, hour],
            cached: [cached, input_cached],
            cached_beside: [cache_hit, cached_alone, cached_content],
            written: [prompt_written, input_written],
            audio_prompt: [audio_prompt, input_audio, asked_audio],
            reasoning: [reasoning, output_reasoning],
            audio_completion: [audio_completion, output_audio, made_audio],
            searches,
            is_doubtful: _,
            is_unread: _,
        } = *self;
        let sums = [input, asked, output, made, sum, prompt_beside];
        let caches = [cache_read, cache_stored, five_minutes, hour, prompt_written];
        let cacheds = [input_cached, cache_hit, cached_alone, cached_content];
        let parts = [input_written, reasoning_beside, output_reasoning];
        let audio = [input_audio, asked_audio, output_audio, made_audio];
        let all = |counts: &[Count]| counts.iter().fold(u64::MAX, |all, count| all & count.0);
        let all = all(&sums) & all(&caches) & all(&cacheds) & all(&parts) & all(&audio);
        let is_usual = all == Count::ABSENT.0 && prompt.is_readable() && completion.is_readable();
        is_usual.then(|| Usage {
            prompt: Some(prompt.0),
            completion: Some(completion.0),
            total: judge.count(total),
            cached: judge.count(cached),
            reasoning: judge.count(reasoning),
            audio_prompt: judge.count(audio_prompt),
            audio_completion: judge.count(audio_completion),
            searches,
            ..Usage::default()
        })
    }

    /// The same of any report.
    #[inline(never)]
    pub(super) fn judge_any(&self, reading: &mut Reading) {
        let mut judge = Judge::of(self);
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
        usage.is_unread = self.is_unread;
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
                is_unread: self.is_unread,
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
    fn of(report: &Report) -> Self {
        let is_doubtful = report.is_doubtful;
        Self { is_doubtful }
    }

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

    /// Adds to the completion what the engine's sum has beside its parts: reasoning that it tells of, or, where it tells of none, what
    /// can be nothing else. Drops what is more than the whole that it is part of.
    fn compare(&mut self, usage: &mut Usage) {
        if let (Some(prompt), Some(completion)) = (usage.prompt, usage.completion) {
            let beside = usage
                .total
                .map(|total| total.checked_sub(prompt + completion));
            if beside == Some(None) {
                usage.total = None;
            }
            let rest = beside.flatten().filter(|rest| *rest > 0);
            let reasoning = usage.reasoning.filter(|reasoning| *reasoning > 0);
            if let Some(rest) = rest {
                usage.is_reasoning_on_top = reasoning == Some(rest);
                self.is_doubtful |= !usage.is_reasoning_on_top;
                // Reasoning within the completion says nothing of what is beside it.
                if reasoning.is_none_or(|reasoning| reasoning > completion || reasoning == rest) {
                    usage.completion = Some(completion + rest);
                }
            }
            self.is_doubtful |= beside == Some(None);
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
