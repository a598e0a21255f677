//! A conversation, whatever dialect it came in.
//!
//! It borrows from the body's tree: text is copied only where it is put together.
//! Invariant: every piece of text that the engine would render is here, or the body is refused.
//! Not here: how it is read (`dialect`) and rendered (`harmony`, `template`, `overhead`), prompts without a
//! conversation (`prompt`).

use std::borrow::Cow;

use crate::tree::{Member, Tree};
use crate::uncountable::{Uncountable, wrong};
use crate::words::Word;

/// How a line begins that a client puts into its system prompt for the provider's own accounting; vLLM leaves it out.
pub(crate) const BILLING_LINE: &str = "x-anthropic-billing-header";

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
pub(crate) struct Conversation<'t> {
    /// The length of the body that it came in.
    pub(crate) body_bytes: usize,
    /// The system prompt where the dialect keeps it apart from the turns.
    pub(crate) instructions: Option<&'t str>,
    pub(crate) turns: Vec<Turn<'t>>,
    /// None where the body gives none, which is not the same to a template as an empty list.
    pub(crate) tools: Option<Vec<Tool<'t>>>,
    pub(crate) effort: Option<&'t str>,
    /// Thinking is switched off: a template may have an effort of its own for that.
    pub(crate) disables_thinking: bool,
    /// The last message is to be continued and not followed by another.
    pub(crate) continues: bool,
    /// The tokenizer adds its own special tokens to what a template rendered.
    pub(crate) adds_special_tokens: bool,
    /// What the body asks to be handed to the template (`chat_template_kwargs`), as it is.
    pub(crate) own_arguments: &'t [Member<'t>],
    /// What the dialect itself hands to the template: of a name that both have, this wins.
    pub(crate) said_arguments: Vec<(&'static str, Tree<'t>)>,
    /// Null and `auto` of the body's own arguments reach the template.
    pub(crate) keeps_unset: bool,
    /// The turns are items of the Responses API: Harmony makes a message of each, be it empty.
    pub(crate) of_items: bool,
    /// System messages that stood between others were put into the first one.
    pub(crate) merged_system: bool,
}

/// One message of a conversation.
#[derive(Debug)]
pub(crate) enum Turn<'t> {
    /// `system` or `developer`.
    Instructions {
        role: Word,
        content: Content<'t>,
        name: Option<&'t str>,
        /// A developer may bring tools of its own, which only templates know.
        tools: Option<&'t Tree<'t>>,
    },
    User {
        content: Content<'t>,
        name: Option<&'t str>,
    },
    Assistant {
        content: Content<'t>,
        reasoning: Option<Cow<'t, str>>,
        calls: Vec<Call<'t>>,
        name: Option<&'t str>,
    },
    /// What a tool answered.
    Answer {
        content: Content<'t>,
        call_id: CallId<'t>,
        name: Option<&'t str>,
        /// The function that was called, where the dialect tells it and not only the call's id.
        of: Option<&'t str>,
    },
    /// Any other role, which only templates know.
    Other {
        role: &'t str,
        content: Content<'t>,
        name: Option<&'t str>,
    },
}

/// Which call a tool's answer is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallId<'t> {
    /// The answer does not say, and has no such member.
    Absent,
    /// It says null.
    Null,
    Of(&'t str),
}

impl<'t> CallId<'t> {
    /// As chat completions hand it on.
    pub(crate) fn read(member: Option<&'t Tree<'t>>) -> Self {
        match member {
            None => Self::Absent,
            Some(member) => member.text().map_or(Self::Null, Self::Of),
        }
    }

    /// The id to look for among those of the calls.
    pub(crate) const fn sought(self) -> Option<&'t str> {
        match self {
            Self::Absent => Some(""),
            Self::Null => None,
            Self::Of(id) => Some(id),
        }
    }
}

/// The text parts of a message; the engine may encode each on its own.
#[derive(Debug, Default)]
pub(crate) struct Content<'t> {
    /// A string is one part; no content is none.
    pub(crate) parts: Vec<Part<'t>>,
}

/// A part of a message.
#[derive(Debug, Default)]
pub(crate) struct Part<'t> {
    pub(crate) text: Cow<'t, str>,
    /// All its members as the body has them, where a template sees those that no dialect knows.
    pub(crate) members: &'t [Member<'t>],
}

/// The assistant's call of a tool.
#[derive(Debug)]
pub(crate) struct Call<'t> {
    pub(crate) id: &'t str,
    pub(crate) name: Cow<'t, str>,
    /// JSON, as the model wrote it.
    pub(crate) arguments: Cow<'t, str>,
    pub(crate) form: CallForm<'t>,
}

