//! What an exchange leaves behind.
//!
//! Invariant: every exchange ends in exactly one [`Record`]; every count in it says where it
//! comes from. No field can hold a credential, a prompt or a query string.
//! Not here: names in place of its ids (`names`), how records become metrics, log lines and ledger rows (`telemetry`,
//! `ledger`).

mod names;

use std::any::Any;
use std::borrow::Cow;
use std::fmt::Display;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

pub use self::names::Names;
use crate::attribution;
use crate::balancing::Choice;
use crate::caller::Caller;
use crate::disconnect::DisconnectOutcome;
use crate::failure::Failure;
use crate::id::{BackendId, EndpointId, PriceId, RouteId, WorkloadId};
use crate::levels::Levels;
use crate::levels::used::Used;
use crate::limit::Kind;
use crate::operation::Operation;
use crate::price::{Charge, Payer};
use crate::refusal::Refusal;
use crate::retry::Retry;
use crate::snapshot::Snapshot;
pub use crate::tokens::{Count, Said, Tokens, Unconfirmed};
use crate::trace::{AttemptSpan, Trace};

/// How an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Outcome {
    /// The upstream's answer, of whatever status, reached the client whole.
    Completed,
    /// The gate said no.
    Refused,
    /// An upstream or the gate itself failed.
    Failed,
    /// The client left.
    #[default]
    Aborted,
}

impl Outcome {
    /// The word used in labels and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Aborted => "aborted",
        }
    }

    /// All outcomes, for metric tables.
    pub const ALL: [Self; 4] = [Self::Completed, Self::Refused, Self::Failed, Self::Aborted];
}

/// Why a call has no count of the gate's own that found no room.
pub const BUSY: &str = "busy";

/// One exchange, ended. Its default is one of which nothing is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// The request id, the client's or ours; visible ASCII, at most 128 bytes.
    pub id: Box<str>,
    /// The id that the upstream gave its last answer; the same characters, at most as long.
    pub upstream_id: Option<Box<str>>,
    /// Its place in a trace, where traces are kept.
    pub trace: Option<Trace>,
    /// When it began, milliseconds since the Unix epoch.
    pub started_unix_ms: u64,
    /// The client's address, as far as it may be kept.
    pub client: Option<IpAddr>,
    /// What was asked, once known.
    pub operation: Option<Operation>,
    /// Who asked, once known.
    pub workload: Option<WorkloadId>,
    /// The same as it was proven; `None` where a header said it.
    pub caller: Option<Arc<Caller>>,
    /// Whether the caller's user is for decisions alone and must not be kept.
    pub hides_user: bool,
    /// Which rule took it.
    pub route: Option<RouteId>,
    /// Which of the calls that the rule lists it is, where it is one.
    pub listed: Option<u16>,
    /// Of a message to servers of tools, at which of their paths it came ([`crate::mcp::Mcp::paths`]).
    pub mcp_path: u16,
    /// Where the last attempt went.
    pub endpoint: Option<EndpointId>,
    /// That endpoint's backend.
    pub backend: Option<BackendId>,
    /// The model the client named; checked characters, at most 256.
    pub model_asked: Option<Box<str>>,
    /// The model sent upstream, by the gate's name for it: a backend with names of its own is sent that
    /// ([`crate::snapshot::Backend::model_names`]).
    pub model_sent: Option<Arc<str>>,
    /// Whether the answer was an event stream.
    pub streamed: bool,
    /// Status sent to the client; 0 when none was.
    pub status: u16,
    /// How it ended.
    pub outcome: Outcome,
    /// Stable code of a refusal or failure, else empty.
    pub code: &'static str,
    /// Why it was refused, where the code does not say it all: for the log, and never for the client.
    pub reason: Option<Box<str>>,
    /// The kind of limit that refused it.
    pub limited: Option<Kind>,
    /// Upstream tries made.
    pub attempts: u32,
    /// Tokens and their witnesses: what is charged, `unconfirmed` included.
    pub tokens: Tokens,
    /// What those cost, where a price is known; once the exchange has ended.
    pub charge: Option<Charge>,
    /// Attempts beside the last that may have run.
    pub unconfirmed: Unconfirmed,
    /// Why an estimate is charged although no answer came, in a word; else empty.
    pub estimate_reason: &'static str,
    /// Why the gate does not count it although its model is counted, in a word of
    /// `tollgate_counting_exchanges_total`; else empty.
    pub uncounted: &'static str,
    /// Why the gate's count of the prompt is not exact, in a word, where it is told once it is counted; else empty.
    pub prompt_doubt: &'static str,
    /// What few exchanges have to say.
    pub extra: Option<Box<Extra>>,
    /// Request body bytes received.
    pub bytes_in: u64,
    /// Response body bytes forwarded.
    pub bytes_out: u64,
    /// First byte of the request to last byte of the response.
    pub duration: Duration,
    /// First byte of the request to first body byte of the response.
    pub first_byte: Option<Duration>,
    /// The gate's own time: request complete to sent upstream, plus response head arrived to
    /// sent downstream. Waiting for the client or the upstream is not in it.
    pub own: Option<Duration>,
    /// Waiting for the upstream's response head, all attempts together.
    pub upstream: Option<Duration>,
}

