//! Where a call is counted in, and who picks its endpoint, of those whose route has a balanced backend or one with a picker, or is split.
//!
//! Invariant: a call is counted in at one endpoint at most: that of its last attempt. The picker of a backend is asked once, before the
//! first attempt there; that of the backend which answered is told which endpoint did.
//! Not here: which endpoint it is ([`crate::balancing`], [`crate::picker`]).

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use wire::head::{Known, KnownSet, RequestHead, ResponseHead};

use super::attempting::wanted_of;
use super::verdict::{Amended, Ask, Question, Verdict};
use super::{ANSWER_WITHIN, Env, OUT_OF_ORDER, Phase, Running};
use crate::attempt::Failure;
use crate::balancing::{Balancer, Choice, InFlight, Prompt, Why};
use crate::caller::Later;
use crate::credential;
use crate::id::{BackendId, EndpointId, RouteId};
use crate::operation::Operation;
use crate::picker::{Field, Picked, PickedCall, Served};
use crate::plain::fields;
use crate::record::Record;
use crate::refusal::Refusal;
use crate::snapshot::{Backend, Endpoint, Snapshot};

/// How long a call that a picker refuses is asked to wait.
const SHED_FOR: std::time::Duration = std::time::Duration::from_secs(1);
/// What becomes known of a picker to clients where it gives no answer.
pub(super) const NO_ANSWER: &str = "did not answer";

/// What is kept of a call for balancers and pickers.
#[derive(Debug)]
pub(super) struct Placing {
    /// Its prompt, or as much of it as balancers look at.
    prompt: Prompt,
    at: Option<InFlight>,
    /// What pickers are told of it, where there are any, until it is answered.
    call: Option<Box<PickedCall>>,
    /// The backend whose picker was asked last.
    asked: Option<BackendId>,
    /// Told by whom the call is served; with the backend whose picker it is of.
    served: Option<(BackendId, Box<dyn Served>)>,
    /// Its backend is to be drawn.
    is_split: bool,
}

impl Placing {
    /// Of a call that goes by this route, where that has such a backend.
    #[cold]
    pub(super) fn of(
        route: RouteId,
        record: &Record,
        (head, body): (&RequestHead, &[Bytes]),
        s: &Snapshot,
    ) -> Option<Box<Self>> {
        let route = s.route(route)?;
        let backends = || route.backends.iter().filter_map(|id| s.backend(*id));
        let has_picker = backends().any(|backend| backend.picker.is_some());
        let is_balanced = |backend: &Backend| backend.balancer.is_some();
        let is_split = !route.weights.is_empty();
        if !has_picker && !is_split && !backends().any(is_balanced) {
            return None;
        }
        let operation = record.operation?;
        let mut balancers = backends().filter_map(|backend| backend.balancer.as_ref());
        let reads = balancers.any(Balancer::reads_prompts)
            && operation.reads_body()
            && !operation.is_form();
        let prompt = reads.then(|| Prompt::of(body)).flatten();
        let bytes: usize = body.iter().map(Bytes::len).sum();
        let call = has_picker.then(|| {
            Box::new(PickedCall {
                headers: headers(record, head, s),
                body: body.to_vec(),
            })
        });
        Some(Box::new(Self {
            prompt: prompt.unwrap_or_else(|| Prompt::sized(bytes as u64)),
            at: None,
            call,
            asked: None,
            served: None,
            is_split,
        }))
    }

    /// Its prompt, or as much of it as balancers look at.
    pub(super) const fn prompt(&self) -> &Prompt {
        &self.prompt
    }

    /// Its upstream has begun to answer.
    #[cold]
    pub(super) fn answers(&mut self) {
        if let Some(at) = &mut self.at {
            at.answers();
        }
    }
}

