//! A chat template in Jinja, with what Hugging Face's templates expect to find.
//!
//! Invariant: a template can read its conversation and nothing else; it is bounded in recursion and in steps.
//! Not here: reading the files, which is the caller's; the language itself (`python`), messages and arguments as they
//! are handed over (`parsed`, `arguments`).

use std::collections::BTreeMap;

use minijinja::{Environment, Error, ErrorKind, Value, context};
use regex::Regex;

use super::{Conversation, form, parsed, python, strftime};
use crate::json::Json;

/// What a continued message is marked with while the template writes it; templates test for it.
const CONTINUES: &str = "CONTINUE_FINAL_MESSAGE_TAG ";

/// A model's template, or its two.
#[derive(Debug)]
pub(crate) struct Template {
    default: Option<Compiled>,
    /// The one for calls with tools, where the model has one of its own.
    tool_use: Option<Compiled>,
    bos: Option<String>,
    eos: Option<String>,
    /// What the server was started with as `--default-chat-template-kwargs`.
    pub(crate) defaults: Vec<(String, Json)>,
}

#[derive(Debug)]
struct Compiled {
    environment: Environment<'static>,
    takes_parts: bool,
    knows_developer: bool,
    mentions_content: bool,
    /// It does not take a system message behind a user's.
    wants_system_first: bool,
}

impl Compiled {
    fn new(source: &str, date: &str) -> Result<Self, String> {
        // As Jinja reads lines.
        let source = source.replace("\r\n", "\n").replace('\r', "\n");
        let marked = Regex::new(r"\{%([-+]?)\s*(end)?generation\s*([-+]?)%\}")
            .map_err(|error| error.to_string())?;
        let plain = marked
            .replace_all(&source, "{%$1 ${2}with $3%}")
            .into_owned();
        let mut environment =
            python::environment().map_err(|error| format!("chat template: {error}"))?;
        let wants_system_first = plain != source || !takes_late_system(&environment, &plain);
        let raises = |says: String| -> Result<String, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, says))
        };
        environment.add_function("raise_exception", raises);
        let date = date.to_owned();
        environment.add_function("strftime_now", move |form: String| {
            strftime::written(&date, &form)
        });
        let compiled = Self {
            takes_parts: form::takes_parts(&plain),
            knows_developer: ["\"developer\"", "'developer'"]
                .iter()
                .any(|name| source.contains(name)),
            mentions_content: source.contains("content"),
            wants_system_first,
            environment: with(environment, plain)
                .map_err(|error| format!("chat template: {error}"))?,
        };
        Ok(compiled)
    }

    fn render(&self, given: BTreeMap<String, Value>) -> Result<String, String> {
        let template = self
            .environment
            .get_template("chat")
            .map_err(|error| error.to_string())?;
        let says = |error: Error| {
            error
                .detail()
                .map_or_else(|| error.to_string(), str::to_owned)
        };
        template.render(given).map_err(says)
    }
}

fn with(
    mut environment: Environment<'static>,
    source: String,
) -> Result<Environment<'static>, Error> {
    environment.add_template_owned("chat", source)?;
    Ok(environment)
}

/// What vLLM tries at its start, in a Jinja without any function of templates.
fn takes_late_system(environment: &Environment<'static>, source: &str) -> bool {
    let message = |role: &str| context! { role, content => "t" };
    let messages: Vec<Value> = ["system", "user", "system", "user"].map(message).into();
    let given = context! { messages, add_generation_prompt => false };
    environment.render_str(source, given).is_ok()
}

impl Template {
    /// What stands in for the template of gpt-oss.
    pub(crate) fn of_gpt_oss(date: &str) -> Result<Self, String> {
        let source = include_str!("gpt_oss.jinja");
        Self::new(
            Some(source),
            None,
            Some("<|startoftext|>"),
            Some("<|return|>"),
            date,
        )
    }

    /// Compiles the template of a file of its own. Marks are what templates call `bos_token` and `eos_token`.
    pub(crate) fn new(
        default: Option<&str>,
        tool_use: Option<&str>,
        bos: Option<&str>,
        eos: Option<&str>,
        date: &str,
    ) -> Result<Self, String> {
        let compiled =
            |source: Option<&str>| source.map(|source| Compiled::new(source, date)).transpose();
        Ok(Self {
            default: compiled(default)?,
            tool_use: compiled(tool_use)?,
            bos: bos.map(str::to_owned),
            eos: eos.map(str::to_owned),
            defaults: Vec::new(),
        })
    }

