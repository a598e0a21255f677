//! The house rules that a compiler does not know, as one check.
//!
//! Invariant: every rule looks at what is in the repository and at `cargo metadata`, writes
//! nothing, and names each fault with its place.
//! Not here: formatting (rustfmt), lints (clippy), advisories (they need a database that changes daily).

mod arrows;
mod blocks;
mod circles;
mod clocks;
mod deny;
mod documents_page;
mod expression;
mod fault;
mod faults_page;
mod figures;
mod fuzz;
mod graph;
mod least_versions;
mod lines;
pub(crate) mod links;
mod modules;
mod phrases;
mod profiles;
mod purity;
mod sizes;
mod sources;
pub(crate) mod tree;
mod troubleshooting;
mod vectors;
mod words;

use crate::cargo::{metadata, root};
use fault::Fault;
use graph::Graph;
use tree::Tree;

/// Prints the sizes of files and functions and every fault.
pub(crate) fn run_and_print() -> Result<(), String> {
    let tree = Tree::read(&root())?;
    let graph = Graph::read(&metadata()?)?;
    println!("{}\n{}", lines::Table::of(&tree), sizes::Sizes::of(&tree));
    let faults = all_faults(&tree, &graph);
    for fault in &faults {
        println!("{fault}");
    }
    match faults.len() {
        0 => Ok(()),
        count => Err(format!("tidy: {count} faults")),
    }
}

fn all_faults(tree: &Tree, graph: &Graph) -> Vec<Fault> {
    [
        arrows::faults(tree, graph),
        purity::faults(tree, graph),
        deny::faults(tree, graph),
        least_versions::faults(graph),
        sources::faults(tree),
        links::faults(tree),
        blocks::faults(tree),
        troubleshooting::faults(tree),
        faults_page::faults(tree),
        documents_page::faults(tree),
        figures::faults(tree),
        vectors::faults(tree),
        sizes::faults(tree),
        lines::faults(tree),
        circles::faults(tree),
        phrases::faults(tree),
        clocks::faults(tree),
        fuzz::faults(tree),
        profiles::faults(tree, graph),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests;
