//! Values in headers, as the specification has them.

use super::{decoded, encoded, is_well_annotated, mismatch, params};

#[test]
fn a_value_is_written_so_that_it_is_read_as_itself() {
    for (value, header) in [
        ("us-west1", "us-west1"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("", "=?base64??="),
        ("a b", "a b"),
    ] {
        assert_eq!(encoded(value), header);
        assert_eq!(decoded(header.as_bytes()).as_deref(), Some(value));
    }
    for none in [
        "=?base64?SGVsbG8?=",
        "=?base64?!!?=",
        "=?base64?/w==?=",
        "é",
    ] {
        assert_eq!(decoded(none.as_bytes()), None, "{none}");
    }
    assert_eq!(
        decoded(b"=?BASE64?YQ==?=").as_deref(),
        Some("=?BASE64?YQ==?=")
    );
}

#[test]
fn arguments_have_the_headers_that_their_tool_says() {
    let tool = r#"{"name":"sql","inputSchema":{"type":"object","properties":{
        "region":{"type":"string","x-mcp-header":"Region"},
        "limit":{"type":"integer","x-mcp-header":"Limit"},
        "dry":{"type":"boolean","x-mcp-header":"Dry"},
        "at":{"type":"object","properties":{"zone":{"type":"string","x-mcp-header":"Zone"}}},
        "query":{"type":"string"},
        "x-mcp-header":{"type":"string"}}}}"#;
    assert!(is_well_annotated(tool.as_bytes()));
    let of = |arguments: &str| {
        let mut params = params(tool.as_bytes(), arguments.as_bytes());
        params.sort();
        let lines: Vec<String> = params
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        lines.join("; ")
    };
    assert_eq!(
        of(
            r#"{"region":"ü","limit":42.0,"dry":false,"at":{"zone":"b"},"query":"x","x-mcp-header":"y"}"#
        ),
        "mcp-param-dry: false; mcp-param-limit: 42; mcp-param-region: =?base64?w7w=?=; mcp-param-zone: b"
    );
    assert_eq!(
        of(r#"{"region":null,"limit":1e300,"dry":"x"}"#),
        "mcp-param-dry: x"
    );
    assert_eq!(of(r#"{"limit":9007199254740993,"at":7}"#), "");
    assert_eq!(of("{}"), "");
    assert_eq!(of("nonsense"), "");
}

#[test]
fn a_tool_that_says_its_headers_wrongly_is_none() {
    let tool = |schema: &str| format!(r#"{{"name":"t","inputSchema":{schema}}}"#);
    for schema in [
        r#"{"properties":{"a":{"type":"string","x-mcp-header":""}}}"#,
        r#"{"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}"#,
        r#"{"properties":{"a":{"type":"string","x-mcp-header":"a\r\nx"}}}"#,
        r#"{"properties":{"a":{"type":"string","x-mcp-header":7}}}"#,
        r#"{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#,
        r#"{"properties":{"a":{"type":"object","x-mcp-header":"A"}}}"#,
        r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}"#,
        r#"{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}"#,
        r#"{"oneOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}"#,
        r#"{"$defs":{"a":{"type":"string","x-mcp-header":"A"}}}"#,
        r#"{"type":"string","x-mcp-header":"A"}"#,
    ] {
        assert!(!is_well_annotated(tool(schema).as_bytes()), "{schema}");
        assert!(params(tool(schema).as_bytes(), br#"{"a":"x"}"#).is_empty());
    }
    for schema in [
        "{}",
        r#"{"default":{"x-mcp-header":7}}"#,
        r#"{"properties":{"a":true}}"#,
    ] {
        assert!(is_well_annotated(tool(schema).as_bytes()), "{schema}");
    }
}

#[test]
fn what_a_client_says_of_arguments_is_what_they_are() {
    let tool = br#"{"name":"sql","inputSchema":{"type":"object","properties":{
        "region":{"type":"string","x-mcp-header":"Region"},
        "limit":{"type":"integer","x-mcp-header":"Limit"}}}}"#;
    let told = |arguments: &str, sent: &[(&str, &str)]| {
        let sent: Vec<(String, String)> = sent
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        mismatch(tool, arguments.as_bytes(), &sent)
    };
    let region = r#"{"region":"ü"}"#;
    let good = ("mcp-param-region", "=?base64?w7w=?=");
    assert_eq!(told(region, &[good]), None);
    // One that no argument of the tool has is nobody's business.
    assert_eq!(told(region, &[good, ("mcp-param-other", "x")]), None);
    assert_eq!(
        told(r#"{"limit":42}"#, &[("mcp-param-limit", "42.0")]),
        None
    );
    assert_eq!(told("{}", &[]), None);
    for (arguments, sent, says) in [
        (region, &[][..], "the header mcp-param-region is missing"),
        (
            region,
            &[("mcp-param-region", "u")],
            "the header mcp-param-region is not what the body says",
        ),
        (
            r#"{"region":null}"#,
            &[("mcp-param-region", "u")],
            "the header mcp-param-region is of no argument of the call",
        ),
    ] {
        assert_eq!(told(arguments, sent).as_deref(), Some(says));
    }
}
