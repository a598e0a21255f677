//! Clients that speak HTTP/2, with prior knowledge and over TLS.
//!
//! Invariant: an exchange over HTTP/2 is answered, counted and recorded as one over HTTP/1.1; an
//! incomplete response ends with a reset and never with END_STREAM.
//! Not here: malformed streams (`malformed`), floods (`floods`), HTTP/2 to upstreams (`upstream`).

mod floods;
mod malformed;
mod upstream;

use std::time::{Duration, Instant};

use engine::{EngineConfig, EngineHandle, spawn_thread};
use http_body_util::BodyExt;
use testing::{Began, eventually, found};

use crate::fixture::{Fixture, IDENTITY, config};
use crate::harness::answer::{
    COMPLETION, DONE, LAST_CHUNK, chunk, counts, delta, events_head, json, usage_event,
};
use crate::harness::h2::{self, Ended, Frames, INTERNAL_ERROR};
use crate::harness::{Gate, Signal, Step, Upstream, chat, tls};

/// An engine that answers at this pace.
fn engine(inter_token_ms: u64) -> EngineHandle {
    spawn_thread(EngineConfig {
        ttft: Duration::ZERO,
        inter_token: Duration::from_millis(inter_token_ms),
        ..EngineConfig::default()
    })
    .expect("an engine")
}

/// The body of a streamed call with this output cap.
fn stream(tokens: u32) -> String {
    format!(
        r#"{{"model":"gpt-oss-120b","stream":true,"min_tokens":{tokens},"max_tokens":{tokens},"messages":[{{"role":"user","content":"Hello"}}]}}"#
    )
}

/// The header list of a POST of workload `w`.
fn list(length: &str) -> Vec<(&str, &str)> {
    let mut list = vec![
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/v1/chat/completions"),
        (":authority", "gate.test"),
        ("x-workload-app", "w"),
        ("content-type", "application/json"),
    ];
    if !length.is_empty() {
        list.push(("content-length", length));
    }
    list
}

/// A whole call on this stream, to be sent at once.
fn whole(stream: u32, body: &[u8]) -> Vec<u8> {
    let head = h2::frame(
        h2::HEADERS,
        h2::END_HEADERS,
        stream,
        &h2::encoded(&list("")),
    );
    [head, h2::frame(h2::DATA, h2::END_STREAM, stream, body)].concat()
}

/// Streams an event, and once it is told so the rest, in which 60 tokens are reported; answers other calls whole.
fn in_two_parts(until: Signal) -> Upstream {
    Upstream::start(move |_, seen| {
        if seen.json()["stream"] != true {
            return vec![Step::Send(json(200, COMPLETION))];
        }
        let rest = [delta("two"), usage_event(&counts(7, 60)), DONE.to_owned()].concat();
        vec![
            Step::Send([events_head(), chunk(delta("one").as_bytes())].concat()),
            Step::Until(until.clone()),
            Step::Send([&chunk(rest.as_bytes())[..], LAST_CHUNK].concat()),
        ]
    })
}

#[test]
fn a_call_with_prior_knowledge_goes_through_and_leaves_one_record() {
    let fixture = Fixture::new();
    let response = h2::run(async {
        let mut client = h2::connect(fixture.gate.data).await;
        let request = h2::post("/v1/chat/completions", chat("m", false));
        h2::whole(client.send_request(request).await.expect("an answer"))
            .await
            .expect("whole")
    });
    let seen = fixture.forwarded("a call", &response);
    assert_eq!(seen.json()["model"], "m");
    assert_eq!(seen.header("authorization"), ["Bearer gate-key"]);
    assert_eq!(seen.header("host"), [fixture.upstream.address.to_string()]);
    assert_eq!(seen.header("x-workload-app"), Vec::<String>::new());
    fixture.end();
}

