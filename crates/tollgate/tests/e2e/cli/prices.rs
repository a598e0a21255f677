//! `tollgate prices`: the catalogue, a file of one's own beside it, what differs.

use std::fs;

use serde_json::Value;

use crate::harness::tollgate;

const MINE: &str = "\
acme:
  source: https://acme.example/prices
  as_of: 2026-11-28
  hosts: [api.acme.example]
  models:
    acme-1: { input: 3, output: 15, also: [acme-1-2026] }
    acme-2: { input: 1, output: 5 }
";

#[test]
fn the_catalogue_is_listed_for_people_and_for_machines() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let list = tollgate(dir.path(), &["prices", "--model", "claude-sonnet-4-5"], &[]);
    assert_eq!((list.code, list.err.as_str()), (Some(0), ""));
    for says in [
        "claude-sonnet-4-5",
        "anthropic",
        "above 200000",
        "22.50",
        "1 model;",
    ] {
        assert!(list.out.contains(says), "no {says:?} in\n{}", list.out);
    }
    let list = tollgate(dir.path(), &["prices", "--json"], &[]);
    let models: Vec<Value> = serde_json::from_str(&list.out).expect("JSON");
    let gpt = models
        .iter()
        .find(|model| model["model"] == "gpt-5")
        .expect("it is there");
    assert_eq!(gpt["rates"]["cached_input"], "0.125", "{gpt}");
    assert_eq!(
        (&gpt["per"], &gpt["currency"]),
        (&1_000_000.into(), &"USD".into())
    );
    for fact in ["source", "as_of", "provider"] {
        let said = |model: &Value| model[fact].as_str().is_some_and(|text| !text.is_empty());
        assert!(models.iter().all(said), "{fact}");
    }
}

#[test]
fn what_differs_between_two_catalogues_is_told() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let now = MINE
        .replace("input: 3", "input: 2.5")
        .replace("acme-2", "acme-3");
    fs::write(dir.path().join("old.yaml"), MINE).expect("it can be written");
    fs::write(dir.path().join("new.yaml"), now).expect("it can be written");
    let args = ["prices", "new.yaml", "--since", "old.yaml"];
    let told = tollgate(dir.path(), &args, &[]);
    assert_eq!((told.code, told.err.as_str()), (Some(0), ""));
    let line = |name: &str| {
        let mut lines = told.out.lines();
        lines
            .find(|line| line.starts_with(name))
            .unwrap_or_else(|| panic!("{}", told.out))
    };
    assert!(line("acme-1 ").contains("3.00 -> 2.50"), "{}", told.out);
    assert!(line("acme-1-2026").contains("changed"), "{}", told.out);
    assert!(line("acme-2").contains("gone"), "{}", told.out);
    assert!(line("acme-3").contains("new"), "{}", told.out);
    let same = tollgate(
        dir.path(),
        &["prices", "old.yaml", "--since", "old.yaml"],
        &[],
    );
    assert_eq!(same.out, "no price differs\n");
}

#[test]
fn what_is_printed_can_be_taken_and_what_is_wrong_is_told_by_line() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let printed = tollgate(dir.path(), &["prices", "--print"], &[]);
    fs::write(dir.path().join("mine.yaml"), &printed.out).expect("it can be written");
    let config = "backends: { claude: { url: https://api.anthropic.com/v1, dialect: anthropic, credential: { inline: k } } }\n\
                  routes: [ { workload: w, backend: claude, model: claude-opus-4-5 } ]\n\
                  budgets: { all: { money: 10, per: day } }\nledger: { path: usage.db, retention: 40d }\n";
    let check = |more: &str| {
        fs::write(dir.path().join("tollgate.yaml"), format!("{config}{more}"))
            .expect("it can be written");
        tollgate(dir.path(), &["check"], &[])
    };
    let unpriced = check("");
    assert_eq!(unpriced.code, Some(1), "{}", unpriced.out);
    for catalogue in ["builtin", "mine.yaml"] {
        let good = check(&format!("prices: {{ catalogue: {catalogue} }}\n"));
        assert_eq!(good.code, Some(0), "{}", good.err);
    }
    fs::write(
        dir.path().join("mine.yaml"),
        MINE.replace("output: 5", "output: five"),
    )
    .expect("it can be written");
    let bad = check("prices: { catalogue: mine.yaml }\n");
    assert_eq!(bad.code, Some(1));
    assert!(
        bad.err.contains("mine.yaml:7: acme.models.acme-2.output"),
        "{}",
        bad.err
    );
    let bad = tollgate(dir.path(), &["prices", "mine.yaml"], &[]);
    assert_eq!((bad.code, bad.out.as_str()), (Some(1), ""));
    assert!(
        bad.err.contains("mine.yaml:7: acme.models.acme-2.output"),
        "{}",
        bad.err
    );
    let gone = tollgate(dir.path(), &["prices", "nowhere.yaml"], &[]);
    assert_eq!(gone.code, Some(1));
    assert!(gone.err.contains("nowhere.yaml"), "{}", gone.err);
}
