//! AWS Signature Version 4, in headers: who sends a request, over all of it, for a region and a service.
//!
//! A crate of its own for *purity*: keys and time are arguments, so that every rule is a row of a table.
//! Invariant: the whole body is in the signature; a key leaves only as signatures, is wiped, and cannot be printed.
//! Not here: whose keys these are and how long they live (the host), signatures in queries, S3's own rules (its paths
//! are encoded once), signed chunks.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod canonical;
mod date;

use std::fmt;

use ring::digest::{Context, SHA256};
use ring::hmac::{self, HMAC_SHA256};
use zeroize::Zeroizing;

use self::canonical::Canonical;
use self::date::Stamp;

/// Keys of an account or of a session.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    /// Names the key; sent with each signature.
    pub access_key_id: String,
    /// Signs, and is never sent.
    pub secret_access_key: Zeroizing<Vec<u8>>,
    /// Sent with each request, where the keys are a session's.
    pub session_token: Option<Zeroizing<Vec<u8>>>,
}

/// Only which key it is, is shown.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys")
            .field("access_key_id", &self.access_key_id)
            .finish_non_exhaustive()
    }
}

/// What a signature is good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The region, such as `us-west-2`.
    pub region: String,
    /// The name by which the service signs, such as `bedrock`.
    pub service: String,
}

/// A request as it will be sent.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a, B> {
    /// The method.
    pub method: &'a str,
    /// `host[:port]`, as its `host` or `:authority` says.
    pub authority: &'a str,
    /// The path, encoded as it is sent.
    pub path: &'a str,
    /// The query, encoded as it is sent, without its `?`.
    pub query: &'a str,
    /// Further headers that go into the signature: names in lower case, values as they are sent.
    pub headers: &'a [(Vec<u8>, Vec<u8>)],
    /// The body, in pieces.
    pub body: &'a [B],
}

/// A header line to send; the value of one that proves something is wiped.
pub type Line = (&'static str, Zeroizing<Vec<u8>>);

/// Whether a header of this name, in lower case, has to be in the signature where the request has it: AWS wants its own
/// headers there, and the type of the body belongs to it.
#[must_use]
pub fn covers(name: &[u8]) -> bool {
    name.starts_with(b"x-amz") || name == b"content-type"
}

/// The header lines that sign a request at `unix_s`, seconds since the Unix epoch. AWS takes them for five minutes, by
/// its own clock.
#[must_use]
pub fn sign<B: AsRef<[u8]>>(
    keys: &Keys,
    scope: &Scope,
    request: &Request<'_, B>,
    unix_s: u64,
) -> Vec<Line> {
    let stamp = Stamp::of(unix_s);
    let hash = body_hash(request.body);
    let bytes = |text: &str| Zeroizing::new(text.as_bytes().to_vec());
    let mut lines = vec![
        ("x-amz-date", bytes(stamp.time())),
        ("x-amz-content-sha256", bytes(&hash)),
    ];
    if let Some(token) = &keys.session_token {
        lines.push(("x-amz-security-token", token.clone()));
    }
    let mut headers: Vec<(&[u8], &[u8])> = vec![(b"host", request.authority.as_bytes())];
    headers.extend(
        request
            .headers
            .iter()
            .map(|(name, value)| (&**name, &**value)),
    );
    headers.extend(
        lines
            .iter()
            .map(|(name, value)| (name.as_bytes(), &***value)),
    );
    let canonical = Canonical::of(request.method, request.path, request.query, headers, &hash);
    let authorization = authorization(keys, scope, &stamp, &canonical);
    lines.push(("authorization", authorization));
    lines
}

fn authorization(
    keys: &Keys,
    scope: &Scope,
    stamp: &Stamp,
    canonical: &Canonical,
) -> Zeroizing<Vec<u8>> {
    let Scope { region, service } = scope;
    let within = format!("{}/{region}/{service}/aws4_request", stamp.day());
    let hash = hex(ring::digest::digest(&SHA256, &canonical.text).as_ref());
    let signed = format!("AWS4-HMAC-SHA256\n{}\n{within}\n{hash}", stamp.time());
    let signature = hex(hmac::sign(&signing_key(keys, scope, stamp), signed.as_bytes()).as_ref());
    let Keys { access_key_id, .. } = keys;
    let names = &canonical.names;
    let value = format!(
        "AWS4-HMAC-SHA256 Credential={access_key_id}/{within}, SignedHeaders={names}, Signature={signature}"
    );
    Zeroizing::new(value.into_bytes())
}

/// The key of a day, a region and a service.
fn signing_key(keys: &Keys, scope: &Scope, stamp: &Stamp) -> hmac::Key {
    let mut secret = Zeroizing::new(Vec::with_capacity(4 + keys.secret_access_key.len()));
    secret.extend_from_slice(b"AWS4");
    secret.extend_from_slice(&keys.secret_access_key);
    let first = hmac::Key::new(HMAC_SHA256, &secret);
    let steps = [stamp.day(), &scope.region, &scope.service, "aws4_request"];
    steps.iter().fold(first, |key, step| {
        let next = hmac::sign(&key, step.as_bytes());
        hmac::Key::new(HMAC_SHA256, next.as_ref())
    })
}

fn body_hash<B: AsRef<[u8]>>(body: &[B]) -> String {
    let mut context = Context::new(&SHA256);
    for piece in body {
        context.update(piece.as_ref());
    }
    hex(context.finish().as_ref())
}

fn hex(bytes: &[u8]) -> String {
    let digit = |four: u8| char::from_digit(u32::from(four), 16).unwrap_or('0');
    let digits = bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    digits.collect()
}

#[cfg(test)]
mod tests;
