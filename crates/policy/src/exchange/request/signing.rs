//! What signs a request whose credential is a signer: as long as the SHA-256 of its body takes, done by whoever has the time.
//!
//! Invariant: what is signed is what is sent: the path and body that are final, and the fields that its signer covers.
//! Not here: signatures themselves ([`crate::credential`]).

use std::sync::Arc;

use bytes::Bytes;

use super::AttemptRequest;
use crate::clock::Mono;
use crate::credential::{Credential, Signable};
use crate::secret::Secret;

/// The fields that prove who sends a request, where that depends on the whole of it.
pub type Signature = Vec<(&'static str, Secret)>;

/// What is to be signed, which takes as long as the SHA-256 of its body.
#[derive(Debug)]
pub struct Signing {
    credential: Arc<Credential>,
    method: String,
    authority: String,
    path: String,
    query: String,
    headers: Vec<(Vec<u8>, Vec<u8>)>,
    body: Vec<Bytes>,
    unix_s: u64,
}

impl Signing {
    /// Signs it.
    #[must_use]
    pub fn run(self) -> Signature {
        let Credential::Signer(signer) = &*self.credential else {
            return Vec::new();
        };
        let request = Signable {
            method: &self.method,
            authority: &self.authority,
            path: &self.path,
            query: &self.query,
            headers: &self.headers,
            body: &self.body,
        };
        signer.sign(&request, self.unix_s)
    }
}

impl AttemptRequest<'_> {
    /// What is to be signed of it with this body, where its credential is a signer: to be done by whoever has the time, once path and
    /// body are final, and told by [`signed`](Self::signed) before it is written.
    #[inline]
    #[must_use]
    pub fn signing(&self, body: &[Bytes], now: Mono) -> Option<Signing> {
        let credential = self.plan.minted.as_ref()?;
        match &**credential {
            Credential::Signer(_) => Some(self.to_sign(credential, body, now)),
            Credential::Header { .. } => None,
        }
    }

    #[cold]
    fn to_sign(&self, credential: &Arc<Credential>, body: &[Bytes], now: Mono) -> Signing {
        let mut headers = Vec::new();
        if let Credential::Signer(signer) = &**credential {
            self.fields(|name, value| {
                if signer.covers(name) {
                    headers.push((name.to_vec(), value.to_vec()));
                }
            });
        }
        Signing {
            credential: Arc::clone(credential),
            method: self.method_text.to_owned(),
            authority: self.authority().to_owned(),
            path: [&*self.endpoint.base_path, self.path()].concat(),
            query: self.query.strip_prefix('?').unwrap_or_default().to_owned(),
            headers,
            body: body.to_vec(),
            unix_s: self.exchange.unix_ms(now) / 1000,
        }
    }

    /// It is signed so.
    pub fn signed(&mut self, signature: Signature) {
        self.signature = signature;
    }
}
