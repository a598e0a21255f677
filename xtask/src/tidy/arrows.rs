//! The arrows between our crates are those that ARCHITECTURE.md draws. A new one is a design change: draw it
//! there and say why in the commit.
//!
//! The picture is the block of text in the section `Arrows`: a line `a, b ─► c, d` for crates that need the
//! same, and `a ─► nothing`. What tests of a crate need and its product does not link stands in a line `a (tests) ─► b`.
//! Invariant: every arrow of Cargo's graph is drawn, and every arrow that is drawn is in Cargo's graph.

use std::collections::{BTreeMap, BTreeSet};

use super::Fault;
use super::graph::Graph;
use super::tree::Tree;

const FILE: &str = "ARCHITECTURE.md";

/// Any crate's tests may need it, which draws no arrow; no product links it.
const OF_TESTS: &str = "testing";

/// What a crate is called where its tests need more.
fn tests_of(name: &str) -> String {
    format!("{name} (tests)")
}

/// Arrows of tests alone hold to the same picture: a test that needs another crate belongs above both.
pub(super) fn faults(tree: &Tree, graph: &Graph) -> Vec<Fault> {
    let picture = tree.get(FILE).map_or("", |file| &file.text);
    let mut drawn = drawn(picture);
    let mut faults = Vec::new();
    for member in graph.members() {
        let place = format!("crate {}", member.name);
        let for_tests = drawn.remove(&*tests_of(&member.name)).unwrap_or_default();
        let Some(mut drawn) = drawn.remove(member.name.as_str()) else {
            faults.push(Fault::new(
                place,
                format!("is not in the picture of {FILE}"),
            ));
            continue;
        };
        let needed = graph.needs(member).filter(|needed| needed.is_member);
        let mut needed: BTreeSet<&str> = needed.map(|needed| needed.name.as_str()).collect();
        let is_linked = |name: &str| graph.linked(member).iter().any(|it| it.name == name);
        let is_of_tests = needed.remove(OF_TESTS);
        let only_tested = for_tests.iter().copied();
        let only_tested = only_tested.chain(is_of_tests.then_some(OF_TESTS));
        for name in only_tested.filter(|name| is_linked(name)) {
            let says = format!("links {name}, which is for tests");
            faults.push(Fault::new(&place, says));
        }
        drawn.extend(for_tests);
        let fault = |says: &str, to: &&str| Fault::new(&place, format!("{says} {to}"));
        faults.extend(
            needed
                .difference(&drawn)
                .map(|to| fault("may not depend on", to)),
        );
        let too_many = drawn.difference(&needed);
        faults.extend(
            too_many.map(|to| fault("is drawn with an arrow that it does not have, to", to)),
        );
    }
    let gone = drawn
        .into_keys()
        .map(|name| (format!("crate {name}"), name));
    faults.extend(
        gone.map(|(place, _)| Fault::new(place, format!("is drawn in {FILE} and does not exist"))),
    );
    faults
}

/// What each crate of the picture needs.
fn drawn(text: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let after = text
        .split_once("\n## Arrows\n")
        .map_or("", |(_, after)| after);
    let picture = after.split("```").nth(1).unwrap_or_default();
    let mut drawn: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in picture.lines() {
        let Some((from, to)) = line.split_once('►') else {
            continue;
        };
        let to = names(to).filter(|to| *to != "nothing");
        let to: BTreeSet<&str> = to.collect();
        for from in names(from) {
            drawn.entry(from).or_default().extend(&to);
        }
    }
    drawn
}

fn names(list: &str) -> impl Iterator<Item = &str> {
    let names = list.split(',').map(|name| name.trim_matches([' ', '─']));
    names.filter(|name| !name.is_empty())
}
