//! A caller's token given for another, so that the upstream sees on whose behalf the gate calls (RFC 8693).
//!
//! Invariant: one exchange runs for one caller's token, and its answer is kept for four fifths of its life, by the
//! SHA-256 of the caller's token. What the endpoint has against one subject, however many tokens of it come, closes it for nobody else.

use std::sync::Arc;
use std::time::Duration;

use policy::secret::Secret;
use sha2::{Digest, Sha256};

use super::{AccessToken, Grant, OAuthRequest, RENEWED_EVERY};
use crate::about_token::subject;
use crate::client::Client;
use crate::fault::Fault;
use crate::secret_source::SecretSource;
use crate::service::{Answered, Handle};
use crate::shared::{Found, Key, Shared};

/// Callers whose tokens are kept.
const CALLERS_MAX: usize = 16_384;

/// The way to an endpoint that gives tokens for those of callers; clones share what is kept.
#[derive(Clone)]
pub struct CallerExchange {
    handle: Handle,
    client: Client,
    request: Arc<OAuthRequest>,
    shared: Arc<Shared<Arc<AccessToken>>>,
}

impl CallerExchange {
    /// One that has asked nothing yet. The `subject_token` of the request's [`Grant::Exchange`] (or the assertion of its
    /// [`Grant::JwtBearer`], for endpoints that exchange by RFC 7523) is replaced by each caller's.
    #[must_use]
    pub fn new(handle: &Handle, client: Client, request: OAuthRequest) -> Self {
        Self {
            handle: handle.clone(),
            client,
            request: Arc::new(request),
            shared: Shared::new(CALLERS_MAX),
        }
    }

    /// The token that is given for a caller's.
    pub fn ask(&self, caller: &Secret, within: Duration) -> Answered<Arc<AccessToken>> {
        let (this, caller) = (self.clone(), caller.clone());
        self.handle.ask(within, async move {
            let key: Key = Sha256::digest(caller.expose()).into();
            let Self { shared, .. } = &this;
            let whose = || subject(caller.expose());
            let question = || this.clone().exchanged(caller.clone());
            shared.get_of(key, whose, question).await
        })
    }

    /// An upstream did not take what was given for a caller's token: the next call exchanges that anew, unless it was
    /// done a moment ago.
    pub fn renew(&self, caller: &Secret) {
        let key: Key = Sha256::digest(caller.expose()).into();
        self.shared
            .forget_if(&key, |token| token.age() >= RENEWED_EVERY);
    }

    async fn exchanged(self, caller: Secret) -> Result<Found<Arc<AccessToken>>, Fault> {
        let mut request = OAuthRequest::clone(&self.request);
        let caller = SecretSource::fixed(caller);
        match &mut request.grant {
            Grant::Exchange { subject_token, .. } => *subject_token = caller,
            Grant::JwtBearer { assertion } => *assertion = caller,
            Grant::ClientCredentials | Grant::AuthorizationCode { .. } => {
                return Err(Fault::Unaskable("its grant takes no token of a caller"));
            }
        }
        let token = request.fetch(&self.client).await?;
        Ok(Found {
            is_yes: true,
            good_for: token.fresh_left(),
            weight: token.value.expose().len(),
            value: Arc::new(token),
        })
    }
}

impl std::fmt::Debug for CallerExchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { request, .. } = self;
        f.debug_tuple("CallerExchange").field(request).finish()
    }
}
