//! Google Cloud: tokens of a service account, of the machine's own, or of whoever another issuer vouches for.
//!
//! Invariant: a token of another issuer is read, or asked for, each time it is sent, and is sent to the endpoint alone that is named with it.

use callout::{
    ClientAuth, Grant, Impersonation, MetadataMethod, MetadataRequest, OAuthRequest, SecretSource,
    TokenRequest,
};
use config::{GoogleFrom, GoogleSource};
use policy::secret::Secret;
use serde_json::{Map, json};

use super::subject::Subject;
use super::{oauth, url};

/// How long an assertion lives, seconds.
const ASSERTION_S: u64 = 3600;
const NOBODY: ClientAuth = ClientAuth::Nothing { id: None };
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const CLOUD_PLATFORM: &str = "https://www.googleapis.com/auth/cloud-platform";

pub(super) fn request(source: &GoogleSource) -> Result<TokenRequest, String> {
    let scope = source.scopes.join(" ");
    Ok(match &source.from {
        GoogleFrom::Metadata(at) => TokenRequest::Metadata(MetadataRequest {
            method: MetadataMethod::Get,
            url: url(at)?,
            headers: vec![("metadata-flavor".to_owned(), fixed("Google"))],
        }),
        GoogleFrom::Key {
            email,
            pem,
            id,
            url: at,
        } => {
            let mut header = Map::new();
            if let Some(id) = id {
                header.insert("kid".to_owned(), id.as_str().into());
            }
            let (email, audience) = (email.clone(), at.clone());
            let assertion = oauth::assertion(oauth::key(pem, None)?, header, move |now| {
                json!({
                    "iss": email,
                    "scope": scope,
                    "aud": audience,
                    "iat": now,
                    "exp": now + ASSERTION_S,
                })
            });
            let grant = Grant::JwtBearer { assertion };
            TokenRequest::OAuth(Box::new(OAuthRequest::new(url(at)?, NOBODY, grant)))
        }
        GoogleFrom::External {
            url: at,
            audience,
            subject_token_type,
            token,
            impersonation,
        } => {
            let Subject { token, asked } = Subject::new(token)?;
            let grant = Grant::Exchange {
                subject_token: token,
                subject_token_type: subject_token_type.clone(),
                requested_token_type: Some(ACCESS_TOKEN.to_owned()),
            };
            let mut request = OAuthRequest::new(url(at)?, NOBODY, grant);
            request.audiences = vec![audience.clone()];
            let request = match impersonation {
                None => {
                    request.scope = Some(scope);
                    TokenRequest::OAuth(Box::new(request))
                }
                Some((to, life)) => {
                    request.scope = Some(CLOUD_PLATFORM.to_owned());
                    let impersonation = Impersonation {
                        url: url(to)?,
                        scopes: source.scopes.clone(),
                        life: *life,
                    };
                    TokenRequest::Impersonated(Box::new(request), impersonation)
                }
            };
            Subject::before(asked, request)
        }
    })
}

fn fixed(text: &str) -> SecretSource {
    SecretSource::fixed(Secret::new(text.as_bytes().to_vec()))
}
