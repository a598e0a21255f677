//! One request to one server of tools.
//!
//! Invariant: nothing that the client sent as a credential goes there: each field is written here. A request is sent a second time
//! only where a kept connection certainly took nothing of it.
//! Not here: what is asked (`super`), connections (`upstream`), what an answer means (`mcp::events`).

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcp::challenge;
use mcp::events::Unusable;
use mcp::header;
use mcp::session::OpenServer;
use mcp::version::Version;
use policy::attempt::Failure;
use policy::credential::{Credential, Signable, UpstreamAuth};
use policy::id::{BackendId, EndpointId};
use policy::mcp::{CallersToken, Server};
use policy::record::AttemptRecord;
use policy::retry::Retry;
use policy::secret::Secret;
use policy::snapshot::{AddedValue, Backend, Endpoint, Timeouts};
use wire::head::{Known, Method};

use crate::call::OwnToken;
use crate::deadline::Deadline;
pub(crate) use crate::tool_failure::Failed;
use crate::tool_failure::Sent;
use crate::upstream::line::{Line, dial, reuse};
use crate::upstream::{Answered, Outgoing, Response, Unwatched, h1, h2};
use crate::worker::Worker;
use crate::worker_snapshot::WorkerSnapshot;

/// What all requests of one message have in common.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'a> {
    pub(crate) worker: &'a Rc<Worker>,
    pub(crate) view: &'a WorkerSnapshot,
    /// The message's id.
    pub(crate) id: &'a str,
    /// Who asks, where a process is started for him: of those each caller has a share.
    pub(crate) caller: Option<&'a str>,
    /// What its caller brought for some servers in place of the gate's credential.
    pub(crate) own: &'a [OwnToken],
    /// Servers for which the gate has no credential, and its caller brought none, with the header in which it might.
    pub(crate) missing: &'a [(BackendId, Box<str>)],
    /// The token by which its caller is known, where a server is sent another one for it.
    pub(crate) token: Option<&'a Secret>,
}

/// What is asked.
#[derive(Clone)]
pub(super) struct Request<'a> {
    pub(super) method: Method,
    /// What is open there, where something is; where it needs no session, that.
    pub(super) open: Option<&'a OpenServer>,
    /// What the body says, for servers that want it in headers too.
    pub(super) says: Says<'a>,
    pub(super) body: Bytes,
    /// Where a stream is taken up again: the server's own id of an event.
    pub(super) last_event: Option<&'a str>,
    /// Where several servers are asked: how long each may take to begin its answer.
    pub(super) within: Option<Duration>,
}

/// What a message to a server without sessions says in headers.
#[derive(Clone, Copy, Default)]
pub(super) struct Says<'a> {
    pub(super) method: &'a str,
    /// What it names, by the server's own name.
    pub(super) named: Option<&'a str>,
    /// Arguments, by the names of their headers.
    pub(super) params: &'a [(String, String)],
}

/// A response that began, with how long its parts may take.
pub(crate) struct Began {
    pub(crate) response: Response,
    pub(crate) timeouts: Timeouts,
    /// With which credential it was asked for.
    pub(super) sent: Sent,
}

/// What a request says, beside what every request to that server does.
pub(crate) trait Said {
    fn method(&self) -> Method;
    /// What follows the endpoint's base path, which may be empty.
    fn path(&self) -> &str;
    /// With its `?`.
    fn query(&self) -> &str;
    /// What is sent; none where nothing can be.
    fn body(&self) -> Option<&Bytes>;
    /// How long its answer may take to begin, where that is less than its server may.
    fn within(&self) -> Option<Duration>;
    /// Gives `put` each field of its own.
    fn fields(&self, put: &mut dyn FnMut(&[u8], &[u8]));
}

impl<'a> Asker<'a> {
    /// One that asks as the gate, for nobody in particular.
    pub(crate) const fn of_gate(
        worker: &'a Rc<Worker>,
        view: &'a WorkerSnapshot,
        id: &'a str,
    ) -> Self {
        Self {
            worker,
            view,
            id,
            caller: None,
            own: &[],
            missing: &[],
            token: None,
        }
    }

    /// Sends a request to a server, and gives the response that began.
    pub(super) async fn send(self, server: &Server, request: impl Said) -> Result<Began, Failed> {
        let caller = self.caller.filter(|_| server.is_command);
        Self { caller, ..self }
            .send_to(server.backend, request)
            .await
    }

