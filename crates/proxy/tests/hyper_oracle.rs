//! The HTTP/1.1 codec beside hyper's: what ours accepts, hyper reads in the same way.
//!
//! Requests are made at random from plausible parts and then damaged. Ours may refuse more; where it
//! accepts a whole request, hyper must see the same method, target, fields and body, and the same number of
//! requests, or refuse it too.
//! Not here: which inputs are good (`vectors/http1`), how ours behaves when cut (`wire`).

use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use testing::Draw;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wire::head::RequestHead;
use wire::http1::{ChunkStep, Chunked, Framing, Limits, Step, parse_request, request_framing};

const CASES: u64 = 20_000;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    method: String,
    target: String,
    fields: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

#[test]
fn what_ours_accepts_hyper_reads_in_the_same_way() {
    let seed = testing::seed("what_ours_accepts_hyper_reads_in_the_same_way");
    let mut chance = Chance(Draw::new(seed));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build_local(tokio::runtime::LocalOptions::default())
        .expect("a runtime");
    let (mut accepted, mut refused_by_hyper) = (0, 0);
    for case in 0..CASES {
        let input = request(&mut chance);
        let Some(ours) = read_ours(&input) else {
            continue;
        };
        accepted += 1;
        let theirs = runtime.block_on(read_by_hyper(&input));
        let shown = String::from_utf8_lossy(&input);
        match theirs.first() {
            Some(theirs) => assert_eq!(&ours, theirs, "case {case} of seed {seed}: {shown:?}"),
            None => {
                if refused_by_hyper < 12 {
                    println!("hyper refuses {shown:?}");
                }
                refused_by_hyper += 1;
            }
        }
    }
    println!("{accepted} of {CASES} accepted by ours, {refused_by_hyper} of them refused by hyper");
    assert!(
        accepted > CASES / 20,
        "too few are accepted to say anything"
    );
    assert!(
        refused_by_hyper * 50 < accepted,
        "hyper refuses what ours accepts: {refused_by_hyper} of {accepted}"
    );
}

/// The first request, if ours accepts it whole.
fn read_ours(input: &[u8]) -> Option<Seen> {
    let mut head = RequestHead::new();
    let Ok(Step::Done { consumed }) = parse_request(input, &Limits::default(), &mut head) else {
        return None;
    };
    head.check_host().ok()?;
    let framing = request_framing(&head).ok()?;
    let rest = input.get(consumed..)?;
    let body = match framing.framing {
        Framing::None | Framing::UntilClose => Vec::new(),
        Framing::Length(length) => rest.get(..usize::try_from(length).ok()?)?.to_vec(),
        Framing::Chunked => unchunked(rest)?,
    };
    let query = head
        .query()
        .map_or_else(String::new, |query| format!("?{query}"));
    let mut fields: Vec<(String, Vec<u8>)> = head
        .fields
        .iter()
        .map(|field| {
            let name = String::from_utf8_lossy(field.name).into_owned();
            (name, field.value.to_vec())
        })
        .collect();
    fields.sort();
    Some(Seen {
        method: head.method_text().to_owned(),
        target: format!("{}{query}", head.path()),
        fields,
        body,
    })
}

fn unchunked(input: &[u8]) -> Option<Vec<u8>> {
    let (mut chunked, mut body, mut at) = (Chunked::new(), Vec::new(), 0);
    loop {
        match chunked.next(input.get(at..)?).ok()? {
            ChunkStep::NeedMore { .. } => return None,
            ChunkStep::End { .. } => return Some(body),
            ChunkStep::Data { skip, len } => {
                body.extend_from_slice(input.get(at + skip..at + skip + len)?);
                at += skip + len;
            }
        }
    }
}

