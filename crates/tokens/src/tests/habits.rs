//! The cases in `vectors/tokens/habits.txt`: what vLLM makes of bodies and templates that are out of the ordinary.
//!
//! Where the engine refuses, it reports no usage, and ours is not looked at.
//! Invariant: what is counted as exact has the engine's text and number; the few others are named here.
//! Not here: renderings of whole conversations (`golden`).

use serde_json::Value;
use wire::dialect::Operation;

use super::{CLOCK_S, tiny, vectors};
use crate::counter::Rendering;
use crate::{Certainty, Counter, TemplateSettings, Templates};
use prompts::template::Template;

/// Cases that are not exact, and what is said of each.
const NOT_EXACT: &[(&str, &str)] = &[
    ("18 floats", "number"),
    ("20 function_percent", "template"),
    ("20 function_wordwrap", "template"),
    ("20 function_mapped", "language"),
    ("20 function_slices", "language"),
    ("20 function_cyclers", "template"),
    ("20 function_texts", "template"),
    ("31 arguments_of_python_nan", "arguments"),
    ("31 arguments_of_python_infinity", "arguments"),
    ("31 arguments_of_python_beyond_floats", "arguments"),
    ("31 arguments_of_python_deep", "arguments"),
    ("31 arguments_of_python_in_responses", "arguments"),
    ("31 cut_by_another_word", "member"),
    ("31 call_id_made_up_by_the_engine", "id"),
    ("31 reasoning_is_zero", "member"),
    ("31 reasoning_is_false", "member"),
    ("31 reasoning_is_list", "member"),
    ("31 reasoning_is_object", "member"),
    ("31 reasoning_is_float", "member"),
    ("31 older_reasoning_is_number", "member"),
    ("31 annotations_text", "member"),
    ("31 annotations_object", "member"),
    ("31 annotations_half", "member"),
];

struct Case<'c> {
    name: &'c str,
    operation: Operation,
    template: Template,
    body: &'c str,
    /// Tokens and text; none where the engine refuses.
    outcome: Option<(u64, String)>,
}

impl<'c> Case<'c> {
    fn read(case: &'c str) -> Self {
        let (title, rest) = case.split_once('\n').expect("a name");
        let (name, dialect) = title.split_once(": ").expect("a dialect");
        let mut parts = rest.split("\n---\n");
        let mut next = || parts.next().expect("three parts");
        let (template, body, outcome) = (next(), next(), next());
        let (template, server) = template.split_once('\n').unwrap_or((template, "{}"));
        let operation = match dialect {
            "chat" => Operation::Chat,
            "messages" => Operation::Messages,
            "responses" => Operation::Responses,
            "completions" => Operation::Completions,
            "embeddings" => Operation::Embeddings,
            other => panic!("{other} is no dialect"),
        };
        let outcome = (outcome.trim() != "refused").then(|| {
            let (tokens, text) = outcome.split_once('\n').expect("tokens and text");
            let tokens = tokens.strip_prefix("tokens=").expect("tokens");
            (
                tokens.parse().expect("a number"),
                serde_json::from_str(text.trim()).expect("a JSON string"),
            )
        });
        Self {
            name,
            operation,
            template: self::template(template, server),
            body,
            outcome,
        }
    }

    /// What is said of a case that is not exact, or nothing.
    fn check(self, counter: &mut Counter) -> Result<Option<String>, String> {
        let Some((tokens, text)) = &self.outcome else {
            return Ok(None);
        };
        counter.rendering = Rendering::Template(Box::new(self.template));
        let body = self.body.as_bytes();
        let count = match counter.prompt(self.operation, body, CLOCK_S) {
            Ok(prompt) => prompt.count,
            Err(why) => return Ok(Some(why.as_str().to_owned())),
        };
        if let Certainty::Approximate(doubt) = count.certainty {
            return Ok(Some(doubt.as_str().to_owned()));
        }
        if !text.is_empty() && self.operation != Operation::Completions {
            let shown = counter.rendered(self.operation, body, CLOCK_S);
            let shown = shown.expect("it was counted");
            if shown != *text {
                return Err(format!(
                    "{}\n  theirs {text:?}\n  ours   {shown:?}",
                    self.name
                ));
            }
        }
        if count.tokens != *tokens {
            return Err(format!("{}: {} and not {tokens}", self.name, count.tokens));
        }
        Ok(None)
    }
}

fn template(template: &str, server: &str) -> Template {
    let template: Value = serde_json::from_str(template).expect("JSON");
    let named = |name| {
        template
            .get(name)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let templates = match template.as_str() {
        Some(text) => Templates::from(text),
        None => Templates {
            default: named("default").expect("a default"),
            tool_use: named("tool_use"),
        },
    };
    let server: Value = serde_json::from_str(server).expect("JSON");
    let arguments = server.get("default_chat_template_kwargs");
    let settings = TemplateSettings {
        special_tokens: vec![
            ("bos_token".to_owned(), "<s>".to_owned()),
            ("eos_token".to_owned(), "</s>".to_owned()),
        ],
        default_arguments: arguments.map(Value::to_string).unwrap_or_default(),
        ..TemplateSettings::default()
    };
    Template::new(&templates, settings).expect("a usable template")
}

#[test]
fn habits_are_vllms_or_said_not_to_be() {
    let cases = vectors("habits.txt");
    let (mut checked, mut wrong, mut inexact) = (0, Vec::new(), Vec::new());
    // One tokenizer, which takes longer to read than all else.
    let mut counter = tiny("");
    for case in cases.split("\n=== ").skip(1) {
        let case = Case::read(case);
        let name = case.name;
        checked += 1;
        match case.check(&mut counter) {
            Ok(None) => {}
            Ok(Some(said)) => inexact.push((name.to_owned(), said)),
            Err(difference) => wrong.push(difference),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}\n\nnot exact: {inexact:#?}",
        wrong.len(),
        wrong.join("\n")
    );
    let named: Vec<_> = NOT_EXACT
        .iter()
        .map(|(name, said)| ((*name).to_owned(), (*said).to_owned()))
        .collect();
    assert_eq!(inexact, named);
    assert_eq!(checked, 181);
}
