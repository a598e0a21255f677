//! Calls of files and batches under the rules of their workload: which rule takes them, what the calls of a batch may ask for, and what
//! they are charged once their result tells what they used.
//!
//! Invariant: a batch reaches no model that a call of the same caller could not.
//! Not here: whose files and batches are ([`crate::batch_store`]), reading them (`wire::batch`), sending (the host).

mod answered;
mod charged;
mod check;

use std::sync::Arc;

use wire::batch::{Api, Named};
use wire::head::RequestHead;

pub use self::answered::{answered, pieces};
pub use self::charged::{BATCH_GIVEN_UP, Late, Used, charge_late, given_up, price_of};
pub use self::check::{Checked, Checker, affordable};
use crate::attribution;
use crate::batch_store::{Batches, Maker, Owner};
use crate::caller::{Caller, Claims, Proven};
use crate::id::WorkloadId;
use crate::identity::Source;
use crate::record::Record;
use crate::refusal::Refusal;
use crate::route::{self, Chosen};
use crate::snapshot::{Backend, Route, Snapshot};

/// What the calls of a whole batch may ask for, in different models and operations.
pub const KINDS_MAX: usize = 64;
/// The header by which clients of Anthropic's API are known.
const ANTHROPIC: &[u8] = b"anthropic-version";

/// Who is behind a call and may not be kept, or not as it is: to be charged while the gate runs, and not written down.
#[must_use]
pub fn unkept_user(record: &Record) -> Option<Arc<str>> {
    let user = record.caller.as_deref()?.user.clone()?;
    (maker(record).user.is_none()).then_some(user)
}

/// Who makes a call, as far as it may be kept.
#[must_use]
pub fn maker(record: &Record) -> Maker {
    let Some(caller) = record.caller.as_deref() else {
        return Maker::default();
    };
    let user = caller.user.as_ref().filter(|user| {
        let is_kept = attribution::kept(user).is_some_and(|kept| *kept == ***user);
        is_kept && !record.hides_user
    });
    Maker {
        key: caller.key.clone(),
        user: user.cloned(),
        tags: caller.tags.clone(),
    }
}

/// The caller that the row of a batch is of, with the budgets that its key has now; none where nothing tells it from others. `unkept`
/// is its user where the row must not say it.
#[must_use]
pub fn caller(
    maker: &Maker,
    owner: &Owner,
    unkept: Option<Arc<str>>,
    s: &Snapshot,
) -> Option<Arc<Caller>> {
    let workload = &owner.workload;
    if *maker == Maker::default() && unkept.is_none() {
        return None;
    }
    let known = s.identity.sources.iter().find_map(|source| {
        let (Source::Credential(verifier), Some(key)) = (source, &maker.key) else {
            return None;
        };
        let mut known = verifier.budgeted().into_iter();
        known.find(|of| of.key.as_ref() == Some(key) && of.workload == *workload)
    });
    let own = known.as_deref();
    Some(Arc::new(Caller {
        workload: Arc::clone(workload),
        by: maker.key.as_ref().map_or(Proven::Token, |_| Proven::Key),
        key: maker.key.clone(),
        user: maker.user.clone().or(unkept),
        tags: maker.tags.clone(),
        claims: owner
            .issuer
            .as_deref()
            .map_or_else(Claims::default, Claims::of_issuer),
        limits: own.map_or_else(Box::default, |of| of.limits.clone()),
        budgets: own.map_or_else(Box::default, |of| of.budgets.clone()),
        ..Caller::default()
    }))
}

/// Whose API a call of files and batches is of.
#[must_use]
pub fn api_of(named: &Named<'_>, head: &RequestHead) -> Api {
    let is_anthropic = || head.fields.by_name(ANTHROPIC).next().is_some();
    named.api.unwrap_or_else(|| match is_anthropic() {
        true => Api::Anthropic,
        false => Api::OpenAi,
    })
}

/// The rule that lets a workload's calls of files and batches of this API, and the backend that they go to.
///
/// # Errors
/// None does.
pub fn chosen<'s>(
    s: &'s Snapshot,
    workload: WorkloadId,
    api: Api,
    head: &RequestHead,
) -> Result<(Chosen<'s>, &'s Batches, &'s Backend), Refusal> {
    allowed(s, workload, |batches, _| batches.api == api).ok_or_else(|| Refusal::operation(head))
}

/// The rule by which a batch at this backend is charged.
#[must_use]
pub fn allowed<'s>(
    s: &'s Snapshot,
    workload: WorkloadId,
    is_it: impl Fn(&Batches, &Backend) -> bool,
) -> Option<(Chosen<'s>, &'s Batches, &'s Backend)> {
    let of = |route: &'s Route| {
        let batches = route.batches.as_deref()?;
        let backend = s.backend(*route.backends.first()?)?;
        is_it(batches, backend).then_some((batches, backend))
    };
    let chosen = route::first(s, workload, |route| of(route).is_some())?;
    let (batches, backend) = of(chosen.route)?;
    Some((chosen, batches, backend))
}

#[cfg(test)]
mod tests;
