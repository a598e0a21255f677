//! Callers that tests make up, and credentials that prove them.
//!
//! Not here: sources that prove something else (`exchanges/callers.rs`).

use std::sync::{Arc, Mutex, PoisonError};

use policy::caller::Caller;
use policy::identity::{HeaderSource, Proof, Source, Unproven, Verifier};
use policy::snapshot::Snapshot;

/// Has a snapshot believe the credentials of [`Call::by`], and the header of who brings none.
pub(crate) fn knowing_callers(s: &mut Snapshot) {
    let header = Source::Header(HeaderSource::default());
    s.identity.sources = vec![Source::Credential(Arc::new(Callers)), header];
}

/// Every caller that a test spoke of, by its place; never any less.
static CALLERS: Mutex<Vec<Arc<Caller>>> = Mutex::new(Vec::new());

/// What proves this caller.
pub(super) fn token(caller: &Arc<Caller>) -> String {
    let mut all = CALLERS.lock().unwrap_or_else(PoisonError::into_inner);
    let at = all.iter().position(|known| Arc::ptr_eq(known, caller));
    let at = at.unwrap_or_else(|| {
        all.push(Arc::clone(caller));
        all.len() - 1
    });
    format!("caller-{at}")
}

/// Knows whose those credentials are.
#[derive(Debug)]
struct Callers;

impl Verifier for Callers {
    fn takes(&self, credential: &[u8]) -> bool {
        credential.starts_with(b"caller-")
    }

    fn keeps_proofs(&self) -> bool {
        false
    }

    fn fingerprint(&self, _: &[u8]) -> [u8; 32] {
        [0; 32]
    }

    fn verify(&self, credential: &[u8], unix_s: u64) -> Result<Proof, Unproven> {
        let all = CALLERS.lock().unwrap_or_else(PoisonError::into_inner);
        let place = std::str::from_utf8(&credential[7..]).expect("text");
        let caller = all[place.parse::<usize>().expect("a number")].clone();
        let until_unix_s = unix_s + 1;
        Ok(Proof {
            caller,
            until_unix_s,
        })
    }
}
