//! AWS: keys that stand in the document, or of a session that is kept ready, and signatures with them.
//!
//! Invariant: keys that have ended sign nothing.

use std::sync::Arc;

use callout::{KeysRequest, SecretSource, SessionKeys, TokenEndpoint, WebIdentity};
use config::{AwsFrom, AwsSource, ContainerToken};
use policy::caller::Later;
use policy::credential::{Credential, Minter, Signable, Signer};
use policy::secret::Secret;
use sigv4::{Keys, Request, Scope};

use super::kept::{self, Carrier};
use super::subject::Subject;
use super::{Asks, url};
use crate::services::Maker;

pub(super) fn maker(asks: Asks<'_>, source: &AwsSource) -> Result<Option<Arc<dyn Maker>>, String> {
    let scope = Scope {
        region: source.region.clone(),
        service: source.service.clone(),
    };
    let account = asks.made.account.clone();
    let request = match &source.from {
        AwsFrom::Keys { id, secret, token } => {
            let keys = Keys {
                access_key_id: id.clone(),
                secret_access_key: secret.expose().to_vec().into(),
                session_token: token.as_ref().map(|of| of.expose().to_vec().into()),
            };
            let signs = Credential::Signer(Box::new(Signs { keys, scope }));
            return Ok(Some(Arc::new(Fixed {
                account,
                signs: Arc::new(signs),
            })));
        }
        AwsFrom::WebIdentity {
            url: at,
            role_arn,
            session_name,
            token,
        } => {
            let Subject { token, asked } = Subject::new(token)?;
            let request = WebIdentity {
                url: url(at)?,
                role_arn: role_arn.clone(),
                session_name: session_name.clone(),
                token,
            };
            match asked {
                None => KeysRequest::WebIdentity(request),
                Some(asked) => KeysRequest::Federated(asked, request),
            }
        }
        AwsFrom::Instance(at) => KeysRequest::Instance(url(at)?),
        AwsFrom::Container { url: at, token } => KeysRequest::Container {
            url: url(at)?,
            token: token.as_ref().map(|token| match token {
                ContainerToken::File(file) => SecretSource::file(file.clone()),
                ContainerToken::Text(text) => SecretSource::fixed(text.clone()),
            }),
        },
    };
    let is_local = matches!(
        source.from,
        AwsFrom::Instance(_) | AwsFrom::Container { .. }
    );
    let client = asks.client(is_local)?;
    let Some(handle) = &asks.handle()? else {
        return Ok(None);
    };
    let endpoint = TokenEndpoint::start_keys(handle, client, request, asks.on_fault());
    Ok(Some(kept::maker(&asks, endpoint, scope)))
}

/// Keys that stand in the document.
#[derive(Debug)]
struct Fixed {
    account: String,
    signs: Arc<Credential>,
}

/// They do not end.
impl Maker for Fixed {}

impl Minter for Fixed {
    fn account(&self) -> &str {
        &self.account
    }

    fn ready(&self, _: Option<&Secret>) -> Option<Arc<Credential>> {
        Some(Arc::clone(&self.signs))
    }

    fn mint(&self, _: Option<&Secret>) -> Later<Option<Arc<Credential>>> {
        Box::pin(std::future::ready(Some(Arc::clone(&self.signs))))
    }

    fn refused(&self, _: u16, _: Option<&Secret>) {}
}

/// What is signed with the keys of a session.
impl Carrier<SessionKeys> for Scope {
    fn credential(&self, keys: &SessionKeys) -> Credential {
        let SessionKeys {
            access_key_id,
            secret_access_key,
            session_token,
        } = keys;
        Credential::Signer(Box::new(Signs {
            scope: self.clone(),
            keys: Keys {
                access_key_id: access_key_id.clone(),
                secret_access_key: secret_access_key.expose().to_vec().into(),
                session_token: Some(session_token.expose().to_vec().into()),
            },
        }))
    }

    /// AWS says 403 of keys that it does not take, or does not take any more.
    fn is_renewed_after(&self, _: u16) -> bool {
        true
    }
}

/// Signs with these keys.
#[derive(Debug)]
struct Signs {
    keys: Keys,
    scope: Scope,
}

impl Signer for Signs {
    fn covers(&self, name: &[u8]) -> bool {
        sigv4::covers(name)
    }

    fn sign(&self, request: &Signable<'_>, unix_s: u64) -> Vec<(&'static str, Secret)> {
        let request = Request {
            method: request.method,
            authority: request.authority,
            path: request.path,
            query: request.query,
            headers: request.headers,
            body: request.body,
        };
        let lines = sigv4::sign(&self.keys, &self.scope, &request, unix_s);
        let secret = |(name, value): sigv4::Line| (name, Secret::new(value.to_vec()));
        lines.into_iter().map(secret).collect()
    }
}
