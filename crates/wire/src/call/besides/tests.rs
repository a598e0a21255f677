//! Which models a body names besides its own, whole and in pieces, and what only looks as if it named one.

use bytes::Bytes;
use testing::Draw;

use super::{Besides, MEMBERS, MODELS_LIMIT};
use crate::call::{CallHead, CallScanner, Minds};
use crate::dialect::Operation;
use crate::dialect::gemini::Named;

const MODELS: Minds = Minds {
    stored: false,
    models: true,
};

/// Reads it in pieces, and looks inside.
fn read(body: &str, cuts: &[usize]) -> CallHead {
    let mut scanner = CallScanner::new();
    let mut pieces = Vec::new();
    let mut from = 0;
    for cut in cuts.iter().copied().chain([body.len()]) {
        let piece = &body.as_bytes()[from..cut];
        scanner.push(piece).expect(body);
        pieces.push(Bytes::copy_from_slice(piece));
        from = cut;
    }
    let mut head = std::mem::take(scanner.finish().expect(body));
    head.look_inside(Operation::Chat, MODELS, &pieces);
    head
}

fn named(head: &CallHead) -> Vec<(&str, &str)> {
    let pair = |of: &'static str, model| (of, model);
    let besides = head.besides.iter();
    besides.map(|it| pair(it.member, &*it.model)).collect()
}

