//! Responses whose framing breaks after valid events in the same read.

use super::{AuditedGate, body, named, number};
use crate::harness::answer::{chunk, delta, events_head};
use crate::harness::{Step, Upstream, h2};

const BROKEN: &[u8] = b"zz\r\nnot a chunk\r\n";

fn engine() -> Upstream {
    Upstream::start(|_, seen| {
        let good = [
            chunk(delta("one").as_bytes()),
            chunk(delta("two").as_bytes()),
        ]
        .concat();
        let bytes = match &seen.header("x-request-id")[0] {
            id if id.starts_with("after-good") => [events_head(), good, BROKEN.to_vec()].concat(),
            _ => [events_head(), BROKEN.to_vec()].concat(),
        };
        vec![Step::Send(bytes)]
    })
}

#[test]
fn events_before_a_malformed_chunk_are_forwarded_and_the_response_is_cut() {
    let upstream = engine();
    let audited = AuditedGate::one(upstream.address, "");
    // With a usage event that is withheld from the client, and with one that it asked for.
    for (n, options) in ["", r#","stream_options":{"include_usage":true}"#]
        .into_iter()
        .enumerate()
    {
        let whole = body(true, 50, 40);
        let body = format!("{}{options}}}", whole.strip_suffix('}').expect("an object"));
        let answer = audited.gate.call(&named(&format!("after-good-{n}"), &body));
        assert_eq!(answer.status, 200, "{body} {}", answer.text());
        assert_eq!(answer.text(), delta("one") + &delta("two"));
        assert!(!answer.whole, "a made-up end");
    }
    let rows = audited.end(2);
    for row in rows.values() {
        let cut = (&"upstream_cut".into(), &200.into());
        assert_eq!((&row["code"], &row["status"]), cut, "{row}");
        assert_eq!(number(row, "completion_tokens"), 2, "{row}");
    }
}

#[test]
fn a_response_that_breaks_before_any_byte_was_forwarded_is_502() {
    let upstream = engine();
    let audited = AuditedGate::one(upstream.address, "");
    let answer = audited.gate.call(&named("at-once", &body(true, 50, 40)));
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (502, "upstream_malformed"),
        "{}",
        answer.text()
    );
    h2::run(async {
        let mut client = h2::connect(audited.gate.data).await;
        let mut request = h2::post("/v1/chat/completions", body(true, 50, 40));
        let id = http::HeaderValue::from_static("over-http2");
        request.headers_mut().insert("x-request-id", id);
        let answer = client.send_request(request).await.expect("an answer");
        let answer = h2::whole(answer).await.expect("a whole one");
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (502, "upstream_malformed")
        );
    });
    let rows = audited.end(2);
    for row in rows.values() {
        assert_eq!(row["status"], 502, "{row}");
        assert_eq!(row["estimate_reason"], "upstream_malformed", "{row}");
        assert_eq!(number(row, "completion_tokens"), 50, "{row}");
    }
}

#[test]
fn an_upstream_error_is_not_charged_even_when_its_body_breaks() {
    let upstream = Upstream::start(|_, seen| {
        let status = seen.header("x-request-id")[0].clone();
        let head = format!(
            "HTTP/1.1 {status} Error\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n"
        );
        vec![Step::Send(head.into()), Step::Close]
    });
    let audited = AuditedGate::one(upstream.address, "");
    let statuses = ["400", "404", "422"];
    for status in statuses {
        let answer = audited.gate.call(&named(status, &body(false, 500, 40)));
        assert!(
            answer.status == 502 || !answer.whole,
            "{status}: {answer:?}"
        );
    }
    let rows = audited.end(statuses.len());
    for status in statuses {
        let row = &rows[status];
        assert!(row["prompt_tokens"].is_null(), "{row}");
        assert!(row["completion_tokens"].is_null(), "{row}");
        assert!(row["estimate_reason"].is_null(), "{row}");
    }
}
