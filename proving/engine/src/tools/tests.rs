//! What each `tool_choice` forces, and with which arguments.

use super::*;

fn tools(value: &Value) -> Vec<Json> {
    serde_json::from_str(&value.to_string()).unwrap()
}

fn weather() -> Vec<Json> {
    tools(
        &json!([{"type": "function", "function": {"name": "weather", "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"}, "unit": {"enum": ["C", "F"]}, "days": {"type": "integer"},
                "place": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]},
                "optional": {"type": "string"},
            },
            "required": ["city", "unit", "days", "place"],
        }}}]),
    )
}

fn force(tools: &[Json], choice: Value) -> Result<Option<Forced>, Refusal> {
    let choice: Json = serde_json::from_str(&choice.to_string()).unwrap();
    forced(&offered(Some(tools))?, Some(&choice))
}

#[test]
fn a_named_function_is_called_with_its_required_members() {
    let call = force(
        &weather(),
        json!({"type": "function", "function": {"name": "weather"}}),
    )
    .unwrap()
    .unwrap();
    assert!(call.named);
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
    assert_eq!(
        arguments,
        json!({"city": "string", "unit": "C", "days": 1, "place": {"lat": 1}})
    );
}

#[test]
fn required_takes_the_first_tool_and_auto_takes_none() {
    assert_eq!(
        force(&weather(), json!("required")).unwrap().unwrap().name,
        "weather"
    );
    assert_eq!(force(&weather(), json!("auto")).unwrap(), None);
    assert_eq!(forced(&[], None).unwrap(), None);
}

#[test]
fn the_responses_dialect_has_flat_tools() {
    let tools = tools(&json!([
        {"type": "function", "name": "f", "parameters": {"type": "object"}},
        {"type": "web_search"},
    ]));
    let call = force(&tools, json!({"type": "function", "name": "f"}))
        .unwrap()
        .unwrap();
    assert_eq!((call.name.as_str(), call.arguments.as_str()), ("f", "{}"));
}

#[test]
fn a_choice_that_cannot_be_met_is_refused() {
    assert!(force(&[], json!("required")).is_err());
    assert!(force(&weather(), json!("sometimes")).is_err());
    assert!(
        force(
            &weather(),
            json!({"type": "function", "function": {"name": "missing"}})
        )
        .is_err()
    );
    assert!(force(&tools(&json!([{"type": "function"}])), json!("auto")).is_err());
}

#[test]
fn a_schema_keeps_its_order() {
    let text = r#"[{"type":"function","function":{"name":"f","parameters":{"z":1,"a":2}}}]"#;
    let offered = offered(Some(&serde_json::from_str::<Vec<Json>>(text).unwrap())).unwrap();
    assert_eq!(
        offered[0].parameters.as_ref().unwrap().to_string(),
        r#"{"z":1,"a":2}"#
    );
}
