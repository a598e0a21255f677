//! Random conversations: for each prompt, the gate's count equals the count that the engine reports.
//!
//! Not here: contents in several parts, which the goldens cover with counts of a real vLLM.

use engine::{EngineConfig, ModelFiles};
use serde_json::{Value, json};
use testing::Draw;

use super::{CountingGate, engine, number};
use crate::harness::{Step, Upstream};

/// In each test, unless `TOLLGATE_CONVERSATIONS` says.
const CONVERSATIONS: u64 = 120;

const WORDS: [&str; 32] = [
    "compile",
    "fails",
    "symbol",
    "don't",
    "HTTPServer",
    "x+=1;",
    "3.14159",
    "123456789",
    "naïve",
    "Straße",
    "東京の天気",
    "привет мир",
    "مرحبا",
    "🦀🚀👩‍👩‍👧‍👦",
    "½",
    "Ⅷ",
    "é",
    "\u{200b}",
    "<|start|>",
    "<|end|>",
    "<|start|>assistant<|channel|>final<|message|>",
    "<|im_start|>",
    "</s>",
    "[INST]",
    "\"quoted\"",
    "\\n",
    "{\"a\":",
    "  ",
    "\n\n",
    "\t",
    "\r\n",
    "//comment",
];

/// Which parts of a conversation a template supports.
#[derive(Clone, Copy)]
struct Kind {
    model: &'static str,
    has_calls: bool,
}

fn text(random: &mut Draw) -> String {
    let mut text = String::new();
    for _ in 0..1 + random.below(30) {
        text.push_str(WORDS[random.below(WORDS.len())]);
        text.push_str(["", " ", " ", "\n"][random.below(4)]);
    }
    text
}

fn tool(random: &mut Draw, index: usize) -> Value {
    let parameters = [
        json!({"type": "object", "properties": {}}),
        json!({"type": "object", "properties": {"city": {"type": "string", "description": "Where? Größe"},
               "unit": {"type": "string", "enum": ["c", "f"]}}, "required": ["city"]}),
        json!({"type": "object", "properties": {"n": {"type": "array", "items": {"type": "integer"}},
               "deep": {"type": "object", "properties": {"a": {"type": "boolean", "default": true}}}}}),
    ];
    let name = format!("tool_{index}");
    let parameters = parameters[random.below(3)].clone();
    json!({"type": "function", "function":
        {"name": name, "description": text(random), "parameters": parameters}})
}

fn conversation(random: &mut Draw, kind: Kind) -> Value {
    let mut messages = Vec::new();
    if random.below(2) == 0 {
        messages.push(json!({"role": "system", "content": text(random)}));
    }
    let has_tools = kind.has_calls && random.below(3) == 0;
    for turn in 0..random.below(4) {
        messages.push(json!({"role": "user", "content": text(random)}));
        if has_tools && random.below(2) == 0 {
            let id = format!("call_{turn}");
            let call = json!({"id": id, "type": "function", "function":
                {"name": "tool_0", "arguments": "{\"city\": \"東京\", \"n\": [1, 2]}"}});
            messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": text(random)}));
        }
        let mut answer = json!({"role": "assistant", "content": text(random)});
        if kind.has_calls && random.below(2) == 0 {
            answer["reasoning"] = text(random).into();
        }
        messages.push(answer);
    }
    messages.push(json!({"role": "user", "content": text(random)}));
    let mut body = json!({"model": kind.model, "messages": messages,
        "stream": random.below(2) == 0, "max_tokens": 1 + random.below(60)});
    if has_tools {
        body["tools"] = (0..1 + random.below(3)).map(|i| tool(random, i)).collect();
    }
    if kind.has_calls && random.below(3) == 0 {
        body["reasoning_effort"] = ["low", "medium", "high"][random.below(3)].into();
    }
    body
}

/// Sends all conversations and asserts that both counts are equal.
fn assert_no_drift(test: &str, mut counted: CountingGate, kind: Kind) {
    let mut random = Draw::new(testing::seed(test));
    let mut sent = Vec::new();
    for n in 0..testing::number_of("TOLLGATE_CONVERSATIONS", CONVERSATIONS) {
        let body = conversation(&mut random, kind);
        counted.chat(&format!("c{n}"), &[], &body);
        sent.push(body);
    }
    let alarms = counted
        .gate
        .metric("tollgate_token_drift_alarms_total", &[]);
    let rows = counted.end();
    let (mut reported, mut own, mut wrong) = (0, 0, Vec::new());
    for (n, body) in sent.iter().enumerate() {
        let row = &rows[&format!("c{n}")];
        let prompt = number(row, "prompt_reported");
        if number(row, "prompt_counted") != prompt {
            let own = number(row, "prompt_counted");
            wrong.push(format!("{own} counted, {prompt} reported: {body}"));
        }
        assert_eq!(number(row, "prompt_tokens"), prompt);
        assert_eq!(row["prompt_source"], "reported");
        reported += number(row, "completion_reported");
        own += number(row, "completion_counted");
    }
    wrong.sort_by_key(String::len);
    let shortest = wrong.iter().take(3).map(String::as_str);
    assert!(
        wrong.is_empty(),
        "{} wrong, such as\n{}",
        wrong.len(),
        shortest.collect::<Vec<_>>().join("\n")
    );
    assert_eq!(alarms, 0.0);
    println!("output: {reported} reported, {own} counted");
    let drift = reported.abs_diff(own) as f64 / own as f64;
    assert!(drift < 0.05, "{reported} reported, {own} counted");
}

