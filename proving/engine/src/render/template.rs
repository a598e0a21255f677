//! A chat template in Jinja, with what Hugging Face's templates expect to find.
//!
//! Invariant: a template can read its conversation and nothing else; it is bounded in recursion and in steps.
//! Not here: reading the files, which is the caller's.

use std::collections::BTreeMap;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Error, ErrorKind};
use serde::Serialize;
use serde_json::Value;

use super::{Conversation, PromptMessage};
use crate::json::Json;

/// Steps after which a template is taken to be endless.
const MAX_STEPS: u64 = 50_000_000;

/// A compiled template.
#[derive(Debug)]
pub(crate) struct Template {
    environment: Environment<'static>,
    bos: String,
    eos: String,
}

impl Template {
    /// What stands in for the template of gpt-oss.
    pub(crate) fn of_gpt_oss(date: &str) -> Result<Self, String> {
        let source = include_str!("gpt_oss.jinja").to_owned();
        Self::new(
            source,
            "<|startoftext|>".to_owned(),
            "<|return|>".to_owned(),
            date,
        )
    }

    /// Compiles `source`; `bos` and `eos` are the marks that templates call `bos_token` and `eos_token`.
    pub(crate) fn new(
        source: String,
        bos: String,
        eos: String,
        date: &str,
    ) -> Result<Self, String> {
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build();
        environment.set_syntax(syntax.map_err(|error| format!("chat template: {error}"))?);
        environment.set_fuel(Some(MAX_STEPS));
        environment
            .set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", |says: String| -> Result<String, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, says))
        });
        let date = date.to_owned();
        environment.add_function("strftime_now", move |form: String| written(&date, &form));
        environment.add_filter("tojson", to_json);
        environment
            .add_template_owned("chat", source)
            .map_err(|error| format!("chat template: {error}"))?;
        Ok(Self {
            environment,
            bos,
            eos,
        })
    }

    /// Reads a `tokenizer_config.json`: its template, and its marks.
    pub(crate) fn from_config(
        config: &str,
        own: Option<String>,
        date: &str,
    ) -> Result<Self, String> {
        let config: Value =
            serde_json::from_str(config).map_err(|error| format!("tokenizer config: {error}"))?;
        let mark = |name: &str| {
            let mark = &config[name];
            mark.as_str()
                .or_else(|| mark["content"].as_str())
                .unwrap_or_default()
                .to_owned()
        };
        let source = own.or_else(|| config["chat_template"].as_str().map(str::to_owned));
        let source =
            source.ok_or("tokenizer config: has no chat_template, and no other was given")?;
        Self::new(source, mark("bos_token"), mark("eos_token"), date)
    }

    pub(crate) fn render(&self, conversation: &Conversation) -> Result<String, String> {
        let messages: Vec<Json> = conversation.messages.iter().map(message).collect();
        let tools: Vec<&Json> = conversation.tools.iter().map(|tool| &tool.whole).collect();
        let template = self
            .environment
            .get_template("chat")
            .map_err(|error| error.to_string())?;
        let mut given: BTreeMap<String, minijinja::Value> = BTreeMap::new();
        let mut give = |name: &str, value: minijinja::Value| given.insert(name.to_owned(), value);
        give("bos_token", self.bos.as_str().into());
        give("eos_token", self.eos.as_str().into());
        give("add_generation_prompt", true.into());
        give("documents", ().into());
        let tools = (!tools.is_empty()).then_some(tools);
        give("tools", Serde(tools).into());
        for (name, value) in conversation.arguments.merged() {
            give(&name, Serde(value).into());
        }
        give("messages", Serde(messages).into());
        template.render(given).map_err(|error| {
            error
                .detail()
                .map_or_else(|| error.to_string(), str::to_owned)
        })
    }
}

fn message(message: &PromptMessage) -> Json {
    let text = |s: &str| Json::String(s.to_owned());
    let mut members = vec![("role".to_owned(), text(&message.role))];
    members.push((
        "content".to_owned(),
        message.text.as_deref().map_or(Json::Null, text),
    ));
    if let Some(reasoning) = &message.reasoning {
        members.push(("reasoning_content".to_owned(), text(reasoning)));
    }
    if let Some(id) = &message.call_id {
        members.push(("tool_call_id".to_owned(), text(id)));
    }
    let calls = message.calls.iter().map(|call| {
        // vLLM hands templates the arguments parsed.
        let arguments =
            serde_json::from_str(&call.arguments).unwrap_or_else(|_| text(&call.arguments));
        let function = vec![
            ("name".to_owned(), text(&call.name)),
            ("arguments".to_owned(), arguments),
        ];
        Json::Object(vec![
            ("id".to_owned(), text(&call.id)),
            ("type".to_owned(), text("function")),
            ("function".to_owned(), Json::Object(function)),
        ])
    });
    let calls: Vec<Json> = calls.collect();
    if !calls.is_empty() {
        members.push(("tool_calls".to_owned(), Json::Array(calls)));
    }
    Json::Object(members)
}

/// As Python's `json.dumps(ensure_ascii=False)`: a space after `:` and `,` unless it is indented.
fn to_json(
    value: &minijinja::Value,
    options: minijinja::value::Kwargs,
) -> Result<minijinja::Value, Error> {
    let fault =
        |error: serde_json::Error| Error::new(ErrorKind::BadSerialization, error.to_string());
    let indent: Option<usize> = options.get("indent")?;
    let mut out = Vec::new();
    match indent {
        Some(n) => {
            let spaces = vec![b' '; n.min(16)];
            let form = serde_json::ser::PrettyFormatter::with_indent(&spaces);
            value
                .serialize(&mut serde_json::Serializer::with_formatter(&mut out, form))
                .map_err(fault)?;
        }
        None => value
            .serialize(&mut serde_json::Serializer::with_formatter(
                &mut out, Spaced,
            ))
            .map_err(fault)?,
    }
    Ok(minijinja::Value::from_safe_string(
        String::from_utf8_lossy(&out).into_owned(),
    ))
}

/// Python's separators.
struct Spaced;

impl serde_json::ser::Formatter for Spaced {
    fn begin_array_value<W: ?Sized + std::io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(
        &mut self,
        out: &mut W,
    ) -> std::io::Result<()> {
        out.write_all(b": ")
    }
}

/// The engine's date in the two forms that templates ask for.
fn written(date: &str, form: &str) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let mut parts = date.splitn(3, '-');
    let (year, month, day) = (
        parts.next().unwrap_or("1970"),
        parts.next().unwrap_or("01"),
        parts.next().unwrap_or("01"),
    );
    let name = month
        .parse::<usize>()
        .ok()
        .and_then(|m| MONTHS.get(m.wrapping_sub(1)))
        .copied()
        .unwrap_or("Jan");
    form.replace("%Y", year)
        .replace("%m", month)
        .replace("%d", day)
        .replace("%b", name)
}
