//! A session, sealed into its own id: any gate with the secret serves it, and none keeps anything of it.
//!
//! `base64url(form ‖ nonce ‖ AES-256-GCM(what the servers call theirs, until when) ‖ tag)`. The key is derived once, when a
//! configuration is taken, by HKDF-SHA256 (RFC 5869) of a secret that is chance and no password: there is nothing to stretch at each
//! message. Who may use it is authenticated with it: its principal, its route, and that route's servers with their addresses.
//! Invariant: a session of somebody else, of another route or of other servers opens as little as one that was made up; who brings
//! it learns no more than that.
//! Not here: the secret, chance and the clock (the host).

mod state;

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use policy::secret::Secret;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::digest::{Context, SHA256};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::hmac;
use zeroize::Zeroizing;

use crate::client::Can;
use crate::handshake::Abilities;
use crate::version::Version;

pub use self::state::{STATE_GOOD_S, StateOf};

/// Fewest bytes of a secret: as many as the key has.
pub const SECRET_BYTES_MIN: usize = 32;
/// Bytes of a nonce: at random, so that a key is good for 2³² sessions (NIST SP 800-38D, 8.3).
pub const NONCE_BYTES: usize = 12;
/// Longest id of a server's session that is kept.
pub const SERVER_ID_BYTES_MAX: usize = 1024;
/// Longest id that is looked at.
const SEALED_BYTES_MAX: usize = 48 << 10;

/// The form of what is sealed.
const FORM: u8 = 3;
const TAG_BYTES: usize = 16;
/// Bytes of the mark on a place in a stream.
pub const MARK_BYTES: usize = 12;
/// What tells the key from all others that are derived of the same secret.
const SALT: &[u8] = b"tollgate mcp session";

/// What a client has open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Until when it is good, seconds since the Unix epoch.
    pub until_unix_s: u64,
    /// What its client speaks.
    pub version: Version,
    /// What its client can do for servers that ask in each request.
    pub can: Can,
    /// What it has open where.
    pub servers: Vec<OpenServer>,
}

/// A session with a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenServer {
    /// The server's name.
    pub name: Box<str>,
    /// What it speaks.
    pub version: Version,
    /// What it offers.
    pub abilities: Abilities,
    /// What it calls the session; none where it keeps none.
    pub id: Option<Box<str>>,
}

/// A route with its servers, as sessions are bound to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place([u8; 32]);

impl Place {
    /// The route of this name, with its servers: each by name and address.
    pub fn new<'s>(route: &str, servers: impl Iterator<Item = (&'s str, String)>) -> Self {
        let mut context = Context::new(&SHA256);
        let mut add = |text: &str| {
            context.update(&(text.len() as u64).to_be_bytes());
            context.update(text.as_bytes());
        };
        add(route);
        for (name, address) in servers {
            add(name);
            add(&address);
        }
        Self(bytes(context))
    }
}

fn bytes(context: Context) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (to, from) in bytes.iter_mut().zip(context.finish().as_ref()) {
        *to = *from;
    }
    bytes
}

/// Who may use a session: what proves who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Principal<'p> {
    /// The workload.
    pub workload: &'p str,
    /// By which kind of proof.
    pub by: &'p str,
    /// Who says so of a token: names are told apart within an issuer alone.
    pub issuer: Option<&'p str>,
    /// The key's id.
    pub key: Option<&'p str>,
    /// The person or service.
    pub user: Option<&'p str>,
    /// With which tokens servers are asked as the caller alone, where those are no user's of whom the gate knows.
    pub tokens: Option<OwnTokens>,
}

/// Tokens with which servers are asked as a caller alone: what was opened with them is sealed, and is worth nothing beside others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnTokens([u8; 32]);

impl OwnTokens {
    /// Each with what it is for; none where there are none.
    #[must_use]
    pub fn new<'t>(tokens: impl Iterator<Item = (&'t str, &'t Secret)>) -> Option<Self> {
        let mut tokens = tokens.peekable();
        tokens.peek()?;
        let mut context = Context::new(&SHA256);
        for (of, token) in tokens {
            for part in [of.as_bytes(), token.expose()] {
                context.update(&(part.len() as u64).to_be_bytes());
                context.update(part);
            }
        }
        Some(Self(bytes(context)))
    }
}

/// Why a session is none. For the log: its client is told that there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSession {
    /// Too long, too short, or not base64url.
    Form,
    /// Changed, or of somebody else, other tokens of his own, another route, other servers, or another key.
    Foreign,
    /// It was good.
    Expired,
    /// Its client ended it.
    Ended,
}

