//! A call as a client sends it, and what was last said of it.
//!
//! Not here: whom it is shown to (`world`).

use std::sync::Arc;

use policy::caller::Caller;
use policy::exchange::{Exchange, LimitLevel, Question, Relay, Verdict};
use policy::operation::Operation;
use policy::record::Record;
use policy::refusal::Refusal;
use policy::revision::Revision;
use policy::usage_ledger::Estimate;
use policy::wire::call::CallHead;
use policy::wire::head::RequestHead;

use super::World;
use super::callers::token;
use crate::fixture::{IDENTITY, request};

/// What a call of the workload in [`super::plan`] says.
pub(crate) const ME: (&str, &str) = (IDENTITY, "ide");
/// What every call with a JSON body says.
pub(crate) const JSON: (&str, &str) = ("content-type", "application/json");

/// A call as a client sends it.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    method: &'a str,
    target: &'a str,
    fields: &'a [(&'a str, &'a str)],
    pub(super) body: &'a str,
    /// So long as it is counted, where that is not the text's own length.
    bytes: Option<usize>,
    by: Option<&'a Arc<Caller>>,
}

impl<'a> Call<'a> {
    /// One without a body.
    pub(crate) const fn of(
        method: &'a str,
        target: &'a str,
        fields: &'a [(&'a str, &'a str)],
    ) -> Self {
        Self {
            method,
            target,
            fields,
            body: "",
            bytes: None,
            by: None,
        }
    }

    /// The same, with this body.
    pub(crate) const fn with(mut self, body: &'a str) -> Self {
        self.body = body;
        self
    }

    /// The same, proven to be this caller's; the snapshot has to [know](super::callers::knowing_callers) callers.
    pub(crate) const fn by(mut self, caller: &'a Arc<Caller>) -> Self {
        self.by = Some(caller);
        self
    }

    /// The same, with a body that is counted as so many bytes.
    pub(crate) const fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = Some(bytes);
        self
    }

    pub(super) fn length(&self) -> usize {
        self.bytes.unwrap_or(self.body.len())
    }

    pub(super) fn head(&self) -> RequestHead {
        let mut head = request(self.method, self.target, self.fields);
        if let Some(caller) = self.by {
            let token = format!("Bearer {}", token(caller));
            let pushed = head.fields.push(b"authorization", token.as_bytes());
            pushed.expect("a field");
        }
        head
    }
}

/// What a form says of itself whose boundary is `b`.
pub(crate) const FORM: (&str, &str) = ("content-type", "multipart/form-data; boundary=b");

/// A form that names the model `m`.
pub(crate) const FORM_OF_M: &str =
    "--b\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nm\r\n--b--\r\n";

/// A good call for an operation.
pub(crate) fn call(operation: Operation, body: &str) -> Call<'_> {
    let target = match operation {
        Operation::Models => "/v1/models",
        Operation::Chat => "/v1/chat/completions",
        Operation::Completions => "/v1/completions",
        Operation::Responses => "/v1/responses",
        Operation::Messages => "/v1/messages",
        Operation::CountTokens => "/v1/messages/count_tokens",
        Operation::InputTokens => "/v1/responses/input_tokens",
        Operation::Embeddings => "/v1/embeddings",
        Operation::Moderations => "/v1/moderations",
        Operation::Rerank => "/v1/rerank",
        Operation::Speech => "/v1/audio/speech",
        Operation::Images => "/v1/images/generations",
        Operation::Transcriptions => "/v1/audio/transcriptions",
        other => panic!("{other:?} has no path here"),
    };
    let method = match operation {
        Operation::Models => "GET",
        _ => "POST",
    };
    let fields: &[_] = match body.starts_with("--b") {
        true => &[ME, FORM],
        false => &[ME, JSON],
    };
    Call {
        body,
        ..Call::of(method, target, fields)
    }
}

/// An exchange, and what was last said of it.
pub(crate) struct Asked {
    pub(crate) exchange: Exchange,
    pub(crate) verdict: Verdict,
    pub(super) head: RequestHead,
    pub(super) body: String,
}

impl Asked {
    /// What its body says, where that is read.
    pub(super) fn scanned(&self, body: &[u8]) -> Option<CallHead> {
        self.exchange.scanner(&self.head).map(|mut scanner| {
            scanner.push(body).expect("JSON");
            scanner.finish().expect("a call").clone()
        })
    }

    /// Its body, as it goes on.
    pub(crate) fn body(&self) -> &str {
        &self.body
    }

    /// Why it was refused.
    pub(crate) fn refusal(&self) -> &Refusal {
        match &self.verdict {
            Verdict::Refuse(refusal) => refusal,
            other => panic!("not refused: {other:?}"),
        }
    }

    /// The code of its refusal; empty where it goes on.
    pub(crate) fn code(&self) -> &'static str {
        match &self.verdict {
            Verdict::Refuse(refusal) => refusal.reply().code,
            Verdict::Read { .. } | Verdict::Models { .. } => "",
            Verdict::Ask(ask) if matches!(ask.question, Question::Enter { .. }) => "",
            other => panic!("{other:?}"),
        }
    }

    /// Status and text of its refusal.
    pub(crate) fn says(&self) -> (u16, String) {
        let reply = self.refusal().reply();
        (reply.status, reply.message)
    }

    /// What it may come to: it was admitted.
    pub(crate) fn estimate(&self) -> Estimate {
        match &self.verdict {
            Verdict::Ask(ask) => match ask.question {
                Question::Enter { estimate, .. } => estimate,
                ref other => panic!("{other:?}"),
            },
            other => panic!("not admitted: {other:?}"),
        }
    }

    pub(crate) fn record(&self) -> &Record {
        self.exchange.record()
    }

    /// How its response goes back.
    pub(crate) fn relay(&self) -> &Relay {
        match &self.verdict {
            Verdict::Relay(relay) => relay,
            other => panic!("not forwarded: {other:?}"),
        }
    }

    /// The limits that hold for it.
    pub(crate) fn limits(&self, world: &World) -> Vec<LimitLevel> {
        let mut all = Vec::new();
        let Revision { snapshot, levels } = &*world.of;
        (self.exchange).limits(snapshot, levels, world.now, |limit| all.push(limit));
        all
    }
}
