//! The thread that asks others, and what of it outlives a reload: issuers' keys, providers where
//! people log in, and what makes credentials.
//!
//! Not here: who is asked and what for (`identity`, `authority`, `credential`), asking (`callout`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use callout::{Handle, OpenId, Service};
use config::{LoginClient, MadeCredential};
use identity::jwt::IssuerKeys;
use policy::credential::Minter;
use policy::secret::Secret;

/// Who has a configuration completed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Moment<'s> {
    /// Nothing is asked of anybody, and what is wrong is a fault.
    Check,
    /// A gate that starts: what is wrong is a fault.
    Start(&'s Services),
    /// A gate that runs: what is wrong closes the source, and is logged.
    Reload(&'s Services),
}

impl<'s> Moment<'s> {
    /// The thread that asks others, where anybody may be asked.
    pub(crate) fn services(self) -> Option<&'s Services> {
        match self {
            Self::Check => None,
            Self::Start(services) | Self::Reload(services) => Some(services),
        }
    }
}

/// The thread, and what it keeps.
#[derive(Debug, Default)]
pub(crate) struct Services {
    service: OnceLock<Service>,
    issuers: Mutex<HashMap<String, Arc<dyn IssuerKeys>>>,
    /// What makes credentials for upstreams.
    pub(crate) makers: Makers,
    /// Where people log in: of each listener, by what is written.
    providers: Mutex<HashMap<&'static str, (LoginClient, OpenId)>>,
    /// What seals sessions where nothing is configured for that.
    session_key: OnceLock<Secret>,
}

impl Services {
    /// The way to the thread, which begins when it is first needed.
    pub(crate) fn handle(&self) -> Result<Handle, String> {
        if let Some(service) = self.service.get() {
            return Ok(service.handle().clone());
        }
        let service = Service::start().map_err(|error| format!("cannot start: {error}"))?;
        Ok(self.service.get_or_init(|| service).handle().clone())
    }

    /// The issuer's keys that go by this name, begun where there are none.
    pub(crate) fn issuer(
        &self,
        name: &str,
        begin: impl FnOnce(&Handle) -> Result<Arc<dyn IssuerKeys>, String>,
    ) -> Result<Arc<dyn IssuerKeys>, String> {
        let mut issuers = self.issuers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = issuers.get(name) {
            return Ok(Arc::clone(known));
        }
        let begun = begin(&self.handle()?)?;
        issuers.insert(name.to_owned(), Arc::clone(&begun));
        Ok(begun)
    }

    /// The provider of a listener's logins; another one where anything else is written of it.
    pub(crate) fn provider(
        &self,
        listener: &'static str,
        written: &LoginClient,
        begin: impl FnOnce(&Handle, &LoginClient) -> Result<OpenId, String>,
    ) -> Result<OpenId, String> {
        let mut providers = self
            .providers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match providers.get(listener) {
            Some((of, known)) if of == written => Ok(known.clone()),
            _ => {
                let begun = begin(&self.handle()?, written)?;
                providers.insert(listener, (written.clone(), begun.clone()));
                Ok(begun)
            }
        }
    }

    /// What seals sessions where nothing is configured for that: drawn once.
    pub(crate) fn session_key(&self, draw: impl FnOnce() -> Secret) -> Secret {
        self.session_key.get_or_init(draw).clone()
    }

    /// Forgets issuers of other names.
    pub(crate) fn keep_only_issuers(&self, names: &[String]) {
        let mut issuers = self.issuers.lock().unwrap_or_else(PoisonError::into_inner);
        issuers.retain(|name, _| names.contains(name));
    }
}

/// What makes credentials now, and of what.
#[derive(Debug, Default)]
pub(crate) struct Makers(Mutex<Vec<(MadeCredential, Arc<dyn Minter>)>>);

impl Makers {
    pub(crate) fn kept(&self, made: &MadeCredential) -> Option<Arc<dyn Minter>> {
        let makers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = makers.iter().find(|(of, _)| of == made);
        found.map(|(_, maker)| Arc::clone(maker))
    }

    pub(crate) fn replace(&self, makers: Vec<(MadeCredential, Arc<dyn Minter>)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = makers;
    }
}

/// Seconds since the Unix epoch.
pub(crate) fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
