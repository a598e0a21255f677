//! A call until it is admitted: who asks, whether it may, and the body as it comes.
//!
//! Invariant: nothing is held for a call before its whole body was judged.
//! Not here: who calls ([`crate::front`]), whether a call may go on (`admission`).

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use wire::call::{CallHead, Inside, Minds};
use wire::head::RequestHead;
use wire::meter::Form;

use super::admission::{self, Admitted, Decision, NoExchange, Opened};
use super::placing::Placing;
use super::response::Metering;
use super::verdict::{Ask, Question, Told, Verdict};
use super::{
    ANSWER_WITHIN, Active, DURABLE_WITHIN, Env, Exchange, OUT_OF_ORDER, Phase, Stage, asking, look,
};
use crate::attempt::{Attempts, Sent, may_repeat};
use crate::billing::Billing;
use crate::caller::{Caller, Peer};
use crate::front::{
    self, CredentialQuestion, Http, Identified, Identity, Reservation, Unidentified, token_of,
};
use crate::id::{RouteId, WorkloadId};
use crate::identity::{Proof, Unproven};
use crate::operation::{Operation, Unknown};
use crate::plain::cors::is_preflight;
use crate::record::Record;
use crate::refusal::Refusal;
use crate::route;
use crate::snapshot::{Route, Snapshot, Workload};
use crate::web::{self, Hosts, Origins, Sender};

/// Below this rate, after the time that it may be silent, a body is refused.
const SLOWEST_BYTES_A_SECOND: u64 = 1 << 10;

/// Somebody is asked who calls.
#[derive(Debug)]
pub(super) struct Identifying {
    asking: Box<CredentialQuestion>,
    operation: Operation,
    length: Option<u64>,
    awaits_continue: bool,
}

/// Who asks for what is known; the body comes.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) opened: Opened,
    /// The call itself is believed who is behind it.
    pub(super) reads_user: bool,
    /// The caller's limits were looked at already.
    has_looked: bool,
    awaits_continue: bool,
    /// It is asked whether the call may be made.
    pub(super) is_asking: bool,
    /// Its body was looked into for what the upstream keeps.
    is_looked_into: bool,
}

/// Whether a route lets a page read its answers.
enum OfRoute {
    No,
    /// The one that a request is of.
    Page,
    /// Which asks what it may send.
    Asks(Box<Told>),
    /// Another one asks that.
    Refused,
}

/// Whether a call is of a gate with listeners that answers for every host and says nothing of pages, and is none of the gate's own
/// API: which pages may make it, its service says.
#[cold]
fn is_for_services(head: &RequestHead, s: &Snapshot) -> bool {
    s.web.hosts == Hosts::Any
        && s.web.origins == Origins::None
        && s.login.is_none()
        && s.plain.may_take(head)
        && matches!(Operation::of(head.method, head.path()), Err(Unknown::Path))
}

