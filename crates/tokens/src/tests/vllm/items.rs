//! What vLLM makes of the items of the Responses API. Not here: the other dialects (`vllm`).

use super::check;
use wire::dialect::Operation;

#[test]
fn items_of_one_answer_are_one_message() {
    check(
        Operation::Responses,
        &[
            (
                91,
                r#"{"input":[{"role":"user","content":"hello"},
                {"type":"reasoning","id":"r","summary":[],"content":[{"type":"reasoning_text","text":"hm"},{"type":"reasoning_text","text":"no"}]},
                {"type":"message","role":"assistant","id":"m","status":"completed","content":[{"type":"output_text","text":"one","annotations":[]},{"type":"output_text","text":"two","annotations":[]}]},
                {"type":"function_call","call_id":"c1","name":"look","arguments":"{\"at\": 1}"},
                {"type":"function_call_output","call_id":"c1","output":"seen"}]}"#,
            ),
            (
                140,
                r#"{"input":[{"role":"user","content":"hello"},
                {"type":"reasoning","id":"r","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]},
                {"type":"function_call","call_id":"c1","name":"look","arguments":"{\"at\": 1}"},
                {"type":"function_call","call_id":"c2","name":"look","arguments":"{\"at\": 1}"},
                {"type":"function_call_output","call_id":"c1","output":"seen"},
                {"type":"function_call_output","call_id":"c2","output":"seen"}]}"#,
            ),
            (
                35,
                r#"{"input":[{"role":"user","content":"hello"},
                {"type":"message","role":"assistant","id":"m","status":"completed","content":[{"type":"output_text","text":"one"}]},
                {"type":"message","role":"assistant","id":"m","status":"completed","content":[{"type":"output_text","text":"two"}]},
                {"role":"user","content":"hello"}]}"#,
            ),
            (
                90,
                r#"{"input":[{"role":"user","content":"hello"},
                {"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"short"}]},
                {"type":"function_call","call_id":"c1","name":"look","arguments":"{\"at\": 1}"},
                {"type":"function_call_output","call_id":"c1","output":"seen"}]}"#,
            ),
            (
                31,
                r#"{"input":[{"role":"user","content":"hello"},
                {"type":"message","role":"assistant","id":"m","status":"incomplete","content":[{"type":"output_text","text":"so far"}]}]}"#,
            ),
            (
                39,
                r#"{"input":[{"role":"user","content":"hello"},{"type":"function_call_output","call_id":"c1","output":"seen"}]}"#,
            ),
            (12, r#"{"input":"hello","instructions":""}"#),
            (
                26,
                r#"{"input":[{"role":"user","content":"hello"}],"reasoning":{"effort":"none"}}"#,
            ),
        ],
    );
}
