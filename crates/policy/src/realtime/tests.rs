//! Which model a session is of, and what goes upstream of its query.

use super::*;
use crate::query::of_session;

fn head(target: &str) -> RequestHead {
    let mut head = RequestHead::new();
    head.set_method("GET").expect("a method");
    head.set_target(target).expect("a target");
    head
}

#[test]
fn the_address_names_one_model_which_the_backend_is_told_by_its_own_name() {
    let of = |target: &str| model(&head(target));
    assert_eq!(of("/v1/realtime").expect("none").as_deref(), None);
    let named = of("/v1/realtime?model=org%2Fm&intent=x").expect("one");
    assert_eq!(named.as_deref(), Some("org/m"));
    for none in [
        "model=",
        "model=a&model=b",
        "model=a&%6dodel=b",
        "model=a%20b",
    ] {
        let target = format!("/v1/realtime?{none}");
        assert!(
            matches!(of(&target), Err(Refusal::RealtimeEvent { .. })),
            "{none}"
        );
    }
    for (asked, sent, made) in [
        ("model=m", Some("org/n"), Some("model=org%2Fn")),
        (
            "intent=transcription&key=k&%6dodel=x",
            None,
            Some("intent=transcription"),
        ),
        ("a=b", None, None),
        (
            "api-version=1&model=m",
            Some("m"),
            Some("model=m&api-version=1"),
        ),
    ] {
        assert_eq!(of_session(asked, sent).as_deref(), made, "{asked}");
    }
    assert!(names_call(&head("/v1/realtime?call%5Fid=rtc_1")));
}