impl Running<'_> {
    /// Draws its backend before the first attempt, where its route is split.
    #[cold]
    pub(super) fn split(&mut self, env: &mut Env<'_>) {
        let active = &mut *self.call;
        let placing = active.placing.as_mut();
        if placing.is_some_and(|placing| std::mem::take(&mut placing.is_split)) {
            let upstreams = &mut env.shard.upstreams;
            upstreams.split(&mut active.attempts, env.snapshot);
        }
    }

    /// It goes to this endpoint: it is counted in there, and nowhere else any more.
    #[cold]
    pub(super) fn place(&mut self, endpoint: EndpointId, env: &Env<'_>) {
        let choice = self.call.attempts.take_choice();
        let Some(placing) = &mut self.call.placing else {
            return;
        };
        placing.at = None;
        let Some((backend, place)) = place_of(endpoint, env.snapshot) else {
            return;
        };
        let only = || Choice {
            place,
            why: Why::Only,
            seen: 0,
            prompt: placing.prompt.bytes(),
        };
        let balancer = backend.balancer.as_ref();
        let Some(choice) = choice.or_else(|| balancer.map(|_| only())) else {
            return;
        };
        placing.at = balancer.and_then(|of| of.count_in(&choice, Some(&placing.prompt)));
        self.record.extra.get_or_insert_default().chosen = Some(choice);
    }

    /// Asks the picker of the backend that is next, unless it was; `last` is how the attempt before failed.
    #[cold]
    pub(super) fn ask_picker(&mut self, last: Failure, env: &mut Env<'_>) -> Option<Verdict> {
        let active = &mut *self.call;
        let placing = active.placing.as_mut()?;
        let call = placing.call.as_ref()?;
        let (s, now) = (env.snapshot, env.now);
        let wanted = wanted_of(self.record);
        let upstreams = &env.shard.upstreams;
        let id = upstreams.next_backend(&active.attempts, wanted, s, now)?;
        let backend = s.backend(id)?;
        let picker = backend
            .picker
            .as_ref()
            .filter(|_| placing.asked != Some(id))?;
        let before = placing.asked.replace(id);
        placing.served = None;
        // Of a pool that was left nothing is tried any more, and nobody is asked again.
        if let Some(before) = before {
            upstreams.leave_out(&mut active.attempts, before, s);
        }
        let call = call.clone();
        active.phase = Phase::Picking(last);
        Some(Verdict::Ask(Ask {
            question: Question::Pick(Arc::clone(picker), call),
            within: ANSWER_WITHIN,
        }))
    }

    /// A picker has answered.
    #[cold]
    pub(super) fn picked(&mut self, picked: Picked, env: &mut Env<'_>) -> Result<Verdict, Refusal> {
        let Phase::Picking(last) = self.call.phase else {
            return Err(OUT_OF_ORDER);
        };
        self.call.phase = Phase::Trying;
        let (addresses, served) = match picked {
            Picked::Endpoints(addresses, served) => (addresses, served),
            Picked::Shed(status, says) => {
                let wait = SHED_FOR;
                let colon = if says.is_empty() { "" } else { ": " };
                let reason = format!("the endpoint picker answered {status}{colon}{says}");
                self.record.reason = Some(reason.into());
                return Err(Refusal::PickerRefused { status, wait, says });
            }
            Picked::Unavailable(why) => {
                return Ok(self.unpicked(last, (NO_ANSWER, &why), env));
            }
        };
        let s = env.snapshot;
        let active = &mut *self.call;
        let Some(placing) = &mut active.placing else {
            return Err(OUT_OF_ORDER);
        };
        let asked = placing.asked.and_then(|id| Some((id, s.backend(id)?)));
        let Some((id, backend)) = asked else {
            return Err(OUT_OF_ORDER);
        };
        let find = |address| {
            let is_it = |id: &&EndpointId| {
                let endpoint = s.endpoint(**id);
                endpoint.and_then(address_of) == Some(address)
            };
            backend.endpoints.iter().find(is_it).copied()
        };
        let endpoints: Vec<EndpointId> = addresses.into_iter().filter_map(find).collect();
        if endpoints.is_empty() {
            let why = "it picked no endpoint of the pool";
            let says = "named no endpoint of it";
            return Ok(self.unpicked(last, (says, why), env));
        }
        placing.served = Some((id, served));
        active.attempts.take_picked(id, endpoints.into_iter());
        Ok(self.next_attempt(last, env))
    }

    /// Nobody picks: the gate chooses itself where that is allowed; else the backend is passed over.
    #[cold]
    /// `says` is what a client is told of it, `why` what the log says.
    pub(super) fn unpicked(
        &mut self,
        last: Failure,
        (says, why): (&'static str, &str),
        env: &mut Env<'_>,
    ) -> Verdict {
        self.call.phase = Phase::Trying;
        let s = env.snapshot;
        let asked = self.call.placing.as_ref().and_then(|placing| placing.asked);
        let picker = asked.and_then(|id| s.backend(id)?.picker.as_ref());
        self.record.reason = Some(format!("the endpoint picker: {why}").into());
        if picker.is_some_and(|picker| picker.fails_open()) {
            return self.next_attempt(last, env);
        }
        let attempts = &mut self.call.attempts;
        let is_left = asked.is_some_and(|id| env.shard.upstreams.leave_out(attempts, id, s));
        match is_left {
            true => self.next_attempt(last, env),
            // What was tried before says more of why there is no answer.
            false if last != Failure::Exhausted => self.refuse(Refusal::Upstream(last)),
            false => self.refuse(Refusal::Unpicked { says }),
        }
    }

    /// Its last attempt is the one whose answer goes to the client. Gives what its picker adds to that.
    #[cold]
    pub(super) fn served(
        &mut self,
        head: &ResponseHead,
        s: &Snapshot,
    ) -> Option<Later<Vec<Field>>> {
        let endpoint = self.record.endpoint.and_then(|id| s.endpoint(id));
        let placing = self.call.placing.as_mut();
        let (backend, served) = placing.and_then(|placing| {
            // No attempt follows: the host keeps the body no longer either.
            placing.call = None;
            placing.served.take()
        })?;
        let endpoint = endpoint.filter(|endpoint| endpoint.backend == backend)?;
        served.tell(&address_of(endpoint)?.to_string(), head)
    }
}

