//! What goes upstream of a body, and what is withheld of the answer.

use policy::operation::Operation::{Chat, Completions, Embeddings, Responses, Transcriptions};

use crate::fixture::RoutePlan;
use crate::world::{FORM_OF_M, World, call, plan};

const ASKS: &str = r#""stream_options":{"include_usage":true}"#;

fn with_model(model: &str) -> World {
    let model = Some(model);
    World::routes(&[RoutePlan { model, ..plan() }])
}

#[test]
fn a_call_that_needs_no_change_is_not_edited() {
    let streams = format!(r#"{{"model":"m","stream":true,{ASKS}}}"#);
    for (operation, body) in [
        (Chat, r#"{"model":"m","messages":[]}"#),
        (Chat, r#"{"model":"m","stream":false}"#),
        (Chat, &streams),
        // They report usage unasked.
        (Responses, r#"{"model":"m","stream":true}"#),
        (Embeddings, r#"{"model":"m","stream":true}"#),
    ] {
        let mut world = World::routes(&[plan()]);
        let asked = world.ask(&call(operation, body));
        assert_eq!(asked.record().model_sent.as_deref(), Some("m"));
        assert_eq!(world.sent(asked), (body.to_owned(), false), "{operation:?}");
    }
}

#[test]
fn a_models_override_replaces_the_name_or_adds_it() {
    for (body, expected) in [
        (r#"{"model":"m","n":1}"#, r#"{"model":"other-2.5","n":1}"#),
        (r#"{"model": null }"#, r#"{"model": "other-2.5" }"#),
        (r#"{"n":1}"#, r#"{"model":"other-2.5","n":1}"#),
        ("{}", r#"{"model":"other-2.5"}"#),
        (r#"{"model":"other-2.5"}"#, r#"{"model":"other-2.5"}"#),
    ] {
        let mut world = with_model("other-2.5");
        let asked = world.ask(&call(Chat, body));
        assert_eq!(asked.record().model_sent.as_deref(), Some("other-2.5"));
        assert_eq!(world.sent(asked).0, expected);
    }
}

#[test]
fn usage_is_asked_for_and_withheld_only_from_a_client_that_did_not_ask() {
    let streams = format!(r#"{{"stream":true,{ASKS}}}"#);
    for (body, withheld, expected) in [
        (
            r#"{"stream":true}"#,
            true,
            &*format!(r#"{{{ASKS},"stream":true}}"#),
        ),
        (r#"{"stream":true,"stream_options":{}}"#, true, &streams),
        (r#"{"stream":true,"stream_options":null}"#, true, &streams),
        (
            r#"{"stream":true,"stream_options":{"include_usage":false}}"#,
            true,
            &streams,
        ),
        (&streams, false, &streams),
        (r#"{"stream":false}"#, false, r#"{"stream":false}"#),
        ("{}", false, "{}"),
    ] {
        for operation in [Chat, Completions] {
            let mut world = World::routes(&[plan()]);
            let asked = world.ask(&call(operation, body));
            assert_eq!(world.sent(asked), (expected.to_owned(), withheld), "{body}");
        }
    }
}

#[test]
fn both_edits_at_once_stay_one_document() {
    let mut world = with_model("x");
    let asked = world.ask(&call(Chat, r#"{"stream":true,"model":"m"}"#));
    let expected = format!(r#"{{{ASKS},"stream":true,"model":"x"}}"#);
    assert_eq!(world.sent(asked).0, expected);
}

#[test]
fn a_form_is_read_and_its_model_replaced_where_it_stands() {
    let mut world = World::routes(&[plan()]);
    let asked = world.ask(&call(Transcriptions, FORM_OF_M));
    assert_eq!(asked.estimate().reserved, 1);
    assert_eq!(asked.record().model_sent.as_deref(), Some("m"));
    assert_eq!(world.sent(asked), (FORM_OF_M.to_owned(), false));
    let mut world = World::routes(&[RoutePlan {
        model: Some("whisper-1"),
        ..plan()
    }]);
    let asked = world.ask(&call(Transcriptions, FORM_OF_M));
    let expected = FORM_OF_M.replace("\r\nm\r\n", "\r\nwhisper-1\r\n");
    assert_eq!(world.sent(asked), (expected, false));
    let none = FORM_OF_M.replace("\"model\"", "\"language\"");
    let refused = world.ask(&call(Transcriptions, &none));
    assert_eq!(refused.code(), "model_required");
}
