//! What becomes of schemas.

use serde_json::{Value, json};

use super::{SCHEMA_BYTES_MAX, Schemas};

fn made(root: &Value, is_old: bool, schema: &Value) -> Result<Value, String> {
    let root = root.as_object().expect("an object");
    // A schema of a description lives as long as that does.
    let schema: &Value = Box::leak(Box::new(schema.clone()));
    let root = Box::leak(Box::new(root.clone()));
    Schemas::new(root, is_old).whole(schema)
}

#[test]
fn references_are_replaced_by_what_they_stand_for() {
    let root = json!({ "components": { "schemas": {
        "Pet": { "type": "object", "required": ["name", "id"], "properties": {
            "id": { "type": "integer", "readOnly": true },
            "name": { "$ref": "#/components/schemas/a~1b" },
        }, "x-internal": 1, "example": {} },
        "a/b": { "type": "string", "maxLength": 9 },
    } } });
    let schema = json!({ "$ref": "#/components/schemas/Pet" });
    let expected = json!({
        "type": "object", "required": ["name"], "properties": { "name": { "type": "string", "maxLength": 9 } },
    });
    assert_eq!(made(&root, true, &schema), Ok(expected.clone()));
    let beside = json!({ "$ref": "#/components/schemas/Pet", "description": "a pet" });
    assert_eq!(made(&root, true, &beside), Ok(expected));
    let newer = made(&root, false, &beside).expect("a schema");
    assert_eq!(newer["description"], "a pet");
    let narrowed = json!({ "$ref": "#/components/schemas/Pet", "minProperties": 1 });
    let newer = made(&root, false, &narrowed).expect("a schema");
    assert_eq!(newer["allOf"][1], json!({ "minProperties": 1 }));
}

#[test]
fn what_contains_itself_is_open_there() {
    let root = json!({ "components": { "schemas": { "Node": {
        "type": "object", "properties": { "next": { "$ref": "#/components/schemas/Node" }, "value": { "type": "string" } },
    } } } });
    let schema = json!({ "$ref": "#/components/schemas/Node" });
    let made = made(&root, false, &schema).expect("a schema");
    assert_eq!(made["properties"]["next"], json!({}));
    assert_eq!(made["properties"]["value"], json!({ "type": "string" }));
}

#[test]
fn a_large_schema_is_open_farther_up_and_none_is_larger_than_may_be() {
    let mut schemas = serde_json::Map::new();
    for nth in 0..12 {
        let mut of = serde_json::Map::new();
        for member in 0..4 {
            of.insert(
                format!("member_{member}"),
                json!({ "$ref": format!("#/components/schemas/S{}", nth + 1) }),
            );
        }
        schemas.insert(
            format!("S{nth}"),
            json!({ "type": "object", "properties": of }),
        );
    }
    schemas.insert("S12".into(), json!({ "type": "string" }));
    schemas.insert(
        "Wide".into(),
        json!({ "description": "x".repeat(SCHEMA_BYTES_MAX) }),
    );
    let root = json!({ "components": { "schemas": schemas } });
    let made_of = |name: &str| {
        let schema = json!({ "$ref": format!("#/components/schemas/{name}") });
        made(&root, false, &schema)
    };
    let whole = made_of("S0").expect("a schema").to_string();
    assert!(whole.len() < SCHEMA_BYTES_MAX && whole.contains("member_3"));
    assert_eq!(
        made_of("Wide"),
        Err("its schema has more than 64 KiB".into())
    );
}

#[test]
fn what_is_in_another_document_is_not_fetched() {
    for to in [
        "https://example.com/a.yaml#/X",
        "other.yaml",
        "file:///etc/passwd",
        "#Anchor",
    ] {
        let schema = json!({ "type": "object", "properties": { "a": { "$ref": to } } });
        let refused = made(&json!({}), false, &schema).expect_err(to);
        assert!(refused.contains("none is fetched"), "{refused}");
    }
    let missing = made(
        &json!({}),
        false,
        &json!({ "$ref": "#/components/schemas/No" }),
    );
    assert!(missing.is_err_and(|says| says.contains("stands for nothing")));
}

#[test]
fn what_the_older_version_writes_otherwise_is_json_schema() {
    let old = json!({ "type": "string", "nullable": true, "enum": ["a"], "minimum": 1, "exclusiveMinimum": true, "maximum": 2, "exclusiveMaximum": false });
    let expected = json!({ "type": ["string", "null"], "enum": ["a", null], "exclusiveMinimum": 1, "maximum": 2 });
    assert_eq!(made(&json!({}), true, &old), Ok(expected));
}
