//! A conversation, whatever dialect it came in.
//!
//! It borrows from the body's tree: text is copied only where it is put together.
//! Invariant: every piece of text that the engine would render is here, or the body is refused.
//! Not here: how it is read, which each reader does by itself, and rendered (`harmony`, `template`).

use std::borrow::Cow;

use crate::Word;
use crate::tree::{Member, Tree};
use crate::{Uncountable, wrong};

/// How a line begins that a client puts into its system prompt for the provider's own accounting; vLLM leaves it out.
pub const BILLING_LINE: &str = "x-anthropic-billing-header";

/// Members of a part that vLLM knows; a template sees all others.
const KNOWN: [&str; 18] = [
    "audio_embeds",
    "audio_url",
    "closed",
    "data",
    "file",
    "image_embeds",
    "image_pil",
    "image_url",
    "input_audio",
    "name",
    "prompt_cache_breakpoint",
    "refusal",
    "text",
    "thinking",
    "type",
    "uuid",
    "video_embeds",
    "video_url",
];

/// What is to be rendered.
#[derive(Debug, Default)]
pub struct Conversation<'t> {
    /// The length of the body that it came in.
    pub body_bytes: usize,
    /// The system prompt where the dialect keeps it apart from the turns.
    pub instructions: Option<&'t str>,
    /// The messages.
    pub turns: Vec<Turn<'t>>,
    /// The `task` that each of the turns names, as far as there are any: only some templates know it.
    pub tasks: Vec<Option<&'t str>>,
    /// None where the body gives none, which is not the same to a template as an empty list.
    pub tools: Option<Vec<Tool<'t>>>,
    /// How hard the model is to think.
    pub effort: Option<&'t str>,
    /// Thinking is switched off: a template may have an effort of its own for that.
    pub disables_thinking: bool,
    /// The last message is to be continued and not followed by another.
    pub continues: bool,
    /// The tokenizer adds its own special tokens to what a template rendered.
    pub adds_special_tokens: bool,
    /// What the body asks to be handed to the template (`chat_template_kwargs`), as it is.
    pub own_arguments: &'t [Member<'t>],
    /// What the dialect itself hands to the template: of a name that both have, this wins.
    pub said_arguments: Vec<(&'static str, Tree<'t>)>,
    /// Null and `auto` of the body's own arguments reach the template.
    pub keeps_unset: bool,
    /// The turns are items of the Responses API: Harmony makes a message of each, be it empty.
    pub of_items: bool,
    /// System messages that stood between others were put into the first one.
    pub merged_system: bool,
}

/// One message of a conversation.
#[derive(Debug)]
pub enum Turn<'t> {
    /// `system` or `developer`.
    Instructions {
        /// Which of the two.
        role: Word,
        /// What it says.
        content: Content<'t>,
        /// The name that it is given.
        name: Option<&'t str>,
        /// A developer may bring tools of its own, which only templates know.
        tools: Option<&'t Tree<'t>>,
    },
    /// The user.
    User {
        /// What it says.
        content: Content<'t>,
        /// The name that it is given.
        name: Option<&'t str>,
    },
    /// The model.
    Assistant {
        /// What it says.
        content: Content<'t>,
        /// What it thought.
        reasoning: Option<Cow<'t, str>>,
        /// The tools that it called.
        calls: Vec<Call<'t>>,
        /// The name that it is given.
        name: Option<&'t str>,
    },
    /// What a tool answered.
    Answer {
        /// What it says.
        content: Content<'t>,
        /// The call.
        call_id: CallId<'t>,
        /// The name that it is given.
        name: Option<&'t str>,
        /// The function that was called, where the dialect tells it and not only the call's id.
        of: Option<&'t str>,
    },
    /// Any other role, which only templates know.
    Other {
        /// Its name.
        role: &'t str,
        /// What it says.
        content: Content<'t>,
        /// The name that it is given.
        name: Option<&'t str>,
    },
}

/// Which call a tool's answer is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallId<'t> {
    /// The answer does not say, and has no such member.
    Absent,
    /// It says null.
    Null,
    /// Of the call with this id.
    Of(&'t str),
}

impl<'t> CallId<'t> {
    /// As chat completions hand it on.
    #[must_use]
    pub fn read(member: Option<&'t Tree<'t>>) -> Self {
        match member {
            None => Self::Absent,
            Some(member) => member.text().map_or(Self::Null, Self::Of),
        }
    }

