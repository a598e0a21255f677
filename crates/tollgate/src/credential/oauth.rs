//! Requests to OAuth endpoints, and assertions that prove who the gate is (RFC 7523).
//!
//! Invariant: an assertion is signed anew for each request, lives for ten minutes at most, and has an id that no other
//! one has.

use std::sync::Arc;

use callout::{ClientAuth, Grant, OAuthRequest, SecretSource};
use config::{ClientProof, ExchangeGrant, TokenSource};
use jose::Algorithm;
use jose::sign::{SecureRandom, SigningKey, SystemRandom};
use policy::secret::Secret;
use serde_json::{Map, Value, json};

use super::url;
use crate::services::now_s;

/// How long an assertion lives, seconds.
const ASSERTION_S: u64 = 300;

pub(super) fn client_credentials(source: &TokenSource) -> Result<OAuthRequest, String> {
    request(source, Grant::ClientCredentials)
}

/// One whose token is put in for each caller.
pub(super) fn exchange(
    source: &TokenSource,
    grant: &ExchangeGrant,
) -> Result<OAuthRequest, String> {
    let nobody = || SecretSource::with(|| None);
    let grant = match grant {
        ExchangeGrant::JwtBearer => Grant::JwtBearer {
            assertion: nobody(),
        },
        ExchangeGrant::TokenExchange {
            subject_token_type,
            requested_token_type,
        } => Grant::Exchange {
            subject_token: nobody(),
            subject_token_type: subject_token_type.clone(),
            requested_token_type: requested_token_type.clone(),
        },
    };
    request(source, grant)
}

fn request(source: &TokenSource, grant: Grant) -> Result<OAuthRequest, String> {
    let auth = client_auth(source)?;
    let mut request = OAuthRequest::new(url(&source.url)?, auth, grant);
    ask_for(&mut request, source);
    Ok(request)
}

/// Says in a request what is asked for.
pub(super) fn ask_for(request: &mut OAuthRequest, source: &TokenSource) {
    request.scope.clone_from(&source.scope);
    request.audiences.clone_from(&source.audiences);
    request.resources.clone_from(&source.resources);
    request.fields.clone_from(&source.fields);
}

/// Who the gate is to an endpoint.
pub(super) fn client_auth(source: &TokenSource) -> Result<ClientAuth, String> {
    let id = source.client_id.clone();
    let named = || id.clone().ok_or("has no client_id");
    Ok(match &source.proof {
        ClientProof::Nothing => ClientAuth::Nothing { id },
        ClientProof::Secret { secret, is_posted } => {
            let (id, secret) = (named()?, SecretSource::fixed(secret.clone()));
            if *is_posted {
                ClientAuth::Post { id, secret }
            } else {
                ClientAuth::Basic { id, secret }
            }
        }
        ClientProof::Key {
            pem,
            id: kid,
            algorithm,
        } => {
            let key = key(pem, algorithm.and_then(Algorithm::named))?;
            let mut header = Map::new();
            if let Some(kid) = kid {
                header.insert("kid".to_owned(), kid.as_str().into());
            }
            let assertion = client_assertion(key, header, &named()?, &source.url);
            ClientAuth::Assertion { id, assertion }
        }
    })
}

/// Reads a private key.
pub(super) fn key(pem: &Secret, algorithm: Option<Algorithm>) -> Result<SigningKey, String> {
    let key = SigningKey::from_pem(pem.expose(), algorithm, &SystemRandom::new());
    key.map_err(|fault| fault.to_string())
}

/// That the gate is this client, for an endpoint.
pub(super) fn client_assertion(
    key: SigningKey,
    header: Map<String, Value>,
    client_id: &str,
    audience: &str,
) -> SecretSource {
    let (client_id, audience) = (client_id.to_owned(), audience.to_owned());
    assertion(key, header, move |now| {
        json!({
            "iss": client_id,
            "sub": client_id,
            "aud": audience,
            "iat": now,
            "nbf": now,
            "exp": now + ASSERTION_S,
        })
    })
}

/// A token of the gate's own, signed each time that it is sent, with these claims at that second and an id.
pub(super) fn assertion(
    key: SigningKey,
    header: Map<String, Value>,
    claims: impl Fn(u64) -> Value + Send + Sync + 'static,
) -> SecretSource {
    let (key, chance) = (Arc::new(key), SystemRandom::new());
    SecretSource::with(move || {
        let mut id = [0; 16];
        chance.fill(&mut id).ok()?;
        let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut claims = claims(now_s()).as_object()?.clone();
        claims.insert("jti".to_owned(), id.into());
        let token = key.sign(&header, &claims, &chance).ok()?;
        Some(Secret::new(token.into_bytes()))
    })
}
