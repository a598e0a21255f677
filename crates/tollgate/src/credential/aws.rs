//! AWS: keys that stand in the document, or of a session that is kept ready, and signatures with them.
//!
//! Invariant: keys that have ended sign nothing.

use std::sync::{Arc, RwLock};

use callout::{
    ContainerKeys, Handle, InstanceKeys, Issued, KeysRequest, SecretSource, SessionKeys,
    TokenEndpoint, WebIdentity,
};
use config::{AwsFrom, AwsSource, ContainerToken};
use policy::caller::Later;
use policy::credential::{Credential, Minter, Signable, Signer};
use policy::secret::Secret;
use sigv4::{Keys, Request, Scope};

use super::{ANSWER_WITHIN, Asks, url};
use crate::services::{MadeState, Maker};

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
            file,
        } => KeysRequest::WebIdentity(WebIdentity {
            url: url(at)?,
            role_arn: role_arn.clone(),
            session_name: session_name.clone(),
            token: SecretSource::file(file.clone()),
        }),
        AwsFrom::Instance(at) => KeysRequest::Instance(InstanceKeys { url: url(at)? }),
        AwsFrom::Container { url: at, token } => KeysRequest::Container(ContainerKeys {
            url: url(at)?,
            token: token.as_ref().map(|token| match token {
                ContainerToken::File(file) => SecretSource::file(file.clone()),
                ContainerToken::Text(text) => SecretSource::fixed(text.clone()),
            }),
        }),
    };
    let is_local = matches!(
        source.from,
        AwsFrom::Instance(_) | AwsFrom::Container { .. }
    );
    let client = asks.client(is_local)?;
    let Some(handle) = &asks.handle()? else {
        return Ok(None);
    };
    let started =
        |handle: &Handle| TokenEndpoint::start_keys(handle, client, request, asks.on_fault());
    Ok(Some(Arc::new(Session {
        account,
        endpoint: started(handle),
        signers: Arc::new(Signers {
            scope,
            last: RwLock::default(),
        }),
    })))
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

/// Keys of a session.
#[derive(Debug)]
struct Session {
    account: String,
    endpoint: TokenEndpoint<SessionKeys>,
    signers: Arc<Signers>,
}

/// Keys of a session, and the credential that was made of them.
type Last = (Arc<Issued<SessionKeys>>, Arc<Credential>);

/// The signer of the last keys.
#[derive(Debug)]
struct Signers {
    scope: Scope,
    last: RwLock<Option<Last>>,
}

impl Signers {
    fn with(&self, keys: &Arc<Issued<SessionKeys>>) -> Arc<Credential> {
        // Never waited for: where another worker writes, the signer is made anew.
        if let Ok(last) = self.last.try_read()
            && let Some((of, signs)) = &*last
            && Arc::ptr_eq(of, keys)
        {
            return Arc::clone(signs);
        }
        let SessionKeys {
            access_key_id,
            secret_access_key,
            session_token,
        } = &keys.value;
        let signs = Arc::new(Credential::Signer(Box::new(Signs {
            scope: self.scope.clone(),
            keys: Keys {
                access_key_id: access_key_id.clone(),
                secret_access_key: secret_access_key.expose().to_vec().into(),
                session_token: Some(session_token.expose().to_vec().into()),
            },
        })));
        if let Ok(mut last) = self.last.try_write() {
            *last = Some((Arc::clone(keys), Arc::clone(&signs)));
        }
        signs
    }
}

impl Maker for Session {
    fn state(&self) -> Option<MadeState> {
        Some(self.endpoint.state().into())
    }
}

impl Minter for Session {
    fn account(&self) -> &str {
        &self.account
    }

    fn ready(&self, _: Option<&Secret>) -> Option<Arc<Credential>> {
        self.endpoint.current().map(|keys| self.signers.with(&keys))
    }

    fn mint(&self, _: Option<&Secret>) -> Later<Option<Arc<Credential>>> {
        let (asked, signers) = (self.endpoint.get(ANSWER_WITHIN), Arc::clone(&self.signers));
        Box::pin(async move { asked.await.ok().map(|keys| signers.with(&keys)) })
    }

    /// AWS says 403 of keys that it does not take, or does not take any more.
    fn refused(&self, _: u16, _: Option<&Secret>) {
        self.endpoint.renew();
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
