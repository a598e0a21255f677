//! The request of one attempt: what goes to one endpoint in place of what the client sent.
//!
//! Invariant: whichever version of HTTP writes it, the fields are these, in this order; those that hold a secret are
//! given apart and come last.
//! Not here: framing (`proxy`), which headers pass ([`crate::credential`]), edits of the body ([`wire::call`]), what filters change of it
//! (`filtering`), what signs it (`signing`), the client's own fields (`own_fields`).

mod filtering;
mod own_fields;
mod signing;

use std::borrow::Cow;

use wire::dialect::below_root;
use wire::dialect::gemini::{Listed, Named};
use wire::filter;
use wire::head::{Method, RequestHead};

pub use self::filtering::{Filtering, Passed};
pub use self::signing::{Signature, Signing};
use super::{Exchange, Plan};
use crate::credential::{Credential, UpstreamAuth, protocols};
use crate::operation::Operation;
use crate::plain::actions::{Actions, UpstreamHost};
use crate::plain::fields;
use crate::query;
use crate::record::Record;
use crate::secret::Secret;
use crate::snapshot::{AddedValue, Backend, Endpoint, Snapshot};

/// The head of an attempt's request.
pub struct AttemptRequest<'a> {
    /// Where it goes.
    pub endpoint: &'a Endpoint,
    /// The client's method, which frames the answer.
    pub method: Method,
    /// The same as text.
    pub method_text: &'a str,
    /// What follows the endpoint's base path, as the client asked for it: `/chat/completions`; of plain HTTP all of it.
    path: Cow<'a, str>,
    is_plain: bool,
    /// What its route of plain HTTP does, where it does something.
    actions: Option<&'a Actions>,
    /// The host that the upstream is told, where it is not its own.
    host: Option<&'a str>,
    /// The query, with its `?`; empty where there is none.
    query: String,
    /// What filters change.
    filtered: Option<&'a filter::Request>,
    backend: &'a Backend,
    /// What proves who sends it, where that depends on the whole of it.
    signature: Signature,
    plan: &'a Plan,
    head: &'a RequestHead,
    exchange: &'a Exchange,
    record: &'a Record,
    snapshot: &'a Snapshot,
}

/// The model that a backend is asked for, where the call names one.
fn model_of<'r>(record: &'r Record, backend: &'r Backend) -> Option<&'r str> {
    let model = record.model_sent.as_deref()?;
    Some(backend.model_name(model))
}

/// What follows the endpoint's base path, of a call whose path names its model: as it came, unless the backend knows the model by
/// another name.
#[cold]
fn named_path<'a>(record: &Record, backend: &Backend, head: &'a RequestHead) -> Cow<'a, str> {
    let Some(named) = Named::of(head.path()) else {
        return Cow::Borrowed("");
    };
    match model_of(record, backend).filter(|model| *model != named.model) {
        Some(model) => named.path_of(model).into(),
        None => named.below.into(),
    }
}

/// The same of a call that asks Google's API which models there are.
#[cold]
fn gemini_listed(head: &RequestHead) -> Option<&str> {
    Listed::of(head.path()).map(|listed| listed.below)
}

/// What the route of a call of plain HTTP does, where it does something.
#[cold]
fn actions_of<'a>(record: &Record, s: &'a Snapshot) -> Option<&'a Actions> {
    let route = record.route.and_then(|id| s.route(id))?;
    route.actions.as_deref()
}

/// The host that an upstream is told, where it is not its own.
#[cold]
fn host_of<'a>(actions: &'a Actions, head: &'a RequestHead) -> Option<&'a str> {
    match &actions.host {
        UpstreamHost::Own => None,
        UpstreamHost::Client => std::str::from_utf8(head.authority()?).ok(),
        UpstreamHost::Fixed(host) => Some(host),
    }
}

impl<'a> AttemptRequest<'a> {
    /// The request that `plan` means, made of what the client sent and of what filters change of that
    /// ([`Exchange::filtered`]); `None` for a plan of another snapshot.
    #[must_use]
    #[inline]
    pub fn new(
        plan: &'a Plan,
        exchange: &'a Exchange,
        head: &'a RequestHead,
        snapshot: &'a Snapshot,
        filtered: Option<&'a filter::Request>,
    ) -> Option<Self> {
        let record = exchange.record();
        let is_plain = record.operation == Some(Operation::Http);
        let actions = is_plain.then(|| actions_of(record, snapshot)).flatten();
        let host = actions.and_then(|actions| host_of(actions, head));
        let endpoint = snapshot.endpoint(plan.endpoint)?;
        let backend = snapshot.backend(endpoint.backend)?;
        let query = match filtered.and_then(|filtered| filtered.query.clone()) {
            Some(query) => Some(query),
            None => {
                head.query()
                    .zip(record.operation)
                    .and_then(|(query, operation)| match operation {
                        Operation::RealtimeSocket => {
                            query::of_session(query, model_of(record, backend))
                        }
                        operation => query::forwarded(operation, query),
                    })
            }
        };
        let query = query::with(query.filter(|query| !query.is_empty()), &backend.query);
        Some(Self {
            endpoint,
            method: head.method,
            method_text: head.method_text(),
            path: match record.operation {
                Some(Operation::Http) => match actions.and_then(|of| of.path.as_ref()) {
                    Some(edit) => edit.of(head.path()),
                    None => head.path().into(),
                },
                Some(named) if named.is_named_by_path() => named_path(record, backend, head),
                Some(Operation::GeminiModels) => gemini_listed(head).unwrap_or_default().into(),
                _ => below_root(head.path()).into(),
            },
            is_plain,
            actions,
            host,
            query: query.map_or_else(String::new, |query| format!("?{query}")),
            filtered,
            backend,
            signature: Vec::new(),
            plan,
            head,
            exchange,
            record,
            snapshot,
        })
    }

