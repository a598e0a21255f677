//! One answer as the tokens that a model would generate: what is said, and the marks around it.
//!
//! A gpt-oss answer is framed by Harmony (channels, ends), any other ends in its end-of-text mark; the marks are
//! generated like every token and counted in usage, as in vLLM, though no client sees them.
//! Invariant: the text that is out after `n` tokens is a prefix of the whole; cutting keeps exactly `n` tokens.
//! Not here: how many tokens there are to be (`plan`), bytes on the wire.

use experiment::random::Rng;

use crate::structured::Constraint;
use crate::text::{Composer, Output};
use crate::tokenizer::Tokenizer;
use crate::tools::Forced;

/// Tokens of `<|channel|>final<|message|>` before an answer and of the mark after it.
const FINAL_MARKS: usize = 3;
/// Tokens around reasoning: its header and end, and the start of the next message.
const REASONING_MARKS: (usize, usize) = (3, 3);

/// Where a token's text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    /// Nowhere: a mark.
    Mark,
    Reasoning,
    Content,
    Arguments,
}

/// One answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turn {
    steps: Vec<(Channel, usize)>,
    reasoning: String,
    content: String,
    arguments: String,
    pub(crate) tool: Option<Forced>,
    /// The stop string that ended it.
    pub(crate) stopped_by: Option<String>,
}

/// How an answer is to be made.
#[derive(Debug)]
pub(crate) struct AnswerSpec {
    pub(crate) harmony: bool,
    /// Share of the words that are reasoning, in eighths.
    pub(crate) reasoning_eighths: usize,
    pub(crate) tool: Option<Forced>,
    /// What the text has to be, if the call says so.
    pub(crate) content: Option<Constraint>,
}

impl Turn {
    /// An answer of exactly `tokens` tokens with its marks, unless its text is decided, or `tokens` is too few for
    /// the marks, which are then cut. `content` is the text where it is decided.
    pub(crate) fn compose(
        composer: &Composer,
        seed: u64,
        tokens: usize,
        spec: &AnswerSpec,
        content: Option<String>,
    ) -> Self {
        let mut rng = Rng::new(seed);
        let mut turn = Self {
            tool: spec.tool.clone(),
            ..Self::default()
        };
        let decided = spec.tool.as_ref().map(|t| t.arguments.clone()).or(content);
        let framed = if spec.harmony { FINAL_MARKS + 1 } else { 1 };
        let words = tokens.saturating_sub(framed);
        let between = REASONING_MARKS.0 + REASONING_MARKS.1;
        let reasoning = match (spec.harmony, &decided) {
            (true, None) if words > between => (words - between) * spec.reasoning_eighths / 8,
            (true, Some(_)) => spec.reasoning_eighths * 4,
            _ => 0,
        };
        let mut left = words;
        if reasoning > 0 {
            turn.marks(REASONING_MARKS.0);
            turn.say(Channel::Reasoning, &composer.compose(rng.bits(), reasoning));
            turn.marks(REASONING_MARKS.1);
            left = words.saturating_sub(reasoning + between);
        }
        if spec.harmony {
            turn.marks(header_tokens(composer.tokenizer(), spec.tool.as_ref()));
        }
        let (channel, text) = match decided {
            Some(text) if spec.tool.is_some() => {
                (Channel::Arguments, Output::of(composer.tokenizer(), text))
            }
            Some(text) => (Channel::Content, Output::of(composer.tokenizer(), text)),
            None => (Channel::Content, composer.compose(rng.bits(), left)),
        };
        turn.say(channel, &text);
        turn.marks(1);
        turn
    }

    fn marks(&mut self, n: usize) {
        self.steps
            .extend(std::iter::repeat_n((Channel::Mark, 0), n));
    }

    fn say(&mut self, channel: Channel, output: &Output) {
        *self.text_mut(channel) = output.text().to_owned();
        self.steps
            .extend(output.ends().iter().map(|end| (channel, *end)));
    }

