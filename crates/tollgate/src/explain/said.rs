//! The answer of `tollgate explain`, for people and for programs.
//!
//! Not here: how it is found (`explain`).

use std::fmt::Write as _;

use ledger::report::wrapped;
use policy::balancing::By;
use policy::budget::Budget;
use policy::limit::Window;
use policy::operation::Operation;
use policy::record::Record;
use policy::snapshot::{Grant, Snapshot};
use policy::subject::Whose;
use serde_json::{Value, json};

use super::Outcome;

/// The grant by which the call would go.
fn grant<'s>(record: &Record, s: &'s Snapshot) -> Option<&'s Grant> {
    let workload = s.workload(record.workload?)?;
    workload.grant_of(record.route?).map(|(_, grant)| grant)
}

/// For programs.
pub(super) fn json(outcome: &Outcome, s: &Snapshot) -> String {
    let (record, refused) = (&outcome.record, outcome.refused.as_ref());
    let caller = record.caller.as_deref();
    let workload = record.workload.and_then(|id| s.workload(id));
    let route = record.route.and_then(|id| s.route(id));
    let backends = backends(outcome, s);
    let tags: serde_json::Map<String, Value> = caller.map_or_else(Default::default, |caller| {
        let tags = caller.tags.iter();
        tags.map(|(name, value)| (name.to_string(), value.to_string().into()))
            .collect()
    });
    let said = json!({
        "would": if refused.is_none() { "go upstream" } else { "be refused" },
        "status": refused.map(|reply| reply.status),
        "code": refused.map(|reply| reply.code),
        "message": refused.map(|reply| &reply.message),
        "reason": record.reason.as_deref().or(hidden(outcome)),
        "rule": outcome.rule.as_deref().filter(|_| refused.is_none()),
        "workload": workload.map(|workload| &*workload.name),
        "identity": match caller {
            Some(caller) => caller.by.as_str(),
            None if is_by_default(outcome) => "default",
            None => "header",
        },
        "key": caller.and_then(|caller| caller.key.as_deref()),
        "user": caller.and_then(|caller| caller.user.as_deref()),
        "tags": tags,
        "operation": record.operation.map(|operation| operation.as_str()),
        "model": record.model_asked,
        "route": route.map(|route| &*route.name),
        "tool": outcome.tool.as_ref().and_then(|tool| tool.shown.as_deref()),
        "own_tool": outcome.tool.as_ref().and_then(|tool| tool.own.as_deref()),
        "credential": outcome.tool.as_ref().and_then(|tool| tool.credential.as_deref()),
        "backends": backends,
        "model_sent": record.model_sent.as_deref(),
        "translated": translated(record, s)
            .map(|(backend, becomes)| (backend.to_owned(), becomes.map(Operation::as_str).into()))
            .collect::<serde_json::Map<String, Value>>(),
        "balancing": balanced(outcome, s)
            .map(|(backend, by, _)| (backend.to_owned(), by.as_str().into()))
            .collect::<serde_json::Map<String, Value>>(),
        "limits": limits(outcome, s),
        "budgets": budgets(outcome, s),
    });
    serde_json::to_string_pretty(&said).unwrap_or_default()
}

