//! Login in a browser: OpenID Connect's authorisation code with PKCE, as pure steps.
//!
//! [`begin`] sends the browser to the provider and gives it a sealed state to keep; [`callback`] takes what the browser
//! brings back, together with that state; [`id_token()`] says who it is, of what the provider gave for the code, and where
//! that is no ID token, [`user_claims()`] does.
//! Invariant: a code is worth nothing without the state of the browser that asked for it (its verifier is sealed in
//! there), and an ID token nothing without that state's nonce. Nothing is kept at the gate between the steps.
//! Not here: asking the provider (`callout`), the session that follows (`session`), pages and cookies (the host).

mod fault;
mod id_token;
mod query;
mod return_path;
mod user;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use policy::secret::Secret;
use serde::{Deserialize, Serialize};

pub use self::fault::LoginFault;
pub use self::id_token::{IdTokenFault, id_token};
pub use self::query::encoded;
pub use self::return_path::{RETURN_BYTES_MAX, ReturnPath};
pub use self::user::user_claims;
use crate::sealed::{NONCE_BYTES, Sealer};

/// How long somebody may take to log in, seconds.
pub const LOGIN_WITHIN_S: u64 = 600;
/// Longest code that is taken, bytes.
const CODE_BYTES_MAX: usize = 4096;

/// The gate as a provider knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// Its issuer, as the discovery document names it.
    pub issuer: String,
    /// The gate's name there.
    pub client_id: String,
    /// Where the browser comes back to, as it is registered there.
    pub redirect_url: String,
    /// What is asked for beside `openid`.
    pub scopes: Vec<String>,
    /// It gives ID tokens; a plain OAuth server does not.
    pub has_id_tokens: bool,
}

/// What is drawn by chance for each login: unguessable, and never twice the same.
#[derive(Clone, Default)]
pub struct Chance {
    /// Ties the callback to the browser.
    pub state: [u8; 32],
    /// Ties the ID token to the login.
    pub nonce: [u8; 32],
    /// Ties the code to the gate (RFC 7636: 43 characters of 256 bits).
    pub verifier: [u8; 32],
    /// For the sealing.
    pub seal: [u8; NONCE_BYTES],
}

/// A login that begins.
#[derive(Debug, PartialEq, Eq)]
pub struct Begun {
    /// Where the browser is sent.
    pub location: String,
    /// What it keeps meanwhile, for [`LOGIN_WITHIN_S`].
    pub state: Secret,
}

/// What the browser keeps, sealed.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    #[serde(rename = "s")]
    state: String,
    #[serde(rename = "n")]
    nonce: String,
    #[serde(rename = "v")]
    verifier: String,
    #[serde(rename = "r")]
    return_path: String,
    #[serde(rename = "e")]
    expires_unix_s: u64,
}

/// Sends a browser to the provider, whose `authorization_endpoint` this is.
#[must_use]
pub fn begin(
    registration: &Registration,
    authorization_endpoint: &str,
    return_path: &ReturnPath,
    chance: &Chance,
    (sealer, unix_s): (&Sealer, u64),
) -> Begun {
    let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let state = State {
        state: text(&chance.state),
        nonce: text(&chance.nonce),
        verifier: text(&chance.verifier),
        return_path: return_path.as_str().to_owned(),
        expires_unix_s: unix_s.saturating_add(LOGIN_WITHIN_S),
    };
    let digest = ring::digest::digest(&ring::digest::SHA256, state.verifier.as_bytes());
    let challenge = text(digest.as_ref());
    let scopes = registration.scopes.iter().map(String::as_str);
    let openid = registration.has_id_tokens.then_some("openid");
    let scopes: Vec<&str> = openid.into_iter().chain(scopes).collect();
    let scopes = scopes.join(" ");
    let mut members = vec![
        ("response_type", "code"),
        ("client_id", &registration.client_id),
        ("redirect_uri", &registration.redirect_url),
        ("scope", &*scopes),
        ("state", &state.state),
        ("nonce", &state.nonce),
        ("code_challenge", &*challenge),
        ("code_challenge_method", "S256"),
    ];
    // What would bring it back is an ID token.
    members.retain(|(name, value)| match *name {
        "nonce" => registration.has_id_tokens,
        "scope" => !value.is_empty(),
        _ => true,
    });
    // A map of texts is always JSON, and a path has its bound: it fits.
    let sealed = serde_json::to_vec(&state).unwrap_or_default();
    let sealed = sealer.seal(&sealed, chance.seal).unwrap_or_default();
    Begun {
        location: query::added(authorization_endpoint, &members),
        state: Secret::new(sealed.into_bytes()),
    }
}

/// What a browser brought back, and is good.
#[derive(Debug, PartialEq, Eq)]
pub struct Returned {
    /// What the provider gives an ID token for.
    pub code: Secret,
    /// What it wants to see with it.
    pub verifier: Secret,
    /// What the ID token must say.
    pub nonce: Secret,
    /// Where the browser goes then.
    pub return_path: ReturnPath,
}

/// Takes what a browser brings back: the query of the callback and the state that it kept. `names_issuer`: the provider
/// says in its document that it names itself here (RFC 9207).
///
/// # Errors
/// [`LoginFault`], which names what is wrong.
pub fn callback(
    query: &[u8],
    kept: Option<&[u8]>,
    registration: &Registration,
    names_issuer: bool,
    (sealer, unix_s): (&Sealer, u64),
) -> Result<Returned, LoginFault> {
    let query = query::Callback::read(query)?;
    let kept = opened(kept, sealer, unix_s)?;
    let brought = query.state.as_deref().unwrap_or_default();
    if !Secret::new(kept.state.into_bytes()).is(brought) {
        return Err(LoginFault::OtherState);
    }
    match &query.iss {
        Some(issuer) if **issuer != *registration.issuer.as_bytes() => {
            return Err(LoginFault::OtherIssuer);
        }
        None if names_issuer => return Err(LoginFault::OtherIssuer),
        _ => {}
    }
    if let Some(error) = &query.error {
        return Err(LoginFault::provider(error, query.description.as_deref()));
    }
    let is_plain = |code: &Vec<u8>| {
        let is_known = (1..=CODE_BYTES_MAX).contains(&code.len());
        is_known && code.iter().all(|byte| (b' '..=b'~').contains(byte))
    };
    let code = query.code.filter(is_plain).ok_or(LoginFault::NoCode)?;
    Ok(Returned {
        code: Secret::new(code),
        verifier: Secret::new(kept.verifier.into_bytes()),
        nonce: Secret::new(kept.nonce.into_bytes()),
        return_path: ReturnPath::read(kept.return_path.as_bytes())?,
    })
}

fn opened(kept: Option<&[u8]>, sealer: &Sealer, unix_s: u64) -> Result<State, LoginFault> {
    let kept = kept.ok_or(LoginFault::NoState)?;
    let text = sealer.open(kept).map_err(|_| LoginFault::NoState)?;
    let state: State = serde_json::from_slice(&text).map_err(|_| LoginFault::NoState)?;
    if unix_s >= state.expires_unix_s {
        return Err(LoginFault::Late);
    }
    Ok(state)
}

#[cfg(test)]
mod tests;