    fn text_mut(&mut self, channel: Channel) -> &mut String {
        match channel {
            Channel::Reasoning => &mut self.reasoning,
            Channel::Arguments => &mut self.arguments,
            Channel::Content | Channel::Mark => &mut self.content,
        }
    }

    /// Number of tokens, marks included.
    pub(crate) fn tokens(&self) -> usize {
        self.steps.len()
    }

    /// Number of reasoning tokens, without the marks around them.
    pub(crate) fn reasoning_tokens(&self) -> usize {
        self.steps
            .iter()
            .filter(|(channel, _)| *channel == Channel::Reasoning)
            .count()
    }

    pub(crate) fn reasoning(&self) -> &str {
        &self.reasoning
    }

    pub(crate) fn content(&self) -> &str {
        &self.content
    }

    pub(crate) fn arguments(&self) -> &str {
        &self.arguments
    }

    /// Whether the function's name has been said.
    pub(crate) fn calls(&self) -> bool {
        self.tool.is_some()
            && self
                .steps
                .iter()
                .any(|(channel, _)| *channel == Channel::Arguments)
    }

    /// Where token `i` goes and what it says; empty for a mark and for half a character.
    pub(crate) fn token(&self, i: usize) -> (Channel, &str) {
        let Some(&(channel, end)) = self.steps.get(i) else {
            return (Channel::Mark, "");
        };
        let text = match channel {
            Channel::Mark => return (channel, ""),
            Channel::Reasoning => self.reasoning(),
            Channel::Content => self.content(),
            Channel::Arguments => self.arguments(),
        };
        let before = i
            .checked_sub(1)
            .and_then(|i| self.steps.get(i))
            .filter(|(c, _)| *c == channel);
        let start = before.map_or(0, |(_, end)| *end).min(text.len());
        (channel, &text[start..end.min(text.len())])
    }

    /// Keeps the first `tokens` tokens. Returns whether any were cut.
    pub(crate) fn cut(&mut self, tokens: usize) -> bool {
        if tokens >= self.steps.len() {
            return false;
        }
        self.steps.truncate(tokens);
        for channel in [Channel::Reasoning, Channel::Content, Channel::Arguments] {
            let end = self
                .steps
                .iter()
                .rev()
                .find(|(c, _)| *c == channel)
                .map_or(0, |(_, end)| *end);
            self.text_mut(channel).truncate(end);
        }
        true
    }

    /// Ends the answer at the first of `stops` that its content holds after `least` tokens. The stop itself is not
    /// said, unless `included`; the token that completed it is counted.
    pub(crate) fn stop_at(&mut self, stops: &[String], least: usize, included: bool) {
        let content = self.content.as_str();
        let completes = |end: usize| {
            self.steps
                .iter()
                .position(|(c, at)| *c == Channel::Content && *at >= end)
        };
        let found = stops
            .iter()
            .filter(|stop| !stop.is_empty())
            .flat_map(|stop| {
                content.match_indices(stop.as_str()).find_map(|(at, _)| {
                    let token = completes(at + stop.len())?;
                    (token + 1 >= least).then_some((at, token, stop))
                })
            });
        let Some((at, token, stop)) = found.min_by_key(|(at, token, _)| (*token, *at)) else {
            return;
        };
        let (kept, stop) = (if included { at + stop.len() } else { at }, stop.clone());
        self.cut(token + 1);
        self.content.truncate(kept);
        self.stopped_by = Some(stop);
    }
}

/// Tokens of `<|channel|>final<|message|>`, or of a call's header, up to its message.
fn header_tokens(tokenizer: &Tokenizer, tool: Option<&Forced>) -> usize {
    match tool {
        None => FINAL_MARKS,
        // <|channel|>commentary to=functions.NAME <|constrain|>json<|message|>
        Some(tool) => {
            let said = [
                "commentary",
                &format!(" to=functions.{} ", tool.name),
                "json",
            ];
            3 + said
                .iter()
                .map(|text| tokenizer.count(text) as usize)
                .sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests;