impl NoSession {
    /// For the log.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Form => "the session's id has not the form of one",
            Self::Foreign => {
                "the session was changed, or is of another caller, token of a caller's own, route, set of servers or key"
            }
            Self::Expired => "the session has expired",
            Self::Ended => "its client has ended the session",
        }
    }
}

/// Seals sessions, and opens them.
pub struct Sealer {
    key: LessSafeKey,
    /// Says of a place in a stream whose it is.
    marking: hmac::Key,
    /// The one before it.
    marked: Option<hmac::Key>,
    /// The key before it: opens, and seals nothing.
    previous: Option<LessSafeKey>,
    /// Seals what servers want to hear again.
    states: LessSafeKey,
    /// The one before it.
    states_before: Option<LessSafeKey>,
}

impl Sealer {
    /// With keys of these secrets; `None` where they cannot be derived, which is for lengths alone that no key has.
    #[must_use]
    pub fn new(secret: &Secret, previous: Option<&Secret>) -> Option<Self> {
        let (marked, before, states_before) = match previous {
            Some(of) => (
                Some(marking(of)?),
                Some(derive(of, SESSIONS)?),
                Some(derive(of, STATES)?),
            ),
            None => (None, None, None),
        };
        Some(Self {
            key: derive(secret, SESSIONS)?,
            marking: marking(secret)?,
            marked,
            previous: before,
            states: derive(secret, STATES)?,
            states_before,
        })
    }

    /// What shows that the gate itself named this place in the streams of the session with this id.
    #[must_use]
    pub fn mark(&self, session: &[u8], place: &[u8]) -> [u8; MARK_BYTES] {
        mark_by(&self.marking, session, place)
    }

    /// Whether it showed that, be it by the key before.
    #[must_use]
    pub fn is_mark(&self, session: &[u8], place: &[u8], mark: &[u8]) -> bool {
        let keys = [Some(&self.marking), self.marked.as_ref()];
        let mut marks = keys.into_iter().flatten();
        marks.any(|key| Secret::new(mark_by(key, session, place).to_vec()).is(mark))
    }

    /// Seals a session. The nonce must be of good chance, and another one each time. `None` where it has too many servers to fit in a
    /// header.
    #[must_use]
    pub fn seal(
        &self,
        session: &Session,
        place: &Place,
        who: &Principal<'_>,
        nonce: [u8; NONCE_BYTES],
    ) -> Option<String> {
        let mut bytes = Zeroizing::new(vec![FORM]);
        bytes.extend(nonce);
        write(session, &mut bytes)?;
        let (_, within) = bytes.split_at_mut(1 + NONCE_BYTES);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let bound = Aad::from(bound(FORM, place, who));
        let tag = self.key.seal_in_place_separate_tag(nonce, bound, within);
        bytes.extend(tag.ok()?.as_ref());
        let sealed = URL_SAFE_NO_PAD.encode(&*bytes);
        (sealed.len() <= SEALED_BYTES_MAX).then_some(sealed)
    }

    /// The session that this id is, for this caller on this route.
    ///
    /// # Errors
    /// [`NoSession`].
    pub fn open(
        &self,
        id: &[u8],
        place: &Place,
        who: &Principal<'_>,
        unix_s: u64,
    ) -> Result<Session, NoSession> {
        if id.len() > SEALED_BYTES_MAX {
            return Err(NoSession::Form);
        }
        let bytes = URL_SAFE_NO_PAD.decode(id).map_err(|_| NoSession::Form)?;
        let within = bytes.strip_prefix(&[FORM]).ok_or(NoSession::Form)?;
        let (nonce, within) = within
            .split_first_chunk::<NONCE_BYTES>()
            .filter(|(_, within)| within.len() >= TAG_BYTES)
            .ok_or(NoSession::Form)?;
        let bound = bound(FORM, place, who);
        let keys = [Some(&self.key), self.previous.as_ref()];
        let mut opened = keys.into_iter().flatten().filter_map(|key| {
            let nonce = Nonce::assume_unique_for_key(*nonce);
            let mut within = Zeroizing::new(within.to_vec());
            let text = key.open_in_place(nonce, Aad::from(&bound), &mut within);
            read(text.ok()?)
        });
        let session = opened.next().ok_or(NoSession::Foreign)?;
        if unix_s >= session.until_unix_s {
            return Err(NoSession::Expired);
        }
        Ok(session)
    }
}

/// Keys are not shown.
impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").finish_non_exhaustive()
    }
}

/// What keys are for.
const SESSIONS: &[u8] = b"session";
const STATES: &[u8] = b"request state";

