//! Somebody outside is asked whether a call may be made: by its head, or by what its body says, too.
//!
//! Invariant: who is asked about a body is asked before anything is reserved, so that a call which is refused has held
//! nothing.
//! Not here: who is asked ([`crate::authorizer`]), the rules of the configuration (`authorize`).

use std::sync::Arc;

use wire::call::CallHead;
use wire::head::RequestHead;

use super::admission::{self, Opened};
use super::{ANSWER_WITHIN, Ask, Env, Exchange, Question, Stage, Verdict};
use crate::authorizer::{Authorization, Authorizer};
use crate::refusal::Refusal;
use crate::snapshot::Snapshot;

/// A call that was read, and that somebody is asked about.
#[derive(Debug)]
pub(super) struct Asking {
    opened: Opened,
    call: Option<CallHead>,
}

impl Exchange {
    /// Asks about a call whose body was read.
    #[cold]
    pub(super) fn ask_about(
        &mut self,
        authorizer: &Arc<dyn Authorizer>,
        opened: Opened,
        call: Option<CallHead>,
        s: &Snapshot,
    ) -> Result<Verdict, Refusal> {
        let model = call.as_ref().and_then(|call| call.model.as_deref());
        self.record.model_asked = model.map(Box::from);
        let caller = self.record.caller.as_ref();
        self.record.route = admission::route_of(opened, caller, call.as_ref(), s)?;
        self.stage = Stage::Asking(Box::new(Asking { opened, call }));
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
                return Ok(self.unanswered(env));
            }
        }
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Reading(mut reading) => {
                reading.is_asking = false;
                self.stage = Stage::Reading(reading);
                self.read(env)
            }
            Stage::Asking(asking) => {
                let Asking { opened, call } = *asking;
                self.decide(opened, head, call, env)
            }
            Stage::Idle | Stage::LoggingIn | Stage::Identifying(_) | Stage::Active(_) => {
                Err(Refusal::Bug("an answer to no question"))
            }
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
