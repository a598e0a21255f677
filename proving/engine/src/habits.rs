//! The cases in `vectors/tokens`: what vLLM's own functions make of bodies and templates, held against the engine's.
//!
//! Invariant: the engine agrees with all but the named ones, which it makes in another way or refuses.
//! Not here: the gate's own reading of them and its tokenizer, which share no code with these.

use std::path::Path;
use std::sync::LazyLock;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::chat::ChatRequest;
use crate::completions::CompletionRequest;
use crate::config::{EngineConfig, ModelFiles};
use crate::embeddings::EmbeddingRequest;
use crate::json::Json;
use crate::messages::Asking;
use crate::model::{Model, format};
use crate::responses::ResponsesRequest;
use crate::text::Composer;
use crate::tokenizer::{TokenId, Tokenizer};

/// Cases of `habits.txt` that are another here: these are about functions of the template's language.
const DIFFERENT: &[&str] = &[
    "18 floats",
    "20 function_percent",
    "20 function_wordwrap",
    "20 function_slices",
    "20 function_cyclers",
    "20 function_texts",
];

/// The cases of odd bodies that are another here. The engine reads a member by its own JSON type alone, arguments as JSON
/// has them, and an id that is not there as none: it refuses what vLLM's validation takes for a flag or a number, and knows no `NaN`.
const ODD: &[&str] = &[
    "31 arguments_of_python_nan",
    "31 arguments_of_python_infinity",
    "31 arguments_of_python_beyond_floats",
    "31 arguments_of_python_half_a_character",
    "31 arguments_of_python_deep",
    "31 arguments_of_python_in_responses",
    "31 no_generation_prompt_by_word",
    "31 no_generation_prompt_by_number",
    "31 special_tokens_by_word",
    "31 cut_by_word",
    "31 cut_by_flag",
    "31 cut_by_float",
    "31 cut_by_padded_word",
    "31 cut_by_another_word",
    "31 continued_by_number",
    "31 no_special_tokens_by_word",
    "31 text_cut_by_word",
    "31 special_tokens_of_embeddings_by_word",
    "31 call_id_absent_in_responses",
    "31 call_id_made_up_by_the_engine",
    "31 result_without_an_id",
    "31 older_reasoning_in_embeddings",
    "31 reasoning_is_zero",
    "31 reasoning_is_false",
    "31 reasoning_is_list",
    "31 reasoning_is_object",
    "31 reasoning_is_float",
    "31 older_reasoning_is_number",
    "31 reasoning_of_another_role",
    "31 annotations_text",
    "31 annotations_object",
    "31 annotations_null",
    "31 annotations_half",
];

const DATE: &str = "2025-06-28";

fn vectors(name: &str) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/tokens");
    std::fs::read_to_string(dir.join(name)).expect("a file of vectors")
}

/// The vocabulary of every template's model, which takes longer to read than a template.
static TINY: LazyLock<Composer> = LazyLock::new(|| {
    let tokenizer = Tokenizer::from_json(&vectors("tiny_tokenizer.json")).expect("a vocabulary");
    Composer::new(&tokenizer).expect("words")
});

fn templated(template: &Value, server: &Value) -> Result<Model, String> {
    let named = |name: &str| serde_json::json!({"name": name, "template": template[name]});
    let template = match template {
        Value::String(_) => template.clone(),
        _ => ["default", "tool_use"].map(named).to_vec().into(),
    };
    let config =
        serde_json::json!({"bos_token": "<s>", "eos_token": "</s>", "chat_template": template});
    let files = ModelFiles {
        config: Some(config.to_string()),
        ..ModelFiles::default()
    };
    let defaults = server.get("default_chat_template_kwargs");
    let config = EngineConfig {
        default_chat_template_kwargs: defaults.map(Value::to_string),
        ..EngineConfig::default()
    };
    let format = format(&files, &config, DATE)?;
    Ok(Model {
        templated: format.clone(),
        format,
        composer: TINY.clone(),
        today: Vec::new(),
    })
}

