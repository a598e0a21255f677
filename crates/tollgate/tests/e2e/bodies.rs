//! What a client may put into a request body: faults B1 to B13 of `docs/faults.md`.
//!
//! Invariant: a body that policy must read is unambiguous or refused; everything that policy does not
//! read passes byte for byte.
//! Not here: how bodies are framed (`framing`), the unit tests of the JSON scanner (`wire`).

mod coded;
mod numbers;
mod remote;
mod size;

use crate::fixture::{After, Fixture, IDENTITY, answer, call};
use crate::harness::{Connection, Gate, Step, Upstream, chat, post};

#[test]
fn b1_a_body_that_is_not_one_json_object_is_refused() {
    let fixture = Fixture::new();
    let bodies = [
        "",
        " ",
        "{",
        "not json",
        "{'model':'m'}",
        r#"{"model":"m",}"#,
        r#"{"model":"m"}x"#,
        r#"{"model":"m"}{"model":"m"}"#,
        "\u{feff}{\"model\":\"m\"}",
        "[]",
        "null",
        "\"m\"",
        r#"{"model":"m" /* c */}"#,
        r#"{"temperature":01}"#,
        r#"{"temperature":NaN}"#,
        "{\"a\":\"line\nbreak\"}",
    ];
    for body in bodies {
        fixture.refuses(
            &format!("{body:?}"),
            &call(body),
            400,
            "invalid_json",
            After::Kept,
        );
    }
    fixture.end();
}

