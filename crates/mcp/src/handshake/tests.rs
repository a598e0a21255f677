//! Handshakes: versions, what is offered, who is missing.

use super::{Abilities, Answered, answered, asked, told};
use crate::envelope::{Fault, Message};
use crate::version::Version;

fn ask(params: &str) -> Result<super::Asked, Fault> {
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#);
    let message = Message::read(text.as_bytes()).expect("a message");
    asked(text.as_bytes(), message.params.as_ref())
}

#[test]
fn a_client_is_answered_in_its_version_or_else_in_the_newest_and_servers_hear_all_else_that_it_says()
 {
    for (said, version) in [
        ("2025-06-18", Version::V20250618),
        ("2025-11-25", Version::V20251125),
        ("2025-03-26", Version::LATEST),
        ("2026-07-28", Version::LATEST),
        ("soon", Version::LATEST),
    ] {
        let params = format!(r#"{{"capabilities":{{"roots":{{}}}},"protocolVersion":"{said}"}}"#);
        let asked = ask(&params).expect("it is read");
        assert_eq!(asked.version, version);
        let told = String::from_utf8(asked.params).expect("text");
        assert_eq!(told, params.replace(said, version.as_str()));
    }
    let twice = r#"{"protocolVersion":"2025-06-18","protocolversion":"2025-11-25"}"#;
    assert_eq!(ask(twice), Err(Fault::Ambiguous("protocolVersion")));
    assert!(ask("{}").is_err());
}

#[test]
fn a_server_offers_what_its_capabilities_name() {
    let text = r#"{"protocolVersion":"2025-06-18","serverInfo":{},"instructions":"be kind",
        "capabilities":{"tools":{"listChanged":true},"completions":{},"tasks":{}}}"#;
    let of = answered(text.as_bytes()).expect("it is read");
    assert_eq!(of.version, Version::V20250618);
    let offered = Abilities::TOOLS.and(Abilities::COMPLETIONS);
    assert_eq!(of.abilities, offered.and(Abilities::TOOLS_CHANGE));
    assert_eq!(of.instructions.as_deref(), Some("be kind"));
    for text in [
        r#"{"protocolVersion":"2024-11-05","capabilities":{}}"#,
        r#"{"protocolVersion":"2026-07-28","capabilities":{}}"#,
        r#"{"capabilities":{}}"#,
        "7",
    ] {
        assert_eq!(answered(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn a_client_is_told_what_all_servers_offer_and_which_did_not_answer() {
    let of = |abilities, instructions: Option<&str>| {
        Some(Answered {
            version: Version::V20250618,
            abilities,
            instructions: instructions.map(str::to_owned),
        })
    };
    let servers = [
        ("a", of(Abilities::TOOLS, Some("first \"a\""))),
        ("b", None),
        (
            "c",
            of(
                Abilities::TOOLS
                    .and(Abilities::RESOURCES)
                    .and(Abilities::SUBSCRIPTIONS)
                    .and(Abilities::TOOLS_CHANGE),
                None,
            ),
        ),
    ];
    let told = String::from_utf8(told(Version::V20251125, &servers)).expect("text");
    let expected = format!(
        r##"{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{"listChanged":true}},"resources":{{"subscribe":true}}}},"serverInfo":{{"name":"tollgate","version":"{}"}},"instructions":"# a\n\nfirst \"a\"","_meta":{{"tollgate/unavailable":["b"]}}}}"##,
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(told, expected);
    serde_json::from_str::<serde_json::Value>(&told).expect("JSON");
}
