//! What becomes of paths, fields and redirects.

use super::*;
use crate::fixture::request;
use crate::listener::Listener;

fn prefix(from: &str, to: &str) -> PathEdit {
    PathEdit::Prefix {
        from: from.into(),
        to: to.into(),
    }
}

#[test]
fn the_beginning_of_a_path_is_replaced_as_the_gateway_api_has_it() {
    for (from, to, path, now) in [
        ("/foo", "/xyz", "/foo/bar", "/xyz/bar"),
        ("/foo", "/xyz/", "/foo/bar", "/xyz/bar"),
        ("/foo", "/xyz", "/foo/", "/xyz/"),
        ("/foo", "/xyz", "/foo", "/xyz"),
        ("/foo", "/", "/foo/bar", "/bar"),
        ("/foo", "/", "/foo/", "/"),
        ("/foo", "", "/foo", "/"),
        ("", "/xyz", "/foo", "/xyz/foo"),
    ] {
        assert_eq!(prefix(from, to).of(path), now, "{from} to {to}: {path}");
    }
    let whole = PathEdit::Whole("/one".into());
    assert_eq!(whole.of("/any/thing"), "/one");
}

#[test]
fn a_redirect_says_the_port_only_where_it_is_not_the_schemes() {
    let listeners = Listeners::new(vec![Listener {
        name: "x".into(),
        port: 8080,
        host: None,
        is_tls: false,
        serves_models: true,
    }]);
    let none = Listeners::default();
    let plain = Redirect {
        status: 302,
        scheme: None,
        host: None,
        port: None,
        path: None,
    };
    let host = Some(Box::from("b.example"));
    let cases = [
        (plain.clone(), "http://a.example:8080/p?q=1"),
        (
            Redirect {
                host: host.clone(),
                port: Some(80),
                ..plain.clone()
            },
            "http://b.example/p?q=1",
        ),
        (
            Redirect {
                scheme: Some("https".into()),
                ..plain.clone()
            },
            "https://a.example/p?q=1",
        ),
        (
            Redirect {
                scheme: Some("https".into()),
                port: Some(8443),
                path: Some(prefix("/p", "/x")),
                ..plain.clone()
            },
            "https://a.example:8443/x?q=1",
        ),
    ];
    let mut head = request("GET", "/p?q=1", &[("host", "a.example:8080")]);
    head.port = 8080;
    for (redirect, wanted) in cases {
        let reply = redirect.refusal(&head, &listeners).reply();
        assert_eq!(reply.status, 302);
        assert_eq!(reply.location.as_deref(), Some(wanted));
    }
    let mut address = request("GET", "/p?q=1", &[("host", "[::1]:8080")]);
    address.port = 8080;
    let reply = plain.refusal(&address, &listeners).reply();
    let location = Some("http://[::1]:8080/p?q=1");
    assert_eq!(reply.location.as_deref(), location);
    // A gate without listeners knows no port but what the redirect says.
    let mut bare = request("GET", "/p", &[("host", "a.example")]);
    bare.port = 0;
    let reply = plain.refusal(&bare, &none).reply();
    assert_eq!(reply.location.as_deref(), Some("http://a.example/p"));
}

#[test]
fn what_is_set_takes_the_place_of_what_is_there_and_what_is_added_does_not() {
    let edits = FieldEdits {
        set: vec![("x-a".into(), "1".into())],
        add: vec![("x-b".into(), "2".into())],
        remove: vec!["x-c".into()],
    };
    assert!(!edits.keeps(b"x-a") && edits.keeps(b"x-b") && !edits.keeps(b"x-c"));
    let mut put = Vec::new();
    edits.put(|name, value| put.push((name.to_vec(), value.to_vec())));
    let text = |s: &str| s.as_bytes().to_vec();
    assert_eq!(put, [(text("x-a"), text("1")), (text("x-b"), text("2"))]);
    assert!(FieldEdits::default().is_empty() && !edits.is_empty());
}
