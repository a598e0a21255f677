//! What a request says beside its text, dialect by dialect: what each member makes of the prompt, by vLLM 0.32.0's
//! source.
//!
//! Not here: templates and their arguments (`habits`).

use super::{CLOCK_S, tiny, vectors};
use crate::{BuiltIn, Certainty, Count, Counter, Doubt, TemplateSettings, Uncountable};
use wire::dialect::Operation;

const LOOP: &str = "{% for m in messages %}{{ m.role + ': ' + m.content + '\n' }}{% endfor %}";

fn count(counter: &Counter, operation: Operation, body: &str) -> Result<Count, Uncountable> {
    let prompt = counter.prompt(operation, body.as_bytes(), CLOCK_S);
    prompt.map(|prompt| prompt.count)
}

/// The developer's message and what comes after it.
fn after_system(operation: Operation, body: &str) -> String {
    let shown = Counter::harmony().rendered(operation, body.as_bytes(), CLOCK_S);
    let shown = shown.expect("countable");
    let (_, rest) = shown.split_once("<|end|>").expect("a system message");
    rest.to_owned()
}

#[test]
fn empty_instructions_keep_their_heading_beside_tools() {
    let chat = r#"{"messages":[{"role":"system","content":""},{"role":"user","content":"a"}],
        "tools":[{"type":"function","function":{"name":"f"}}]}"#;
    let responses = r#"{"instructions":"","input":"a","tools":[{"type":"function","name":"f"}]}"#;
    let without = r#"{"messages":[{"role":"user","content":"a"}],
        "tools":[{"type":"function","function":{"name":"f"}}]}"#;
    let heading = "<|start|>developer<|message|># Instructions\n\n\n\n# Tools\n\n## functions";
    for (operation, body) in [(Operation::Chat, chat), (Operation::Responses, responses)] {
        assert!(after_system(operation, body).starts_with(heading), "{body}");
    }
    let shown = after_system(Operation::Chat, without);
    assert!(
        shown.starts_with("<|start|>developer<|message|># Tools\n\n## functions"),
        "{shown}"
    );
    let harmony = Counter::harmony();
    let tokens = |body| {
        count(&harmony, Operation::Chat, body)
            .expect("countable")
            .tokens
    };
    assert_eq!(tokens(chat), tokens(without) + 3);
    // Without tools there is no message.
    let none = r#"{"messages":[{"role":"system","content":""},{"role":"user","content":"a"}]}"#;
    assert_eq!(
        after_system(Operation::Chat, none),
        "<|start|>user<|message|>a<|end|><|start|>assistant"
    );
}

#[test]
fn harmony_reads_the_text_of_a_part_and_nothing_else() {
    let body = r#"{"messages":[{"role":"user","content":"hi"},
        {"role":"assistant","content":[{"type":"refusal","refusal":"no"},{"type":"text","text":"yes"}]},
        {"role":"user","content":[{"type":"thinking","thinking":"x"},{"type":"text","text":"go"}]}]}"#;
    assert_eq!(
        after_system(Operation::Chat, body),
        "<|start|>user<|message|>hi<|end|><|start|>user<|message|>go<|end|><|start|>assistant"
    );
}

#[test]
fn items_are_messages_of_their_own_in_harmony() {
    let body = r#"{"input":[{"role":"user","content":"a"},{"role":"developer","content":""},
        {"type":"function_call","call_id":"c","name":"one","arguments":"{}"},
        {"type":"function_call_output","call_id":"c","output":"1"},
        {"type":"function_call","call_id":"c","name":"two","arguments":"{}"},
        {"type":"function_call_output","call_id":"c","output":"2"}]}"#;
    let shown = after_system(Operation::Responses, body);
    assert!(!shown.contains("developer"), "{shown}");
    let first = shown
        .find("<|start|>functions.one")
        .expect("the first call's answer");
    assert!(shown[first..].contains("<|start|>functions.two"), "{shown}");
}

#[test]
fn the_systems_text_inside_of_anthropics_messages_joins_the_first_in_harmony() {
    let body = r#"{"system":"one ","messages":[{"role":"user","content":"a"},
        {"role":"system","content":"two"},{"role":"user","content":"b"}]}"#;
    assert_eq!(
        after_system(Operation::Messages, body),
        "<|start|>developer<|message|># Instructions\n\none two<|end|>\
         <|start|>user<|message|>a<|end|><|start|>user<|message|>b<|end|><|start|>assistant"
    );
}

