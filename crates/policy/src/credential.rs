//! As whom the gate calls upstream: the client's credentials go, exactly one of ours comes.
//!
//! Invariant: no header is forwarded, either way, that is not on a list; what a client names in
//! `connection` can never remove a header that the gate sets.
//! Not here: where the secret comes from (`config`), how it is watched (`tollgate`).

pub mod protocols;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use wire::dialect::{ErrorFormat, MODELS, gemini};
use wire::head::{FieldRef, Head, RequestHead, has_comma, percent_decoded};
pub use wire::head::{Known, KnownSet};

use crate::caller::Later;
use crate::refusal::Refusal;
use crate::secret::Secret;

/// Longest credential of a client that is looked at, bytes.
const TOKEN_BYTES_MAX: usize = 16 << 10;

/// The one credential of an endpoint.
#[derive(Debug, Clone)]
pub enum UpstreamAuth {
    /// The endpoint wants none.
    None,
    /// It is made while the gate runs.
    Minted(Arc<dyn Minter>),
    /// `name: value`, with the name in lower case and the value complete (`Bearer …`).
    Header {
        /// Header name, lower case.
        name: String,
        /// The whole value.
        value: Secret,
    },
}

/// Two that are minted are the same where they are for one account.
impl PartialEq for UpstreamAuth {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Minted(ours), Self::Minted(theirs)) => ours.account() == theirs.account(),
            (Self::Header { name, value }, Self::Header { name: n, value: v }) => {
                name == n && value == v
            }
            _ => false,
        }
    }
}

impl Eq for UpstreamAuth {}

/// Makes the credential that an attempt takes upstream.
pub trait Minter: fmt::Debug + Send + Sync {
    /// Tells it from others: what names the account and who is asked, and no secret.
    fn account(&self) -> &str;
    /// Whether the caller's own token is given for it: that is then `caller` below, where the caller brought one that
    /// was proven, and without it there is no credential.
    fn is_for_caller(&self) -> bool {
        false
    }
    /// The credential, where it is at hand.
    fn ready(&self, caller: Option<&Secret>) -> Option<Arc<Credential>>;
    /// Has one made; `None` where it cannot be had.
    fn mint(&self, caller: Option<&Secret>) -> Later<Option<Arc<Credential>>>;
    /// An upstream answered an attempt that took it with this status, which is 401 or 403.
    fn refused(&self, status: u16, caller: Option<&Secret>);
}

/// A credential that was made while the gate runs.
#[derive(Debug)]
pub enum Credential {
    /// `name: value`, with the name in lower case and the value complete (`Bearer …`).
    Header {
        /// Header name, lower case.
        name: String,
        /// The whole value.
        value: Secret,
    },
    /// Keys, with which each attempt's request is signed.
    Signer(Box<dyn Signer>),
}

/// Signs the request of one attempt as it leaves, after all edits.
pub trait Signer: fmt::Debug + Send + Sync {
    /// Whether a header of this name, in lower case, goes into the signature, where the request has it.
    fn covers(&self, name: &[u8]) -> bool;
    /// The header lines that prove who sends the request; names in lower case. `unix_s`: the wall clock.
    fn sign(&self, request: &Signable<'_>, unix_s: u64) -> Vec<(&'static str, Secret)>;
}

/// What of an attempt's request is signed.
#[derive(Debug, Clone, Copy)]
pub struct Signable<'a> {
    /// The method.
    pub method: &'a str,
    /// `host[:port]`, as the request names it.
    pub authority: &'a str,
    /// The path as it is sent.
    pub path: &'a str,
    /// The query as it is sent, without its `?`.
    pub query: &'a str,
    /// Headers that the signer covers, names in lower case, in the order in which they are sent.
    pub headers: &'a [(Vec<u8>, Vec<u8>)],
    /// The body as it is sent.
    pub body: &'a [Bytes],
}

/// What a request brings to prove who sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given<'h> {
    /// Nothing, or a key in its query, which is no place for one but in Google's API.
    Nothing,
    /// A key or a token: visible ASCII, at most 16 KiB.
    Token(&'h [u8]),
    /// Something that no source could take.
    Unusable,
}

/// The credential that a request brings. Of several there is no first: [`check`] has refused them.
#[must_use]
pub fn given(head: &RequestHead) -> Given<'_> {
    let Some(field) = head.fields.of_any(KEYS).next() else {
        return match head.path() == protocols::REALTIME {
            true => given_by_protocol(head),
            false => given_in_query(head),
        };
    };
    let mut token = field.value;
    if field.known == Known::Authorization {
        match token.split_first_chunk::<7>() {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case(b"bearer ") => token = rest,
            _ => return Given::Unusable,
        }
    }
    of_token(token)
}

fn of_token(token: &[u8]) -> Given<'_> {
    if !token.is_empty() && token.len() <= TOKEN_BYTES_MAX && is_graphic(token) {
        Given::Token(token)
    } else {
        Given::Unusable
    }
}

