//! What must hold for any request that policy lets in by its head.
//!
//! Who calls is registered, what is called is under `/v1/`; of its fields none is forwarded that holds a credential,
//! an identity, or a word about the connection.
//! Not here: reading heads (`http1_request`).

use std::io;
use std::path::Path;
use std::sync::OnceLock;

use config::{Sources, parse_document};
use policy::clock::Mono;
use policy::credential;
use policy::snapshot::Snapshot;
use wire::head::{Known, RequestHead};
use wire::http1::{Framing, Limits, Step, parse_request, request_framing};

struct Nothing;

impl Sources for Nothing {
    fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn var(&self, _: &str) -> Option<String> {
        None
    }
}

fn snapshot() -> &'static Snapshot {
    static SNAPSHOT: OnceLock<Snapshot> = OnceLock::new();
    SNAPSHOT.get_or_init(|| {
        let document = "backends: { up: { url: http://127.0.0.1:1/v1 } }\nroutes: [ { workload: w, backend: up } ]\n";
        let path = Path::new("tollgate.yaml");
        let loaded = parse_document(path, document.as_bytes(), &Nothing, None, Mono(1));
        loaded.expect("it is good").snapshot
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
    let Ok(opened) = policy::exchange::open(&head, length, snapshot()) else {
        return;
    };
    assert!(snapshot().workload(opened.workload).is_some());
    assert!(head.path().starts_with("/v1/"), "{}", head.path());
    assert!(!head.path().contains("//") && !head.path().contains("/../"));
    assert_eq!(head.fields.by_name(b"x-workload-app").count(), 1);
    for field in head.fields.iter() {
        if !credential::forwards(&field, &head.fields, b"x-workload-app", &[]) {
            continue;
        }
        let is_ours = field.known.is_hop_by_hop()
            || matches!(
                field.known,
                Known::Host
                    | Known::ContentLength
                    | Known::Authorization
                    | Known::XApiKey
                    | Known::ApiKey
                    | Known::XGoogApiKey
                    | Known::Cookie
                    | Known::XForwardedFor
                    | Known::Forwarded
            );
        assert!(!is_ours, "{:?}", String::from_utf8_lossy(field.name));
        assert_ne!(field.name, b"x-workload-app");
    }
}
