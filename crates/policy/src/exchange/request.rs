//! The request of one attempt: what goes to one endpoint in place of what the client sent.
//!
//! Invariant: whichever version of HTTP writes it, the fields are these, in this order; those that hold a secret are
//! given apart and come last.
//! Not here: framing (`proxy`), which headers pass ([`crate::credential`]), edits of the body ([`wire::call`]).

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use wire::dialect::below_root;
use wire::dialect::gemini::{Listed, Named};
use wire::filter::{self, Answering, Filter, Manner, Unfit};
use wire::head::{Known, Method, RequestHead};

use super::attempting::filters;
use super::{Exchange, Plan, Stage, kept};
use crate::clock::Mono;
use crate::credential::{self, Credential, Signable, UpstreamAuth, protocols};
use crate::operation::Operation;
use crate::plain::actions::{Actions, UpstreamHost};
use crate::plain::fields;
use crate::query;
use crate::record::Record;
use crate::secret::Secret;
use crate::snapshot::{AddedHeader, Backend, Endpoint, Snapshot};
use crate::trace;

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

impl Exchange {
    /// Whether a filter applies to the attempt under way.
    #[inline]
    #[must_use]
    pub fn is_filtered(&self) -> bool {
        matches!(&self.stage, Stage::Active(active) if active.asked.is_some())
    }

    /// The request as the filters of its route and backend make it, where there are any. `body` is the client's, edited.
    ///
    /// # Errors
    /// A filter cannot say it.
    #[cold]
    pub fn filtered(
        &mut self,
        head: &RequestHead,
        s: &Snapshot,
        body: &[Bytes],
    ) -> Result<Option<Box<filter::Request>>, Unfit> {
        let [first, last] = filters(&self.record, s);
        if first.is_empty() && last.is_empty() {
            return Ok(None);
        }
        let Some((asked, request)) = self.asking(head, s, body) else {
            return Ok(None);
        };
        let filters = first.iter().chain(last);
        self.take_filtered(pass(asked, request, filters))
    }

    /// The same, to be done by whoever has the time and told by [`take_filtered`](Self::take_filtered), where any filter applies.
    #[cold]
    #[must_use]
    pub fn filtering(&self, head: &RequestHead, s: &Snapshot, body: &[Bytes]) -> Option<Filtering> {
        let [first, last] = filters(&self.record, s);
        let filters: Vec<_> = first.iter().chain(last).cloned().collect();
        let mut asked = self.record.operation?;
        let mut is_filtered = false;
        for filter in &filters {
            if filter.applies(asked) {
                is_filtered = true;
                asked = filter.operation(asked);
            }
        }
        let (asked, request) = self.asking(head, s, body).filter(|_| is_filtered)?;
        Some(Filtering {
            asked,
            request,
            filters,
        })
    }

    /// The request as its first filter gets it.
    #[cold]
    fn asking(
        &self,
        head: &RequestHead,
        s: &Snapshot,
        body: &[Bytes],
    ) -> Option<(Operation, Box<filter::Request>)> {
        let record = &self.record;
        let asked = record.operation?;
        let keeping = match (asked, &s.responses) {
            (Operation::Responses, Some(_)) => {
                kept::keeping(record, self.continued.as_deref(), body, s)
            }
            _ => None,
        };
        let backend = record.backend.and_then(|id| s.backend(id));
        let named = match asked.is_named_by_path() {
            true => Named::of(head.path()),
            false => None,
        };
        let below = match (&named, asked) {
            (Some(named), _) => Some(named.below),
            (None, Operation::GeminiModels) => gemini_listed(head),
            (None, form) if form.is_form() => Some(below_root(head.path())),
            (None, _) => None,
        };
        let request = Box::new(filter::Request {
            model: record.model_sent.as_ref().map(|model| {
                let name = backend.map_or(&**model, |backend| backend.model_name(model));
                match std::ptr::eq(name, &**model) {
                    true => Arc::clone(model),
                    false => name.into(),
                }
            }),
            below: below.unwrap_or_default().into(),
            manner: named
                .as_ref()
                .map_or_else(Manner::default, |named| named.manner(head.query())),
            body: body.to_vec(),
            shares_account: record
                .route
                .and_then(|id| s.route(id))
                .is_none_or(|route| !route.is_exclusive),
            keeping,
            ..filter::Request::default()
        });
        Some((asked, request))
    }

