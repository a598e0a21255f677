//! `vectors/import/litellm/*.txt`: a configuration of LiteLLM's in, the gate's document out, and what `tollgate check` says of it.
//!
//! `UPDATE=1` rewrites the sections of the outcome. Whatever holds the word `canary` is a secret, and in no outcome.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use super::{Imported, import_agentgateway, import_litellm, import_portkey};
use crate::fault::{Fault, Faults, Located};
use crate::sources::Sources;
use crate::tests::world::World;

const FILE: &str = "/etc/tollgate/config.yaml";

#[test]
fn every_configuration_becomes_a_document_that_check_takes() {
    every_one_in("litellm", import_litellm, 10);
}

#[test]
fn every_config_of_portkeys_becomes_a_document_that_check_takes() {
    every_one_in("portkey", import_portkey, 3);
}

#[test]
fn every_configuration_of_agentgateways_becomes_a_document_that_check_takes() {
    every_one_in("agentgateway", import_agentgateway, 2);
}

type Import = fn(&Path, &dyn Sources) -> Result<Imported, Faults>;

fn every_one_in(name: &str, import: Import, least: usize) {
    let good = Cell::new(0);
    testing::vectors(&format!("import/{name}"), least, |text| {
        let now = outcome(text, import);
        good.set(good.get() + usize::from(now.contains("\n=== document\n")));
        now
    });
    assert!(good.get() >= least, "{} good configurations", good.get());
}

/// The vector with its outcome as it is today.
fn outcome(text: &str, import: Import) -> String {
    let mut world = World::default();
    let mut kept = String::new();
    for section in text.split("=== ").skip(1) {
        let (title, body) = section.split_once('\n').unwrap();
        match title {
            "litellm" | "portkey" | "agentgateway" => {
                world.put("config.yaml", body);
            }
            "variables" => {
                for (name, value) in body.lines().filter_map(|line| line.split_once('=')) {
                    world.set(name, value);
                }
            }
            "document" | "warnings" | "check" | "faults" => break,
            title => {
                let name = title.strip_prefix("file ").unwrap();
                world.put(name, body);
            }
        }
        kept.push_str("=== ");
        kept.push_str(section);
    }
    let made = made(&world, import);
    assert!(!made.contains("canary"), "a secret is shown:\n{made}");
    kept + &made
}

fn made(world: &World, import: Import) -> String {
    let mut made = String::new();
    match import(Path::new(FILE), world) {
        Ok(imported) => {
            let _ = write!(made, "=== document\n{}", imported.text);
            section(&mut made, "warnings", &imported.warnings, "config.yaml");
            let checked = checked(world, &imported.text);
            section(&mut made, "check", &checked, "tollgate.yaml");
        }
        Err(faults) => {
            section(&mut made, "faults", &faults.faults, "config.yaml");
            section(&mut made, "warnings", &faults.warnings, "config.yaml");
        }
    }
    made
}

/// What `tollgate check` warns of, once the variables are set; it must find no fault.
fn checked(world: &World, text: &str) -> Vec<Fault> {
    let mut with_it = World {
        files: world.files.clone(),
        vars: world.vars.clone(),
    };
    for name in variables(text) {
        if !world.vars.contains_key(&name) {
            let is_address = name.ends_with("_BASE");
            with_it.set(
                &name,
                if is_address {
                    "https://host.example/v1"
                } else {
                    "canary-of-a-variable-that-is-long-enough"
                },
            );
        }
    }
    with_it.put("tollgate.yaml", text);
    match with_it.load() {
        Ok(loaded) => loaded.warnings,
        Err(faults) => panic!("{faults}\nin\n{text}"),
    }
}

/// The variables that a document names.
fn variables(text: &str) -> BTreeSet<String> {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    let mut names = BTreeSet::new();
    for line in lines {
        for start in ["env: ", "${"] {
            for after in line.split(start).skip(1) {
                let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                names.extend(after.split(|c| !is_of_name(c)).next().map(str::to_owned));
            }
        }
    }
    names
}

fn section(made: &mut String, title: &str, faults: &[Fault], file: &str) {
    if faults.is_empty() {
        return;
    }
    let _ = writeln!(made, "=== {title}");
    for fault in faults {
        let file = Path::new(file);
        let _ = writeln!(made, "{}", Located { file, fault });
    }
}

#[test]
fn check_says_whose_configuration_it_is() {
    let world = World::with("model_list:\n  - model_name: a\nlitellm_settings: {}\n");
    let Err(faults) = world.load() else {
        panic!("it is no document of the gate's");
    };
    assert_eq!(
        faults.to_string(),
        "/etc/tollgate/tollgate.yaml:1: model_list: this is a configuration of LiteLLM's; \
         `tollgate import litellm FILE` makes one of the gate's of it, and docs/coming-from.md#from-litellm says what it \
         cannot carry"
    );
}

/// Whatever is cut out of a configuration, the import says so or makes a document that is taken.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "with UPDATE=1 the vectors are being written"
)]
fn no_line_that_is_missing_makes_a_document_with_faults() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/import/litellm");
    if std::env::var_os("UPDATE").is_some() {
        return;
    }
    for entry in std::fs::read_dir(dir).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let (before, rest) = text.split_once("=== litellm\n").unwrap();
        assert_eq!(before, "");
        let (config, rest) = rest.split_once("=== ").unwrap();
        let lines: Vec<&str> = config.lines().collect();
        for cut in 0..lines.len() {
            let mut lines = lines.clone();
            lines.remove(cut);
            let without = format!("=== litellm\n{}\n=== {rest}", lines.join("\n"));
            outcome(&without, import_litellm);
        }
    }
}
