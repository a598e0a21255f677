//! Calls of plain HTTP that would reach an address at which models are served, past what counts calls to them.
//!
//! Invariant: what counts is the path that goes upstream, whatever the client's was: as the route rewrites it, and in copies too.
//! Not here: which calls a rule takes (`plain`).

use std::borrow::Cow;

use policy::id::BackendId;
use policy::operation::call_at_end;
use policy::plain::Rule;
use policy::plain::actions::PathEdit;
use policy::snapshot::{Endpoint, Snapshot};
use policy::wire::head::percent_decoded;

use super::backend::number;
use super::unread::address;
use crate::decode::At;
use crate::scalar::Name;
use crate::schema::Route;

/// How paths of calls to models end that other APIs than OpenAI's have.
const OF_OTHERS: [&str; 6] = [
    "/v2/chat",
    "/v2/embed",
    "/converse",
    "/converse-stream",
    "/invoke",
    "/invoke-with-response-stream",
];

impl super::Lowering<'_> {
    /// Addresses that serve models too are reached through exact paths alone, and by none that ends as a call to a model does.
    pub(super) fn plain_addresses(
        &mut self,
        route: &Route,
        rules: &[Rule],
        edit: Option<&PathEdit>,
        s: &Snapshot,
    ) {
        let mirrors = route.mirrors.items().iter();
        let mirrors = mirrors.filter_map(|(_, mirror)| mirror.as_ref()?.backend.get());
        for at in route.backend.items().iter().chain(mirrors) {
            self.plain_address(at, rules, edit, s);
        }
    }

    fn plain_address(
        &mut self,
        at: &At<Name>,
        rules: &[Rule],
        edit: Option<&PathEdit>,
        s: &Snapshot,
    ) {
        let Some(index) = s.backends.iter().position(|b| *b.name == *at.value.0) else {
            return;
        };
        // One that serves models has a fault of its own.
        if s.backends
            .get(index)
            .is_none_or(|backend| !backend.is_plain)
        {
            return;
        }
        let id = BackendId(number(index));
        let serves_models = |endpoint: &&Endpoint| {
            s.backend(endpoint.backend)
                .is_some_and(|backend| !backend.is_plain)
        };
        for ours in s.endpoints.iter().filter(|e| e.backend == id) {
            let mut theirs = s.endpoints.iter().filter(serves_models);
            let shared = theirs.find(|endpoint| address(endpoint) == address(ours));
            let Some(backend) = shared.and_then(|endpoint| s.backend(endpoint.backend)) else {
                continue;
            };
            let is_safe = |rule: &&Rule| {
                let sent = sent(rule, edit);
                sent.is_some_and(|path| !may_be_a_call(&format!("{}{path}", ours.base_path)))
            };
            let Some(odd) = rules.iter().find(|rule| !is_safe(rule)) else {
                continue;
            };
            let becomes = match sent(odd, edit).filter(|_| edit.is_some()) {
                Some(path) => format!(", which becomes {path},"),
                None => String::new(),
            };
            let says = format!(
                "has an address that serves models as the backend {}, and {}{becomes} would let calls to them pass uncounted",
                backend.name, odd.path
            );
            let hint =
                "list its paths one by one, such as path: /metrics, and none of a call to a model";
            self.fault(&at.place, says, hint);
            return;
        }
    }
}

/// The one path that goes upstream of the calls that a rule takes; `None` where there are several.
fn sent<'a>(rule: &'a Rule, edit: Option<&'a PathEdit>) -> Option<Cow<'a, str>> {
    match (edit, rule.path.exact()) {
        (Some(PathEdit::Whole(path)), _) => Some(Cow::Borrowed(path)),
        (Some(edit), Some(path)) => Some(edit.of(path)),
        (None, Some(path)) => Some(Cow::Borrowed(path)),
        (_, None) => None,
    }
}

/// Whether some server could read a path as that of a call to a model.
fn may_be_a_call(path: &str) -> bool {
    let decoded = String::from_utf8_lossy(&percent_decoded(path)).to_ascii_lowercase();
    let segments: Vec<&str> = decoded.split('/').filter(|of| !of.is_empty()).collect();
    let is_odd = |segment: &&str| matches!(*segment, "." | "..") || segment.contains('%');
    let plain = format!("/{}", segments.join("/"));
    segments.iter().any(is_odd)
        || segments.last().is_some_and(|last| last.contains(':'))
        || call_at_end(&plain).is_some()
        || OF_OTHERS.iter().any(|end| plain.ends_with(end))
}
