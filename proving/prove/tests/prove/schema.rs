//! The result file agrees with its documentation: every field is documented, and every documented
//! field exists.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::metered::{page, with_counts};
use super::{SAME, race, raced, subjects};

const DOCUMENT: &str = include_str!("../../../../docs/race.md");
const EVERY_KIND: &str = "[[scenario]]\nname = 'closed'\nusers = 4\nlatency_ms = 20\n\
    [[scenario]]\nname = 'open'\nusers = 4\nper_second = 50.0\n\
    [[scenario]]\nname = 'streams'\nusers = 4\nevents = 5\ninterval_ms = 10\n\
    [[scenario]]\nname = 'held'\nusers = 4\nhold = true\ninterval_ms = 100\n\
    [[scenario]]\nname = 'quota'\nusers = 4\nlatency_ms = 20\ncpu_quota = 0.2\n";

#[test]
fn the_result_file_holds_what_is_documented_and_nothing_else() {
    let dir = subjects(&[SAME]);
    fs::write(dir.path().join("race.toml"), EVERY_KIND).expect("a file");
    with_counts(dir.path(), "same", "direct", page(100, 0));
    let fleet = ["--load-processes", "2"];
    let (_, result) = raced(&mut race(dir.path(), 1, &fleet));
    let may_limit = !result.to_string().contains("no permission for cgroups");
    let names = |value: &Value| -> BTreeSet<String> {
        let object = value.as_object().expect("an object");
        object.keys().cloned().collect()
    };
    assert_eq!(names(&result), documented("The file"));
    assert_eq!(names(&result["machine"]), documented("`machine`"));
    assert_eq!(names(&result["subjects"][0]), documented("`subjects[]`"));
    assert_eq!(names(&result["scenarios"][0]), documented("`scenarios[]`"));
    let (mut plain, mut figures) = (BTreeSet::new(), BTreeSet::new());
    for row in result["rows"].as_array().expect("rows") {
        for (name, value) in row.as_object().expect("an object") {
            gather(name, value, &mut plain, &mut figures);
        }
    }
    let mut expected = documented("Figures");
    expected.retain(|name| may_limit || !name.starts_with("cgroup."));
    // Of subjects with replicas, of which there is none here.
    assert!(expected.remove("replicas.least_cpu_percent"));
    assert_eq!(figures, expected);
    assert_eq!(plain, documented("`rows[]`"));
}

/// Figures are objects of median, min and max, at any depth; `failures`, `counts` and `limits` are counts.
fn gather(name: &str, value: &Value, plain: &mut BTreeSet<String>, figures: &mut BTreeSet<String>) {
    match value.as_object() {
        Some(object) if object.contains_key("median") => {
            let keys: BTreeSet<&str> = object.keys().map(String::as_str).collect();
            assert_eq!(keys, BTreeSet::from(["max", "median", "min"]), "{name}");
            figures.insert(name.to_owned());
        }
        Some(object) if !matches!(name, "failures" | "counts" | "limits") => {
            for (inner, value) in object {
                gather(&format!("{name}.{inner}"), value, plain, figures);
            }
        }
        _ => {
            plain.insert(name.to_owned());
        }
    }
}

/// The names in the first column of the table under a heading; several may share a line.
fn documented(heading: &str) -> BTreeSet<String> {
    let marker = format!("\n### {heading}\n");
    let (_, section) = DOCUMENT
        .split_once(&marker)
        .unwrap_or_else(|| panic!("no section {heading}"));
    let section = section.split("\n#").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let first = rows.filter_map(|line| line.split('|').nth(1));
    first
        .flat_map(|cell| {
            cell.split(',')
                .map(|name| name.trim().trim_matches('`').to_owned())
        })
        .collect()
}
