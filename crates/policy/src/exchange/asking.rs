//! Somebody outside is asked whether a call may be made: by its head, or by what its body says, too.
//!
//! Invariant: who is asked about a body is asked before anything is reserved, so that a call which is refused has held
//! nothing.
//! Not here: who is asked ([`crate::authorizer`]), the rules of the configuration (`authorize`).

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use wire::call::CallHead;
use wire::head::RequestHead;

use super::admission::{self, Opened};
use super::placing::Placing;
use super::{ANSWER_WITHIN, Ask, Env, Exchange, OUT_OF_ORDER, Question, Stage, Verdict};
use crate::authorizer::{Asked, Authorization, Authorizer};
use crate::refusal::Refusal;
use crate::snapshot::Snapshot;

/// A call that was read, and that somebody is asked about.
#[derive(Debug)]
pub(super) struct CallQuestion {
    opened: Opened,
    call: Option<CallHead>,
    placing: Option<Box<Placing>>,
}

impl Exchange {
    /// Asks about a call whose body was read.
    #[cold]
    pub(super) fn ask_about(
        &mut self,
        authorizer: &Arc<dyn Authorizer>,
        opened: Opened,
        call: Option<&mut CallHead>,
        (head, body): (&RequestHead, &[Bytes]),
        s: &Snapshot,
    ) -> Result<Verdict, Refusal> {
        let model = call.as_deref().and_then(|call| call.model.as_deref());
        self.record.model_asked = model.map(Box::from);
        let caller = self.record.caller.as_ref();
        self.record.route = admission::route_of(opened, head, caller, call.as_deref(), s)?;
        let call = call.map(std::mem::take);
        // The body is not at hand when the answer comes.
        let placing = match (s.is_balanced, self.record.route) {
            (true, Some(route)) => Placing::of(route, &self.record, (head, body), s),
            _ => None,
        };
        self.stage = Stage::Asking(Box::new(CallQuestion {
            opened,
            call,
            placing,
        }));
        Ok(asked(authorizer))
    }

    /// It was answered whether the call may be made.
    #[cold]
    pub(super) fn told_whether(
        &mut self,
        head: &RequestHead,
        answer: Authorization,
        env: &mut Env<'_>,
    ) -> Result<Verdict, Refusal> {
        match answer {
            Authorization::Allowed => {}
            Authorization::Denied(reason) => {
                self.record.reason = Some(reason);
                return Err(Refusal::NotAuthorized);
            }
            Authorization::Unavailable(reason) => {
                self.record.reason = Some(reason);
                return Err(Refusal::AuthorizerUnavailable);
            }
        }
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Reading(mut reading) => {
                reading.is_asking = false;
                self.stage = Stage::Reading(reading);
                self.read(env)
            }
            Stage::Asking(asking) => {
                let CallQuestion {
                    opened,
                    mut call,
                    placing,
                } = *asking;
                self.decide(opened, head, call.as_mut(), |_, _, _| placing, env)
            }
            Stage::Idle | Stage::LoggingIn | Stage::Identifying(_) | Stage::Active(_) => {
                Err(OUT_OF_ORDER)
            }
        }
    }
}

impl Exchange {
    /// The call, as far as it is known, for who is asked whether it may be made.
    #[must_use]
    pub fn asked<'a>(&'a self, head: &'a RequestHead, peer: IpAddr, s: &'a Snapshot) -> Asked<'a> {
        let record = &self.record;
        let workload = record.workload.and_then(|id| s.workload(id));
        let route = record.route.and_then(|id| s.route(id));
        let backends = route.map_or(&[][..], |route| &route.backends).iter();
        let backends = backends.filter_map(|id| s.backend(*id));
        Asked {
            id: &record.id,
            head,
            source: s.clients.address(peer, head),
            workload: workload.map_or("", |workload| &workload.name),
            caller: record.caller.as_deref(),
            model: record.model_asked.as_deref(),
            route: route.map(|route| &*route.name),
            backends: backends.map(|backend| &*backend.name).collect(),
        }
    }
}

/// The question.
pub(super) fn asked(authorizer: &Arc<dyn Authorizer>) -> Verdict {
    Verdict::Ask(Ask {
        question: Question::Authorize(Arc::clone(authorizer)),
        within: ANSWER_WITHIN,
    })
}
