//! Every relative link of the documentation leads to a file, and every page is linked: a reader who
//! starts at the README comes to each of them.

use std::collections::BTreeSet;

use super::Fault;
use super::tree::Tree;

pub(super) fn faults(tree: &Tree) -> Vec<Fault> {
    let places = places(tree);
    let mut faults = unreached(tree);
    for file in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        for link in links(&file.text) {
            if !places.contains(&resolve(&file.path, link)) {
                faults.push(Fault::new(
                    &file.path,
                    format!("links to {link}, which is not there"),
                ));
            }
        }
    }
    faults
}

/// Where readers start.
const START: &str = "README.md";

/// A fault for each page that no chain of links from the start leads to.
fn unreached(tree: &Tree) -> Vec<Fault> {
    let mut reached = BTreeSet::from([START.to_owned()]);
    let mut next = vec![START.to_owned()];
    while let Some(path) = next.pop() {
        let Some(page) = tree.get(&path) else {
            continue;
        };
        for to in links(&page.text).map(|link| resolve(&path, link)) {
            if to.ends_with(".md") && reached.insert(to.clone()) {
                next.push(to);
            }
        }
    }
    let pages = tree.files.iter().filter(|file| file.path.ends_with(".md"));
    pages
        .filter(|page| !reached.contains(&page.path))
        .map(|page| {
            let says =
                "no page that a reader of README.md comes to links here; docs/README.md lists them";
            Fault::new(&page.path, says)
        })
        .collect()
}

/// All files and all directories above them.
fn places(tree: &Tree) -> BTreeSet<String> {
    let mut places = BTreeSet::new();
    for file in &tree.files {
        let mut path = file.path.as_str();
        places.insert(path.to_owned());
        while let Some((dir, _)) = path.rsplit_once('/') {
            places.insert(dir.to_owned());
            path = dir;
        }
    }
    places
}

/// Targets of `[text](target)`, without addresses, anchors and code blocks.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split("```").step_by(2);
    prose
        .flat_map(|prose| prose.split("](").skip(1))
        .filter_map(|rest| rest.split([')', '#', ' ']).next())
        .filter(|target| !target.is_empty() && !target.contains(':'))
}

fn resolve(from: &str, link: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}
