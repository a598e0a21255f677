//! What requests name.

use super::{Target, of};
use crate::catalog::Kind;
use crate::envelope::{Fault, Message, Says};

fn target(text: &str) -> Result<Option<Target<'_>>, Fault> {
    let message = Message::read(text.as_bytes()).expect("a message");
    let Says::Request { method, .. } = &message.says else {
        panic!("{text} is a request");
    };
    of(method, text.as_bytes(), message.params.as_ref())
}

fn request(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
}

#[test]
fn each_method_names_its_thing_in_its_own_member() {
    for (method, params, kind, name, written) in [
        (
            "tools/call",
            r#"{"arguments":{"name":"x"},"name":"a__b"}"#,
            Kind::Tools,
            "a__b",
            r#""a__b""#,
        ),
        (
            "prompts/get",
            r#"{"name": "\u0061__b" }"#,
            Kind::Prompts,
            "a__b",
            r#""\u0061__b""#,
        ),
        (
            "resources/read",
            r#"{"uri":"a+file:///x"}"#,
            Kind::Resources,
            "a+file:///x",
            r#""a+file:///x""#,
        ),
        (
            "completion/complete",
            r#"{"argument":{},"ref":{"type":"ref/prompt","name":"a__p"}}"#,
            Kind::Prompts,
            "a__p",
            r#""a__p""#,
        ),
        (
            "completion/complete",
            r#"{"ref":{"uri":"a+x:///{y}","type":"ref/resource"}}"#,
            Kind::Templates,
            "a+x:///{y}",
            r#""a+x:///{y}""#,
        ),
    ] {
        let text = request(method, params);
        let target = target(&text).expect("it is read").expect("it names");
        assert_eq!((target.kind, &*target.name), (kind, name), "{text}");
        assert_eq!(&text[target.at], written, "{text}");
    }
    assert_eq!(target(&request("tools/list", "{}")), Ok(None));
}

#[test]
fn a_name_in_two_ways_is_refused_since_a_server_might_read_the_other_one() {
    for (method, params, member) in [
        (
            "tools/call",
            r#"{"name":"a__allowed","name":"a__denied"}"#,
            "name",
        ),
        (
            "tools/call",
            r#"{"name":"a__allowed","Name":"a__denied"}"#,
            "name",
        ),
        (
            "tools/call",
            r#"{"NAME":"a__denied","name":"a__allowed"}"#,
            "name",
        ),
        ("resources/read", r#"{"uri":"a+x:y","URI":"a+x:z"}"#, "uri"),
        ("completion/complete", r#"{"ref":{},"ref":{}}"#, "ref"),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"p","n\u0061me":"q"}}"#,
            "name",
        ),
    ] {
        let text = request(method, params);
        assert_eq!(target(&text), Err(Fault::Ambiguous(member)), "{text}");
    }
    for (method, params) in [
        ("tools/call", "{}"),
        ("tools/call", r#"{"name":7}"#),
        ("tools/call", r#"{"name":["a__b"]}"#),
        ("completion/complete", r#"{"ref":"x"}"#),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/tool","name":"p"}}"#,
        ),
    ] {
        let text = request(method, params);
        assert!(matches!(target(&text), Err(Fault::NotRpc(_))), "{text}");
    }
}

#[test]
fn a_uri_that_parsers_read_in_two_ways_is_refused() {
    let read = |uri: &str| {
        let message = serde_json::json!({ "params": { "uri": uri } }).to_string();
        let from = message.find("{\"uri\"").expect("it is there");
        let params = from..message.len() - 1;
        super::of("resources/read", message.as_bytes(), Some(&params))
            .map(|target| target.expect("a resource").name.into_owned())
    };
    for uri in [
        "a+file:///pub/.\t./secret/a",
        "a+file:///pub/\t../secret/a",
        "file:///a\n",
        "file:///\u{0}a",
        " file:///a",
        "file:/secret/a",
        "file://localhost/secret/a",
        "FILE:/secret/a",
        "file:////secret/a",
        "a+file:///secret//a",
        "db://a b",
        "a+memo://a%00b",
        "a+memo://a%2500b",
        "a+memo://a%0ab",
        "a+file:/%2f/etc/a",
        "a+file%3a/etc/a",
        "a+file:///etc%2f%2fa",
    ] {
        assert!(read(uri).is_err(), "{uri:?}");
    }
    for uri in [
        "file:///secret/a",
        "a+file:///pub/a%20b",
        "profile:me",
        "a+db://users/1",
        "a+memo://a%20b%C3%A9",
        "a+file:///pub%2fa",
        "git+my-file:x",
    ] {
        assert_eq!(read(uri).as_deref(), Ok(uri), "{uri:?}");
    }
}

#[test]
fn a_template_of_which_an_argument_is_completed_has_one_reading_too() {
    let read = |uri: &str| {
        let reference = serde_json::json!({ "ref": { "type": "ref/resource", "uri": uri } });
        let text = request("completion/complete", &reference.to_string());
        target(&text).map(|target| target.expect("a template").name.into_owned())
    };
    for uri in [
        "a+file:/etc/a",
        "a+file:/%2f//et%63/passwd",
        "a+file:/etc%2fpasswd",
        "a+db://\u{0}",
    ] {
        assert!(read(uri).is_err(), "{uri:?}");
    }
    assert_eq!(read("a+file:///{path}").as_deref(), Ok("a+file:///{path}"));
}