impl Exchange {
    pub(super) fn head(
        &mut self,
        head: &RequestHead,
        peer: &Peer,
        length: Option<u64>,
        awaits_continue: bool,
        env: &mut Env<'_>,
    ) -> Result<Verdict, Refusal> {
        let s = env.snapshot;
        let sent = match !s.listeners.is_empty() && is_for_services(head, s) {
            true => Err(None),
            false => {
                web::sender(head, &s.web, s.login.as_ref().map(|site| &*site.origin)).map_err(Some)
            }
        };
        let sender = match sent {
            Ok(sender) => sender,
            // What no page of the gate's may ask, one of a route's may.
            Err(refusal @ (None | Some(Refusal::OriginNotAllowed))) => {
                match (self.of_route(head, s), refusal) {
                    (OfRoute::Asks(told), _) => {
                        self.record.status = 204;
                        return Ok(Verdict::Preflight(Some(told)));
                    }
                    (OfRoute::Refused, _) => return Err(Refusal::OriginNotAllowed),
                    (OfRoute::No, Some(refusal)) => return Err(refusal),
                    (OfRoute::Page, _) | (OfRoute::No, None) => Sender::Client,
                }
            }
            Err(Some(refusal)) => return Err(refusal),
        };
        match sender {
            Sender::Client => {}
            Sender::Page(origin) => self.asked_by(origin),
            Sender::Preflight(origin) => {
                self.asked_by(origin);
                self.record.status = 204;
                return Ok(Verdict::Preflight(None));
            }
        }
        if let Some(site) = &s.login {
            let from = || s.clients.address(peer.address, head);
            if let Some(step) = site.step(head, from)? {
                return self.log_in(step, site, head, s);
            }
            site.check(head)?;
        }
        let operation = match admission::purpose(head, s) {
            Ok(operation) => operation,
            Err(NoExchange::Refused(refusal)) => return Err(refusal),
            Err(NoExchange::HandedOver(machine)) => return Ok(Verdict::HandOver(machine)),
        };
        self.record.operation = Some(operation);
        let unix_s = self.record.started_unix_ms / 1000;
        match front::identify(&Http { head, peer }, s, env.shard, unix_s) {
            Ok(Identified::As(known)) => {
                let opened = admission::open(head, length, operation, known.workload, s);
                self.identified(known, opened, awaits_continue, env)
            }
            Ok(Identified::Asks(asking)) => Ok(self.identify(Identifying {
                asking,
                operation,
                length,
                awaits_continue,
            })),
            Err(unidentified) => self.unidentified(unidentified, head, s),
        }
    }

    /// Asks who calls.
    #[cold]
    fn identify(&mut self, identifying: Identifying) -> Verdict {
        let CredentialQuestion {
            verifier,
            credential,
            ..
        } = &*identifying.asking;
        let question = Question::Identify(Arc::clone(verifier), credential.clone());
        self.stage = Stage::Identifying(Box::new(identifying));
        Verdict::Ask(Ask {
            question,
            within: ANSWER_WITHIN,
        })
    }

    #[cold]
    fn unidentified(
        &mut self,
        unidentified: Unidentified,
        head: &RequestHead,
        s: &Snapshot,
    ) -> Result<Verdict, Refusal> {
        let Unidentified { refusal, reason } = unidentified;
        self.record.reason = reason.map(|reason| reason.into());
        let site = s.login.as_ref();
        match site.and_then(|site| site.instead_of(&refusal, head)) {
            Some(reply) => Ok(self.sent_to_log_in(reply)),
            None => Err(refusal),
        }
    }

    /// It was answered whose the credential is.
    #[cold]
    pub(super) fn told_who(
        &mut self,
        head: &RequestHead,
        peer: &Peer,
        answer: Result<Proof, Unproven>,
        env: &mut Env<'_>,
    ) -> Result<Verdict, Refusal> {
        let Stage::Identifying(identifying) = std::mem::replace(&mut self.stage, Stage::Idle)
        else {
            return Err(OUT_OF_ORDER);
        };
        let Identifying {
            asking,
            operation,
            length,
            awaits_continue,
        } = *identifying;
        let (s, unix_s) = (env.snapshot, self.unix_ms(env.now) / 1000);
        match front::answered(&asking, answer, &Http { head, peer }, s, env.shard, unix_s) {
            Ok(known) => {
                let opened = admission::open(head, length, operation, known.workload, s);
                self.identified(known, opened, awaits_continue, env)
            }
            Err(unidentified) => self.unidentified(unidentified, head, s),
        }
    }

    /// Who calls is known; whether the call may go on is `opened`.
    #[inline(always)]
    fn identified(
        &mut self,
        known: Identity,
        opened: Result<Opened, Refusal>,
        awaits_continue: bool,
        env: &mut Env<'_>,
    ) -> Result<Verdict, Refusal> {
        let Identity {
            workload,
            caller,
            users,
        } = known;
        self.record.workload = Some(workload);
        self.record.hides_user = users.is_hidden;
        let names_user = caller.as_ref().is_some_and(|caller| caller.user.is_some());
        self.record.caller = caller;
        let opened = opened?;
        let workload = env.snapshot.workload(workload);
        let authorizer = workload.and_then(|workload| workload.authorizer.as_ref());
        self.stage = Stage::Reading(Reading {
            opened,
            reads_user: users.from_call && !names_user,
            has_looked: false,
            awaits_continue,
            is_asking: authorizer.is_some(),
            is_looked_into: false,
        });
        if let Some(authorizer) = authorizer {
            return Ok(asking::asked(authorizer));
        }
        self.read(env)
    }

