//! A conversation, whatever dialect it came in.
//!
//! Invariant: every piece of text that the engine would render is here, or the body is refused.
//! Not here: how it is read (`dialect`) and rendered (`harmony`, `template`, `overhead`), prompts without a
//! conversation (`prompt`).

use crate::tree::Tree;
use crate::uncountable::{Uncountable, wrong};

/// How a line begins that a client puts into its system prompt for the provider's own accounting; vLLM leaves it out.
pub(crate) const BILLING_LINE: &str = "x-anthropic-billing-header";

/// What is to be rendered.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// The length of the body that it came in.
    pub(crate) body_bytes: usize,
    /// The system prompt where the dialect keeps it apart from the turns.
    pub(crate) instructions: Option<String>,
    pub(crate) turns: Vec<Turn>,
    pub(crate) tools: Vec<Tool>,
    pub(crate) effort: Option<String>,
    /// Thinking is switched off: a template may have an effort of its own for that.
    pub(crate) disables_thinking: bool,
    /// The last message is to be continued and not followed by another.
    pub(crate) continues: bool,
    /// The tokenizer adds its own special tokens to what a template rendered.
    pub(crate) adds_special_tokens: bool,
    /// Members that go to the template as they are.
    pub(crate) template_arguments: Vec<(String, Tree)>,
}

/// One message of a conversation.
#[derive(Debug)]
pub(crate) enum Turn {
    /// `system` or `developer`.
    Instructions {
        role: &'static str,
        content: Content,
        name: Option<String>,
    },
    User {
        content: Content,
        name: Option<String>,
    },
    Assistant {
        content: Content,
        reasoning: Option<String>,
        calls: Vec<Call>,
        name: Option<String>,
    },
    /// What a tool answered.
    Answer {
        content: Content,
        call_id: String,
        name: Option<String>,
    },
}

/// The text parts of a message; the engine may encode each on its own.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// A string is one part; no content is none.
    pub(crate) parts: Vec<String>,
}

/// The assistant's call of a tool.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    /// JSON, as the model wrote it.
    pub(crate) arguments: String,
    /// The call as the body has it, in the form of chat completions.
    pub(crate) tree: Tree,
}

/// A function that the model may call.
#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) parameters: Option<Tree>,
    pub(crate) strict: Option<Tree>,
}

impl Conversation {
    /// How many texts it has, and the bytes of its body, which has them all.
    pub(crate) fn size(&self) -> (usize, usize) {
        let of_turn = |turn: &Turn| match turn {
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
        let of_argument = |(_, tree): &(String, Tree)| tree.list().map_or(1, <[Tree]>::len);
        let turns: usize = self.turns.iter().map(|turn| of_turn(turn).max(1)).sum();
        let arguments: usize = self.template_arguments.iter().map(of_argument).sum();
        (turns + self.tools.len() + arguments, self.body_bytes)
    }
}

impl Content {
    pub(crate) fn of(text: &str) -> Self {
        Self {
            parts: vec![text.to_owned()],
        }
    }

    /// All text in one, or none where there was no part.
    pub(crate) fn flat(&self) -> Option<String> {
        (!self.parts.is_empty()).then(|| self.parts.concat())
    }
}

impl Call {
    pub(crate) fn new(id: &str, name: &str, arguments: String) -> Self {
        let function = Tree::map([("name", name.into()), ("arguments", Tree::Null)]);
        let tree = Tree::map([
            ("id", id.into()),
            ("type", "function".into()),
            ("function", function),
        ]);
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments,
            tree,
        }
    }
}

impl Tool {
    /// Reads `{name, description, …}`; the schema has another name in each family of dialects.
    pub(crate) fn read(tree: &Tree, schema: &str) -> Result<Self, Uncountable> {
        Ok(Self {
            name: tree
                .get_text("name")
                .ok_or(wrong("tools", "functions with names"))?
                .to_owned(),
            description: tree.get_text("description").map(str::to_owned),
            parameters: tree.get(schema).cloned(),
            strict: tree.get("strict").cloned(),
        })
    }
}
