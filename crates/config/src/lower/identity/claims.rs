//! The fields that say how claims become a caller.
//!
//! Not here: the claims of a token (`identity::claims`).

use policy::snapshot::Snapshot;

use crate::decode::{Field, Place};
use crate::host::{ClaimNames, WorkloadFrom};
use crate::lower::Lowering;
use crate::schema::Document;
use crate::schema::identity::CallerClaims;

impl Lowering<'_> {
    /// `user_default`: the claim that says who is behind a call, unless the document says one.
    pub(in crate::lower) fn claims(
        &mut self,
        place: &Place,
        written: &CallerClaims,
        user_default: &str,
        document: &Document,
        snapshot: &Snapshot,
    ) -> Option<ClaimNames> {
        let mut table = Vec::new();
        for (value, workload) in written.workloads.get().map_or(&[][..], |w| &w.0) {
            let Some(workload) = workload else { continue };
            self.registered(workload, document, snapshot);
            table.push((value.value.0.clone(), workload.value.0.clone()));
        }
        if let Some(at) = written.workload.get() {
            self.registered(at, document, snapshot);
        }
        let workload = match (written.workload.get(), written.workload_claim.get()) {
            (Some(at), None) if table.is_empty() => WorkloadFrom::Fixed(at.value.0.clone()),
            (None, Some(at)) => WorkloadFrom::Claim(at.value.0.clone(), table),
            _ => {
                let is_bad = matches!(written.workload, Field::Bad)
                    || matches!(written.workload_claim, Field::Bad);
                if !is_bad {
                    let says = "says no single way from a token to a workload";
                    let hint =
                        "write workload, or workload_claim with or without a table of workloads";
                    self.findings.fault(place, says, hint);
                }
                return None;
            }
        };
        let tags = written.tags.get().map_or(&[][..], |tags| &tags.0);
        let mut tags: Vec<_> = tags
            .iter()
            .filter_map(|(tag, claim)| Some((tag.value.0.clone(), claim.as_ref()?.value.0.clone())))
            .collect();
        tags.sort();
        let user = written.user_claim.get();
        Some(ClaimNames {
            workload,
            user: user.map_or_else(|| user_default.to_owned(), |at| at.value.0.clone()),
            tags,
        })
    }
}
