//! Crates whose older versions have advisories are new enough.

use super::Fault;
use super::graph::Graph;
use crate::parts::LEAST_CRATE_VERSIONS;

pub(super) fn faults(graph: &Graph) -> Vec<Fault> {
    let mut faults = Vec::new();
    for package in graph.packages() {
        let named = LEAST_CRATE_VERSIONS
            .iter()
            .find(|(name, _)| *name == package.name);
        if let Some((name, least)) = named
            && numbers(&package.version) < numbers(least)
        {
            let says = format!(
                "is {}, and older than {least} has advisories",
                package.version
            );
            faults.push(Fault::new(format!("crate {name}"), says));
        }
    }
    faults
}

/// `0.103.13` as numbers; a pre-release counts as what comes before its release.
fn numbers(version: &str) -> (Vec<u64>, bool) {
    let (plain, _build) = version.split_once('+').unwrap_or((version, ""));
    let (release, is_release) = match plain.split_once('-') {
        Some((release, _)) => (release, false),
        None => (plain, true),
    };
    (
        release
            .split('.')
            .map(|number| number.parse().unwrap_or(0))
            .collect(),
        is_release,
    )
}
