//! A request whose connection is to become a WebSocket of a provider's API: who may open one, and where it leads.
//!
//! Invariant: the connection itself holds nothing and costs nothing; what is asked for and answered on it does, call by call. Who has
//! nothing left opens no session, on which a server would work before anybody could be asked.
//! Not here: what is said on it (the host, [`crate::realtime`]).

use wire::head::RequestHead;

use super::admission::{Admitted, Opened, known_name};
use super::placing::Placing;
use super::verdict::Verdict;
use super::{Env, Exchange, look};
use crate::front::{self, Most, Reservation};
use crate::id::RouteId;
use crate::operation::Operation;
use crate::realtime;
use crate::record::Record;
use crate::refusal::Refusal;
use crate::snapshot::{Route, Snapshot};
use crate::usage_ledger::Estimate;

impl Exchange {
    /// The connection may be opened: the gate itself speaks with the client, or a backend does.
    #[cold]
    pub(super) fn open_socket(
        &mut self,
        opened: Opened,
        head: &RequestHead,
        placing: impl FnOnce(RouteId, &Record, &Snapshot) -> Option<Box<Placing>>,
        env: &mut Env<'_>,
    ) -> Result<Verdict, Refusal> {
        let s = env.snapshot;
        if opened.operation == Operation::ResponsesSocket {
            self.may_open(opened, head, (None, None), s)?;
            self.record.status = 101;
            return Ok(Verdict::Socket);
        }
        let asked = realtime::model(head)?;
        let asked = asked.as_deref();
        let chosen = realtime::route(s, opened.workload, self.record.caller.as_deref(), asked);
        let chosen = chosen?;
        self.record.route = Some(chosen.grant.route);
        self.record.model_asked = asked.map(Box::from);
        if asked.is_none() && chosen.route.model.is_some() {
            // There is no place for the route's own.
            return Err(Refusal::ModelRequired);
        }
        self.may_open(opened, head, (Some(chosen.route), asked), s)?;
        if realtime::names_call(head) && !chosen.route.is_exclusive {
            return Err(Refusal::SharedAccount { member: "call_id" });
        }
        let who = (opened.workload, self.record.caller.as_ref());
        let at = self.record.started_unix_ms;
        let spent = look::nothing_left(chosen.grant, who, env.now, at, s, env.levels);
        if let Some(refusal) = spent {
            return Err(refusal);
        }
        let model = chosen.route.model.clone();
        let admitted = Admitted {
            route: chosen.grant.route,
            listed: None,
            is_edited: false,
            force_usage: false,
            model: model.or_else(|| asked.map(|name| known_name(s, chosen.grant, name, env.shard))),
            withhold_usage: false,
            stream: false,
            prompt_estimate: 0,
            most: Most::Unsaid,
            estimate: Estimate {
                reserved: 0,
                at_most: Some(0),
            },
        };
        let placing = match s.is_balanced {
            true => placing(admitted.route, &self.record, s),
            false => None,
        };
        // Nothing is charged for it, so that it has no row of its own.
        let nothing = Some(Reservation::of_nothing(opened.workload, env.now));
        let _no_entry = self.admitted((admitted, nothing), opened, head, None, placing, env);
        Ok(self.entered(env))
    }

    fn may_open(
        &mut self,
        opened: Opened,
        head: &RequestHead,
        (route, model): (Option<&Route>, Option<&str>),
        s: &Snapshot,
    ) -> Result<(), Refusal> {
        let Some(rules) = s.authority.as_deref() else {
            return Ok(());
        };
        let call = front::Call {
            method: head.method_text(),
            path: head.path(),
            operation: opened.operation.as_str(),
            source: s.clients.address(self.peer, head),
            route,
            model,
        };
        let mut reason = None;
        let allowed = front::authorize(rules, &call, &self.record, s, &mut reason);
        self.record.reason = self.record.reason.take().or(reason);
        allowed
    }
}