    /// Whether a request is of a page that the route which takes it lets read its answers. Who calls is not known: a browser that asks
    /// what a page may send brings nothing by which it would be.
    #[cold]
    fn of_route(&mut self, head: &RequestHead, s: &Snapshot) -> OfRoute {
        let is_plain = s.plain.may_take(head)
            && matches!(Operation::of(head.method, head.path()), Err(Unknown::Path));
        let place = match is_plain {
            true => s.plain.take(head, &s.listeners, |_| true).ok(),
            false => None,
        };
        let route = place.and_then(|place| s.route(place.route));
        let cors = route.and_then(|route| route.actions.as_ref()?.cors.as_ref());
        let Some(cors) = cors else {
            return OfRoute::No;
        };
        let Some(origin) = cors.page(head) else {
            // The service is not asked what the gate answers for it.
            let is_asking = is_preflight(head);
            return if is_asking {
                OfRoute::Refused
            } else {
                OfRoute::No
            };
        };
        self.asked_by(origin);
        if !is_preflight(head) {
            return OfRoute::Page;
        }
        let mut told = Told::new();
        let page = self.page.as_deref().unwrap_or_default();
        cors.preflight(page, head, |name, value| {
            told.push((name.into(), value.into()))
        });
        OfRoute::Asks(Box::new(told))
    }

    #[cold]
    fn asked_by(&mut self, origin: &[u8]) {
        self.page = Some(String::from_utf8_lossy(origin).into());
    }

    /// The body may come.
    pub(super) fn read(&mut self, env: &mut Env<'_>) -> Result<Verdict, Refusal> {
        if matches!(&self.stage, Stage::Reading(reading) if reading.awaits_continue) {
            return self.look(env);
        }
        Ok(read_on(env))
    }

    /// Looks at the caller's limits, once: a call that will be refused whatever its body says is refused before the
    /// body is waited for.
    #[cold]
    pub(super) fn look(&mut self, env: &mut Env<'_>) -> Result<Verdict, Refusal> {
        // Whose limits they are, the body may have to say first.
        if let Stage::Reading(reading) = &mut self.stage
            && !std::mem::replace(&mut reading.has_looked, true)
            && !reading.reads_user
        {
            let (opened, began) = (reading.opened, self.record.started_unix_ms);
            let caller = self.record.caller.as_ref();
            if let Some((route, refusal)) =
                look::look(opened, caller, env.now, began, env.snapshot, env.levels)
            {
                self.record.route = Some(route);
                return Err(refusal);
            }
        }
        Ok(read_on(env))
    }

    pub(super) fn body(&mut self, bytes: usize, env: &mut Env<'_>) -> Result<Verdict, Refusal> {
        let bounds = &env.snapshot.bounds;
        let is_first = self.record.bytes_in == 0;
        self.record.bytes_in += bytes as u64;
        if self.record.bytes_in > bounds.body_bytes {
            let limit = bounds.body_bytes;
            return Err(Refusal::BodyTooLarge { limit });
        }
        let mut left = bounds.body_time;
        if !is_first {
            let _read_on = self.look(env)?;
            let taken = env.now.since(self.timing.began);
            let earned = Duration::from_secs(self.record.bytes_in / SLOWEST_BYTES_A_SECOND);
            if taken > (bounds.body_idle + earned).min(bounds.body_time) {
                return Err(Refusal::Slow);
            }
            left = left.saturating_sub(taken);
        }
        Ok(Verdict::Read {
            within: bounds.body_idle.min(left),
        })
    }