    /// Sends a request to the first address of a backend, and gives the response that began.
    pub(crate) async fn send_to(self, of: BackendId, request: impl Said) -> Result<Began, Failed> {
        let snapshot = self.view.snapshot();
        let backend = snapshot.backend(of).ok_or(Failed::Bug)?;
        let id = *backend.endpoints.first().ok_or(Failed::Bug)?;
        let endpoint = snapshot.endpoint(id).ok_or(Failed::Bug)?;
        let timeouts = Timeouts {
            first_byte: request.within().map_or(backend.timeouts.first_byte, |w| {
                w.min(backend.timeouts.first_byte)
            }),
            ..backend.timeouts
        };
        let own = self.own.iter().find(|own| own.backend == of);
        let minted = match own {
            Some(_) => Ok(None),
            None => self.minted(endpoint, &request, timeouts).await,
        };
        let minted = minted.inspect_err(|_| {
            // Nothing was sent to it, and it is named all the same.
            let result = Err(Failure::Credential);
            self.worker
                .sink(|sink| sink.attempt(snapshot, &attempt_at(id, result)));
        })?;
        let mut outgoing = ToServer {
            endpoint,
            backend,
            asker_id: self.id,
            caller: self.caller,
            own,
            request: &request,
            minted: minted.as_deref(),
            signature: Vec::new(),
        };
        outgoing.sign(self.worker);
        let attempting = self.attempt(id, &outgoing, timeouts);
        let sent = match request.within() {
            // Whoever waits for it no longer than that learns of it here, and nothing ends it unrecorded.
            Some(within) => match self.worker.timers.timeout(within, attempting).await {
                Ok(sent) => sent,
                Err(_) => Err(Failure::FirstByteTimeout),
            },
            None => attempting.await,
        };
        let result = match &sent {
            Ok(response) => Ok(response.head.as_ref().map_or(0, |head| head.status)),
            Err(failure) => Err(*failure),
        };
        let attempt = attempt_at(id, result);
        let is_refused = matches!(result, Ok(401 | 403));
        let token = self.callers_token(own, backend, of);
        // A token of a caller's that is refused is its caller's matter, and no trouble of the endpoint's.
        if !(is_refused && token.is_some()) {
            self.worker.trouble_of(&attempt);
        }
        self.worker.sink(|sink| sink.attempt(snapshot, &attempt));
        if let (UpstreamAuth::Minted(minter), Ok(status @ (401 | 403)), None) =
            (&endpoint.auth, result, own)
        {
            minter.refused(status, self.token);
        }
        if is_refused && token.is_some() {
            self.forget_lists(of);
        }
        let response = sent.map_err(Failed::Upstream)?;
        let sent = token.map_or(Sent::Gates, |token| Sent::Callers {
            token,
            wants: match is_refused {
                true => outgoing.wants(&response),
                false => Box::default(),
            },
        });
        Ok(Began {
            response,
            timeouts,
            sent,
        })
    }

    /// The token of its caller's that a server is sent, or might be.
    fn callers_token(
        self,
        own: Option<&OwnToken>,
        backend: &Backend,
        of: BackendId,
    ) -> Option<CallersToken> {
        if let Some(own) = own {
            return Some(CallersToken::Brought(own.brought_in.clone()));
        }
        if backend.exchanges_tokens {
            return Some(CallersToken::Given);
        }
        let mut missing = self.missing.iter();
        let (_, header) = missing.find(|(backend, _)| *backend == of)?;
        Some(CallersToken::Missing(header.clone()))
    }

    /// The credential that is made while the gate runs.
    async fn minted(
        self,
        endpoint: &Endpoint,
        request: &impl Said,
        timeouts: Timeouts,
    ) -> Result<Option<Arc<Credential>>, Failed> {
        let UpstreamAuth::Minted(minter) = &endpoint.auth else {
            return Ok(None);
        };
        if let Some(ready) = minter.ready(self.token) {
            return Ok(Some(ready));
        }
        let minting = minter.mint(self.token);
        let within = request
            .within()
            .map_or(timeouts.connect, |within| within.min(timeouts.connect));
        let minted = self.worker.timers.timeout(within, minting).await;
        let none = || match minter.is_for_caller() {
            true => Failed::Exchange,
            false => Failed::Upstream(Failure::Credential),
        };
        minted.ok().flatten().map(Some).ok_or_else(none)
    }

