//! Which credential an attempt takes upstream: minted for it, made of the caller's own token, or a signature.
//!
//! Not here: who makes them (`tollgate::credential`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use policy::caller::{Caller, Later, Proven};
use policy::credential::{Credential, Minter, Signable, Signer, UpstreamAuth};
use policy::identity::{Proof, Source, Unproven, Verifier};
use policy::secret::Secret;
use policy::snapshot::AddedMember;
use tokio::time::sleep;

use super::{BUSY, CHAT, call, json, two_backends};

/// Makes a credential each time, after a while.
#[derive(Debug)]
struct Mints(AtomicU64);

impl Minter for Mints {
    fn account(&self) -> &str {
        "test"
    }

    fn ready(&self, caller: Option<&Secret>) -> Option<Arc<Credential>> {
        assert!(caller.is_none(), "it asks for no caller's token");
        None
    }

    fn refused(&self, _: u16, _: Option<&Secret>) {}

    fn mint(&self, _: Option<&Secret>) -> Later<Option<Arc<Credential>>> {
        let count = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        Box::pin(async move {
            sleep(Duration::from_millis(1)).await;
            Some(Arc::new(Credential::Header {
                name: "authorization".to_owned(),
                value: Secret::new(format!("Bearer {count}").into_bytes()),
            }))
        })
    }
}

#[test]
fn each_attempt_has_a_credential_minted_for_it() {
    let mut s = two_backends();
    let minter: Arc<dyn Minter> = Arc::new(Mints(AtomicU64::new(0)));
    for endpoint in &mut s.endpoints {
        endpoint.auth = UpstreamAuth::Minted(Arc::clone(&minter));
    }
    let responses = vec![json(503, BUSY), json(200, CHAT)];
    let seen = call(s, r#"{"model":"m"}"#, responses);
    assert_eq!((seen.record.status, seen.record.attempts), (200, 2));
    let credentials: Vec<_> = seen
        .arrived
        .iter()
        .map(|arrived| {
            let mut lines = arrived.text.lines();
            lines
                .find_map(|line| line.strip_prefix("authorization: "))
                .unwrap_or("none")
        })
        .collect();
    assert_eq!(credentials, ["Bearer 1", "Bearer 2"]);
}

/// Signs with what it sees of a request.
#[derive(Debug)]
struct Shows;

impl Signer for Shows {
    fn covers(&self, name: &[u8]) -> bool {
        name == b"content-type"
    }

    fn sign(&self, request: &Signable<'_>, unix_s: u64) -> Vec<(&'static str, Secret)> {
        let Signable {
            method,
            authority,
            path,
            query,
            headers,
            body,
        } = request;
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| [name.as_slice(), value].concat())
            .collect();
        let text = String::from_utf8([headers.concat(), body.concat()].concat()).expect("text");
        let seen = format!("{method} {authority} {path} {query} {text}");
        let is_now = unix_s > 0;
        vec![
            ("x-seen", Secret::new(seen.into_bytes())),
            ("x-now", Secret::new(is_now.to_string().into_bytes())),
        ]
    }
}

/// Gives the caller's token back, or a signer, and counts refusals.
#[derive(Debug)]
struct Gives {
    for_caller: bool,
    refusals: AtomicU64,
}

impl Minter for Gives {
    fn account(&self) -> &str {
        "test"
    }

    fn is_for_caller(&self) -> bool {
        self.for_caller
    }

    fn ready(&self, caller: Option<&Secret>) -> Option<Arc<Credential>> {
        if !self.for_caller {
            assert!(caller.is_none(), "it asks for no caller's token");
            return Some(Arc::new(Credential::Signer(Box::new(Shows))));
        }
        let token = caller?.expose().to_ascii_uppercase();
        Some(Arc::new(Credential::Header {
            name: "authorization".to_owned(),
            value: Secret::new([b"Bearer ".as_slice(), &token].concat()),
        }))
    }

    fn mint(&self, _: Option<&Secret>) -> Later<Option<Arc<Credential>>> {
        Box::pin(std::future::ready(None))
    }

    fn refused(&self, status: u16, caller: Option<&Secret>) {
        assert_eq!(status, 401);
        assert_eq!(caller.is_some(), self.for_caller);
        self.refusals.fetch_add(1, Ordering::Relaxed);
    }
}

