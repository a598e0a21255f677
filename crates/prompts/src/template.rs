//! A model's own chat template, rendered as Hugging Face's `transformers` does for vLLM.
//!
//! Invariant: a template runs in bounded time: it has fuel for its instructions, its text ends where it becomes too long
//! for its body, and one that joins texts piece by piece, which copies all of them for each, takes only so much.
//! Whatever it does wrong is an error of this one count.
//! Not here: the filters and functions that templates expect (`environment`), the messages as a template sees them
//! (`arguments`), what a template's syntax says of it (`form`).

mod arguments;
mod environment;
mod form;
mod instant;
mod python;
mod python_text;
mod source;
mod text;

pub use instant::{date, noon_of};

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arguments::{CONTINUED, TemplateForm};
use minijinja::{Environment, Value};
use serde::Deserialize;
use text::Text;

use crate::Doubt;
use crate::conversation::{Content, Conversation, Turn};
use crate::rendered_limit;
use crate::tree::{Member, Tree};
use crate::{Uncountable, UnusableModel, wrong};

const NAME: &str = "chat";
/// What Anthropic's dialect can ask for.
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];
/// Pieces of text times all their bytes, for a template that joins them one by one: a thousand of 4 MiB in all.
const JOINED_LIMIT: usize = 1 << 32;

/// The templates of a model.
#[derive(Clone, Debug)]
pub struct Templates {
    /// The one that is used where no other is meant.
    pub default: String,
    /// The one for calls that give tools, if it is another.
    pub tool_use: Option<String>,
}

impl From<&str> for Templates {
    fn from(default: &str) -> Self {
        Self {
            default: default.to_owned(),
            tool_use: None,
        }
    }
}

/// What a template is given beside the conversation.
#[derive(Clone, Debug, Default)]
pub struct TemplateSettings {
    /// `bos_token`, `eos_token` and the like, where no `tokenizer_config` names them.
    pub special_tokens: Vec<(String, String)>,
    /// How the content of messages is handed over.
    pub content: ContentForm,
    /// What the engine gives templates unless a body says otherwise: a JSON object (vLLM's
    /// `--default-chat-template-kwargs`), or nothing.
    pub default_arguments: String,
    /// The settings beside the tokenizer (`tokenizer_config.json`), or nothing: they may change what is a token.
    pub tokenizer_config: String,
    /// Calls whose tool choice is none are rendered without their tools (vLLM's
    /// `--exclude-tools-when-tool-choice-none`).
    pub excludes_tools: bool,
    /// The most tokens of a prompt and its answer (vLLM's `--max-model-len`), where it is known: a shorter prompt is
    /// never cut.
    pub model_length: Option<u64>,
}

/// How a template takes the content of a message (vLLM's `--chat-template-content-format`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContentForm {
    /// As parts where the template has a loop over a message's content, as text otherwise.
    #[default]
    Detect,
    /// One string, its parts joined by line ends.
    Text,
    /// A list of `{type, text}`.
    Parts,
}

/// A model's templates, compiled.
#[derive(Debug)]
pub struct Template {
    default: Compiled,
    tool_use: Option<Compiled>,
    special_tokens: Vec<(String, String)>,
    default_arguments: Vec<Member<'static>>,
    /// The effort that stands for no thinking.
    without_thinking: &'static str,
    /// It refuses a system message behind another one, so that the engine merges those of Anthropic's dialect.
    merges_system: bool,
}

/// One template, compiled.
#[derive(Debug)]
struct Compiled {
    environment: Environment<'static>,
    form: TemplateForm,
    /// It has the word at all: without it no message can be continued.
    says_content: bool,
    /// It puts texts together piece by piece, each time all of them anew.
    gathers: bool,
    /// It writes some numbers in another way than Python does.
    joins: bool,
    /// It has something in it that is computed in another way than Python does.
    is_foreign: bool,
}

/// What a template is given and makes of it, for a look from outside.
#[doc(hidden)]
#[derive(Debug)]
pub struct Shown {
    /// JSON.
    pub arguments: String,
    /// To the end of a message that is continued, and beyond.
    pub text: Result<String, Uncountable>,
}

/// A conversation as text.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// The text.
    pub text: String,
    /// Why it may not be what the engine renders.
    pub doubt: Option<Doubt>,
}

