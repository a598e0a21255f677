//! Tokens of our own, read by ourselves; and keys that sign nothing.

use serde_json::{Map, Value, json};

use super::{SigningFault, SigningKey, SystemRandom, certificate_thumbprint};
use crate::algorithm::Algorithm;
use crate::base64url;
use crate::fixture::{CLAIMS, key, outcome_by, rules};
use crate::key_set::KeySet;
use crate::pem::PemFault;

fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn claims() -> Map<String, Value> {
    serde_json::from_str(CLAIMS).unwrap()
}

fn signing(pem: &[u8], algorithm: Option<Algorithm>) -> Result<SigningKey, SigningFault> {
    SigningKey::from_pem(pem, algorithm, &SystemRandom::new())
}

#[test]
fn what_is_signed_verifies_and_says_what_it_was_given() {
    type Row = (&'static [u8], Option<Algorithm>, Algorithm, &'static [u8]);
    let rows: [Row; 6] = [
        (key!("rsa"), None, Algorithm::Rs256, key!("rsa.public")),
        (
            key!("rsa.pkcs1"),
            None,
            Algorithm::Rs256,
            key!("rsa.public"),
        ),
        (
            key!("rsa"),
            Some(Algorithm::Ps256),
            Algorithm::Ps256,
            key!("rsa.certificate"),
        ),
        (key!("p256"), None, Algorithm::Es256, key!("p256.public")),
        (
            key!("p256"),
            Some(Algorithm::Es256),
            Algorithm::Es256,
            key!("p256.public"),
        ),
        (
            key!("ed25519"),
            None,
            Algorithm::EdDsa,
            key!("ed25519.public"),
        ),
    ];
    for (private, asked, algorithm, public) in rows {
        let signing = signing(private, asked).unwrap();
        assert_eq!(signing.algorithm(), algorithm);
        let extras = map(json!({"kid": "k1", "x5t#S256": "AAAA"}));
        let token = signing
            .sign(&extras, &claims(), &SystemRandom::new())
            .unwrap();
        let keys = KeySet::from_pem(public).unwrap();
        let mut rules = rules();
        rules.algorithms = vec![algorithm];
        let read = outcome_by(&token, &rules, &keys).unwrap();
        assert_eq!(read.all(), &claims());
        let header = base64url::decode(token.split('.').next().unwrap().as_bytes()).unwrap();
        let header: Value = serde_json::from_slice(&header).unwrap();
        let expected =
            json!({"alg": algorithm.name(), "typ": "JWT", "kid": "k1", "x5t#S256": "AAAA"});
        assert_eq!(header, expected);
    }
}

#[test]
fn the_type_is_the_callers_and_the_algorithm_is_not() {
    let signing = signing(key!("ed25519"), None).unwrap();
    let sign = |extras| signing.sign(&map(extras), &claims(), &SystemRandom::new());
    let token = sign(json!({"typ": "client-authentication+jwt"})).unwrap();
    let keys = KeySet::from_pem(key!("ed25519.public")).unwrap();
    let mut rules = rules();
    rules.types = vec!["client-authentication+jwt".into()];
    assert!(outcome_by(&token, &rules, &keys).is_ok());
    for name in ["alg", "crit", "b64"] {
        assert_eq!(sign(json!({name: "none"})), Err(SigningFault::Header(name)));
    }
}

#[test]
fn a_key_that_signs_nothing_says_why() {
    const LABELS: &str = "PRIVATE KEY, RSA PRIVATE KEY";
    // One letter of the modulus is another.
    let damaged = {
        let pem = std::str::from_utf8(key!("rsa")).unwrap();
        let line = pem.lines().nth(3).unwrap();
        let letter = if line.starts_with('A') { "B" } else { "A" };
        pem.replace(line, &format!("{letter}{}", &line[1..]))
    };
    let rows: [(&[u8], Option<Algorithm>, SigningFault); 10] = [
        (b"", None, SigningFault::Pem(PemFault::NoBlock)),
        (
            key!("rsa.public"),
            None,
            SigningFault::Pem(PemFault::Label(LABELS)),
        ),
        (key!("p256.sec1"), None, SigningFault::Sec1),
        (key!("p256.encrypted"), None, SigningFault::Encrypted),
        (key!("p384"), None, SigningFault::Type),
        (key!("p521"), None, SigningFault::Type),
        (
            key!("p256"),
            Some(Algorithm::Rs256),
            SigningFault::Algorithm(Algorithm::Rs256),
        ),
        (
            key!("rsa"),
            Some(Algorithm::Rs512),
            SigningFault::Algorithm(Algorithm::Rs512),
        ),
        (
            key!("ed25519"),
            Some(Algorithm::Es256),
            SigningFault::Algorithm(Algorithm::Es256),
        ),
        (
            damaged.as_bytes(),
            None,
            SigningFault::Key("InconsistentComponents".to_owned()),
        ),
    ];
    for (pem, algorithm, expected) in rows {
        assert_eq!(signing(pem, algorithm).map(|_| ()), Err(expected));
    }
}

#[test]
fn a_key_is_not_printed() {
    let signing = signing(key!("ed25519"), None).unwrap();
    assert_eq!(
        format!("{signing:?}"),
        "SigningKey { algorithm: EdDsa, .. }"
    );
}

#[test]
fn a_thumbprint_is_that_of_the_certificate() {
    // As `openssl x509 -fingerprint -sha256` has it.
    let expected = "IszyVZFe_0D1LaeITHMHWCU2ringr7x2xn8bvaX7GvY";
    assert_eq!(
        certificate_thumbprint(key!("rsa.certificate")).as_deref(),
        Ok(expected)
    );
    let found = certificate_thumbprint(key!("rsa.public"));
    assert_eq!(found, Err(PemFault::Label("CERTIFICATE")));
}
