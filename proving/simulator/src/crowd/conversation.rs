//! What is said in a conversation: how long each prompt and each answer is, and what its blocks are called.
//!
//! The first prompt is what the profile shares and some tokens of its own; each later one is the prompt and the answer
//! before and some tokens more.
//! Invariant: a conversation follows from seed, profile and its number alone, whoever has it and whenever. Nothing is
//! kept of it but where it stands.
//! Not here: when its turns are asked (`users`).

use std::sync::Arc;
use std::time::Duration;

use experiment::random::{Rng, mix};
use experiment::workload::Sessions;

use super::traffic::{Answers, Length, Talk};
use crate::kv::{BlockHash, Chain};

/// Names the streams of conversations, apart from those of `experiment::workload`.
const STREAM: u64 = 16;
/// More than any soak asks: unless traffic says how many there are, no conversation comes twice.
const CONVERSATIONS: u64 = 1 << 40;
/// Turns at most.
const MOST_TURNS: u32 = 10_000;

/// The conversations of one profile.
#[derive(Clone, Debug)]
pub(crate) struct Conversations {
    seed: u64,
    profile: u64,
    talk: Talk,
    longest: u32,
    shared: Arc<[BlockHash]>,
    block_size: u32,
}

/// One conversation, and how far it is.
#[derive(Clone, Debug)]
pub(super) struct Conversation {
    talk: Talk,
    longest: u32,
    lengths: Rng,
    past: u64,
    left: u32,
    before: Option<Lengths>,
}

/// One turn's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lengths {
    pub(super) prompt_tokens: u32,
    pub(super) output_tokens: u32,
}

impl Conversations {
    pub(crate) fn new(seed: u64, profile: usize, talk: Talk, longest: u32, block: u32) -> Self {
        let profile = profile as u64;
        let shared = (0..u64::from(talk.shared_tokens / block.max(1)))
            .map(|i| BlockHash(mix(((profile + 1) << 32) + i)))
            .collect();
        Self {
            seed,
            profile,
            talk,
            longest,
            shared,
            block_size: block.max(1),
        }
    }

    /// A conversation at its beginning.
    pub(super) fn begin(&self, number: u64) -> Conversation {
        let mut lengths = Rng::stream(self.seed, &[STREAM, self.profile, number]);
        Conversation {
            talk: self.talk,
            longest: self.longest,
            past: lengths.bits(),
            left: self.talk.turns.draw(&mut lengths).min(MOST_TURNS),
            lengths,
            before: None,
        }
    }

    /// The names of a turn's blocks: those of its answer too, when later turns will hold it.
    pub(super) fn chain(&self, conversation: &Conversation, turn: Lengths, own: u64) -> Chain {
        let tokens = match self.talk.answers {
            Answers::Own => turn.prompt_tokens + turn.output_tokens,
            Answers::Recorded => turn.prompt_tokens,
        };
        let blocks = tokens / self.block_size;
        Chain::of_turn(self.shared.to_vec(), conversation.past, blocks, own)
    }
}

impl Sessions for Conversations {
    fn count(&self) -> u64 {
        self.talk.conversations.unwrap_or(CONVERSATIONS)
    }

    fn turns(&self, session: u64) -> u32 {
        self.begin(session).count() as u32
    }

    fn think(&self, _session: u64, _turn: u32) -> Option<Duration> {
        None
    }
}

impl Iterator for Conversation {
    type Item = Lengths;

    /// The next turn; `None` after the last, or when it would be too long.
    fn next(&mut self) -> Option<Lengths> {
        self.left = self.left.checked_sub(1)?;
        let turn = match self.before {
            None => self.open(),
            Some(before) => self.go_on(before)?,
        };
        self.before = Some(turn);
        Some(turn)
    }
}

impl Conversation {
    /// The first turn is cut where it is too long.
    fn open(&mut self) -> Lengths {
        let prompt = self.talk.shared_tokens + self.talk.first_tokens.draw(&mut self.lengths);
        let prompt_tokens = prompt.min(self.longest.saturating_sub(1)).max(1);
        let output = self.talk.output_tokens.draw(&mut self.lengths);
        Lengths {
            prompt_tokens,
            output_tokens: output
                .min(self.longest.saturating_sub(prompt_tokens))
                .max(1),
        }
    }

    fn go_on(&mut self, before: Lengths) -> Option<Lengths> {
        let more = self.talk.turn_tokens.draw(&mut self.lengths);
        let turn = Lengths {
            prompt_tokens: before.prompt_tokens + before.output_tokens + more,
            output_tokens: self.talk.output_tokens.draw(&mut self.lengths),
        };
        let all = u64::from(turn.prompt_tokens) + u64::from(turn.output_tokens);
        (all <= u64::from(self.longest)).then_some(turn)
    }
}

impl Length {
    fn draw(self, lengths: &mut Rng) -> u32 {
        (lengths.lognormal(self.mean, self.cv).round() as u32).clamp(1, 1 << 28)
    }
}