#[test]
fn refusals_leave_the_connection_usable() {
    let fixture = Fixture::with("bounds: { body: 64KiB }\n");
    h2::run(async {
        let mut client = h2::connect(fixture.gate.data).await;
        let body = chat("m", false);
        let good = h2::post("/v1/chat/completions", body.clone());
        let mut stranger = good.clone();
        stranger
            .headers_mut()
            .insert("x-workload-app", "nobody".parse().expect("a value"));
        let mut twice = good.clone();
        twice
            .headers_mut()
            .append("x-workload-app", "w".parse().expect("a value"));
        let mut keys = good.clone();
        keys.headers_mut()
            .insert("authorization", "Bearer a".parse().expect("a value"));
        keys.headers_mut()
            .insert("x-api-key", "a".parse().expect("a value"));
        let mut gzip = good.clone();
        gzip.headers_mut()
            .insert("content-encoding", "gzip".parse().expect("a value"));
        let mut expects = good.clone();
        expects
            .headers_mut()
            .insert("expect", "x".parse().expect("a value"));
        let mut traced = good.clone();
        *traced.method_mut() = http::Method::TRACE;
        let mut many = good.clone();
        for n in 0..100 {
            let name: http::HeaderName = format!("x-{n}").parse().expect("a name");
            many.headers_mut()
                .insert(name, "1".parse().expect("a value"));
        }
        let mut other_host = good.clone();
        other_host
            .headers_mut()
            .insert("host", "other.test".parse().expect("a value"));
        let rows = [
            (stranger, 404, "workload_not_registered"),
            (twice, 400, "identity_repeated"),
            (keys, 400, "conflicting_credentials"),
            (gzip, 400, "invalid_content_encoding"),
            (expects, 417, "expectation_failed"),
            (traced, 405, "method_not_allowed"),
            (many, 431, "too_many_fields"),
            (other_host, 400, "host_repeated"),
            (h2::post("/v2/x", body.clone()), 404, "unknown_url"),
            (
                h2::post("/v1/a/../chat/completions", body.clone()),
                400,
                "ambiguous_path",
            ),
            (h2::post("/v1/chat/completions", "{"), 400, "invalid_json"),
            (
                h2::post("/v1/chat/completions", "x".repeat(100 << 10)),
                413,
                "request_too_large",
            ),
        ];
        for (request, status, code) in rows {
            let response = client.send_request(request).await.expect(code);
            let response = h2::whole(response).await.expect(code);
            fixture.refused(code, &response, status, code);
            assert_eq!(response.header("connection"), None, "{code}");
            let response = client.send_request(good.clone()).await.expect(code);
            fixture.forwarded(code, &h2::whole(response).await.expect(code));
        }
    });
    fixture.end();
}

