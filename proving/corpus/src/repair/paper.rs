//! What the paper did: the old roles and functions go, contents become text, and all else stays.
//!
//! Invariant: messages and decisions keep their number and order.
//! Not here: what strict engines refuse beyond that.

use super::Repairs;
use crate::conversation::{Content, Conversation, Role};
use crate::json::Json;

pub(super) fn repair(mut session: Conversation, repairs: &mut Repairs) -> Conversation {
    let before = session.tools.len();
    session
        .tools
        .retain(|tool| tool.present("function").is_some() || tool.present("type").is_some());
    repairs.add("function_dropped", (before - session.tools.len()) as u64);
    for message in &mut session.messages {
        if message.role == Role::Function {
            repairs.count("role_function_to_user");
            message.role = Role::User;
        }
        match &message.content {
            None => {
                repairs.count("null_content");
                message.content = Some(Content::Text(String::new()));
            }
            Some(Content::Parts(parts)) => {
                repairs.count("parts_flattened");
                message.content = Some(Content::Text(flat(parts)));
            }
            Some(Content::Text(_)) => {}
        }
    }
    session
}

/// The texts of parts, as lines.
fn flat(parts: &[Json]) -> String {
    let texts: Vec<&str> = parts.iter().filter_map(|part| part.text("text")).collect();
    texts.join("\n")
}
