//! Lists of sources, a gate with one of them, and what its clients can bring.
//!
//! Not here: attempts (`attempt`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::super::issuer::{jwks, now};
use super::credential::{Credential, OTHER_ISSUER, credentials};
use crate::harness::answer::{COMPLETION, json as answer};
use crate::harness::tls::{Authority, Leaf};
use crate::harness::{Gate, Seen, Step, Upstream};

/// A source of identities, as the document lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Keys,
    /// Tokens of one issuer.
    Jwt,
    /// Tokens of another.
    OtherJwt,
    Introspection,
    Certificates,
    /// A header, believed of everybody here.
    Header,
    /// The same, and who brings nothing is the workload `chat`; last in its list.
    HeaderOrChat,
    /// A header, believed of nobody here.
    DistantHeader,
    /// A header, believed of whoever has a certificate.
    HeaderOfProxy,
}

use Source::{
    Certificates, DistantHeader, Header, HeaderOfProxy, HeaderOrChat, Introspection, Jwt, Keys,
    OtherJwt,
};

/// Lists of a cleartext listener, each in both orders.
pub(super) const CLEARTEXT: &[&[Source]] = &[
    &[Keys],
    &[Jwt],
    &[Introspection],
    &[Header],
    &[Keys, Jwt, DistantHeader],
    &[DistantHeader, Jwt, Keys],
    &[Keys, Introspection],
    &[Introspection, Keys],
    &[Jwt, Introspection],
    &[Introspection, Jwt],
    &[Keys, Header],
    &[Header, Keys],
    &[Header, Jwt, Introspection],
    &[Introspection, Jwt, Header],
    &[Jwt, OtherJwt, Keys],
    &[OtherJwt, Keys, Jwt],
    &[Keys, Jwt, OtherJwt, Introspection, Header],
    &[Header, Introspection, OtherJwt, Jwt, Keys],
    &[HeaderOrChat],
    &[Jwt, Keys, HeaderOrChat],
    &[Keys, Introspection, HeaderOrChat],
];

/// Lists of a listener that asks for certificates.
pub(super) const OVER_TLS: &[&[Source]] = &[
    &[Certificates],
    &[Certificates, Keys],
    &[Keys, Certificates],
    &[Certificates, Jwt, Introspection],
    &[Introspection, Jwt, Certificates],
    &[HeaderOfProxy, Certificates, Keys],
    &[Keys, Certificates, HeaderOfProxy],
    &[Certificates, Keys, Jwt, Introspection, HeaderOfProxy],
    &[HeaderOfProxy, Introspection, Jwt, Keys, Certificates],
    &[Certificates, Jwt, HeaderOrChat],
    &[Keys, Certificates, HeaderOrChat],
];

impl Source {
    pub(super) fn is_header(self) -> bool {
        matches!(
            self,
            Self::Header | Self::HeaderOrChat | Self::DistantHeader | Self::HeaderOfProxy
        )
    }

    fn written(self, introspection: &Upstream) -> String {
        let issuer = |name: &str| {
            format!(
                "{{ jwt: {{ issuer: \"{name}\", audience: gate, jwks: {{ file: jwks.json }}, workload_claim: azp }} }}"
            )
        };
        let header = |from: &str| format!("{{ header: x-workload-app, {from} }}");
        match self {
            Self::Keys => "{ keys: { file: keys.jsonl } }".to_owned(),
            Self::Jwt => issuer("https://issuer.test/"),
            Self::OtherJwt => issuer(OTHER_ISSUER),
            Self::Introspection => format!(
                "{{ introspection: {{ url: http://{}/, cache: 1m, workload_claim: client_id }} }}",
                introspection.address
            ),
            Self::Certificates => {
                "{ certificates: { \"spiffe://mesh/chat\": chat, \"spiffe://mesh/ci/*\": ci } }"
                    .to_owned()
            }
            Self::Header => header("from: 127.0.0.0/8"),
            Self::HeaderOrChat => header("from: 127.0.0.0/8, default: chat"),
            Self::DistantHeader => header("from: 192.0.2.0/24"),
            Self::HeaderOfProxy => header("from_certificates: proxy.mesh"),
        }
    }
}

/// Who a client is by its certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    /// It has none.
    Nobody,
    Chat,
    Ci,
    /// It has one that names no workload.
    Unknown,
    /// It has one with two SPIFFE IDs, which names nobody.
    Ambiguous,
    /// It may say in a header who calls.
    Proxy,
}

impl Peer {
    pub(super) const ALL: &[Self] = &[
        Self::Nobody,
        Self::Chat,
        Self::Ci,
        Self::Unknown,
        Self::Ambiguous,
        Self::Proxy,
    ];

    pub(super) fn workload(self) -> Option<&'static str> {
        match self {
            Self::Chat => Some("chat"),
            Self::Ci => Some("ci"),
            Self::Nobody | Self::Unknown | Self::Ambiguous | Self::Proxy => None,
        }
    }

    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Nobody => &[],
            Self::Chat => &["spiffe://mesh/chat"],
            Self::Ci => &["spiffe://mesh/ci/nightly"],
            Self::Unknown => &["spiffe://mesh/chat/more"],
            Self::Ambiguous => &["spiffe://mesh/chat", "spiffe://mesh/ci/nightly"],
            Self::Proxy => &["proxy.mesh"],
        }
    }
}