    /// The look inside of a long body, for whoever has the time: what it finds is the call's to keep. It is not done again.
    #[cold]
    pub fn look_inside(&mut self, call: &mut CallHead, s: &Snapshot) -> Option<Inside> {
        let Stage::Reading(reading) = &mut self.stage else {
            return None;
        };
        let workload = s.workload(reading.opened.workload)?;
        reading.is_looked_into = true;
        let operation = reading.opened.operation;
        let minds = minds(
            workload,
            self.record.caller.as_deref(),
            (call, operation),
            s,
        );
        call.inside(operation, minds)
    }

    pub(super) fn body_end(
        &mut self,
        head: &RequestHead,
        mut call: Option<&mut CallHead>,
        body: &[Bytes],
        env: &mut Env<'_>,
    ) -> Result<Verdict, Refusal> {
        let Stage::Reading(Reading {
            opened,
            is_looked_into,
            ..
        }) = self.stage
        else {
            return Err(OUT_OF_ORDER);
        };
        self.stage = Stage::Idle;
        let s = env.snapshot;
        let workload = s.workload(opened.workload);
        if let (Some(call), Some(workload), false) = (&mut call, workload, is_looked_into)
            && (workload.shares_account || call.may_name_more(opened.operation))
        {
            let caller = self.record.caller.as_deref();
            let minds = minds(workload, caller, (call, opened.operation), s);
            call.look_inside(opened.operation, minds, body);
        }
        if let Some(authorizer) = workload.and_then(|workload| workload.call_authorizer.as_ref()) {
            return self.ask_about(authorizer, opened, call, (head, body), s);
        }
        let placing =
            |route, record: &Record, s: &Snapshot| Placing::of(route, record, (head, body), s);
        self.decide(opened, head, call, placing, env)
    }

    /// Whether a call that was read goes on, and where. `placing` gives what is kept of it for balancers.
    #[inline(always)]
    pub(super) fn decide(
        &mut self,
        opened: Opened,
        head: &RequestHead,
        mut call: Option<&mut CallHead>,
        placing: impl FnOnce(RouteId, &Record, &Snapshot) -> Option<Box<Placing>>,
        env: &mut Env<'_>,
    ) -> Result<Verdict, Refusal> {
        let s = env.snapshot;
        if let Some(user) = call.as_mut().and_then(|call| call.user.take()) {
            self.said_user(user, opened.workload, s);
        }
        if opened.operation.lists_models() {
            route::check_named(self.record.caller.as_deref(), head.path())?;
        }
        let mut reason = None;
        let mut may = |route: Option<&Route>| {
            let Some(rules) = s.authority.as_deref() else {
                return Ok(());
            };
            let (own, besides) = call.as_deref().map_or((None, &[][..]), |call| {
                (call.model.as_deref(), &*call.besides)
            });
            let besides = besides.iter().map(|other| Some(&*other.model));
            [own].into_iter().chain(besides).try_for_each(|model| {
                let call = front::Call {
                    method: head.method_text(),
                    path: head.path(),
                    operation: opened.operation.as_str(),
                    source: s.clients.address(self.peer, head),
                    route,
                    model,
                };
                front::authorize(rules, &call, &self.record, s, &mut reason)
            })
        };
        if let Operation::Unread | Operation::KeptResponse = opened.operation
            && let Some(told) = self.kept_response(opened, head, s)?
        {
            may(None)?;
            return Ok(self.tell_kept(told, head, s));
        }
        if let Operation::ResponsesSocket | Operation::RealtimeSocket = opened.operation {
            return self.open_socket(opened, head, placing, env);
        }
        let (mut route, mut held) = (None, None);
        let decided = admission::admit(
            opened,
            head,
            self.record.caller.as_ref(),
            may,
            call.as_deref(),
            self.record.bytes_in,
            || self.tokens_before(env.levels),
            &mut route,
            &mut held,
            env.now,
            self.record.started_unix_ms,
            s,
            env.levels,
            env.shard,
        );
        self.record.route = route;
        if let Err(Refusal::ModelNotFound { model }) = &decided {
            reason = reason.or_else(|| route::why_private(s, opened.workload, model));
        }
        if reason.is_some() {
            self.record.reason = reason;
        }
        self.record.model_asked = call.as_mut().and_then(|call| call.model.take());
        let admitted = match decided? {
            Decision::Forward(admitted) => admitted,
            Decision::Models(names) => {
                let one = route::model_named(&names, head.path())?.cloned();
                self.record.status = 200;
                return Ok(Verdict::Models { names, one });
            }
        };
        let placing = match s.is_balanced {
            true => placing(admitted.route, &self.record, s),
            false => None,
        };
        Ok(self.admitted((admitted, held), opened, head, call, placing, env))
    }

