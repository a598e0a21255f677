//! What must hold for any request that policy lets go upstream.
//!
//! Who calls is registered, what is called is under `/v1/`; of its fields none goes upstream that holds a credential,
//! an identity, or a word about the connection.
//! Not here: reading heads (`http1_request`).

use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::OnceLock;

use config::{Sources, parse_document};
use policy::clock::Mono;
use policy::exchange::AttemptRequest;
use policy::exchange::{Env, Exchange, Verdict};
use policy::revision::Revision;
use policy::shard::Shard;
use wire::call::CallHead;
use wire::head::{Known, RequestHead};
use wire::http1::{Framing, Limits, Step, parse_request, request_framing};

struct Nothing;

impl Sources for Nothing {
    fn read(&self, _: &Path, _: usize) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn var(&self, _: &str) -> Option<String> {
        None
    }
}

fn revision() -> &'static Revision {
    static REVISION: OnceLock<Revision> = OnceLock::new();
    REVISION.get_or_init(|| {
        let document = "backends: { up: { url: http://127.0.0.1:1/v1 } }\nroutes: [ { workload: w, backend: up } ]\n";
        let path = Path::new("tollgate.yaml");
        let loaded = parse_document(path, document.as_bytes(), &Nothing);
        Revision::first(loaded.expect("it is good").snapshot)
    })
}

/// Panics when an invariant is broken.
pub(crate) fn fuzz_one(input: &[u8]) {
    let mut head = RequestHead::new();
    let Ok(Step::Done { .. }) = parse_request(input, &Limits::default(), &mut head) else {
        return;
    };
    let Ok(framing) = request_framing(&head) else {
        return;
    };
    let length = match framing.framing {
        Framing::Length(length) => Some(length),
        Framing::None | Framing::Chunked | Framing::UntilClose => None,
    };
    let Revision { snapshot, levels } = revision();
    let mut shard = Shard::new(snapshot, None, 1);
    let env = &mut Env {
        snapshot,
        levels,
        shard: &mut shard,
        now: Mono(1),
    };
    let peer = Ipv4Addr::LOCALHOST.into();
    let mut exchange = Exchange::begin(&head, peer, 0, env);
    let begun = exchange.read_head(&head, &peer.into(), length, false, env);
    let Verdict::Read { .. } = begun else {
        return;
    };
    let workload = exchange.record().workload.expect("read for somebody");
    assert!(snapshot.workload(workload).is_some());
    assert!(head.path().starts_with("/v1/"), "{}", head.path());
    assert!(!head.path().contains("//") && !head.path().contains("/../"));
    assert_eq!(head.fields.by_name(b"x-workload-app").count(), 1);
    let operation = exchange.record().operation.expect("read for something");
    let call = operation
        .reads_body()
        .then(|| CallHead::read(b"{\"model\":\"m\"}"));
    let mut call = call.map(|call| call.expect("a call"));
    let asked = exchange.end_body(&head, call.as_mut(), &[], env);
    let Verdict::Ask(_) = asked else {
        return;
    };
    let Verdict::Attempt(plan) = exchange.entered(env) else {
        panic!("an admitted call does not go");
    };
    let request =
        AttemptRequest::new(&plan, &exchange, &head, snapshot, None).expect("an endpoint");
    request.fields(|name, _| {
        let known = Known::of(name);
        // The first ten belong to one connection (RFC 9110, 7.6.1).
        let is_never_sent = matches!(
            known,
            Known::Connection
                | Known::KeepAlive
                | Known::ProxyConnection
                | Known::ProxyAuthenticate
                | Known::ProxyAuthorization
                | Known::Te
                | Known::Trailer
                | Known::TransferEncoding
                | Known::Upgrade
                | Known::Http2Settings
                | Known::Host
                | Known::ContentLength
                | Known::Authorization
                | Known::XApiKey
                | Known::ApiKey
                | Known::XGoogApiKey
                | Known::Cookie
                | Known::XForwardedFor
                | Known::Forwarded
        );
        assert!(!is_never_sent, "{:?}", String::from_utf8_lossy(name));
        assert_ne!(name, b"x-workload-app");
    });
    request.secrets(|name, _| panic!("a secret of nobody: {name}"));
}
