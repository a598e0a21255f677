//! How a call asks for structured outputs: `response_format`, `structured_outputs`, and the older `guided_*`.
//!
//! Invariant: a call has at most one constraint; two are refused in vLLM's words.
//! Not here: what a constraint allows (the parent).

use serde::Deserialize;

use super::Allowed;
use super::Constraint;
use super::grammar::Grammar;
use super::pattern::Pattern;
use super::work::Work;
use crate::error::Refusal;
use crate::json::Json;

/// Most texts that a call may give to choose from.
const MAX_CHOICES: usize = 4096;

/// The members of a call that ask for structured outputs.
#[derive(Default, Deserialize)]
pub(crate) struct Asked {
    #[serde(default)]
    response_format: Option<Json>,
    #[serde(default)]
    structured_outputs: Option<Json>,
    #[serde(default)]
    guided_json: Option<Json>,
    #[serde(default)]
    guided_regex: Option<Json>,
    #[serde(default)]
    guided_choice: Option<Json>,
    #[serde(default)]
    guided_grammar: Option<Json>,
}

impl Asked {
    /// What the call asks for, if anything.
    pub(crate) fn constraint(&self) -> Result<Option<Constraint>, Refusal> {
        let mut all = Vec::new();
        if let Some(format) = given(self.response_format.as_ref()) {
            all.extend(response_format(format, "response_format")?);
        }
        if let Some(Json::Object(members)) = given(self.structured_outputs.as_ref()) {
            for (name, value) in members {
                all.extend(of_member(name, value, "structured_outputs")?);
            }
        } else if given(self.structured_outputs.as_ref()).is_some() {
            return Err(refused(
                "structured_outputs must be an object",
                "structured_outputs",
            ));
        }
        for (name, about, value) in [
            ("json", "guided_json", &self.guided_json),
            ("regex", "guided_regex", &self.guided_regex),
            ("choice", "guided_choice", &self.guided_choice),
            ("grammar", "guided_grammar", &self.guided_grammar),
        ] {
            if let Some(value) = given(value.as_ref()) {
                all.extend(of_member(name, value, about)?);
            }
        }
        if all.len() > 1 {
            return Err(refused(
                "You can only use one kind of constraints for structured outputs ('json', 'regex' or 'choice').",
                "structured_outputs",
            ));
        }
        Ok(all.pop())
    }

    /// What `text.format` of a response asks for.
    pub(crate) fn of_text(format: &Json) -> Result<Option<Constraint>, Refusal> {
        match format.get("type").and_then(Json::as_str) {
            Some("json_schema") => {
                let schema = format.get("schema").or_else(|| format.get("json_schema"));
                let schema = schema.ok_or_else(|| refused("text.format needs a schema", "text"))?;
                Constraint::json(schema, "text").map(Some)
            }
            _ => response_format(format, "text"),
        }
    }
}

fn given(member: Option<&Json>) -> Option<&Json> {
    member.filter(|value| **value != Json::Null)
}

/// What `response_format`, or the member `about` of the same shape, asks for.
fn response_format(format: &Json, about: &'static str) -> Result<Option<Constraint>, Refusal> {
    let fault = |why: &str| refused(why, about);
    match format.get("type").and_then(Json::as_str) {
        Some("text") => Ok(None),
        Some("json_object") => Ok(Some(Constraint::object(about))),
        Some("json_schema") => {
            let inner = given(format.get("json_schema")).ok_or_else(|| {
                fault("When response_format type is 'json_schema', the 'json_schema' field must be provided.")
            })?;
            match given(inner.get("schema").or_else(|| inner.get("json_schema"))) {
                Some(schema) => Constraint::json(schema, about).map(Some),
                None => Ok(Some(Constraint::object(about))),
            }
        }
        Some("structural_tag") => Err(fault("structural_tag is not simulated")),
        _ => Err(fault(&format!(
            "{about} needs a type: text, json_object or json_schema"
        ))),
    }
}

/// What a kind of constraint, a member of `about` or itself of that name, asks for.
fn of_member(name: &str, value: &Json, about: &'static str) -> Result<Option<Constraint>, Refusal> {
    let fault = |why: &str| refused(why, about);
    let work = Work::new();
    let text = || {
        let text = value.as_str();
        text.ok_or_else(|| fault(&format!("{name} must be a string")))
    };
    match name {
        _ if *value == Json::Null => Ok(None),
        "json" => {
            let parsed;
            let schema = match value {
                Json::String(text) => {
                    parsed = serde_json::from_str::<Json>(text)
                        .map_err(|_| fault("Invalid JSON grammar specification."))?;
                    &parsed
                }
                other => other,
            };
            Constraint::json(schema, about).map(Some)
        }
        "json_object" => Ok(value.is_true().then(|| Constraint::object(about))),
        "regex" => {
            let pattern = Pattern::whole(text()?, &work);
            let pattern = pattern.map_err(|why| {
                fault(&format!("Failed to transform regex into a grammar: {why}"))
            })?;
            Ok(Some(Constraint::of(Allowed::Regex(pattern), about, work)))
        }
        "choice" => {
            let all = choices(value, about)?;
            Ok(Some(Constraint::of(Allowed::Choice(all), about, work)))
        }
        "grammar" => {
            let grammar = Grammar::parse(text()?, &work);
            let grammar =
                grammar.map_err(|why| fault(&format!("Invalid grammar specification: {why}")))?;
            Ok(Some(Constraint::of(Allowed::Grammar(grammar), about, work)))
        }
        "structural_tag" => Err(fault("structural_tag is not simulated")),
        // How the backend works, not what it lets through.
        "disable_any_whitespace"
        | "disable_additional_properties"
        | "disable_fallback"
        | "whitespace_pattern" => Ok(None),
        _ => Err(fault(&format!("structured_outputs has no member {name:?}"))),
    }
}

fn choices(value: &Json, about: &'static str) -> Result<Vec<String>, Refusal> {
    let fault = |why: &str| refused(why, about);
    let wrong = || fault("choice must be a list of texts");
    let all = value.as_array().ok_or_else(wrong)?;
    if all.is_empty() || all.len() > MAX_CHOICES {
        return Err(fault(&format!("choice must have 1 to {MAX_CHOICES} texts")));
    }
    let text = |one: &Json| one.as_str().map(str::to_owned).ok_or_else(wrong);
    all.iter().map(text).collect()
}

fn refused(why: &str, about: &'static str) -> Refusal {
    Refusal::bad_request(why).about(about)
}
