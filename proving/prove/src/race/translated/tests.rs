//! What answers tell, in both dialects.

use super::{Told, anthropic, anthropic_events, chat, chat_events};

fn told(completion: u64, is_whole: bool) -> Told {
    Told {
        text: "One two.".into(),
        prompt: 9,
        completion,
        is_whole,
    }
}

#[test]
fn a_whole_answer_tells_its_text_and_counts_in_both_dialects() {
    let ours = br#"{"choices":[{"message":{"content":"One two."},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":3}}"#;
    let theirs = br#"{"type":"message","content":[{"type":"text","text":"One"},{"type":"text","text":" two."}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":3}}"#;
    assert_eq!(chat(ours), told(3, true));
    assert_eq!(anthropic(theirs), told(3, true));
}

#[test]
fn a_stream_tells_the_same_and_one_that_was_cut_is_not_whole() {
    let ours = b"data: {\"choices\":[{\"delta\":{\"content\":\"One\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\" two.\"},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n";
    assert_eq!(chat_events(ours), told(3, true));
    let begun = concat!(
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n",
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"One two.\"}}\n\n",
    );
    assert_eq!(anthropic_events(begun.as_bytes()), told(1, false));
    let whole = format!(
        "{begun}data: {{\"type\":\"message_delta\",\"usage\":{{\"output_tokens\":3}}}}\n\ndata: {{\"type\":\"message_stop\"}}\n\n"
    );
    assert_eq!(anthropic_events(whole.as_bytes()), told(3, true));
}
