//! A credential that an upstream takes, from whoever issues it: kept ready, and fetched anew before it ends.
//!
//! Invariant: reading the token waits for nothing; one that has ended is never given. Who asks while there is none waits
//! for the one fetch that runs.
//! Not here: which header it goes into (the host).

mod aws;
mod exchange;
mod federation;
mod grant;
mod impersonation;
mod metadata;
mod moment;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use policy::secret::Secret;
use tokio::time::Instant;

use crate::client::Client;
use crate::fault::Fault;
use crate::service::{Answered, Handle, Running};
use crate::turns::{Turns, back_off};
pub use aws::{KeysRequest, SessionKeys, WebIdentity};
pub use exchange::CallerExchange;
pub use federation::Federation;
pub use grant::{Grant, OAuthRequest};
pub use impersonation::Impersonation;
pub use metadata::{MetadataMethod, MetadataRequest};

/// Asked for while there is none, it is fetched so often at most.
const ASKED_EVERY: Duration = Duration::from_secs(1);
/// After an upstream refused it, it is fetched so often at most.
const RENEWED_EVERY: Duration = Duration::from_secs(10);
/// The least time before its end in which a token is fetched anew, where it lives long enough.
const AHEAD: Duration = Duration::from_secs(60);
/// No token is taken to live longer.
const LIFE_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// What was issued for a while.
#[derive(Debug)]
pub struct Issued<V> {
    /// It.
    pub value: V,
    end: Instant,
    life: Duration,
}

/// A token, as a bearer header has it after `Bearer `: visible ASCII.
pub type AccessToken = Issued<Secret>;

impl<V> Issued<V> {
    fn new(value: V, life: Duration) -> Self {
        let life = life.min(LIFE_MAX);
        Self {
            value,
            end: Instant::now() + life,
            life,
        }
    }

    /// Its life began no earlier than it was asked for, so that it ends no later than this.
    fn asked_for(mut self, at: Instant) -> Result<Self, Fault> {
        self.end = at + self.life;
        if self.left().is_zero() {
            return Err(Fault::Garbage("what it gives has ended before it came"));
        }
        Ok(self)
    }

    /// How long it still lives.
    #[must_use]
    pub fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// How long ago it was issued.
    fn age(&self) -> Duration {
        self.life.saturating_sub(self.left())
    }

    /// Until when of its life it is used without another one being asked for: four fifths, and a minute before its end
    /// where it lives two.
    fn fresh_for(&self) -> Duration {
        let ahead = self.life.checked_sub(AHEAD).filter(|rest| *rest >= AHEAD);
        let share = self.life / 5 * 4;
        ahead.map_or(share, |ahead| share.min(ahead))
    }

    /// How long it is still fresh.
    fn fresh_left(&self) -> Duration {
        self.left().saturating_sub(self.life - self.fresh_for())
    }

    /// In how long another one is asked for, which takes as long to come as this one took.
    fn next_after(&self, took: Duration) -> Duration {
        let least = if self.life < ASKED_EVERY {
            ASKED_EVERY
        } else {
            Duration::ZERO
        };
        self.fresh_left().saturating_sub(took).max(least)
    }
}

/// How a token is asked for.
#[derive(Debug, Clone)]
pub enum TokenRequest {
    /// At an OAuth token endpoint.
    OAuth(Box<OAuthRequest>),
    /// At a metadata service that answers as Google's and Azure's do.
    Metadata(MetadataRequest),
    /// At an OAuth token endpoint, and with that token at one that gives a service account's.
    Impersonated(Box<OAuthRequest>, Impersonation),
    /// With a token of another issuer, which is asked for first.
    Federated(Box<Federation>, Box<TokenRequest>),
}

impl TokenRequest {
    async fn fetch(&self, client: &Client) -> Result<AccessToken, Fault> {
        match self {
            Self::OAuth(request) => request.fetch(client).await,
            Self::Metadata(request) => request.token(client).await,
            Self::Impersonated(request, impersonation) => {
                let first = request.fetch(client).await?;
                impersonation.fetch(client, &first).await
            }
            Self::Federated(federation, request) => {
                federation.fetch(client).await?;
                Box::pin(request.fetch(client)).await
            }
        }
    }
}

/// A token, or what else is issued for a while, that is kept ready; clones are the same one, and with the last of them
/// it is fetched no more.
#[derive(Debug)]
pub struct TokenEndpoint<V = Secret> {
    keeper: Arc<Keeper<V>>,
    handle: Handle,
    _running: Arc<Running>,
}

impl<V> Clone for TokenEndpoint<V> {
    fn clone(&self) -> Self {
        Self {
            keeper: Arc::clone(&self.keeper),
            handle: self.handle.clone(),
            _running: Arc::clone(&self._running),
        }
    }
}

/// How it stands, for metrics and pages.
#[derive(Debug, Clone)]
pub struct TokenState {
    /// How long the token still lives; none where there is none.
    pub left: Option<Duration>,
    /// Failures since the last good fetch.
    pub failures_in_row: u32,
    /// Why the last fetch failed; none where it did not.
    pub last_fault: Option<Fault>,
}