/// The prompt of a body, as its call would be read.
fn prompt(model: &Model, dialect: &str, body: &str) -> Result<Vec<TokenId>, String> {
    fn typed<T: DeserializeOwned>(body: &str) -> Result<T, String> {
        let body: Json = serde_json::from_str(body).map_err(|error| error.to_string())?;
        body.into_typed().map_err(|error| error.to_string())
    }
    let config = EngineConfig::default();
    let only = |mut all: Vec<Vec<TokenId>>| all.pop().unwrap_or_default();
    match dialect {
        "chat" => typed::<ChatRequest>(body)?.prompt(&config, model),
        "messages" => typed::<Asking>(body)?
            .asked(model)
            .map(|asked| asked.prompt),
        "responses" => typed::<ResponsesRequest>(body)?
            .asked(model)
            .map(|asked| asked.prompt),
        "completions" => typed::<CompletionRequest>(body)?
            .asked(&config, model)
            .map(only),
        "embeddings" => typed::<EmbeddingRequest>(body)?
            .asked(&config, model)
            .map(only),
        other => return Err(format!("{other} is no dialect")),
    }
    .map_err(|refusal| refusal.message().to_owned())
}

/// Says what is another than the case has it.
fn check(prompt: Result<Vec<TokenId>, String>, model: &Model, outcome: &str) -> Result<(), String> {
    let ids = match (prompt, outcome.trim()) {
        (Err(_), "refused") => return Ok(()),
        (Ok(_), "refused") => return Err("is not refused".to_owned()),
        (prompt, _) => prompt?,
    };
    let (tokens, text) = outcome.split_once('\n').expect("tokens and text");
    let tokens = tokens.strip_prefix("tokens=").expect("tokens");
    let text: String = serde_json::from_str(text.trim()).expect("a JSON string");
    let shown = model
        .tokenizer()
        .decode(&ids)
        .map_err(|id| format!("token {id}"))?;
    // Of what was cut the count is told, and the whole text; what is put around plain prompts is no text of theirs.
    let is_shown =
        shown == text || text.ends_with(&shown) || shown.strip_prefix("<s>") == Some(&text);
    if is_shown && tokens == ids.len().to_string() {
        return Ok(());
    }
    Err(format!(
        "{} tokens and not {tokens}\n  theirs {text:?}\n  ours   {shown:?}",
        ids.len()
    ))
}

fn cases(file: &str) -> Vec<(String, String)> {
    let text = vectors(file);
    let cases = text.split("\n=== ").skip(1);
    let case = |case: &str| {
        let (title, rest) = case.split_once('\n').expect("a name");
        (title.to_owned(), rest.to_owned())
    };
    cases.map(case).collect()
}

#[test]
fn habits_are_vllms() {
    let (mut agree, mut different, mut said) = (0, Vec::new(), Vec::new());
    let all = cases("habits.txt");
    for (title, rest) in &all {
        let (name, dialect) = title.split_once(": ").expect("a dialect");
        let mut parts = rest.split("\n---\n");
        let mut next = || parts.next().expect("three parts");
        let (template, body, outcome) = (next(), next(), next());
        let (template, server) = template.split_once('\n').unwrap_or((template, "{}"));
        let [template, server] =
            [template, server].map(|text| serde_json::from_str(text).expect("JSON"));
        let held = templated(&template, &server)
            .and_then(|model| check(prompt(&model, dialect, body), &model, outcome));
        match held {
            Ok(()) => agree += 1,
            Err(why) => {
                different.push(name);
                said.push(format!("{name}: {why}"));
            }
        }
    }
    println!("{agree} of {} agree", all.len());
    assert_eq!(
        different,
        [DIFFERENT, ODD].concat(),
        "\n{}",
        said.join("\n")
    );
    assert_eq!(all.len(), 181);
}

#[test]
fn harmony_and_two_templates_are_what_other_implementations_render() {
    let gpt_oss = Model::all(&EngineConfig::default(), DATE)
        .expect("a built-in model")
        .remove(0);
    let of_file =
        |name: &str| templated(&Value::String(vectors(name)), &Value::Null).expect("a template");
    let models = [
        ("harmony.txt", gpt_oss, 60),
        ("chatml.txt", of_file("chatml.jinja"), 30),
        ("headers.txt", of_file("headers.jinja"), 30),
    ];
    let mut said = Vec::new();
    for (file, model, count) in models {
        let all = cases(file);
        for (title, rest) in &all {
            let (body, outcome) = rest.split_once("\n---\n").expect("an outcome");
            let dialect = if title.contains("responses") {
                "responses"
            } else {
                "chat"
            };
            if let Err(why) = check(prompt(&model, dialect, body), &model, outcome) {
                said.push(format!("{file} {title}: {why}"));
            }
        }
        assert_eq!(all.len(), count, "{file}");
    }
    assert!(
        said.is_empty(),
        "{} differ:\n{}",
        said.len(),
        said.join("\n")
    );
}
