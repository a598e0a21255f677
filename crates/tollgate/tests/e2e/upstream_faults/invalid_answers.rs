//! U5, and credentials that an upstream refuses: answers that are not of the API.
//!
//! Invariant: what is forwarded is in the format of the API; an upstream's page, redirect or message about
//! the gate's credential never reaches the client.

use super::{assert_error, call, case, one, record};
use crate::harness::answer::{COMPLETION, DONE, events, json, whole};
use crate::harness::{Connection, Gate, Step, Upstream};

const SECRET: &str = "words-of-the-upstream";

fn answer(case: &str) -> Vec<u8> {
    let page = format!("<html>{SECRET}</html>");
    let error = format!(r#"{{"error":{{"message":"{SECRET}","code":"their_code"}}}}"#);
    match case {
        "html" => whole(200, "text/html", page.as_bytes()),
        "no-type" => format!("HTTP/1.1 200 OK\r\ncontent-length: 21\r\n\r\n{SECRET}").into(),
        "other-type" => whole(200, "application/octet-stream", page.as_bytes()),
        "html-500" => whole(500, "text/html", page.as_bytes()),
        "html-404" => whole(404, "text/html", page.as_bytes()),
        "no-content" => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
        "301" | "302" | "303" | "307" | "308" => {
            let location = format!("http://127.0.0.1:1/{SECRET}");
            let text = format!("HTTP/1.1 {case} Moved\r\nlocation: {location}\r\n");
            format!("{text}content-length: 0\r\n\r\n").into()
        }
        "not-modified" => b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec(),
        "401" | "403" => json(case.parse().expect("a status"), &error),
        _ => panic!("no such case: {case}"),
    }
}

#[test]
fn an_answer_that_is_not_of_the_api_becomes_a_typed_error() {
    let upstream = Upstream::start(|_, seen| vec![Step::Send(answer(&case(seen)))]);
    let gate = Gate::start(&one(upstream.address), &[]);
    let format = "upstream_bad_response";
    let credential = "upstream_credential_refused";
    let cases = [
        ("html", format),
        ("no-type", format),
        ("other-type", format),
        ("html-500", "upstream_status"),
        ("html-404", "upstream_status"),
        ("no-content", format),
        ("301", format),
        ("302", format),
        ("303", format),
        ("307", format),
        ("308", format),
        ("not-modified", format),
        ("401", credential),
        ("403", credential),
    ];
    for (n, (case, code)) in cases.into_iter().enumerate() {
        let response = Connection::open(gate.data).call(&call(case, n % 2 == 0));
        assert_error(&response, 502, code, case);
        assert!(
            !response.text().contains(SECRET),
            "{case}: {}",
            response.text()
        );
        assert!(
            response.headers.iter().all(|(_, v)| !v.contains(SECRET)),
            "{case}"
        );
        let record = record(&gate, n + 1, case);
        assert_eq!(
            (&record["outcome"], &record["code"]),
            (&"failed".into(), &code.into())
        );
    }
    assert_eq!(
        upstream.seen().len(),
        cases.len(),
        "nothing was followed or repeated"
    );
}

#[test]
fn errors_in_the_format_of_the_api_pass_unchanged() {
    let error = r#"{"error":{"message":"no such thing","type":"x","param":null,"code":"theirs"}}"#;
    let upstream = Upstream::start(move |_, seen| {
        let case = case(seen);
        if case == "in-stream" {
            let stream = format!("data: {error}\n\n{DONE}");
            return vec![Step::Send(events(stream.as_bytes()))];
        }
        vec![Step::Send(json(case.parse().expect("a status"), error))]
    });
    let gate = Gate::start(&one(upstream.address), &[]);
    for status in [400_u16, 404, 409, 422, 429, 500, 503, 529] {
        let response = gate.call(&call(&status.to_string(), true));
        assert_eq!((response.status, response.text().as_str()), (status, error));
    }
    let response = gate.call(&call("in-stream", true));
    assert_eq!((response.status, response.whole), (200, true));
    assert_eq!(response.text(), format!("data: {error}\n\n{DONE}"));
}

#[test]
fn a_json_answer_to_a_streaming_call_passes_and_is_counted() {
    let upstream = Upstream::start(|_, _| vec![Step::Send(json(200, COMPLETION))]);
    let gate = Gate::start(&one(upstream.address), &[]);
    let response = gate.call(&call("m", true));
    assert_eq!(response.text(), COMPLETION);
    let record = record(&gate, 1, "m");
    assert_eq!(
        (&record["streamed"], &record["prompt_tokens"]),
        (&false.into(), &7.into())
    );
}