/// What few exchanges have to say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extra {
    /// Members of the body that the last attempt left out, since its backend speaks an API without them; and `anthropic-beta` where that
    /// went without a value of the client's.
    pub dropped: Box<[&'static str]>,
    /// What a message to servers of tools asks for, where it is a method that the gate knows; else empty.
    pub method: &'static str,
    /// The whole name of the tool, prompt or resource that it is about; as the client or a server has it.
    pub named: Option<Box<str>>,
    /// Why its last attempt went where it did, where that backend is balanced.
    pub chosen: Option<Choice>,
    /// What those attempts beside the last cost that may have run, each where it did; `None` where that has no sum.
    pub unconfirmed: Option<Charge>,
}

impl Record {
    /// Members of the body that its last attempt left out, and `anthropic-beta` where some of that was.
    #[must_use]
    pub fn dropped(&self) -> &[&'static str] {
        self.extra.as_ref().map_or(&[], |extra| &extra.dropped)
    }

    /// One that began now, of which nothing more is known.
    #[inline(always)]
    pub(crate) fn begun(
        id: Box<str>,
        trace: Option<Trace>,
        started_unix_ms: u64,
        client: Option<IpAddr>,
    ) -> Self {
        Self {
            id,
            trace,
            started_unix_ms,
            client,
            ..Self::default()
        }
    }

    /// Notes why it is refused. Gives how it ends by that.
    #[cold]
    pub(crate) fn refused(&mut self, refusal: &Refusal) -> (Outcome, &'static str) {
        let (status, _, code) = refusal.class();
        self.code = code;
        self.status = status;
        self.limited = refusal.limited();
        if self.reason.is_none() {
            self.reason = refusal.reason().map(String::into_boxed_str);
        }
        let outcome = if refusal.is_failure() {
            Outcome::Failed
        } else {
            Outcome::Refused
        };
        (outcome, code)
    }

    /// The person or service behind the call, as far as it may be kept.
    #[must_use]
    pub fn user(&self) -> Option<Cow<'_, str>> {
        if self.hides_user {
            return None;
        }
        attribution::kept(self.caller.as_ref()?.user.as_deref()?)
    }

    /// One more attempt that may have run where the record says, and is followed by another one.
    #[cold]
    pub(crate) fn add_unconfirmed(
        &mut self,
        prompt: u64,
        completion: u64,
        s: &Snapshot,
        levels: &Levels,
    ) {
        let tokens = Tokens {
            prompt: Count::Estimated(prompt),
            completion: Count::Estimated(completion),
            ..Tokens::default()
        };
        let there = price(s, levels, self).and_then(|id| s.prices.charge(id, &tokens));
        let before = self.extra.as_ref().and_then(|extra| extra.unconfirmed);
        let cost = match (self.unconfirmed.attempts, before, there) {
            (0, _, there) => there,
            (_, Some(before), Some(there)) => s.prices.sum(there, before),
            _ => None,
        };
        self.unconfirmed.add(prompt, completion);
        if cost.is_some() || before.is_some() {
            self.extra.get_or_insert_default().unconfirmed = cost;
        }
    }

    /// Whether there is text of an answer that the gate counts where it counts the call; once the exchange has ended.
    #[must_use]
    pub fn has_text_to_count(&self) -> bool {
        self.operation != Some(Operation::Embeddings) && !self.is_charged_unanswered()
    }

    /// Whether what it is charged stands in for an answer that never came; once the exchange has ended.
    #[must_use]
    pub fn is_charged_unanswered(&self) -> bool {
        !self.estimate_reason.is_empty()
    }
}