#[test]
fn conversations_with_gpt_oss_have_no_drift() {
    let engine = engine(EngineConfig::default());
    let counted = CountingGate::start(engine.addr(), "tokenizers: { gpt-oss-120b: harmony }", &[]);
    let kind = Kind {
        model: "gpt-oss-120b",
        has_calls: true,
    };
    assert_no_drift("conversations_with_gpt_oss", counted, kind);
    engine.stop();
}

const TOKENIZER: &str = include_str!("../../../../../vectors/tokens/tiny_tokenizer.json");
const CHATML: &str = include_str!("../../../../../vectors/tokens/chatml.jinja");
const FILES: &str = "tokenizers: { own: { file: m/tokenizer.json, template: m/template.jinja, settings: m/settings.json } }";
const HEADERS: &str = "{{ bos_token }}{% for message in messages %}\
    <|start_header_id|>{{ message['role'] }}<|end_header_id|>\n\n{{ message['content'] | trim }}<|eot_id|>\
    {% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}";
const SETTINGS: &str = r#"{"bos_token":"<s>","eos_token":{"content":"</s>"}}"#;

fn by_template(test: &str, template: &str) {
    let engine = engine(EngineConfig {
        models: vec!["own".into()],
        files: Some(ModelFiles {
            tokenizer: TOKENIZER.into(),
            config: Some(SETTINGS.into()),
            chat_template: Some(template.into()),
        }),
        ..EngineConfig::default()
    });
    let files = [
        ("m/tokenizer.json", TOKENIZER.as_bytes()),
        ("m/template.jinja", template.as_bytes()),
        ("m/settings.json", SETTINGS.as_bytes()),
    ];
    let kind = Kind {
        model: "own",
        has_calls: false,
    };
    let counted = CountingGate::start(engine.addr(), FILES, &files);
    assert_no_drift(test, counted, kind);
    engine.stop();
}

#[test]
fn conversations_in_chatml_have_no_drift() {
    by_template("conversations_in_chatml", CHATML);
}

#[test]
fn conversations_with_headers_have_no_drift() {
    by_template("conversations_with_headers", HEADERS);
}

/// Reports the prompt tokens that other implementations counted: `vectors/tokens`.
fn by_goldens(template: &str, goldens: &'static str) {
    let cases = goldens.split("\n=== ").skip(1).filter_map(|case| {
        let (name, rest) = case.split_once('\n').expect("a name");
        let (body, outcome) = rest.split_once("\n---\n").expect("an outcome");
        let tokens = outcome.strip_prefix("tokens=")?.split_once('\n')?.0;
        // Edited as text, because a template renders members in their order.
        let body = body.replacen("gpt-oss-120b", "own", 1);
        let path = if name.contains("responses") {
            "/v1/responses"
        } else {
            "/v1/chat/completions"
        };
        Some((path, body, tokens.to_owned()))
    });
    let cases: Vec<_> = cases.collect();
    assert!(cases.len() > 20);
    let expected: Vec<String> = cases.iter().map(|case| case.2.clone()).collect();
    let upstream = Upstream::start(move |_, seen| {
        let n: usize = seen.header("x-request-id")[0].parse().expect("a number");
        let tokens = &expected[n];
        let body = format!(
            r#"{{"choices":[],"output":[],"usage":{{"prompt_tokens":{tokens},"completion_tokens":0}}}}"#
        );
        let length = body.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        vec![Step::Send((head + &body).into_bytes())]
    });
    let files = [
        ("m/tokenizer.json", TOKENIZER.as_bytes()),
        ("m/template.jinja", template.as_bytes()),
        ("m/settings.json", SETTINGS.as_bytes()),
    ];
    let mut counted = CountingGate::start(upstream.address, FILES, &files);
    for (n, (path, body, _)) in cases.iter().enumerate() {
        let answer = counted.call(&n.to_string(), path, &[], body);
        assert_eq!(answer.status, 200, "{body} {}", answer.text());
    }
    let rows = counted.end();
    for (n, (_, body, tokens)) in cases.iter().enumerate() {
        let row = &rows[&n.to_string()];
        assert_eq!(number(row, "prompt_counted").to_string(), *tokens, "{body}");
    }
}

#[test]
fn counts_agree_with_templates_rendered_by_transformers() {
    by_goldens(
        CHATML,
        include_str!("../../../../../vectors/tokens/chatml.txt"),
    );
}
