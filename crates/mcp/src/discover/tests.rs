//! What servers without sessions say of themselves, and what the gate says of all.

use super::{Found, Fresh, found, own_params, told, without};
use crate::handshake::{Abilities, Answered};
use crate::version::Version;

fn answer(result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)
}

#[test]
fn a_server_speaks_what_it_says_that_it_speaks() {
    let text = answer(
        r#"{"resultType":"complete","supportedVersions":["2025-11-25","2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"instructions":"be kind"}"#,
    );
    let expected = Answered {
        version: Version::V20260728,
        abilities: Abilities::TOOLS.and(Abilities::TOOLS_CHANGE),
        instructions: Some("be kind".into()),
    };
    assert_eq!(found(text.as_bytes()), Found::Modern(expected));
    for other in [
        answer(r#"{"supportedVersions":["2025-11-25"],"capabilities":{}}"#),
        answer(r#"{"supportedVersions":"2026-07-28","capabilities":{}}"#),
        answer("{}"),
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"?"}}"#.to_owned(),
        "nonsense".to_owned(),
    ] {
        assert_eq!(found(other.as_bytes()), Found::Legacy, "{other}");
    }
    let refused = |code: i32, supported: &str| {
        let error = format!(
            r#"{{"code":{code},"message":"?","data":{{"supported":[{supported}],"requested":"2026-07-28"}}}}"#
        );
        found(format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#).as_bytes())
    };
    assert_eq!(refused(-32022, "\"2026-07-28\""), Found::Refused);
    assert_eq!(refused(-32022, "\"2027-01-01\""), Found::Legacy);
    assert_eq!(refused(-32000, "\"2026-07-28\""), Found::Legacy);
}

#[test]
fn a_client_is_offered_what_any_server_offers_and_told_who_is_silent() {
    let of = |abilities| {
        Some(Answered {
            version: Version::V20260728,
            abilities,
            instructions: None,
        })
    };
    let fresh = Fresh {
        ttl_ms: 30_000,
        is_public: false,
    };
    let told = told(
        &[
            ("a", of(Abilities::TOOLS)),
            ("b", None),
            ("c", of(Abilities::PROMPTS)),
        ],
        fresh,
    );
    let told: serde_json::Value = serde_json::from_slice(&told).expect("JSON");
    assert_eq!(
        told["supportedVersions"],
        serde_json::json!(["2026-07-28", "2025-11-25", "2025-06-18"])
    );
    assert_eq!(
        told["capabilities"],
        serde_json::json!({"tools": {}, "prompts": {}})
    );
    assert_eq!(
        told["_meta"]["tollgate/unavailable"],
        serde_json::json!(["b"])
    );
    assert_eq!(
        told["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "tollgate"
    );
    assert_eq!(
        (&told["ttlMs"], &told["cacheScope"], &told["resultType"]),
        (&30_000.into(), &"private".into(), &"complete".into())
    );
    assert_eq!(Fresh::read(told.to_string().as_bytes()), Some(fresh));
    let own: serde_json::Value =
        serde_json::from_str(&own_params(r#","cursor":"x""#)).expect("JSON");
    assert_eq!(own["cursor"], "x");
    assert_eq!(
        own["_meta"]["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
}

#[test]
fn how_long_a_result_may_be_kept_is_read_where_it_is_said() {
    let fresh = |ttl_ms, is_public| Some(Fresh { ttl_ms, is_public });
    for (result, expected) in [
        (r#"{"ttlMs":5,"cacheScope":"public"}"#, fresh(5, true)),
        (r#"{"ttlMs":5}"#, fresh(5, false)),
        (r#"{"ttlMs":-5,"cacheScope":"private"}"#, fresh(0, false)),
        (r#"{"ttlMs":"5"}"#, None),
        (r#"{"cacheScope":"public"}"#, None),
    ] {
        assert_eq!(Fresh::read(result.as_bytes()), expected, "{result}");
    }
}

#[test]
fn members_that_are_not_wanted_are_left_out() {
    let object = br#"{"a":1,"b\"":[2, 3],"c":{"a":4}}"#;
    let text = |names: &[&str]| {
        String::from_utf8(without(object, names).expect("an object")).expect("text")
    };
    assert_eq!(text(&["a"]), r#"{"b\"":[2, 3],"c":{"a":4}}"#);
    assert_eq!(text(&["a", "b\"", "c"]), "{}");
    assert_eq!(without(b"[]", &[]), None);
}