#[test]
fn alpn_selects_the_version_of_tls_clients() {
    let seen = Signal::default();
    let upstream = in_two_parts(seen.clone());
    let authority = tls::Authority::new();
    let leaf = authority.leaf("gate.test");
    let files = [
        ("cert.pem", leaf.certificate.as_bytes()),
        ("key.pem", leaf.key.as_bytes()),
    ];
    let gate = Gate::start_tls(&config(upstream.address, ""), &files);
    h2::run(async {
        let stream_of =
            |protocols| tls::connect(gate.data, "gate.test", &authority.certificate, protocols);
        let over = stream_of(&[b"h2", b"http/1.1"]).await;
        assert_eq!(over.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let mut client = h2::client(over).await;
        let request = h2::post("/v1/chat/completions", chat("m", true));
        let response = client.send_request(request).await.expect("an answer");
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let (mut body, mut text) = (response.into_body(), String::new());
        while let Some(frame) = body.frame().await {
            let data = frame
                .expect("it does not break off")
                .into_data()
                .unwrap_or_default();
            text.push_str(std::str::from_utf8(&data).expect("text"));
            // What has come is here before there is more.
            if text.ends_with(&delta("one")) {
                seen.give();
            }
        }
        assert_eq!(text, [&delta("one"), &delta("two"), DONE].concat());
        // Without ALPN, and with it for HTTP/1.1 alone, the same port speaks HTTP/1.1.
        for protocols in [&[][..], &[&b"http/1.1"[..]]] {
            let mut over = stream_of(protocols).await;
            let body = chat("m", false);
            let request = format!(
                "POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\n{IDENTITY}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            tokio::io::AsyncWriteExt::write_all(&mut over, request.as_bytes())
                .await
                .expect("sent");
            let mut all = Vec::new();
            drop(tokio::io::AsyncReadExt::read_to_end(&mut over, &mut all).await);
            let text = String::from_utf8_lossy(&all);
            assert!(
                text.starts_with("HTTP/1.1 200 ") && text.contains("completion_tokens"),
                "{text}"
            );
        }
    });
    let records = gate.records(3);
    assert_eq!(records.len(), 3);
    assert_eq!(
        (&records[0]["streamed"], &records[0]["completion_tokens"]),
        (&true.into(), &60.into())
    );
    assert_eq!(records[0]["completion_source"], "reported");
}

/// A stream that has begun.
fn streaming(gate: &Gate) -> Frames {
    let mut frames = Frames::open(gate.data, &[]);
    frames.write(&whole(1, stream(5000).as_bytes()));
    while frames.next().expect("the stream runs").kind != h2::DATA {}
    frames
}

/// Resets it, and waits until the engine knows.
fn reset(mut frames: Frames, engine: &EngineHandle) {
    let before = engine.stats().finished_abort;
    frames.reset(1, h2::CANCEL);
    eventually("the engine stops", || {
        engine.stats().finished_abort == before + 1
    });
}

#[test]
fn a_client_that_resets_its_stream_cancels_the_upstream_at_once() {
    // Else it would go on for ten minutes.
    let engine = engine(120);
    let gate = Gate::start(&config(engine.addr(), ""), &[]);
    reset(streaming(&gate), &engine);
    let record = &gate.records(1)[0];
    assert_eq!(
        (&record["outcome"], &record["status"]),
        (&"aborted".into(), &200.into()),
        "{record}"
    );
}

#[test]
#[ignore = "timing"]
fn timing_a_reset_stream_is_cancelled_upstream_within_100_ms() {
    let engine = engine(20);
    let gate = Gate::start(&config(engine.addr(), ""), &[]);
    // The engine detects it at its next token, the test at its next look.
    let took = (0..5).map(|_| {
        let frames = streaming(&gate);
        let began = Instant::now();
        reset(frames, &engine);
        began.elapsed()
    });
    let fastest = took.min().expect("some");
    println!("{fastest:?}");
    assert!(fastest < Duration::from_millis(100), "{fastest:?}");
}

#[test]
fn a_client_that_resets_before_an_answer_cancels_the_upstream_too() {
    let engine = spawn_thread(EngineConfig {
        ttft: Duration::from_mins(10),
        ..EngineConfig::default()
    });
    let engine = engine.expect("an engine");
    let gate = Gate::start(&config(engine.addr(), ""), &[]);
    let mut frames = Frames::open(gate.data, &[]);
    frames.headers(1, &list(""), false);
    frames.send(h2::DATA, h2::END_STREAM, 1, stream(10).as_bytes());
    eventually("the engine has it", || engine.stats().running == 1);
    frames.reset(1, h2::CANCEL);
    eventually("the engine is free", || engine.stats().finished_abort == 1);
    assert_eq!(gate.records(1)[0]["outcome"], "aborted");
}

#[test]
fn a_broken_upstream_response_resets_the_http2_stream() {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let event = "f\r\ndata: {\"a\":1}\n\n\r\n";
    let seen: [Signal; 3] = Default::default();
    let until = seen.clone();
    let upstream = Upstream::start(move |n, _| {
        let end = match n {
            0 => Step::Close,
            1 => Step::Reset,
            _ => Step::Send(b"xyz\r\n".to_vec()),
        };
        vec![
            Step::Send(head.into()),
            Step::Send(event.into()),
            Step::Until(until[n].clone()),
            end,
        ]
    });
    let gate = Gate::start(&config(upstream.address, ""), &[]);
    let mut frames = Frames::open(gate.data, &[]);
    for (stream, seen) in [1, 3, 5].into_iter().zip(seen) {
        frames.write(&whole(stream, br#"{"stream":true}"#));
        while frames.next().expect("the stream runs").kind != h2::DATA {}
        seen.give();
        assert_eq!(
            frames.ended(stream),
            Ended::Reset(INTERNAL_ERROR),
            "stream {stream}"
        );
    }
    for record in gate.records(3) {
        assert_eq!(
            (&record["outcome"], &record["code"]),
            (&"failed".into(), &"upstream_cut".into())
        );
    }
}

#[test]
fn a_drain_sends_goaway_and_completes_open_streams() {
    let drains = Signal::default();
    let upstream = in_two_parts(drains.clone());
    let grace = "drain: { grace: 1h }\n";
    let mut gate = Gate::start(&config(upstream.address, grace), &[]);
    let mut frames = Frames::open(gate.data, &[]);
    frames.write(&whole(1, chat("m", true).as_bytes()));
    while frames.next().expect("the stream runs").kind != h2::DATA {}
    gate.signal(libc::SIGTERM);
    eventually("/readyz is 503", || gate.admin("/readyz").status == 503);
    drains.give();
    let (mut text, mut said) = (String::new(), Vec::new());
    while let Some(frame) = frames.next() {
        match frame.kind {
            h2::GOAWAY => said.push(frame.code(4)),
            h2::DATA => text.push_str(&String::from_utf8_lossy(&frame.payload)),
            _ => assert_ne!(frame.kind, h2::RST_STREAM, "the stream was cut"),
        }
    }
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    assert!(
        !said.is_empty() && said.iter().all(|code| *code == h2::NO_ERROR),
        "{said:?}"
    );
    assert!(gate.ended().success());
    assert_eq!(gate.records(1)[0]["outcome"], "completed");
}

#[test]
fn a_hundred_streams_share_a_connection() {
    let engine = engine(5);
    let gate = Gate::start(&config(engine.addr(), ""), &[]);
    h2::run(async {
        let client = h2::connect(gate.data).await;
        let calls: Vec<_> = (0..100)
            .map(|_| {
                let mut client = client.clone();
                tokio::spawn(async move {
                    let request = h2::post("/v1/chat/completions", stream(20));
                    h2::whole(client.send_request(request).await?).await
                })
            })
            .collect();
        for call in calls {
            let response = call.await.expect("no panic").expect("an answer");
            assert_eq!(response.status, 200);
            assert!(response.text().ends_with("data: [DONE]\n\n"));
        }
    });
    let records = gate.records(100);
    assert_eq!(records.len(), 100);
    assert!(
        records
            .iter()
            .all(|r| r["completion_tokens"] == 20 && r["outcome"] == "completed")
    );
}

#[test]
fn an_idle_http2_connection_is_closed_after_goaway() {
    let fixture = Fixture::with("bounds: { keep_alive: 1s }\n");
    let began = Began::now();
    // A machine that stands still may let a connection's second pass before its call comes.
    let mut frames = found("a call on a connection in time", || {
        let mut frames = Frames::open(fixture.gate.data, &[]);
        frames.write(&whole(1, b"{}"));
        (frames.ended(1) == Ended::Whole(200)).then_some(frames)
    });
    let goaway = frames.next().expect("a word before the end");
    assert_eq!((goaway.kind, goaway.code(4)), (h2::GOAWAY, h2::NO_ERROR));
    while frames.next().is_some() {}
    began.took_at_least(Duration::from_millis(500));
}

#[test]
fn c1_a_stalled_body_over_http2_is_refused() {
    let fixture = Fixture::with("bounds: { body_idle: 1s }\n");
    let mut frames = Frames::open(fixture.gate.data, &[]);
    frames.headers(1, &list(""), false);
    frames.send(h2::DATA, 0, 1, b"{\"model\"");
    assert_eq!(frames.ended(1), Ended::Whole(408));
    frames.write(&whole(3, b"{}"));
    assert_eq!(frames.ended(3), Ended::Whole(200), "the connection goes on");
    assert_eq!(fixture.gate.records(2)[0]["code"], "request_timeout");
}

#[test]
fn c1_an_endless_head_over_http2_closes_the_connection() {
    let fixture = Fixture::with("bounds: { keep_alive: 1s }\n");
    let mut half = Frames::open(fixture.gate.data, &[]);
    half.send(h2::HEADERS, h2::END_STREAM, 1, &h2::encoded(&list("")));
    let mut silent = Frames::open(fixture.gate.data, &[]);
    while half.next().is_some() {}
    while silent.next().is_some() {}
    assert_eq!(fixture.upstream.seen().len(), 0);
}

#[test]
fn a_client_that_opens_no_window_is_disconnected_after_write_stall() {
    let upstream = Upstream::start(|_, _| {
        let body = format!("{{\"a\":\"{}\"}}", "x".repeat(256 << 10));
        vec![Step::Send(json(200, &body))]
    });
    let gate = Gate::start(
        &config(
            upstream.address,
            "bounds: { write_stall: 1s, keep_alive: 1s }\n",
        ),
        &[],
    );
    let calls: Vec<u8> = (1..200)
        .step_by(2)
        .flat_map(|stream| whole(stream, b"{}"))
        .collect();
    // Nothing can be sent on a stream without a window, so the connection is closed. Where this process stands still, an
    // idle one may be closed before its calls come.
    found("a connection with calls is closed", || {
        // SETTINGS_INITIAL_WINDOW_SIZE 0: not one byte of a body may come.
        let mut frames = Frames::open(gate.data, &[(4, 0)]);
        frames.write(&calls);
        let ended = frames.ended(1);
        assert!(
            matches!(ended, Ended::Reset(_) | Ended::GoAway(_) | Ended::Closed),
            "{ended:?}"
        );
        (upstream.count() > 0).then_some(())
    });
    let records = gate.records(100);
    assert!(
        records.iter().all(|r| r["outcome"] == "aborted"),
        "{:?}",
        records[0]
    );
}
