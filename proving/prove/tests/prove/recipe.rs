//! The recipe of the paper's corpus: what is there, what is missing, what has another checksum, and what is built.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::PROVE;

fn recipe(recipe: &Path, further: &[&str]) -> Output {
    let mut command = Command::new(PROVE);
    command.args(["corpus", "recipe"]).arg(recipe).args(further);
    command.output().expect("prove runs")
}

fn said(output: &Output) -> String {
    let [out, err] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    out + &err
}

#[test]
fn the_papers_five_sets_are_told_of_and_built_once_they_are_placed_and_unchanged() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shipped = root.join("scenarios/paper-corpus/corpus.toml");
    let none = recipe(&shipped, &[]);
    assert_eq!(none.status.code(), Some(1));
    let says = said(&none);
    for (set, sessions, licence) in [
        ("api-orchestration", "5,000", "Apache-2.0"),
        ("terminal", "865", "Apache-2.0"),
        ("ui-navigation", "5,000", "Apache-2.0"),
        ("swe-rebench", "5,000", "CC-BY-4.0"),
        ("coderforge", "5,000", "by record"),
    ] {
        let line = says.lines().find(|line| line.starts_with(set)).expect(set);
        assert!(
            line.contains(&format!("{sessions} sessions")) && line.ends_with(licence),
            "{line}"
        );
    }
    assert_eq!(says.matches("MISSING: place it at").count(), 5, "{says}");

    // Made-up records in the form of each set are in the checkout.
    let dir = tempfile::tempdir().expect("a directory");
    let own = dir.path().join("corpus.toml");
    fs::copy(&shipped, &own).expect("a copy");
    let fixtures = root.join("proving/corpus/fixtures");
    for (from, to) in [
        ("toolbench", "toolbench"),
        ("terminal-bench", "terminal-bench"),
        ("omniact", "omniact"),
        ("openhands", "swe-rebench"),
    ] {
        copy(&fixtures.join(from), &dir.path().join(to));
    }
    let out = dir.path().join("paper").to_string_lossy().into_owned();
    let some = recipe(&own, &["--out", &out]);
    assert_eq!(some.status.code(), Some(1));
    assert!(said(&some).contains("sets are missing"), "{}", said(&some));
    assert!(!Path::new(&out).exists());
    copy(&fixtures.join("coderforge"), &dir.path().join("coderforge"));
    let sums = recipe(&own, &["--write-checksums"]);
    assert_eq!(sums.status.code(), Some(0), "{}", said(&sums));
    let whole = recipe(&own, &["--out", &out, "--", "--threads", "1"]);
    assert_eq!(whole.status.code(), Some(0), "{}", said(&whole));
    let manifest = fs::read_to_string(Path::new(&out).join("corpus.json")).expect("a manifest");
    let manifest: serde_json::Value = serde_json::from_str(&manifest).expect("JSON");
    let names: Vec<&str> = manifest["profiles"]
        .as_array()
        .expect("profiles")
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "api-orchestration",
            "terminal",
            "ui-navigation",
            "swe-rebench",
            "coderforge"
        ]
    );

    // A file that has changed since is told of, and nothing is built of it.
    let changed = first_file(&dir.path().join("swe-rebench"));
    let text = fs::read(&changed).expect("a file");
    fs::write(&changed, [&text[..], b"\n"].concat()).expect("written");
    let again = dir.path().join("again").to_string_lossy().into_owned();
    let other = recipe(&own, &["--out", &again]);
    assert_eq!(other.status.code(), Some(1));
    assert!(
        said(&other).contains("another checksum: swe-rebench/"),
        "{}",
        said(&other)
    );
    assert!(!Path::new(&again).exists());
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry").path();
        let to = to.join(entry.file_name().expect("a name"));
        if entry.is_dir() {
            copy(&entry, &to);
        } else {
            fs::copy(&entry, &to).expect("a copy");
        }
    }
}

fn first_file(dir: &Path) -> PathBuf {
    let mut all: Vec<PathBuf> = fs::read_dir(dir)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    all.sort();
    let first = all.into_iter().next().expect("a file");
    if first.is_dir() {
        first_file(&first)
    } else {
        first
    }
}