    /// Reads a `tokenizer_config.json`: its template or templates by name, and its marks.
    pub(crate) fn from_config(
        config: &str,
        own: Option<String>,
        date: &str,
    ) -> Result<Self, String> {
        let config: serde_json::Value =
            serde_json::from_str(config).map_err(|error| format!("tokenizer config: {error}"))?;
        let mark = |name: &str| {
            config[name]
                .as_str()
                .or_else(|| config[name]["content"].as_str())
        };
        let of_config = &config["chat_template"];
        let named = |name: &str| {
            let all = of_config.as_array()?.iter();
            all.filter(|one| one["name"] == name)
                .find_map(|one| one["template"].as_str())
        };
        let (default, tool_use) = match &own {
            Some(own) => (Some(own.as_str()), None),
            None => (
                of_config.as_str().or_else(|| named("default")),
                named("tool_use"),
            ),
        };
        if default.is_none() && tool_use.is_none() {
            return Err(
                "tokenizer config: has no chat_template, and no other was given".to_owned(),
            );
        }
        Self::new(
            default,
            tool_use,
            mark("bos_token"),
            mark("eos_token"),
            date,
        )
    }

    /// Whether system messages among the others are put into the first: where either template would not have them.
    pub(crate) fn wants_system_first(&self) -> bool {
        let all = [self.default.as_ref(), self.tool_use.as_ref()];
        all.into_iter().flatten().any(|one| one.wants_system_first)
    }

    pub(crate) fn render(&self, conversation: &Conversation) -> Result<String, String> {
        let given = conversation.tools.as_ref();
        let tools =
            given.map(|tools| Json::Array(tools.iter().map(|tool| tool.whole.clone()).collect()));
        let mut arguments = conversation.arguments.merged(tools, &self.defaults);
        let mut take = |name: &str| {
            let at = arguments.iter().position(|(known, _)| known == name)?;
            Some(arguments.swap_remove(at).1).filter(|value| *value != Json::Null)
        };
        let (tools, documents) = (take("tools"), take("documents"));
        let continues = take("continue_final_message").is_some_and(|value| value.is_true());
        let chosen = self
            .tool_use
            .as_ref()
            .filter(|_| tools.is_some())
            .or(self.default.as_ref());
        let chosen = chosen.ok_or("the model has no chat template for a call without tools")?;
        let mut messages = parsed::messages(&conversation.messages, chosen.takes_parts)?;
        let is_developer = |one: &Json| one.get("role").and_then(Json::as_str) == Some("developer");
        if !chosen.knows_developer && messages.iter().any(is_developer) {
            messages = parsed::with_system_alone(messages);
        }
        let continued = match continues {
            true => Some(self::continued(&mut messages, chosen.mentions_content)?),
            false => None,
        };
        let mut given: BTreeMap<String, Value> = BTreeMap::new();
        given.insert("add_generation_prompt".to_owned(), true.into());
        for (name, mark) in [("bos_token", &self.bos), ("eos_token", &self.eos)] {
            given.extend(
                mark.as_deref()
                    .map(|mark| (name.to_owned(), Value::from(mark))),
            );
        }
        given.extend(
            arguments
                .into_iter()
                .map(|(name, value)| (name, python::value(&value))),
        );
        for (name, value) in [
            ("tools", tools),
            ("documents", documents),
            ("messages", Some(Json::Array(messages))),
        ] {
            given.insert(name.to_owned(), python::value(&value.unwrap_or_default()));
        }
        let text = chosen.render(given)?;
        match continued {
            Some(said) => cut(&text, &said),
            None => Ok(text),
        }
    }
}

/// Marks the last message, and gives its text without the mark.
fn continued(messages: &mut [Json], mentions_content: bool) -> Result<String, String> {
    let refused = || {
        "continue_final_message needs a last message with a text that the template shows".to_owned()
    };
    let Some(Json::Object(members)) = messages.last_mut().filter(|_| mentions_content) else {
        return Err(refused());
    };
    let content = members.iter_mut().find(|(name, _)| name == "content");
    let text = match content.map(|(_, content)| content) {
        Some(Json::Array(parts)) => {
            let members = parts.iter_mut().rev().filter_map(|part| match part {
                Json::Object(members) => members.iter_mut().find(|(name, _)| name == "text"),
                _ => None,
            });
            members.map(|(_, text)| text).next()
        }
        content => content,
    };
    match text {
        Some(Json::String(text)) => {
            let said = text.clone();
            text.push_str(CONTINUES);
            Ok(said)
        }
        _ => Err(refused()),
    }
}

/// The prompt up to the mark.
fn cut(text: &str, said: &str) -> Result<String, String> {
    let mark = CONTINUES.trim_end();
    match text.rfind(mark) {
        Some(at) if text.contains(said.trim()) => {
            let (before, behind) = (&text[..at], &text[at..]);
            Ok(if behind.starts_with(CONTINUES) {
                before
            } else {
                before.trim_end()
            }
            .to_owned())
        }
        _ => Err("continue_final_message needs a template that shows the last message".to_owned()),
    }
}
