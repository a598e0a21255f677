//! Every relative link of the documentation leads to a file, and to a heading of it where it names one; every page is
//! linked, so that a reader who starts at the README comes to each of them, and stands in the book.
//!
//! Not here: whether the book that is made of them says the same (`book`).

use std::collections::{BTreeMap, BTreeSet};

use super::Fault;
use super::tree::Tree;
use crate::markdown::{Page, resolved};

pub(super) fn faults(tree: &Tree) -> Vec<Fault> {
    let places = places(tree);
    let anchors: BTreeMap<&str, Vec<String>> = pages(tree)
        .map(|(path, text)| (path, Page::of(text).anchors()))
        .collect();
    let mut faults = unreached(tree);
    faults.extend(outside_the_book(tree));
    for (path, text) in pages(tree) {
        for link in Page::of(text).links() {
            let Some((file, anchor)) = inside(path, &link.target) else {
                continue;
            };
            let named = anchors.get(file.as_str());
            let says = if !places.contains(&file) {
                "which is not there"
            } else if anchor
                .is_some_and(|name| named.is_none_or(|of| !of.iter().any(|n| n == name)))
            {
                "which has no such heading"
            } else {
                continue;
            };
            let place = format!("{path}:{}", link.line);
            faults.push(Fault::new(
                place,
                format!("links to {}, {says}", link.target),
            ));
        }
    }
    faults
}

/// Where readers start.
const START: &str = "README.md";

/// The chapters of the book; nobody reads them as a page.
pub(crate) const SUMMARY: &str = "docs/SUMMARY.md";

fn pages(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    let pages = tree.files.iter().filter(|file| file.path.ends_with(".md"));
    pages.map(|page| (page.path.as_str(), page.text.as_str()))
}

/// A fault for each page that no chain of links from the start leads to.
fn unreached(tree: &Tree) -> Vec<Fault> {
    let mut reached = BTreeSet::from([START.to_owned()]);
    let mut next = vec![START.to_owned()];
    while let Some(path) = next.pop() {
        for to in linked(tree, &path) {
            if to.ends_with(".md") && reached.insert(to.clone()) {
                next.push(to);
            }
        }
    }
    let says = "no page that a reader of README.md comes to links here; docs/README.md lists them";
    pages(tree)
        .filter(|(path, _)| *path != SUMMARY && !reached.contains(*path))
        .map(|(path, _)| Fault::new(path, says))
        .collect()
}

/// A fault for each page that is no chapter.
fn outside_the_book(tree: &Tree) -> Vec<Fault> {
    if tree.get(SUMMARY).is_none() {
        return vec![Fault::new(SUMMARY, "is not there")];
    }
    let chapters: BTreeSet<String> = linked(tree, SUMMARY).into_iter().collect();
    pages(tree)
        .filter(|(path, _)| *path != SUMMARY && !chapters.contains(*path))
        .map(|(path, _)| Fault::new(path, "is no chapter of docs/SUMMARY.md"))
        .collect()
}

/// The files that a page links to.
fn linked(tree: &Tree, path: &str) -> Vec<String> {
    let links = tree.get(path).map(|page| Page::of(&page.text).links());
    let links = links.unwrap_or_default();
    let files = links.iter().filter_map(|link| inside(path, &link.target));
    files.map(|(file, _)| file).collect()
}

/// The file and the anchor of a link that stays in the repository.
pub(crate) fn inside<'a>(from: &str, target: &'a str) -> Option<(String, Option<&'a str>)> {
    if target.contains(':') {
        return None;
    }
    let (file, anchor) = match target.split_once('#') {
        Some((file, anchor)) => (file, Some(anchor)),
        None => (target, None),
    };
    let file = if file.is_empty() {
        from.to_owned()
    } else {
        resolved(from, file)
    };
    Some((file, anchor))
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
