//! What objects say of header fields that change on the way, and of members of a query.
//!
//! Not here: which filters there are (`filters`).

use crate::fields::{Fields, Item};
use crate::findings::{Findings, Spot};
use crate::tree::Tree;

/// Changes of header fields.
pub(crate) fn edits(item: &Item<'_>, findings: &mut Findings) -> Tree {
    let mut of = item.fields(findings);
    let mut members = Vec::new();
    for name in ["set", "add"] {
        let mut made: Vec<(String, Tree)> = Vec::new();
        for item in of.list(name, findings) {
            let mut inside = item.fields(findings);
            let name = inside.needed_text("name", findings);
            let value = inside.needed_text("value", findings);
            inside.end(findings);
            let (Some(name), Some(value)) = (name, value) else {
                continue;
            };
            let name = name.value.to_ascii_lowercase();
            // Of names that are the same the first one counts.
            if !made.iter().any(|(of, _)| *of == name) {
                made.push((name, Tree::text(value.value).of(&item.spot)));
            }
        }
        if !made.is_empty() {
            members.push((name.to_owned(), Tree::Map(made)));
        }
    }
    let remove = of.texts("remove", findings);
    if !remove.is_empty() {
        let names: Vec<String> = remove.into_iter().map(|said| said.value).collect();
        members.push(("remove".to_owned(), Tree::texts(&names)));
    }
    of.end(findings);
    Tree::Map(members).of(&item.spot)
}

/// Members of the query that a match wants.
pub(crate) fn query(
    fields: &mut Fields<'_>,
    findings: &mut Findings,
) -> Vec<(String, String, Spot)> {
    let mut wanted: Vec<(String, String, Spot)> = Vec::new();
    for item in fields.list("queryParams", findings) {
        let mut of = item.fields(findings);
        let kind = of.text("type", findings);
        let name = of.needed_text("name", findings);
        let value = of.needed_text("value", findings);
        of.end(findings);
        if let Some(kind) = kind.filter(|kind| kind.value != "Exact") {
            findings.fault(&kind.spot, "is not honoured here", "write type: Exact");
        }
        let (Some(name), Some(value)) = (name, value) else {
            continue;
        };
        // Of names that are the same the first one counts.
        if !wanted.iter().any(|(of, ..)| *of == name.value) {
            wanted.push((name.value, value.value, item.spot.clone()));
        }
    }
    wanted
}