/// Google's clients may give a key in the query. As for all members there it is neither logged nor sent on.
fn given_in_query(head: &RequestHead) -> Given<'_> {
    if head.query().is_none() || !is_of_google(head.path()) {
        return Given::Nothing;
    }
    let mut members = head.query().unwrap_or_default().split('&');
    let key = members.find_map(|member| member.strip_prefix("key="));
    key.map_or(Given::Nothing, |key| of_token(key.as_bytes()))
}

/// A page can set no header of a WebSocket's: OpenAI's clients there give their key among the sub-protocols.
#[cold]
fn given_by_protocol(head: &RequestHead) -> Given<'_> {
    let key = protocols::keys(head).next();
    key.map_or(Given::Nothing, of_token)
}

/// Whether it is visible ASCII throughout. All of it is looked at, so that many bytes are compared at once.
fn is_graphic(token: &[u8]) -> bool {
    let odd = |byte: &u8| u8::from(!byte.is_ascii_graphic());
    token.iter().fold(0, |found, byte| found | odd(byte)) == 0
}

/// Refuses a request that carries credentials in two places, or one place twice: which of them
/// counts would be a choice, and another parser might choose otherwise.
///
/// # Errors
/// [`Refusal::ConflictingCredentials`].
pub fn check(head: &RequestHead) -> Result<(), Refusal> {
    let first = head.fields.of_any(KEYS).next();
    let in_query = brought_in_query(head);
    if head.fields.has_several(KEYS)
        || in_query > usize::from(first.is_none())
        || first.is_some_and(|field| has_comma(field.value))
    {
        return Err(Refusal::ConflictingCredentials);
    }
    Ok(())
}

/// Path and query of a request, without members of the query that hold a key.
#[must_use]
pub fn target_without_keys(head: &RequestHead) -> Cow<'_, str> {
    let Some(query) = head.query() else {
        return head.path().into();
    };
    if !query.split('&').any(is_key_member) {
        return head.target().into();
    }
    let kept: Vec<&str> = query.split('&').filter(|p| !is_key_member(p)).collect();
    let (path, query) = (head.path(), kept.join("&"));
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{path}{mark}{query}").into()
}

/// In how many places of headers and query a request carries credentials; cookies are not looked at.
#[inline]
pub(crate) fn brought(head: &RequestHead) -> usize {
    head.fields.of_any(KEYS).count() + brought_in_query(head)
}

/// Whether a path is one of Google's API.
fn is_of_google(path: &str) -> bool {
    gemini::Named::of(path).is_some() || gemini::Listed::of(path).is_some()
}

/// The query of plain HTTP is its service's own, whatever its members are called.
#[inline]
fn brought_in_query(head: &RequestHead) -> usize {
    head.query().map_or(0, |query| keys_in(query, head.path()))
}

#[cold]
fn keys_in(query: &str, path: &str) -> usize {
    let is_ours = path.starts_with("/v1/") || is_of_google(path);
    let members = query.split('&').filter(|_| is_ours);
    members.filter(|member| is_key_member(member)).count()
}

/// Of which kinds a request header is that goes upstream: a route's list has none of another one ([`may_be_listed`]).
pub(crate) const MAY_GO: KnownSet = FORWARDED.and(UNLESS_WITHHELD).with(Known::Other);

/// The same of a response header that goes back.
pub const MAY_RETURN: KnownSet = RETURNED.and(OF_APIS).with(Known::Other);

/// Whether a request header goes upstream, to a call of this path below the API's root: what is on the list, what belongs to
/// the API of the call unless the backend withholds it, and what the route adds to them.
///
/// `listed` holds names in lower case that the configuration has found to be harmless.
#[inline]
#[must_use]
pub fn forwards(
    field: &FieldRef<'_>,
    fields: &Head,
    identity: &[u8],
    listed: &[Box<[u8]>],
    (path, withheld): (&str, KnownSet),
) -> bool {
    if FORWARDED.contains(field.known) {
        return true;
    }
    if UNLESS_WITHHELD.contains(field.known)
        && !withheld.contains(field.known)
        && is_of_api(field.known, path)
    {
        return true;
    }
    let is_passed = field.known == Known::Other && is_sdk_word(field.name);
    (is_passed || is_listed(field, listed))
        && field.name != identity
        && !fields.connection_names(field.name)
}

/// Request headers that go upstream whatever a route says.
const FORWARDED: KnownSet = KnownSet::of(&[
    Known::Accept,
    Known::ContentType,
    Known::UserAgent,
    Known::Traceparent,
    Known::Tracestate,
    Known::IdempotencyKey,
]);

/// Request headers that are part of one API: they say in which version it is spoken, and what of it is tried.
pub const OF_APIS: KnownSet = KnownSet::of(&[
    Known::OpenaiBeta,
    Known::AnthropicVersion,
    Known::AnthropicBeta,
]);

/// Those that go upstream unless they are withheld.
const UNLESS_WITHHELD: KnownSet = OF_APIS.with(Known::ContentEncoding);