#[test]
fn models_that_a_provider_asks_besides_are_found_at_every_cut() {
    let table: [(&str, &[(&str, &str)]); 26] = [
        (
            r#"{"model":"m","fallbacks":[{"m":["a"]},{"*":["b"]},{"model":"c","messages":[{"role":"user"}],"user":"u"}]}"#,
            &[("fallbacks", "a"), ("fallbacks", "b"), ("fallbacks", "c")],
        ),
        (
            r#"{"model":"m","fallbacks":{"m":["a"],"items":["b"]}}"#,
            &[("fallbacks", "a"), ("fallbacks", "b")],
        ),
        (
            r#"{"model":"m","lora_path":{"path":"a"}}"#,
            &[("lora_path", "a")],
        ),
        (
            r#"{"model":"m","lora_request":"a","preset":{"slug":"b"}}"#,
            &[("lora_request", "a"), ("preset", "b")],
        ),
        (
            r#"{"model":"m","model_list":[{"model_name":"a","litellm_params":{"model":"b"}}]}"#,
            &[("model_list", "a"), ("model_list", "b")],
        ),
        (
            r#"{"model":"m","user_config":{"model_list":[{"litellm_params":{"model":"b"}}],"fallbacks":[{"m":["c"]}]}}"#,
            &[("user_config", "b"), ("user_config", "c")],
        ),
        (
            r#"{"model":"m","extra_body":{"model":"a","models":["b"],"preset":"c"}}"#,
            &[
                ("extra_body", "a"),
                ("extra_body", "b"),
                ("extra_body", "c"),
            ],
        ),
        (r#"{"model":"m","lora_path":"a"}"#, &[("lora_path", "a")]),
        (
            r#"{"model":"m","lora_path":["a",null,"b"]}"#,
            &[("lora_path", "a"), ("lora_path", "b")],
        ),
        (
            r#"{"model":"m","lora_request":{"lora_name":"a","lora_int_id":1,"lora_path":"/b"}}"#,
            &[("lora_request", "a"), ("lora_request", "/b")],
        ),
        (r#"{"model":"m","preset":"a"}"#, &[("preset", "a")]),
        (
            r#"{"model":"m","context_window_fallbacks":[{"m":["a"]},"b",{"items":"c"}]}"#,
            &[
                ("context_window_fallbacks", "a"),
                ("context_window_fallbacks", "b"),
                ("context_window_fallbacks", "c"),
            ],
        ),
        (
            r#"{"context_window_fallback_dict":{"m":"a"},"content_policy_fallbacks":[{"m":["b"]}],"model":"m"}"#,
            &[
                ("context_window_fallback_dict", "a"),
                ("content_policy_fallbacks", "b"),
            ],
        ),
        (
            r#"{"model":"m","tools":[{"type":"advisor_20260301","name":"advisor","model":"opus"}]}"#,
            &[("tools", "opus")],
        ),
        (
            r#"{"tools":[{"type":"image_generation","model":"gpt-image-2"},{"type":"web_search"}],"model":"m"}"#,
            &[("tools", "gpt-image-2")],
        ),
        (
            r#"{"model":"m","tools":[{"type":"openrouter:fusion","parameters":{"analysis_models":["a","b"],"model":"c"}}]}"#,
            &[("tools", "a"), ("tools", "b"), ("tools", "c")],
        ),
        (
            r#"{"model":"m","plugins":[{"id":"auto-router","allowed_models":["a/*"]},{"id":"fusion","model":"j"}]}"#,
            &[("plugins", "(unreadable)"), ("plugins", "j")],
        ),
        (
            r#"{"models":["a","b"],"model":"m"}"#,
            &[("models", "a"), ("models", "b")],
        ),
        (
            r#"{"model":"m","fallbacks":["a",{"model":"b","messages":[{"content":"x"}]}]}"#,
            &[("fallbacks", "a"), ("fallbacks", "b")],
        ),
        (
            r#"{"model":"m","safety_model":"guard"}"#,
            &[("safety_model", "guard")],
        ),
        (
            r#"{"model":"m","compound_custom":{"models":{"answering_model":"a","reasoning_model":"r"}}}"#,
            &[("compound_custom", "a"), ("compound_custom", "r")],
        ),
        (
            r#"{"model":"m","providerOptions":{"gateway":{"models":["a"]}}}"#,
            &[("providerOptions", "a")],
        ),
        (
            r#"{"model":"m","to\u006fls":[{"mod\u0065l":"op\u0075s"}]}"#,
            &[("tools", "opus")],
        ),
        (
            r#"{"model":"m","tools":[{"MODEL":"opus"},{"Mode\u006C":"sonnet"},{"model":"opus"}]}"#,
            &[("tools", "opus"), ("tools", "sonnet")],
        ),
        (
            r#"{ "a\u0022,{" : [ 1 , "x" ] , "tools" : [ { "model" : [ "a" , 7 , [ "b" ] ] } ] }"#,
            &[("tools", "a"), ("tools", "b")],
        ),
        (
            r#"{"tools":[{"model":"a b"},{"model":{"model":"c"}}],"model":"m"}"#,
            &[("tools", "(unreadable)"), ("tools", "c")],
        ),
    ];
    for (body, expected) in table {
        for cut in 0..=body.len() {
            let head = read(body, &[cut]);
            assert!(head.may_name_more(Operation::Chat), "{body}");
            assert_eq!(named(&head), expected, "{body} at {cut}");
        }
        assert_eq!(named(&read(body, &[])), expected, "{body}");
    }
}

/// The same of a call to Responses.
fn read_responses(body: &str, cut: usize) -> CallHead {
    let mut scanner = CallScanner::new();
    let pieces = [&body.as_bytes()[..cut], &body.as_bytes()[cut..]];
    let pieces = pieces.map(|piece| {
        scanner.push(piece).expect(body);
        Bytes::copy_from_slice(piece)
    });
    let mut head = std::mem::take(scanner.finish().expect(body));
    assert!(head.may_name_more(Operation::Responses));
    head.look_inside(Operation::Responses, MODELS, &pieces);
    head
}

#[test]
fn tools_within_items_of_responses_name_models_and_what_messages_say_does_not() {
    let found = r#"{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"{\"model\":\"x\"}"}]},
        {"type":"tool_search_output","call_id":"c","tools":[{"type":"function","name":"f","parameters":{"properties":{"model":{"enum":["x"]}}}},
        {"type":"namespace","tools":[{"type":"image_generation","model":"gpt-image-2"}]}]},{"type":"agent","model":"opus"}]}"#;
    let none = [
        r#"{"model":"m","input":"model: opus"}"#,
        r#"{"model":"m","input":[{"type":"function_call","arguments":"{\"model\":\"opus\"}","call_id":"models","name":"model"}]}"#,
        r#"{"model":"m","input":[{"type":"mcp_list_tools","tools":[{"name":"f","input_schema":{"model":"opus"}}]}]}"#,
    ];
    for cut in 0..=found.len() {
        let expected = [("input", "gpt-image-2"), ("input", "opus")];
        assert_eq!(named(&read_responses(found, cut)), expected, "{cut}");
    }
    for body in none {
        for cut in 0..=body.len() {
            assert_eq!(named(&read_responses(body, cut)), [], "{body} at {cut}");
        }
    }
}

