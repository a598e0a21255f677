//! What is made of what the document says, and what is kept.

use std::io;
use std::path::Path;

use config::{Loaded, Sources};
use policy::credential::Minter;

use super::*;

const RSA: &str = include_str!("../../../../vectors/jose/keys/rsa.pem");
const P256: &str = include_str!("../../../../vectors/jose/keys/p256.pem");
const CERTIFICATE: &str = include_str!("../../../../vectors/jose/keys/rsa.certificate.pem");

/// Files by name.
type Files<'f> = &'f [(&'f str, &'f str)];

/// A document and the files beside it.
struct World<'w>(Files<'w>);

impl Sources for World<'_> {
    fn read(&self, path: &Path, _: usize) -> io::Result<Vec<u8>> {
        let found = self.0.iter().find(|(name, _)| path.ends_with(name));
        let found = found.map(|(_, content)| content.as_bytes().to_vec());
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn var(&self, _: &str) -> Option<String> {
        None
    }
}

/// The document with this credential.
fn loaded(credential: &str, files: Files<'_>) -> Loaded {
    let text = format!(
        "backends: {{ up: {{ endpoints: [ {{ url: http://127.0.0.1:1/v1 }}, {{ url: http://127.0.0.1:2/v1 }} ], \
         credential: {credential} }} }}\nroutes: [ {{ workload: w, backend: up }} ]\n"
    );
    let path = Path::new("/x/tollgate.yaml");
    let loaded = config::parse_document(path, text.as_bytes(), &World(files));
    loaded.unwrap_or_else(|faults| panic!("{faults}"))
}

fn oauth(secret: &str) -> Loaded {
    let credential = "{ oauth: { token_url: http://127.0.0.1:9/, client_id: gate, client_secret: { file: secret } } }";
    loaded(credential, &[("secret", secret)])
}

/// What makes the credentials of the endpoints.
fn makers_of(loaded: &Loaded) -> Vec<Arc<dyn Minter>> {
    let endpoints = loaded.snapshot.endpoints.iter();
    endpoints
        .map(|endpoint| match &endpoint.auth {
            UpstreamAuth::Minted(minter) => Arc::clone(minter),
            other => panic!("{other:?}"),
        })
        .collect()
}

fn completed(mut loaded: Loaded, moment: Moment<'_>) -> Vec<Arc<dyn Minter>> {
    let written = std::mem::take(&mut loaded.host.upstream_credentials);
    let makers = complete(&mut loaded.snapshot, &written, moment).expect("a good credential");
    if let Some(services) = moment.services() {
        services.makers.replace(makers.into());
    }
    makers_of(&loaded)
}

#[test]
fn endpoints_share_what_makes_their_credential_and_a_reload_keeps_it() {
    let services = Services::default();
    let first = completed(oauth("one"), Moment::Start(&services));
    assert!(Arc::ptr_eq(&first[0], &first[1]));
    let same = completed(oauth("one"), Moment::Reload(&services));
    assert!(Arc::ptr_eq(&first[0], &same[0]));
    let other = completed(oauth("two"), Moment::Reload(&services));
    assert!(!Arc::ptr_eq(&first[0], &other[0]));
    assert_eq!(first[0].account(), other[0].account());
    // What is not written any more is not kept either.
    let again = completed(oauth("one"), Moment::Reload(&services));
    assert!(!Arc::ptr_eq(&first[0], &again[0]));
}

#[test]
fn without_services_nobody_is_asked_and_no_credential_is_given() {
    for minter in completed(oauth("one"), Moment::Check) {
        assert_eq!(minter.account(), "oauth http://127.0.0.1:9 gate");
        assert!(minter.ready(None).is_none());
    }
}

#[test]
fn a_key_that_cannot_sign_is_a_fault_that_says_where_and_not_what() {
    let key = "{ oauth: { token_url: http://127.0.0.1:9/, client_id: gate, private_key: { file: key, algorithm: PS256 } } }";
    let entra = "{ azure: { tenant: t, client_id: a, certificate: cert, key: key } }";
    let google = "{ google: { key_file: json } }";
    let canary = "-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----\n";
    let account = r#"{"type":"service_account","client_email":"e","private_key":"canary","token_uri":"http://127.0.0.1:9/"}"#;
    let table: [(&str, Files<'_>, Option<&str>); 7] = [
        (key, &[("key", RSA)], None),
        (
            key,
            &[("key", P256)],
            Some("credential.oauth: the private key does not sign with PS256"),
        ),
        (
            key,
            &[("key", canary)],
            Some("credential.oauth: the private key in PEM"),
        ),
        (entra, &[("key", RSA), ("cert", CERTIFICATE)], None),
        (
            entra,
            &[("key", P256), ("cert", CERTIFICATE)],
            Some("credential.azure: key: the private key"),
        ),
        (
            entra,
            &[("key", RSA), ("cert", "-----BEGIN CERTIFICATE-----")],
            Some("credential.azure: certificate:"),
        ),
        (
            google,
            &[("json", account)],
            Some("credential.google: the private key in PEM"),
        ),
    ];
    for (credential, files, expected) in table {
        let mut loaded = loaded(credential, files);
        let written = std::mem::take(&mut loaded.host.upstream_credentials);
        let fault = complete(&mut loaded.snapshot, &written, Moment::Check).err();
        let fault = fault.as_deref();
        match (fault, expected) {
            (None, None) => {}
            (Some(fault), Some(expected)) => {
                assert!(fault.contains(expected), "{fault}");
                assert!(!fault.contains("canary"), "{fault}");
            }
            other => panic!("{credential}: {other:?}"),
        }
    }
}

#[test]
fn keys_of_the_document_sign_at_once() {
    let credential = "{ aws: { region: r, access_key_id: AKIAIOSFODNN7EXAMPLE, secret_access_key: { file: secret } } }";
    for moment in [Moment::Check, Moment::Start(&Services::default())] {
        let makers = completed(loaded(credential, &[("secret", "canary")]), moment);
        let found = makers[0].ready(None).expect("keys");
        assert!(matches!(&*found, policy::credential::Credential::Signer(_)));
        assert!(!format!("{found:?} {makers:?}").contains("canary"));
    }
}
