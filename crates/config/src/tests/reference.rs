//! `docs/config.md`: every field with its default, and every piece of YAML taken or refused as it says.

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
    assert_eq!(seen, 6);
}

#[test]
fn every_piece_of_yaml_is_taken_or_refused_as_the_page_says() {
    let around = "backends: { on-prem: { url: http://127.0.0.1:8000/v1 }, hosted: { url: http://127.0.0.1:8001/v1 } }\n";
    let (mut whole, mut parts, mut faulty) = (0, 0, 0);
    for piece in PAGE.split("\n```yaml").skip(1) {
        let (kind, rest) = piece.split_once('\n').unwrap();
        let text = rest.split("\n```").next().unwrap();
        match kind {
            "" => {
                whole += 1;
                example_world(text)
                    .load()
                    .unwrap_or_else(|faults| panic!("{text}\n{faults}"));
            }
            " part" => {
                parts += 1;
                let mut text = format!("{text}\n");
                if !text.starts_with("backends:") {
                    text += around;
                }
                if !text.contains("\nroutes:") && !text.starts_with("routes:") {
                    text += "routes: [ { workload: chat, backend: [on-prem, hosted] } ]\n";
                }
                example_world(&text)
                    .load()
                    .unwrap_or_else(|faults| panic!("{text}\n{faults}"));
            }
            " faulty" => {
                faulty += 1;
                let faults = example_world(text).load().unwrap_err().to_string();
                let shown = PAGE
                    .split("\n```text\n")
                    .nth(1)
                    .unwrap()
                    .split("\n```")
                    .next()
                    .unwrap();
                assert_eq!(
                    faults.replace("/etc/tollgate/tollgate.yaml", "tollgate.yaml"),
                    shown
                );
            }
            other => panic!("a block of yaml{other}"),
        }
    }
    assert!(
        (whole, parts, faulty) == (1, 13, 1),
        "{whole} {parts} {faulty}"
    );
}