impl Compiled {
    fn new(source: &str, content: ContentForm) -> Result<Self, UnusableModel> {
        let text = source::read(source);
        let seen = form::of(&text);
        let mut environment = environment::new();
        environment
            .add_template_owned(NAME, text)
            .map_err(|error| UnusableModel::Template(said(&error)))?;
        Ok(Self {
            environment,
            form: TemplateForm {
                takes_parts: match content {
                    ContentForm::Detect => seen.takes_parts,
                    ContentForm::Text => false,
                    ContentForm::Parts => true,
                },
                knows_developer: source.contains("\"developer\"") || source.contains("'developer'"),
            },
            gathers: gathers(source),
            says_content: source.contains("content"),
            joins: seen.joins,
            is_foreign: seen.is_foreign,
        })
    }
}

impl Template {
    /// Compiles the templates.
    ///
    /// # Errors
    /// When one cannot be read, or the default arguments.
    pub fn new(sources: &Templates, settings: TemplateSettings) -> Result<Self, UnusableModel> {
        let compiled = |source: &String| Compiled::new(source, settings.content);
        let all = std::iter::once(&sources.default).chain(&sources.tool_use);
        let mut template = Self {
            default: compiled(&sources.default)?,
            tool_use: sources.tool_use.as_ref().map(compiled).transpose()?,
            default_arguments: default_arguments(&settings.default_arguments)?,
            special_tokens: settings.special_tokens,
            without_thinking: "none",
            merges_system: all
                .into_iter()
                .any(|source| environment::refuses_inline_system(source)),
        };
        if !template.can_switch_thinking_off() {
            template.without_thinking = "low";
        }
        Ok(template)
    }

    /// Whether system messages that stand between others are to be put into the first, in Anthropic's dialect.
    #[must_use]
    pub fn merges_system(&self) -> bool {
        self.merges_system
    }

    /// Renders a conversation; `engine_clock_s` are seconds since 1970 on the engine's wall clock.
    ///
    /// # Errors
    /// When the template refuses it, or runs past its bounds.
    pub fn render(
        &self,
        conversation: &Conversation<'_>,
        engine_clock_s: i64,
    ) -> Result<Rendered, Uncountable> {
        let mut given = self.given(conversation)?;
        let (doubt, continued) = (given.doubt(), given.continued.take());
        let text = given.rendered(engine_clock_s)?;
        let text = match continued {
            None => text,
            Some(message) => up_to_mark(&text, &message).ok_or_else(|| {
                Uncountable::Template("the message to be continued is not in the text".to_owned())
            })?,
        };
        Ok(Rendered { text, doubt })
    }

    /// A conversation as a template is given it, and what becomes of it.
    ///
    /// # Errors
    /// When there is no message, or none to be continued.
    #[doc(hidden)]
    pub fn shown(
        &self,
        conversation: &Conversation<'_>,
        engine_clock_s: i64,
    ) -> Result<Shown, Uncountable> {
        let given = self.given(conversation)?;
        let mut arguments: Vec<Member<'_>> = self
            .special_tokens
            .iter()
            .map(|(name, token)| (Cow::Borrowed(name.as_str()), token.as_str().into()))
            .collect();
        arguments.extend(given.arguments.iter().cloned());
        let messages = Tree::List(given.messages.clone());
        arguments.push((Cow::Borrowed("messages"), messages));
        Ok(Shown {
            arguments: Tree::Map(arguments).to_string(),
            text: given.rendered(engine_clock_s),
        })
    }

    fn given<'t>(&'t self, conversation: &'t Conversation<'t>) -> Result<Given<'t>, Uncountable> {
        let effort = if conversation.disables_thinking {
            Some(self.without_thinking)
        } else {
            conversation.effort
        };
        let arguments = arguments::merged(conversation, effort, &self.default_arguments);
        let has_tools = arguments
            .iter()
            .any(|(name, value)| name == "tools" && *value != Tree::Null);
        let template = match &self.tool_use {
            Some(tool_use) if has_tools => tool_use,
            _ => &self.default,
        };
        if template.gathers {
            let (pieces, bytes) = conversation.size();
            if pieces.saturating_mul(bytes) > JOINED_LIMIT {
                return Err(Uncountable::Template(format!(
                    "it joins texts one by one, and {pieces} texts of {bytes} bytes in all are more than are joined"
                )));
            }
        }
        let (mut messages, doubt) = arguments::messages(conversation, template.form);
        if messages.is_empty() {
            return Err(wrong("messages", "not empty"));
        }
        let continued = conversation
            .continues
            .then(|| continued(&mut messages, template))
            .transpose()?;
        Ok(Given {
            template,
            special_tokens: &self.special_tokens,
            arguments,
            messages,
            continued,
            doubt,
            longest: rendered_limit(conversation.body_bytes),
        })
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
                said_arguments: vec![("add_generation_prompt", Tree::Bool(true))],
                ..Conversation::default()
            };
            self.render(&conversation, 0).ok().map(|it| it.text)
        };
        let none = said("none");
        none.is_some() && EFFORTS.iter().all(|effort| said(effort) != none)
    }
}

