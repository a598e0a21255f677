//! The fields that say how claims become a caller.
//!
//! Not here: the claims of a token (`identity::claims`).

use super::Known;
use crate::decode::Place;
use crate::host::{ClaimNames, WorkloadFrom};
use crate::lower::{Lowering, said};
use crate::schema::identity::CallerClaims;

impl Lowering<'_> {
    /// `user_default`: the claim that says who is behind a call, unless the document says one.
    pub(in crate::lower) fn claims(
        &mut self,
        place: &Place,
        written: &CallerClaims,
        user_default: &str,
        known: Known<'_>,
    ) -> Option<ClaimNames> {
        let mut table = Vec::new();
        for (value, workload) in written.workloads.items() {
            let Some(workload) = workload else { continue };
            self.registered(workload, known);
            table.push((value.value.0.clone(), workload.value.0.clone()));
        }
        if let Some(at) = written.workload.get() {
            self.registered(at, known);
        }
        let workload = match (written.workload.get(), written.workload_claim.get()) {
            (Some(at), None) if table.is_empty() => WorkloadFrom::Fixed(at.value.0.clone()),
            (None, Some(at)) => WorkloadFrom::Claim(at.value.0.clone(), table),
            _ => {
                let is_bad = written.workload.is_bad() || written.workload_claim.is_bad();
                if !is_bad {
                    let says = "says no single way from a token to a workload";
                    let hint =
                        "write workload, or workload_claim with or without a table of workloads";
                    self.fault(place, says, hint);
                }
                return None;
            }
        };
        let tags = written.tags.items();
        let mut tags: Vec<_> = tags
            .iter()
            .filter_map(|(tag, claim)| Some((tag.value.0.clone(), claim.as_ref()?.value.0.clone())))
            .collect();
        tags.sort();
        Some(ClaimNames {
            workload,
            user: said(&written.user_claim, user_default),
            tags,
        })
    }
}
