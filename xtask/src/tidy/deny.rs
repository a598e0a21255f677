//! Licences and wrappers as `deny.toml` states them: the part of cargo-deny that needs no network.
//!
//! The file stays in cargo-deny's own format. Of it, this reads the list `allow` of `[licenses]`
//! and the entries `{ crate = …, wrappers = […] }` of `[bans]`, each on one line.

use super::Fault;
use super::expression::is_satisfied;
use super::graph::Graph;
use super::tree::Tree;

const FILE: &str = "deny.toml";
/// What a ban begins with.
const ENTRY: &str = "crate = ";

pub(super) fn faults(tree: &Tree, graph: &Graph) -> Vec<Fault> {
    let Some(file) = tree.get(FILE) else {
        return vec![Fault::new(FILE, "is not there")];
    };
    let mut faults = licence_faults(graph, &allowed_licences(&file.text));
    let bans: Vec<Ban<'_>> = file.text.lines().filter_map(ban).collect();
    faults.extend(bans.iter().flat_map(|ban| ban_faults(graph, ban)));
    let written = file.text.matches(ENTRY).count();
    if bans.is_empty() || bans.len() != written {
        let says = format!(
            "has {written} bans, of which {} are read: each stands on a line of its own",
            bans.len()
        );
        faults.push(Fault::new(FILE, says));
    }
    faults
}

fn licence_faults(graph: &Graph, allowed: &[&str]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for package in graph.packages() {
        let licence = package.licence.as_deref().unwrap_or_default();
        if !is_satisfied(licence, &|one| allowed.contains(&one)) {
            let says = format!("licence {licence:?} is not allowed by {FILE}");
            faults.push(Fault::new(format!("crate {}", package.name), says));
        }
    }
    faults
}

fn allowed_licences(text: &str) -> Vec<&str> {
    let section = text.split("[licenses]").nth(1).unwrap_or_default();
    let list = section
        .split("allow = [")
        .nth(1)
        .and_then(|rest| rest.split(']').next());
    list.into_iter().flat_map(quoted).collect()
}

/// A crate that only its wrappers may name; with no wrappers, nobody.
struct Ban<'a> {
    name: &'a str,
    wrappers: Vec<&'a str>,
}

fn ban(line: &str) -> Option<Ban<'_>> {
    let entry = line.trim_start().strip_prefix("{ ")?.strip_prefix(ENTRY)?;
    let (entry, _) = entry.split_once('}')?;
    let (name, rest) = entry.split_once(',').unwrap_or((entry, ""));
    let wrappers = rest
        .split("wrappers = [")
        .nth(1)
        .and_then(|list| list.split(']').next());
    let wrappers = wrappers.into_iter().flat_map(quoted).collect();
    Some(Ban {
        name: name.trim().trim_matches('"'),
        wrappers,
    })
}

fn ban_faults(graph: &Graph, ban: &Ban<'_>) -> Vec<Fault> {
    let mut faults = Vec::new();
    for package in graph
        .packages()
        .filter(|package| !ban.wrappers.contains(&package.name.as_str()))
    {
        if graph.needs(package).any(|needed| needed.name == ban.name) {
            let says = format!("may not depend on {} ({FILE})", ban.name);
            faults.push(Fault::new(format!("crate {}", package.name), says));
        }
    }
    faults
}

fn quoted(list: &str) -> impl Iterator<Item = &str> {
    list.split('"').skip(1).step_by(2)
}
