//! A call of files and batches as it goes to its provider, and what comes back.
//!
//! Invariant: nothing that the client sent goes there but its body, the type of that, and the words by which its API is versioned. An
//! answer that is coded is none.
//! Not here: connections (`upstream`), who asks (`super`).

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use policy::id::BackendId;
use policy::refusal::Refusal;
use policy::snapshot::Timeouts;
use wire::batch::{Api, Asked, OBJECT_BYTES_MAX};
use wire::head::{Known, Method, RequestHead};

use super::Arrived;
use crate::call::{Call, Stop, while_there};
use crate::client::Downstream;
use crate::deadline::Deadline;
use crate::tools::{Asker, Began, Failed, Said, next};
use crate::upstream::Response;
use crate::worker::Worker;
use crate::worker_snapshot::WorkerSnapshot;

/// Most of an answer that is one document; an error may be longer than an object.
const ANSWER_BYTES_MAX: usize = 2 * OBJECT_BYTES_MAX;
/// The version of Anthropic's API that is asked for where nobody says another.
const VERSION: &[u8] = b"2023-06-01";
/// What its files are asked for by.
const FILES_BETA: &[u8] = b"files-api-2025-04-14";

/// A request to a provider.
pub(super) struct ToProvider {
    pub(super) method: Method,
    pub(super) path: Box<str>,
    pub(super) body: Option<(Box<[u8]>, Bytes)>,
    pub(super) api: Api,
    /// Of Anthropic's API.
    version: Option<Box<[u8]>>,
    betas: Vec<Box<[u8]>>,
}

impl ToProvider {
    /// A client's call; with its body and the type of that.
    pub(super) fn of(of: &Arrived<'_>, body: Option<(Box<[u8]>, Bytes)>) -> Self {
        let is_anthropic = of.api == Api::Anthropic;
        let said = |name: &[u8]| -> Vec<Box<[u8]>> {
            let values = of.head.fields.by_name(name).filter(|_| is_anthropic);
            let plain = values.filter(|value| value.len() <= 512 && value.is_ascii());
            plain.map(Into::into).collect()
        };
        let mut betas = said(b"anthropic-beta");
        let has_files = |beta: &[u8]| beta.windows(FILES_BETA.len()).any(|of| of == FILES_BETA);
        if is_anthropic && of.named.api.is_none() && !betas.iter().any(|beta| has_files(beta)) {
            betas.push(FILES_BETA.into());
        }
        let mut path = of
            .head
            .path()
            .strip_prefix("/v1")
            .unwrap_or_default()
            .to_owned();
        if path.is_empty() {
            path.push('/');
        }
        let body = body.or_else(|| {
            // Ending a batch is a call without a word.
            let is_empty = of.named.asked == Asked::Cancel;
            is_empty.then(|| (Box::from(&b""[..]), Bytes::new()))
        });
        Self {
            method: of.head.method,
            path: path.into(),
            body,
            api: of.api,
            version: said(b"anthropic-version").into_iter().next(),
            betas,
        }
    }

    /// A question of the gate's own.
    pub(super) fn own(api: Api, path: String) -> Self {
        Self {
            method: Method::Get,
            path: path.into(),
            body: None,
            api,
            version: None,
            betas: Vec::new(),
        }
    }
}

