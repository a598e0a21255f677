//! Log probabilities of a plain completion's tokens, prompt included where it is echoed.
//!
//! Invariant: four lists of the same length; offsets are in characters from the start of the choice's text.
//! Not here: the numbers (`logprobs`).

use serde_json::{Map, Value, json};

use crate::logprobs::{alternative, of_rank};

/// The lists of one answer or event.
pub(super) struct Lists {
    /// Alternatives to show with each token, itself included.
    top: usize,
    /// Characters before the next token.
    at: usize,
    offsets: Vec<usize>,
    of_tokens: Vec<Value>,
    tokens: Vec<String>,
    of_top: Vec<Value>,
}

impl Lists {
    /// Of tokens that come after `at` characters.
    pub(super) fn after(at: usize, top: usize) -> Self {
        Self {
            top: top.max(1),
            at,
            offsets: Vec::new(),
            of_tokens: Vec::new(),
            tokens: Vec::new(),
            of_top: Vec::new(),
        }
    }

    /// A prompt's tokens, of which the first has no probability.
    pub(super) fn prompt(&mut self, pieces: &[String]) {
        for (i, piece) in pieces.iter().enumerate() {
            self.token(piece);
            if i == 0 {
                self.of_tokens.pop();
                self.of_top.pop();
                self.of_tokens.push(Value::Null);
                self.of_top.push(Value::Null);
            }
        }
    }

    pub(super) fn token(&mut self, text: &str) {
        self.offsets.push(self.at);
        self.at += text.chars().count();
        self.of_tokens.push(json!(of_rank(0)));
        self.tokens.push(text.to_owned());
        let top = (0..self.top).map(|rank| (alternative(text, rank), json!(of_rank(rank))));
        self.of_top.push(Value::Object(top.collect::<Map<_, _>>()));
    }

    pub(super) fn into_value(self) -> Value {
        json!({"text_offset": self.offsets, "token_logprobs": self.of_tokens, "tokens": self.tokens,
            "top_logprobs": self.of_top})
    }
}
