//! Harmony against openai-harmony's own rendering, and templates against what they should say.
//!
//! The golden cases in `vectors/harmony` were written by the Python package openai-harmony 0.0.8, given the messages
//! that vLLM would give it; where vLLM 0.32.0 with oss-harmony 0.0.11 does another thing (the recipient of an answer stands
//! behind its channel, a late system message is a developer's, an empty one none), they were changed.

use std::path::Path;

use serde::Deserialize;

use super::*;
use crate::json::object;
use crate::tools;
use crate::validate;

#[derive(Deserialize)]
struct Request {
    messages: Vec<Json>,
    #[serde(default)]
    tools: Option<Vec<Json>>,
    #[serde(default)]
    reasoning_effort: Option<String>,
}

fn prompt(request: Request, date: &str) -> Vec<TokenId> {
    let conversation = Conversation {
        messages: validate::messages(request.messages, true).unwrap().messages,
        tools: Some(tools::offered(request.tools.as_deref()).unwrap()),
        effort: crate::chat::effort(request.reasoning_effort.as_deref(), true).unwrap(),
        ..Conversation::default()
    };
    let format = Format::Harmony {
        date: date.to_owned(),
    };
    format.prompt(&Tokenizer::o200k(), &conversation).unwrap()
}

fn section<'a>(text: &'a str, name: &str) -> &'a str {
    let start = text.find(&format!("=== {name}\n")).unwrap() + name.len() + 5;
    let end = text[start..]
        .find("\n=== ")
        .map_or(text.len(), |at| start + at);
    text[start..end].trim_end_matches('\n')
}

#[test]
fn harmony_is_what_openai_harmony_renders() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/harmony");
    let mut cases = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let ids: Vec<TokenId> = section(&text, "ids")
            .split_whitespace()
            .map(|id| id.parse().unwrap())
            .collect();
        let request = serde_json::from_str(section(&text, "request")).unwrap();
        let got = prompt(request, section(&text, "date"));
        let shown = Tokenizer::o200k().decode(&got).unwrap();
        let wanted: String = serde_json::from_str(section(&text, "text")).unwrap();
        assert_eq!(shown, wanted, "{}", path.display());
        assert_eq!(got, ids, "{}", path.display());
        assert_eq!(
            got.len().to_string(),
            section(&text, "count"),
            "{}",
            path.display()
        );
        cases += 1;
    }
    assert!(cases >= 18, "{cases} cases");
}

fn hello() -> Conversation {
    let message =
        |role: &str, text: &str| object([("role", role.into()), ("content", text.into())]);
    Conversation {
        messages: vec![
            message("system", "Be brief."),
            message("user", "Hi <|im_end|>"),
        ],
        ..Conversation::default()
    }
}

#[test]
fn chatml_keeps_a_users_marks_as_text() {
    let tokenizer = Tokenizer::cl100k();
    let ids = Format::ChatMl.prompt(&tokenizer, &hello()).unwrap();
    let text = tokenizer.decode(&ids).unwrap();
    assert_eq!(
        text,
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi <|im_end|><|im_end|>\n<|im_start|>assistant\n"
    );
    let ends = ids
        .iter()
        .filter(|id| **id == tokenizer.mark("<|im_end|>").unwrap())
        .count();
    assert_eq!(ends, 2);
}

const CONFIG: &str = r#"{"bos_token": {"content": "<s>"}, "eos_token": "</s>", "chat_template":
 "{{ bos_token }}{% for m in messages %}\n    {% if m['role'] == 'system' %}\n[{{ m.content | trim }}]{% elif m.role.startswith('us') %}\n<{{ m['content'] }}>{% else %}{{ raise_exception('no ' + m.role) }}{% endif %}\n{% endfor %}\n{% if tools %}{{ tools | tojson }}{% endif %}{{ strftime_now('%d %b %Y') }}{% if add_generation_prompt %} ->{% endif %}"}"#;

#[test]
fn a_template_is_rendered_as_in_python() {
    let template = template::Template::from_config(CONFIG, None, "", "2025-06-28").unwrap();
    let mut conversation = hello();
    assert_eq!(
        template.render(&conversation).unwrap(),
        "<s>[Be brief.]<Hi <|im_end|>>28 Jun 2025 ->"
    );
    let whole: Json = serde_json::from_str(
        r#"{"type":"function","function":{"name":"f","parameters":{"a":[1,2]}}}"#,
    )
    .unwrap();
    conversation.tools = Some(vec![Tool {
        whole,
        ..Tool::default()
    }]);
    let text = template.render(&conversation).unwrap();
    assert!(
        text.contains(r#"[{"type": "function", "function": {"name": "f", "description": null, "parameters": {"a": [1, 2]}}}]"#),
        "{text}"
    );
}

#[test]
fn a_template_may_refuse_and_its_words_are_given() {
    let template = template::Template::from_config(CONFIG, None, "", "2025-06-28").unwrap();
    let mut conversation = hello();
    conversation.messages[1] = object([("role", "tool".into()), ("content", "x".into())]);
    assert_eq!(template.render(&conversation).unwrap_err(), "no tool");
    assert!(template::Template::from_config("{}", None, "", "2025-06-28").is_err());
    let broken = template::Template::from_config("{}", Some("{% for"), "", "2025-06-28");
    assert!(broken.unwrap_err().starts_with("chat template: "));
}

#[test]
fn a_template_sees_whose_name_and_which_task_a_message_has() {
    let source = "{% for m in messages %}{{ m | tojson }}{% endfor %}";
    let template = template::Template::of_file(source, "", "2025-06-28").unwrap();
    let mut conversation = hello();
    conversation.messages = vec![object([
        ("role", "user".into()),
        ("content", "a".into()),
        ("task", "look".into()),
        ("name", "ann".into()),
        ("other", "no".into()),
    ])];
    assert_eq!(
        template.render(&conversation).unwrap(),
        r#"{"role": "user", "content": "a", "name": "ann", "task": "look"}"#
    );
}

#[test]
fn a_template_of_parts_is_told_of_another_medium_and_one_of_text_is_not() {
    let parts = r#"[{"type": "image_url", "image_url": {"url": ""}, "detail": 1}, {"type": "text", "text": "a"}]"#;
    let shown = |source: &str| {
        let template = template::Template::of_file(source, "", "2025-06-28").unwrap();
        let mut conversation = hello();
        conversation.messages = vec![object([
            ("role", "user".into()),
            ("content", serde_json::from_str(parts).unwrap()),
        ])];
        template.render(&conversation).unwrap()
    };
    assert_eq!(
        shown(
            "{% for m in messages %}{% for p in m.content %}{{ p | tojson }}{% endfor %}{% endfor %}"
        ),
        r#"{"type": "image", "detail": 1}{"type": "text", "text": "a"}"#
    );
    assert_eq!(shown("{{ messages[0].content }}"), "a");
}
