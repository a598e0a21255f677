//! What each `tool_choice` forces, and with which arguments.

use serde_json::{Value, json};

use super::*;

const NEVER: Auto = Auto {
    enabled: true,
    share: 0.0,
};

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
    chosen(&offered(Some(tools))?, Some(&choice), NEVER, 1)
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
    assert!(
        arguments["city"].is_string() && arguments["days"].is_i64(),
        "{arguments}"
    );
    assert!(["C", "F"].contains(&arguments["unit"].as_str().unwrap()));
    assert!(arguments["place"]["lat"].is_number());
}

#[test]
fn required_takes_the_first_tool_and_auto_takes_none() {
    assert_eq!(
        force(&weather(), json!("required")).unwrap().unwrap().name,
        "weather"
    );
    assert_eq!(force(&weather(), json!("auto")).unwrap(), None);
    assert_eq!(chosen(&[], None, NEVER, 1).unwrap(), None);
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
    assert_eq!(call.name, "f");
    assert!(call.arguments.starts_with('{'), "{}", call.arguments);
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

#[test]
fn a_tool_is_called_as_often_as_configured_when_it_may_be() {
    let offered = offered(Some(&weather())).unwrap();
    for (share, least, most) in [(0.0, 0, 0), (0.3, 250, 350), (1.0, 1000, 1000)] {
        let auto = Auto {
            enabled: true,
            share,
        };
        for choice in [None, Some(Json::String("auto".to_owned()))] {
            let calls = (0..1000).filter(|seed| {
                let chosen = chosen(&offered, choice.as_ref(), auto, *seed);
                chosen.unwrap().is_some()
            });
            assert!((least..=most).contains(&calls.count()), "{share}");
        }
        let none = Json::String("none".to_owned());
        assert_eq!(chosen(&offered, Some(&none), auto, 1).unwrap(), None);
    }
}

#[test]
fn what_is_left_to_the_model_is_refused_where_the_server_was_not_started_for_it() {
    let offered = offered(Some(&weather())).unwrap();
    let closed = Auto {
        enabled: false,
        share: 1.0,
    };
    let refusal = chosen(&offered, None, closed, 1).unwrap_err();
    assert_eq!(
        refusal.message(),
        "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set"
    );
    let required = Json::String("required".to_owned());
    assert!(chosen(&offered, Some(&required), closed, 1).is_ok());
    assert_eq!(chosen(&[], None, closed, 1).unwrap(), None);
}

#[test]
fn a_schema_that_is_not_supported_is_refused_when_forced_and_not_called_otherwise() {
    let odd = tools(
        &json!([{"type": "function", "function": {"name": "f", "parameters": {
        "type": "object", "properties": {"a": {"type": "array", "uniqueItems": true}}}}}]),
    );
    let refusal = force(&odd, json!("required")).unwrap_err();
    assert!(
        refusal.message().contains("uniqueItems"),
        "{}",
        refusal.message()
    );
    let always = Auto {
        enabled: true,
        share: 1.0,
    };
    assert_eq!(
        chosen(&offered(Some(&odd)).unwrap(), None, always, 1).unwrap(),
        None
    );
}
