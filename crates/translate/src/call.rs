//! A call as every dialect says it: what a reader of one makes of a body, and a writer of another says again.
//!
//! Invariant: everything that a client said is in here, or was refused or counted as dropped by its reader; a writer says all of it,
//! refuses it by its place, or counts it as dropped.
//! Not here: how a dialect says it (its directory).

use std::borrow::Cow;
use std::cell::Cell;

use crate::fault::Fault;
use crate::json::Json;
use crate::raw::{Object, Raw};

/// One call of a model.
#[derive(Debug, Default)]
pub(crate) struct Call<'a> {
    /// Bytes of what the client said.
    pub(crate) bytes: usize,
    pub(crate) model: Cow<'a, str>,
    pub(crate) is_streamed: bool,
    /// The client reads a stream's usage.
    pub(crate) wants_usage: bool,
    pub(crate) messages: Vec<Message<'a>>,
    pub(crate) tools: Vec<Tool<'a>>,
    pub(crate) tool_choice: Option<ToolChoice<'a>>,
    /// Whether several tools may be called at once; as the model does where nothing is said.
    pub(crate) parallel_calls: Option<bool>,
    pub(crate) max_tokens: Option<Raw<'a>>,
    pub(crate) temperature: Option<Raw<'a>>,
    pub(crate) top_p: Option<Raw<'a>>,
    pub(crate) top_k: Option<Raw<'a>>,
    pub(crate) stops: Vec<Cow<'a, str>>,
    pub(crate) format: Option<Format<'a>>,
    pub(crate) effort: Option<Cow<'a, str>>,
    /// Tokens that it may think for; 0: it shall not think.
    pub(crate) thinking_budget: Option<u64>,
    /// The client asks to be shown what was thought.
    pub(crate) shows_thinking: bool,
    pub(crate) user: Option<Cow<'a, str>>,
    /// Of a client of Anthropic's API: what it says in the words of that.
    pub(crate) of_anthropic: Option<OfAnthropic<'a>>,
    /// Members that one dialect alone has.
    pub(crate) others: Vec<Other<'a>>,
    /// Names of members that were dropped, where their documentation allows that.
    pub(crate) dropped: Vec<&'static str>,
    /// What the client's dialect calls its list of messages, the parts of one, and the form of an answer.
    pub(crate) names: Names,
    /// Tools that the client calls otherwise than the backend is told.
    pub(crate) aliases: Vec<Alias>,
    /// Members that the client's answer says again of its call.
    pub(crate) echo: Echo,
    /// Its answer is to be kept.
    pub(crate) is_kept: bool,
}

/// What other backends have Anthropic's models for are told in the words of its API.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfAnthropic<'a> {
    /// How it shall think.
    pub(crate) thinking: Option<Raw<'a>>,
}

/// How the client knows a tool that the backend knows by another name, or as one of another kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Alias {
    /// The backend's name for it.
    pub(crate) called: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) kind: AliasKind,
}

/// What a tool is to the client that is a function to the backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AliasKind {
    Function,
    /// It takes a text, the function's one argument, `input`.
    Freeform,
    /// It finds other tools.
    Search,
}

/// Members of JSON that an answer says again of its call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Echo(pub(crate) String);

/// What a dialect calls the list of messages, the list of a message's parts, and other members that a backend may have no word for.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Names {
    pub(crate) messages: &'static str,
    pub(crate) parts: &'static str,
    /// What says that the answer shall be JSON.
    pub(crate) format: &'static str,
    pub(crate) effort: &'static str,
    /// What says that tools are called one at a time, or may not be.
    pub(crate) parallel: &'static str,
}

/// A member that one dialect alone has.
#[derive(Debug)]
pub(crate) struct Other<'a> {
    pub(crate) name: &'static str,
    pub(crate) value: Raw<'a>,
    /// Whether the answer is one that the client can use without it.
    pub(crate) may_be_dropped: bool,
}

/// Whether a message, a part of one or a tool had members that nobody took.
#[derive(Debug, Default)]
pub(crate) struct Left {
    messages: Cell<bool>,
    tools: Cell<bool>,
}

impl Left {
    pub(crate) fn of_message(&self, object: &Object<'_>) {
        self.messages.set(self.messages.get() || object.has_more());
    }

    pub(crate) fn of_tool(&self, object: &Object<'_>) {
        self.tools.set(self.tools.get() || object.has_more());
    }

    /// The names under which they are told as dropped.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        let names = [
            self.messages.get().then_some("messages.members"),
            self.tools.get().then_some("tools.members"),
        ];
        names.into_iter().flatten()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    System,
    User,
    Assistant,
}

#[derive(Debug)]
pub(crate) struct Message<'a> {
    pub(crate) role: Role,
    /// Its number in the client's list.
    pub(crate) nth: usize,
    pub(crate) parts: Vec<Part<'a>>,
}

/// A part of a message.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    /// Its number in the client's message; none where the message is one text.
    pub(crate) nth: Option<usize>,
    pub(crate) said: Said<'a>,
    /// A mark: what stands before and here may be kept for later calls.
    pub(crate) cache: Option<Raw<'a>>,
}

