//! Observations that are longer than wanted: their starts are kept, and a mark says how much is gone.
//!
//! An observation is what anyone but the assistant says after the assistant has spoken, since some agents are shown the
//! results of their commands as the user's messages.
//! Invariant: what is within the cap is not touched, and what is cut is within it.
//! Not here: the first prompt, which is never cut.

use super::Repairs;
use crate::conversation::{Content, Conversation, Message, Role};
use crate::json::Json;

/// The least cap, so that the mark finds room.
const MIN_BYTES: usize = 64;
const MIN_TOKENS: usize = 32;
/// No start of so many bytes for each token is tried; one token is rarely longer.
const BYTES_PER_TOKEN: usize = 16;

/// The most that one text of an observation may hold.
#[derive(Clone, Copy)]
pub enum Cap<'a> {
    /// So many bytes, but at least 64.
    Bytes(usize),
    /// So many tokens, but at least 32, as `count` counts them.
    Tokens {
        /// The most.
        most: usize,
        /// Counts the tokens of a text.
        count: &'a dyn Fn(&str) -> usize,
    },
}

pub(super) fn cap(session: &mut Conversation, cap: &Cap<'_>, repairs: &mut Repairs) {
    let is_answer = |message: &Message| message.role == Role::Assistant;
    let first = session.messages.iter().position(is_answer);
    let after = first.unwrap_or(session.messages.len());
    for message in &mut session.messages[after..] {
        if is_answer(message) {
            continue;
        }
        let mut cut = |text: &mut String| {
            if let Some(shorter) = cap.shorter(text) {
                repairs.count("observation_capped");
                *text = shorter;
            }
        };
        match &mut message.content {
            Some(Content::Text(text)) => cut(text),
            Some(Content::Parts(parts)) => {
                parts.iter_mut().for_each(|part| each_text(part, &mut cut))
            }
            None => {}
        }
    }
}

fn each_text(part: &mut Json, cut: &mut dyn FnMut(&mut String)) {
    if let Json::Object(members) = part {
        for (name, value) in members {
            if let ("text", Json::String(text)) = (name.as_str(), value) {
                cut(text);
            }
        }
    }
}

impl Cap<'_> {
    fn holds(&self, text: &str) -> bool {
        match self {
            Self::Bytes(most) => text.len() <= (*most).max(MIN_BYTES),
            Self::Tokens { most, count } => {
                // A token is a byte at least.
                text.len() <= *most || count(text) <= (*most).max(MIN_TOKENS)
            }
        }
    }

    fn most_bytes(&self) -> usize {
        match self {
            Self::Bytes(most) => (*most).max(MIN_BYTES),
            Self::Tokens { most, .. } => (*most).max(MIN_TOKENS).saturating_mul(BYTES_PER_TOKEN),
        }
    }

    /// The longest start that is found with its mark to be within the cap; `None` where the text is within it.
    fn shorter(&self, text: &str) -> Option<String> {
        if self.holds(text) {
            return None;
        }
        let (mut fits, mut past) = (0, text.len().min(self.most_bytes() + 1));
        while past - fits > 1 {
            let middle = fits + (past - fits) / 2;
            if self.holds(&started(text, middle)) {
                fits = middle;
            } else {
                past = middle;
            }
        }
        Some(started(text, fits))
    }
}

/// The first bytes of a text, to a whole character, and how many are gone.
fn started(text: &str, bytes: usize) -> String {
    let end = text.floor_char_boundary(bytes);
    format!("{}\n[{} bytes left out]", &text[..end], text.len() - end)
}