    /// What came of the filters.
    ///
    /// # Errors
    /// A filter cannot say it.
    pub fn take_filtered(&mut self, passed: Passed) -> Result<Option<Box<filter::Request>>, Unfit> {
        let Passed {
            result: passed,
            to_count: prompt,
        } = passed;
        if let (Some(prompt), Stage::Active(active)) = (prompt, &mut self.stage) {
            let unsaid = active.unfit.get_or_insert_default();
            unsaid.prompt = unsaid
                .prompt
                .take()
                .or(self.record.backend.map(|id| (prompt, id)));
        }
        let passed = passed?;
        Ok(passed.map(|(request, answering)| {
            if let Stage::Active(active) = &mut self.stage {
                active.answering = answering;
            }
            let dropped = &request.dropped;
            if !dropped.is_empty() {
                let extra = self.record.extra.get_or_insert_default();
                extra.dropped = dropped.as_slice().into();
            } else if let Some(extra) = &mut self.record.extra {
                extra.dropped = Box::default();
            }
            request
        }))
    }
}

/// A request on its way through filters, which take as long as its body is: for whoever has the time.
#[derive(Debug)]
pub struct Filtering {
    asked: Operation,
    request: Box<filter::Request>,
    filters: Vec<Arc<dyn Filter>>,
}

impl Filtering {
    /// Passes it through them.
    #[must_use]
    pub fn run(self) -> Passed {
        pass(self.asked, self.request, self.filters.iter())
    }
}