/// A conversation as one template is given it.
struct Given<'t> {
    template: &'t Compiled,
    special_tokens: &'t [(String, String)],
    arguments: Vec<Member<'t>>,
    messages: Vec<Tree<'t>>,
    /// The text that the message which is continued had before its mark.
    continued: Option<Cow<'t, str>>,
    /// What is doubtful of the messages.
    doubt: Option<Doubt>,
    /// The most bytes that its text may have.
    longest: usize,
}

impl Given<'_> {
    /// Each tree is let go of as soon as it is a value: both together would be twice the memory.
    fn rendered(self, engine_clock_s: i64) -> Result<String, Uncountable> {
        let mut values = vec![(
            "strftime_now".to_owned(),
            Value::from_function(move |format: String| date(engine_clock_s, &format)),
        )];
        for (name, token) in self.special_tokens {
            values.push((name.clone(), Value::from(token.as_str())));
        }
        for name in ["tools", "documents"] {
            values.push((name.to_owned(), Value::from(())));
        }
        for (name, tree) in self.arguments {
            values.push((name.into_owned(), arguments::value(&tree)));
        }
        let messages = self.messages.into_iter();
        let messages: Vec<_> = messages.map(|tree| arguments::value(&tree)).collect();
        values.push(("messages".to_owned(), Value::from(messages)));
        let mut text = Text::new(self.longest);
        let environment = &self.template.environment;
        let render = || {
            let template = environment.get_template(NAME)?;
            let rendered = template.render_captured_to(Value::from_pairs(values), &mut text);
            rendered.map(|_| ())
        };
        // The library has places where it trusts a template: slices of nothing that go backwards.
        let rendered = catch_unwind(AssertUnwindSafe(render));
        if let Some(bytes) = text.refused() {
            return Err(Uncountable::TooLong(bytes));
        }
        rendered
            .map_err(|_| Uncountable::Template("it cannot be run on this".to_owned()))?
            .map_err(|error| Uncountable::Template(said(&error)))?;
        Ok(text.into_string())
    }

    fn doubt(&self) -> Option<Doubt> {
        if self.template.is_foreign {
            return Some(Doubt::Language);
        }
        if self.doubt.is_some() {
            return self.doubt;
        }
        let is_odd = |tree: &Tree<'_>| {
            tree.has_wide_number() || (self.template.joins && tree.has_scientific_number())
        };
        let mut arguments = self.arguments.iter();
        let has_odd = self.messages.iter().any(is_odd) || arguments.any(|(_, tree)| is_odd(tree));
        has_odd.then_some(Doubt::Number)
    }
}

fn default_arguments(json: &str) -> Result<Vec<Member<'static>>, UnusableModel> {
    if json.is_empty() {
        return Ok(Vec::new());
    }
    // What is read from a reader is borrowed from nothing.
    let mut reader = serde_json::Deserializer::from_reader(json.as_bytes());
    let read = Tree::deserialize(&mut reader).and_then(|tree| reader.end().map(|()| tree));
    match read {
        Ok(Tree::Map(members)) => Ok(members),
        _ => Err(UnusableModel::Template(
            "its default arguments are no JSON object".to_owned(),
        )),
    }
}

/// Marks the last message and gives the text that goes before the mark.
fn continued<'t>(
    messages: &mut [Tree<'t>],
    template: &Compiled,
) -> Result<Cow<'t, str>, Uncountable> {
    let text = messages.last_mut().and_then(arguments::mark);
    text.filter(|_| template.says_content).ok_or_else(|| {
        Uncountable::Template("the last message has no text to be continued".to_owned())
    })
}

/// Whether it puts text to what a namespace's member has already: the only way to carry text from one turn of a loop to the
/// next.
fn gathers(source: &str) -> bool {
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

/// The text before the end of the message that is continued, trimmed where the template trimmed it.
fn up_to_mark(text: &str, message: &str) -> Option<String> {
    if !text.contains(message.trim_matches(python::is_space)) {
        return None;
    }
    let (before, after) = text.rsplit_once(CONTINUED.trim_end())?;
    let is_whole = after.starts_with(' ');
    Some(
        if is_whole {
            before
        } else {
            before.trim_end_matches(python::is_space)
        }
        .to_owned(),
    )
}

/// The reason in one line, without the template's text.
fn said(error: &minijinja::Error) -> String {
    error
        .detail()
        .map_or_else(|| error.to_string(), str::to_owned)
}
