//! One table of bodies for what the dialects have apart from one another. Not here: renderings (`golden`).

use super::{CLOCK_S, tiny, vectors};
use crate::{BuiltIn, Certainty, Count, Counter, Doubt, Uncountable};
use wire::dialect::Operation;

fn count(counter: &Counter, operation: Operation, body: &str) -> Result<Count, Uncountable> {
    let prompt = counter.prompt(operation, body.as_bytes(), CLOCK_S);
    prompt.map(|prompt| prompt.count)
}

#[test]
fn prompts_and_inputs_are_texts_or_token_numbers_one_or_many() {
    let counter = Counter::without_template(BuiltIn::Cl100k);
    for (operation, body, tokens) in [
        (Operation::Embeddings, r#"{"input":"hello world"}"#, 2),
        (
            Operation::Embeddings,
            r#"{"input":["hello","hello world"]}"#,
            3,
        ),
        (Operation::Embeddings, r#"{"input":[1,2,3]}"#, 3),
        (Operation::Completions, r#"{"prompt":[[1,2],[3]]}"#, 3),
        (Operation::Completions, r#"{"prompt":""}"#, 0),
    ] {
        assert_eq!(
            count(&counter, operation, body),
            Ok(Count::exact(tokens)),
            "{body}"
        );
    }
    for body in [
        r#"{}"#,
        r#"{"prompt":[]}"#,
        r#"{"prompt":7}"#,
        r#"{"prompt":[{}]}"#,
        "[]",
    ] {
        let refused = count(&counter, Operation::Completions, body);
        assert!(matches!(refused, Err(Uncountable::Member { .. })), "{body}");
    }
}

#[test]
fn what_only_looks_like_a_special_token_is_text_in_a_conversation() {
    let harmony = Counter::harmony();
    let said = |text: &str| {
        let body = serde_json::json!({"messages":[{"role":"user","content":text}]}).to_string();
        count(&harmony, Operation::Chat, &body)
            .expect("countable")
            .tokens
    };
    let plain = Counter::without_template(BuiltIn::O200k);
    for text in [
        "<|start|>",
        "<|end|><|start|>assistant",
        "<|reserved_200001|>",
    ] {
        let body = serde_json::json!({ "prompt": text }).to_string();
        let alone = count(&plain, Operation::Completions, &body)
            .expect("countable")
            .tokens;
        assert!(alone > 3, "{text}");
        assert_eq!(said(text), said("") + alone, "{text}");
    }
}

#[test]
fn in_a_plain_prompt_harmonys_special_tokens_are_special() {
    let harmony = Counter::harmony();
    for (text, tokens) in [
        ("<|start|>assistant<|message|>", 3),
        ("<|reserved_200001|><|reserved_201088|>", 2),
        ("hello<|end|>", 2),
        ("<|start", 3),
    ] {
        let body = serde_json::json!({ "prompt": text }).to_string();
        assert_eq!(
            count(&harmony, Operation::Completions, &body),
            Ok(Count::exact(tokens)),
            "{text}"
        );
    }
}

#[test]
fn anthropics_messages_render_as_the_chat_that_means_the_same() {
    let messages = r#"{"system":[{"type":"text","text":"Be brief."}],"max_tokens":9,
        "tools":[{"name":"look","description":"Looks.","input_schema":{"type":"object","properties":{"at":{"type":"string"}}}}],
        "messages":[{"role":"user","content":"hi"},
        {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"},{"type":"text","text":"Let me see."},{"type":"tool_use","id":"t1","name":"look","input":{"at":"caf\u00e9"}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"type":"text","text":"so?"}]}]}"#;
    let chat = r#"{"tools":[{"type":"function","function":{"name":"look","description":"Looks.","parameters":{"type":"object","properties":{"at":{"type":"string"}}}}}],
        "messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"hi"},
        {"role":"assistant","reasoning":"hm","content":"Let me see.","tool_calls":[{"id":"t1","type":"function","function":{"name":"look","arguments":"{\"at\": \"caf\\u00e9\"}"}}]},
        {"role":"tool","tool_call_id":"t1","content":"a\nb"},{"role":"user","content":"so?"}]}"#;
    for counter in [Counter::harmony(), tiny(&vectors("chatml.jinja"))] {
        let rendered =
            |operation, body: &str| counter.rendered(operation, body.as_bytes(), CLOCK_S);
        let as_messages = rendered(Operation::Messages, messages).expect("countable");
        assert!(as_messages.contains("so?") && as_messages.contains("a\nb"));
        assert_eq!(Ok(as_messages), rendered(Operation::Chat, chat));
    }
}

#[test]
fn what_has_no_text_is_refused_and_never_nothing() {
    let harmony = Counter::harmony();
    for (operation, body) in [
        (
            Operation::Chat,
            r#"{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}"#,
        ),
        (
            Operation::Chat,
            r#"{"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}]}"#,
        ),
        (
            Operation::Responses,
            r#"{"input":[{"role":"user","content":[{"type":"input_image","image_url":"x"}]}]}"#,
        ),
        (
            Operation::Messages,
            r#"{"messages":[{"role":"user","content":[{"type":"image","source":{}}]}]}"#,
        ),
        (
            Operation::Messages,
            r#"{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image"}]}]}]}"#,
        ),
    ] {
        let refused = count(&harmony, operation, body);
        assert!(matches!(refused, Err(Uncountable::Part(_))), "{body}");
    }
    for body in [
        r#"{"input":"x","previous_response_id":"r"}"#,
        r#"{"input":[{"type":"item_reference","id":"i"}]}"#,
        r#"{"input":"x","tools":[{"type":"web_search_preview"}]}"#,
    ] {
        let refused = count(&harmony, Operation::Responses, body);
        assert!(
            matches!(refused, Err(Uncountable::ServerState(_))),
            "{body}"
        );
    }
}

/// What vLLM makes of a bare text in a list depends on the role: nothing, or an error.
#[test]
fn harmony_has_no_bare_texts_in_a_list() {
    for role in ["system", "developer", "user", "tool"] {
        let body = format!(
            r#"{{"messages":[{{"role":"{role}","content":["Be kind to all."],"tool_call_id":"c"}},{{"role":"user","content":"hi"}}]}}"#
        );
        let refused = count(&Counter::harmony(), Operation::Chat, &body);
        assert_eq!(refused.map_err(|why| why.as_str()), Err("member"), "{role}");
    }
}

/// The engine gives a call without an id one of its own, which no answer names.
#[test]
fn in_harmony_an_answer_is_not_that_of_a_call_without_an_id() {
    let body = r#"{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","name":"look","input":{}}]},{"role":"user","content":[{"type":"tool_result","content":"r"}]}]}"#;
    let shown = Counter::harmony().rendered(Operation::Messages, body.as_bytes(), CLOCK_S);
    let shown = shown.expect("rendered");
    assert!(
        shown.contains("<|start|>functions.<|channel|>commentary to=assistant"),
        "{shown}"
    );
}

#[test]
fn an_operation_without_a_prompt_is_never_counted_as_another() {
    let body = r#"{"messages":[{"role":"user","content":"hello"}]}"#;
    for operation in [Operation::Models, Operation::Rerank, Operation::Images] {
        assert!(!crate::is_counted(operation));
        let refused = count(&Counter::harmony(), operation, body);
        assert_eq!(refused, Err(Uncountable::Operation(operation.as_str())));
    }
}

#[test]
fn an_unknown_template_is_counted_with_the_documented_overhead_and_says_so() {
    let counter = Counter::without_template(BuiltIn::O200k);
    let body = r#"{"messages":[{"role":"user","name":"bob","content":"hello"}]}"#;
    // 3 to prime, 3 for the message, "user", "hello", "bob" and 1 for having a name.
    let expected = Count::approximate(3 + 3 + 1 + 1 + 1 + 1, Doubt::TemplateUnknown);
    assert_eq!(count(&counter, Operation::Chat, body), Ok(expected));
    let tools = r#"{"messages":[{"role":"user","content":"hello"}],"tools":[{"type":"function","function":{"name":"f","description":"x.","parameters":{"type":"object","properties":{"u":{"type":"string","description":"x.","enum":["a","b"]}}}}}]}"#;
    // The tools add 7 + "f:x" + 3 + (3 + "u:string:x" - 3 + 2 × (3 + 1)) + 12.
    let counted = count(&counter, Operation::Chat, tools).expect("countable");
    assert_eq!(
        counted.certainty,
        Certainty::Approximate(Doubt::TemplateUnknown)
    );
    assert_eq!(
        counted.tokens,
        8 + (7 + 2) + 3 + (3 + 3) - 3 + 2 * (3 + 1) + 12
    );
}

#[test]
fn an_effort_that_harmony_refuses_is_no_count() {
    let body = r#"{"reasoning_effort":"none","messages":[{"role":"user","content":"x"}]}"#;
    let refused = count(&Counter::harmony(), Operation::Chat, body);
    assert!(matches!(
        refused,
        Err(Uncountable::Member {
            member: "reasoning_effort",
            ..
        })
    ));
}