/// The fields that prove who sends a request, where that depends on the whole of it.
pub type Signature = Vec<(&'static str, Secret)>;

/// What is to be signed, which takes as long as the SHA-256 of its body.
#[derive(Debug)]
pub struct Signing {
    credential: Arc<Credential>,
    method: String,
    authority: String,
    path: String,
    query: String,
    headers: Vec<(Vec<u8>, Vec<u8>)>,
    body: Vec<Bytes>,
    unix_s: u64,
}

impl Signing {
    /// Signs it.
    #[must_use]
    pub fn run(self) -> Signature {
        let Credential::Signer(signer) = &*self.credential else {
            return Vec::new();
        };
        let request = Signable {
            method: &self.method,
            authority: &self.authority,
            path: &self.path,
            query: &self.query,
            headers: &self.headers,
            body: &self.body,
        };
        signer.sign(&request, self.unix_s)
    }
}

/// What came of a request's way through filters.
#[derive(Debug)]
pub struct Passed {
    /// The request as they made it, where any applies, and what they left for its response.
    result: Result<Option<Made>, Unfit>,
    /// The prompt whose count it asks for.
    to_count: Option<filter::Prompt>,
}

type Made = (Box<filter::Request>, Vec<Box<dyn Answering>>);

#[cold]
fn pass<'f>(
    mut asked: Operation,
    mut request: Box<filter::Request>,
    filters: impl Iterator<Item = &'f Arc<dyn Filter>>,
) -> Passed {
    let mut answering = Vec::new();
    let mut is_filtered = false;
    for filter in filters {
        if !filter.applies(asked) {
            continue;
        }
        is_filtered = true;
        match filter.request(asked, &mut request) {
            Ok(left) => answering.extend(left),
            Err(unfit) => {
                return Passed {
                    to_count: filter.prompt_to_count(asked, &request),
                    result: Err(unfit),
                };
            }
        }
        asked = filter.operation(asked);
    }
    Passed {
        result: Ok(is_filtered.then_some((request, answering))),
        to_count: None,
    }
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

    /// What is to be signed of it with this body, where its credential is a signer: to be done by whoever has the time, once path and
    /// body are final, and told by [`signed`](Self::signed) before it is written.
    #[inline]
    #[must_use]
    pub fn signing(&self, body: &[Bytes], now: Mono) -> Option<Signing> {
        let credential = self.plan.minted.as_ref()?;
        match &**credential {
            Credential::Signer(_) => Some(self.to_sign(credential, body, now)),
            Credential::Header { .. } => None,
        }
    }

    #[cold]
    fn to_sign(&self, credential: &Arc<Credential>, body: &[Bytes], now: Mono) -> Signing {
        let mut headers = Vec::new();
        if let Credential::Signer(signer) = &**credential {
            self.fields(|name, value| {
                if signer.covers(name) {
                    headers.push((name.to_vec(), value.to_vec()));
                }
            });
        }
        Signing {
            credential: Arc::clone(credential),
            method: self.method_text.to_owned(),
            authority: self.authority().to_owned(),
            path: [&*self.endpoint.base_path, self.path()].concat(),
            query: self.query.strip_prefix('?').unwrap_or_default().to_owned(),
            headers,
            body: body.to_vec(),
            unix_s: self.exchange.unix_ms(now) / 1000,
        }
    }

    /// It is signed so.
    pub fn signed(&mut self, signature: Signature) {
        self.signature = signature;
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
        for AddedHeader { name, value } in ours {
            put(name, value);
        }
        put(b"x-request-id", self.record.id.as_bytes());
        if let (Some(trace), Some(span)) = (trace, self.plan.span) {
            put(b"traceparent", &trace.traceparent(span));
        }
    }

    /// Those of the client's that pass by lists.
    #[inline(always)]
    fn listed_fields(&self, put: &mut impl FnMut(&[u8], &[u8])) {
        let identity = &self.snapshot.identity.header;
        let route = self.record.route.and_then(|id| self.snapshot.route(id));
        let listed = route.map_or(&[][..], |route| &route.forward_headers);
        let trace = self.record.trace;
        let ours = &self.backend.headers;
        let is_read = self.record.operation.is_some_and(Operation::reads_body);
        let withheld = match is_read && self.record.listed.is_none() {
            // It was decoded.
            true => self.backend.withheld_headers.with(Known::ContentEncoding),
            false => self.backend.withheld_headers,
        };
        let api = (self.path(), withheld);
        let filtered = self.filtered;
        for field in self.head.fields.iter() {
            if let Some(filtered) = filtered {
                // A coded response could not be filtered.
                let mut made = filtered.headers.iter();
                if field.known == Known::AcceptEncoding
                    || made.any(|(name, _)| name.as_bytes() == field.name)
                {
                    continue;
                }
            }
            if !ours.is_empty() && ours.iter().any(|ours| *ours.name == *field.name) {
                continue;
            }
            if credential::forwards(&field, &self.head.fields, identity.as_bytes(), listed, api)
                && trace.is_none_or(|trace| trace::forwards(&trace, field.known))
            {
                put(field.name, field.value);
            }
        }
    }

    /// Those of the client's that go to a service of plain HTTP; cookies go in one line (RFC 9113, 8.2.3).
    #[cold]
    #[inline(never)]
    fn plain_fields(&self, put: &mut impl FnMut(&[u8], &[u8])) {
        let (s, ours) = (self.snapshot, &self.backend.headers);
        let mut cookies: Vec<u8> = Vec::new();
        for field in self.head.fields.iter() {
            let is_replaced = ours.iter().any(|ours| *ours.name == *field.name);
            let passes = |trace| trace::forwards(trace, field.known);
            let user = s.identity.user_header.as_deref();
            let names_user = user.is_some_and(|user| user.as_bytes() == field.name);
            let own = self.endpoint.edits.as_ref();
            let is_kept = self.actions.is_none_or(|of| of.request.keeps(field.name))
                && own.is_none_or(|edits| edits.keeps(field.name));
            if !is_kept
                || names_user
                || is_replaced
                || !self.record.trace.as_ref().is_none_or(passes)
            {
                continue;
            }
            if !fields::forwards(&field, &self.head.fields, s.identity.header.as_bytes()) {
                continue;
            }
            if field.known != Known::Cookie {
                put(field.name, field.value);
                continue;
            }
            let kept = match &s.login {
                Some(site) => fields::cookies_but(field.value, site.login.cookies()),
                None => Some(field.value.to_vec()),
            };
            for kept in kept.into_iter().filter(|kept| !kept.is_empty()) {
                if !cookies.is_empty() {
                    cookies.extend_from_slice(b"; ");
                }
                cookies.extend_from_slice(&kept);
            }
        }
        if !cookies.is_empty() {
            put(b"cookie", &cookies);
        }
        if let Some(actions) = self.actions {
            let own = self.endpoint.edits.as_ref();
            actions.request.put(|name, value| {
                if own.is_none_or(|edits| edits.keeps(name)) {
                    put(name, value);
                }
            });
        }
        if let Some(edits) = &self.endpoint.edits {
            edits.put(|name, value| put(name, value));
        }
    }

    /// Gives `put` each field with a secret: the credential, and the one for a proxy that reads the request.
    #[inline]
    pub fn secrets(&self, mut put: impl FnMut(&str, &Secret)) {
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
