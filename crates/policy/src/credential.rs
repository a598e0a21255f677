//! As whom the gate calls upstream: the client's credentials go, exactly one of ours comes.
//!
//! Invariant: no header or query member in which a client may carry a credential is forwarded;
//! what a client names in `connection` can never remove a header that the gate sets.
//! Not here: where the secret comes from (`config`), how it is watched (`tollgate`).

use wire::head::{FieldRef, Head, Known, RequestHead};

use crate::refusal::Refusal;
use crate::secret::Secret;

/// The one credential of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Injection {
    /// The endpoint wants none.
    None,
    /// `name: value`, with the name in lower case and the value complete (`Bearer …`).
    Header {
        /// Header name, lower case.
        name: String,
        /// The whole value.
        value: Secret,
    },
}

/// Refuses a request that carries credentials in two places, or one place twice: which of them
/// counts would be a choice, and another parser might choose otherwise.
///
/// # Errors
/// [`Refusal::ConflictingCredentials`].
pub fn check(head: &RequestHead) -> Result<(), Refusal> {
    let in_headers = head.fields.iter().filter(|f| is_key(f.known)).count();
    let in_query = head
        .query()
        .map_or(0, |q| q.split('&').filter(|p| is_key_member(p)).count());
    let listed = head
        .fields
        .iter()
        .any(|f| is_key(f.known) && f.value.contains(&b','));
    if in_headers + in_query > 1 || listed {
        return Err(Refusal::ConflictingCredentials);
    }
    Ok(())
}

/// Whether a request header goes upstream.
#[must_use]
pub fn forwards(field: &FieldRef<'_>, fields: &Head, identity: &[u8]) -> bool {
    match field.known {
        Known::Accept
        | Known::ContentType
        | Known::ContentEncoding
        | Known::UserAgent
        | Known::Traceparent
        | Known::Tracestate
        | Known::IdempotencyKey
        | Known::OpenaiBeta => true,
        Known::Other => {
            field.name != identity
                && (is_sdk_word(field.name)
                    || (!field.name.starts_with(b"x-forwarded-")
                        && !field.name.starts_with(b"anthropic-")
                        && field.name != b"referer"
                        && !field.has_underscore()
                        && !smells_of_credential(field.name)))
                && !fields.connection_names(field.name)
        }
        _ => false,
    }
}

/// The query without the members in which keys travel; `None` when nothing is left.
#[must_use]
pub fn clean_query(query: &str) -> Option<String> {
    let kept: Vec<&str> = query.split('&').filter(|p| !is_key_member(p)).collect();
    if kept.is_empty() {
        None
    } else {
        Some(kept.join("&"))
    }
}

/// Whether a response header goes back to the client.
#[must_use]
pub fn returns(field: &FieldRef<'_>, fields: &Head) -> bool {
    match field.known {
        Known::SetCookie
        | Known::Cookie
        | Known::Connection
        | Known::KeepAlive
        | Known::ProxyConnection
        | Known::Te
        | Known::Trailer
        | Known::TransferEncoding
        | Known::Upgrade
        | Known::Http2Settings
        | Known::AltSvc
        | Known::WwwAuthenticate
        | Known::ProxyAuthenticate
        | Known::ContentLength
        | Known::Server
        | Known::XRequestId
        | Known::Via
        | Known::OpenaiOrganization
        | Known::OpenaiProject
        | Known::Authorization
        | Known::ProxyAuthorization
        | Known::XApiKey
        | Known::ApiKey
        | Known::XGoogApiKey
        | Known::XGoogUserProject
        | Known::SecWebsocketProtocol
        | Known::Amz
        | Known::Location => false,
        Known::Other => {
            !field.name.starts_with(b"x-ratelimit-")
                && field.name != b"strict-transport-security"
                && field.name != crate::request_id::UPSTREAM_HEADER.as_bytes()
                && !smells_of_credential(field.name)
                && !fields.connection_names(field.name)
        }
        _ => true,
    }
}

/// Headers that hold an API key in some provider's convention.
fn is_key(known: Known) -> bool {
    matches!(
        known,
        Known::Authorization | Known::XApiKey | Known::ApiKey | Known::XGoogApiKey
    )
}

/// `key=…`, `api-key=…` and their kin in a query, whatever the percent-encoding of the name, and
/// for servers that also split at `;` or read `key[]` as `key`.
fn is_key_member(pair: &str) -> bool {
    pair.split(';').any(|member| {
        let name = member.split('=').next().unwrap_or_default();
        let mut name = percent_decoded(name).to_ascii_lowercase();
        let whole = name.iter().position(|b| *b == b'[');
        name.truncate(whole.unwrap_or(name.len()));
        name.retain(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        matches!(name.as_slice(), b"key" | b"sig") || smells_of_credential(&name)
    })
}

/// `%41` read as `A`; what is no such triple stays.
pub(crate) fn percent_decoded(name: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    let mut bytes = name.bytes();
    while let Some(b) = bytes.next() {
        if b != b'%' {
            out.push(b);
            continue;
        }
        let mut rest = bytes.clone();
        let digits = (rest.next().and_then(hex), rest.next().and_then(hex));
        if let (Some(high), Some(low)) = digits {
            out.push(high * 16 + low);
            bytes = rest;
        } else {
            out.push(b);
        }
    }
    out
}

fn hex(b: u8) -> Option<u8> {
    char::from(b)
        .to_digit(16)
        .and_then(|d| u8::try_from(d).ok())
}

/// What the OpenAI SDKs say of themselves, ten fields in each request: known to be harmless, so
/// that they cost little.
fn is_sdk_word(name: &[u8]) -> bool {
    let word = name.strip_prefix(b"x-stainless-").unwrap_or_default();
    matches!(
        word,
        b"lang"
            | b"package-version"
            | b"os"
            | b"arch"
            | b"runtime"
            | b"runtime-version"
            | b"async"
            | b"retry-count"
            | b"read-timeout"
            | b"timeout"
            | b"raw-response"
            | b"helper-method"
    )
}

/// Names that say they carry a credential, in conventions we do not know by name.
fn smells_of_credential(name: &[u8]) -> bool {
    name.split(|b| matches!(b, b'-' | b'_' | b'.')).any(|word| {
        matches!(
            word,
            b"auth"
                | b"authorization"
                | b"authentication"
                | b"token"
                | b"secret"
                | b"password"
                | b"credential"
                | b"credentials"
                | b"cookie"
                | b"jwt"
                | b"bearer"
                | b"signature"
        )
    }) || [&b"-key"[..], b"_key", b".key", b"apikey", b"accesskey"]
        .iter()
        .chain(&[&b"accesstoken"[..], b"authtoken", b"apitoken", b"secret"])
        .any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests;
