//! Every relative link of the documentation leads to a file.

use std::collections::BTreeSet;

use super::Fault;
use super::tree::Tree;

pub(super) fn faults(tree: &Tree) -> Vec<Fault> {
    let places = places(tree);
    let mut faults = Vec::new();
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