/// What an exchange is charged: its last attempt by its price, and those that may have run elsewhere by theirs.
/// `None` where no price is known. Who wants to know what was charged reads [`Record::charge`].
pub(crate) fn charge(s: &Snapshot, levels: &Levels, record: &Record) -> Option<Charge> {
    if record.unconfirmed.attempts > 0
        && let Some(others) = record.extra.as_ref().and_then(|extra| extra.unconfirmed)
    {
        return charge_with(others, s, levels, record);
    }
    s.prices.charge(price(s, levels, record)?, &record.tokens)
}

/// The same with what others cost; by the last one's price alone where that is of another currency.
#[cold]
fn charge_with(others: Charge, s: &Snapshot, levels: &Levels, record: &Record) -> Option<Charge> {
    if record.unconfirmed.is_all {
        return Some(others);
    }
    let last = price(s, levels, record)?;
    let own = |count: Count, of_others: u64| match count.tokens() {
        Some(tokens) => Count::Estimated(tokens.saturating_sub(of_others)),
        None => count,
    };
    let tokens = Tokens {
        prompt: own(record.tokens.prompt, record.unconfirmed.prompt),
        completion: own(record.tokens.completion, record.unconfirmed.completion),
        ..record.tokens
    };
    let alone = s.prices.charge(last, &tokens)?;
    let both = s.prices.sum(alone, others);
    both.or_else(|| s.prices.charge(last, &record.tokens))
}

/// The price of the model that went upstream, at the backend that it went to last; of a call that its route lists, what
/// is written there.
fn price(s: &Snapshot, levels: &Levels, record: &Record) -> Option<PriceId> {
    if let (Some(route), Some(nth)) = (record.route, record.listed) {
        return s.route(route)?.unread.get(usize::from(nth))?.price;
    }
    if s.prices.is_empty() {
        return None;
    }
    let model = record
        .model_sent
        .as_deref()
        .or(record.model_asked.as_deref())?;
    let unix_ms = record.started_unix_ms;
    let used = Used { s, levels, unix_ms };
    let payer = Caller::payer(record.caller.as_deref(), record.workload);
    let payer = Payer {
        volume: Some(&used),
        ..payer
    };
    s.prices.id_of(model, record.backend, payer)
}

/// One try of an exchange at one endpoint, ended.
#[derive(Debug, Clone, Copy)]
pub struct AttemptRecord {
    /// Where.
    pub endpoint: EndpointId,
    /// Upstream status, or why there was none.
    pub result: Result<u16, Failure>,
    /// Whether another attempt follows.
    pub retry: Retry,
}

impl AttemptRecord {
    /// What the log is told of it: whatever says something of its endpoint or of our credential there.
    #[must_use]
    pub fn trouble(&self) -> Option<Trouble> {
        match self.result {
            Ok(401 | 403) => Some(Trouble::Credential(self.endpoint)),
            // Not served there, for the credit or the model that it takes: a call that goes nowhere else may be at fault itself.
            Ok(402) => Some(Trouble::Endpoint(self.endpoint)),
            Ok(404) if self.retry != Retry::No => Some(Trouble::Endpoint(self.endpoint)),
            Ok(status) if status < 500 => None,
            Err(Failure::LocalCapacity) => Some(Trouble::NoUpstreamConnection),
            // Nothing was sent to it.
            Err(Failure::Untranslatable) => None,
            Ok(_) | Err(_) => Some(Trouble::Endpoint(self.endpoint)),
        }
    }
}

/// Things that rise and fall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Gauge {
    /// Downstream connections open.
    Connections,
    /// Exchanges begun and not ended.
    Exchanges,
    /// Event streams being forwarded.
    Streams,
    /// Upstream connections open, idle or busy.
    UpstreamConnections,
    /// Answers being read on without a client.
    ReadsToEnd,
    /// Bytes of request bodies that are kept until they are sent.
    BodyBytes,
}

