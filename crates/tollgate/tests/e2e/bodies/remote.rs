//! Addresses inside a body are text: B12 and B13.
//!
//! Invariant: the gate connects to nothing that a client names.
//! Not here: addresses in the configuration.

use std::net::TcpListener;

use crate::fixture::{Scene, call};

#[test]
fn b12_references_in_a_schema_are_never_resolved() {
    let (scene, trap) = (Scene::new(), trap());
    let port = trap.local_addr().expect("it is bound").port();
    for schema in [
        format!(r##"{{"$ref":"http://127.0.0.1:{port}/latest/meta-data"}}"##),
        r##"{"$id":"a","$ref":"#","properties":{"x":{"$ref":"#/properties/x"}}}"##.to_owned(),
        r#"{"type":"string","pattern":"^(a+)+$","x":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}"#.to_owned(),
    ] {
        let body = format!(
            r#"{{"model":"m","messages":[],"tools":[{{"type":"function","function":{{"name":"f","parameters":{schema}}}}}]}}"#
        );
        assert_eq!(scene.forwards(&schema, &call(&body)).body, body.as_bytes());
    }
    is_untouched(&trap);
    scene.end();
}

#[test]
fn b13_an_image_is_never_fetched() {
    let (scene, trap) = (Scene::new(), trap());
    let port = trap.local_addr().expect("it is bound").port();
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
        let seen = scene.forwards(what, &call(&body));
        assert!(seen.body == body.as_bytes(), "{what}: the body changed");
    }
    is_untouched(&trap);
    scene.end();
}

/// A listener that nobody should ever connect to.
fn trap() -> TcpListener {
    let trap = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    trap.set_nonblocking(true).expect("a socket option");
    trap
}

fn is_untouched(trap: &TcpListener) {
    let touched = trap.accept();
    assert!(touched.is_err(), "somebody connected: {touched:?}");
}
