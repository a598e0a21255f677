//! What a request says of itself, in `_meta` and beside it.

use super::{Client, Headers, Level, Meta, Unfit, check, is_modern, once};
use crate::envelope::{Fault, Message};
use crate::header::Header;

const META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;

fn message(meta: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"read","_meta":{{{meta}}}}}}}"#
    )
}

fn read(text: &str) -> Result<Meta<'_>, Fault> {
    let message = Message::read(text.as_bytes()).expect("a message");
    Meta::read(text.as_bytes(), message.params.as_ref())
}

fn headers<'a>(version: &'a [&'a str], method: &'a [&'a str], name: &'a [&'a str]) -> Headers<'a> {
    let of = |lines: &'a [&'a str]| Header::of(lines.iter().map(|line| line.as_bytes()));
    Headers {
        version: of(version),
        method: of(method),
        name: of(name),
        agent: None,
    }
}

#[test]
fn a_request_is_of_the_version_that_it_says_in_its_body_or_else_in_its_header() {
    let (new, old) = (Header::One(b"2026-07-28"), Header::One(b"2025-11-25"));
    let (with, without) = (message(META), message(""));
    let (with, without) = (
        read(&with).expect("it is read"),
        read(&without).expect("it is read"),
    );
    for (meta, version, method, modern) in [
        (&with, new, "tools/call", true),
        (&with, old, "tools/call", true),
        (&with, Header::None, "initialize", true),
        (&without, new, "tools/call", true),
        (&without, new, "initialize", false),
        (&without, old, "tools/call", false),
        (&without, Header::One(b"v9"), "tools/call", false),
        (&without, Header::None, "server/discover", false),
    ] {
        assert_eq!(
            is_modern(meta, version, Some(method)),
            modern,
            "{version:?} {method}"
        );
    }
}

#[test]
fn a_request_is_refused_whose_meta_misses_what_it_must_have() {
    let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let capabilities = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
    let said = headers(&["2026-07-28"], &["tools/call"], &["read"]);
    for (meta, missing) in [
        ("", super::VERSION),
        (capabilities, super::VERSION),
        (version, super::CAPABILITIES),
        (
            r#""io.modelcontextprotocol/protocolVersion":7"#,
            super::VERSION,
        ),
    ] {
        let text = message(meta);
        let meta = read(&text).expect("it is read");
        let checked = check("tools/call", Some("read"), &meta, &said);
        assert_eq!(checked, Err(Unfit::Meta(missing)));
    }
    let twice = message(&format!(
        r#"{META},"IO.modelcontextprotocol/clientcapabilities":{{"roots":{{}}}}"#
    ));
    assert!(matches!(read(&twice), Err(Fault::Ambiguous(_))));
}

#[test]
fn headers_say_what_the_body_says() {
    let text = message(META);
    let meta = read(&text).expect("it is read");
    let good = (&["2026-07-28"][..], &["tools/call"][..], &["read"][..]);
    let checked = |said: &Headers<'_>| check("tools/call", Some("read"), &meta, said);
    assert!(checked(&headers(good.0, good.1, good.2)).is_ok());
    assert!(checked(&headers(good.0, good.1, &["=?base64?cmVhZA==?="])).is_ok());
    for (version, method, name) in [
        (&[][..], good.1, good.2),
        (&["2025-11-25"], good.1, good.2),
        (&["2026-07-28", "2026-07-28"], good.1, good.2),
        (&["2026-07-28, 2026-07-28"], good.1, good.2),
        (good.0, &[][..], good.2),
        (good.0, &["TOOLS/CALL"], good.2),
        (good.0, &["server/discover"], good.2),
        (good.0, good.1, &[][..]),
        (good.0, good.1, &["Read"]),
        (good.0, good.1, &["read", "read"]),
        (good.0, good.1, &["=?base64?!?="]),
        (good.0, good.1, &["=?base64?ZGVsZXRl?="]),
    ] {
        let refused = checked(&headers(version, method, name));
        assert!(
            matches!(refused, Err(Unfit::Header(_))),
            "{version:?} {method:?} {name:?}"
        );
    }
    let listed = |name: &[&str]| {
        let said = headers(good.0, &["tools/list"], name);
        check("tools/list", None, &meta, &said)
    };
    assert!(listed(&[]).is_ok());
    for name in [&["read"][..], &["read", "read"]] {
        assert!(matches!(listed(name), Err(Unfit::Header(_))), "{name:?}");
    }
    let other = message(&META.replace("2026-07-28", "v9"));
    let meta = read(&other).expect("it is read");
    let of = |version: &[&str]| {
        check(
            "tools/call",
            Some("read"),
            &meta,
            &headers(version, good.1, good.2),
        )
    };
    assert_eq!(of(&["v9"]), Err(Unfit::Version("v9".into())));
    assert!(matches!(of(&["2026-07-28"]), Err(Unfit::Header(_))));
}

#[test]
fn of_clients_that_are_known_to_mix_versions_a_header_that_names_another_thing_is_refused_all_the_same()
 {
    let named = |client: &str| {
        message(&format!(
            r#"{META},"io.modelcontextprotocol/clientInfo":{{"name":"{client}","version":"1"}}"#
        ))
    };
    let (known, other) = (named("claude-code"), named("an agent"));
    let good = (&["2026-07-28"][..], &["tools/call"][..], &["read"][..]);
    for (version, method, name, is_forgiven) in [
        (good.0, good.1, good.2, true),
        (&["2025-11-25"][..], good.1, good.2, true),
        (&[], good.1, good.2, true),
        (&["2026-07-28", "2026-07-28"], good.1, good.2, true),
        (&["2025-11-25, 2025-11-25"], good.1, good.2, true),
        (good.0, &[][..], &[][..], true),
        (good.0, &["server/discover"], good.2, true),
        (&["v9"], good.1, good.2, false),
        (good.0, &["tools/list"], good.2, false),
        (good.0, good.1, &["delete"], false),
        (good.0, good.1, &["delete", "read"], false),
    ] {
        let said = headers(version, method, name);
        let of = |text: &str| {
            let meta = read(text).expect("it is read");
            check("tools/call", Some("read"), &meta, &said).is_ok()
        };
        assert_eq!(of(&known), is_forgiven, "{version:?} {method:?} {name:?}");
        assert_eq!(
            of(&other),
            said_is(version, method, name),
            "{version:?} {method:?} {name:?}"
        );
    }
    let by = |agent: &str| Client::of(None, Some(agent.as_bytes())).mixes;
    assert!(by("claude-code/2.1.328 (cli)") && by("GitHub-Copilot/1.0"));
    assert!(!by("python-httpx/0.28") && !by("conformance claude-code"));
}

/// Whether these are the headers of a client that mixes nothing.
fn said_is(version: &[&str], method: &[&str], name: &[&str]) -> bool {
    (version, method, name) == (&["2026-07-28"], &["tools/call"], &["read"])
}

#[test]
fn a_value_that_was_sent_several_times_on_one_line_is_one() {
    assert_eq!(once(b"a, a,a"), Some(&b"a"[..]));
    assert_eq!(once(b"a, b"), None);
    assert!(Level::of("debug") < Level::of("warning"));
    assert_eq!(Level::of("loud"), None);
}