impl Said for &ToProvider {
    fn method(&self) -> Method {
        self.method
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn query(&self) -> &str {
        ""
    }

    fn body(&self) -> Option<&Bytes> {
        self.body.as_ref().map(|(_, body)| body)
    }

    fn within(&self) -> Option<Duration> {
        None
    }

    fn fields(&self, put: &mut dyn FnMut(&[u8], &[u8])) {
        put(b"accept", b"*/*");
        put(b"accept-encoding", b"identity");
        if let Some((kind, _)) = self.body.as_ref().filter(|(kind, _)| !kind.is_empty()) {
            put(b"content-type", kind);
        }
        if self.api == Api::Anthropic {
            put(
                b"anthropic-version",
                self.version.as_deref().unwrap_or(VERSION),
            );
            for beta in &self.betas {
                put(b"anthropic-beta", beta);
            }
        }
    }
}

/// Sends it on behalf of whoever has this id.
pub(super) async fn asked(
    worker: &Rc<Worker>,
    view: &WorkerSnapshot,
    id: &str,
    backend: BackendId,
    request: &ToProvider,
) -> Result<Began, Failed> {
    let asker = Asker {
        worker,
        view,
        id,
        caller: None,
        own: &[],
    };
    let began = asker.send_to(backend, request).await?;
    match is_coded(&began.response) {
        true => Err(Failed::TooLong),
        false => Ok(began),
    }
}

fn is_coded(response: &Response) -> bool {
    let head = response.head.as_ref();
    let mut codings = head
        .into_iter()
        .flat_map(|head| head.fields.of(Known::ContentEncoding));
    codings.any(|coding| !coding.eq_ignore_ascii_case(b"identity"))
}

/// The backend that it goes to from here on: its record says so, whatever becomes of it.
pub(super) fn goes_to(call: &mut Call, api: Api) -> Result<BackendId, Stop> {
    let view = Rc::clone(&call.view);
    let s = view.snapshot();
    let rule = call.rule(api, s);
    let backend = rule.and_then(|(chosen, _, backend)| {
        call.facts.endpoint = backend.endpoints.first().copied();
        chosen.route.backends.first().copied()
    });
    call.facts.attempts = 1;
    backend.ok_or_else(|| call.refuse(Refusal::Bug("a call to no backend")))
}

/// Sends a client's call, and gives the answer that began.
pub(super) async fn sent<D: Downstream>(
    call: &mut Call,
    request: &ToProvider,
    client: &mut D,
) -> Result<Began, Stop> {
    let (worker, view, id) = (
        Rc::clone(&call.worker),
        Rc::clone(&call.view),
        call.id.clone(),
    );
    let backend = goes_to(call, request.api)?;
    let began_at = worker.now();
    let asking = asked(&worker, &view, &id, backend, request);
    let began = while_there(asking, &worker, client).await?;
    call.facts.upstream = Some(worker.now().since(began_at));
    began.map_err(|failed| call.failed(&failed))
}

/// An answer that is one document, with its status. A provider that refuses the gate's credential says nothing that its client may hear.
pub(super) async fn whole<D: Downstream>(
    call: &mut Call,
    began: Began,
    client: &mut D,
) -> Result<(u16, Bytes), Stop> {
    let (worker, view, id) = (
        Rc::clone(&call.worker),
        Rc::clone(&call.view),
        call.id.clone(),
    );
    let reading = read(&worker, &view, &id, began);
    match while_there(reading, &worker, client).await? {
        Ok(read) => Ok(read),
        Err(failed) => Err(call.failed(&failed)),
    }
}

/// The same, whoever asks.
pub(super) async fn read(
    worker: &Rc<Worker>,
    view: &WorkerSnapshot,
    id: &str,
    mut began: Began,
) -> Result<(u16, Bytes), Failed> {
    let head = began.response.head.as_ref().ok_or(Failed::Bug)?;
    let status = head.status;
    if let 401 | 403 = status {
        return Err(Failed::Credential);
    }
    let asker = Asker {
        worker,
        view,
        id,
        caller: None,
        own: &[],
    };
    let Timeouts { idle, .. } = began.timeouts;
    let mut deadline = Deadline::new(&worker.clock.wheel);
    let mut body = Vec::new();
    loop {
        deadline.set(idle);
        let take = |data: &[u8]| body.extend_from_slice(data);
        let is_over = next(asker, &mut began.response.body, &mut deadline, take).await;
        let is_over = is_over.map_err(Failed::Upstream)?;
        if body.len() > ANSWER_BYTES_MAX {
            return Err(Failed::TooLong);
        }
        if is_over {
            return Ok((status, body.into()));
        }
    }
}

/// The type of a request's body, where it is said once.
pub(super) fn kind_of(head: &RequestHead) -> Option<Box<[u8]>> {
    let kind = head.fields.only(Known::ContentType).ok().flatten()?;
    Some(kind.into())
}
