//! Authorisation services in memory, over HTTP and gRPC, and the bytes of the messages.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use ::http::{HeaderMap, HeaderName, HeaderValue};
use prost::Message;

use super::messages as pb;
use super::*;
use crate::client::{Bounds, Protocol};
use crate::fixture::{Does, Seen, Server, Then, body_then, response, status};

const USUAL: Duration = Duration::from_millis(200);

/// One that is asked over this.
fn asked_over(client: Client, transport: AuthzTransport) -> ExtAuthz {
    let seen = ["Authorization", "x-team", "content-length", "host"];
    ExtAuthz::new(&Handle::here(), client, transport, &seen.map(str::to_owned))
}

fn request() -> AuthzRequest {
    let headers = [
        ("authorization", "Bearer t"),
        ("x-team", "a"),
        ("x-team", "b"),
        ("cookie", "hidden"),
        ("content-length", "7"),
        ("host", "evil.test"),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
    AuthzRequest {
        id: "id-1".to_owned(),
        method: "POST".to_owned(),
        scheme: "https".to_owned(),
        host: "gate.test".to_owned(),
        path: "/v1/chat?x=y".to_owned(),
        protocol: "HTTP/1.1".to_owned(),
        headers: headers.to_vec(),
        source: AuthzPeer {
            address: Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4711)),
            service: String::new(),
            principal: "spiffe://a/b".to_owned(),
        },
    }
}

/// One that is asked over HTTP at this path.
fn http(
    path: &str,
    answering: impl Fn(&Seen) -> Does + Send + Sync + 'static,
) -> (Server, ExtAuthz) {
    let (server, client) = Server::in_memory(Bounds::default(), answering);
    let authz = asked_over(client, AuthzTransport::Http(server.url(path)));
    (server, authz)
}

