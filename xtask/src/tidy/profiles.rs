//! What `release` saves on some crates to be built soon, `dist` takes back: what is shipped has nothing left out.
//!
//! Cargo hands overrides of single crates down to the profiles that inherit them. Read are tables with a header of their
//! own, `[profile.release.package.NAME]`, a setting to a line.

use std::collections::BTreeMap;

use super::Fault;
use super::graph::Graph;
use super::tree::Tree;

const FILE: &str = "Cargo.toml";
/// What each crate is built with where nothing else is said, in `dist`.
const SHIPPED: &[(&str, &str)] = &[("opt-level", "3"), ("codegen-units", "1")];

/// Settings by crate, of one profile.
type Overrides<'a> = BTreeMap<&'a str, BTreeMap<&'a str, &'a str>>;

pub(super) fn faults(tree: &Tree, graph: &Graph) -> Vec<Fault> {
    let Some(file) = tree.get(FILE) else {
        return vec![Fault::new(FILE, "is not there")];
    };
    let (release, dist) = (
        overrides(&file.text, "release"),
        overrides(&file.text, "dist"),
    );
    let mut faults = Vec::new();
    for name in release.keys().chain(dist.keys()) {
        if !graph.packages().any(|package| package.name == *name) {
            faults.push(fault(name, "is no crate that is built"));
        }
    }
    for (name, settings) in &release {
        for (key, value) in settings {
            let shipped = SHIPPED.iter().find(|(known, _)| known == key);
            let Some((_, shipped)) = shipped else {
                faults.push(fault(
                    name,
                    &format!("sets {key}, which `dist` cannot take back"),
                ));
                continue;
            };
            let taken_back = dist.get(name).and_then(|settings| settings.get(key));
            if taken_back.unwrap_or(value) != shipped {
                let says = format!("has {key} = {value} in `release`: `dist` has to say {shipped}");
                faults.push(fault(name, &says));
            }
        }
    }
    faults
}

fn fault(name: &str, says: &str) -> Fault {
    Fault::new(format!("{FILE}, {name}"), says)
}

fn overrides<'a>(text: &'a str, profile: &str) -> Overrides<'a> {
    let mut overrides = Overrides::new();
    let head = format!("[profile.{profile}.package.");
    let mut of = None;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with('[') {
            let name = line.strip_prefix(&head);
            of = name.and_then(|name| name.strip_suffix(']'));
            if let Some(name) = of {
                overrides.entry(name).or_default();
            }
        } else if let (Some(name), Some((key, value))) = (of, line.split_once('=')) {
            let settings = overrides.entry(name).or_default();
            settings.insert(key.trim(), value.trim());
        }
    }
    overrides
}
