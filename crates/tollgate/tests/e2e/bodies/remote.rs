//! URLs inside a body are text and are never fetched: B12 and B13.
//!
//! Invariant: the gate connects to nothing that a client names.
//! Not here: addresses in the configuration.

use std::net::TcpListener;

use crate::fixture::{Fixture, call};

#[test]
fn b12_references_in_a_schema_are_never_resolved() {
    let (fixture, canary_listener) = (Fixture::new(), canary_listener());
    let port = canary_listener.local_addr().expect("it is bound").port();
    for schema in [
        format!(r##"{{"$ref":"http://127.0.0.1:{port}/latest/meta-data"}}"##),
        r##"{"$id":"a","$ref":"#","properties":{"x":{"$ref":"#/properties/x"}}}"##.to_owned(),
        r#"{"type":"string","pattern":"^(a+)+$","x":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}"#.to_owned(),
    ] {
        let body = format!(
            r#"{{"model":"m","messages":[],"tools":[{{"type":"function","function":{{"name":"f","parameters":{schema}}}}}]}}"#
        );
        assert_eq!(fixture.forwards(&schema, &call(&body)).body, body.as_bytes());
    }
    assert_untouched(&canary_listener);
    fixture.end();
}

#[test]
fn b13_an_image_is_never_fetched() {
    let (fixture, canary_listener) = (Fixture::new(), canary_listener());
    let port = canary_listener.local_addr().expect("it is bound").port();
    let data = format!("data:image/png;base64,{}", "QUJD".repeat(1 << 20));
    let urls = [
        format!("http://127.0.0.1:{port}/a.png"),
        "file:///etc/passwd".into(),
        "http://10.0.0.1/".into(),
        data,
    ];
    for url in urls {
        let body = format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":[{{"type":"image_url","image_url":{{"url":"{url}"}}}}]}}]}}"#
        );
        let what = &url[..url.len().min(40)];
        let seen = fixture.forwards(what, &call(&body));
        assert!(seen.body == body.as_bytes(), "{what}: the body changed");
    }
    assert_untouched(&canary_listener);
    fixture.end();
}

/// A listener to which nothing may ever connect.
fn canary_listener() -> TcpListener {
    let canary_listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    canary_listener
        .set_nonblocking(true)
        .expect("a socket option");
    canary_listener
}

fn assert_untouched(canary_listener: &TcpListener) {
    let touched = canary_listener.accept();
    assert!(touched.is_err(), "somebody connected: {touched:?}");
}
