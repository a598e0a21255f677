//! Which rule takes a call of files and batches, whose what it makes is, and what its caller may have a batch ask for.
//!
//! Not here: what becomes of the call (`crate::call`), what is asked of whom (`super`).

use std::rc::Rc;
use std::sync::Arc;

use policy::batch_store::{BatchStore, Batches, Owner};
use policy::batches::{self, Checker};
use policy::front::{Call as AskedCall, Env, Http};
use policy::refusal::{BatchRefusal, Refusal};
use policy::route::Chosen;
use policy::snapshot::{Backend, Snapshot};
use wire::batch::Api;
use wire::head::RequestHead;

use crate::call::{Call, OUT_OF_ORDER, Stop};
use crate::worker_snapshot::WorkerSnapshot;

impl Call {
    /// Some rule takes it, by whose API it is of.
    pub(super) fn choose(&mut self, api: Api, head: &RequestHead) -> Result<(), Stop> {
        let view = Rc::clone(&self.view);
        let workload = self.record().and_then(|record| record.workload);
        let Some(workload) = workload else {
            return Err(self.refuse(OUT_OF_ORDER));
        };
        match batches::chosen(view.snapshot(), workload, api, head) {
            Ok(_) => Ok(()),
            Err(refusal) => Err(self.refuse(refusal)),
        }
    }

    /// That rule.
    pub(super) fn rule<'s>(
        &self,
        api: Api,
        s: &'s Snapshot,
    ) -> Option<(Chosen<'s>, &'s Batches, &'s Backend)> {
        let workload = self.record()?.workload?;
        batches::allowed(s, workload, |of, _| of.api == api)
    }

    /// The same, of which there is one.
    pub(super) fn chosen<'s>(&mut self, api: Api, s: &'s Snapshot) -> Result<Chosen<'s>, Stop> {
        let rule = self.rule(api, s).map(|(chosen, ..)| chosen);
        rule.ok_or_else(|| self.refuse(OUT_OF_ORDER))
    }

    /// Whose what it makes is, and the backend where.
    pub(super) fn owner(
        &mut self,
        api: Api,
        view: &WorkerSnapshot,
    ) -> Result<(Owner, Arc<str>), Stop> {
        let s = view.snapshot();
        let of = self.record().and_then(|record| {
            let workload = s.workload(record.workload?)?;
            let owner = Owner::of(&workload.name, record.caller.as_deref());
            let (.., backend) = self.rule(api, s)?;
            Some((owner, Arc::clone(&backend.name)))
        });
        of.ok_or_else(|| self.refuse(OUT_OF_ORDER))
    }

    /// Who knows whose what is.
    pub(super) fn store(&mut self) -> Result<Arc<dyn BatchStore>, Stop> {
        let store = self.view.snapshot().batches.clone();
        store.ok_or_else(|| self.refuse(BatchRefusal::Unavailable))
    }

    /// Asks something of what its caller may.
    pub(super) fn checked(
        &mut self,
        api: Api,
        check: impl FnOnce(&Checker<'_>, u64, &Env<'_>) -> Result<(), Refusal>,
    ) -> Result<(), Stop> {
        let view = Rc::clone(&self.view);
        let checked = || {
            let record = self.record().ok_or(OUT_OF_ORDER)?;
            let (chosen, ..) = self.rule(api, view.snapshot()).ok_or(OUT_OF_ORDER)?;
            let checker = Checker {
                s: view.snapshot(),
                workload: record.workload.ok_or(OUT_OF_ORDER)?,
                caller: record.caller.as_ref(),
                chosen,
            };
            let unix_ms = record.started_unix_ms;
            view.env(self.worker.now(), |env| check(&checker, unix_ms, env))
        };
        checked().map_err(|refusal| self.refuse(refusal))
    }

    /// The rules of the configuration allow all that it asks for: operations, each with its model.
    pub(super) fn judged(
        &mut self,
        api: Api,
        who: &Http<'_>,
        asked: &[(&str, Option<&str>)],
    ) -> Result<(), Stop> {
        let view = Rc::clone(&self.view);
        let s = view.snapshot();
        let route = self.rule(api, s).map(|(chosen, ..)| chosen.route);
        let judge = |(operation, model): (&str, Option<&str>)| {
            let mut reason = None;
            let (record, rules) = (self.record()?, s.authority.as_deref()?);
            let call = AskedCall {
                route,
                ..asked_of(who, operation, model, s)
            };
            let judged = policy::front::authorize(rules, &call, record, s, &mut reason);
            judged.err().map(|refusal| (refusal, reason))
        };
        if let Some((refusal, reason)) = asked.iter().find_map(|asked| judge(*asked)) {
            self.facts.reason = reason;
            return Err(self.refuse(refusal));
        }
        Ok(())
    }

    /// The rules allow what it is itself, and its limits do.
    pub(super) fn let_in(&mut self, api: Api, who: &Http<'_>, operation: &str) -> Result<(), Stop> {
        let view = Rc::clone(&self.view);
        let s = view.snapshot();
        let chosen = self.chosen(api, s)?;
        let asked = AskedCall {
            route: Some(chosen.route),
            ..asked_of(who, operation, None, s)
        };
        self.admit(&asked, chosen, true)
    }
}

/// What rules are asked of.
fn asked_of<'a>(
    who: &Http<'a>,
    operation: &'a str,
    model: Option<&'a str>,
    s: &Snapshot,
) -> AskedCall<'a> {
    AskedCall {
        method: who.head.method_text(),
        path: who.head.path(),
        operation,
        source: s.clients.address(who.peer.address, who.head),
        route: None,
        model,
    }
}