    /// What follows the endpoint's base path.
    #[inline]
    #[must_use]
    pub fn path(&self) -> &str {
        let filtered = self.filtered.and_then(|filtered| filtered.path.as_deref());
        filtered.unwrap_or(&self.path)
    }

    /// The query, with its `?`; empty where there is none.
    #[inline]
    #[must_use]
    pub fn query(&self) -> &str {
        &self.query
    }

    /// The host that the upstream is told, with its port.
    #[inline]
    #[must_use]
    pub fn authority(&self) -> &str {
        self.host.unwrap_or(&self.endpoint.authority)
    }

    /// Whether it asks that its connection become a WebSocket.
    #[must_use]
    #[inline]
    pub fn asks_for_websocket(&self) -> bool {
        self.method == Method::Get && self.is_of_websocket()
    }

    #[cold]
    fn is_of_websocket(&self) -> bool {
        (self.is_plain || self.is_realtime()) && fields::asks_for_websocket(self.head)
    }

    fn is_realtime(&self) -> bool {
        self.record.operation == Some(Operation::RealtimeSocket)
    }

    /// Gives `put` what of the client's wish for a WebSocket goes upstream beside its other fields.
    #[cold]
    pub fn websocket_fields(&self, mut put: impl FnMut(&[u8], &[u8])) {
        if !self.is_realtime() {
            return;
        }
        for name in [&b"sec-websocket-key"[..], b"sec-websocket-version"] {
            if let Some(value) = self.head.fields.by_name(name).next() {
                put(name, value);
            }
        }
        let offered = protocols::offered(self.head);
        if !offered.is_empty() {
            put(b"sec-websocket-protocol", &offered);
        }
    }

    /// Whether it has a body, be it an empty one.
    #[must_use]
    pub fn has_body(&self) -> bool {
        self.record.bytes_in > 0
            || matches!(self.method, Method::Post | Method::Put | Method::Patch)
    }

    /// Gives `put` each field but `host`, the body's length and those with secrets; names in lower case.
    #[inline]
    pub fn fields(&self, mut put: impl FnMut(&[u8], &[u8])) {
        if self.is_plain {
            self.plain_fields(&mut put);
        } else {
            self.listed_fields(&mut put);
        }
        let (trace, filtered) = (self.record.trace, self.filtered);
        let ours = &self.backend.headers;
        for (name, value) in filtered.map_or(&[][..], |filtered| &filtered.headers) {
            if !ours.iter().any(|ours| *ours.name == *name.as_bytes()) {
                put(name.as_bytes(), value);
            }
        }
        for header in ours {
            match &header.value {
                AddedValue::Fixed(value) => put(&header.name, value),
                AddedValue::OfClient(_) => self.narrowed(header, &mut put),
            }
        }
        put(b"x-request-id", self.record.id.as_bytes());
        if let (Some(trace), Some(span)) = (trace, self.plan.span) {
            put(b"traceparent", &trace.traceparent(span));
        }
    }

    /// Gives `put` each field with a secret: the credential, and the one for a proxy that reads the request.
    #[inline]
    pub fn secrets<'s>(&'s self, mut put: impl FnMut(&'s str, &'s Secret)) {
        match (self.plan.minted.as_deref(), &self.endpoint.auth) {
            (Some(Credential::Header { name, value }), _) => put(name, value),
            (Some(Credential::Signer(_)), _) => {
                for (name, value) in &self.signature {
                    put(name, value);
                }
            }
            (None, UpstreamAuth::Header { name, value }) => put(name, value),
            (None, UpstreamAuth::None | UpstreamAuth::Minted(_)) => {}
        }
        let proxy = self.endpoint.origin.proxy.as_deref();
        let proxy = proxy.filter(|_| self.endpoint.origin.is_relayed());
        if let Some(value) = proxy.and_then(|proxy| proxy.authorization.as_ref()) {
            put("proxy-authorization", value);
        }
    }
}
