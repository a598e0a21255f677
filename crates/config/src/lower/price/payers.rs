//! `prices.….for`: whose calls a price is for.
//!
//! Invariant: whoever is named is known, where the document can know; the words for it are the same for the same, in any
//! order of what is written.
//! Not here: which of several prices a call has (`policy::price`).

use std::sync::Arc;

use policy::id::WorkloadId;
use policy::price::Payers;
use policy::snapshot::Snapshot;

use crate::decode::{At, Field, OneOrMany, Place, nearest};
use crate::lower::Lowering;
use crate::scalar::{Name, Tag};
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
        ];
        if is_bad.contains(&true) || written.tag.is_bad() {
            return None;
        }
        let whose = words(written);
        if whose.is_empty() {
            let hint = "write workload, group, key or tag, or leave `for` out";
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
            }),
        ))
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
    let said: Vec<String> = said
        .map(|(kind, texts)| format!("{kind} {}", texts.join(" or ")))
        .collect();
    said.join(" and ")
}

fn texts<T: AsRef<str>>(written: &Field<OneOrMany<T>>) -> Vec<&str> {
    let mut texts: Vec<&str> = written.items().iter().map(|at| at.value.as_ref()).collect();
    texts.sort_unstable();
    texts.dedup();
    texts
}
