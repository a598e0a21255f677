//! One recorded session, as a reader hands it on: messages, tools, and the decisions that the assistant took.
//!
//! Invariant: what a dataset says is kept as it is, roles and names of old formats included; only repair changes it.
//! Not here: the formats of datasets (`reader`), what engines take (`repair`), bytes of requests (`unroll`).

use std::time::Duration;

use crate::json::Json;

/// One recorded session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conversation {
    /// Names it within its source; the same in every build.
    pub id: String,
    /// The licence of this record, where the source gives one for each.
    pub licence: Option<String>,
    /// Functions that the assistant may call, each in the form that its source has.
    pub tools: Vec<Json>,
    /// Every message once, in the order in which it first occurs.
    pub messages: Vec<Message>,
    /// What the assistant was asked, one request each, in the order in which it was asked.
    pub decisions: Vec<Decision>,
}

/// One decision of the assistant: a request, and what was answered then.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    /// The messages of its prompt, as places in [`Conversation::messages`], each at most once.
    pub prompt: Vec<usize>,
    /// The place of the recorded answer, where there is one.
    pub answer: Option<usize>,
    /// Between the answer before (or the start of the session) and this request, where the source has times.
    pub think: Option<Duration>,
    /// Tokens of the answer, where the source counts them.
    pub answer_tokens: Option<u32>,
}

/// One message.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said; `None` where the source says `null` or nothing.
    pub content: Option<Content>,
    /// The name of the function or participant.
    pub name: Option<String>,
    /// The assistant's thoughts, where the source keeps them apart.
    pub reasoning: Option<String>,
    /// Calls, in the present form of the API.
    pub tool_calls: Vec<ToolCall>,
    /// The call, in the form before it.
    pub function_call: Option<FunctionCall>,
    /// Of a tool's answer: which call it answers.
    pub tool_call_id: Option<String>,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// The system.
    System,
    /// The developer.
    Developer,
    /// The user.
    #[default]
    User,
    /// The assistant.
    Assistant,
    /// The answer of a tool.
    Tool,
    /// The answer of a function, as the API called it before tools.
    Function,
}

/// What a message says.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Text.
    Text(String),
    /// Parts in the API's form: text, images.
    Parts(Vec<Json>),
}

/// A call of a tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolCall {
    /// Its id, where the source has one.
    pub id: Option<String>,
    /// What is called, with what.
    pub function: FunctionCall,
}

/// A function and its arguments.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FunctionCall {
    /// The function.
    pub name: String,
    /// Its arguments, as text: JSON where the model wrote JSON.
    pub arguments: Arguments,
}

/// Arguments, in the form that the source has.
#[derive(Debug, Clone, PartialEq)]
pub enum Arguments {
    /// The text that the model wrote, which need not be JSON.
    Text(String),
    /// An object, which the API has as text.
    Object(Json),
}

impl Role {
    /// Its name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Function => "function",
        }
    }
}

impl Default for Arguments {
    fn default() -> Self {
        Self::Text(String::new())
    }
}
