//! What is made of a configuration, before it is published.

use std::io;

use policy::responses::{Principal, ResponseStore};
use policy::wire::filter::KeptResponse;

use super::*;

/// No file but the document, and one secret.
struct Secrets;

impl Sources for Secrets {
    fn read(&self, path: &Path, _: usize) -> io::Result<Vec<u8>> {
        match path.ends_with("secret") {
            true => Ok(b"one".into()),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn var(&self, _: &str) -> Option<String> {
        None
    }
}

fn made_of(more: &str, credential: &str, moment: Moment<'_>) -> Current {
    let text = format!(
        "{more}\nbackends: {{ up: {{ url: http://127.0.0.1:1/v1{credential} }} }}\n\
         routes: [ {{ workload: w, backend: up }} ]\n"
    );
    let loaded = config::parse_document(Path::new("/x/tollgate.yaml"), text.as_bytes(), &Secrets);
    let loaded = loaded.unwrap_or_else(|faults| panic!("{faults}"));
    let made = publication(loaded, Revision::first, &Secrets, moment);
    made.expect("a good configuration").1
}

#[test]
fn what_was_made_and_is_not_published_changes_nothing_that_is_in_force() {
    const KEEPS: &str = "responses: { store: { keep: 1h, size: 1MiB } }";
    const OAUTH: &str = ", credential: { oauth: { token_url: http://127.0.0.1:9/, client_id: gate, client_secret: { file: secret } } }";
    let services = Services::default();
    made_of(KEEPS, OAUTH, Moment::Start(&services)).put_in_force(&services);
    let of = Principal::of(&"w".into(), None, None);
    let response = KeptResponse {
        id: "resp_tg_1".into(),
        previous: None,
        input: "[]".into(),
        output: "[]".into(),
        document: b"{}".as_slice().into(),
    };
    services.responses.keep(&of, response);
    let is_kept = || services.responses.find(&of, "resp_tg_1").is_some();
    let makers = || services.makers.states().len();
    let next = made_of("", "", Moment::Reload(&services));
    let keys = made_of("", "", Moment::Keys(&services));
    drop(keys);
    assert!(is_kept());
    assert_eq!(makers(), 1);
    next.put_in_force(&services);
    assert!(!is_kept());
    assert_eq!(makers(), 0);
}
