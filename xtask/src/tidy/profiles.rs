//! What `release` saves on some crates to be built soon, `dist` takes back: what is shipped has nothing left out.
//!
//! Cargo hands settings and overrides of single crates down to the profiles that inherit them. Read are tables with a header of
//! their own, `[profile.dist]` and `[profile.release.package.NAME]`, a setting to a line.

use std::collections::BTreeMap;

use super::Fault;
use super::graph::Graph;
use super::tree::Tree;

const FILE: &str = "Cargo.toml";
/// What each crate is built with in `dist`.
const SHIPPED: &[(&str, &str)] = &[("opt-level", "3"), ("codegen-units", "1")];
/// The same of all of them together.
const LINKED: (&str, &str) = ("lto", "\"fat\"");
/// What Cargo takes for a profile that inherits `release` where nobody says another.
const UNSAID: (&str, &str) = ("opt-level", "3");

type Settings<'a> = BTreeMap<&'a str, &'a str>;

/// Settings by crate, of one profile.
type Overrides<'a> = BTreeMap<&'a str, Settings<'a>>;

pub(super) fn faults(tree: &Tree, graph: &Graph) -> Vec<Fault> {
    let Some(file) = tree.get(FILE) else {
        return vec![Fault::new(FILE, "is not there")];
    };
    let (release, dist) = (
        overrides(&file.text, "release"),
        overrides(&file.text, "dist"),
    );
    let mut faults = of_all(&file.text);
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
            let taken_back = dist.get(name).is_some_and(|own| own.contains_key(key));
            if !taken_back && value != shipped {
                let says = format!("has {key} = {value} in `release`: `dist` has to say {shipped}");
                faults.push(fault(name, &says));
            }
        }
    }
    for (name, settings) in &dist {
        for setting in settings.iter().map(|(key, value)| (*key, *value)) {
            if !SHIPPED.contains(&setting) {
                let (key, value) = setting;
                let says = format!("has {key} = {value} in `dist`, where nothing is left out");
                faults.push(fault(name, &says));
            }
        }
    }
    faults
}

/// What `dist` says of all crates, by itself or by what it inherits.
fn of_all(text: &str) -> Vec<Fault> {
    let [release, dist] =
        ["release", "dist"].map(|profile| table(text, &format!("[profile.{profile}]")));
    let said = |key| dist.get(key).or_else(|| release.get(key)).copied();
    let mut faults = Vec::new();
    for (key, shipped) in SHIPPED.iter().chain([&LINKED]) {
        let unsaid = (UNSAID.0 == *key).then_some(UNSAID.1);
        let is = said(key).or(unsaid);
        if is != Some(*shipped) {
            let is = is.unwrap_or("nothing");
            let says = format!("has {key} = {is}, and has to say {shipped}");
            faults.push(fault("[profile.dist]", &says));
        }
    }
    faults
}

fn fault(name: &str, says: &str) -> Fault {
    Fault::new(format!("{FILE}, {name}"), says)
}

fn overrides<'a>(text: &'a str, profile: &str) -> Overrides<'a> {
    let head = format!("[profile.{profile}.package.");
    let name = |line: &'a str| line.trim().strip_prefix(&head)?.strip_suffix(']');
    let named = text.lines().filter_map(name);
    named
        .map(|name| (name, table(text, &format!("{head}{name}]"))))
        .collect()
}

/// The settings below a header.
fn table<'a>(text: &'a str, head: &str) -> Settings<'a> {
    let lines = text.lines().map(str::trim).skip_while(|line| *line != head);
    let body = lines.skip(1).take_while(|line| !line.starts_with('['));
    body.filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.trim(), value.trim()))
        .collect()
}
