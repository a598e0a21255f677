//! A key's budgets of money need prices: one that would refuse every call is no budget.
//!
//! Invariant: a model that a key names and that has no price in its budget's currency is refused, and so is a budget in a
//! currency in which nothing that the key may ask for has a price.
//! Not here: what is refused when a call comes (`policy::budget`), the same of budgets in the file (`config`).

use identity::keys::Entry;
use policy::budget::Unit;
use policy::caller::Caller;
use policy::model::ModelPattern;
use policy::priced;
use policy::snapshot::Snapshot;

/// Whether the key that this entry makes can make a call that its budgets count.
///
/// # Errors
/// What it cannot, in words.
pub(super) fn check(entry: &Entry, s: &Snapshot) -> Result<(), String> {
    let caller = entry.caller();
    let Some(workload) = s.workload_named(entry.workload.as_bytes()) else {
        return Ok(());
    };
    let payer = Caller::payer(Some(&caller), Some(workload));
    let routes = || {
        let grants = s.grants(workload).iter();
        grants.filter_map(|grant| s.route(grant.route))
    };
    for budget in &caller.budgets {
        let Unit::Money(currency) = &budget.unit else {
            continue;
        };
        let is_priced = |may_ask: &dyn Fn(&str) -> bool| {
            let mut calls = routes().flat_map(|route| priced::of(route, Some(payer), s));
            calls.any(|call| call.currency == &**currency && call.asked.is_none_or(may_ask))
        };
        if !is_priced(&|model| caller.may_ask(model)) {
            return Err(format!(
                "a budget in {currency}: nothing that this key may ask for has a price in {currency}, so that every call \
                 would be refused; {}",
                priced::currencies(s)
            ));
        }
        let mut named = caller.models.iter().filter_map(ModelPattern::exact);
        if let Some(model) = named.find(|named| !is_priced(&|model| *model == ***named)) {
            return Err(format!(
                "a budget in {currency}: the model {model} has no price in {currency}, so that every call to it would be \
                 refused; {}",
                priced::currencies(s)
            ));
        }
    }
    Ok(())
}
