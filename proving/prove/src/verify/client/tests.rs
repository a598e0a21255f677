//! Targets that do not answer as gateways do: each is told for what it is.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

use http::{HeaderMap, Method};
use testing::PATIENCE;

use super::{Answer, Asked, Target, Unanswered, ask};
use crate::host::ports::Closed;

/// Answers one call with these bytes and closes; without any, it keeps silent until the client has gone.
fn says(answer: Option<Vec<u8>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a call");
        let mut buffer = [0; 4096];
        let _ = stream.read(&mut buffer);
        match answer {
            Some(answer) => drop(stream.write_all(&answer)),
            None => drop(stream.read_to_end(&mut Vec::new())),
        }
    });
    address
}

fn asked(address: SocketAddr, patience: Duration) -> Result<Answer, Unanswered> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let asked = Asked {
        spelled: &std::collections::BTreeMap::new(),
        method: &Method::POST,
        path: "/v1",
        headers: &HeaderMap::new(),
        body: b"{}",
    };
    runtime
        .expect("a runtime")
        .block_on(ask(&Target::at(address), asked, patience))
}

fn answered(bytes: &[u8]) -> Result<Answer, Unanswered> {
    asked(says(Some(bytes.to_vec())), PATIENCE)
}

#[test]
fn an_answer_is_kept_as_it_came() {
    let answer =
        answered(b"HTTP/1.1 429 Slow Down\r\nX-A: 1\r\nX-A: 2\r\ncontent-length: 2\r\n\r\nno");
    let answer = answer.expect("an answer");
    assert_eq!((answer.status, answer.body.as_slice()), (429, &b"no"[..]));
    assert_eq!(answer.reason, b"Slow Down");
    assert_eq!(
        answer
            .headers
            .iter()
            .filter(|(name, _)| name == "x-a")
            .count(),
        2
    );
    assert_eq!(
        (answer.header("X-a").as_deref(), answer.broken),
        (Some("1"), None)
    );
}

#[test]
fn a_body_that_is_cut_is_kept_with_the_reason() {
    let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n";
    let answer = answered(chunked).expect("an answer");
    assert_eq!(answer.body, b"hello");
    assert!(answer.broken.is_some());
    let short = answered(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello").expect("an answer");
    assert!(short.broken.is_some());
}

#[test]
fn a_web_page_is_no_answer() {
    for page in [
        &b"HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: 2\r\n\r\nhi"[..],
        b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 22\r\n\r\n \n<!DOCTYPE html><html>",
        b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<HTML>",
    ] {
        let error = answered(page).expect_err("a page");
        assert!(matches!(error, Unanswered::Html { .. }), "{error}");
    }
}

#[test]
fn silence_and_what_is_no_http_are_no_answers() {
    let late = asked(says(None), Duration::from_millis(100)).expect_err("silence");
    assert!(matches!(late, Unanswered::Late { .. }), "{late}");
    for bytes in [
        &b"220 mail ready\r\n"[..],
        b"",
        b"HTTP/1.1 200 OK\r\nx: a\x01b\r\n\r\n",
    ] {
        let error = answered(bytes).expect_err("no HTTP");
        assert!(matches!(error, Unanswered::NotHttp { .. }), "{error}");
    }
    let long = [&b"HTTP/1.1 200 OK\r\n\r\n"[..], &vec![b'a'; (16 << 20) + 1]].concat();
    let error = answered(&long).expect_err("too long");
    assert!(matches!(error, Unanswered::TooLong { .. }), "{error}");
    let nobody = Closed::new();
    let error = asked(nobody.address, PATIENCE).expect_err("nobody");
    assert!(matches!(error, Unanswered::Unreachable { .. }), "{error}");
}

#[test]
fn a_target_is_an_http_url_without_credentials() {
    let target = Target::parse("http://gate.example:8080/base/").expect("a target");
    assert_eq!(target.to_string(), "http://gate.example:8080/base");
    assert_eq!(
        Target::parse("http://[::1]:9")
            .expect("a target")
            .to_string(),
        "http://[::1]:9"
    );
    for wrong in [
        "gate:80",
        "https://gate",
        "http://user:key@gate",
        "http://",
        "not a url",
    ] {
        let says = Target::parse(wrong).expect_err(wrong);
        assert!(says.contains("http://HOST"), "{says}");
    }
}

#[test]
fn what_is_said_before_within_and_behind_an_answer_is_kept_with_it() {
    let all = b"HTTP/1.1 103 Early Hints\r\nlink: one\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
        2;k=two\r\nno\r\n0\r\n\r\nthree";
    let answer = answered(all).expect("an answer");
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b"no"[..]));
    assert_eq!(answer.raw, all);
}