#[tokio::test(start_paused = true)]
async fn over_http_the_request_is_shown_without_its_body() {
    let (server, authz) = http("/check/", |_| status(200));
    assert!(authz.sees("x-team") && !authz.sees("cookie") && !authz.sees("host"));
    let found = authz.ask(request(), USUAL).await;
    assert_eq!(found, Ok(Authorized::Allowed));
    let seen = &server.seen()[0];
    assert_eq!(
        (&*seen.method, &*seen.target),
        ("POST", "/check/v1/chat?x=y")
    );
    assert_eq!((&*seen.host, seen.text()), ("gate.test", ""));
    assert_eq!(seen.header("authorization"), "Bearer t");
    assert_eq!(seen.header("content-length"), "0");
    let teams: Vec<_> = seen.headers.get_all("x-team").iter().collect();
    assert_eq!(teams, ["a", "b"]);
    assert!(!format!("{:?}", seen.headers).contains("hidden"));
    let get = AuthzRequest {
        method: "GET".to_owned(),
        ..request()
    };
    assert!(authz.ask(get, USUAL).await.is_ok());
    assert_eq!(server.seen()[1].header("content-length"), "0");
    assert_eq!(server.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn over_http_every_other_status_is_a_no() {
    // What it answers, and what the client may be told.
    let table = [
        (401, 401),
        (403, 403),
        (404, 404),
        (429, 429),
        (302, 302),
        (204, 403),
        (201, 403),
    ];
    for (code, told) in table {
        let (server, authz) = http("/", move |_| {
            let body = if code == 204 { "" } else { "sorry" };
            let mut found = response(code, "text/plain", body);
            let location = HeaderValue::from_static("https://login.test/");
            found.headers_mut().insert("location", location);
            Does::Answer(found)
        });
        let found = authz.ask(request(), USUAL).await;
        assert_eq!(found, Ok(Authorized::Denied(told)), "{code}");
        assert_eq!(server.asked(), 1, "a redirect is not followed");
    }
}

#[tokio::test(start_paused = true)]
async fn a_no_stays_one_whatever_comes_with_it() {
    let huge = || "x".repeat(BODY_BYTES_MAX + 1);
    type Answering = Box<dyn Fn() -> Does + Send + Sync>;
    let no = |then| move || Does::Answer(body_then(403, "text/plain", "sorry", then));
    let table: Vec<Answering> = vec![
        Box::new(move || Does::Answer(response(403, "text/plain", huge()))),
        Box::new(move || no(Then::Hang)()),
        Box::new(move || no(Then::Break)()),
        Box::new(|| {
            let mut found = response(403, "text/plain", "");
            let coding = HeaderValue::from_static("gzip");
            found.headers_mut().insert("content-encoding", coding);
            Does::Answer(found)
        }),
    ];
    for answering in table {
        let (_server, authz) = http("/", move |_| answering());
        let found = authz.ask(request(), USUAL).await;
        assert_eq!(found, Ok(Authorized::FORBIDDEN));
    }
}

#[tokio::test(start_paused = true)]
async fn a_yes_that_is_not_whole_is_no_answer() {
    type Answering = Box<dyn Fn() -> Does + Send + Sync>;
    let yes = |then| move || Does::Answer(body_then(200, "text/plain", "yes", then));
    let table: Vec<Answering> = vec![
        Box::new(move || Does::Answer(response(200, "text/plain", "x".repeat(BODY_BYTES_MAX + 1)))),
        Box::new(move || yes(Then::Hang)()),
        Box::new(move || yes(Then::Break)()),
        Box::new(|| {
            let mut found = response(200, "text/plain", "yes");
            let coding = HeaderValue::from_static("gzip");
            found.headers_mut().insert("content-encoding", coding);
            Does::Answer(found)
        }),
    ];
    for (case, answering) in table.into_iter().enumerate() {
        let (_server, authz) = http("/", move |_| answering());
        let fault = authz.ask(request(), USUAL).await.expect_err("no answer");
        assert!(fault.to_string().contains("its yes"), "{case}: {fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_asked_because_of_the_request_is_a_no() {
    let (server, authz) = http("/", |_| status(200));
    type Change = fn(&mut AuthzRequest);
    let table: [Change; 7] = [
        |request| "CONNECT".clone_into(&mut request.method),
        |request| "G T".clone_into(&mut request.method),
        |request| "*".clone_into(&mut request.path),
        |request| "/a b".clone_into(&mut request.path),
        |request| "/../admin".clone_into(&mut request.path),
        |request| "a\r\nb".clone_into(&mut request.host),
        |request| request.headers[0].1 = b"x\r\ny: z".to_vec(),
    ];
    for change in table {
        let mut request = request();
        change(&mut request);
        let found = authz.ask(request, USUAL).await;
        assert_eq!(found, Ok(Authorized::FORBIDDEN));
    }
    assert_eq!(server.asked(), 0);
}

#[tokio::test(start_paused = true)]
async fn no_answer_is_neither() {
    type Answering = fn() -> Does;
    let table: [(&str, Answering); 4] = [
        ("answered 500", || status(500)),
        ("answered 503", || status(503)),
        ("broke off", || Does::Close),
        ("within 200ms", || Does::Hang),
    ];
    for (why, answering) in table {
        let (_server, authz) = http("/", move |_| answering());
        let fault = authz.ask(request(), USUAL).await.expect_err(why);
        assert!(fault.to_string().contains(why), "{fault}");
    }
}

fn framed(message: &[u8]) -> Vec<u8> {
    wire::grpc::framed(message).expect("short")
}

fn grpc_body(body: Vec<u8>, code: &'static str) -> Does {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static(code));
    Does::Answer(body_then(
        200,
        "application/grpc",
        body,
        Then::Trailers(trailers),
    ))
}

fn answered(response: &pb::CheckResponse) -> Does {
    grpc_body(framed(&response.encode_to_vec()), "0")
}

fn grpc(answering: impl Fn(&Seen) -> Does + Send + Sync + 'static) -> (Server, ExtAuthz) {
    let bounds = Bounds {
        protocol: Protocol::Http2,
        ..Bounds::default()
    };
    let (server, client) = Server::in_memory(bounds, answering);
    let authz = asked_over(client, AuthzTransport::Grpc(server.url("/ignored")));
    (server, authz)
}

/// With these codes in a status, the statuses of noes, and so many yeses.
fn response_of(codes: &[i64], denied: &[i64], yeses: usize) -> pb::CheckResponse {
    let status = |code: &i64| pb::Status { code: vec![*code] };
    let no = |code: &i64| pb::DeniedHttpResponse {
        status: vec![pb::HttpStatus { code: vec![*code] }],
    };
    pb::CheckResponse {
        status: codes.iter().map(status).collect(),
        denied_response: denied.iter().map(no).collect(),
        ok_response: vec![pb::OkHttpResponse::default(); yeses],
    }
}

#[tokio::test(start_paused = true)]
async fn over_grpc_the_request_is_described() {
    let (server, authz) = grpc(|_| answered(&response_of(&[0], &[], 1)));
    assert_eq!(authz.ask(request(), USUAL).await, Ok(Authorized::Allowed));
    let seen = &server.seen()[0];
    assert_eq!(
        (&*seen.method, &*seen.target),
        ("POST", "/envoy.service.auth.v3.Authorization/Check")
    );
    assert_eq!(
        (seen.header("content-type"), seen.header("te")),
        ("application/grpc", "trailers")
    );
    assert_eq!(seen.header("grpc-timeout"), "200m");
    let check = pb::CheckRequest::decode(&seen.body[5..]).expect("a message");
    let attributes = check.attributes.expect("attributes");
    let source = attributes.source.expect("a source");
    assert_eq!(source.principal, "spiffe://a/b");
    let address = source
        .address
        .and_then(|address| address.socket_address)
        .expect("an address");
    assert_eq!(
        (&*address.address, address.port_value),
        ("127.0.0.1", Some(4711))
    );
    let http = attributes
        .request
        .and_then(|request| request.http)
        .expect("a request");
    let shown = [("authorization", "Bearer t"), ("x-team", "a,b")];
    let shown = shown.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(http.headers, BTreeMap::from(shown));
    assert_eq!(
        (&*http.method, &*http.path, &*http.host),
        ("POST", "/v1/chat?x=y", "gate.test")
    );
    assert_eq!(
        (&*http.scheme, &*http.protocol, http.size),
        ("https", "HTTP/1.1", -1)
    );
}

/// Bytes as another encoder writes them: field 1 of a `CheckRequest`, then 4, 2, 2 of what is in it.
#[test]
fn messages_have_the_numbers_of_the_protocol() {
    let http = pb::HttpRequest {
        method: "GET".to_owned(),
        size: 3,
        ..pb::HttpRequest::default()
    };
    let check = pb::CheckRequest {
        attributes: Some(pb::AttributeContext {
            request: Some(pb::Request {
                time: None,
                http: Some(http),
            }),
            ..pb::AttributeContext::default()
        }),
    };
    let expected = b"\x0a\x0b\x22\x09\x12\x07\x12\x03GET\x48\x03";
    assert_eq!(check.encode_to_vec(), expected);
    // status { code: 7 }, denied_response { status { code: 401 }, headers { header { key: "a", raw_value: "b" } },
    // body: "x" }, and a field of dynamic_metadata: what the gate does not read is skipped.
    let bytes = b"\x0a\x02\x08\x07\x12\x12\x0a\x03\x08\x91\x03\x12\x08\x0a\x06\x0a\x01a\x1a\x01b\x1a\x01x\x22\x00";
    let read = pb::CheckResponse::decode(&bytes[..]).expect("a message");
    assert_eq!(read, response_of(&[7], &[401], 0));
}

#[tokio::test(start_paused = true)]
async fn over_grpc_what_is_a_yes_and_what_a_no() {
    // The answer, and the status of a no, 200 for a yes, 0 for neither.
    let table = [
        (response_of(&[0], &[], 0), 200),
        (response_of(&[0], &[], 1), 200),
        (response_of(&[], &[], 1), 200),
        (response_of(&[7], &[], 0), 403),
        (response_of(&[7], &[], 1), 403),
        (response_of(&[16], &[401], 0), 401),
        (response_of(&[0], &[401], 0), 401),
        (response_of(&[], &[302], 0), 302),
        (response_of(&[7], &[200], 0), 403),
        (response_of(&[7], &[0], 0), 403),
        (response_of(&[7], &[-1], 0), 403),
        (response_of(&[7], &[599], 0), 403),
        (response_of(&[], &[], 0), 0),
        // What stands twice.
        (response_of(&[0, 7], &[], 1), 0),
        (response_of(&[7, 0], &[], 1), 0),
        (response_of(&[0, 0], &[], 0), 0),
        (response_of(&[0], &[], 2), 0),
        (response_of(&[0], &[401], 1), 401),
        (response_of(&[0], &[401, 404], 1), 403),
        (
            pb::CheckResponse {
                status: vec![pb::Status { code: vec![7, 0] }],
                ..response_of(&[], &[], 1)
            },
            0,
        ),
    ];
    for (answer, expected) in table {
        let sent = answer.clone();
        let (_server, authz) = grpc(move |_| answered(&sent));
        let found = match authz.ask(request(), USUAL).await {
            Ok(Authorized::Allowed) => 200,
            Ok(Authorized::Denied(status)) => status,
            Err(_) => 0,
        };
        assert_eq!(found, expected, "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn over_grpc_no_answer_is_neither() {
    let yes = || response_of(&[0], &[], 0).encode_to_vec();
    type Answering = Box<dyn Fn() -> Does + Send + Sync>;
    let twice = |head: &'static [&str], end: &'static [&str]| -> Answering {
        let codes = |all: &[&'static str]| {
            let all = all.iter().map(|code| HeaderValue::from_static(code));
            all.map(|code| (HeaderName::from_static("grpc-status"), code))
                .collect::<HeaderMap>()
        };
        Box::new(move || {
            let then = Then::Trailers(codes(end));
            let mut found = body_then(200, "application/grpc", framed(&yes()), then);
            found.headers_mut().extend(codes(head));
            Does::Answer(found)
        })
    };
    let table: Vec<(&str, Answering)> = vec![
        ("gRPC status 14", Box::new(|| grpc_body(Vec::new(), "14"))),
        (
            "gRPC status 7",
            Box::new(move || grpc_body(framed(&yes()), "7")),
        ),
        (
            "no grpc-status",
            Box::new(move || Does::Answer(response(200, "application/grpc", framed(&yes())))),
        ),
        (
            "not gRPC",
            Box::new(move || Does::Answer(response(200, "application/json", framed(&yes())))),
        ),
        ("answered 503", Box::new(|| status(503))),
        ("no message", Box::new(|| grpc_body(Vec::new(), "0"))),
        (
            "not one message",
            Box::new(move || grpc_body([framed(&yes()), framed(&yes())].concat(), "0")),
        ),
        (
            "compressed",
            Box::new(move || {
                let mut body = framed(&yes());
                body[0] = 1;
                grpc_body(body, "0")
            }),
        ),
        (
            "not a CheckResponse",
            Box::new(|| grpc_body(framed(b"\x0a\xff"), "0")),
        ),
        ("grpc-status stands twice", twice(&[], &["0", "7"])),
        ("grpc-status stands twice", twice(&[], &["7", "0"])),
        ("grpc-status stands twice", twice(&["0"], &["7"])),
        ("grpc-status stands twice", twice(&["0", "0"], &[])),
        ("within 200ms", Box::new(|| Does::Hang)),
    ];
    for (why, answering) in table {
        let (_server, authz) = grpc(move |_| answering());
        let fault = authz
            .ask(request(), USUAL)
            .await
            .expect_err(why)
            .to_string();
        assert!(fault.contains(why), "{why}: {fault}");
    }
}
