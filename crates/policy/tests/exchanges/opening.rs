//! What a head alone is refused for, and in which order.

use policy::operation::Operation::{self, Chat, Models, Transcriptions};

use crate::world::{Call, FORM, JSON, ME, World, plan};

fn opened(
    method: &str,
    target: &str,
    length: Option<u64>,
    fields: &[(&str, &str)],
) -> Result<Operation, &'static str> {
    let call = Call::of(method, target, fields);
    let asked = World::routes(&[plan()]).head(&call, length);
    match asked.code() {
        "" => Ok(asked.record().operation.expect("it is known")),
        code => Err(code),
    }
}

fn chat(fields: &[(&str, &str)]) -> Result<Operation, &'static str> {
    let fields: Vec<_> = fields.iter().copied().chain([ME]).collect();
    opened("POST", "/v1/chat/completions", Some(2), &fields)
}

#[test]
fn a_known_caller_with_a_json_body_is_welcome() {
    assert_eq!(chat(&[JSON]), Ok(Chat));
    assert_eq!(opened("GET", "/v1/models", None, &[ME]), Ok(Models));
    let form = |fields| opened("POST", "/v1/audio/translations", Some(5), fields);
    assert_eq!(form(&[ME, FORM]), Ok(Transcriptions));
    assert_eq!(form(&[ME, JSON]), Ok(Transcriptions));
    let twofold = (
        "content-type",
        "multipart/form-data; boundary=a; boundary=b",
    );
    for other in [&[ME][..], &[ME, twofold]] {
        assert_eq!(form(other), Err("unsupported_content_type"));
    }
}

#[test]
fn a_call_that_is_not_known_and_not_listed_is_refused_from_its_head() {
    let refused = |fields| opened("POST", "/v1/files", Some(5), fields);
    assert_eq!(refused(&[ME]), Err("operation_not_allowed"));
    assert_eq!(refused(&[]), Err("workload_not_registered"));
    let message = |target: &str| {
        let call = Call::of("POST", target, &[ME]);
        World::routes(&[plan()]).head(&call, None).says().1
    };
    let nearly = message("/v1/v1/chat/completions");
    let begins = "there is no POST /v1/v1/chat/completions: /v1/chat/completions was meant";
    assert!(nearly.starts_with(begins), "{nearly}");
    for (path, base) in [
        (
            "/v1/v1/chat/completions",
            "a base URL that ends in /v1, once",
        ),
        (
            "/v1/v1/messages",
            "a base URL without /v1 at its end, which Anthropic's SDKs add",
        ),
        (
            "/v1/v1/messages/count_tokens",
            "a base URL without /v1 at its end",
        ),
        (
            "/v1/v1beta/models/m:generateContent",
            "a base URL for Google's SDKs ends without /v1",
        ),
    ] {
        let says = message(path);
        assert!(says.contains(base), "{path}: {says}");
    }
    let socket = Call::of("GET", "/v1/realtime?model=m", &[ME]);
    let (status, says) = World::routes(&[plan()]).head(&socket, None).says();
    assert_eq!(status, 404);
    let begins = "GET /v1/realtime is served over a WebSocket";
    assert!(
        says.starts_with(begins) && !says.contains("unread"),
        "{says}"
    );
    let short = message("/v1/v1/batches");
    let begins = "POST /v1/v1/batches is not";
    assert!(
        short.starts_with(begins) && short.contains("`unread`"),
        "{short}"
    );
    let long = message(&format!("/v1/{}", "x".repeat(60_000)));
    assert!(long.len() < 400, "{}", long.len());
}

#[test]
fn content_types_that_are_json_in_utf8_and_those_that_are_not() {
    for value in [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        "application/json; charset=\"utf-8\"",
        "application/json; profile=x; charset=utf-8",
    ] {
        assert_eq!(chat(&[("content-type", value)]), Ok(Chat), "{value}");
    }
    let refused = Err("unsupported_content_type");
    for value in [
        "",
        "text/plain",
        "text/json",
        "application/jsonx",
        "application/json, text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=utf-16",
        "application/json; charset=not-utf-8",
        "application/json; charset=utf-8; charset=utf-7",
    ] {
        assert_eq!(chat(&[("content-type", value)]), refused, "{value}");
    }
    assert_eq!(chat(&[JSON, JSON]), refused, "twice");
    assert_eq!(chat(&[]), refused, "none");
}

#[test]
fn an_encoded_body_is_decoded_from_one_known_coding_where_policy_must_read_it() {
    let refused = Err("unsupported_content_encoding");
    for value in ["deflate, gzip", "gzip, gzip", "identity, gzip", "x", ""] {
        assert_eq!(chat(&[("content-encoding", value)]), refused, "{value}");
    }
    let (identity, gzip) = (
        ("content-encoding", "Identity"),
        ("content-encoding", "gzip"),
    );
    assert_eq!(chat(&[identity, gzip]), refused);
    assert_eq!(chat(&[identity, JSON]), Ok(Chat));
    let passed = [ME, gzip, FORM];
    let form = opened("POST", "/v1/audio/translations", Some(5), &passed);
    assert_eq!(form, Ok(Transcriptions));
}

#[test]
fn a_body_announced_too_large_is_refused_from_its_head() {
    let bound = World::routes(&[plan()]).of.snapshot.bounds.body_bytes;
    let with = |length| opened("POST", "/v1/chat/completions", length, &[ME, JSON]);
    assert_eq!(with(Some(bound)), Ok(Chat));
    assert_eq!(with(Some(bound + 1)), Err("request_too_large"));
    assert_eq!(with(Some(u64::MAX)), Err("request_too_large"));
    assert_eq!(with(None), Ok(Chat), "chunked: the host counts");
    let passed = opened("POST", "/v1/images/edits", Some(bound + 1), &[ME]);
    assert_eq!(passed, Err("request_too_large"));
}

#[test]
fn the_first_thing_wrong_is_the_one_said() {
    let gzip = ("content-encoding", "gzip");
    let two = [("authorization", "a"), ("x-api-key", "b"), gzip];
    let at = |method, target| opened(method, target, Some(u64::MAX), &two);
    assert_eq!(at("POST", "/nowhere"), Err("unknown_url"));
    assert_eq!(at("PUT", "/v1/embeddings"), Err("method_not_allowed"));
    assert_eq!(at("POST", "/v1/embeddings"), Err("conflicting_credentials"));
    let stranger = opened("POST", "/v1/embeddings", Some(u64::MAX), &[]);
    assert_eq!(stranger, Err("workload_not_registered"));
    assert_eq!(chat(&two), Err("conflicting_credentials"));
    assert_eq!(chat(&[ME]), Err("identity_repeated"));
    let token = ("authorization", "Bearer malicious-token");
    assert_eq!(chat(&[token, JSON]), Ok(Chat));
}
