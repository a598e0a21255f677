//! One content block of a message: thinking, text or the use of a tool.
//!
//! Invariant: a block's deltas join to what it says whole.
//! Not here: the order of blocks and their numbering (the parent).

use serde_json::{Value, json};

use crate::turn::{Channel, Turn};

pub(super) struct Block {
    pub(super) channel: Channel,
    id: String,
    name: String,
    text: String,
}

impl Block {
    /// The blocks of an answer, in the order in which they are said.
    pub(super) fn all(message: &str, turn: &Turn) -> Vec<Self> {
        let name = turn.tool.as_ref().map(|tool| tool.name.clone());
        let block = |channel, text: &str| Self {
            channel,
            id: message.replacen("msg_", "toolu_", 1),
            name: name.clone().unwrap_or_default(),
            text: text.to_owned(),
        };
        let mut blocks = Vec::new();
        if !turn.reasoning().is_empty() {
            blocks.push(block(Channel::Reasoning, turn.reasoning()));
        }
        if turn.calls() {
            blocks.push(block(Channel::Arguments, turn.arguments()));
        } else if !turn.content().is_empty() || blocks.is_empty() {
            blocks.push(block(Channel::Content, turn.content()));
        }
        blocks
    }

    pub(super) fn whole(&self) -> Value {
        match self.channel {
            Channel::Reasoning => {
                json!({"type": "thinking", "thinking": self.text, "signature": self.id})
            }
            Channel::Arguments => {
                // What a cap cut is no JSON any more.
                let input = serde_json::from_str(&self.text).unwrap_or_else(|_| json!({}));
                json!({"type": "tool_use", "id": self.id, "name": self.name, "input": input})
            }
            Channel::Content | Channel::Mark => json!({"type": "text", "text": self.text}),
        }
    }

    /// The block as it is before anything of it is said.
    pub(super) fn opened(&self) -> Value {
        match self.channel {
            Channel::Reasoning => json!({"type": "thinking", "thinking": "", "signature": ""}),
            Channel::Arguments => {
                json!({"type": "tool_use", "id": self.id, "name": self.name, "input": {}})
            }
            Channel::Content | Channel::Mark => json!({"type": "text", "text": ""}),
        }
    }

    pub(super) fn delta(channel: Channel, text: &str) -> Value {
        match channel {
            Channel::Reasoning => json!({"type": "thinking_delta", "thinking": text}),
            Channel::Arguments => json!({"type": "input_json_delta", "partial_json": text}),
            Channel::Content | Channel::Mark => json!({"type": "text_delta", "text": text}),
        }
    }
}
