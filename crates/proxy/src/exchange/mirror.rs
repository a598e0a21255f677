//! Copies of calls of plain HTTP for services that see them and whose answers nobody reads.
//!
//! Invariant: a call waits for no copy of it, and what becomes of one changes nothing for it; a worker has no more than
//! [`MIRRORS_MAX`] of them at one time, and keeps their bodies within what it keeps of all.
//! Not here: which calls are copied, and where to (`policy::plain::actions`).

use std::rc::Rc;

use bytes::Bytes;
use policy::exchange::{AttemptRequest, Plan};
use policy::id::EndpointId;
use policy::secret::Secret;
use policy::snapshot::{Endpoint, Timeouts};
use wire::head::{Method, RequestHead};

use super::active::ActiveExchange;
use crate::deadline::Deadline;
use crate::upstream::line::{Line, dial, reuse};
use crate::upstream::{Answered, Outgoing, Unwatched, h1, h2};
use crate::worker::Worker;
use crate::worker_snapshot::WorkerSnapshot;

/// Most copies of one worker that are on their way at one time; a call beyond it has none.
const MIRRORS_MAX: usize = 256;

/// Sends the copies that a call's route asks for.
#[cold]
pub(super) fn send(active: &ActiveExchange, head: &RequestHead, body: &[Bytes]) {
    let (view, worker) = (active.view(), active.worker());
    let route = active.exchange.record().route;
    let route = route.and_then(|id| view.snapshot().route(id));
    let Some(actions) = route.and_then(|route| route.actions.as_ref()) else {
        return;
    };
    for mirror in &actions.mirrors {
        let chance = view.shard.borrow_mut().fresh();
        let Some(endpoint) = policy::mirror::pick(mirror, chance, view.snapshot()) else {
            continue;
        };
        if worker.mirrors.get() >= MIRRORS_MAX {
            return;
        }
        let Some(counted) = Counted::of(worker, body, view.snapshot().bounds.bodies_bytes) else {
            tracing::debug!("no room for the body of a mirror");
            return;
        };
        if let Some(copy) = Copy::of(active, endpoint, head, body) {
            let (worker, view) = (Rc::clone(worker), Rc::clone(view));
            tokio::task::spawn_local(async move {
                copy.send(&worker, &view).await;
                drop(counted);
            });
        }
    }
}

/// One copy on its way and the bytes of its body, in the counts whatever ends it.
struct Counted(Rc<Worker>, usize);

impl Counted {
    /// None where there is no room for the body: the call itself gives it back when it was sent, and a mirror may wait for longer.
    fn of(worker: &Rc<Worker>, body: &[Bytes], bound: usize) -> Option<Self> {
        let bytes = body.iter().map(Bytes::len).sum();
        if !worker.keep_body(bytes, bound) {
            return None;
        }
        worker.mirrors.set(worker.mirrors.get() + 1);
        Some(Self(Rc::clone(worker), bytes))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let Self(worker, bytes) = self;
        worker.mirrors.set(worker.mirrors.get().saturating_sub(1));
        worker.drop_body(*bytes);
    }
}

/// A request as it goes to a mirror, with all that it says.
struct Copy {
    id: EndpointId,
    method: Method,
    method_text: String,
    authority: String,
    path: String,
    query: String,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    body: Vec<Bytes>,
    has_body: bool,
}

impl Copy {
    /// What an attempt at this endpoint would send, without a credential: nobody asked for one.
    fn of(
        active: &ActiveExchange,
        id: EndpointId,
        head: &RequestHead,
        body: &[Bytes],
    ) -> Option<Self> {
        let plan = Plan {
            endpoint: id,
            may_reuse: true,
            edits: Vec::new(),
            minted: None,
            span: None,
        };
        let snapshot = active.view().snapshot();
        let request = AttemptRequest::new(&plan, &active.exchange, head, snapshot, None)?;
        let mut fields = Vec::new();
        request.fields(|name, value| fields.push((name.to_vec(), value.to_vec())));
        Some(Self {
            id,
            method: head.method,
            method_text: request.method_text.to_owned(),
            authority: request.authority().to_owned(),
            path: request.path().to_owned(),
            query: request.query().to_owned(),
            fields,
            body: body.to_vec(),
            has_body: request.has_body(),
        })
    }

    async fn send(self, worker: &Worker, view: &WorkerSnapshot) {
        let snapshot = view.snapshot();
        let backend = snapshot.backend_of(self.id);
        let (Some(endpoint), Some(backend)) = (snapshot.endpoint(self.id), backend) else {
            return;
        };
        let Some(pool) = view.pool(self.id) else {
            return;
        };
        let Timeouts {
            connect,
            first_byte,
            ..
        } = backend.timeouts;
        let to = pool.names.turn();
        let line = match reuse(pool, to) {
            Some(line) => line,
            None => match dial((pool, to), true, &worker.timers, connect).await {
                Ok(line) => line,
                Err(failure) => {
                    tracing::debug!(endpoint = &*endpoint.name, ?failure, "no mirror there");
                    return;
                }
            },
        };
        let request = Mirrored {
            endpoint,
            copy: &self,
        };
        let length: u64 = self.body.iter().map(|piece| piece.len() as u64).sum();
        let length = self.has_body.then_some(length);
        let mut deadline = Deadline::new(&worker.clock.wheel);
        deadline.set(first_byte);
        let (mut response, mut waiting) = (None, Unwatched(&worker.buffers));
        let answered = match line {
            Line::H1(connection) => {
                let sending = h1::Sending::new(&worker.buffers, &request, &self.body, length);
                let (to, watch) = (&mut response, &mut waiting);
                h1::exchange(
                    pool,
                    connection,
                    sending,
                    self.method,
                    to,
                    &mut deadline,
                    watch,
                )
                .await
            }
            Line::H2(handle) => {
                let sending = h2::Sending::new(&request, &self.body, length);
                h2::exchange(handle, sending, &mut response, &mut deadline, &mut waiting).await
            }
        };
        if let Answered::Lost(lost) = answered {
            let failure = lost.failure;
            tracing::debug!(
                endpoint = &*endpoint.name,
                ?failure,
                "a mirror has no answer"
            );
        }
    }
}

/// A copy and where it goes.
struct Mirrored<'a> {
    endpoint: &'a Endpoint,
    copy: &'a Copy,
}

impl Outgoing for Mirrored<'_> {
    fn endpoint(&self) -> &Endpoint {
        self.endpoint
    }

    fn authority(&self) -> &str {
        &self.copy.authority
    }

    fn method_text(&self) -> &str {
        &self.copy.method_text
    }

    fn path(&self) -> &str {
        &self.copy.path
    }

    fn query(&self) -> &str {
        &self.copy.query
    }

    fn fields(&self, mut put: impl FnMut(&[u8], &[u8])) {
        for (name, value) in &self.copy.fields {
            put(name, value);
        }
    }

    fn secrets(&self, _: impl FnMut(&str, &Secret)) {}
}
