//! Pure crates link nothing that waits, opens a socket or starts a thread: not even through others.

use super::Fault;
use super::graph::Graph;

const PURE: &[&str] = &[
    "wire",
    "jose",
    "sigv4",
    "tokens",
    "policy",
    "config",
    "identity",
    "authority",
    "experiment",
    "simulator",
];
const EFFECTS: &[&str] = &[
    "tokio",
    "hyper",
    "h2",
    "socket2",
    "mio",
    "rustls",
    "tracing-subscriber",
];

pub(super) fn faults(graph: &Graph) -> Vec<Fault> {
    let mut faults = Vec::new();
    for member in graph
        .members()
        .filter(|member| PURE.contains(&member.name.as_str()))
    {
        for linked in graph.linked(member) {
            if EFFECTS.contains(&linked.name.as_str()) {
                let says = format!("is pure but links {}", linked.name);
                faults.push(Fault::new(format!("crate {}", member.name), says));
            }
        }
    }
    faults
}
