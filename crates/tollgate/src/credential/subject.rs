//! Tokens of other issuers: read from a file, or asked for, right before they are shown.
//!
//! Not here: who is shown them (`google`, `azure`, `aws`).

use std::path::PathBuf;

use callout::{ClientAuth, Federation, OAuthRequest, SecretSource, TokenRequest};
use config::{SubjectToken, TokenSource};
use policy::secret::Secret;
use serde_json::{Map, Value};

use super::oauth;

/// A token as it is shown, and how it is asked for where it stands in no file.
pub(super) struct Subject {
    pub(super) token: SecretSource,
    pub(super) asked: Option<Box<Federation>>,
}

impl Subject {
    pub(super) fn new(written: &SubjectToken) -> Result<Self, String> {
        let federation = match written {
            SubjectToken::File(file, member) => {
                let token = in_file(file.clone(), member.clone());
                return Ok(Self { token, asked: None });
            }
            SubjectToken::Asked(source) => Federation::new(oauth::client_credentials(source)?),
            SubjectToken::AskedOf(issuer, source) => of_issuer(issuer, source)?,
        };
        Ok(Self {
            token: federation.token(),
            asked: Some(Box::new(federation)),
        })
    }

    /// A request that shows it.
    pub(super) fn before(asked: Option<Box<Federation>>, request: TokenRequest) -> TokenRequest {
        match asked {
            None => request,
            Some(asked) => TokenRequest::Federated(asked, Box::new(request)),
        }
    }
}

fn of_issuer(issuer: &str, source: &TokenSource) -> Result<Federation, String> {
    let auth: ClientAuth = oauth::client_auth(source)?;
    let change = |request: &mut OAuthRequest| oauth::ask_for(request, source);
    Federation::of_issuer(issuer, auth, change).map_err(|fault| format!("issuer: {fault}"))
}

/// The token in a file: its whole text, or a member of its JSON.
fn in_file(file: PathBuf, member: Option<String>) -> SecretSource {
    let Some(member) = member else {
        return SecretSource::file(file);
    };
    SecretSource::with(move || {
        let bytes = Secret::new(std::fs::read(&file).ok()?);
        let mut members: Map<String, Value> = serde_json::from_slice(bytes.expose()).ok()?;
        match members.remove(&member) {
            Some(Value::String(token)) => Some(Secret::new(token.into_bytes())),
            _ => None,
        }
    })
}
