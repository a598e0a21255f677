//! What the calls of a batch ask for, held against what their caller may.
//!
//! Invariant: each is looked at as one that comes by itself, but for what counts: a limit of tokens does not wait for a batch.
//! Not here: reading them (`wire::batch`), rules that are asked once for each model (the host's order).

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use wire::batch::{LineFault, OneCall};

use super::KINDS_MAX;
use crate::budget_reservation::{self, Asked, exhausted};
use crate::caller::Caller;
use crate::exchange::{check_besides, check_state, minds};
use crate::front::Env;
use crate::id::WorkloadId;
use crate::operation::Operation;
use crate::refusal::{BatchRefusal, Refusal};
use crate::route::{self, Chosen};
use crate::snapshot::Snapshot;

/// Who has a batch made, under which rule.
#[derive(Debug, Clone, Copy)]
pub struct Checker<'s> {
    /// The configuration.
    pub s: &'s Snapshot,
    /// Whose workload it is.
    pub workload: WorkloadId,
    /// Who calls.
    pub caller: Option<&'s Arc<Caller>>,
    /// The rule that takes batches.
    pub chosen: Chosen<'s>,
}

/// What all of its calls ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// For what, and which model, each once.
    pub calls: Box<[(Operation, Box<str>)]>,
    /// How many there are.
    pub count: usize,
}

impl Checker<'_> {
    /// Looks at each of a batch's calls; `bytes` are those that they were read from.
    ///
    /// # Errors
    /// The first that may not be made, by its number.
    pub fn all(
        &self,
        calls: impl Iterator<Item = (usize, Result<OneCall, LineFault>)>,
        bytes: &Bytes,
    ) -> Result<Checked, Refusal> {
        let (mut kinds, mut count) = (BTreeSet::new(), 0);
        for (line, read) in calls {
            let refused = |says: String| BatchRefusal::Call {
                line,
                says: says.into(),
            };
            let mut one = read.map_err(|fault| refused(fault.to_string()))?;
            if one.call.stream {
                let says = "no call of a batch is answered by a stream; leave `stream` out";
                return Err(refused(says.to_owned()).into());
            }
            let kind = self.one(&mut one, bytes);
            let kind = kind.map_err(|refusal| refused(refusal.to_string()))?;
            let operation = kind.0;
            kinds.insert(kind);
            // They are asked about again where a batch is made of this later.
            let besides = one.call.besides.iter().map(|other| &other.model);
            kinds.extend(besides.map(|model| (operation, Box::from(&**model))));
            if kinds.len() > KINDS_MAX {
                return Err(refused("a batch asks for at most 64 models".to_owned()).into());
            }
            count += 1;
        }
        Ok(Checked {
            calls: kinds.into_iter().collect(),
            count,
        })
    }

    fn one(&self, one: &mut OneCall, bytes: &Bytes) -> Result<(Operation, Box<str>), Refusal> {
        let Self {
            s,
            workload,
            caller,
            chosen,
        } = *self;
        let (operation, call) = (one.operation, &mut one.call);
        let model = call.model.clone().ok_or(Refusal::ModelRequired)?;
        self.named(&model)?;
        if let Some(of) = s.workload(workload)
            && (of.shares_account || call.may_name_more(operation))
        {
            let minds = minds(of, caller.map(|caller| &**caller), (call, operation), s);
            let end = one.body.end.min(bytes.len());
            let body = bytes.slice(one.body.start.min(end)..end);
            call.look_inside(operation, minds, &[body]);
        }
        if call.leans_on_upstream() {
            check_state(operation, call, chosen.route, s)?;
        }
        if !call.besides.is_empty() {
            check_besides(workload, call, chosen.route, caller, s)?;
        }
        Ok((operation, model))
    }

    /// Whether a call for this model may be one of the batch's.
    ///
    /// # Errors
    /// It may not.
    pub fn named(&self, model: &str) -> Result<(), Refusal> {
        let named = || model.to_owned();
        if self.caller.is_some_and(|caller| !caller.may_ask(model)) {
            return Err(Refusal::ModelNotOwn { model: named() });
        }
        let taken = route::choose(self.s, self.workload, Some(model))?;
        let backend = self.chosen.route.backends.first();
        let backend = backend.and_then(|id| self.s.backend(*id));
        // Nothing is put in the place of a name within a file.
        let is_itself = backend.is_some_and(|backend| backend.model_name(model) == model);
        match (taken.at == self.chosen.at, is_itself) {
            (true, true) => Ok(()),
            (false, _) => Err(BatchRefusal::ModelNotBatched { model: named() }.into()),
            (true, false) => Err(Refusal::ModelNotFound { model: named() }),
        }
    }
}

/// Whether budgets have anything left for calls to these models.
///
/// # Errors
/// One has not, or cannot count them.
pub fn affordable(
    of: &Checker<'_>,
    calls: &[(Operation, Box<str>)],
    unix_ms: u64,
    env: &Env<'_>,
) -> Result<(), Refusal> {
    let (s, levels) = (env.snapshot, env.levels);
    let who = s.who(of.workload, of.caller);
    if let Some(refusal) = exhausted(of.workload, who, unix_ms, s, levels) {
        return Err(refusal);
    }
    for (_, model) in calls {
        let asked = Asked {
            workload: of.workload,
            caller: of.caller,
            model: Some(model),
            backends: &of.chosen.route.backends,
            prompt: 1,
            completion: 0,
            pieces: 0,
            fixed: None,
        };
        budget_reservation::reserve(&asked, unix_ms, s, levels)?.release(levels);
    }
    Ok(())
}
