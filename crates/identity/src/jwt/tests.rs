//! Tokens of several issuers, whose keys come and go.
//!
//! Not here: attacks on a token itself (`jose`).

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use jose::sign::{SigningKey, SystemRandom};
use jose::{KeySet, Rules};
use policy::caller::Later;
use policy::identity::{Proof, Unproven, Verifier};
use policy::secret::Secret;
use serde_json::{Value, json};

use super::{FixedKeys, Issuer, IssuerKeys, JwtVerifier, dots};
use crate::claims::{Mapping, Workload};

const NOW: u64 = 1_700_000_000;

macro_rules! pem {
    ($name:literal) => {
        include_bytes!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../vectors/jose/keys/",
            $name
        ))
    };
}

fn token(claims: Value, private: &[u8]) -> String {
    let key = SigningKey::from_pem(private, None, &SystemRandom::new()).expect("a key");
    let Value::Object(claims) = claims else {
        panic!("no claims: {claims}");
    };
    let header = [("kid".to_owned(), "p256".into())].into_iter().collect();
    let signed = key.sign(&header, &claims, &SystemRandom::new());
    signed.expect("a token")
}

fn of_issuer(issuer: &str) -> String {
    let claims = json!({ "iss": issuer, "aud": "gate", "sub": "ada", "exp": NOW + 100 });
    token(claims, pem!("p256.pem"))
}

fn issuer(name: &str, keys: Arc<dyn IssuerKeys>) -> Issuer {
    Issuer {
        rules: Arc::new(Rules {
            issuer: name.into(),
            audiences: vec!["gate".into()],
            types: Vec::new(),
            algorithms: Vec::new(),
            leeway_s: 5,
            requires_expiry: true,
        }),
        mapping: Arc::new(Mapping {
            workload: Workload::Fixed("chat".into()),
            user: "sub".to_owned(),
            tags: Vec::new(),
        }),
        keys,
    }
}

/// The key of this id alone.
fn key_set(kid: &str) -> KeySet {
    let text = include_str!("../../../../vectors/jose/others.txt");
    let mut sections = text.split("=== ").filter_map(|s| s.split_once('\n'));
    let (_, all) = sections.find(|(title, _)| *title == "keys").expect("keys");
    let mut all: Value = serde_json::from_str(all).expect("a key set");
    let keys = all["keys"].as_array_mut().expect("keys");
    keys.retain(|key| key["kid"] == kid);
    KeySet::parse(all.to_string().as_bytes()).expect("a key set")
}

fn p256() -> KeySet {
    key_set("p256")
}

fn rsa() -> KeySet {
    key_set("rsa")
}

fn now<T>(later: Later<T>) -> T {
    let mut later = pin!(later);
    match later.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits"),
    }
}

/// Keys that another set takes the place of when they are asked for anew.
#[derive(Debug)]
struct Rotating {
    keys: Mutex<Option<Arc<KeySet>>>,
    next: Mutex<Option<KeySet>>,
    generation: AtomicU64,
    fault: Option<&'static str>,
}

impl Rotating {
    fn new(keys: Option<KeySet>, next: Option<KeySet>) -> Arc<Self> {
        Arc::new(Self {
            keys: Mutex::new(keys.map(Arc::new)),
            next: Mutex::new(next),
            generation: AtomicU64::new(1),
            fault: None,
        })
    }
}