impl TokenEndpoint {
    /// Begins to fetch a token. What fails is told to `on_fault`, on the thread that asks; how often that is passed on is
    /// the host's matter.
    #[must_use]
    pub fn start(
        handle: &Handle,
        client: Client,
        request: TokenRequest,
        on_fault: impl Fn(&Fault) + Send + Sync + 'static,
    ) -> Self {
        let asked = format!("{request:?}");
        let fetch = move || -> Fetching<Secret> {
            let (client, request) = (client.clone(), request.clone());
            Box::pin(async move { request.fetch(&client).await })
        };
        Self::keeping(handle, asked, Box::new(fetch), on_fault)
    }
}

impl TokenEndpoint<SessionKeys> {
    /// Begins to fetch the keys of a session; as [`TokenEndpoint::start`].
    #[must_use]
    pub fn start_keys(
        handle: &Handle,
        client: Client,
        request: KeysRequest,
        on_fault: impl Fn(&Fault) + Send + Sync + 'static,
    ) -> Self {
        let asked = format!("{request:?}");
        let fetch = move || -> Fetching<SessionKeys> {
            let (client, request) = (client.clone(), request.clone());
            Box::pin(async move { request.fetch(&client).await })
        };
        Self::keeping(handle, asked, Box::new(fetch), on_fault)
    }
}

impl<V: Send + Sync + 'static> TokenEndpoint<V> {
    fn keeping(
        handle: &Handle,
        asked: String,
        fetch: Box<Fetch<V>>,
        on_fault: impl Fn(&Fault) + Send + Sync + 'static,
    ) -> Self {
        let keeper = Arc::new(Keeper {
            asked,
            fetch,
            on_fault: Box::new(on_fault),
            current: ArcSwapOption::empty(),
            failures_in_row: AtomicU32::new(0),
            last_fault: Mutex::default(),
            turns: Turns::new(),
        });
        let kept = Arc::clone(&keeper);
        let keep = async move { kept.turns.take(|| kept.fetch()).await };
        Self {
            _running: Arc::new(handle.run(keep)),
            handle: handle.clone(),
            keeper,
        }
    }

    /// The token, where there is one that lives. It waits for nothing and takes no lock.
    #[must_use]
    pub fn current(&self) -> Option<Arc<Issued<V>>> {
        self.keeper.current()
    }

    /// The token, or the one that is about to be there.
    pub fn get(&self, within: Duration) -> Answered<Arc<Issued<V>>> {
        let keeper = Arc::clone(&self.keeper);
        self.handle.ask(within, async move { keeper.get().await })
    }

    /// An upstream did not take the token: another is fetched, unless that was done a moment ago. The present one is
    /// given until then.
    pub fn renew(&self) {
        drop(self.keeper.turns.join(RENEWED_EVERY));
    }

    /// How it stands.
    #[must_use]
    pub fn state(&self) -> TokenState {
        TokenState {
            left: self.current().map(|token| token.left()),
            failures_in_row: self.keeper.failures_in_row.load(Ordering::Relaxed),
            last_fault: self.keeper.last_fault(),
        }
    }
}

type Fetching<V> = Pin<Box<dyn Future<Output = Result<Issued<V>, Fault>> + Send>>;
type Fetch<V> = dyn Fn() -> Fetching<V> + Send + Sync;

struct Keeper<V> {
    /// What is asked for, for `Debug`.
    asked: String,
    fetch: Box<Fetch<V>>,
    on_fault: Box<dyn Fn(&Fault) + Send + Sync>,
    current: ArcSwapOption<Issued<V>>,
    failures_in_row: AtomicU32,
    last_fault: Mutex<Option<Fault>>,
    turns: Turns,
}

impl<V> Keeper<V> {
    /// Fetches the token once, and says when it is to be fetched again.
    async fn fetch(&self) -> Duration {
        let asked = Instant::now();
        let fetched = (self.fetch)().await;
        let fault = fetched.as_ref().err().cloned();
        let mut last = self
            .last_fault
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        last.clone_from(&fault);
        drop(last);
        match fetched {
            Ok(token) => {
                let next_after = token.next_after(asked.elapsed());
                self.current.store(Some(Arc::new(token)));
                self.failures_in_row.store(0, Ordering::Relaxed);
                next_after
            }
            Err(fault) => {
                let failures = self.failures_in_row.load(Ordering::Relaxed);
                let failures = failures.saturating_add(1);
                self.failures_in_row.store(failures, Ordering::Relaxed);
                (self.on_fault)(&fault);
                back_off(failures)
            }
        }
    }

    async fn get(&self) -> Result<Arc<Issued<V>>, Fault> {
        if let Some(token) = self.current() {
            return Ok(token);
        }
        if let Some(turn) = self.turns.join(ASKED_EVERY) {
            turn.end().await;
        }
        let otherwise = || self.last_fault().unwrap_or(Fault::Down);
        self.current().ok_or_else(otherwise)
    }

    fn current(&self) -> Option<Arc<Issued<V>>> {
        let token = self.current.load_full();
        token.filter(|token| token.left() > Duration::ZERO)
    }

    fn last_fault(&self) -> Option<Fault> {
        let last = self.last_fault.lock();
        last.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<V> fmt::Debug for Keeper<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keeper").field(&self.asked).finish()
    }
}

#[cfg(test)]
mod tests;