    /// The id to look for among those of the calls.
    #[must_use]
    pub const fn sought(self) -> Option<&'t str> {
        match self {
            Self::Absent => Some(""),
            Self::Null => None,
            Self::Of(id) => Some(id),
        }
    }
}

/// The text parts of a message; the engine may encode each on its own.
#[derive(Debug, Default)]
pub struct Content<'t> {
    /// A string is one part; no content is none.
    pub parts: Vec<Part<'t>>,
}

/// A part of a message.
#[derive(Debug, Default)]
pub struct Part<'t> {
    /// Its text; of another medium what stands for it where a template takes text alone.
    pub text: Cow<'t, str>,
    /// All its members as the body has them, where a template sees those that no dialect knows.
    pub members: &'t [Member<'t>],
    /// What a template that takes parts is given of another medium than text.
    pub medium: Option<Tree<'t>>,
}

/// The assistant's call of a tool.
#[derive(Debug)]
pub struct Call<'t> {
    /// Its id.
    pub id: &'t str,
    /// The function.
    pub name: Cow<'t, str>,
    /// JSON, as the model wrote it.
    pub arguments: Cow<'t, str>,
    /// How a template sees it.
    pub form: CallForm<'t>,
}

/// Which members a template sees of a call, and in which order.
#[derive(Debug)]
pub enum CallForm<'t> {
    /// Those that the body has, in the form of chat completions.
    Chat(&'t Tree<'t>),
    /// As vLLM puts an item of the Responses API together.
    Item,
    /// As vLLM puts a block of Anthropic's together, by its own types.
    Block,
}

/// A function that the model may call.
#[derive(Debug)]
pub struct Tool<'t> {
    /// Its name.
    pub name: Cow<'t, str>,
    /// What it does.
    pub description: Option<&'t str>,
    /// What it takes.
    pub parameters: Option<Schema<'t>>,
    /// Whether the model is held to that.
    pub strict: Option<bool>,
    /// `defer_loading` of the function.
    pub deferred: Option<bool>,
    /// The tool around the function says so, too.
    pub outer_deferred: Option<bool>,
}

/// What a function takes.
#[derive(Debug)]
pub enum Schema<'t> {
    /// As the body says.
    Given(&'t Tree<'t>),
    /// As its dialect completes it.
    Made(Tree<'t>),
}

impl Call<'_> {
    /// Whether the engine makes up its id, which Anthropic's dialect may leave out.
    #[must_use]
    pub const fn has_made_up_id(&self) -> bool {
        matches!(self.form, CallForm::Block) && self.id.is_empty()
    }
}

impl Conversation<'_> {
    /// How many texts it has, and the bytes of its body, which has them all.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        let of_turn = |turn: &Turn<'_>| match turn {
            Turn::Assistant {
                content,
                calls,
                reasoning,
                ..
            } => content.parts.len() + calls.len() + usize::from(reasoning.is_some()),
            Turn::Instructions { content, .. }
            | Turn::User { content, .. }
            | Turn::Other { content, .. }
            | Turn::Answer { content, .. } => content.parts.len(),
        };
        let own = self.own_arguments.iter().map(|(_, tree)| tree);
        let own = own.map(|tree| tree.list().map_or(1, <[Tree<'_>]>::len));
        // Of what the dialect says, only documents are more than one.
        let said = self
            .said_arguments
            .iter()
            .filter_map(|(_, tree)| tree.list());
        let said = said.map(<[Tree<'_>]>::len);
        let turns: usize = self.turns.iter().map(|turn| of_turn(turn).max(1)).sum();
        let arguments: usize = own.chain(said).sum();
        (turns + self.tools().len() + arguments, self.body_bytes)
    }
}

impl<'t> Conversation<'t> {
    /// The tools, if there are any.
    #[must_use]
    pub fn tools(&self) -> &[Tool<'t>] {
        self.tools.as_deref().unwrap_or_default()
    }
}

impl<'t> Content<'t> {
    /// One text.
    pub fn of(text: impl Into<Part<'t>>) -> Self {
        Self {
            parts: vec![text.into()],
        }
    }

    /// The text of each part.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|part| &*part.text)
    }

    /// The same parts, which are another's.
    pub fn borrowed(&'t self) -> impl Iterator<Item = Part<'t>> {
        self.parts.iter().map(Part::borrowed)
    }

    /// All text in one, or none where there was no part.
    #[must_use]
    pub fn flat(&self) -> Option<Cow<'_, str>> {
        match self.parts.as_slice() {
            [] => None,
            [one] => Some(Cow::Borrowed(&*one.text)),
            _ => Some(self.texts().collect::<String>().into()),
        }
    }

    /// The texts with `between` them.
    #[must_use]
    pub fn joined(&self, between: &str) -> Cow<'_, str> {
        match self.parts.as_slice() {
            [one] => Cow::Borrowed(&*one.text),
            _ => self.texts().collect::<Vec<_>>().join(between).into(),
        }
    }

    /// As [`Self::flat`], for good.
    #[must_use]
    pub fn into_flat(self) -> Option<Cow<'t, str>> {
        (!self.parts.is_empty()).then(|| self.into_joined(""))
    }

    /// As [`Self::joined`], for good.
    #[must_use]
    pub fn into_joined(mut self, between: &str) -> Cow<'t, str> {
        match self.parts.len() {
            1 => self.parts.pop().unwrap_or_default().text,
            _ => Cow::Owned(self.joined(between).into_owned()),
        }
    }
}

