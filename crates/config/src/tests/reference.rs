//! `docs/config.md`: every field with its default; and examples of credentials.
//!
//! Not here: every other piece of YAML, of this page and all others (`pages`).

use serde_json::Value as Json;

use super::examples::example_world;
use crate::json_schema;

const CREDENTIALS: &str = include_str!("../../../../docs/upstream-credentials.md");
const PAGE: &str = include_str!("../../../../docs/config.md");

#[test]
fn every_field_stands_in_the_reference_with_its_default() {
    let schema: Json = serde_json::from_str(&json_schema()).unwrap();
    let mut seen = 0;
    for (record, definition) in schema["$defs"].as_object().unwrap() {
        for (field, about) in definition["properties"].as_object().unwrap() {
            let row = |line: &&str| {
                let name = line.strip_prefix("| `").and_then(|l| l.split('`').next());
                name.is_some_and(|n| {
                    n == field
                        || n.ends_with(&format!(".{field}"))
                        || n.starts_with(&format!("{field}."))
                })
            };
            let rows: Vec<&str> = PAGE.lines().filter(row).collect();
            assert!(
                !rows.is_empty(),
                "{record}.{field} is not in docs/config.md"
            );
            seen += 1;
            let about = about["description"].as_str().unwrap();
            let Some((_, default)) = about.split_once("Default ") else {
                continue;
            };
            let default = default
                .split([' ', ','])
                .next()
                .unwrap()
                .trim_end_matches('.');
            let says = |row: &&str| row.contains(default);
            assert!(
                rows.iter().any(says),
                "{record}.{field}: {default} in {rows:?}"
            );
        }
    }
    assert!(seen > 50, "{seen} fields");
}

#[test]
fn every_example_of_a_credential_is_taken_without_a_word() {
    let examples = CREDENTIALS.split("\n```yaml\n").skip(1);
    let mut seen = 0;
    for example in examples {
        seen += 1;
        let text = example.split("\n```").next().unwrap();
        let account = r#"{"type":"service_account","client_email":"a","private_key":"b","token_uri":"https://c"}"#;
        let mut world = example_world(text);
        world.put("secrets/service-account.json", account);
        for name in ["secrets/login", "secrets/entra", "secrets/aws"] {
            world.put(name, "canary");
        }
        world.put("secrets/gate.key", "-----BEGIN PRIVATE KEY-----\n");
        match world.load() {
            Ok(loaded) => assert_eq!(loaded.warnings, [], "{text}"),
            Err(faults) => panic!("{text}\n{faults}"),
        }
    }
    assert_eq!(seen, 7);
}
