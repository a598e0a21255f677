//! `toolSelector` and `promptSelector`: which things of a server are seen, by its own names.
//!
//! Names become names; expressions become a condition, as our names have no other sign than `*`.
//! Not here: what a caller may call (`authorization`).

use crate::fields::{Item, Said};
use crate::findings::Findings;
use crate::tree::Tree;

use super::request::quoted;

/// A selection of our document.
pub(super) fn selection(item: &Item<'_>, findings: &mut Findings) -> Option<Tree> {
    let mut of = item.fields(findings);
    let mut part = |names: &'static str, expressions: &'static str| {
        let listed = of.take(names);
        let matched = of.take(expressions);
        if let (Some(_), Some(item)) = (&listed, &matched) {
            let says = format!("says {expressions} beside {names}");
            findings.fault(&item.spot, says, "keep one of them");
        }
        let texts = |item: Option<Item<'_>>, findings: &mut Findings| {
            let items = item.as_ref().map(|item| item.items(findings));
            if let (Some(item), Some([])) = (&item, items.as_deref()) {
                // As if it were not there, it would show what it was to keep back.
                let hint = "give it an item or leave it out";
                findings.fault(&item.spot, "is an empty list", hint);
            }
            let items = items.unwrap_or_default();
            let texts = items.iter().filter_map(|item| item.text(findings));
            texts.collect::<Vec<Said<String>>>()
        };
        let names: Vec<Tree> = texts(listed, findings)
            .into_iter()
            .filter_map(|said| name(said, findings))
            .collect();
        let expressions = texts(matched, findings);
        Some(names.into_iter().chain(matching(&expressions)).collect())
            .filter(|all: &Vec<Tree>| !all.is_empty())
    };
    let allow = part("include", "includeRegex");
    let deny = part("exclude", "excludeRegex");
    let is_nothing = of.has_only(&[]);
    of.end(findings);
    if is_nothing {
        let says = "selects nothing";
        let hint = "write include, includeRegex, exclude or excludeRegex, or leave it out";
        findings.fault(&item.spot, says, hint);
        return None;
    }
    let members = [
        ("allow", allow.map(Tree::List)),
        ("deny", deny.map(Tree::List)),
    ];
    Some(Tree::map(members).of(&item.spot))
}

fn name(said: Said<String>, findings: &mut Findings) -> Option<Tree> {
    if said.value.is_empty() || said.value.contains('*') {
        let says = "is the name of one tool, and none has a * in its name";
        findings.fault(&said.spot, says, "write it as an expression");
        return None;
    }
    Some(Tree::text(said.value).of(&said.spot))
}

/// Whatever one of the expressions is found in.
fn matching(expressions: &[Said<String>]) -> Option<Tree> {
    let first = expressions.first()?;
    let all = expressions.iter();
    let all: Vec<String> = all
        .map(|said| format!("name.matches({})", quoted(&said.value)))
        .collect();
    let members = [
        ("name", Some(Tree::text("*"))),
        ("when", Some(Tree::text(all.join(" || ")))),
    ];
    Some(Tree::map(members).of(&first.spot))
}
