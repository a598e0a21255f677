//! A model's own chat template, rendered as Hugging Face's `transformers` does for vLLM.
//!
//! Invariant: a template runs in bounded time: it has fuel for its instructions, its text ends where it becomes too long
//! for its body, and one that joins texts piece by piece, which copies all of them for each, takes only so much.
//! Whatever it does wrong is an error of this one count.
//! Not here: the filters and functions that templates expect (`environment`), the messages as a template sees them
//! (`arguments`).

mod arguments;
mod environment;
mod instant;
mod python_text;
mod text;

pub(crate) use instant::date;

use arguments::{CONTINUED, TemplateForm};
use minijinja::{Environment, Value};
use text::Text;

use crate::conversation::{Content, Conversation, Turn};
use crate::rendered_limit;
use crate::uncountable::{Uncountable, UnusableModel};

const NAME: &str = "chat";
/// What Anthropic's dialect can ask for.
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];
/// Pieces of text times all their bytes, for a template that joins them one by one: a thousand of 4 MiB in all.
const JOINED_LIMIT: usize = 1 << 32;

/// What a template is given beside the conversation.
#[derive(Clone, Debug, Default)]
pub struct TemplateSettings {
    /// `bos_token`, `eos_token` and the like, as the tokenizer's configuration names them.
    pub special_tokens: Vec<(String, String)>,
    /// How the content of messages is handed over.
    pub content: ContentForm,
}

/// How a template takes the content of a message (vLLM's `--chat-template-content-format`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContentForm {
    /// As parts where the template has a loop over something named `content`, as text otherwise.
    #[default]
    Detect,
    /// One string, its parts joined by line ends.
    Text,
    /// A list of `{type, text}`.
    Parts,
}

/// A template, compiled.
pub(crate) struct Template {
    environment: Environment<'static>,
    special_tokens: Vec<(String, String)>,
    form: TemplateForm,
    joins: bool,
    /// The effort that stands for no thinking.
    without_thinking: &'static str,
}

impl Template {
    pub(crate) fn new(source: &str, settings: TemplateSettings) -> Result<Self, UnusableModel> {
        let mut environment = environment::new();
        environment
            .add_template_owned(NAME, environment::without_generation_marks(source))
            .map_err(|error| UnusableModel::Template(said(&error)))?;
        let mut template = Self {
            environment,
            special_tokens: settings.special_tokens,
            form: TemplateForm {
                takes_parts: match settings.content {
                    ContentForm::Detect => loops_over_content(source),
                    ContentForm::Text => false,
                    ContentForm::Parts => true,
                },
                knows_developer: source.contains("\"developer\"") || source.contains("'developer'"),
            },
            joins: joins(source),
            without_thinking: "none",
        };
        if !template.can_switch_thinking_off() {
            template.without_thinking = "low";
        }
        Ok(template)
    }

    pub(crate) fn render(
        &self,
        conversation: &Conversation<'_>,
        engine_clock_s: i64,
    ) -> Result<String, Uncountable> {
        if self.joins {
            let (pieces, bytes) = conversation.size();
            if pieces.saturating_mul(bytes) > JOINED_LIMIT {
                return Err(Uncountable::Template(format!(
                    "it joins texts one by one, and {pieces} texts of {bytes} bytes in all are more than are joined"
                )));
            }
        }
        let effort = if conversation.disables_thinking {
            Some(self.without_thinking)
        } else {
            conversation.effort
        };
        let mut arguments = arguments::of(conversation, effort, self.form);
        for (name, token) in &self.special_tokens {
            arguments.push((name.clone(), Value::from(token.as_str())));
        }
        arguments.push((
            "strftime_now".to_owned(),
            Value::from_function(move |format: String| date(engine_clock_s, &format)),
        ));
        let mut text = Text::new(rendered_limit(conversation.body_bytes));
        let rendered = self.environment.get_template(NAME).and_then(|template| {
            template.render_captured_to(Value::from_pairs(arguments), &mut text)
        });
        if let Some(bytes) = text.refused() {
            return Err(Uncountable::TooLong(bytes));
        }
        rendered.map_err(|error| Uncountable::Template(said(&error)))?;
        let text = text.into_string();
        if conversation.continues {
            return up_to_mark(&text).ok_or_else(|| {
                Uncountable::Template("the message to be continued is not in the text".to_owned())
            });
        }
        Ok(text)
    }

    /// Whether an effort of `none` is taken and renders as no other does (vLLM's test for it).
    fn can_switch_thinking_off(&self) -> bool {
        let said = |effort: &str| {
            let conversation = Conversation {
                turns: vec![Turn::User {
                    content: Content::of("Hi"),
                    name: None,
                }],
                effort: Some(effort),
                ..Conversation::default()
            };
            self.render(&conversation, 0).ok()
        };
        let none = said("none");
        none.is_some() && EFFORTS.iter().all(|effort| said(effort) != none)
    }
}

/// The text before the end of the message that is continued, trimmed where the template trimmed it.
fn up_to_mark(text: &str) -> Option<String> {
    let (before, after) = text.rsplit_once(CONTINUED.trim_end())?;
    let is_whole = after.starts_with(' ');
    Some(if is_whole { before } else { before.trim_end() }.to_owned())
}

/// Whether a `for` goes over `content`, `message.content` or `message['content']`.
fn loops_over_content(source: &str) -> bool {
    source.split("{%").skip(1).any(|tag| {
        let tag = tag.split("%}").next().unwrap_or_default();
        let tag = tag.trim_start_matches('-').trim();
        let Some((_, over)) = tag
            .strip_prefix("for ")
            .and_then(|rest| rest.split_once(" in "))
        else {
            return false;
        };
        let over = over.trim_end_matches('-').trim();
        over.ends_with("content") || over.ends_with("'content']") || over.ends_with("\"content\"]")
    })
}

/// Whether it puts text to what a namespace's member has already: the only way to carry text from one turn of a loop to the
/// next.
fn joins(source: &str) -> bool {
    source.split("{%").skip(1).any(|tag| {
        let tag = tag.split("%}").next().unwrap_or_default();
        let tag = tag.trim_start_matches(['-', '+']).trim_start();
        let Some(set) = tag.strip_prefix("set ") else {
            return false;
        };
        match set.split_once('=') {
            Some((place, value)) => place.contains('.') && value.contains(['+', '~', '|', '%']),
            // All up to the end of the block.
            None => set.contains('.'),
        }
    })
}

/// The reason in one line, without the template's text.
fn said(error: &minijinja::Error) -> String {
    error
        .detail()
        .map_or_else(|| error.to_string(), str::to_owned)
}
