//! The table of pairs in docs/translation.md: what each leaves out and what it refuses, as the vectors have it.
//!
//! Invariant: the page says what the vectors show, and nothing else; `UPDATE=1` writes it.
//! Not here: what becomes of each case (`super`), members that no vector has.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use super::{cases, part};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/translation.md");
const BEGINS: &str =
    "<!-- Written by `UPDATE=1 cargo xtask unit pairs`, of vectors/translate. -->\n";
const ENDS: &str = "<!-- End of what is written. -->\n";

/// What the cases of one pair show.
#[derive(Default)]
struct Pair {
    cases: usize,
    whole: usize,
    dropped: BTreeSet<String>,
    refused: BTreeSet<String>,
}

fn pairs() -> BTreeMap<(String, String), Pair> {
    let mut pairs: BTreeMap<_, Pair> = BTreeMap::new();
    for (path, client, backend) in cases() {
        let text = fs::read_to_string(&path).expect("a file");
        let made = part(&text, "upstream request").expect("a request");
        let names = (client.as_str().to_owned(), backend.as_str().to_owned());
        let pair = pairs.entry(names).or_default();
        pair.cases += 1;
        if let Some(unfit) = made.strip_prefix("unfit: ") {
            pair.refused.insert(place_of(unfit));
            continue;
        }
        let dropped = made.lines().find_map(|line| {
            let line = line.strip_prefix("(dropped: ")?;
            line.strip_suffix(')')
        });
        match dropped {
            Some(dropped) => pair.dropped.extend(dropped.split(", ").map(str::to_owned)),
            None => pair.whole += 1,
        }
    }
    pairs
}

/// Where in the body a fault is, whichever of several items it is.
fn place_of(unfit: &str) -> String {
    let place = unfit.split(": ").next().unwrap_or(unfit);
    let mut kept = String::new();
    for part in place.split_inclusive(['[', ']']) {
        let is_number = part.ends_with(']') && part.trim_end_matches(']').parse::<u32>().is_ok();
        kept.push_str(if is_number { "]" } else { part });
    }
    kept
}

fn cell(names: &BTreeSet<String>) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.is_empty() {
        true => "nothing".to_owned(),
        false => quoted.join(", "),
    }
}

fn table() -> String {
    let mut table = String::from(
        "\n| client → backend | cases | said whole | left out, and counted | refused, by its place |\n|---|---|---|---|---|\n",
    );
    for ((client, backend), pair) in pairs() {
        writeln!(
            table,
            "| `{client}` → `{backend}` | {} | {} | {} | {} |",
            pair.cases,
            pair.whole,
            cell(&pair.dropped),
            cell(&pair.refused)
        )
        .expect("room");
    }
    table.push('\n');
    table
}

#[expect(clippy::disallowed_methods, reason = "UPDATE=1 rewrites the page")]
#[test]
fn the_page_says_of_pairs_what_the_vectors_show() {
    let page = fs::read_to_string(Path::new(PAGE)).expect("the page");
    let (before, rest) = page.split_once(BEGINS).expect("where the table begins");
    let (_, after) = rest.split_once(ENDS).expect("where it ends");
    let table = table();
    print!("{table}");
    let now = format!("{before}{BEGINS}{table}{ENDS}{after}");
    if env::var_os("UPDATE").is_some() {
        fs::write(Path::new(PAGE), &now).expect("written");
    } else {
        assert_eq!(now, page, "run with UPDATE=1 and review the diff");
    }
}

#[test]
fn a_place_is_one_whichever_item_it_is() {
    assert_eq!(
        place_of("messages[10].content[0].text: too long"),
        "messages[].content[].text"
    );
    assert_eq!(place_of("n: has no counterpart"), "n");
}