#[test]
fn b2_inspected_text_must_be_unicode_and_other_text_passes_unchanged() {
    let fixture = Fixture::new();
    for name in [r"\ud800", r"a\u0000", r"\udc00\ud800"] {
        let body = format!(r#"{{"model":"{name}","messages":[]}}"#);
        fixture.refuses(name, &call(&body), 400, "bad_model_name", After::Kept);
    }
    for name in [&b"\xff"[..], b"\xc0\xaf", b"\xed\xa0\x80"] {
        let body = [br#"{"model":""#, name, br#"","messages":[]}"#].concat();
        let what = format!("{name:?}");
        fixture.refuses(&what, &raw(&body), 400, "bad_model_name", After::Kept);
    }
    for text in [
        &br"\ud800"[..],
        br"\u0000",
        br"\uDC00 \ud83d\ude00",
        "\u{1f600}\u{7f}".as_bytes(),
    ] {
        let body = [
            br#"{"model":"m","messages":[{"role":"user","content":""#,
            text,
            br#""}]}"#,
        ]
        .concat();
        let seen = fixture.forwards(&format!("{text:?}"), &raw(&body));
        assert_eq!(seen.body, body);
    }
    fixture.end();
}

#[test]
fn b3_nesting_depth_is_bounded() {
    let fixture = Fixture::new();
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        call(&format!(r#"{{"model":"m","messages":{open}{close}}}"#))
    };
    for depth in [10, 119] {
        fixture.forwards(&format!("{depth} levels"), &nested(depth));
    }
    for depth in [120, 1000, 10_000] {
        let what = format!("{depth} levels");
        fixture.refuses(&what, &nested(depth), 400, "invalid_json", After::Kept);
    }
    for depth in [100_000, 1_000_000] {
        let mut connection = Connection::open(fixture.gate.data);
        // The gate answers early and reads only part of the rest, so the client cannot send all of it.
        let response = connection.call(&nested(depth));
        fixture.refused(&format!("{depth} levels"), &response, 400, "invalid_json");
    }
    fixture.end();
}

#[test]
fn b4_a_duplicate_of_an_inspected_member_is_refused() {
    let fixture = Fixture::new();
    let rows = [
        (r#"{"model":"m","model":"m"}"#, "model"),
        (r#"{"model":"m","mod\u0065l":"n"}"#, "model"),
        (
            r#"{"max_tokens":1,"messages":[],"max_tokens":9}"#,
            "max_tokens",
        ),
        (
            r#"{"max_completion_tokens":1,"max_completion_tokens":9}"#,
            "max_completion_tokens",
        ),
        (r#"{"stream":false,"stream":true}"#, "stream"),
        (r#"{"n":1,"n":128}"#, "n"),
        (r#"{"best_of":1,"best_of":128}"#, "best_of"),
        (r#"{"prompt":"a","prompt":["a","b"]}"#, "prompt"),
        (
            r#"{"stream_options":{},"stream_options":null}"#,
            "stream_options",
        ),
        (
            r#"{"stream_options":{"include_usage":true,"include_usage":false}}"#,
            "stream_options.include_usage",
        ),
    ];
    for (body, member) in rows {
        let response = fixture.refuses(body, &call(body), 400, "duplicate_member", After::Kept);
        assert_eq!(response.json()["error"]["param"], member, "{body}");
    }
    // Policy reads no members inside messages or tools, so the engine decides which duplicate counts.
    let body = r#"{"model":"m","messages":[{"role":"user","name":"a","name":"b"}]}"#;
    assert_eq!(
        fixture.forwards("a nested name twice", &call(body)).body,
        body.as_bytes()
    );
    fixture.end();
}

#[test]
fn b5_a_case_variant_of_an_inspected_member_is_refused() {
    let fixture = Fixture::new();
    let rows = [
        (r#"{"model":"cheap","MODEL":"dear"}"#, "model", "MODEL"),
        (r#"{"MODEL":"dear","model":"cheap"}"#, "model", "MODEL"),
        (r#"{"Model":"cheap"}"#, "model", "Model"),
        (r#"{"model":"cheap","\u004dodel":"dear"}"#, "model", "Model"),
        (
            r#"{"max_tokens":1,"max_to\u212aens":99999}"#,
            "max_tokens",
            r"max_to\u{212a}ens",
        ),
        (
            "{\"max_tokens\":1,\"max_to\u{212a}ens\":99999}",
            "max_tokens",
            r"max_to\u{212a}ens",
        ),
        (r#"{"\u017ftream":true}"#, "stream", r"\u{17f}tream"),
        (
            r#"{"Max_Completion_Tokens":9}"#,
            "max_completion_tokens",
            "Max_Completion_Tokens",
        ),
        (
            r#"{"max_output_tokenS":9}"#,
            "max_output_tokens",
            "max_output_tokenS",
        ),
        (r#"{"n":1,"N":128}"#, "n", "N"),
        (r#"{"best_oF":9}"#, "best_of", "best_oF"),
        (r#"{"Prompt":["a"]}"#, "prompt", "Prompt"),
        (
            r#"{"stream":true,"Stream_Options":{"include_usage":false}}"#,
            "stream_options",
            "Stream_Options",
        ),
        (
            r#"{"stream":true,"stream_options":{"include_usage":true,"Include_Usage":false}}"#,
            "stream_options.include_usage",
            "Include_Usage",
        ),
        (
            r#"{"messages":[],"Messages":[{"role":"user"}]}"#,
            "messages",
            "Messages",
        ),
    ];
    for (body, member, found) in rows {
        let response = fixture.refuses(body, &call(body), 400, "ambiguous_member", After::Kept);
        let error = &response.json()["error"];
        assert_eq!(error["param"], member, "{body}");
        let message = error["message"].as_str().expect("a message");
        for name in [member, found] {
            assert!(message.contains(&format!("`{name}`")), "{body}: {message}");
        }
    }
    // The same holds for long bodies, which arrive in several chunks.
    let long = format!(r#"{{"user":"{}","MODEL":"dear"}}"#, "u".repeat(300_000));
    fixture.refuses(
        "a long body",
        &call(&long),
        400,
        "ambiguous_member",
        After::Kept,
    );
    fixture.end();
}

#[test]
fn b5_case_variants_of_other_members_pass() {
    let fixture = Fixture::new();
    let body = r#"{"Temperature":1,"USER":"u","Metadata":{},"model":"m","messages":[{"Name":"x","Model":"y","MAX_TOKENS":-1}]}"#;
    let seen = fixture.forwards("members in other letters", &call(body));
    assert_eq!(seen.body, body.as_bytes());
    fixture.end();
}

#[test]
fn b5_a_case_variant_of_model_is_never_read_as_the_model() {
    let upstream = Upstream::start(|_, _| vec![Step::Send(answer())]);
    let config = format!(
        "backends: {{ up: {{ url: http://{}/v1 }} }}\n\
         routes: [ {{ workload: w, match: {{ model: allowed }}, backend: up, model: sent }} ]\n",
        upstream.address
    );
    let gate = Gate::start(&config, &[]);
    for body in [
        r#"{"Model":"allowed","model":"denied"}"#,
        r#"{"Model":"allowed"}"#,
        r#"{"Model":"x","model":"allowed"}"#,
    ] {
        let response = gate.call(&call(body));
        assert_eq!(
            (response.status, response.code().as_str()),
            (400, "ambiguous_member"),
            "{body}"
        );
    }
    assert_eq!(upstream.seen().len(), 0);
}

#[test]
fn b7_a_model_name_is_validated_before_use() {
    let fixture = Fixture::new();
    let long = "m".repeat(257);
    let longer = "m".repeat(10 << 10);
    let names = [
        r"a\r\nx-evil: 1",
        "a%0d%0ab",
        "a b",
        "${jndi:ldap://x}",
        "' OR 1=1 --",
        "gpt\u{2010}4",
        "\u{43e}pus",
        "",
        &long,
        &longer,
    ];
    for name in names {
        let body = format!(r#"{{"model":"{name}","messages":[]}}"#);
        fixture.refuses(name, &call(&body), 400, "bad_model_name", After::Kept);
    }
    for value in ["[\"m\"]", "1", "true", "{}"] {
        let body = format!(r#"{{"model":{value}}}"#);
        fixture.refuses(value, &call(&body), 400, "wrong_type", After::Kept);
    }
    // Its characters are allowed, so a path in it is only a name that the engine does not know.
    let body = r#"{"model":"../../etc/passwd","messages":[]}"#;
    let seen = fixture.forwards("../", &call(body));
    assert!(
        seen.head
            .starts_with("POST /v1/chat/completions HTTP/1.1\r\n"),
        "{}",
        seen.head
    );
    fixture.end();
}

#[test]
fn b7_unknown_model_names_do_not_become_metric_labels() {
    let fixture = Fixture::new();
    let mut connection = Connection::open(fixture.gate.data);
    for n in 0..400 {
        let response = connection.call(&call(&chat(&format!("invented-{n}"), false)));
        fixture.forwarded("an invented name", &response);
    }
    let page = fixture.gate.metrics();
    let mut names: Vec<_> = page.split("invented-").skip(1).collect();
    names
        .iter_mut()
        .for_each(|n| *n = n.split('"').next().unwrap_or_default());
    names.sort_unstable();
    names.dedup();
    assert!(names.len() <= 200, "{} names became labels", names.len());
    fixture.end();
}

#[test]
fn b9_a_body_in_an_unknown_coding_or_in_several_is_refused_where_policy_must_read_it() {
    let fixture = Fixture::new();
    for encoding in ["deflate, gzip", "x-unknown", "compress", "identity, gzip"] {
        let line = format!("content-encoding: {encoding}");
        let request = post(
            "/v1/chat/completions",
            &[IDENTITY, &line],
            &chat("m", false),
        );
        fixture.refuses(
            encoding,
            &request,
            415,
            "unsupported_content_encoding",
            After::Kept,
        );
    }
    let twice = [
        IDENTITY,
        "content-encoding: identity",
        "content-encoding: gzip",
    ];
    let request = post("/v1/chat/completions", &twice, &chat("m", false));
    fixture.refuses(
        "identity and gzip",
        &request,
        415,
        "unsupported_content_encoding",
        After::Kept,
    );
    let request = post(
        "/v1/chat/completions",
        &[IDENTITY, "content-encoding: identity"],
        &chat("m", false),
    );
    fixture.forwards("identity", &request);
    // Where policy does not read the body, the body passes together with its content-encoding.
    let seen = fixture.forwards(
        "a bomb that nobody opens",
        &post(
            "/v1/files",
            &[IDENTITY, "content-encoding: gzip"],
            "\u{1f}8B",
        ),
    );
    assert_eq!(seen.header("content-encoding"), ["gzip"]);
    assert_eq!(seen.body, "\u{1f}8B".as_bytes());
    fixture.end();
}

#[test]
fn b10_only_json_content_types_are_accepted_where_json_is_read() {
    let fixture = Fixture::new();
    let with = |kind: &str| {
        let body = chat("m", false);
        let length = body.len();
        format!("POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\n{IDENTITY}\r\n{kind}content-length: {length}\r\n\r\n{body}")
            .into_bytes()
    };
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=utf-16",
        "application/jsonx",
        "",
    ] {
        let line = format!("content-type: {kind}\r\n");
        fixture.refuses(
            kind,
            &with(&line),
            415,
            "unsupported_content_type",
            After::Kept,
        );
    }
    let twice = "content-type: application/json\r\ncontent-type: text/plain\r\n";
    fixture.refuses(
        "two types",
        &with(twice),
        415,
        "unsupported_content_type",
        After::Kept,
    );
    // A web page of any origin can send a body without a content type.
    fixture.refuses(
        "no type",
        &with(""),
        415,
        "unsupported_content_type",
        After::Kept,
    );
    for line in [
        "content-type: application/json; charset=UTF-8\r\n",
        "Content-Type: Application/JSON\r\n",
    ] {
        fixture.forwards(line, &with(line));
    }
    fixture.end();
}

#[test]
fn b10_a_multipart_body_passes_as_it_came_and_has_so_many_parts_at_the_most() {
    let fixture = Fixture::new();
    let boundary = "b".repeat(70);
    let part = format!("--{boundary}\r\ncontent-disposition: form-data; name=a\r\n\r\n1\r\n");
    let model = part
        .replace("name=a", "name=model")
        .replace("\r\n1\r\n", "\r\nm\r\n");
    let form = |parts: usize| part.repeat(parts) + &model + &format!("--{boundary}--\r\n");
    let body = form(255);
    let line = format!("content-type: multipart/form-data; boundary={boundary}");
    let request = format!(
        "POST /v1/audio/transcriptions HTTP/1.1\r\nhost: g\r\n{IDENTITY}\r\n{line}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let seen = fixture.forwards("a multipart body", request.as_bytes());
    assert!(seen.body == body.as_bytes(), "the body changed");
    assert_eq!(
        seen.header("content-type"),
        [line.split_once(": ").expect("a header").1]
    );
    let more = form(256);
    let request = format!(
        "POST /v1/audio/transcriptions HTTP/1.1\r\nhost: g\r\n{IDENTITY}\r\n{line}\r\ncontent-length: {}\r\n\r\n{more}",
        more.len()
    );
    fixture.refuses(
        "too many parts",
        request.as_bytes(),
        400,
        "invalid_form",
        After::Kept,
    );
    fixture.end();
}

/// A POST whose body is not text.
fn raw(body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\n{IDENTITY}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}
