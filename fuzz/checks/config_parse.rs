//! What must hold for any bytes that claim to be a configuration.
//!
//! Taken or refused with a fault, without a panic; a document that is taken is taken again the
//! same way, on top of itself too; no secret of the world around it is shown.
//! Not here: which documents are good (`vectors/config`).

use std::io;
use std::path::Path;

use config::{Sources, parse_document};
use policy::clock::Mono;
use policy::id::LimitId;
use policy::revision::Revision;

struct World;

const SECRET: &str = "canary-in-every-file-and-variable";

impl Sources for World {
    fn read(&self, path: &Path, _: usize) -> io::Result<Vec<u8>> {
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
    let shown = match parse_document(path, input, &World) {
        Ok(first) => {
            let shown = format!("{first:?}");
            let again = parse_document(path, input, &World)
                .expect("a document that was taken is taken again");
            let first = Revision::first(first.snapshot);
            let again = first.next(again.snapshot, Mono(2));
            assert_eq!(first.snapshot.version, again.snapshot.version);
            assert!(
                first
                    .snapshot
                    .backends
                    .iter()
                    .all(|b| !b.endpoints.is_empty())
            );
            assert!(first.snapshot.routes.iter().all(|r| !r.backends.is_empty()));
            for (id, limit) in (0..).map(LimitId).zip(&first.snapshot.limits) {
                let [a, b] = [&first, &again].map(|of| of.levels.bucket(id).expect("a limit"));
                assert!(std::ptr::eq(a, b), "{} is kept", limit.key);
            }
            shown
        }
        Err(faults) => {
            assert!(!faults.faults.is_empty());
            faults.to_string()
        }
    };
    let written = String::from_utf8_lossy(input).contains("canary");
    assert!(written || !shown.contains(SECRET), "a secret is shown");
}
