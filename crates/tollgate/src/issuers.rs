//! Issuers whose keys are fetched: each once, however often the configuration is loaded.
//!
//! Invariant: keys that were fetched outlive a reload, so that nobody is refused because a configuration changed.
//! Not here: when keys are fetched (`callout`), what they prove (`identity::jwt`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use callout::{Availability, Bounds, Client, Hooks, Jwks, JwksSettings, KeySource, Refreshed, Url};
use config::{CredentialKind, Fetched, Host, JwksSource, LoginClient};
use identity::jwt::IssuerKeys;
use jose::KeySet;
use policy::caller::Later;

use crate::seldom::Seldom;
use crate::services::{FetchedKeys, IssuerState, Services};
use crate::trust::trust;

/// How long a call waits for newer keys: less than policy waits for an answer.
const REFRESH_WITHIN: Duration = Duration::from_millis(1500);
/// How long keys of a provider that cannot be reached are used for logins.
const LOGIN_KEYS_STALE: Duration = Duration::from_secs(24 * 60 * 60);

/// The keys of an issuer; a new one begins to be fetched.
pub(crate) fn issuer(
    services: &Services,
    issuer: &str,
    keys: &JwksSource,
) -> Result<Arc<dyn IssuerKeys>, String> {
    services.issuer(&name(issuer, keys), |handle| {
        Ok(Arc::new(Fetching::start(handle, issuer, keys)?))
    })
}

/// The issuers that a configuration names, as [`Services`] keeps them.
pub(crate) fn named(host: &Host) -> Vec<String> {
    let of_client = |client: &LoginClient| name(&client.issuer, &of_login(client));
    let sources = host.credentials.iter();
    let sources = sources.filter_map(|source| match &source.kind {
        CredentialKind::Jwt(jwt) => Some(name(&jwt.issuer, &jwt.keys)),
        CredentialKind::Login(login) => Some(of_client(&login.client)),
        CredentialKind::Keys(_)
        | CredentialKind::Static(_)
        | CredentialKind::Introspection(_)
        | CredentialKind::TokenReview(_) => None,
    });
    let admin = host.admin_login.as_ref();
    let admin = admin.map(|login| of_client(&login.client));
    sources.chain(admin).collect()
}

/// Where the keys are that sign the ID tokens of people who log in.
pub(crate) fn of_login(written: &LoginClient) -> JwksSource {
    JwksSource::Discovery(Fetched {
        ca_pem: written.ca_pem.clone(),
        stale: LOGIN_KEYS_STALE,
    })
}

/// What tells one way to an issuer's keys from another.
fn name(issuer: &str, keys: &JwksSource) -> String {
    match keys {
        JwksSource::Discovery(how) => format!("{issuer} {how:?}"),
        JwksSource::Url(url, how) => format!("{issuer} {url} {how:?}"),
        JwksSource::File(_) => format!("{issuer} file"),
    }
}

/// Where the keys are.
pub(crate) fn source(issuer: &str, keys: &JwksSource) -> Result<KeySource, String> {
    match keys {
        JwksSource::Url(url, _) => {
            let url = Url::parse(url).map_err(|fault| format!("jwks.url: {fault}"))?;
            Ok(KeySource::Url(url))
        }
        JwksSource::Discovery(_) | JwksSource::File(_) => {
            KeySource::openid(issuer).map_err(|fault| format!("issuer: {fault}"))
        }
    }
}

/// The keys of one issuer, kept by the thread that fetches them.
#[derive(Debug)]
struct Fetching {
    keys: Arc<Held>,
    jwks: Jwks,
    issuer: String,
}

/// The last good keys.
#[derive(Debug, Default)]
struct Held {
    keys: RwLock<Option<Arc<KeySet>>>,
    generation: AtomicU64,
}

