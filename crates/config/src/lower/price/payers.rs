//! `prices.….for`: whose calls a price is for.
//!
//! Invariant: whoever is named is known, where the document can know; the words for it are the same for the same, in any
//! order of what is written.
//! Not here: which of several prices a call has (`policy::price`).

use std::sync::Arc;

use policy::budget::Unit;
use policy::id::{BudgetId, WorkloadId};
use policy::price::Payers;
use policy::snapshot::Snapshot;
use policy::whose::Whose;

use crate::decode::{At, Field, OneOrMany, Place, nearest};
use crate::fault::Fault;
use crate::lower::Lowering;
use crate::scalar::{Name, Tag};
use crate::schema::price::PriceVolume;
use crate::schema::{Document, Price, PriceFor};

impl Lowering<'_> {
    /// Whose calls a price is for, in words and as it is looked up; `None` of the latter where it is everybody's.
    pub(super) fn payers(
        &mut self,
        place: &Place,
        price: &Price,
        document: &Document,
        s: &Snapshot,
    ) -> Option<(String, Option<Payers>)> {
        let written = match &price.r#for {
            Field::Absent => return Some((String::new(), None)),
            Field::Bad => return None,
            Field::Is(written) => written,
        };
        let is_bad = [
            written.workload.is_bad(),
            written.group.is_bad(),
            written.key.is_bad(),
            written.tag.is_bad(),
        ];
        if is_bad.contains(&true) {
            return None;
        }
        let volume = match &written.volume {
            Field::Absent => None,
            Field::Bad => return None,
            Field::Is(volume) => Some(self.volume(volume, s)?),
        };
        let whose = words(written);
        if whose.is_empty() {
            let hint = "write workload, group, key, tag or volume, or leave `for` out";
            self.fault(place, "is for nobody", hint);
            return None;
        }
        let is_known = document.routes.get().is_some();
        let named = ids(self, written.workload.items(), is_known, s);
        let grouped = self.members(written.group.items(), document, s)?;
        let workloads = match (written.workload.is_absent(), written.group.is_absent()) {
            (false, false) => named
                .into_iter()
                .filter(|id| grouped.contains(id))
                .collect(),
            (_, true) => named,
            (true, false) => grouped,
        };
        let says_workloads = !(written.workload.is_absent() && written.group.is_absent());
        if says_workloads && workloads.is_empty() {
            if is_known && !self.has_fault_at(&place.path) {
                let says = "is for nobody: none of its workloads is in its groups";
                self.fault(place, says, "leave one of the two out");
            }
            return None;
        }
        let tag = |at: &At<Tag>| {
            let (name, value) = at.value.0.split_once('=')?;
            Some((Arc::from(name), Arc::from(value)))
        };
        let keys = written.key.items().iter();
        Some((
            whose,
            Some(Payers {
                workloads,
                keys: keys.map(|at| at.value.0.as_str().into()).collect(),
                tags: written.tag.items().iter().filter_map(tag).collect(),
                volume,
            }),
        ))
    }

    /// The budget whose period has to have used more than so much.
    fn volume(&mut self, written: &PriceVolume, s: &Snapshot) -> Option<(BudgetId, u64)> {
        let (budget, above) = (written.budget.get()?, written.above.get()?);
        let mut known = s.budgets.iter();
        let Some((id, found)) = known.find(|(_, known)| *known.name == *budget.value.0) else {
            // One whose own faults are told is not known, either.
            let in_budgets = |fault: &Fault| fault.path.starts_with("budgets");
            if !self.findings.faults.iter().any(in_budgets) {
                let names: Vec<&str> = s.budgets.list.iter().map(|b| &*b.name).collect();
                let hint = match nearest(&budget.value.0, &names) {
                    Some(near) => format!("did you mean {near}?"),
                    None => "name it under `budgets`".to_owned(),
                };
                let says = format!("there is no budget {}", budget.shown);
                self.fault(&budget.place, says, hint);
            }
            return None;
        };
        if found.unit != Unit::Tokens {
            let says = format!("the budget {} counts money", budget.shown);
            self.fault(&budget.place, says, "name a budget of tokens");
            return None;
        }
        if found.whose != Whose::Workload {
            let says = format!(
                "of the budget {} each key or user has an amount of its own",
                budget.shown
            );
            let hint = "name one without `for`, whose calls share it";
            self.fault(&budget.place, says, hint);
            return None;
        }
        if above.value.0 >= found.amount {
            let says = format!(
                "is never passed: the budget {} has {} tokens",
                budget.shown, found.amount
            );
            let hint = "write less than the budget's amount, or give the budget more";
            self.refuse(above, &says, hint);
            return None;
        }
        Some((id, above.value.0))
    }

    /// The workloads of groups.
    fn members(
        &mut self,
        groups: &[At<Name>],
        document: &Document,
        s: &Snapshot,
    ) -> Option<Vec<WorkloadId>> {
        let known = match &document.groups {
            Field::Absent => &[][..],
            Field::Bad => return None,
            Field::Is(known) => &known.0,
        };
        let mut all = Vec::new();
        for group in groups {
            let found = known.iter().find(|(name, _)| name.value == group.value);
            let Some((_, members)) = found else {
                let names: Vec<&str> = known.iter().map(|(name, _)| &*name.value.0).collect();
                let hint = match nearest(&group.value.0, &names) {
                    Some(near) => format!("did you mean {near}?"),
                    None => "name it under `groups`".to_owned(),
                };
                self.fault(
                    &group.place,
                    format!("there is no group {}", group.shown),
                    hint,
                );
                continue;
            };
            // Whom a group names and nobody knows is told there.
            let members = members.as_ref().map_or(&[][..], |members| &members.0);
            let ids = members
                .iter()
                .map(|at| s.workload_named(at.value.0.as_bytes()));
            all.extend(ids.flatten());
        }
        Some(all)
    }

    fn has_fault_at(&self, path: &str) -> bool {
        let mut faults = self.findings.faults.iter();
        faults.any(|fault| fault.path.starts_with(path))
    }
}

/// Workloads that some route names.
fn ids(
    lowering: &mut Lowering<'_>,
    names: &[At<Name>],
    is_known: bool,
    s: &Snapshot,
) -> Vec<WorkloadId> {
    let known = |at| {
        lowering.workload(at, is_known, s)?;
        s.workload_named(at.value.0.as_bytes())
    };
    names.iter().filter_map(known).collect()
}

/// Whose calls it is for, in words.
fn words(written: &PriceFor) -> String {
    let kinds = [
        ("workload", texts(&written.workload)),
        ("group", texts(&written.group)),
        ("key", texts(&written.key)),
        ("tag", texts(&written.tag)),
    ];
    let said = kinds.into_iter().filter(|(_, texts)| !texts.is_empty());
    let mut said: Vec<String> = said
        .map(|(kind, texts)| format!("{kind} {}", texts.join(" or ")))
        .collect();
    if let Some(volume) = written.volume.get()
        && let (Some(budget), Some(above)) = (volume.budget.get(), volume.above.get())
    {
        said.push(format!(
            "calls above {} tokens of the budget {}",
            above.value.0, budget.value.0
        ));
    }
    said.join(" and ")
}

fn texts<T: AsRef<str>>(written: &Field<OneOrMany<T>>) -> Vec<&str> {
    let mut texts: Vec<&str> = written.items().iter().map(|at| at.value.as_ref()).collect();
    texts.sort_unstable();
    texts.dedup();
    texts
}
