//! ChatML: what stands in for a model whose template is not at hand.
//!
//! Invariant: every message is between two marks; the prompt ends where the answer begins.
//! Not here: any one model's own habits. A count by it is exact for this engine and for no other.

use super::Conversation;
use crate::tokenizer::{TokenId, Tokenizer};

pub(crate) fn prompt(tokenizer: &Tokenizer, conversation: &Conversation) -> Vec<TokenId> {
    let mark = |name: &str, ids: &mut Vec<TokenId>| match tokenizer.mark(name) {
        Some(id) => ids.push(id),
        None => ids.extend(tokenizer.encode(name)),
    };
    let mut ids = Vec::new();
    let mut message = |role: &str, text: &str| {
        mark("<|im_start|>", &mut ids);
        ids.extend(tokenizer.encode(&format!("{role}\n{text}")));
        mark("<|im_end|>", &mut ids);
        ids.extend(tokenizer.encode("\n"));
    };
    if !conversation.tools.is_empty() {
        let tools: Vec<String> = conversation
            .tools
            .iter()
            .map(|tool| tool.whole.to_string())
            .collect();
        message("system", &format!("Tools:\n{}", tools.join("\n")));
    }
    for said in &conversation.said {
        let mut text = said.text.clone().unwrap_or_default();
        for call in &said.calls {
            text.push_str(&format!("\n{}({})", call.name, call.arguments));
        }
        message(&said.role, &text);
    }
    mark("<|im_start|>", &mut ids);
    ids.extend(tokenizer.encode("assistant\n"));
    ids
}
