//! Circles of modules: modules of a crate that need one another, so that none can be read or changed alone.
//!
//! A module counts once, whatever stands below it: it lies in a circle or it does not.
//! Invariant: the ceilings only fall. A crate that is not in the table has no circle.
//! Not here: what a module needs (`modules`).

use std::fmt::Write;

use super::Fault;
use super::modules::Modules;
use super::tree::Tree;

/// A crate, how many of its modules lie in circles at most, and how many in the largest of them.
const CEILINGS: &[(&str, usize, usize)] = &[];

/// A fault for each crate that is above its ceiling, and for each ceiling that is too high.
pub(super) fn faults(tree: &Tree) -> Vec<Fault> {
    faults_above(tree, CEILINGS)
}

pub(super) fn faults_above(tree: &Tree, ceilings: &[(&str, usize, usize)]) -> Vec<Fault> {
    let crates = Modules::of_crates(tree);
    let mut faults = Vec::new();
    for (name, modules) in &crates {
        let circles = modules.circles();
        let count: usize = circles.iter().map(|circle| circle.len()).sum();
        let largest = circles.iter().map(|circle| circle.len()).max().unwrap_or(0);
        let ceiling = ceilings.iter().find(|(of, ..)| of == name);
        let (most, most_in_one) = ceiling.map_or((0, 0), |(_, most, in_one)| (*most, *in_one));
        let place = format!("crate {name}");
        if count > most || largest > most_in_one {
            let mut says = format!(
                "{count} modules lie in circles and {largest} in the largest, at most {most} and {most_in_one} may"
            );
            for circle in circles {
                let names: Vec<String> = circle.into_iter().collect();
                let _ = write!(says, "\n  {}", names.join(", "));
            }
            faults.push(Fault::new(place, says));
        } else if count < most || largest < most_in_one {
            let says = format!(
                "{count} modules lie in circles and {largest} in the largest: lower its ceiling to that \
                 (xtask/src/tidy/circles.rs)"
            );
            faults.push(Fault::new(place, says));
        }
    }
    let is_gone = |(name, ..): &&(&str, usize, usize)| !crates.contains_key(*name);
    let gone = ceilings.iter().filter(is_gone);
    faults.extend(gone.map(|(name, ..)| {
        Fault::new(
            format!("crate {name}"),
            "has a ceiling of circles and no sources",
        )
    }));
    faults
}
