//! What HTTP/1.1 requires of any server: a reason phrase, a date, targets in absolute form, empty lines before
//! a request, an answer after a half-close.
//!
//! Not here: what is refused (`framing`, `targets`, `heads`).

use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use testing::pace;

use super::framed;
use crate::fixture::{After, Fixture, IDENTITY, answer, call, config, is_closed};
use crate::harness::answer::{COMPLETION, LAST_CHUNK, chunk, delta, events_head, json};
use crate::harness::{Connection, Gate, PartialUpstream, Step, Upstream, chat, h2};

/// Everything that is received until the gate closes.
fn all(connection: &mut Connection) -> String {
    let mut bytes = connection.unread().to_vec();
    connection
        .tcp
        .read_to_end(&mut bytes)
        .expect("it ends in time");
    String::from_utf8(bytes).expect("text")
}

/// Whether it is an HTTP date: `Sun, 06 Nov 1994 08:49:37 GMT`.
fn is_date(date: &str) -> bool {
    let pattern = "Aaa, 00 Aaa 0000 00:00:00 GMT";
    date.len() == pattern.len()
        && date.bytes().zip(pattern.bytes()).all(|(b, p)| match p {
            b'0' => b.is_ascii_digit(),
            b'a' => b.is_ascii_lowercase(),
            b'A' => b.is_ascii_uppercase(),
            p => b == p,
        })
}

#[test]
fn a_response_has_a_reason_phrase_and_one_date() {
    let fixture = Fixture::new();
    let mut connection = Connection::open(fixture.gate.data);
    connection.send(&call(&chat("m", false)));
    while !String::from_utf8_lossy(connection.unread()).contains("\r\n\r\n") {
        assert!(connection.more(), "an answer");
    }
    assert!(connection.unread().starts_with(b"HTTP/1.1 200 OK\r\n"));
    let response = connection.response();
    let date = response.header("date").expect("a date").to_owned();
    assert!(is_date(&date), "{date}");
    fixture.forwarded("a call", &response);
    let request = format!("GET /v2 HTTP/1.1\r\nhost: g\r\n{IDENTITY}\r\nconnection: close\r\n\r\n");
    let mut connection = Connection::open(fixture.gate.data);
    connection.send(request.as_bytes());
    let refusal = all(&mut connection);
    assert!(
        refusal.starts_with("HTTP/1.1 404 Not Found\r\n"),
        "{refusal}"
    );
    let dates = refusal.lines().filter_map(|l| l.strip_prefix("date: "));
    assert_eq!(dates.filter(|d| is_date(d)).count(), 1, "{refusal}");
    let over_h2 = h2::run(async {
        let mut client = h2::connect(fixture.gate.data).await;
        let request = h2::post("/v1/chat/completions", chat("m", false));
        h2::whole(client.send_request(request).await.expect("an answer"))
            .await
            .expect("whole")
    });
    let dates = over_h2.headers.iter().filter(|(name, _)| name == "date");
    assert_eq!(dates.count(), 1, "over HTTP/2");
}

#[test]
fn the_upstreams_date_and_request_id_reach_the_client() {
    let upstream = Upstream::start(|_, _| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
            date: Sun, 06 Nov 1994 08:49:37 GMT\r\nx-request-id: theirs-1\r\n\
            x-upstream-request-id: further-up\r\n";
        let length = COMPLETION.len();
        let text = format!("{head}content-length: {length}\r\n\r\n{COMPLETION}");
        vec![Step::Send(text.into_bytes())]
    });
    let gate = Gate::start(&config(upstream.address, ""), &[]);
    let response = gate.call(&call(&chat("m", false)));
    let all = |name: &str| {
        let of = response.headers.iter().filter(|(n, _)| n == name);
        of.map(|(_, value)| value.clone()).collect::<Vec<_>>()
    };
    assert_eq!(all("date"), ["Sun, 06 Nov 1994 08:49:37 GMT"]);
    assert_eq!(all("x-upstream-request-id"), ["theirs-1"]);
    let [own] = &all("x-request-id")[..] else {
        panic!("one id of the gate's own")
    };
    let record = &gate.records(1)[0];
    assert_eq!(record["request_id"], own.as_str());
    assert_eq!(record["upstream_request_id"], "theirs-1");
}