fn derive(secret: &Secret, for_what: &[u8]) -> Option<LessSafeKey> {
    let of_secret = Salt::new(HKDF_SHA256, SALT).extract(secret.expose());
    let for_what = [for_what];
    let key = of_secret.expand(&for_what, &AES_256_GCM).ok()?;
    Some(LessSafeKey::new(UnboundKey::from(key)))
}

/// What tells the session with this id from all others, to whoever keeps which were ended: the same whichever keys there are by then.
#[must_use]
pub fn mark_of_session(session: &[u8]) -> [u8; MARK_BYTES] {
    let digest = ring::digest::digest(&SHA256, session);
    let mut mark = [0; MARK_BYTES];
    for (to, from) in mark.iter_mut().zip(digest.as_ref()) {
        *to = *from;
    }
    mark
}

fn mark_by(key: &hmac::Key, session: &[u8], place: &[u8]) -> [u8; MARK_BYTES] {
    let mut signing = hmac::Context::with_key(key);
    signing.update(&(session.len() as u64).to_be_bytes());
    signing.update(session);
    signing.update(place);
    let mut mark = [0; MARK_BYTES];
    for (to, from) in mark.iter_mut().zip(signing.sign().as_ref()) {
        *to = *from;
    }
    mark
}

fn marking(secret: &Secret) -> Option<hmac::Key> {
    let of_secret = Salt::new(HKDF_SHA256, SALT).extract(secret.expose());
    let key = of_secret.expand(&[b"places in streams"], hmac::HMAC_SHA256);
    Some(hmac::Key::from(key.ok()?))
}

/// What is authenticated with a session: each part behind its length, so that no two callers have the same.
fn bound(form: u8, place: &Place, who: &Principal<'_>) -> Vec<u8> {
    let mut bound = Vec::with_capacity(128);
    bound.push(form);
    bound.extend(place.0);
    for part in [
        Some(who.workload),
        Some(who.by),
        who.issuer,
        who.key,
        who.user,
    ] {
        match part {
            Some(part) => {
                bound.extend((part.len() as u64 + 1).to_be_bytes());
                bound.extend(part.as_bytes());
            }
            None => bound.extend(0_u64.to_be_bytes()),
        }
    }
    if let Some(OwnTokens(tokens)) = who.tokens {
        // No part is so long.
        bound.extend(u64::MAX.to_be_bytes());
        bound.extend(tokens);
    }
    bound
}

impl OpenServer {
    /// As it is kept beside its client's own id of it, or in that.
    pub fn write(&self, out: &mut Vec<u8>) -> Option<()> {
        let id = self.id.as_deref().unwrap_or_default();
        out.push(u8::try_from(self.name.len()).ok()?);
        out.extend(self.name.as_bytes());
        out.push(self.version.number());
        out.extend(self.abilities.bits().to_be_bytes());
        out.extend(u16::try_from(id.len()).ok()?.to_be_bytes());
        out.extend(id.as_bytes());
        Some(())
    }

    /// What was written, and what follows it.
    #[must_use]
    pub fn read(text: &[u8]) -> Option<(Self, &[u8])> {
        let (length, rest) = text.split_first()?;
        let (name, rest) = rest.split_at_checked(usize::from(*length))?;
        let ([version], rest) = rest.split_first_chunk()?;
        let (abilities, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (id, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        let id = std::str::from_utf8(id).ok()?;
        let server = Self {
            name: std::str::from_utf8(name).ok()?.into(),
            version: Version::numbered(*version)?,
            abilities: Abilities::of_bits(u16::from_be_bytes(*abilities)),
            id: (!id.is_empty()).then(|| id.into()),
        };
        Some((server, rest))
    }
}

fn write(session: &Session, out: &mut Vec<u8>) -> Option<()> {
    out.extend(session.until_unix_s.to_be_bytes());
    out.push(session.version.number());
    out.push(session.can.bits());
    for server in &session.servers {
        server.write(out)?;
    }
    Some(())
}

fn read(text: &[u8]) -> Option<Session> {
    let (until, text) = text.split_first_chunk()?;
    let ([version, can], mut text) = text.split_first_chunk()?;
    let mut servers = Vec::new();
    while !text.is_empty() {
        let (server, rest) = OpenServer::read(text)?;
        servers.push(server);
        text = rest;
    }
    Some(Session {
        until_unix_s: u64::from_be_bytes(*until),
        version: Version::numbered(*version)?,
        can: Can::of_bits(*can),
        servers,
    })
}

#[cfg(test)]
mod tests;
