//! The arrows between our crates. A new one is a design change: edit the list and say why in the commit.

use super::Fault;
use super::graph::Graph;

/// Who may depend on whom. `tollgate → engine` is the one arrow from the gate into the proving
/// ground: it lets the demo run on a fresh machine with no account and no GPU.
const ARROWS: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("tokens", &[]),
    ("policy", &["wire"]),
    ("config", &["policy"]),
    ("telemetry", &["policy"]),
    ("ledger", &["policy"]),
    ("proxy", &["policy", "wire"]),
    (
        "tollgate",
        &[
            "proxy",
            "config",
            "ledger",
            "telemetry",
            "policy",
            "wire",
            "tokens",
            "engine",
        ],
    ),
    ("experiment", &[]),
    ("corpus", &["experiment"]),
    ("load", &["experiment"]),
    ("engine", &["experiment"]),
    ("prove", &["experiment", "corpus", "load", "engine"]),
    ("xtask", &[]),
];

/// Arrows of tests alone hold to the same list: a test that needs another crate belongs above both.
pub(super) fn faults(graph: &Graph) -> Vec<Fault> {
    let mut faults = Vec::new();
    for member in graph.members() {
        let place = format!("crate {}", member.name);
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == member.name) else {
            faults.push(Fault::new(
                place,
                "is not in the list of arrows (xtask/src/tidy/arrows.rs)",
            ));
            continue;
        };
        for needed in graph.needs(member).filter(|needed| needed.is_member) {
            if !allowed.contains(&needed.name.as_str()) {
                faults.push(Fault::new(
                    &place,
                    format!("may not depend on {}", needed.name),
                ));
            }
        }
    }
    faults
}