/// For people.
pub(super) fn text(outcome: &Outcome, s: &Snapshot, width: usize) -> String {
    let (record, refused) = (&outcome.record, outcome.refused.as_ref());
    let mut out = String::new();
    let mut line = |name: &str, value: &str| {
        let line = format!("{name:<10} {value}");
        let _written = writeln!(out, "{}", wrapped(&line, width, 11));
    };
    match refused {
        None if hangs_on_arguments(outcome) => line(
            "verdict",
            "the call would go upstream, if its arguments meet the condition (--path /mcp --body FILE has them looked at)",
        ),
        None => line("verdict", "the call would go upstream"),
        Some(reply) => {
            line(
                "verdict",
                &format!("refused: {} {}", reply.status, reply.code),
            );
            line("told", &reply.message);
        }
    }
    if let Some(reason) = record.reason.as_deref().or(hidden(outcome)) {
        line("reason", reason);
    }
    if let (None, Some(rule)) = (refused, &outcome.rule) {
        line("rule", &format!("allowed by {rule}"));
    }
    let caller = record.caller.as_deref();
    match record.workload.and_then(|id| s.workload(id)) {
        Some(workload) => {
            let how = match caller {
                Some(caller) => format!("known by {}", caller.by.as_str()),
                None if is_by_default(outcome) => {
                    let header = &*s.identity.header;
                    format!("by `default` of `identity`, as the call has no header {header}")
                }
                None => format!("known by the header {}", &*s.identity.header),
            };
            line("workload", &format!("{}, {how}", workload.name));
        }
        None => line("workload", &format!("not known{}", registered(s))),
    }
    if let Some(caller) = caller {
        if let Some(key) = &caller.key {
            line("key", key);
        }
        if let Some(user) = &caller.user {
            line("user", user);
        }
        for (name, value) in &caller.tags {
            line("tag", &format!("{name}={value}"));
        }
    }
    if let Some(operation) = record.operation {
        let model = record.model_asked.as_deref();
        let model = model.map_or_else(String::new, |model| format!(", {model}"));
        line("call", &format!("{}{model}", operation.words()));
    }
    if let Some(route) = record.route.and_then(|id| s.route(id)) {
        let backends = backends(outcome, s);
        let sent = record.model_sent.as_deref();
        let sent = sent.map_or_else(String::new, |model| format!(", as {model}"));
        let backends = match route.weights.as_slice() {
            [] => backends.join(", then "),
            weights => drawn(&backends, weights),
        };
        line("route", &format!("{} to {backends}{sent}", route.name));
    }
    for (backend, by, endpoints) in balanced(outcome, s) {
        let what = match by {
            By::RoundRobin => "each takes its turn",
            By::LeastRequest => "the one with the fewest calls of the gate takes it",
            By::LeastLoad => "the one with the least to do takes it",
            By::PrefixCache => {
                "the one that has the least to do with it takes it: less of its prompt where it has seen the beginning"
            }
        };
        let told = format!(
            "{}: of {endpoints} addresses of {backend} {what}",
            by.as_str()
        );
        line("balancing", &told);
    }
    let own = outcome.tool.as_ref().and_then(|tool| tool.own.as_deref());
    if let Some(own) = own {
        line("tool", own);
    }
    let named = outcome.tool.as_ref().filter(|tool| tool.shown.is_some());
    if let (None, Some(tool)) = (refused, named) {
        if let Some(shown) = &tool.shown {
            line("tool", shown);
        }
        if let Some(credential) = &tool.credential {
            line("credential", credential);
        }
        line(
            "tool",
            match tool.server {
                Some(_) => "whether the server has it, `tollgate mcp list` says of a running gate",
                None => "which server has it, `tollgate mcp list` says of a running gate",
            },
        );
    }
    for (backend, becomes) in translated(record, s) {
        let asked = record.operation.map_or("", Operation::words);
        let told = match becomes {
            Some(becomes) => format!("at {backend} from {asked} to {}", becomes.words()),
            None => format!("{backend} speaks an API without {asked}, and is not asked"),
        };
        line("translated", &told);
    }
    for limit in limits(outcome, s) {
        line("limit", &limit);
    }
    for budget in budgets(outcome, s) {
        line("budget", &budget);
    }
    out
}

/// Where it may go, in order: a tool to its server alone.
fn backends<'s>(outcome: &Outcome, s: &'s Snapshot) -> Vec<&'s str> {
    let own = outcome.tool.as_ref().and_then(|tool| tool.server);
    let route = outcome.record.route.and_then(|id| s.route(id));
    let all = route.map_or(&[][..], |route| &route.backends);
    let ids = own.as_ref().map_or(all, std::slice::from_ref).iter();
    ids.filter_map(|id| Some(&*s.backend(*id)?.name)).collect()
}

/// Backends of which one is drawn, with their weights.
fn drawn(backends: &[&str], weights: &[u32]) -> String {
    let each = backends.iter().zip(weights);
    let each: Vec<String> = each
        .map(|(backend, weight)| format!("{backend} ({weight})"))
        .collect();
    format!("one of {}, by weight", each.join(", "))
}

/// The backends whose addresses are chosen by more than weight: how, and among how many.
fn balanced<'s>(outcome: &Outcome, s: &'s Snapshot) -> impl Iterator<Item = (&'s str, By, usize)> {
    let route = outcome.record.route.and_then(|id| s.route(id));
    let backends = route.into_iter().flat_map(|route| &route.backends);
    let backends = backends.filter_map(|id| s.backend(*id));
    backends.filter_map(|backend| {
        let by = backend.balancer.as_ref()?.by();
        Some((&*backend.name, by, backend.endpoints.len()))
    })
}

/// Whether it hangs on arguments that nobody told.
fn hangs_on_arguments(outcome: &Outcome) -> bool {
    let tool = outcome.tool.as_ref();
    tool.is_some_and(|tool| tool.hangs_on_arguments)
}

/// Why nobody sees the tool, or this call may not use it.
fn hidden(outcome: &Outcome) -> Option<&str> {
    outcome.tool.as_ref()?.hidden.as_deref()
}