impl IssuerKeys for Rotating {
    fn current(&self) -> Result<Arc<KeySet>, String> {
        let keys = self.keys.lock().expect("a lock").clone();
        keys.ok_or_else(|| "never fetched".to_owned())
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    fn may_refresh(&self) -> bool {
        true
    }

    fn refresh(&self) -> Later<Result<(), String>> {
        let next = self.next.lock().expect("a lock").take();
        if let Some(fault) = self.fault {
            return Box::pin(std::future::ready(Err(fault.to_owned())));
        }
        if let Some(next) = next {
            *self.keys.lock().expect("a lock") = Some(Arc::new(next));
            self.generation.fetch_add(1, Ordering::SeqCst);
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

fn said(result: Result<Proof, Unproven>) -> String {
    match result {
        Ok(proof) => format!("{} until {}", proof.caller.workload, proof.until_unix_s),
        Err(unproven) => format!("{unproven:?}"),
    }
}

#[test]
fn the_issuer_that_a_token_names_decides_and_others_are_elsewhere() {
    let verifier = JwtVerifier::new(
        vec![
            issuer("https://a", Arc::new(FixedKeys::new(p256()))),
            issuer("https://b", Arc::new(FixedKeys::new(rsa()))),
        ],
        || NOW,
    );
    let verify = |token: &str| said(verifier.verify(token.as_bytes(), NOW));
    let good = of_issuer("https://a");
    assert!(verifier.takes(good.as_bytes()));
    assert_eq!(verify(&good), format!("chat until {}", NOW + 105));
    // Signed with the key of another issuer.
    assert!(verify(&of_issuer("https://b")).starts_with("Invalid"));
    assert!(verify(&of_issuer("https://c")).starts_with("Elsewhere"));
    let slash = verify(&of_issuer("https://a/"));
    assert!(slash.starts_with("Elsewhere"), "{slash}");
    for name in [r#"\"https://a/\""#, r#"\"https://a\""#, r#"\"https://b\""#] {
        assert!(slash.contains(name), "{slash}");
    }
    let late = said(verifier.verify(good.as_bytes(), NOW + 105));
    assert!(late.contains("Invalid"), "{late}");
    for other in ["", "tgk_0", "ey", "ey.a", "opaque", "Ey.a.b", "ey.a.b.c.d"] {
        assert!(!verifier.takes(other.as_bytes()), "{other}");
    }
}

#[test]
fn an_issuer_without_keys_is_unavailable_and_never_open() {
    let keys = Rotating::new(None, None);
    let verifier = JwtVerifier::new(vec![issuer("https://a", keys)], || NOW);
    let token = of_issuer("https://a");
    assert_eq!(
        said(verifier.verify(token.as_bytes(), NOW)),
        r#"Unavailable("never fetched")"#
    );
}

#[test]
fn a_key_that_is_not_known_is_asked_for_once_and_changes_the_generation() {
    let keys = Rotating::new(Some(rsa()), Some(p256()));
    let verifier = JwtVerifier::new(vec![issuer("https://a", Arc::clone(&keys) as _)], || NOW);
    let token = of_issuer("https://a");
    let before = verifier.generation();
    assert_eq!(said(verifier.verify(token.as_bytes(), NOW)), "Ask");
    let asked = verifier.ask(Secret::new(token.clone().into_bytes()));
    assert_eq!(said(now(asked)), format!("chat until {}", NOW + 105));
    assert_ne!(verifier.generation(), before);
    assert!(verifier.verify(token.as_bytes(), NOW).is_ok());

    let rotated = Rotating::new(Some(rsa()), None);
    let verifier = JwtVerifier::new(vec![issuer("https://a", rotated)], || NOW);
    let asked = verifier.ask(Secret::new(token.into_bytes()));
    assert!(said(now(asked)).starts_with("Invalid"));
}

#[test]
fn a_key_that_is_not_known_is_unavailable_while_newer_ones_cannot_be_fetched() {
    let keys = Rotating {
        keys: Mutex::new(Some(Arc::new(rsa()))),
        next: Mutex::default(),
        generation: AtomicU64::new(1),
        fault: Some("nobody answers"),
    };
    let verifier = JwtVerifier::new(vec![issuer("https://a", Arc::new(keys))], || NOW);
    let token = of_issuer("https://a");
    assert_eq!(verifier.verify(token.as_bytes(), NOW), Err(Unproven::Ask));
    let said = said(now(verifier.ask(Secret::new(token.into_bytes()))));
    assert!(said.starts_with("Unavailable"), "{said}");
    assert!(said.contains("nobody answers"), "{said}");
}

/// Another key of the same `kid`: the point of `p256` with the other sign.
fn replaced() -> KeySet {
    let y = "z976iXvxFcDsdo2qJahsG2zsq5BueaUcoNyLadsGzmI";
    let x = "qmiNC3rdiPnP8Ex_JD6RW81Pp0v_iDbZD7hvFiPeWVA";
    let key = json!({ "kty": "EC", "crv": "P-256", "kid": "p256", "x": x, "y": y });
    KeySet::parse(json!({ "keys": [key] }).to_string().as_bytes()).expect("a key set")
}

#[test]
fn a_key_that_was_replaced_under_its_old_kid_is_fetched_after_a_wrong_signature() {
    let keys = Rotating::new(Some(replaced()), Some(p256()));
    let verifier = JwtVerifier::new(vec![issuer("https://a", keys)], || NOW);
    let token = of_issuer("https://a");
    assert_eq!(said(verifier.verify(token.as_bytes(), NOW)), "Ask");
    let asked = verifier.ask(Secret::new(token.clone().into_bytes()));
    assert_eq!(said(now(asked)), format!("chat until {}", NOW + 105));
    assert!(verifier.verify(token.as_bytes(), NOW).is_ok());
}

#[test]
fn a_wrong_signature_is_called_so_whether_or_not_newer_keys_can_be_fetched() {
    for fault in [None, Some("nobody answers")] {
        let keys = Rotating {
            keys: Mutex::new(Some(Arc::new(replaced()))),
            next: Mutex::default(),
            generation: AtomicU64::new(1),
            fault,
        };
        let verifier = JwtVerifier::new(vec![issuer("https://a", Arc::new(keys))], || NOW);
        let token = of_issuer("https://a");
        let said = said(now(verifier.ask(Secret::new(token.into_bytes()))));
        assert!(
            said.starts_with("Invalid") && said.contains("signature"),
            "{said}"
        );
    }
}

#[test]
fn an_issuer_may_stand_several_times_for_several_audiences() {
    let of = |audience: &str| {
        let mut issuer = issuer("https://a", Arc::new(FixedKeys::new(p256())));
        let mut rules = Rules::clone(&issuer.rules);
        rules.audiences = vec![audience.into()];
        issuer.rules = Arc::new(rules);
        issuer
    };
    let ours = issuer("https://a", Arc::new(FixedKeys::new(p256())));
    let ours = ours.rules.audiences.first().expect("an audience").clone();
    let token = of_issuer("https://a");
    let verify = |audiences: &[&str]| {
        let issuers = audiences.iter().map(|audience| of(audience)).collect();
        said(JwtVerifier::new(issuers, || NOW).verify(token.as_bytes(), NOW))
    };
    for good in [&[&*ours, "other"], &["other", &*ours]] {
        assert!(verify(good).starts_with("chat"), "{good:?}");
    }
    assert!(verify(&["other", "another"]).starts_with("Invalid"));
}

#[test]
fn what_changes_with_two_issuers_at_once_changes_the_generation() {
    let [one, two] = [0, 1].map(|_| Rotating::new(Some(p256()), None));
    let verifier = JwtVerifier::new(
        vec![
            issuer("https://a", Arc::clone(&one) as _),
            issuer("https://b", Arc::clone(&two) as _),
        ],
        || NOW,
    );
    // The keys of one become too old, and those of the other can be used again.
    let seen: Vec<u64> = [(3, 2), (2, 3), (2, 2), (3, 3), (4, 1)]
        .map(|(first, second)| {
            one.generation.store(first, Ordering::SeqCst);
            two.generation.store(second, Ordering::SeqCst);
            verifier.generation()
        })
        .into();
    for (nth, generation) in seen.iter().enumerate() {
        assert!(!seen[..nth].contains(generation), "{seen:?}");
    }
}

#[test]
fn dots_are_counted_however_many_there_are() {
    for count in [0, 1, 2, 3, 254, 255, 256, 257, 510, 1000] {
        for between in [0, 1, 200, 300] {
            let text = format!("{}.", "e".repeat(between)).repeat(count);
            assert_eq!(dots(text.as_bytes()), count, "{between}");
        }
    }
}
