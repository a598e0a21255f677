//! `docs/documents.md` names only tests and files that there are, and lanes that `cargo xtask` has.
//!
//! Not here: commands of the programs, which their own tests read from the page.

use std::collections::BTreeSet;

use super::Fault;
use super::faults_page::{is_test_name, tests};
use super::tree::Tree;

const PAGE: &str = "docs/documents.md";
const XTASK: &str = "xtask/src/main.rs";
/// Where files stand that it names.
const PLACES: [&str; 2] = ["scenarios/", "examples/"];

pub(super) fn faults(tree: &Tree) -> Vec<Fault> {
    let Some(page) = tree.get(PAGE) else {
        return vec![Fault::new(PAGE, "is not there")];
    };
    let tests: BTreeSet<&str> = tree.rust().flat_map(tests).collect();
    let lanes = tree.get(XTASK).map_or("", |file| &file.text);
    let is_lane = |verb: &str| lanes.contains(&format!("[\"{verb}\""));
    let is_file = |path: &str| tree.files.iter().any(|file| file.path.starts_with(path));
    let named: BTreeSet<&str> = page.text.split('`').skip(1).step_by(2).collect();
    let says = named.into_iter().filter_map(|word| {
        let lane = word.strip_prefix("cargo xtask ");
        let lane = lane.map(|rest| rest.split(' ').next().unwrap_or_default());
        let says = if let Some(lane) = lane {
            (!is_lane(lane)).then_some("the lane")
        } else if PLACES.iter().any(|place| word.starts_with(place)) {
            (!is_file(word)).then_some("the file")
        } else {
            (is_test_name(word) && !tests.contains(word)).then_some("the test")
        };
        says.map(|what| format!("names {what} {word}, which is not there"))
    });
    says.map(|says| Fault::new(PAGE, says)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::File;
    use super::*;

    #[test]
    fn canary_what_the_page_names_and_is_not_there_is_found() {
        let file = |path: &str, text: &str| File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let page = "`a_test_that_there_is`, `a_test_that_is_not`, `scenarios/one`, `scenarios/two`, `cargo xtask tidy`, \
                    `cargo xtask sweep all`, `prove run`";
        let tree = Tree {
            files: vec![
                file(PAGE, page),
                file(XTASK, "[\"tidy\"] => x"),
                file("scenarios/one/scenario.toml", ""),
                file(
                    "proving/a/tests.rs",
                    "#[test]\nfn a_test_that_there_is() {}\n",
                ),
            ],
        };
        let says: Vec<String> = super::faults(&tree).into_iter().map(|f| f.says).collect();
        assert_eq!(
            says,
            [
                "names the test a_test_that_is_not, which is not there",
                "names the lane cargo xtask sweep all, which is not there",
                "names the file scenarios/two, which is not there",
            ]
        );
        assert_eq!(super::faults(&Tree { files: Vec::new() }).len(), 1);
    }
}