/// What an exchange waits for before it goes upstream, where it does: somebody answers a question of policy's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Who calls.
    Identity,
    /// Whether the call may be made, by an outside authorizer.
    Authorization,
    /// The credential to send upstream.
    Credential,
    /// Its row on disk, on routes that wait for it.
    Ledger,
    /// The count of its prompt, where the gate answers with it.
    Count,
    /// The endpoint that a picker names.
    Pick,
}

impl Wait {
    /// All of them, for metric tables.
    pub const ALL: [Self; 6] = [
        Self::Identity,
        Self::Authorization,
        Self::Credential,
        Self::Ledger,
        Self::Count,
        Self::Pick,
    ];

    /// The word used in labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Authorization => "authorization",
            Self::Credential => "credential",
            Self::Ledger => "ledger",
            Self::Count => "count",
            Self::Pick => "pick",
        }
    }
}

/// The bound at which the gate refused or closed a client's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// There were as many as may be.
    Connections,
    /// There were as many from one address as may be.
    SourceConnections,
    /// It sent more HTTP/2 frames that carry no request than its requests account for.
    Http2Glitches,
    /// Its client took nothing of an answer.
    WriteStall,
}

impl Closed {
    /// All of them, for metric tables.
    pub const ALL: [Self; 4] = [
        Self::Connections,
        Self::SourceConnections,
        Self::Http2Glitches,
        Self::WriteStall,
    ];

    /// The word used in labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::SourceConnections => "source_connections",
            Self::Http2Glitches => "http2_glitches",
            Self::WriteStall => "write_stall",
        }
    }
}

/// What keeps the gate or an endpoint from its work; told each time, so that the log can tell of it in few lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// An attempt at this endpoint failed, or its answer says that it is sick.
    Endpoint(EndpointId),
    /// This endpoint refused the gate's credential.
    Credential(EndpointId),
    /// The gate has no connection to spare for upstreams.
    NoUpstreamConnection,
    /// No client is let in, as the other descriptors are kept for upstreams.
    AcceptPaused,
    /// A client's connection could not be accepted.
    AcceptFailed,
    /// A TLS handshake with a client failed, but for its certificate.
    ClientTls,
    /// A client was refused for its certificate, or because it has none.
    ClientCertificate,
    /// A trusted proxy began a connection without a good PROXY protocol header.
    ProxyHeader,
}

/// Where a worker's facts go. Each worker owns one; nothing in it is shared.
pub trait Sink {
    /// An exchange ended.
    fn exchange(&mut self, snapshot: &Snapshot, record: &Record);
    /// An attempt ended.
    fn attempt(&mut self, snapshot: &Snapshot, attempt: &AttemptRecord);
    /// An attempt of a sampled exchange ended.
    fn span(&mut self, snapshot: &Snapshot, span: &AttemptSpan) {
        let _nobody_keeps_it = (snapshot, span);
    }
    /// A client left in the middle of an answer, and this became of its rest.
    fn abandoned(&mut self, rest: DisconnectOutcome);
    /// An exchange waited so long for an answer.
    fn waited(&mut self, what: Wait, took: Duration) {
        let _nobody_counts = (what, took);
    }
    /// A connection was refused or closed at a bound.
    fn closed(&mut self, at: Closed);
    /// So many connections to upstreams were closed as a name has their address no longer.
    fn moved(&mut self, connections: u64) {
        let _nobody_counts = connections;
    }
    /// Something went wrong; `detail` says what, for the log alone, and holds no secret.
    fn trouble(&mut self, snapshot: &Snapshot, trouble: Trouble, detail: &dyn Display) {
        let _nobody_is_told = (snapshot, trouble, detail);
    }
    /// Something rose or fell.
    fn gauge(&mut self, gauge: Gauge, delta: i64);
    /// Called about every 100 ms while there is traffic, and before the worker ends.
    fn tick(&mut self);
    /// A copy of what it holds, for whoever scrapes.
    fn copy(&self) -> Box<dyn Any + Send>;
}
