//! A conversation, whatever dialect it came in.
//!
//! It borrows from the body's tree: text is copied only where it is put together.
//! Invariant: every piece of text that the engine would render is here, or the body is refused.
//! Not here: how it is read (`dialect`) and rendered (`harmony`, `template`, `overhead`), prompts without a
//! conversation (`prompt`).

use std::borrow::Cow;

use crate::tree::Tree;
use crate::uncountable::{Uncountable, wrong};
use crate::words::Word;

/// How a line begins that a client puts into its system prompt for the provider's own accounting; vLLM leaves it out.
pub(crate) const BILLING_LINE: &str = "x-anthropic-billing-header";

/// What is to be rendered.
#[derive(Debug, Default)]
pub(crate) struct Conversation<'t> {
    /// The length of the body that it came in.
    pub(crate) body_bytes: usize,
    /// The system prompt where the dialect keeps it apart from the turns.
    pub(crate) instructions: Option<&'t str>,
    pub(crate) turns: Vec<Turn<'t>>,
    pub(crate) tools: Vec<Tool<'t>>,
    pub(crate) effort: Option<&'t str>,
    /// Thinking is switched off: a template may have an effort of its own for that.
    pub(crate) disables_thinking: bool,
    /// The last message is to be continued and not followed by another.
    pub(crate) continues: bool,
    /// The tokenizer adds its own special tokens to what a template rendered.
    pub(crate) adds_special_tokens: bool,
    /// Members that go to the template as they are.
    pub(crate) template_arguments: Vec<(&'t str, &'t Tree<'t>)>,
}

/// One message of a conversation.
#[derive(Debug)]
pub(crate) enum Turn<'t> {
    /// `system` or `developer`.
    Instructions {
        role: Word,
        content: Content<'t>,
        name: Option<&'t str>,
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
        call_id: &'t str,
        name: Option<&'t str>,
    },
}

/// The text parts of a message; the engine may encode each on its own.
#[derive(Debug, Default)]
pub(crate) struct Content<'t> {
    /// A string is one part; no content is none.
    pub(crate) parts: Vec<Cow<'t, str>>,
}

/// The assistant's call of a tool.
#[derive(Debug)]
pub(crate) struct Call<'t> {
    pub(crate) id: &'t str,
    pub(crate) name: &'t str,
    /// JSON, as the model wrote it.
    pub(crate) arguments: Cow<'t, str>,
    /// The call as the body has it, where that is in the form of chat completions.
    pub(crate) tree: Option<&'t Tree<'t>>,
}

/// A function that the model may call.
#[derive(Debug)]
pub(crate) struct Tool<'t> {
    pub(crate) name: &'t str,
    pub(crate) description: Option<&'t str>,
    pub(crate) parameters: Option<&'t Tree<'t>>,
    pub(crate) strict: Option<&'t Tree<'t>>,
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
            | Turn::Answer { content, .. } => content.parts.len(),
        };
        let of_argument = |(_, tree): &(&str, &Tree<'_>)| tree.list().map_or(1, <[Tree<'_>]>::len);
        let turns: usize = self.turns.iter().map(|turn| of_turn(turn).max(1)).sum();
        let arguments: usize = self.template_arguments.iter().map(of_argument).sum();
        (turns + self.tools.len() + arguments, self.body_bytes)
    }
}

impl<'t> Content<'t> {
    pub(crate) fn of(text: impl Into<Cow<'t, str>>) -> Self {
        Self {
            parts: vec![text.into()],
        }
    }

    /// All text in one, or none where there was no part.
    pub(crate) fn flat(&self) -> Option<Cow<'_, str>> {
        match self.parts.as_slice() {
            [] => None,
            [one] => Some(Cow::Borrowed(one)),
            parts => Some(Cow::Owned(parts.concat())),
        }
    }
}

impl<'t> Tool<'t> {
    /// Reads `{name, description, …}`; the schema has another name in each family of dialects.
    pub(crate) fn read(tree: &'t Tree<'t>, schema: &str) -> Result<Self, Uncountable> {
        Ok(Self {
            name: tree
                .get_text("name")
                .ok_or(wrong("tools", "functions with names"))?,
            description: tree.get_text("description"),
            parameters: tree.get(schema),
            strict: tree.get("strict"),
        })
    }
}
