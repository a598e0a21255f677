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
    /// The system prompt where the dialect keeps it apart from the turns.
    pub(crate) instructions: Option<String>,
    pub(crate) turns: Vec<Turn>,
    /// None where the body gives none, which is not the same to a template as an empty list.
    pub(crate) tools: Option<Vec<Tool>>,
    pub(crate) effort: Option<String>,
    /// Thinking is switched off: a template may have an effort of its own for that.
    pub(crate) disables_thinking: bool,
    /// The last message is to be continued and not followed by another.
    pub(crate) continues: bool,
    /// The tokenizer adds its own special tokens to what a template rendered.
    pub(crate) adds_special_tokens: bool,
    /// What the body asks to be handed to the template (`chat_template_kwargs`), as it is.
    pub(crate) own_arguments: Vec<(String, Tree)>,
    /// What the dialect itself hands to the template: of a name that both have, this wins.
    pub(crate) said_arguments: Vec<(&'static str, Tree)>,
    /// Null and `auto` of the body's own arguments reach the template.
    pub(crate) keeps_unset: bool,
    /// The turns are items of the Responses API: Harmony makes a message of each, be it empty.
    pub(crate) of_items: bool,
}

/// One message of a conversation.
#[derive(Debug)]
pub(crate) enum Turn {
    /// `system` or `developer`.
    Instructions {
        role: &'static str,
        content: Content,
        name: Option<String>,
        /// A developer may bring tools of its own, which only templates know.
        tools: Option<Tree>,
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
        /// The function that was called, where the dialect tells it and not only the call's id.
        of: Option<String>,
    },
    /// Any other role, which only templates know.
    Other {
        role: String,
        content: Content,
        name: Option<String>,
    },
}

/// The text parts of a message; the engine may encode each on its own.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// A string is one part; no content is none.
    pub(crate) parts: Vec<Part>,
}

/// A part of a message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    pub(crate) text: String,
    /// Members that no dialect knows, which a template sees all the same.
    pub(crate) rest: Vec<(String, Tree)>,
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
    /// `defer_loading` of the function.
    pub(crate) deferred: Option<Tree>,
    /// The tool around the function says so, too.
    pub(crate) outer_deferred: Option<Tree>,
}

impl Conversation {
    pub(crate) fn tools(&self) -> &[Tool] {
        self.tools.as_deref().unwrap_or_default()
    }
}

impl Content {
    pub(crate) fn of(text: impl Into<Part>) -> Self {
        Self {
            parts: vec![text.into()],
        }
    }

    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|part| part.text.as_str())
    }

    /// All text in one, or none where there was no part.
    pub(crate) fn flat(&self) -> Option<String> {
        (!self.parts.is_empty()).then(|| self.texts().collect())
    }

    /// The texts with `between` them.
    pub(crate) fn joined(&self, between: &str) -> String {
        self.texts().collect::<Vec<_>>().join(between)
    }
}

impl From<&str> for Part {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<String> for Part {
    fn from(text: String) -> Self {
        Self {
            text,
            rest: Vec::new(),
        }
    }
}

impl Call {
    pub(crate) fn new(id: &str, name: &str, arguments: String) -> Self {
        let function = Tree::map([("name", name.into()), ("arguments", Tree::Null)]);
        let tree = Tree::map([
            ("id", id.into()),
            ("function", function),
            ("type", "function".into()),
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
            deferred: tree.get("defer_loading").cloned(),
            outer_deferred: None,
        })
    }
}
