//! What must hold for any bytes that claim to be a configuration.
//!
//! Taken or refused with a fault, without a panic; a document that is taken is taken again the
//! same way, on top of itself too; no secret of the world around it is shown.
//! Not here: which documents are good (`vectors/config`).

use std::io;
use std::path::Path;

use config::{Sources, parse_document};
use policy::clock::Mono;

struct World;

const SECRET: &str = "canary-in-every-file-and-variable";

impl Sources for World {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if path.as_os_str().len() % 7 == 6 {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(format!("{SECRET}\n").into_bytes())
    }

    fn var(&self, name: &str) -> Option<String> {
        if name.to_ascii_lowercase().ends_with("_proxy") {
            return Some(format!("http://user:{SECRET}@proxy.test:3128"));
        }
        (name.len() % 7 != 6).then(|| SECRET.to_owned())
    }
}

/// Panics when an invariant is broken.
pub(crate) fn fuzz_one(input: &[u8]) {
    let path = Path::new("tollgate.yaml");
    let shown = match parse_document(path, input, &World, None, Mono(1)) {
        Ok(first) => {
            let again = parse_document(path, input, &World, Some(&first.snapshot), Mono(2))
                .expect("a document that was taken is taken again");
            assert_eq!(first.snapshot.version, again.snapshot.version);
            assert!(
                first
                    .snapshot
                    .backends
                    .iter()
                    .all(|b| !b.endpoints.is_empty())
            );
            assert!(first.snapshot.routes.iter().all(|r| !r.backends.is_empty()));
            for (a, b) in first.snapshot.limits.iter().zip(&again.snapshot.limits) {
                assert!(
                    std::sync::Arc::ptr_eq(&a.bucket, &b.bucket),
                    "{} is kept",
                    a.key
                );
            }
            format!("{first:?}")
        }
        Err(faults) => {
            assert!(!faults.faults.is_empty());
            faults.to_string()
        }
    };
    let written = String::from_utf8_lossy(input).contains("canary");
    assert!(written || !shown.contains(SECRET), "a secret is shown");
}
