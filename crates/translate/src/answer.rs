//! An answer as every dialect tells it: a sequence of events, be it streamed or one document.
//!
//! Not here: how a dialect tells it (its directory), gathering and forwarding (`filter`).

use wire::eventstream::Message;
use wire::filter::{Keeping, Manner, Stop};

use crate::call::{Alias, Echo};

/// Something that an answer tells.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event<'a> {
    /// It begins: its id, and the model that answers.
    Begin { id: &'a str, model: &'a str },
    /// More of the text.
    Text(&'a str),
    /// More of what the model says in place of an answer that it will not give.
    Refusal(&'a str),
    /// More of what it thinks.
    Thinking(&'a str),
    /// More of the signature of what it thought.
    Signature(&'a str),
    /// Thinking that only its provider can read.
    Redacted(&'a str),
    /// A call of a tool begins. Its number is the provider's, who may say it again; without a name, that is to come.
    Call {
        nth: u32,
        id: &'a str,
        name: &'a str,
        signature: Option<&'a str>,
    },
    /// More of the arguments of the call of this number.
    Arguments { nth: u32, json: &'a str },
    /// It is over.
    End(Finish, Usage),
    /// The provider failed in the middle of it.
    Error(Error),
}

impl Event<'_> {
    /// Whether it is more of what is said or thought.
    pub(crate) const fn is_content(&self) -> bool {
        matches!(
            self,
            Self::Text(_) | Self::Refusal(_) | Self::Thinking(_) | Self::Signature(_)
        )
    }
}

/// Why an answer is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finish {
    /// The model stopped.
    Stop,
    /// A stop sequence of the call came.
    StopSequence(Option<String>),
    /// The cap.
    Length,
    ToolCalls,
    /// A filter of the provider's, or the model itself, will not answer.
    Refused,
    /// A turn that the provider paused, to be sent again.
    Paused,
}

/// Tokens of a call. What is not told is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// All of the prompt, whatever a cache served and stored.
    pub(crate) prompt: Option<u64>,
    /// Of the prompt, what a cache served.
    pub(crate) cache_read: Option<u64>,
    /// Of the prompt, what a cache stored.
    pub(crate) cache_written: Option<u64>,
    /// Of what was stored, what is kept for an hour.
    pub(crate) cache_written_1h: Option<u64>,
    /// All that was made, thinking included.
    pub(crate) completion: Option<u64>,
    /// Of that, thinking.
    pub(crate) reasoning: Option<u64>,
}

/// What a provider says when it fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Error {
    /// The HTTP status that it is, or would be.
    pub(crate) status: u16,
    pub(crate) kind: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) param: Option<String>,
    pub(crate) message: String,
}

/// Reads a provider's answer.
pub(crate) trait Reader: std::fmt::Debug + Send {
    /// Reads one event's data. What stands in it is told to `tell`.
    ///
    /// # Errors
    /// It is none of this dialect.
    fn event(&mut self, data: &[u8], tell: &mut dyn FnMut(Event<'_>)) -> Result<(), Stop>;

    /// Reads one message of a stream that is binary.
    ///
    /// # Errors
    /// It is none of this dialect.
    fn message(
        &mut self,
        message: Message<'_>,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Stop> {
        let (_none_is, _of_it) = (message, tell);
        Err(Stop::Malformed)
    }

    /// Reads an answer that is one document.
    ///
    /// # Errors
    /// It is none of this dialect.
    fn document(&mut self, json: &[u8], tell: &mut dyn FnMut(Event<'_>)) -> Result<(), Stop>;

    /// The stream is over. Tells the end that is not told yet, where what came is a whole answer.
    fn over(&mut self, tell: &mut dyn FnMut(Event<'_>));
}

/// Writes an answer for a client.
pub(crate) trait Writer: std::fmt::Debug + Send {
    /// Writes what an event becomes. Numbers of calls are `calls`' here.
    ///
    /// # Errors
    /// It cannot be said any more.
    fn event(&mut self, event: Event<'_>, out: &mut Vec<u8>) -> Result<(), Stop>;

    /// Bytes that it keeps for later.
    fn held(&self) -> usize;

    /// Bytes of what it has written that it keeps to say them again at the end.
    fn kept(&self) -> usize {
        0
    }
}

/// What the writer of an answer knows of its call.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// What the backend speaks.
    pub(crate) backend: &'static str,
    /// The model that it is asked for, where the answer does not tell it.
    pub(crate) model: String,
    /// The client reads a stream's usage.
    pub(crate) wants_usage: bool,
    /// The client asks to be shown what was thought.
    pub(crate) shows_thinking: bool,
    /// How the client wants it, where its path says it.
    pub(crate) manner: Manner,
    pub(crate) aliases: Vec<Alias>,
    pub(crate) echo: Echo,
    /// Where the answer is kept, where it is.
    pub(crate) keeping: Option<Keeping>,
}

/// How an answer ended.
#[derive(Debug)]
pub(crate) enum Ended {
    Finished(Finish),
    /// With something that is no answer.
    Failed(Error),
}

impl Ended {
    /// For a reason that is none of an answer, as far as the provider's documentation goes: no success is made of it.
    pub(crate) fn otherwise(reason: &str, message: &str) -> Self {
        let joint = if message.is_empty() { "" } else { ": " };
        Self::Failed(Error {
            kind: Some(reason.to_owned()),
            code: Some(reason.to_owned()),
            ..Error::of(
                502,
                format!("the answer ended with {reason}{joint}{message}"),
            )
        })
    }

    /// It as the last event of its answer.
    pub(crate) fn event(self, usage: Usage) -> Event<'static> {
        match self {
            Self::Finished(finish) => Event::End(finish, usage),
            Self::Failed(error) => Event::Error(error),
        }
    }
}

/// Where an answer that is read ends: once, and with a reason.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    ended: Option<Ended>,
    is_over: bool,
}

impl Tail {
    /// A reason came. What follows it may still be its usage.
    pub(crate) fn ends(&mut self, ended: Ended) {
        self.ended = Some(ended);
    }

    /// Its end was told in another way.
    pub(crate) fn close(&mut self) {
        self.is_over = true;
    }

    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Tells the end. Without a reason it is none, and no success is made up.
    pub(crate) fn tell(&mut self, usage: Usage, tell: &mut dyn FnMut(Event<'_>)) {
        if !self.is_over
            && let Some(ended) = self.ended.take()
        {
            self.is_over = true;
            tell(ended.event(usage));
        }
    }

    /// Whether a document that was read to here is a whole answer.
    pub(crate) const fn whole(&self) -> Result<(), Stop> {
        match self.is_over {
            true => Ok(()),
            false => Err(Stop::Malformed),
        }
    }
}

impl Error {
    pub(crate) fn of(status: u16, message: impl Into<String>) -> Self {
        Self {
            status,
            kind: None,
            code: None,
            param: None,
            message: message.into(),
        }
    }
}
