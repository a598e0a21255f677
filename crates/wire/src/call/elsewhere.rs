//! Whether a call's prompt is more than its body holds: files, items, templates and searches that its provider adds.
//!
//! Invariant: a false yes costs reading on when a client leaves, a false no costs a prompt that nobody pays for. So names are looked for
//! wherever they stand, but for one that every conversation has.
//! Not here: what becomes of such a call (`policy`), whose those things are (`stored`).

use std::sync::LazyLock;

use bytes::Bytes;
use memchr::memchr_iter;
use memchr::memmem::Finder;

use super::stored::Stored;
use crate::dialect::Operation;

/// A name, and where in it the first `_` stands: a text has few of them.
type Named = (&'static [u8], usize);

const CHAT: &[Named] = &[(b"file_id", 4), (b"web_search", 3)];
const RESPONSES: &[Named] = &[
    (b"file_id", 4),
    (b"file_url", 4),
    (b"vector_store_ids", 6),
    (b"web_search", 3),
    (b"server_url", 6),
    (b"connector_id", 9),
    (b"code_interpreter", 4),
];
/// Longer than each.
const JOINT_BYTES: usize = 16;
/// Items have ids beside what they say: those that say nothing else are told apart.
static ID: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"id\""));
/// How a letter of ASCII begins that is written in an escape, with one of `4` to `7` behind it.
static ESCAPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\\u00"));

/// Whether the provider may add to the prompt of this call what its body only names. Of other APIs, that tell their prompt where an
/// answer begins or with each part of it, this is not asked.
#[must_use]
pub fn is_prompt_elsewhere(operation: Operation, body: &[Bytes]) -> bool {
    match operation {
        Operation::Chat => any(body, |text| has_name(text, CHAT) || has_escape(text)),
        Operation::Responses => {
            any(body, |text| has_name(text, RESPONSES) || has_escape(text))
                || (any(body, |text| ID.find(text).is_some())
                    && Stored::ITEMS.named(body).is_some())
        }
        _ => false,
    }
}

/// Whether this is so of a piece, or of what two of them hold between them; of pieces that are shorter than a name, of all together.
fn any(body: &[Bytes], is_so: impl Fn(&[u8]) -> bool) -> bool {
    let is_short = |piece: &Bytes| piece.len() < JOINT_BYTES;
    if body.len() > 2 && body.iter().any(is_short) {
        return is_so(&body.concat());
    }
    let joint = |pair: &[Bytes]| {
        let [before, behind] = pair else { return false };
        let end = before.get(before.len().saturating_sub(JOINT_BYTES)..);
        let start = behind.get(..JOINT_BYTES).unwrap_or(behind);
        is_so(&[end.unwrap_or_default(), start].concat())
    };
    body.iter().any(|piece| is_so(piece)) || body.windows(2).any(joint)
}

fn has_name(text: &[u8], names: &[Named]) -> bool {
    memchr_iter(b'_', text).any(|at| {
        names.iter().any(|(name, before)| {
            let from = at.checked_sub(*before);
            from.and_then(|from| text.get(from..from + name.len())) == Some(*name)
        })
    })
}

/// Whether a letter is written in an escape, which nobody does who hides no name.
fn has_escape(text: &[u8]) -> bool {
    let mut escapes = ESCAPE.find_iter(text);
    escapes.any(|at| matches!(text.get(at + 4), Some(b'4'..=b'7')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(operation: Operation, body: &str) -> bool {
        let (first, second) = body.split_at(body.len() / 2);
        let pieces = [first, second].map(|piece| Bytes::copy_from_slice(piece.as_bytes()));
        let whole = is_prompt_elsewhere(operation, &[Bytes::copy_from_slice(body.as_bytes())]);
        assert_eq!(whole, is_prompt_elsewhere(operation, &pieces), "{body}");
        for step in [1, 5, 17, 40] {
            let pieces = body.as_bytes().chunks(step).map(Bytes::copy_from_slice);
            let pieces: Vec<Bytes> = pieces.collect();
            assert_eq!(
                whole,
                is_prompt_elsewhere(operation, &pieces),
                "{body} {step}"
            );
        }
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
        // As Python writes other letters than ASCII's.
        let other =
            r#"{"messages":[{"role":"user","content":"caf\u00e9 \u00fcber _file_ an id_"}]}"#;
        assert!(!of(Operation::Chat, other));
        let chat = r#"{"messages":[{"role":"tool","tool_call_id":"c","content":"a"}],"user":"id"}"#;
        assert!(!of(Operation::Chat, chat));
        assert!(!of(Operation::Messages, r#"{"file_id":"file-1"}"#));
    }
}
