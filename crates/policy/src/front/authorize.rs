//! The rules of the configuration, asked about one call of whatever protocol.
//!
//! Not here: the languages that rules are written in (the host's), somebody outside who is asked
//! ([`crate::authorizer`]).

use std::net::IpAddr;

use crate::authority::{Asked, Decision, Members, Rules};
use crate::record::Record;
use crate::refusal::Refusal;
use crate::snapshot::{Route, Snapshot};

/// A call whose caller, and whose route where it takes one, are known, as rules see it.
#[derive(Debug)]
pub struct Call<'a> {
    /// Its method; of a protocol that has none, what it is called there.
    pub method: &'a str,
    /// Its path, or what names the thing that is called.
    pub path: &'a str,
    /// What it asks for, in a word.
    pub operation: &'a str,
    /// Where it comes from.
    pub source: IpAddr,
    /// The rule that takes it.
    pub route: Option<&'a Route>,
    /// The model that it names.
    pub model: Option<&'a str>,
}

/// Refuses a call that the rules do not allow; `reason` learns which of them, or what kept them from deciding.
///
/// # Errors
/// [`Refusal::NotAuthorized`].
#[inline(never)]
pub fn authorize(
    rules: &dyn Rules,
    call: &Call<'_>,
    record: &Record,
    s: &Snapshot,
    reason: &mut Option<Box<str>>,
) -> Result<(), Refusal> {
    let decision = asked(call, record, s, |facts| rules.decide(facts));
    if decision.allowed {
        return Ok(());
    }
    *reason = Some(said(&decision));
    Err(Refusal::NotAuthorized)
}

/// Asks something of the facts of a call.
pub fn asked<T>(
    call: &Call<'_>,
    record: &Record,
    s: &Snapshot,
    decide: impl FnOnce(&Asked<'_>) -> T,
) -> T {
    let caller = record.caller.as_deref();
    let workload = record.workload.and_then(|id| s.workload(id));
    let tags: Vec<(&str, &str)> = caller.map_or_else(Vec::new, |caller| {
        caller.tags.iter().map(|(n, v)| (&**n, &**v)).collect()
    });
    let route = call.route;
    let backends: Vec<&str> = route.map_or_else(Vec::new, |route| {
        let backends = route.backends.iter().filter_map(|id| s.backend(*id));
        backends.map(|backend| &*backend.name).collect()
    });
    decide(&Asked {
        workload: workload.map_or("", |workload| &workload.name),
        key: caller.and_then(|caller| caller.key.as_deref()),
        user: caller.and_then(|caller| caller.user.as_deref()),
        tags: &tags,
        claims: caller.map_or(&Members::NONE, |caller| caller.claims.members()),
        method: call.method,
        path: call.path,
        operation: call.operation,
        model: call.model,
        route: route.map_or("", |route| &route.name),
        backends: &backends,
        source: call.source,
        unix_ms: record.started_unix_ms,
    })
}

/// Why not, for the log.
fn said(decision: &Decision) -> Box<str> {
    let why = decision.why.as_deref();
    match (&decision.by, why) {
        (Some(rule), Some(why)) => format!("rule {rule}: {why}"),
        (Some(rule), None) => format!("rule {rule}"),
        (None, Some(why)) => format!("no rule allows it: {why}"),
        (None, None) => "no rule allows it".to_owned(),
    }
    .into()
}