fn gives(for_caller: bool) -> Arc<Gives> {
    Arc::new(Gives {
        for_caller,
        refusals: AtomicU64::new(0),
    })
}

fn line<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[test]
fn a_signer_sees_each_attempt_as_it_leaves() {
    let mut s = two_backends();
    let minter = gives(false);
    for endpoint in &mut s.endpoints {
        endpoint.auth = UpstreamAuth::Minted(Arc::clone(&minter) as _);
    }
    s.backends[1].model_names.insert("m".into(), "other".into());
    s.backends[1].query = vec![AddedMember {
        name: "a".into(),
        value: "b".into(),
    }];
    let responses = vec![json(503, BUSY), json(200, CHAT)];
    let seen = call(s, r#"{"model":"m"}"#, responses);
    assert_eq!((seen.record.status, seen.record.attempts), (200, 2));
    let expected = [(r#"{"model":"m"}"#, ""), (r#"{"model":"other"}"#, "a=b")];
    for (arrived, (body, query)) in seen.arrived.iter().zip(expected) {
        let text = &arrived.text;
        let host = line(text, "host").expect("a host");
        let signed =
            format!("POST {host} /v1/chat/completions {query} content-typeapplication/json{body}");
        assert!(text.ends_with(body), "{text}");
        assert_eq!(line(text, "x-seen"), Some(&*signed));
        assert_eq!(line(text, "x-now"), Some("true"));
    }
    assert_eq!(minter.refusals.load(Ordering::Relaxed), 0);
}

/// The caller of `client-key`, proven so.
#[derive(Debug)]
struct ProvenBy(Proven);

impl Verifier for ProvenBy {
    fn takes(&self, _: &[u8]) -> bool {
        true
    }

    fn keeps_proofs(&self) -> bool {
        false
    }

    fn fingerprint(&self, _: &[u8]) -> [u8; 32] {
        [0; 32]
    }

    fn verify(&self, _: &[u8], _: u64) -> Result<Proof, Unproven> {
        Ok(Proof {
            caller: Arc::new(Caller {
                workload: "app".into(),
                by: self.0,
                ..Caller::default()
            }),
            until_unix_s: u64::MAX,
        })
    }
}

#[test]
fn a_callers_own_token_is_given_for_a_credential_where_it_was_proven() {
    let asked = |by, exchanges| {
        let (mut s, minter) = (two_backends(), gives(true));
        s.identity.sources = vec![Source::Credential(Arc::new(ProvenBy(by)))];
        s.endpoints[0].auth = UpstreamAuth::Minted(Arc::clone(&minter) as _);
        s.backends[0].exchanges_tokens = exchanges;
        let seen = call(s, r#"{"model":"m"}"#, vec![json(200, CHAT)]);
        assert_eq!(seen.record.status, 200, "{}", seen.response);
        let given = line(&seen.arrived[0].text, "authorization").map(str::to_owned);
        (given, seen.record.attempts)
    };
    let given = (Some("Bearer CLIENT-KEY".to_owned()), 1);
    assert_eq!(asked(Proven::Token, true), given);
    assert_eq!(asked(Proven::Introspection, true), given);
    // Without one the next backend is tried, which has no credential.
    for (by, exchanges) in [(Proven::Key, true), (Proven::Token, false)] {
        assert_eq!(asked(by, exchanges), (None, 2), "{by:?}");
    }
}

#[test]
fn whoever_makes_a_credential_is_told_that_it_was_refused() {
    let (mut s, minter) = (two_backends(), gives(true));
    s.identity.sources = vec![Source::Credential(Arc::new(ProvenBy(Proven::Token)))];
    s.endpoints[0].auth = UpstreamAuth::Minted(Arc::clone(&minter) as _);
    s.backends[0].exchanges_tokens = true;
    let refusals = vec![json(401, "{}"), json(403, "{}")];
    let seen = call(s, r#"{"model":"m"}"#, refusals);
    assert_eq!(seen.record.code, "upstream_credential_refused");
    assert_eq!(minter.refusals.load(Ordering::Relaxed), 1);
}