/// An answer that waits for what a picker adds to it, where one does.
#[cold]
pub(super) fn amended(verdict: Verdict, fields: Option<Later<Vec<Field>>>) -> Verdict {
    match (verdict, fields) {
        (verdict @ (Verdict::Relay(_) | Verdict::Tunnel(_)), Some(fields)) => {
            Verdict::Amend(Box::new(Amended { fields, verdict }))
        }
        (verdict, _) => verdict,
    }
}

/// An endpoint's backend, and its place there.
fn place_of(endpoint: EndpointId, s: &Snapshot) -> Option<(&Backend, usize)> {
    let backend = s.backend_of(endpoint)?;
    let place = backend.endpoints.iter().position(|id| *id == endpoint)?;
    Some((backend, place))
}

/// Prefix of headers that are written for pickers, and are no part of any API.
const OF_PICKERS: &[u8] = b"x-gateway-inference-";

/// What a picker is told of a call: its method, path and those headers that go upstream, too.
fn headers(record: &Record, head: &RequestHead, s: &Snapshot) -> Vec<Field> {
    let mut told: Vec<Field> = Vec::new();
    let mut put = |name: &[u8], value: &[u8]| told.push((name.into(), value.into()));
    put(b":method", head.method_text().as_bytes());
    put(b":path", head.path().as_bytes());
    put(b":scheme", b"http");
    if let Some(host) = head.fields.only(Known::Host).ok().flatten() {
        put(b":authority", host);
    }
    put(b"x-request-id", record.id.as_bytes());
    let identity = s.identity.header.as_bytes();
    let route = record.route.and_then(|id| s.route(id));
    let listed = route.map_or(&[][..], |route| &route.forward_headers);
    let is_plain = record.operation == Some(Operation::Http);
    for field in head.fields.iter() {
        let goes_upstream = if is_plain {
            field.known != Known::Cookie && fields::forwards(&field, &head.fields, identity)
        } else {
            let api = ("", KnownSet::default());
            credential::forwards(&field, &head.fields, identity, listed, api)
        };
        if goes_upstream || field.name.starts_with(OF_PICKERS) {
            put(field.name, field.value);
        }
    }
    told
}

/// An endpoint's address as pickers know it; `None` for one that is a name.
fn address_of(endpoint: &Endpoint) -> Option<SocketAddr> {
    let ip = endpoint.origin.host.parse().ok()?;
    Some(SocketAddr::new(ip, endpoint.origin.port))
}