impl Fetching {
    fn start(handle: &callout::Handle, issuer: &str, keys: &JwksSource) -> Result<Self, String> {
        let source = source(issuer, keys)?;
        let how = match keys {
            JwksSource::Discovery(how) | JwksSource::Url(_, how) => how,
            JwksSource::File(_) => return Err("keys of a file are not fetched".to_owned()),
        };
        let client = client(how)?;
        let held = Arc::new(Held::default());
        let (taker, named, whose) = (Arc::clone(&held), issuer.to_owned(), issuer.to_owned());
        let seldom = Seldom::default();
        let hooks = Hooks {
            on_change: Box::new(move |bytes| {
                let set = KeySet::parse(bytes).map_err(|fault| fault.to_string())?;
                tell_of(&set, &named);
                if set.is_empty() {
                    return Err("it holds no key that can be used".to_owned());
                }
                taker.put(set);
                Ok(())
            }),
            on_fault: Box::new(move |why| {
                if let Some(times) = seldom.came(Instant::now()) {
                    tracing::warn!(
                        issuer = whose,
                        why,
                        times,
                        see = "docs/troubleshooting.md#the-keys-of-an-issuer-cannot-be-fetched",
                        "the keys of an issuer cannot be fetched"
                    );
                }
            }),
        };
        let mut settings = JwksSettings::new(source);
        settings.stale = how.stale;
        Ok(Self {
            keys: held,
            jwks: Jwks::start(handle, client, settings, hooks),
            issuer: issuer.to_owned(),
        })
    }
}

fn client(how: &Fetched) -> Result<Client, String> {
    let tls = trust(how.ca_pem.as_deref())?;
    Ok(Client::new(&tls, Bounds::default()))
}

/// Says what of a key set is of use.
pub(crate) fn tell_of(set: &KeySet, issuer: &str) {
    for left_out in set.left_out() {
        tracing::warn!(
            issuer,
            key = left_out.kid.as_deref().unwrap_or("-"),
            why = %left_out.why,
            "the gate cannot use a key of the issuer"
        );
    }
    tracing::info!(
        issuer,
        keys = set.len(),
        "the gate took new keys of the issuer"
    );
}

impl Held {
    fn put(&self, set: KeySet) {
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        *keys = Some(Arc::new(set));
        // While nobody reads: whoever sees the number sees the keys.
        self.generation.fetch_add(1, Ordering::SeqCst);
    }
}

impl FetchedKeys for Fetching {
    fn state(&self) -> IssuerState {
        let state = self.jwks.state();
        let keys = self.keys.keys.read();
        let keys = keys.unwrap_or_else(PoisonError::into_inner);
        IssuerState {
            issuer: self.issuer.clone(),
            keys: keys.as_ref().map_or(0, |keys| keys.len()),
            age: state.age,
            are_available: state.availability == Availability::Available,
            is_last_good: state.last_error.is_none(),
            fetches: state.fetches,
            failures: state.failures,
        }
    }
}

impl IssuerKeys for Fetching {
    fn current(&self) -> Result<Arc<KeySet>, String> {
        let issuer = &self.issuer;
        match self.jwks.availability() {
            Availability::Pending => Err(format!("the keys of {issuer} were never fetched")),
            Availability::Unavailable => Err(format!("the keys of {issuer} are too old")),
            Availability::Available => {
                let keys = self
                    .keys
                    .keys
                    .read()
                    .unwrap_or_else(PoisonError::into_inner);
                let keys = keys.clone();
                keys.ok_or_else(|| format!("the keys of {issuer} were never fetched"))
            }
        }
    }

    fn generation(&self) -> u64 {
        let keys = self.keys.generation.load(Ordering::SeqCst);
        // What was proven by keys that are too old now is not proven any more.
        let is_usable = self.jwks.availability() == Availability::Available;
        keys << 1 | u64::from(is_usable)
    }

    fn may_refresh(&self) -> bool {
        true
    }

    fn refresh(&self) -> Later<Result<(), String>> {
        let asked = self.jwks.refresh_now(REFRESH_WITHIN);
        let jwks = self.jwks.clone();
        Box::pin(async move {
            match asked.await {
                Ok(Refreshed::Newer | Refreshed::NoNewer) => {
                    jwks.state().last_error.map_or(Ok(()), Err)
                }
                Err(fault) => Err(fault.to_string()),
            }
        })
    }
}
