//! The documents under `examples/` and in the reference lower without a fault or a warning.

use std::path::Path;

use super::world::World;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

pub(super) fn example_world(text: &str) -> World {
    let certificate = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
    let key = "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n";
    let mut world = World::with(text);
    world
        .put("secrets/gemini-api-key", "canary-gemini\n")
        .put("secrets/replicas", "canary-replicas\n")
        .put("secrets/openai", "canary-openai\n")
        .put("llama/tokenizer.json", "{}")
        .put("llama/tokenizer_config.json", "{}")
        .put("llama/chat_template.jinja", "")
        .put("tls/gate.pem", certificate)
        .put("tls/gate.key", key)
        .put("tls/internal-ca.pem", certificate)
        .set("VLLM_API_KEY", "canary-vllm")
        .set("GEMINI_API_KEY", "canary-gemini")
        .set("OPENAI_API_KEY", "canary-openai");
    world
}

#[test]
fn every_example_is_taken_without_a_word() {
    let mut seen = 0;
    for entry in std::fs::read_dir(Path::new(ROOT).join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "yaml") {
            continue;
        }
        seen += 1;
        let text = std::fs::read_to_string(&path).unwrap();
        match example_world(&text).load() {
            Ok(loaded) => assert_eq!(loaded.warnings, [], "{}", path.display()),
            Err(faults) => panic!("{}:\n{faults}", path.display()),
        }
    }
    assert!(seen >= 3, "{seen} examples");
}

#[test]
fn the_white_paper_set_up_is_a_dozen_lines() {
    let text = std::fs::read_to_string(Path::new(ROOT).join("examples/white-paper.yaml")).unwrap();
    let lines = text
        .lines()
        .filter(|l| !l.trim_start().starts_with('#'))
        .count();
    assert!(lines <= 13, "{lines} lines");
}