#[test]
fn what_is_the_callers_own_names_no_model() {
    let table = [
        r#"{"model":"m","tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"model":{"type":"string","enum":["opus"]}},"required":["model"]}}}]}"#,
        r#"{"model":"m","tools":[{"name":"f","description":"\"model\":\"opus\"","input_schema":{"properties":{"x":{"default":{"model":"opus"}}},"model":"opus"}}]}"#,
        r#"{"model":"m","tools":[{"name":"model","input_examples":[{"model":"opus"}]}]}"#,
        r#"{"model":"m","tools":[{"type":"mcp","server_label":"models","headers":{"model":"x"}}],"fallbacks":[]}"#,
        r#"{"model":"m","tools":[{"model":""},{"model":null},{"model":7},{"model":true,"x":"y"}],"models":null}"#,
        r#"{"model":"m","tools":[{"type":"function","model":{}},["x"],"y"]}"#,
    ];
    for body in table {
        for cut in 0..=body.len() {
            assert_eq!(named(&read(body, &[cut])), [], "{body}");
        }
    }
}

#[test]
fn a_call_that_names_none_is_not_looked_into() {
    for body in [
        r#"{"model":"m","messages":[{"role":"user","content":"x","model":"y","tools":[{"model":"z"}]}],"temperature":1}"#,
        r#"{"model":"m","metadata":{"tools":"x"},"prompt":"models"}"#,
    ] {
        for cut in 0..=body.len() {
            let head = read(body, &[cut]);
            assert!(
                !head.may_name_more(Operation::Chat) && head.besides.is_empty(),
                "{body}"
            );
        }
    }
}

#[test]
fn each_member_is_watched_for_whole_and_in_parts_and_in_one_spelling_alone() {
    for member in MEMBERS {
        let body = format!(r#"{{"model":"m","{member}":1}}"#);
        for cut in 0..=body.len() {
            assert!(
                read(&body, &[cut]).may_name_more(Operation::Chat),
                "{body} at {cut}"
            );
        }
        if *member != member.to_lowercase() {
            continue;
        }
        let other = body.replace(member, &member.to_uppercase());
        let fault = CallHead::read(other.as_bytes()).expect_err("refused");
        assert_eq!(fault.code(), "ambiguous_member", "{other}");
    }
}

#[test]
fn a_call_that_names_more_than_are_kept_names_one_that_nothing_takes() {
    let all: Vec<String> = (0..MODELS_LIMIT + 9).map(|n| format!("\"m{n}\"")).collect();
    let head = read(&format!(r#"{{"models":[{}]}}"#, all.join(",")), &[]);
    assert_eq!(head.besides.len(), MODELS_LIMIT + 1);
    let last = head.besides.last().map(|last| &*last.model);
    assert_eq!(last, Some(Besides::UNREADABLE));
}

#[test]
fn googles_calls_name_the_model_that_they_are_routed_to() {
    let named_in = |body: &str| {
        let path = "/v1beta/models/gemini-3-flash:generateContent";
        let mut scanner = CallScanner::of_named(&Named::of(path).expect("a call"));
        scanner.push(body.as_bytes()).expect(body);
        let mut head = std::mem::take(scanner.finish().expect(body));
        let body = [Bytes::copy_from_slice(body.as_bytes())];
        head.look_inside(Operation::GenerateContent, MODELS, &body);
        head.besides
    };
    for body in [
        r#"{"generationConfig":{"routingConfig":{"manualMode":{"modelName":"gemini-3-pro"}}}}"#,
        r#"{"generation_config":{"routing_config":{"manual_mode":{"model_name":"gemini-3-pro"}}}}"#,
    ] {
        let besides = named_in(body);
        assert_eq!(besides.len(), 1, "{body}");
        assert_eq!(&*besides[0].model, "gemini-3-pro");
    }
    let none = r#"{"generationConfig":{"responseSchema":{"properties":{"model":{"type":"STRING"}},"model":"x"}},"tools":[{"functionDeclarations":[{"name":"f","parameters":{"properties":{"model":{"type":"STRING"}}}}]}]}"#;
    assert_eq!(named_in(none), []);
}

#[test]
fn pieces_of_any_length_name_the_same() {
    let body = r#"{"model":"m","messages":[{"role":"user","content":"a long way to go"}],"tools":[{"name":"f","input_schema":{"properties":{"model":{"type":"string"}}}},{"type":"advisor_20260301","name":"advisor","model":"opus"}]}"#;
    let mut draw = Draw::new(testing::seed("pieces_of_any_length_name_the_same"));
    for _ in 0..2000 {
        let mut cuts: Vec<usize> = (0..draw.below(40))
            .map(|_| draw.below(body.len()))
            .collect();
        cuts.sort_unstable();
        assert_eq!(named(&read(body, &cuts)), [("tools", "opus")], "{cuts:?}");
    }
}
