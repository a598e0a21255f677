//! A request that is of a login: it goes nowhere, counts against nothing, and leaves a record all the same.
//!
//! Not here: which requests are of one ([`crate::login`]), how a login goes on (whoever runs it).

use std::sync::Arc;
use std::time::Duration;

use wire::head::RequestHead;

use super::verdict::{Ask, Question, Verdict};
use super::{Exchange, Stage};
use crate::caller::{Caller, Proven};
use crate::login::{LoginReply, LoginSite, LoginStatus, LoginStep};
use crate::record::Outcome;
use crate::refusal::Refusal;
use crate::snapshot::Snapshot;
use crate::web;

/// How long a browser waits for the provider: whoever runs the login gives up before.
const LOGIN_WITHIN: Duration = Duration::from_secs(25);

impl Exchange {
    /// Has a step of a login done.
    #[cold]
    pub(super) fn log_in(
        &mut self,
        step: LoginStep,
        site: &LoginSite,
        head: &RequestHead,
        s: &Snapshot,
    ) -> Result<Verdict, Refusal> {
        if step == LoginStep::End && !web::may_bring_session(head, &s.web, &site.origin) {
            return Err(Refusal::OriginNotAllowed);
        }
        self.stage = Stage::LoggingIn;
        Ok(Verdict::Ask(Ask {
            question: Question::LogIn(Arc::clone(&site.login), step),
            within: LOGIN_WITHIN,
        }))
    }

    /// Says how it went on.
    #[cold]
    pub(super) fn logged_in(&mut self, reply: Box<LoginReply>, s: &Snapshot) -> Verdict {
        let outcome = match reply.status {
            LoginStatus::Ok | LoginStatus::Found | LoginStatus::SeeOther => Outcome::Completed,
            LoginStatus::BadRequest | LoginStatus::TooManyRequests | LoginStatus::Unavailable => {
                Outcome::Refused
            }
        };
        if let Some(user) = &reply.user {
            self.record.hides_user = s.identity.users_of_sessions().is_hidden;
            self.record.caller = Some(Arc::new(Caller {
                user: Some(Arc::clone(user)),
                by: Proven::Session,
                ..Caller::default()
            }));
        }
        self.record.reason = reply.reason.as_deref().map(Box::from);
        self.told(reply, outcome)
    }

    /// Sends a browser to log in, in place of a refusal.
    #[cold]
    pub(super) fn sent_to_log_in(&mut self, reply: LoginReply) -> Verdict {
        self.told(Box::new(reply), Outcome::Refused)
    }

    fn told(&mut self, reply: Box<LoginReply>, outcome: Outcome) -> Verdict {
        self.stage = Stage::Idle;
        self.record.status = reply.status.code();
        self.record.code = reply.code;
        self.ending = Some((outcome, reply.code));
        Verdict::Login(reply)
    }
}
