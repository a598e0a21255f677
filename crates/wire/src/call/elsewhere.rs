//! Whether a call's prompt is more than its body holds: files, items, templates and searches that its provider adds.
//!
//! Invariant: a false yes costs reading on when a client leaves, a false no costs a prompt that nobody pays for. So names are looked for
//! wherever they stand, but for one that every conversation has.
//! Not here: what becomes of such a call (`policy`), whose those things are (`stored`).

use bytes::Bytes;

use super::stored::{Stored, has_hint};
use crate::dialect::Operation;

/// In calls of either API; in lower case.
const CHAT: &[&str] = &["file_id", "web_search"];
const RESPONSES: &[&str] = &[
    "file_id",
    "file_url",
    "vector_store_ids",
    "web_search",
    "server_url",
    "connector_id",
    "code_interpreter",
];
/// Items have ids beside what they say: those that say nothing else are told apart.
const ID: &[&str] = &["\"id\""];

/// Whether the provider may add to the prompt of this call what its body only names. Of other APIs, that tell their prompt where an
/// answer begins or with each part of it, this is not asked.
#[must_use]
pub fn is_prompt_elsewhere(operation: Operation, body: &[Bytes]) -> bool {
    match operation {
        Operation::Chat => has_hint(body, CHAT),
        Operation::Responses => {
            has_hint(body, RESPONSES) || (has_hint(body, ID) && Stored::ITEMS.named(body).is_some())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(operation: Operation, body: &str) -> bool {
        let (first, second) = body.split_at(body.len() / 2);
        let pieces = [first, second].map(|piece| Bytes::copy_from_slice(piece.as_bytes()));
        let whole = is_prompt_elsewhere(operation, &[Bytes::copy_from_slice(body.as_bytes())]);
        assert_eq!(whole, is_prompt_elsewhere(operation, &pieces), "{body}");
        whole
    }

    #[test]
    fn what_a_provider_adds_to_a_prompt_is_seen_wherever_it_is_named() {
        for body in [
            r#"{"input":[{"type":"item_reference","id":"msg_1"}]}"#,
            r#"{"input":[{"id":"msg_1"}]}"#,
            r#"{"input":[{"\u0069d":"msg_1"}]}"#,
            r#"{"input":[{"role":"user","content":[{"type":"input_file","file_id":"file-1"}]}]}"#,
            r#"{"input":[{"role":"user","content":[{"type":"input_file","file_url":"https://h/a.pdf"}]}]}"#,
            r#"{"input":[{"role":"user","content":[{"type":"input_file","fi\u006ce_id":"file-1"}]}]}"#,
            r#"{"prompt":{"id":"pmpt_1","version":"2"},"input":"a"}"#,
            r#"{"input":"a","tools":[{"type":"file_search","vector_store_ids":["vs_1"]}]}"#,
            r#"{"input":"a","tools":[{"type":"web_search_preview"}]}"#,
            r#"{"input":"a","tools":[{"type":"mcp","server_label":"s","server_url":"https://h/mcp"}]}"#,
        ] {
            assert!(of(Operation::Responses, body), "{body}");
        }
        let file = r#"{"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}]}"#;
        assert!(of(Operation::Chat, file));
        assert!(of(
            Operation::Chat,
            r#"{"web_search_options":{},"messages":[]}"#
        ));
    }

    #[test]
    fn a_prompt_that_its_body_holds_is_not_looked_for_elsewhere() {
        for body in [
            r#"{"input":"the id of a file"}"#,
            r#"{"input":[{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"hi"}]}]}"#,
            r#"{"input":[{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}"}]}"#,
            r#"{"input":"a","metadata":{"id":"7"},"tools":[{"type":"function","name":"f","parameters":{"id":1}}]}"#,
        ] {
            assert!(!of(Operation::Responses, body), "{body}");
        }
        let chat = r#"{"messages":[{"role":"tool","tool_call_id":"c","content":"a"}],"user":"id"}"#;
        assert!(!of(Operation::Chat, chat));
        assert!(!of(Operation::Messages, r#"{"file_id":"file-1"}"#));
    }
}
