//! `groups` and `budgets`: who pays together, and how much each period has.
//!
//! Budgets fail closed: one that counts money and knows that a model it counts has no price is a
//! fault, and without a ledger, from which sums are read back, there are none.
//! Not here: how a budget works (`policy::budget`), what it keeps at a reload (`policy::levels`), reading sums back
//! (`ledger`).

mod priced;

pub(super) use priced::is_counted;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use policy::budget::{self, Budgets, Calendar, MAX_BUDGETS, Scope, Unit};
use policy::id::BudgetId;
use policy::levels::ACCOUNT_MAX;
use policy::mcp::Glob;
use policy::model::ModelPattern;
use policy::snapshot::Snapshot;
use policy::subject::Whose;

use super::backend::number;
use super::route::{lowered, written_as};
use crate::decode::{At, Field, MapOf, OneOrMany, Place, nearest};
use crate::host::period_days_max;
use crate::scalar::{Name, NameGlob, Pattern};
use crate::schema::{Budget, Document};

/// Group to its workloads.
type Groups = HashMap<String, Vec<Arc<str>>>;

impl super::Lowering<'_> {
    pub(super) fn budgets(&mut self, document: &Document, s: &Snapshot) -> Budgets {
        let mut budgets = Budgets {
            list: Vec::new(),
            of: vec![Vec::new(); s.workloads.len()],
            of_tools: vec![Vec::new(); s.workloads.len()],
            groups: vec![None; s.workloads.len()],
        };
        // Without sound routes nobody knows who is registered.
        let is_known = document.routes.get().is_some();
        let groups = match &document.groups {
            Field::Absent => Some(Groups::new()),
            Field::Bad => None,
            Field::Is(written) => Some(self.groups(written, is_known, s, &mut budgets)),
        };
        let Some(written) = document.budgets.get() else {
            return budgets;
        };
        self.kept(document, written);
        for (name, budget) in &written.0 {
            let Some(budget) = budget else { continue };
            let Some(lowered) = self.budget(name, budget, is_known, groups.as_ref(), s) else {
                continue;
            };
            let id = BudgetId(number(budgets.list.len()));
            let by_workload = match lowered.unit {
                Unit::Calls => &mut budgets.of_tools,
                Unit::Tokens | Unit::Money(_) => &mut budgets.of,
            };
            for (workload, of) in s.workloads.iter().zip(by_workload) {
                if who(&lowered.scope, &workload.name) {
                    of.push(id);
                }
                if of.len() == MAX_BUDGETS + 1 && of.last() == Some(&id) {
                    let says = format!(
                        "more than {MAX_BUDGETS} budgets count the workload {}",
                        workload.name
                    );
                    self.fault(&name.place, says, "");
                }
            }
            budgets.list.push(lowered);
        }
        budgets
    }

    /// Whether a ledger keeps what the budgets need after a restart.
    fn kept(&mut self, document: &Document, written: &MapOf<Name, Budget>) {
        let place = Place::new(
            "budgets",
            written.0.first().map_or(0, |(name, _)| name.place.line),
        );
        if document.ledger.is_absent() {
            let says = "budgets need a ledger: after a restart, what was spent is read from it";
            let hint = "say where it is, such as ledger: { path: usage.db }";
            self.fault(&place, says, hint);
        }
        let Some(ledger) = document.ledger.get() else {
            return;
        };
        let periods = written.0.iter().filter_map(|(_, b)| b.as_ref()?.per.get());
        let longest = periods.map(|at| at.value.0.days_max()).max().unwrap_or(0);
        let is_short = |keep: Duration| period_days_max(keep) < longest;
        if let Some(at) = ledger.retention.get().filter(|at| is_short(at.value.0)) {
            let says = format!("rows of {} do not last for the budgets' periods", at.shown);
            let hint = format!("write {}d or more", longest + 1);
            self.fault(&at.place, says, hint);
        }
        if let Some(at) = ledger.size.get() {
            let says = "rows pruned for size are missing from budgets after a restart";
            let hint = "leave it out, or make sure that it holds the longest period";
            self.warn(&at.place, says, hint);
        }
    }

    fn groups(
        &mut self,
        written: &MapOf<Name, OneOrMany<Name>>,
        is_known: bool,
        s: &Snapshot,
        budgets: &mut Budgets,
    ) -> Groups {
        let mut groups = Groups::new();
        for (group, members) in &written.0 {
            let group: Arc<str> = group.value.0.as_str().into();
            let mut names: Vec<Arc<str>> = Vec::new();
            for at in members.as_ref().map_or(&[][..], |m| &m.0) {
                names.push(at.value.0.as_str().into());
                let Some(id) = self.workload(at, is_known, s) else {
                    continue;
                };
                let Some(slot) = budgets.groups.get_mut(id) else {
                    continue;
                };
                if let Some(earlier) = slot.replace(Arc::clone(&group)) {
                    let says = format!("{} is in the group {earlier} already", at.shown);
                    let hint = "a workload is in one group; budgets nest without groups in groups";
                    self.fault(&at.place, says, hint);
                }
            }
            groups.insert(group.to_string(), names);
        }
        groups
    }

    /// The index of a workload that some route names.
    pub(super) fn workload(
        &mut self,
        at: &At<Name>,
        is_known: bool,
        s: &Snapshot,
    ) -> Option<usize> {
        let id = s.workload_named(at.value.0.as_bytes());
        if id.is_none() && is_known {
            let names: Vec<&str> = s.workloads.iter().map(|w| &*w.name).collect();
            let hint = match nearest(&at.value.0, &names) {
                Some(near) => format!("did you mean {near}?"),
                None => "name it under a route's `workload`".to_owned(),
            };
            let says = format!("no route is for the workload {}", at.shown);
            self.fault(&at.place, says, hint);
        }
        id.map(policy::id::WorkloadId::index)
    }

    fn budget(
        &mut self,
        name: &At<Name>,
        written: &Budget,
        is_known: bool,
        groups: Option<&Groups>,
        s: &Snapshot,
    ) -> Option<budget::Budget> {
        let counted = self.amount(name, written);
        let scope = self.scope(written, is_known, groups, s);
        let models = match written.model.get() {
            Some(patterns) => plain(&patterns.0),
            None => Vec::new(),
        };
        let (unit, amount) = counted?;
        Some(budget::Budget {
            name: name.value.0.as_str().into(),
            unit,
            amount,
            calendar: Calendar {
                every: written.per.get()?.value.0,
                east_min: written.zone.get().map_or(0, |at| at.value.0),
            },
            scope: scope?,
            models,
            tools: globs(&written.tool),
            whose: self.whose(name, written, amount),
        })
    }

    /// Whom it counts apart; how much each of them can have is bounded.
    fn whose(&mut self, name: &At<Name>, written: &Budget, amount: u64) -> Whose {
        let Some(at) = written.r#for.get() else {
            return Whose::Workload;
        };
        if amount > ACCOUNT_MAX {
            let says = "is more than the gate counts for each key or user";
            let hint = "write 4500000 or less";
            self.fault(&name.place, says, hint);
        }
        at.value.0
    }

    fn amount(&mut self, name: &At<Name>, written: &Budget) -> Option<(Unit, u64)> {
        let units = [
            ("tokens", !written.tokens.is_absent()),
            ("money", !written.money.is_absent()),
            ("calls", !written.calls.is_absent()),
        ];
        let said: Vec<&str> = units
            .iter()
            .filter_map(|(unit, is_said)| is_said.then_some(*unit))
            .collect();
        if said.is_empty() {
            let hint = "write tokens: N, money: N or calls: N";
            self.fault(&name.place, "counts nothing", hint);
        }
        if said.len() > 1 {
            let hint = "write a budget for each";
            let says = format!("counts {} at once", said.join(" and "));
            self.fault(&name.place, says, hint);
        }
        let is_of_calls = said == ["calls"];
        if let (Some(at), true) = (written.model.items().first(), is_of_calls) {
            self.refuse(
                at,
                "is a model, and calls of tools have none",
                "leave it out",
            );
        }
        if let (Some(at), false) = (written.tool.items().first(), is_of_calls) {
            let hint = "count calls: N, or leave it out";
            self.refuse(
                at,
                "is a tool, whose calls have neither tokens nor a price",
                hint,
            );
        }
        if let (Some(at), true) = (written.currency.get(), written.money.is_absent()) {
            self.refuse(at, "says the currency of no money", "leave it out");
        }
        match (
            written.tokens.get(),
            written.money.get(),
            written.calls.get(),
        ) {
            (Some(at), None, None) => Some((Unit::Tokens, at.value.0)),
            (None, None, Some(at)) => Some((Unit::Calls, at.value.0)),
            (None, Some(at), None) => {
                let currency = written.currency.get();
                let currency = currency.map_or("USD", |at| at.value.0.as_str());
                Some((Unit::Money(currency.into()), at.value.0))
            }
            _ => None,
        }
    }

    fn scope(
        &mut self,
        written: &Budget,
        is_known: bool,
        groups: Option<&Groups>,
        s: &Snapshot,
    ) -> Option<Scope> {
        match (written.workload.get(), written.group.get()) {
            (Some(_), Some(at)) => {
                let says = "is for a workload and a group at once";
                let hint = "write two budgets: a call must fit in both";
                self.fault(&at.place, says, hint);
                None
            }
            (Some(at), None) => {
                self.workload(at, is_known, s);
                Some(Scope::Workloads(vec![at.value.0.as_str().into()]))
            }
            (None, Some(at)) => {
                // `None` where the groups themselves are faulty.
                let groups = groups?;
                let members = groups.get(&at.value.0);
                if members.is_none() {
                    let names: Vec<&str> = groups.keys().map(String::as_str).collect();
                    let hint = match nearest(&at.value.0, &names) {
                        Some(near) => format!("did you mean {near}?"),
                        None => "name it under `groups`".to_owned(),
                    };
                    let says = format!("there is no group {}", at.shown);
                    self.fault(&at.place, says, hint);
                }
                members.map(|members| Scope::Workloads(members.clone()))
            }
            (None, None) => {
                let sound = written.workload.is_absent() && written.group.is_absent();
                sound.then_some(Scope::Everyone)
            }
        }
    }
}

fn who(scope: &Scope, workload: &str) -> bool {
    match scope {
        Scope::Everyone => true,
        Scope::Workloads(names) => names.iter().any(|name| **name == *workload),
    }
}

fn globs(of: &Field<OneOrMany<NameGlob>>) -> Vec<Glob> {
    let globs = of.items().iter();
    globs.map(|at| Glob(at.value.0.as_str().into())).collect()
}

fn plain(patterns: &[At<Pattern>]) -> Vec<ModelPattern> {
    if patterns.iter().any(|at| written_as(&at.value) == "*") {
        return Vec::new();
    }
    patterns.iter().map(|at| lowered(&at.value)).collect()
}
