//! Input items of the Responses API: their shape and their tokens.
//!
//! Invariant: an item that passes is a message, a call, a call's output or reasoning, with what it requires.
//! Not here: the rest of the request.

use serde_json::Value;

use crate::error::Refusal;
use crate::text::Tally;
use crate::validate;

const ITEM_OVERHEAD_TOKENS: u64 = 4;

/// Counts `input` (a text or a list of items) into `prompt`.
pub(super) fn read(input: &Value, prompt: &mut Tally) -> Result<(), Refusal> {
    match input {
        Value::String(text) => prompt.add(text),
        Value::Array(items) if !items.is_empty() => {
            for (i, one) in items.iter().enumerate() {
                item(one, prompt).map_err(|why| fault(format!("input[{i}]: {why}")))?;
            }
        }
        _ => {
            return Err(fault(
                "input must be a string or a list of items".to_owned(),
            ));
        }
    }
    prompt.add_fixed(ITEM_OVERHEAD_TOKENS);
    Ok(())
}

fn item(item: &Value, prompt: &mut Tally) -> Result<(), String> {
    prompt.add_fixed(ITEM_OVERHEAD_TOKENS);
    let text = |member: &str| {
        item.get(member)
            .and_then(Value::as_str)
            .ok_or_else(|| format!("needs a string member {member}"))
    };
    match item.get("type").map_or(Some("message"), Value::as_str) {
        Some("message") => {
            let role = text("role")?;
            if !["system", "developer", "user", "assistant"].contains(&role) {
                return Err(format!("Unknown role: {role}"));
            }
            prompt.add(role);
            validate::content(item.get("content").unwrap_or(&Value::Null), prompt)?;
        }
        Some("function_call") => {
            for member in ["call_id", "name", "arguments"] {
                prompt.add(text(member)?);
            }
        }
        Some("function_call_output") => {
            prompt.add(text("call_id")?);
            validate::content(item.get("output").unwrap_or(&Value::Null), prompt)?;
        }
        Some("reasoning") => prompt.add(&item.to_string()),
        other => {
            return Err(format!(
                "Unknown item type: {}",
                other.unwrap_or("not a string")
            ));
        }
    }
    Ok(())
}

fn fault(why: String) -> Refusal {
    Refusal::bad_request(why).about("input")
}
