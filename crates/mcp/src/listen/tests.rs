//! What is asked to be heard of, and what is said.

use serde_json::{Value, json};

use super::{Filter, acknowledged, ended, method_of, tagged};
use crate::envelope::Message;
use crate::handshake::Abilities;

fn filter(notifications: &Value) -> Option<Filter> {
    let text = json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen",
        "params": {"notifications": notifications}})
    .to_string();
    let message = Message::read(text.as_bytes()).expect("a message");
    Filter::read(text.as_bytes(), message.params.as_ref()).ok()
}

fn json_of(text: &[u8]) -> Value {
    serde_json::from_slice(text).expect("JSON")
}

#[test]
fn no_more_is_heard_of_than_was_asked_and_is_told_of() {
    let asked = filter(
        &json!({"toolsListChanged": true, "promptsListChanged": false, "resourcesListChanged": true,
        "resourceSubscriptions": ["file:///a"]}),
    )
    .expect("it is read");
    assert!(asked.has("notifications/tools/list_changed"));
    assert!(!asked.has("notifications/prompts/list_changed"));
    assert!(asked.has("notifications/resources/updated"));
    assert!(!asked.has("notifications/message"));
    let offered = Abilities::TOOLS_CHANGE.and(Abilities::PROMPTS_CHANGE);
    let within = asked.within(offered, vec!["file:///a".into()]);
    assert_eq!(json_of(&within.write()), json!({"toolsListChanged": true}));
    let within = asked.within(Abilities::SUBSCRIPTIONS, vec!["x".into()]);
    assert_eq!(
        json_of(&within.write()),
        json!({"resourceSubscriptions": ["x"]})
    );
    assert!(asked.within(Abilities::TOOLS, Vec::new()).is_empty());
    assert_eq!(
        json_of(&Filter::of_lists(offered).write()),
        json!({"toolsListChanged": true, "promptsListChanged": true})
    );
    for none in [
        json!(7),
        json!({"resourceSubscriptions": 7}),
        json!({"resourceSubscriptions": vec!["u"; 300]}),
        json!({"taskIds": "a"}),
        json!({"taskIds": vec!["t"; 257]}),
    ] {
        assert_eq!(filter(&none), None, "{none}");
    }
}

#[test]
fn tasks_are_heard_of_by_their_ids() {
    let asked = filter(&json!({"taskIds": ["a", "b"]})).expect("it is read");
    assert_eq!(asked.tasks, ["a", "b"]);
    assert!(asked.has("notifications/tasks") && !asked.is_empty());
    assert!(asked.within(Abilities::TASKS, Vec::new()).is_empty());
    let some = Filter::default().with_tasks(vec!["job/1".into()]);
    assert_eq!(json_of(&some.write()), json!({"taskIds": ["job/1"]}));
    assert!(!Filter::default().has("notifications/tasks"));
}

#[test]
fn each_message_names_the_request_that_asked_for_it() {
    let of = |meta: Option<Value>, further: Value| {
        let mut params = further;
        if let Some(meta) = meta {
            params["_meta"] = meta;
        }
        let text = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params}).to_string();
        json_of(&tagged(text.as_bytes(), b"\"a\"").expect("a notification"))["params"].clone()
    };
    let id = "io.modelcontextprotocol/subscriptionId";
    assert_eq!(
        of(None, json!({"uri": "u"})),
        json!({"uri": "u", "_meta": {id: "a"}})
    );
    assert_eq!(
        of(Some(json!({id: 9, "x": 1})), json!({"uri": "u"})),
        json!({"uri": "u", "_meta": {id: "a", "x": 1}})
    );
    assert_eq!(of(Some(json!({})), json!({})), json!({"_meta": {id: "a"}}));
    let bare = br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let tagged_bare = json_of(&tagged(bare, b"1").expect("a notification"));
    assert_eq!(tagged_bare["params"], json!({"_meta": {id: 1}}));
    assert_eq!(
        tagged(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#, b"1"),
        None
    );
    let first = json_of(&acknowledged(
        &Filter::of_lists(Abilities::TOOLS_CHANGE),
        b"7",
    ));
    assert_eq!(
        first["params"],
        json!({"_meta": {id: 7}, "notifications": {"toolsListChanged": true}})
    );
    let last = json_of(&ended(b"7"));
    assert_eq!(
        (&last["id"], &last["result"]["_meta"][id]),
        (&json!(7), &json!(7))
    );
    assert_eq!(
        method_of(bare).as_deref(),
        Some("notifications/tools/list_changed")
    );
}