/// Whether one of them says something to a call of this path: Anthropic's do below its own paths, and where models are listed,
/// which both APIs do at the same place.
#[cold]
pub(crate) fn is_of_api(header: Known, path: &str) -> bool {
    let path = path.strip_prefix('/').unwrap_or(path);
    let is_models = || {
        path.strip_prefix(MODELS)
            .is_some_and(|below| below.is_empty() || below.starts_with('/'))
    };
    matches!(header, Known::OpenaiBeta | Known::ContentEncoding)
        || ErrorFormat::below_root(path) == ErrorFormat::Anthropic
        || is_models()
}

#[inline]
fn is_listed(field: &FieldRef<'_>, listed: &[Box<[u8]>]) -> bool {
    !listed.is_empty() && listed.iter().any(|name| **name == *field.name)
}

/// Whether a response header goes back to the client: what is on the list, and what the route adds to
/// it.
#[inline]
#[must_use]
pub fn returns(field: &FieldRef<'_>, fields: &Head, listed: &[Box<[u8]>]) -> bool {
    if RETURNED.contains(field.known) {
        return true;
    }
    let is_passed = field.known == Known::Other && is_answers_word(field.name);
    (is_passed || is_listed(field, listed)) && !fields.connection_names(field.name)
}

/// Response headers that go back whatever a route says.
const RETURNED: KnownSet = KnownSet::of(&[
    Known::ContentType,
    Known::ContentEncoding,
    Known::CacheControl,
    Known::Date,
    Known::RetryAfter,
]);

/// What clients read of an answer, besides what HTTP itself needs.
fn is_answers_word(name: &[u8]) -> bool {
    matches!(
        name,
        b"accept-ranges"
            | b"content-disposition"
            | b"content-language"
            | b"content-range"
            | b"etag"
            | b"last-modified"
            | b"openai-model"
            | b"openai-processing-ms"
            | b"openai-version"
            | b"request-id"
            | b"retry-after-ms"
            | b"vary"
            | b"x-should-retry"
    )
}

/// Whether a route may add this header, in lower case, to those that pass: it names no credential,
/// identity or client, does not steer a server or a proxy, and belongs to no connection.
#[must_use]
pub fn may_be_listed(name: &str) -> bool {
    const STEERING: &[&str] = &[
        "accel",
        "access",
        "account",
        "authenticated",
        "cert",
        "certificate",
        "clientcert",
        "cluster",
        "connecting",
        "dn",
        "dpop",
        "forwarded",
        "host",
        "identity",
        "ip",
        "location",
        "method",
        "mtls",
        "oidc",
        "original",
        "override",
        "passwd",
        "path",
        "port",
        "principal",
        "proto",
        "pwd",
        "ratelimit",
        "real",
        "redirect",
        "refresh",
        "remote",
        "reproxy",
        "rewrite",
        "scheme",
        "security",
        "send",
        "sendfile",
        "ssl",
        "subject",
        "tls",
        "uri",
        "url",
        "user",
        "userid",
        "userinfo",
        "username",
    ];
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let is_steering = |word: &str| STEERING.contains(&word);
    matches!(
        Known::of(name.as_bytes()),
        Known::Other | Known::AnthropicVersion | Known::AnthropicBeta
    ) && !name.is_empty()
        && name.bytes().all(is_plain)
        && !name.split('-').any(is_steering)
        && !looks_like_credential(name.as_bytes())
}

/// Whether a header of this name, in lower case, may carry a credential of a client's.
#[must_use]
pub(crate) fn may_carry(name: &str) -> bool {
    let known = Known::of(name.as_bytes());
    known == Known::Cookie || KEYS.contains(known) || looks_like_credential(name.as_bytes())
}

/// Whether the configuration may add this member, a plain word, to the query of an upstream: it holds no credential.
#[must_use]
pub fn may_be_queried(name: &str) -> bool {
    !is_key_member(name)
}

/// Headers that hold an API key in some provider's convention.
const KEYS: KnownSet = KnownSet::of(&[
    Known::Authorization,
    Known::XApiKey,
    Known::ApiKey,
    Known::XGoogApiKey,
]);

/// `key=…`, `api-key=…` and their kin in a query, whatever the percent-encoding of the name, and
/// for servers that also split at `;` or read `key[]` as `key`.
fn is_key_member(pair: &str) -> bool {
    pair.split(';').any(|member| {
        let name = member.split('=').next().unwrap_or_default();
        let mut name = percent_decoded(name).to_ascii_lowercase();
        let whole = name.iter().position(|b| *b == b'[');
        name.truncate(whole.unwrap_or(name.len()));
        name.retain(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        matches!(name.as_slice(), b"key" | b"sig") || looks_like_credential(&name)
    })
}

/// What the SDKs say of themselves, ten fields in each request: known to be harmless.
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
            | b"helper"
            | b"poll-helper"
            | b"stream-helper"
            | b"custom-poll-interval"
    )
}

/// Names that say they carry a credential, in conventions we do not know by name.
fn looks_like_credential(name: &[u8]) -> bool {
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