/// Which members a template sees of a call, and in which order.
#[derive(Debug)]
pub(crate) enum CallForm<'t> {
    /// Those that the body has, in the form of chat completions.
    Chat(&'t Tree<'t>),
    /// As vLLM puts an item of the Responses API together.
    Item,
    /// As vLLM puts a block of Anthropic's together, by its own types.
    Block,
}

/// A function that the model may call.
#[derive(Debug)]
pub(crate) struct Tool<'t> {
    pub(crate) name: Cow<'t, str>,
    pub(crate) description: Option<&'t str>,
    pub(crate) parameters: Option<Schema<'t>>,
    pub(crate) strict: Option<bool>,
    /// `defer_loading` of the function.
    pub(crate) deferred: Option<bool>,
    /// The tool around the function says so, too.
    pub(crate) outer_deferred: Option<bool>,
}

/// What a function takes.
#[derive(Debug)]
pub(crate) enum Schema<'t> {
    /// As the body says.
    Given(&'t Tree<'t>),
    /// As its dialect completes it.
    Made(Tree<'t>),
}

impl Call<'_> {
    /// Whether the engine makes up its id, which Anthropic's dialect may leave out.
    pub(crate) const fn has_made_up_id(&self) -> bool {
        matches!(self.form, CallForm::Block) && self.id.is_empty()
    }
}

impl Conversation<'_> {
    /// How many texts it has, and the bytes of its body, which has them all.
    pub(crate) fn size(&self) -> (usize, usize) {
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
    pub(crate) fn tools(&self) -> &[Tool<'t>] {
        self.tools.as_deref().unwrap_or_default()
    }
}

impl<'t> Content<'t> {
    pub(crate) fn of(text: impl Into<Part<'t>>) -> Self {
        Self {
            parts: vec![text.into()],
        }
    }

    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|part| &*part.text)
    }

    /// The same parts, which are another's.
    pub(crate) fn borrowed(&'t self) -> impl Iterator<Item = Part<'t>> {
        self.parts.iter().map(Part::borrowed)
    }

    /// All text in one, or none where there was no part.
    pub(crate) fn flat(&self) -> Option<Cow<'_, str>> {
        match self.parts.as_slice() {
            [] => None,
            [one] => Some(Cow::Borrowed(&*one.text)),
            _ => Some(self.texts().collect::<String>().into()),
        }
    }

    /// The texts with `between` them.
    pub(crate) fn joined(&self, between: &str) -> Cow<'_, str> {
        match self.parts.as_slice() {
            [one] => Cow::Borrowed(&*one.text),
            _ => self.texts().collect::<Vec<_>>().join(between).into(),
        }
    }

    /// As [`Self::flat`], for good.
    pub(crate) fn into_flat(self) -> Option<Cow<'t, str>> {
        (!self.parts.is_empty()).then(|| self.into_joined(""))
    }

    /// As [`Self::joined`], for good.
    pub(crate) fn into_joined(mut self, between: &str) -> Cow<'t, str> {
        match self.parts.len() {
            1 => self.parts.pop().unwrap_or_default().text,
            _ => Cow::Owned(self.joined(between).into_owned()),
        }
    }
}

impl<'t> Part<'t> {
    /// The same part, which is another's.
    pub(crate) fn borrowed(&'t self) -> Self {
        Self {
            text: Cow::Borrowed(&*self.text),
            members: self.members,
        }
    }

    /// Members that no dialect knows, which a template sees all the same.
    pub(crate) fn rest(&self) -> impl Iterator<Item = &'t Member<'t>> + use<'t> {
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
        Self { text, members: &[] }
    }
}

impl<'t> Schema<'t> {
    pub(crate) const fn tree(&self) -> &Tree<'t> {
        match self {
            Self::Given(tree) => tree,
            Self::Made(tree) => tree,
        }
    }
}

impl<'t> Tool<'t> {
    /// Reads `{name, description, …}`; the schema has another name in each family of dialects.
    pub(crate) fn read(tree: &'t Tree<'t>, schema: &str) -> Result<Self, Uncountable> {
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
pub(crate) fn own_flag(tool: &Tree<'_>, name: &str) -> Result<Option<bool>, Uncountable> {
    let flag = |value: &Tree<'_>| {
        value.lax_bool().ok_or(wrong(
            "tools",
            "functions whose `strict` and `defer_loading` are true or false",
        ))
    };
    tool.get(name).map(flag).transpose()
}