impl<'t> Part<'t> {
    /// The same part, which is another's.
    #[must_use]
    pub fn borrowed(&'t self) -> Self {
        Self {
            text: Cow::Borrowed(&*self.text),
            members: self.members,
            medium: self.medium.clone(),
        }
    }

    /// One of another medium, as a template that takes parts is given it: its kind, and what no dialect knows of it.
    #[must_use]
    pub fn of_medium(kind: &'t str, members: &'t [Member<'t>]) -> Self {
        let part = Self {
            members,
            ..Self::default()
        };
        let mut shown = vec![(Cow::Borrowed("type"), kind.into())];
        shown.extend(part.rest().cloned());
        Self {
            medium: Some(Tree::Map(shown)),
            ..part
        }
    }

    /// Members that no dialect knows, which a template sees all the same.
    pub fn rest(&self) -> impl Iterator<Item = &'t Member<'t>> + use<'t> {
        let members = self.members.iter();
        members.filter(|(name, _)| !KNOWN.contains(&&**name))
    }
}

impl<'t> From<&'t str> for Part<'t> {
    fn from(text: &'t str) -> Self {
        Self::from(Cow::Borrowed(text))
    }
}

impl<'t> From<Cow<'t, str>> for Part<'t> {
    fn from(text: Cow<'t, str>) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

impl<'t> Schema<'t> {
    /// It as JSON.
    #[must_use]
    pub const fn tree(&self) -> &Tree<'t> {
        match self {
            Self::Given(tree) => tree,
            Self::Made(tree) => tree,
        }
    }
}

impl<'t> Tool<'t> {
    /// Reads a tool of chat completions: a function, and what is said beside it.
    ///
    /// # Errors
    /// When it is none.
    pub fn of_chat(tree: &'t Tree<'t>) -> Result<Self, Uncountable> {
        let function = tree
            .get("function")
            .ok_or(wrong("tools", "a list of functions"))?;
        let mut read = Self::read(function, "parameters")?;
        read.outer_deferred = own_flag(tree, "defer_loading")?;
        read.deferred = read.deferred.or(read.outer_deferred);
        Ok(read)
    }

    /// Reads `{name, description, …}`; the schema has another name in each family of dialects.
    ///
    /// # Errors
    /// When it has no name, or a flag that is none.
    pub fn read(tree: &'t Tree<'t>, schema: &str) -> Result<Self, Uncountable> {
        Ok(Self {
            name: tree
                .get_text("name")
                .ok_or(wrong("tools", "functions with names"))?
                .into(),
            description: tree.get_text("description"),
            parameters: tree.get(schema).map(Schema::Given),
            strict: own_flag(tree, "strict")?,
            deferred: own_flag(tree, "defer_loading")?,
            outer_deferred: None,
        })
    }
}

/// A flag of a tool, where it has it.
fn own_flag(tool: &Tree<'_>, name: &str) -> Result<Option<bool>, Uncountable> {
    let flag = |value: &Tree<'_>| {
        value.lax_bool().ok_or(wrong(
            "tools",
            "functions whose `strict` and `defer_loading` are true or false",
        ))
    };
    tool.get(name).map(flag).transpose()
}