/// What all gates of a run have in common.
pub(super) struct World {
    pub(super) credentials: Vec<Credential>,
    key_file: String,
    upstream: Upstream,
    calls: Arc<AtomicUsize>,
    introspection: Upstream,
    pub(super) public: Authority,
    mesh: Authority,
    server: Leaf,
    leaves: Vec<(Peer, Leaf)>,
}

impl World {
    pub(super) fn new() -> Self {
        let (credentials, key_file) = credentials();
        let active = credentials
            .iter()
            .filter_map(|c| Some((format!("token={}", c.text), c.introspected?)));
        let active: Vec<_> = active.collect();
        let introspection = Upstream::start(move |_, seen| {
            let body = String::from_utf8_lossy(&seen.body);
            let is_asked = |token: &str| body.split('&').any(|member| member == token);
            let found = active.iter().find(|(token, _)| is_asked(token));
            let said = match found {
                Some((_, workload)) => {
                    json!({ "active": true, "client_id": workload, "exp": now() + 3600 })
                }
                None => json!({ "active": false }),
            };
            vec![Step::Send(answer(200, &said.to_string()))]
        });
        let calls = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&calls);
        let upstream = Upstream::start(move |_, seen| {
            count.fetch_add(1, Ordering::SeqCst);
            vec![Step::Send(judged(seen))]
        });
        let (public, mesh) = (Authority::named("public"), Authority::named("mesh"));
        let with_certificate = Peer::ALL.iter().filter(|peer| **peer != Peer::Nobody);
        let leaves = with_certificate.map(|peer| (*peer, mesh.client_leaf(peer.names())));
        Self {
            leaves: leaves.collect(),
            server: public.leaf("gate.test"),
            credentials,
            key_file,
            upstream,
            calls,
            introspection,
            public,
            mesh,
        }
    }

    /// Calls that went upstream.
    pub(super) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// What this client has to show.
    pub(super) fn leaf(&self, peer: Peer) -> Option<&Leaf> {
        let mut leaves = self.leaves.iter();
        leaves.find_map(|(of, leaf)| (*of == peer).then_some(leaf))
    }
}

/// What the upstream answers: whose credential it got; 418 where anything of the client's came along.
fn judged(seen: &Seen) -> Vec<u8> {
    let given = [
        "x-api-key",
        "api-key",
        "x-goog-api-key",
        "proxy-authorization",
        "x-authorization",
        "x_api_key",
        "x-auth-token",
        "cookie",
        "x-workload-app",
        "x-workload_app",
        "trailer",
    ];
    let is_clean = given.iter().all(|name| seen.header(name).is_empty());
    let line = seen.head.split("\r\n").next().unwrap_or_default();
    let is_call = line
        .strip_prefix("POST /v1/chat/completions")
        .is_some_and(|rest| rest == " HTTP/1.1" || rest == "?beta=true HTTP/1.1");
    let authorization = seen.header("authorization");
    let workload = match &authorization[..] {
        [one] => one.strip_prefix("Bearer gate-"),
        _ => None,
    };
    match workload.filter(|_| is_clean && is_call) {
        Some(workload) => {
            let id = format!(r#""id":"{workload}""#);
            answer(200, &COMPLETION.replacen(r#""id":"c""#, &id, 1))
        }
        None => answer(418, &json!({ "saw": seen.head }).to_string()),
    }
}

/// A gate with one list of sources.
pub(super) struct Scene<'w> {
    pub(super) gate: Gate,
    pub(super) world: &'w World,
    pub(super) list: &'w [Source],
    pub(super) is_tls: bool,
}

impl<'w> Scene<'w> {
    pub(super) fn start(world: &'w World, list: &'w [Source]) -> Self {
        Self::start_with(world, list, list)
    }

    /// One whose sources are not those that what comes of attempts is judged by.
    pub(super) fn start_with(world: &'w World, written: &[Source], list: &'w [Source]) -> Self {
        let is_tls = OVER_TLS.contains(&list);
        let sources: Vec<_> = written
            .iter()
            .map(|source| source.written(&world.introspection))
            .collect();
        let backend = |workload: &str| {
            format!(
                "{workload}: {{ url: http://{}/v1, credential: {{ inline: gate-{workload} }} }}",
                world.upstream.address
            )
        };
        let config = format!(
            "workers: 1\nidentity: [ {} ]\nbackends: {{ {}, {} }}\n\
             routes: [ {{ workload: chat, backend: chat }}, {{ workload: ci, backend: ci }} ]\n",
            sources.join(", "),
            backend("chat"),
            backend("ci"),
        );
        let set = jwks(&["rsa", "p256"]);
        let files: [(&str, &[u8]); 5] = [
            ("keys.jsonl", world.key_file.as_bytes()),
            ("jwks.json", set.as_bytes()),
            ("cert.pem", world.server.certificate.as_bytes()),
            ("key.pem", world.server.key.as_bytes()),
            ("clients.pem", world.mesh.certificate.as_bytes()),
        ];
        let tls = ", hosts: \"*\", tls: { certificate: cert.pem, key: key.pem, client_ca: clients.pem, \
                   client_certificates: optional }";
        let listen = if is_tls { tls } else { ", hosts: \"*\"" };
        Self {
            gate: Gate::start_with_private_listening(listen, &config, &files),
            world,
            list,
            is_tls,
        }
    }
}
