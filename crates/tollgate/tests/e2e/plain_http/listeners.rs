//! Several listeners, and what routes of plain HTTP change: a gate whose listeners come and go while it runs.

use std::net::{SocketAddr, TcpStream};

use testing::eventually;

use super::{engine, get, service};
use crate::harness::{Connection, Gate, Response, Upstream, chat, free_address, post};

/// A document with these listeners; `inside` serves models, and `outside` does not.
fn document(
    listeners: &[(&str, SocketAddr)],
    admin: SocketAddr,
    service: &Upstream,
    mirror: &Upstream,
    engine: &Upstream,
) -> String {
    let one = |(name, data): &(&str, SocketAddr)| {
        let models = *name == "inside";
        format!("{{ name: {name}, data: \"{data}\", models: {models} }}")
    };
    let listeners: Vec<String> = listeners.iter().map(one).collect();
    let outside = match listeners.len() {
        1 => "inside",
        _ => "outside",
    };
    format!(
        "listen: {{ admin: \"{admin}\", hosts: \"*\", listeners: [ {} ] }}\naccess_log: access.jsonl\n\
         backends:\n  engine: {{ url: http://{}/v1 }}\n  web: {{ serves: http, url: http://{} }}\n  \
         copies: {{ serves: http, url: http://{} }}\n\
         routes:\n  - {{ workload: w, backend: engine }}\n  \
         - name: store\n    workload: w\n    match: {{ path: /store/*, listener: {outside}, query: {{ kind: a b }} }}\n    \
         backend: web\n    rewrite: {{ prefix: /in }}\n    upstream_host: client\n    \
         request_headers: {{ set: {{ x-site: www }}, remove: [x-debug, x-internal-token, cookie] }}\n    \
         response_headers: {{ add: {{ x-by: gate }} }}\n    mirrors: [ {{ backend: copies }} ]\n  \
         - {{ name: old, workload: w, match: {{ path: /old/* }}, backend: web, redirect: {{ prefix: /new, status: 301 }} }}\n",
        listeners.join(", "),
        engine.address,
        service.address,
        mirror.address
    )
}

fn at(address: SocketAddr, request: &[u8]) -> Response {
    Connection::open(address).call(request)
}

#[test]
fn listeners_come_and_go_and_each_has_its_own_routes() {
    let (web, copies, engine) = (service(), service(), engine());
    let first = format!(
        "backends: {{ engine: {{ url: \"http://{}/v1\" }} }}\nroutes: [ {{ workload: w, backend: engine }} ]\n",
        engine.address
    );
    let gate = Gate::start(&first, &[]);
    let outside = free_address();
    let both = [("inside", gate.data), ("outside", outside)];
    let two = document(&both, gate.admin, &web, &copies, &engine);
    gate.replace("tollgate.yaml", two.as_bytes());
    eventually("the second listener is open", || {
        TcpStream::connect(outside).is_ok()
    });
    let call = post(
        "/v1/chat/completions",
        &["x-workload-app: w"],
        &chat("m", false),
    );
    eventually("the first one serves models", || {
        at(gate.data, &call).status == 200
    });
    let refused = at(outside, &call);
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (404, "route_not_found")
    );
    // What is of one listener is not there at another.
    let fields = [
        "x-debug: 1",
        "x-site: mine",
        "origin: https://page.example",
        "x-internal-token: forged",
        "cookie: a=b",
    ];
    let target = "/store/7?kind=a%20b";
    assert_eq!(
        at(gate.data, &get(target, &fields)).code(),
        "route_not_found"
    );
    assert_eq!(
        at(outside, &get("/store/7", &fields)).code(),
        "route_not_found"
    );
    let answer = at(outside, &get(target, &fields));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("x-by"), Some("gate"));
    let seen = web.seen().pop().expect("it arrived");
    assert!(
        seen.head.starts_with("GET /in/7?kind=a%20b HTTP/1.1\r\n"),
        "{}",
        seen.head
    );
    assert_eq!(seen.header("x-site"), ["www"]);
    assert_eq!(seen.header("host"), ["g"]);
    for removed in ["x-debug", "x-internal-token", "cookie"] {
        assert!(seen.header(removed).is_empty(), "{removed}");
    }
    eventually("the copy arrives", || copies.count() == 1);
    let copy = copies.seen().pop().expect("it arrived");
    assert!(
        copy.head.starts_with("GET /in/7?kind=a%20b HTTP/1.1\r\n"),
        "{}",
        copy.head
    );
    let moved = at(outside, &get("/old/x?y=z", &[]));
    assert_eq!(moved.status, 301);
    let wanted = format!("http://g:{}/new/x?y=z", outside.port());
    assert_eq!(moved.header("location"), Some(wanted.as_str()));
    // A connection that is open outlives its listener, and finds nothing there any more.
    let mut open = Connection::open(outside);
    assert_eq!(open.call(&get(target, &[])).status, 200);
    let one = document(&both[..1], gate.admin, &web, &copies, &engine);
    gate.replace("tollgate.yaml", one.as_bytes());
    eventually("the second listener is closed", || {
        TcpStream::connect(outside).is_err()
    });
    assert_eq!(open.call(&get(target, &[])).code(), "route_not_found");
    assert_eq!(at(gate.data, &get(target, &[])).status, 200);
}