/// Every request that hyper hands to a service with its body whole.
async fn read_by_hyper(input: &[u8]) -> Vec<Seen> {
    let (mut client, server) = tokio::io::duplex(1 << 20);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let told = Rc::clone(&seen);
    let service = service_fn(move |request| {
        let told = Rc::clone(&told);
        async move {
            if let Some(request) = whole(request).await {
                told.borrow_mut().push(request);
            }
            Ok::<_, Infallible>(Response::new(String::new()))
        }
    });
    let connection = http1::Builder::new()
        .half_close(true)
        .serve_connection(TokioIo::new(server), service);
    let talk = async {
        client.write_all(input).await.expect("memory takes it");
        client.shutdown().await.expect("memory closes");
        let mut answer = Vec::new();
        drop(client.read_to_end(&mut answer).await);
    };
    let both = async { tokio::join!(connection, talk) };
    // Virtual: it is over once both wait for each other.
    drop(tokio::time::timeout(Duration::from_secs(5), both).await);
    seen.take()
}

async fn whole(request: Request<Incoming>) -> Option<Seen> {
    let (parts, mut body) = request.into_parts();
    let mut bytes = Vec::new();
    loop {
        let next = std::future::poll_fn(|cx| std::pin::Pin::new(&mut body).poll_frame(cx)).await;
        match next {
            None => break,
            Some(frame) => {
                let data: Option<Bytes> = frame.ok()?.into_data().ok();
                bytes.extend_from_slice(&data.unwrap_or_default());
            }
        }
    }
    let mut fields: Vec<(String, Vec<u8>)> = parts
        .headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
        .collect();
    fields.sort();
    Some(Seen {
        method: parts.method.to_string(),
        target: parts.uri.path_and_query()?.to_string(),
        fields,
        body: bytes,
    })
}

/// A request of plausible parts, mostly damaged in a place or two.
fn request(chance: &mut Chance) -> Vec<u8> {
    let method = chance.of(&[
        "POST", "POST", "GET", "DELETE", "PUT", "HEAD", "post", "PO ST",
    ]);
    let target = chance.of(&[
        "/v1/chat/completions",
        "/v1/models?limit=3",
        "/v1/files/a%20b",
        "/",
        "http://gate.example/v1/models",
        "*",
    ]);
    let version = chance.of(&["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/1.2"]);
    let mut text = format!("{method} {target} {version}\r\nhost: gate.example\r\n");
    for _ in 0..chance.below(5) {
        let line = chance.of(&[
            "accept: */*",
            "X-Workload-App:race",
            "x-empty:",
            "user-agent:  two  blanks\t",
            "x-long: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "connection: keep-alive, x-hop",
            "cookie: a=1; b=\"2\"",
            "content-type: application/json",
            "x_under: score",
            "x-high: \u{e9}\u{e8}",
            "transfer-encoding: identity",
            "content-length: 3",
        ]);
        text += line;
        text += "\r\n";
    }
    let body = chance.of(&["", "{}", "{\"model\":\"m\"}"]);
    match chance.below(4) {
        0 => text += "\r\n",
        1 | 2 => text += &format!("content-length: {}\r\n\r\n{body}", body.len()),
        _ => {
            text += "transfer-encoding: chunked\r\n\r\n";
            if !body.is_empty() {
                text += &format!("{:x}{}\r\n{body}\r\n", body.len(), chance.of(&["", ";x=1"]));
            }
            text += "0\r\n";
            text += chance.of(&["", "x-trailer: t\r\n"]);
            text += "\r\n";
        }
    }
    let mut bytes = text.into_bytes();
    for _ in 0..chance.below(3) {
        damage(&mut bytes, chance);
    }
    bytes
}

fn damage(bytes: &mut Vec<u8>, chance: &mut Chance) {
    const NASTY: &[u8] = b"\r\n\t :;,\0\x01\x7f\x80\xff\"0a1G-_+%/.";
    let at = chance.below(bytes.len().max(1));
    let byte = NASTY[chance.below(NASTY.len())];
    match chance.below(3) {
        0 => bytes.insert(at, byte),
        1 if at < bytes.len() => bytes[at] = byte,
        _ if at < bytes.len() => drop(bytes.remove(at)),
        _ => {}
    }
}

struct Chance(Draw);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0.below(end)
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}