    /// The call says who is behind it, and is believed.
    #[cold]
    fn said_user(&mut self, user: Box<str>, workload: WorkloadId, s: &Snapshot) {
        let caller = self.record.caller.as_deref().cloned();
        // Without one a header says the workload.
        let mut caller = caller.unwrap_or_else(|| Caller {
            workload: s
                .workload(workload)
                .map_or("".into(), |w| Arc::clone(&w.name)),
            ..Caller::default()
        });
        caller.user = Some(user.into());
        caller.is_user_said = true;
        self.record.caller = Some(Arc::new(caller));
    }

    /// Holds what was reserved, and has it entered in the ledger.
    #[inline(always)]
    pub(super) fn admitted(
        &mut self,
        (admitted, reservation): (Admitted, Option<Reservation>),
        opened: Opened,
        head: &RequestHead,
        call: Option<&mut CallHead>,
        placing: Option<Box<Placing>>,
        env: &mut Env<'_>,
    ) -> Verdict {
        self.record.listed = admitted.listed;
        self.record.model_sent = admitted.model;
        let estimate = admitted.estimate;
        self.stage = Stage::Active(Active {
            reservation,
            estimate,
            prompt_estimate: admitted.prompt_estimate,
            most: admitted.most,
            call: call
                .filter(|_| admitted.is_edited)
                .map(|call| Box::new(std::mem::take(call))),
            force_usage: admitted.force_usage,
            withhold_usage: admitted.withhold_usage,
            asks_usage: false,
            was_refused_usage: false,
            is_prompt_unseen: self.is_prompt_unseen(),
            stream: admitted.stream,
            // A listed form is not read: nobody knows what it does.
            repeats: !(opened.listed.is_some() && opened.operation.is_form())
                && may_repeat(opened.operation, head.method),
            attempts: Attempts::on(admitted.route, env.snapshot),
            phase: Phase::Entering,
            caller_token: env.snapshot.route(admitted.route).and_then(|route| {
                token_of(self.record.caller.as_deref(), route, head, env.snapshot)
            }),
            answering: Vec::new(),
            asked: None,
            failed: None,
            unfit: None,
            sent: Cell::new(Sent::Nothing),
            sent_before: Cell::new(Sent::Nothing),
            ended: None,
            span: None,
            metering: Metering::Nothing,
            form: Form::Unread,
            left: None,
            placing,
        });
        let route = env.snapshot.route(admitted.route);
        Verdict::Ask(Ask {
            question: Question::Enter {
                estimate,
                is_durable: route.is_some_and(|route| route.billing == Billing::Strict),
            },
            within: DURABLE_WITHIN,
        })
    }
}

/// What of a call's body matters, besides its own members, to who may make it.
pub(crate) fn minds(
    workload: &Workload,
    caller: Option<&Caller>,
    (call, operation): (&CallHead, Operation),
    s: &Snapshot,
) -> Minds {
    let is_held_to_models = || {
        s.authority.is_some()
            || caller.is_some_and(|caller| !caller.models.is_empty())
            || route::minds_models(s, workload)
    };
    Minds {
        stored: workload.shares_account,
        models: call.may_name_more(operation) && is_held_to_models(),
    }
}

/// More of the body is waited for.
fn read_on(env: &Env<'_>) -> Verdict {
    let bounds = &env.snapshot.bounds;
    Verdict::Read {
        within: bounds.body_idle.min(bounds.body_time),
    }
}
