//! What a template is given by name beside its messages, as a body says it.
//!
//! Not here: reading it (`chat`), which of several values counts (`prompts`).

use crate::json::Json;

/// What a body says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arguments {
    /// `chat_template_kwargs`.
    pub(crate) own: Vec<(String, Json)>,
    /// Whether the prompt ends with the beginning of an answer; it does unless this is false.
    pub(crate) opens: Option<bool>,
    /// The last message is to be gone on with.
    pub(crate) continues: bool,
    pub(crate) documents: Option<Json>,
    /// How hard to think, in the body's word.
    pub(crate) effort: Option<String>,
    /// Not at all, whatever the template's word for that is.
    pub(crate) disables_thinking: bool,
    /// Those of responses, where nulls reach the template unless the server has values of its own.
    pub(crate) keeps_unset: bool,
}

impl Arguments {
    /// Whether the prompt ends with the beginning of an answer.
    pub(crate) fn opens_answer(&self) -> bool {
        self.opens.unwrap_or(true)
    }
}
