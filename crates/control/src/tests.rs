//! `vectors/manifests/*.txt`: files of objects in, our document or every fault out.
//!
//! `UPDATE=1` rewrites what comes out.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use config::{Fault, Located, Sources};

use crate::{Input, is_manifest, load, lower};

/// No file but those that come along, and some variables.
struct World(BTreeMap<String, String>);

impl Sources for World {
    fn read(&self, _: &Path, _: usize) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn var(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "UPDATE=1 rewrites the vectors")]
fn every_vector_lowers_as_it_says() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/manifests");
    let mut seen = 0;
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "txt") {
            continue;
        }
        seen += 1;
        let text = std::fs::read_to_string(&path).unwrap();
        let now = check(&text);
        if now != text {
            if std::env::var_os("UPDATE").is_some() {
                std::fs::write(&path, now).unwrap();
            } else {
                wrong.push(format!("{}:\n{now}", path.display()));
            }
        }
    }
    assert!(seen >= 10, "{seen} vectors found in {}", dir.display());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The files of a vector, its world, and the text of both.
fn read(text: &str) -> (Vec<(PathBuf, String)>, World, String) {
    let mut kept = String::new();
    let mut files: Vec<(PathBuf, String)> = Vec::new();
    let mut world = World(BTreeMap::new());
    for section in text.split("=== ").skip(1) {
        let (title, body) = section.split_once('\n').unwrap();
        match title.split_once(' ') {
            Some(("file", name)) => files.push((name.into(), body.to_owned())),
            None if title == "variables" => {
                let pairs = body.lines().filter_map(|line| line.split_once('='));
                world
                    .0
                    .extend(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
            }
            _ => break,
        }
        kept.push_str("=== ");
        kept.push_str(section);
    }
    (files, world, kept)
}

fn inputs(files: &[(PathBuf, String)]) -> Vec<Input<'_>> {
    files
        .iter()
        .map(|(file, text)| Input { file, text })
        .collect()
}

/// The vector with its outcome as it is today.
fn check(text: &str) -> String {
    let (files, world, kept) = read(text);
    let inputs = inputs(&files);
    assert!(inputs.iter().any(|input| is_manifest(input.text)));
    let mut out = String::new();
    let loaded = load(
        Path::new("manifests"),
        Path::new("manifests"),
        &inputs,
        &world,
    );
    match (loaded, lower(&inputs)) {
        (Ok(loaded), Ok(lowered)) => {
            let _ = write!(out, "=== document\n{}", lowered.document);
            if !lowered.given.is_empty() {
                out.push_str("=== given\n");
            }
            for (given, of) in lowered.given.iter().zip(&lowered.given_of) {
                let _ = writeln!(out, "{} <- {of}", given.path.display());
                let secret = String::from_utf8_lossy(given.content.expose()).into_owned();
                let shown = format!("{}{}{loaded:?}", lowered.document, loaded.document.json());
                assert!(
                    secret.len() < 9 || !shown.contains(secret.trim()),
                    "a secret is shown: {given:?}"
                );
            }
            said("warnings", &loaded.warnings, &mut out);
        }
        (Err(faults), _) => {
            said("faults", &faults.faults, &mut out);
            said("warnings", &faults.warnings, &mut out);
        }
        (Ok(_), Err(_)) => unreachable!("what is loaded was lowered"),
    }
    kept + &out
}

fn said(title: &str, faults: &[Fault], out: &mut String) {
    if !faults.is_empty() {
        let _ = writeln!(out, "=== {title}");
    }
    for fault in faults {
        let file = Path::new("manifests");
        let _ = writeln!(out, "{}", Located { file, fault });
    }
}

/// The white paper's three policies, as a cluster has them.
#[test]
fn the_white_papers_manifests_are_taken_without_a_word_and_say_what_its_document_says() {
    let text = include_str!("../../../examples/manifests/white-paper.yaml");
    let file = Path::new("white-paper.yaml");
    let variables = [
        ("GEMINI_API_KEY", "canary-of-gemini"),
        ("VLLM_API_KEY", "canary-of-vllm"),
    ];
    let world = World(
        variables
            .map(|(name, value)| (name.into(), value.into()))
            .into(),
    );
    let inputs = [Input { file, text }];
    let loaded =
        load(file, Path::new(""), &inputs, &world).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.watched, [file]);
    let json = loaded.document.json();
    assert_eq!(json["identity"]["header"], "x-workload-app");
    let routes = json["routes"].as_array().expect("routes");
    let limits: Vec<String> = routes
        .iter()
        .map(|route| format!("{} {}", route["workload"], route["limits"]))
        .collect();
    let requests = r#"{"per":"1m","requests":2,"window":"rolling"}"#;
    let tokens = r#"{"per":"1m","tokens":100000,"window":"rolling"}"#;
    assert_eq!(
        limits,
        [
            format!("\"toolbench-agent\" [{tokens}]"),
            format!("\"swe-rebench-ide\" [{requests},{tokens}]"),
            format!(
                "[\"terminal-bench-ci\",\"api-orchestration\",\"terminal\",\"ui-navigation\",\"coding\"] [{tokens}]"
            ),
        ]
    );
}

/// Every file of every vector with each of its lines left out, or said twice: taken or refused with a place, and never a secret in what is said.
#[test]
fn a_line_that_is_missing_or_doubled_is_taken_or_told_and_no_secret_is_ever_said() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/manifests");
    let mut tried = 0;
    for entry in std::fs::read_dir(&dir).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let (files, world, _) = read(&text);
        for (index, (_, whole)) in files.iter().enumerate() {
            let lines: Vec<&str> = whole.lines().collect();
            for at in 0..lines.len() {
                for times in [0, 2] {
                    let line = |(n, line): (usize, &&str)| {
                        format!("{line}\n").repeat(if n == at { times } else { 1 })
                    };
                    let mut changed = files.clone();
                    changed[index].1 = lines.iter().enumerate().map(line).collect();
                    let loaded = load(
                        Path::new("manifests"),
                        Path::new("manifests"),
                        &inputs(&changed),
                        &world,
                    );
                    let said = match &loaded {
                        Ok(loaded) => format!("{:?}{}", loaded.warnings, loaded.document.json()),
                        Err(faults) => {
                            let is_placed = faults
                                .faults
                                .iter()
                                .all(|fault| fault.file.is_some() && !fault.says.is_empty());
                            assert!(
                                is_placed && !faults.faults.is_empty(),
                                "line {at} {times} times of\n{whole}\n{faults:?}"
                            );
                            format!("{faults:?}")
                        }
                    };
                    assert!(
                        !said.contains("canary-of"),
                        "line {at} {times} times of\n{whole}\n{said}"
                    );
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 500, "{tried}");
}