#[test]
fn h9_a_target_in_absolute_form_is_served_as_its_path() {
    let fixture = Fixture::new();
    let body = chat("m", false);
    let length = body.len();
    for target in [
        "http://gate.test/v1/chat/completions",
        "HTTPS://gate.test:8443/v1/chat/completions",
        "http://[::1]:1975/v1/chat/completions",
    ] {
        let request = format!(
            "POST {target} HTTP/1.1\r\nhost: other.test\r\n{IDENTITY}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        let seen = fixture.forwards(target, request.as_bytes());
        assert!(
            seen.head
                .starts_with("POST /v1/chat/completions HTTP/1.1\r\n"),
            "{}",
            seen.head
        );
        assert_eq!(
            seen.header("host"),
            [fixture.upstream.address.to_string()],
            "{target}"
        );
    }
    for (target, code) in [
        ("http:///v1/files", "bad_target_form"),
        ("ftp://g/v1/files", "bad_target_form"),
        ("http://u@g/v1/files", "host_invalid"),
        ("http://g:x/v1/files", "host_invalid"),
        ("http://g/v1/../files", "ambiguous_path"),
        ("http://g//v1/files", "ambiguous_path"),
        ("http://g\\v1/files", "ambiguous_path"),
    ] {
        let request = format!("GET {target} HTTP/1.1\r\nhost: g\r\n{IDENTITY}\r\n\r\n");
        fixture.refuses(target, request.as_bytes(), 400, code, After::Closed);
    }
    fixture.end();
}

#[test]
fn empty_lines_before_a_request_are_skipped_and_bounded() {
    let fixture = Fixture::new();
    let mut connection = Connection::open(fixture.gate.data);
    for lines in [1, 3, 8] {
        let request = ["\r\n".repeat(lines).into_bytes(), call(&chat("m", false))].concat();
        let response = connection.call(&request);
        fixture.forwarded(&format!("{lines} empty lines"), &response);
    }
    let many = [b"\r\n".repeat(9), call(&chat("m", false))].concat();
    fixture.refuses("nine", &many, 400, "bad_start_line", After::Closed);
    let mut trickling = Connection::open(fixture.gate.data);
    for _ in 0..9 {
        trickling.send(b"\r\n");
        pace(Duration::from_millis(20));
    }
    let response = trickling.response();
    fixture.refused("nine, one by one", &response, 400, "bad_start_line");
    fixture.end();
    let brief = Fixture::with("bounds: { keep_alive: 1s }\n");
    let mut alone = Connection::open(brief.gate.data);
    alone.send(b"\r\n");
    assert!(
        is_closed(&mut alone),
        "an empty line alone begins no request: idle, and closed without a word"
    );
}

#[test]
fn an_http2_preface_after_a_request_is_refused() {
    let fixture = Fixture::new();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    for before in [&call(&chat("m", false))[..], b"\r\n"] {
        let mut connection = Connection::open(fixture.gate.data);
        connection.send(before);
        if before.len() > 2 {
            let response = connection.response();
            fixture.forwarded("a call", &response);
        } else {
            // So that it is read by itself.
            pace(Duration::from_millis(100));
        }
        connection.send(preface);
        let response = connection.response();
        assert!(response.status >= 400, "{}", response.text());
        assert_eq!(response.header("connection"), Some("close"));
        assert!(is_closed(&mut connection), "a second protocol begins");
    }
}

#[test]
fn h2_chunk_extensions_that_break_the_grammar_are_refused() {
    let fixture = Fixture::new();
    for rest in [
        "2;\r\n",
        "2;a=\r\n",
        "2;a b\r\n",
        "2;a=\"b\r\n",
        "2;@=b\r\n",
        "2;a;\r\n",
    ] {
        let request = framed(
            "transfer-encoding: chunked\r\n",
            &format!("{rest}{{}}\r\n0\r\n\r\n"),
        );
        fixture.refuses(rest, &request, 400, "bad_chunk_extension", After::Closed);
    }
    let body = chat("m", false);
    let good = format!(
        "{:x};a;b=c; d = \"e; \\\" f\"\r\n{body}\r\n0;z\r\n\r\n",
        body.len()
    );
    let seen = fixture.forwards(
        "good ones",
        &framed("transfer-encoding: chunked\r\n", &good),
    );
    assert_eq!(seen.body, body.as_bytes());
    fixture.end();
}

#[test]
fn a_client_that_half_closes_after_its_request_is_answered() {
    let upstream = Upstream::start(|n, _| {
        if n == 0 {
            return vec![
                Step::Sleep(Duration::from_millis(300)),
                Step::Send(answer()),
            ];
        }
        let late = [delta("two"), "data: [DONE]\n\n".to_owned()].concat();
        let late = [chunk(late.as_bytes()), LAST_CHUNK.to_vec()].concat();
        vec![
            Step::Sleep(Duration::from_millis(200)),
            Step::Send([events_head(), chunk(delta("one").as_bytes())].concat()),
            Step::Sleep(Duration::from_millis(200)),
            Step::Send(late),
        ]
    });
    let gate = Gate::start(&config(upstream.address, ""), &[]);
    for (stream, end) in [(false, "\"total_tokens\":4}}"), (true, "0\r\n\r\n")] {
        let mut connection = Connection::open(gate.data);
        connection.send(&call(&chat("m", stream)));
        connection
            .tcp
            .shutdown(Shutdown::Write)
            .expect("it is connected");
        let text = all(&mut connection);
        let answer = text
            .strip_prefix("HTTP/1.1 100 Continue\r\n\r\n")
            .unwrap_or(&text);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{text:?}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{text:?}");
        assert!(answer.ends_with(end), "{text:?}");
    }
    assert!(gate.records(2).iter().all(|r| r["outcome"] == "completed"));
}

#[test]
fn requests_sent_before_a_half_close_are_all_answered() {
    let upstream = Upstream::start(|_, _| {
        vec![
            Step::Sleep(Duration::from_millis(100)),
            Step::Send(json(200, COMPLETION)),
        ]
    });
    let gate = Gate::start(&config(upstream.address, ""), &[]);
    let mut connection = Connection::open(gate.data);
    let two = [call(&chat("m", false)), call(&chat("m", false))].concat();
    connection.tcp.write_all(&two).expect("it is connected");
    connection
        .tcp
        .shutdown(Shutdown::Write)
        .expect("it is connected");
    let text = all(&mut connection);
    assert_eq!(text.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{text:?}");
    assert_eq!(text.matches(COMPLETION).count(), 2, "{text:?}");
}

#[test]
fn a_half_close_during_a_stream_is_a_disconnect() {
    let upstream = PartialUpstream::start([events_head(), chunk(delta("one").as_bytes())].concat());
    let gate = Gate::start(&config(upstream.address, ""), &[]);
    let mut connection = Connection::open(gate.data);
    connection.send(&call(&chat("m", true)));
    while !String::from_utf8_lossy(connection.unread()).contains("one") {
        assert!(connection.more(), "the stream begins");
    }
    connection
        .tcp
        .shutdown(Shutdown::Write)
        .expect("it is connected");
    upstream.closed();
    assert_eq!(gate.records(1)[0]["outcome"], "aborted");
}
