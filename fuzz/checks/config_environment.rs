//! What must hold for any environment, where there is no configuration file, and for the proxies that it names.
//!
//! Taken or refused without a panic, the same way twice; neither keys nor the proxies' passwords are shown.
//! Not here: files (`config_parse`).

use std::io;
use std::path::Path;

use config::{Sources, from_environment, parse_document};

/// Stands in every key and every proxy's password.
const SECRET: &str = "canary-of-the-environment";
const DOCUMENT: &str = "backends: { a: { url: https://a.test/v1 }, b: { url: http://10.1.2.3:8000/v1 }, c: { url: \"http://[fd00::2]/v1\" } }\n\
    routes: [ { workload: w, backend: [a, b, c] } ]\n";

struct Environment(Vec<(String, String)>);

impl Sources for Environment {
    fn read(&self, _: &Path, _: usize) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn var(&self, name: &str) -> Option<String> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone())
    }
}

/// Panics when an invariant is broken. Lines of the input are variables.
pub(crate) fn fuzz_one(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let mut variables: Vec<_> = text
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| {
            let value = if name.ends_with("_KEY") {
                format!("{SECRET}{value}")
            } else {
                value.replace('~', SECRET)
            };
            (name.to_owned(), value)
        })
        .collect();
    // A password alone may hold the secret.
    for (name, value) in &mut variables {
        let before = value.rsplit_once('@').map_or(0, |(before, _)| before.len());
        if !name.ends_with("_KEY") && value[before..].contains(SECRET) {
            *value = value.replace(SECRET, "");
        }
    }
    let environment = Environment(variables);
    let shown = || {
        let path = Path::new("tollgate.yaml");
        let made = from_environment(&environment);
        let read = parse_document(path, DOCUMENT.as_bytes(), &environment);
        let made = made.map_or_else(|faults| faults.to_string(), |loaded| format!("{loaded:?}"));
        let read = read.map_or_else(|faults| faults.to_string(), |loaded| format!("{loaded:?}"));
        (made, read)
    };
    let (made, read) = shown();
    let (made_again, read_again) = shown();
    // Maps print in an order of their own.
    assert_eq!(
        (made.len(), read.len()),
        (made_again.len(), read_again.len())
    );
    assert!(!read.contains(SECRET), "{read}");
    let urls = ["OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GEMINI_BASE_URL"];
    let in_url = |url| environment.var(url).is_some_and(|v| v.contains(SECRET));
    if !urls.into_iter().any(in_url) {
        assert!(!made.contains(SECRET), "{made}");
    }
}
