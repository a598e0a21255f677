//! What one user asks, question after question.
//!
//! Invariant: what is asked, and after which pause, follows from the traffic and the user alone, not from when answers
//! come.
//! Not here: when users act (`experiment::workload`), how long things are (`conversation`).

use std::time::Duration;

use experiment::workload::{Turn, User};

use super::conversation::{Conversation, Conversations, Lengths};

/// One question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// When it is asked, since the start.
    pub at: Duration,
    /// Tokens of the prompt, those that all prompts share included.
    pub prompt_tokens: u32,
    /// Tokens of its answer.
    pub output_tokens: u32,
}

/// A user's questions. They never end.
#[derive(Clone, Debug)]
pub struct Questions {
    conversations: Conversations,
    user: User,
    now: Option<Conversation>,
}

/// A question with its place in its conversation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// The pause before it, where that was drawn for it.
    pub(super) thought: Option<Duration>,
    pub(super) at: Duration,
    pub(super) lengths: Lengths,
    /// Which conversation, and which turn of it.
    pub(super) session: u64,
    pub(super) turn: u32,
}

impl Questions {
    pub(crate) fn new(conversations: Conversations, user: User) -> Self {
        Self {
            conversations,
            user,
            now: None,
        }
    }

    /// The next question, where the answer before ended (or the user came in) at `from`.
    pub fn ask(&mut self, from: Duration) -> Question {
        let asked = self.next(from).expect("a user stays");
        Question {
            at: asked.at,
            prompt_tokens: asked.lengths.prompt_tokens,
            output_tokens: asked.lengths.output_tokens,
        }
    }

    /// The conversation of the last question.
    pub(super) fn conversation(&self) -> Option<&Conversation> {
        self.now.as_ref()
    }

    pub(super) fn next(&mut self, from: Duration) -> Option<Asked> {
        let turn = self.user.next(from, &self.conversations)?;
        Asked::of(turn, &self.conversations, &mut self.now)
    }
}

impl Asked {
    /// The question that a turn stands for; `now` is the conversation, which a first turn begins.
    pub(super) fn of(
        turn: Turn,
        conversations: &Conversations,
        now: &mut Option<Conversation>,
    ) -> Option<Self> {
        if turn.turn == 0 {
            *now = Some(conversations.begin(turn.session));
        }
        Some(Self {
            thought: Some(turn.due.at.saturating_sub(turn.due.from)),
            at: turn.due.at,
            session: turn.session,
            turn: turn.turn,
            lengths: now.as_mut()?.next()?,
        })
    }
}