/// What a part says.
#[derive(Debug)]
pub(crate) enum Said<'a> {
    Text(Cow<'a, str>),
    Refusal(Cow<'a, str>),
    Image(Media<'a>),
    /// A document, with its name.
    File(Media<'a>, Option<Cow<'a, str>>),
    /// Sound: data and format.
    Audio(Cow<'a, str>, Cow<'a, str>),
    Thinking {
        text: Cow<'a, str>,
        signature: Option<Cow<'a, str>>,
    },
    /// Thinking that only its provider can read.
    Redacted(Cow<'a, str>),
    /// Thinking as backends that speak this signed it, carried by a client of another dialect: only they are told its signature.
    Of(Cow<'a, str>, Box<Said<'a>>),
    Call(ToolCall<'a>),
    Result(ToolResult<'a>),
}

/// Where bytes are.
#[derive(Debug)]
pub(crate) enum Media<'a> {
    /// Its type, and base64.
    Data(Cow<'a, str>, Cow<'a, str>),
    Url(Cow<'a, str>),
}

#[derive(Debug)]
pub(crate) struct ToolCall<'a> {
    pub(crate) id: Cow<'a, str>,
    pub(crate) name: Cow<'a, str>,
    /// A JSON document.
    pub(crate) arguments: Cow<'a, str>,
    /// What its provider wants to see again beside it.
    pub(crate) signature: Option<Signature<'a>>,
}

/// What a provider signed, and nobody else is told.
#[derive(Debug)]
pub(crate) struct Signature<'a> {
    /// What the backend speaks that gave it, where the client's dialect tells.
    pub(crate) by: Option<Cow<'a, str>>,
    pub(crate) text: Cow<'a, str>,
}

#[derive(Debug)]
pub(crate) struct ToolResult<'a> {
    pub(crate) id: Cow<'a, str>,
    pub(crate) is_error: bool,
    pub(crate) parts: Vec<Part<'a>>,
}

#[derive(Debug)]
pub(crate) struct Tool<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) description: Option<Cow<'a, str>>,
    pub(crate) schema: Option<Raw<'a>>,
    pub(crate) is_strict: bool,
    pub(crate) cache: Option<Raw<'a>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ToolChoice<'a> {
    None,
    Auto,
    Any,
    Named(Cow<'a, str>),
}

/// What the answer shall be.
#[derive(Debug)]
pub(crate) enum Format<'a> {
    /// Any JSON.
    Json,
    Schema {
        name: Option<Cow<'a, str>>,
        description: Option<Cow<'a, str>>,
        schema: Raw<'a>,
        is_strict: Option<bool>,
    },
}

impl Echo {
    /// The members of this object.
    pub(crate) fn of(object: Json) -> Self {
        let members = String::from_utf8(object.into_bytes()).unwrap_or_default();
        let members = members
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'));
        Self(members.unwrap_or_default().to_owned())
    }
}

impl<'a> Part<'a> {
    pub(crate) fn of(said: Said<'a>) -> Self {
        Self {
            nth: None,
            said,
            cache: None,
        }
    }
}

impl Signature<'_> {
    /// It, for a backend that speaks this.
    pub(crate) fn of(&self, speaks: &str) -> Option<&str> {
        let is_its = self.by.as_deref().is_none_or(|by| by == speaks);
        is_its.then_some(&*self.text)
    }
}

impl Said<'_> {
    /// The words of a thought, whoever signed it.
    pub(crate) fn thought(&self) -> Option<&str> {
        match self {
            Self::Thinking { text, .. } => Some(text),
            Self::Of(_, said) => said.thought(),
            _ => None,
        }
    }

    /// Whether it is something that was thought, and not said.
    pub(crate) const fn is_thinking(&self) -> bool {
        matches!(
            self,
            Self::Thinking { .. } | Self::Redacted(_) | Self::Of(..)
        )
    }
}

impl Call<'_> {
    /// Bytes that it is likely to take when it is said again.
    pub(crate) const fn room(&self) -> usize {
        self.bytes + self.bytes / 4 + 256
    }

    /// That this part of this message cannot be said.
    pub(crate) fn unsaid(&self, message: &Message<'_>, part: &Part<'_>, says: &str) -> Fault {
        let fault = Fault::new(says);
        let fault = match part.nth {
            Some(nth) => fault.item(nth).within(self.names.parts),
            None => fault,
        };
        fault.item(message.nth).within(self.names.messages)
    }

    /// Drops the members of one dialect alone that may be, and refuses the others.
    pub(crate) fn leave_others(&mut self, speaks: &str) -> Result<(), Fault> {
        for other in std::mem::take(&mut self.others) {
            if !other.may_be_dropped {
                let says = format!("has no counterpart at a backend that speaks {speaks}");
                return Err(Fault::new(says).within(other.name));
            }
            self.dropped.push(other.name);
        }
        Ok(())
    }
}
