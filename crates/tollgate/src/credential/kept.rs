//! What is kept ready at whoever issues it, and the credential that is made of it.
//!
//! Invariant: what has ended is never given; the credential is made once for each token, or keys.

use std::fmt::Debug;
use std::sync::{Arc, RwLock};

use callout::{Issued, TokenEndpoint};
use policy::caller::Later;
use policy::credential::{Credential, Minter};
use policy::secret::Secret;

use super::{ANSWER_WITHIN, Asks};
use crate::services::{MadeState, Maker};

/// How what is issued becomes a credential.
pub(super) trait Carrier<V>: Debug + Send + Sync + 'static {
    fn credential(&self, issued: &V) -> Credential;
    /// Whether another one is fetched after an upstream answered with this status.
    fn is_renewed_after(&self, status: u16) -> bool;
}

/// A minter of what an endpoint gives.
pub(super) fn maker<V: Debug + Send + Sync + 'static>(
    asks: &Asks<'_>,
    endpoint: TokenEndpoint<V>,
    carrier: impl Carrier<V>,
) -> Arc<dyn Maker> {
    Arc::new(Kept {
        account: asks.made.account.clone(),
        endpoint,
        carried: Arc::new(Carried {
            carrier,
            last: RwLock::default(),
        }),
    })
}

#[derive(Debug)]
struct Kept<V, C> {
    account: String,
    endpoint: TokenEndpoint<V>,
    carried: Arc<Carried<V, C>>,
}

impl<V: Debug + Send + Sync + 'static, C: Carrier<V>> Maker for Kept<V, C> {
    fn state(&self) -> Option<MadeState> {
        Some(self.endpoint.state().into())
    }
}

impl<V: Debug + Send + Sync + 'static, C: Carrier<V>> Minter for Kept<V, C> {
    fn account(&self) -> &str {
        &self.account
    }

    fn ready(&self, _: Option<&Secret>) -> Option<Arc<Credential>> {
        let issued = self.endpoint.current();
        issued.map(|issued| self.carried.credential(&issued))
    }

    fn mint(&self, _: Option<&Secret>) -> Later<Option<Arc<Credential>>> {
        let (asked, carried) = (self.endpoint.get(ANSWER_WITHIN), Arc::clone(&self.carried));
        Box::pin(async move {
            let issued = asked.await.ok();
            issued.map(|issued| carried.credential(&issued))
        })
    }

    fn refused(&self, status: u16, _: Option<&Secret>) {
        if self.carried.carrier.is_renewed_after(status) {
            self.endpoint.renew();
        }
    }
}

/// What was issued last, with its credential.
type Last<V> = (Arc<Issued<V>>, Arc<Credential>);

#[derive(Debug)]
struct Carried<V, C> {
    carrier: C,
    last: RwLock<Option<Last<V>>>,
}

impl<V, C: Carrier<V>> Carried<V, C> {
    fn credential(&self, issued: &Arc<Issued<V>>) -> Arc<Credential> {
        // Never waited for: where another worker writes, the credential is made anew.
        if let Ok(last) = self.last.try_read()
            && let Some((of, credential)) = &*last
            && Arc::ptr_eq(of, issued)
        {
            return Arc::clone(credential);
        }
        let credential = Arc::new(self.carrier.credential(&issued.value));
        if let Ok(mut last) = self.last.try_write() {
            *last = Some((Arc::clone(issued), Arc::clone(&credential)));
        }
        credential
    }
}

/// The header that carries a token.
#[derive(Debug)]
pub(super) struct Line {
    header: String,
    scheme: String,
}

impl Line {
    pub(super) fn of(asks: &Asks<'_>) -> Self {
        Self {
            header: asks.made.header.clone(),
            scheme: asks.made.scheme.clone(),
        }
    }
}

impl Carrier<Secret> for Line {
    fn credential(&self, token: &Secret) -> Credential {
        let token = token.expose();
        let mut value = Vec::with_capacity(self.scheme.len() + 1 + token.len());
        if !self.scheme.is_empty() {
            value.extend_from_slice(self.scheme.as_bytes());
            value.push(b' ');
        }
        value.extend_from_slice(token);
        Credential::Header {
            name: self.header.clone(),
            value: Secret::new(value),
        }
    }

    fn is_renewed_after(&self, status: u16) -> bool {
        status == 401
    }
}