#[test]
fn a_prompt_that_another_stage_made_is_its_token_numbers() {
    let body = |more: &str| {
        format!(
            r#"{{"messages":[{{"role":"user","content":"hello"}}],"kv_transfer_params":{{"prompt_token_ids":[1,2,3]}}{more}}}"#
        )
    };
    for counter in [tiny(LOOP), Counter::harmony()] {
        for operation in [Operation::Chat, Operation::Messages] {
            assert_eq!(count(&counter, operation, &body("")), Ok(Count::exact(3)));
        }
        let echoed = count(&counter, Operation::Chat, &body(r#","echo":true"#));
        assert!(echoed.expect("countable").tokens > 3);
    }
    let image = r#"{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}],
        "kv_transfer_params":{"prompt_token_ids":[1,2,3]}}"#;
    let refused = count(&tiny(LOOP), Operation::Chat, image);
    assert!(matches!(refused, Err(Uncountable::Part(_))), "{refused:?}");
}

#[test]
fn a_prompt_that_is_cut_is_as_long_as_it_is_cut_to() {
    let counter = tiny(LOOP);
    let long = "hello world ".repeat(9);
    for (operation, body, tokens) in [
        (
            Operation::Completions,
            format!(r#"{{"prompt":["{long}","hello"],"truncate_prompt_tokens":7}}"#),
            11,
        ),
        (
            Operation::Embeddings,
            format!(r#"{{"input":["{long}",[1,2,3,4,5,6,7,8,9]],"truncate_prompt_tokens":7}}"#),
            14,
        ),
    ] {
        assert_eq!(
            count(&counter, operation, &body),
            Ok(Count::exact(tokens)),
            "{body}"
        );
    }
    for (operation, body) in [
        (
            Operation::Chat,
            r#"{"messages":[{"role":"user","content":"a"}],"truncate_prompt_tokens":-1}"#,
        ),
        (Operation::Responses, r#"{"input":"a","truncation":"auto"}"#),
        (
            Operation::Completions,
            r#"{"prompt":"a","truncate_prompt_tokens":-1}"#,
        ),
    ] {
        let counted = count(&counter, operation, body).expect("countable");
        assert_eq!(
            counted.certainty,
            Certainty::Approximate(Doubt::Truncated),
            "{body}"
        );
    }
    // Harmony's chat is not cut.
    let body = r#"{"messages":[{"role":"user","content":"a"}],"truncate_prompt_tokens":1}"#;
    let counted = count(&Counter::harmony(), Operation::Chat, body).expect("countable");
    assert!(counted.tokens > 1 && counted.certainty == Certainty::Exact);
}

fn started(excludes_tools: bool, model_length: Option<u64>) -> Counter {
    let template = "{% for t in tools %}{{ t.function.name }}\n{% endfor %}{% for m in messages %}{{ m.content }}{% endfor %}";
    let settings = TemplateSettings {
        excludes_tools,
        model_length,
        ..TemplateSettings::default()
    };
    let tokenizer = vectors("tiny_tokenizer.json");
    Counter::from_template(tokenizer.as_bytes(), template, settings).expect("usable")
}

#[test]
fn a_prompt_that_is_shorter_than_the_models_length_is_whole() {
    let bodies = [
        (
            Operation::Chat,
            r#"{"messages":[{"role":"user","content":"abc"}],"truncate_prompt_tokens":-1}"#,
        ),
        (
            Operation::Responses,
            r#"{"input":"abc","truncation":"auto"}"#,
        ),
        (
            Operation::Completions,
            r#"{"prompt":"abc","truncate_prompt_tokens":-1}"#,
        ),
    ];
    for (operation, body) in bodies {
        let certainty = |length| {
            let counter = started(false, length);
            let count = count(&counter, operation, body).expect("countable");
            (count.tokens, count.certainty)
        };
        let (tokens, doubted) = certainty(None);
        assert_eq!(doubted, Certainty::Approximate(Doubt::Truncated), "{body}");
        assert_eq!(certainty(Some(tokens + 1)), (tokens, Certainty::Exact));
        // Of a prompt as long as the model the engine may keep room for an answer.
        assert_eq!(certainty(Some(tokens)), (tokens, doubted), "{body}");
    }
}

#[test]
fn room_for_the_answer_is_kept_when_a_prompt_is_cut_to_the_models_length() {
    let count = |length: u64, cap: &str| {
        let body = format!(
            r#"{{"messages":[{{"role":"user","content":"abc"}}],"truncate_prompt_tokens":-1{cap}}}"#
        );
        let prompt = started(false, Some(length)).prompt(Operation::Chat, body.as_bytes(), 0);
        prompt.expect("countable").count
    };
    let tokens = count(1000, "").tokens;
    let fits = tokens + 11;
    assert_eq!(
        count(fits, r#","max_tokens":10"#).certainty,
        Certainty::Exact
    );
    for cap in [
        r#","max_tokens":11"#,
        r#","max_completion_tokens":11"#,
        r#","max_tokens":"11""#,
        r#","max_tokens":{}"#,
    ] {
        let doubt = Certainty::Approximate(Doubt::Truncated);
        assert_eq!(count(fits, cap).certainty, doubt, "{cap}");
    }
}

#[test]
fn tools_that_may_not_be_called_are_left_out_where_the_engine_leaves_them_out() {
    let tool = r#"[{"type":"function","function":{"name":"look_it_up"}}]"#;
    let named = r#"[{"name":"look_it_up","input_schema":{"type":"object"}}]"#;
    let chat = |rest: &str| format!(r#"{{"messages":[{{"role":"user","content":"a"}}]{rest}}}"#);
    for (operation, tools, none) in [
        (Operation::Chat, tool, r#""none""#),
        (Operation::Messages, named, r#"{"type":"none"}"#),
    ] {
        let count = |excludes, rest: &str| {
            let counter = started(excludes, None);
            count(&counter, operation, &chat(rest))
                .expect("countable")
                .tokens
        };
        let (with, without) = (format!(r#","tools":{tools}"#), "");
        let none = format!(r#","tools":{tools},"tool_choice":{none}"#);
        assert_eq!(count(false, &none), count(false, &with));
        assert_eq!(count(true, &none), count(true, without));
        assert_ne!(count(true, &with), count(true, without));
    }
}

#[test]
fn numbers_that_are_read_in_another_way_are_doubted() {
    let tools = |number: &str| {
        format!(
            r#"{{"messages":[{{"role":"user","content":"a"}}],"tools":[{{"type":"function","function":{{"name":"f","parameters":{{"a":{number}}}}}}}]}}"#
        )
    };
    let template = tiny("{{ tools[0].function.parameters | tojson }}");
    let joins = tiny("{{ tools[0].function.parameters.a ~ '' }}");
    let doubted = Certainty::Approximate(Doubt::Number);
    for (number, prints, joined) in [
        ("1", Certainty::Exact, Certainty::Exact),
        ("-9223372036854775808", Certainty::Exact, Certainty::Exact),
        ("18446744073709551615", Certainty::Exact, Certainty::Exact),
        ("1e15", Certainty::Exact, Certainty::Exact),
        ("1e-7", Certainty::Exact, doubted),
        ("1e17", Certainty::Exact, doubted),
        ("-0", doubted, doubted),
        ("18446744073709551616", doubted, doubted),
        ("-9223372036854775809", doubted, doubted),
    ] {
        let certainty = |counter: &Counter| {
            let counted = count(counter, Operation::Chat, &tools(number));
            counted.expect("countable").certainty
        };
        assert_eq!(certainty(&template), prints, "{number}");
        assert_eq!(certainty(&joins), joined, "{number}");
    }
    let refused = count(&template, Operation::Chat, &tools("1e400"));
    assert!(
        matches!(refused, Err(Uncountable::NotJson(_))),
        "{refused:?}"
    );
}

#[test]
fn what_only_the_engine_can_know_is_not_counted() {
    let counter = tiny(&vectors("chatml.jinja"));
    for (operation, body) in [
        (
            Operation::Chat,
            r#"{"messages":[{"role":"user","content":"a"}],"chat_template":"x"}"#,
        ),
        (
            Operation::Embeddings,
            r#"{"messages":[{"role":"user","content":"a"}],"chat_template":"x"}"#,
        ),
        (
            Operation::Chat,
            r#"{"messages":[{"role":"user","content":"a"}],"chat_template_kwargs":{"chat_template":"x"}}"#,
        ),
        (
            Operation::Chat,
            r#"{"messages":[{"role":"user","content":"a","task":"x"}]}"#,
        ),
        (
            Operation::Embeddings,
            r#"{"input":["a"],"messages":[{"role":"user","content":"a"}]}"#,
        ),
        (
            Operation::Embeddings,
            r#"{"input":"a","padding":"max_length"}"#,
        ),
    ] {
        let refused = count(&counter, operation, body);
        assert!(matches!(refused, Err(Uncountable::Member { .. })), "{body}");
        assert_eq!(refused.expect_err("refused").as_str(), "member");
    }
    // A provider's own template may show these.
    let body = r#"{"messages":[{"role":"user","content":"a"}],"functions":[]}"#;
    let hosted = Counter::without_template(BuiltIn::O200k);
    assert!(count(&hosted, Operation::Chat, body).is_err());
}

#[test]
fn a_template_is_shown_the_functions_among_the_tools_of_responses() {
    let counter =
        tiny("{% for t in tools %}{{ t.function.name }} {{ t.function.parameters }};{% endfor %}");
    let shown = |tools: &str| {
        let body = format!(r#"{{"input":"a","tools":{tools}}}"#);
        counter
            .rendered(Operation::Responses, body.as_bytes(), CLOCK_S)
            .expect("countable")
    };
    assert_eq!(
        shown(
            r#"[{"type":"web_search"},{"type":"function","name":"f","parameters":{"a":1}},
            {"type":"namespace","name":"n","tools":[{"type":"function","name":"g"},{"type":"custom","name":"h"}]},
            {"type":"custom","name":"run","description":"Runs.","format":{"type":"text"}}]"#
        ),
        "f {'a': 1};n__g None;run {'type': 'object', 'properties': {'input': {'type': 'string', 'description': \
         'The freeform text payload for this tool.'}}, 'required': ['input'], 'additionalProperties': False};"
    );
    assert_eq!(shown(r#"[{"type":"web_search"}]"#), "");
}

#[test]
fn what_a_template_computes_in_another_way_is_doubted_and_nothing_panics() {
    let doubted = Certainty::Approximate(Doubt::Language);
    let body = r#"{"messages":[{"role":"user","content":""}]}"#;
    for (template, certainty) in [
        ("{{ messages[::-1] }}", Certainty::Exact),
        ("{{ messages[3:0:-1] }}", doubted),
        ("{{ messages[0].items() | list }}", Certainty::Exact),
        ("{% if messages[0].items %}x{% endif %}", doubted),
        ("{{ self is defined }}", doubted),
        ("{{ messages | groupby('role') }}", doubted),
        ("{{ debug is defined }}", Certainty::Exact),
    ] {
        let counted = count(&tiny(template), Operation::Chat, body);
        assert_eq!(
            counted.expect("countable").certainty,
            certainty,
            "{template}"
        );
    }
    // A slice of nothing.
    let refused = count(
        &tiny("{{ messages[0].content[::-1] }}"),
        Operation::Chat,
        body,
    );
    assert!(
        matches!(refused, Err(Uncountable::Template(_))),
        "{refused:?}"
    );
    let refused = count(
        &tiny("{{ messages[::-1] }}"),
        Operation::Chat,
        r#"{"messages":[]}"#,
    );
    assert!(
        matches!(refused, Err(Uncountable::Member { .. })),
        "{refused:?}"
    );
}

#[test]
fn batches_of_conversations_are_summed_in_embeddings() {
    let counter = tiny(LOOP);
    let one = r#"[{"role":"user","content":"hello"}]"#;
    let tokens = |body: &str| {
        count(&counter, Operation::Embeddings, body)
            .expect("countable")
            .tokens
    };
    let single = tokens(&format!(r#"{{"messages":{one}}}"#));
    assert_eq!(
        tokens(&format!(r#"{{"messages":[{one},{one}]}}"#)),
        2 * single
    );
    assert_eq!(tokens(&format!(r#"{{"input":[{one},{one}]}}"#)), 2 * single);
}