/// The backends that speak another API than the call, and what it becomes there, if it can be said at all.
fn translated<'a>(
    record: &'a Record,
    s: &'a Snapshot,
) -> impl Iterator<Item = (&'a str, Option<Operation>)> {
    let route = record.route.and_then(|id| s.route(id));
    let backends = route.into_iter().flat_map(|route| &route.backends);
    let backends = backends.filter_map(|id| s.backend(*id));
    backends.filter_map(|backend| {
        let asked = record.operation?;
        let filter = backend
            .filters
            .iter()
            .find(|filter| filter.applies(asked) && !filter.passes(asked))?;
        let becomes = filter.operation(asked);
        Some((&*backend.name, (becomes != asked).then_some(becomes)))
    })
}

/// Whether the workload is the one of callers that bring nothing: a header that is trusted and names one comes before it,
/// and one that is not trusted leaves no default either.
fn is_by_default(outcome: &Outcome) -> bool {
    let record = &outcome.record;
    record.workload.is_some() && record.caller.is_none() && !outcome.is_named
}

/// The workloads that a caller could be; the first of them where there are many.
fn registered(s: &Snapshot) -> String {
    const SHOWN: usize = 12;
    let mut names: Vec<&str> = s.workloads.iter().map(|one| &*one.name).collect();
    names.sort_unstable();
    let more = match names.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    names.truncate(SHOWN);
    match names[..] {
        [] => String::new(),
        _ => format!("; registered: {}{more}", names.join(", ")),
    }
}

/// The limits that count it, in words.
fn limits(outcome: &Outcome, s: &Snapshot) -> Vec<String> {
    let record = &outcome.record;
    let own = outcome
        .tool
        .as_ref()
        .and_then(|tool| tool.limits.as_deref());
    let granted = own.unwrap_or_else(|| grant(record, s).map_or(&[][..], |grant| &grant.limits));
    let granted = granted.iter().filter_map(|id| s.limit(*id)).map(|limit| {
        let whose = for_each(limit.whose);
        let (amount, per) = (limit.rate.amount, limit.rate.per);
        let every = match limit.window {
            Window::Bucket => "in",
            Window::Rolling => "in any",
        };
        format!("{amount} {} {every} {per:?}{whose}", limit.kind.as_str())
    });
    let own = record
        .caller
        .as_deref()
        .map_or(&[][..], |caller| &caller.limits);
    let own = own.iter().map(|limit| {
        let (amount, per) = (limit.rate.amount, limit.rate.per);
        format!("{amount} {} in {per:?}, its own", limit.kind.as_str())
    });
    granted.chain(own).collect()
}

/// The budgets that count it, in words; a call whose model or tool is not known may be counted by more.
fn budgets(outcome: &Outcome, s: &Snapshot) -> Vec<String> {
    let record = &outcome.record;
    let of = match record.operation {
        Some(Operation::Mcp) => &s.budgets.of_tools,
        _ => &s.budgets.of,
    };
    let of = record.workload.and_then(|id| of.get(id.index()));
    let counted = of.map_or(&[][..], |of| of).iter();
    let counted = counted
        .filter_map(|id| s.budgets.list.get(id.index()))
        .filter(|budget| is_counted(outcome, budget, s))
        .map(|budget| {
            let (every, whose) = (budget.calendar.every.as_str(), for_each(budget.whose));
            format!(
                "{}: {} each {every}{whose}",
                budget.name,
                budget.unit.shown(budget.amount)
            )
        });
    let own = record
        .caller
        .as_deref()
        .map_or(&[][..], |caller| &caller.budgets);
    let own = own.iter().map(|budget| {
        let every = budget.calendar.every.as_str();
        format!("{} each {every}, its own", budget.unit.shown(budget.amount))
    });
    counted.chain(own).collect()
}

/// Whether a budget of its workload counts the tool or the model that it names.
fn is_counted(outcome: &Outcome, budget: &Budget, s: &Snapshot) -> bool {
    let record = &outcome.record;
    let workload = record.workload.and_then(|id| s.workload(id));
    let workload = workload.map(|workload| &*workload.name);
    let sent = record.model_sent.as_deref();
    let model = sent.or(record.model_asked.as_deref());
    match (record.operation, &outcome.tool) {
        (Some(Operation::Mcp), Some(tool)) => budget.counts_tool(workload, &tool.name),
        (Some(Operation::Mcp), None) => true,
        _ => budget.counts(workload, model),
    }
}

fn for_each(whose: Whose) -> &'static str {
    match whose {
        Whose::Workload => "",
        Whose::Key => " for each key",
        Whose::User => " for each user",
    }
}