    async fn attempt<S: Said>(
        self,
        id: EndpointId,
        outgoing: &ToServer<'_, S>,
        timeouts: Timeouts,
    ) -> Result<Response, Failure> {
        let pool = self.view.pool(id).ok_or(Failure::Exhausted)?;
        let to = pool.names.turn();
        let body = outgoing.request.body();
        let length = body.map(|body| body.len() as u64);
        let body = body.map_or(&[][..], std::slice::from_ref);
        let mut deadline = Deadline::new(&self.worker.clock.wheel);
        let mut may_reuse = true;
        loop {
            let kept = may_reuse.then(|| reuse(pool, to)).flatten();
            let was_kept = kept.is_some();
            let line = match kept {
                Some(line) => line,
                None => {
                    let timers = &self.worker.timers;
                    dial((pool, to), may_reuse, timers, timeouts.connect).await?
                }
            };
            deadline.set(timeouts.first_byte);
            let mut response = None;
            let mut waiting = Unwatched(&self.worker.buffers);
            let answered = match line {
                Line::H1(connection) => {
                    let sending = h1::Sending::new(&self.worker.buffers, outgoing, body, length);
                    let method = outgoing.request.method();
                    h1::exchange(
                        pool,
                        connection,
                        sending,
                        method,
                        &mut response,
                        &mut deadline,
                        &mut waiting,
                    )
                    .await
                }
                Line::H2(handle) => {
                    let sending = h2::Sending::new(outgoing, body, length);
                    h2::exchange(handle, sending, &mut response, &mut deadline, &mut waiting).await
                }
            };
            match (answered, response) {
                (Answered::Head, Some(response)) => return Ok(response),
                (Answered::Lost(lost), _) if lost.is_untaken && was_kept => may_reuse = false,
                (Answered::Lost(lost), _) => return Err(lost.failure),
                (Answered::Gone | Answered::Head, _) => return Err(Failure::Reset),
            }
        }
    }
}

/// An attempt that ended so, and is the only one.
const fn attempt_at(endpoint: EndpointId, result: Result<u16, Failure>) -> AttemptRecord {
    AttemptRecord {
        endpoint,
        result,
        retry: Retry::No,
    }
}

/// A request to a server.
struct ToServer<'a, S> {
    endpoint: &'a Endpoint,
    backend: &'a Backend,
    asker_id: &'a str,
    caller: Option<&'a str>,
    own: Option<&'a OwnToken>,
    request: &'a S,
    minted: Option<&'a Credential>,
    signature: Vec<(&'static str, Secret)>,
}

impl<S: Said> ToServer<'_, S> {
    /// What a server that refused the token wants, but what has that token in it.
    fn wants(&self, response: &Response) -> Box<[(&'static str, Box<str>)]> {
        let sent = match (self.own, self.minted) {
            (Some(own), _) => Some(&own.value),
            (None, Some(Credential::Header { value, .. })) => Some(value),
            (None, _) => None,
        };
        let sent = sent.and_then(|value| std::str::from_utf8(value.expose()).ok());
        let token = sent.and_then(|value| value.rsplit(' ').next());
        let head = response.head.as_ref();
        let lines = head
            .into_iter()
            .flat_map(|head| head.fields.of(Known::WwwAuthenticate));
        let mut wants = challenge::wants(lines);
        wants.retain(|(_, value)| token.is_none_or(|token| !value.contains(token)));
        wants.into()
    }

    fn sign(&mut self, worker: &Worker) {
        let Some(Credential::Signer(signer)) = self.minted else {
            return;
        };
        let mut headers = Vec::new();
        self.fields(|name, value| {
            if signer.covers(name) {
                headers.push((name.to_vec(), value.to_vec()));
            }
        });
        let path = [&*self.endpoint.base_path, Outgoing::path(self)].concat();
        let signable = Signable {
            method: self.method_text(),
            authority: &self.endpoint.authority,
            path: &path,
            query: self.request.query(),
            headers: &headers,
            body: self.request.body().map_or(&[], std::slice::from_ref),
        };
        let unix_s = worker.clock.wall_ms(worker.now()) / 1000;
        self.signature = signer.sign(&signable, unix_s);
    }

    /// Whether the gate itself says this, whatever a request says.
    fn is_own(&self, name: &[u8]) -> bool {
        let secret = match (self.minted, &self.endpoint.auth) {
            (Some(Credential::Header { name, .. }), _) | (_, UpstreamAuth::Header { name, .. }) => {
                name.as_bytes()
            }
            (Some(Credential::Signer(_)), _) if name.starts_with(b"x-amz-") => name,
            _ => b"authorization",
        };
        let mut added = self.backend.headers.iter();
        let own = self.own.map_or(secret, |own| own.header.as_bytes());
        name == secret || name == own || added.any(|added| *added.name == *name)
    }
}

impl Said for Request<'_> {
    fn method(&self) -> Method {
        self.method
    }

    fn path(&self) -> &str {
        ""
    }

    fn query(&self) -> &str {
        ""
    }

    fn body(&self) -> Option<&Bytes> {
        (self.method == Method::Post).then_some(&self.body)
    }

    fn within(&self) -> Option<Duration> {
        self.within
    }

    fn fields(&self, put: &mut dyn FnMut(&[u8], &[u8])) {
        match self.method {
            Method::Get => put(b"accept", b"text/event-stream"),
            _ => put(b"accept", b"application/json, text/event-stream"),
        }
        if let Some(last) = self.last_event {
            put(b"last-event-id", last.as_bytes());
        }
        if self.method == Method::Post {
            put(b"content-type", b"application/json");
        }
        if let Some(id) = self.open.and_then(|open| open.id.as_deref()) {
            put(b"mcp-session-id", id.as_bytes());
        }
        let version = self.open.map(|open| open.version);
        // The oldest has no such field.
        if let Some(version) = version.filter(|of| *of > Version::V20250326) {
            put(b"mcp-protocol-version", version.as_str().as_bytes());
        }
        if version.is_some_and(Version::is_modern) {
            put(b"mcp-method", self.says.method.as_bytes());
            if let Some(named) = self.says.named {
                put(b"mcp-name", header::encoded(named).as_bytes());
            }
            for (name, value) in self.says.params {
                put(name.as_bytes(), value.as_bytes());
            }
        }
    }
}

impl<S: Said> Outgoing for ToServer<'_, S> {
    fn endpoint(&self) -> &Endpoint {
        self.endpoint
    }

    fn method_text(&self) -> &str {
        match self.request.method() {
            Method::Delete => "DELETE",
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Patch => "PATCH",
            Method::Put => "PUT",
            _ => "POST",
        }
    }

    fn path(&self) -> &str {
        match self.request.path() {
            "" if self.endpoint.base_path.is_empty() => "/",
            path => path,
        }
    }

    fn query(&self) -> &str {
        self.request.query()
    }

    fn fields(&self, mut put: impl FnMut(&[u8], &[u8])) {
        self.request.fields(&mut |name, value| {
            if !self.is_own(name) {
                put(name, value);
            }
        });
        put(b"user-agent", USER_AGENT.as_bytes());
        for added in &self.backend.headers {
            if let AddedValue::Fixed(value) = &added.value {
                put(&added.name, value);
                continue;
            }
            let mut said: Vec<Box<[u8]>> = Vec::new();
            self.request.fields(&mut |name, value| {
                if *name == *added.name {
                    said.push(value.into());
                }
            });
            if let Some(value) = added.value.of(said.iter().map(|value| &**value)) {
                put(&added.name, &value);
            }
        }
        if let Some(caller) = self.caller {
            put(TOOL_CALLER.as_bytes(), caller.as_bytes());
        }
        put(b"x-request-id", self.asker_id.as_bytes());
    }

    fn secrets(&self, mut put: impl FnMut(&str, &Secret)) {
        match (self.minted, &self.endpoint.auth) {
            _ if self.own.is_some() => {}
            (Some(Credential::Header { name, value }), _) => put(name, value),
            (Some(Credential::Signer(_)), _) => {
                for (name, value) in &self.signature {
                    put(name, value);
                }
            }
            (None, UpstreamAuth::Header { name, value }) => put(name, value),
            (None, UpstreamAuth::None | UpstreamAuth::Minted(_)) => {}
        }
        if let Some(own) = self.own {
            put(&own.header, &own.value);
        }
        let proxy = self.endpoint.origin.proxy.as_deref();
        let proxy = proxy.filter(|_| self.endpoint.origin.is_relayed());
        if let Some(value) = proxy.and_then(|proxy| proxy.authorization.as_ref()) {
            put("proxy-authorization", value);
        }
    }
}

/// What tells a command of the gate for whom a process is to be started; nobody but the gate's own bridges is sent it.
pub const TOOL_CALLER: &str = "x-tollgate-caller";

const USER_AGENT: &str = concat!("tollgate/", env!("CARGO_PKG_VERSION"));

/// How a response says what it is.
pub(super) enum Form {
    Json,
    Events,
    /// It is taken, and there is nothing to read.
    Taken,
}

/// What a server's response is, by its head; else why it is none.
pub(super) fn form(began: &Began, server: &Server, has_session: bool) -> Result<Form, Failed> {
    let head = began.response.head.as_ref().ok_or(Failed::Bug)?;
    let kind = head.fields.only(Known::ContentType).ok().flatten();
    let kind = kind.map(|kind| kind.split(|b| *b == b';').next().unwrap_or_default());
    let is = |name: &[u8]| kind.is_some_and(|kind| kind.trim_ascii().eq_ignore_ascii_case(name));
    let is_json = is(b"application/json");
    let is_coded = head.fields.of(Known::ContentEncoding).next().is_some();
    match head.status {
        200 if is_coded => Err(Failed::Unusable(Unusable::NoMessage)),
        200 if is(b"text/event-stream") => Ok(Form::Events),
        200 if is_json => Ok(Form::Json),
        200 | 202 | 204 => Ok(Form::Taken),
        404 if has_session => Err(Failed::SessionGone),
        401 | 403 => Err(began.refused(server)),
        // An error of JSON-RPC may be in it.
        400..=499 if is_json && !is_coded => Ok(Form::Json),
        status => Err(Failed::Upstream(Failure::Status(status))),
    }
}
