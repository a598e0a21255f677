//! The key set of an issuer: fetched in the background, kept while it may be used, fetched again when it is due.
//!
//! Invariant: what is not a key set never replaces one. Whatever key ids callers invent, a set is fetched at most once
//! in [`UNKNOWN_KEY_EVERY`] for them, and all of them wait for that one. A set that was last fetched longer ago than
//! its settings allow is not used.
//! Not here: what the keys are (`Hooks::on_change` has the bytes), and what a caller is told meanwhile.

mod schedule;
mod source;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::{ACCEPT, HeaderValue};
use serde_json::Value;
use tokio::time::Instant;

use crate::client::{Call, Client};
use crate::fault::Fault;
use crate::json;
use crate::service::{Answered, Handle, Running};
use crate::turns::{Turns, back_off};
pub use source::{IssuerFault, KeySource};

/// The longest key set.
pub const KEY_SET_BYTES_MAX: usize = 1 << 20;
/// Unknown key ids cause one fetch in this time.
pub const UNKNOWN_KEY_EVERY: Duration = Duration::from_secs(10);

/// Which key set, and how long it is used.
#[derive(Debug, Clone)]
pub struct JwksSettings {
    /// Where it is.
    pub source: KeySource,
    /// How often it is fetched where the answer does not say (`cache-control: max-age`, from one minute to one hour).
    pub refresh: Duration,
    /// How long it is used after it was last fetched.
    pub stale: Duration,
}

impl JwksSettings {
    /// Fetched every ten minutes, used for a day.
    #[must_use]
    pub fn new(source: KeySource) -> Self {
        Self {
            source,
            refresh: Duration::from_secs(600),
            stale: Duration::from_secs(24 * 60 * 60),
        }
    }
}

/// Takes a new set, or says why it is of no use.
pub type OnChange = Box<dyn Fn(&Bytes) -> Result<(), String> + Send + Sync>;

/// What the host is told, on the thread that asks.
pub struct Hooks {
    /// A set that is not the last one. The host reads and publishes it; what it refuses, with why, counts as a fetch
    /// that failed, and the last good set stays.
    pub on_change: OnChange,
    /// A fetch failed, and why. How often that is told is the host's matter.
    pub on_fault: Box<dyn Fn(&str) + Send + Sync>,
}

/// Whether there is a set to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    /// None was fetched yet.
    Pending,
    /// There is one.
    Available,
    /// The last one is too old.
    Unavailable,
}

/// How it stands, for metrics and pages.
#[derive(Debug, Clone)]
pub struct JwksState {
    /// Whether there is a set to use.
    pub availability: Availability,
    /// Since it was last fetched well.
    pub age: Option<Duration>,
    /// Fetches that ended.
    pub fetches: u64,
    /// Those of them that failed.
    pub failures: u64,
    /// Why the last one failed; none where it did not.
    pub last_error: Option<String>,
}

/// What a fetch for an unknown key id came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refreshed {
    /// The host was given another set since the question: look again.
    Newer,
    /// There is no newer set, or it was fetched a moment ago, or cannot be fetched.
    NoNewer,
}

/// A key set; clones are the same one, and with the last of them it is fetched no more.
#[derive(Debug, Clone)]
pub struct Jwks {
    keeper: Arc<Keeper>,
    handle: Handle,
    _running: Arc<Running>,
}

impl Jwks {
    /// Begins to fetch it.
    #[must_use]
    pub fn start(handle: &Handle, client: Client, settings: JwksSettings, hooks: Hooks) -> Self {
        let keeper = Arc::new(Keeper {
            client,
            settings,
            hooks,
            began: Instant::now(),
            fetched_ms: AtomicU64::new(NEVER),
            state: Mutex::default(),
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

    /// Whether there is a set to use now. It takes no lock.
    #[must_use]
    pub fn availability(&self) -> Availability {
        self.keeper.availability()
    }

    /// How it stands.
    #[must_use]
    pub fn state(&self) -> JwksState {
        let state = self.keeper.state();
        JwksState {
            availability: self.keeper.availability(),
            age: self.keeper.age(),
            fetches: state.fetches,
            failures: state.failures,
            last_error: state.last_error.clone(),
        }
    }

    /// Asks for a newer set, since a caller named a key that this one does not hold.
    pub fn refresh_now(&self, within: Duration) -> Answered<Refreshed> {
        let keeper = Arc::clone(&self.keeper);
        self.handle
            .ask(within, async move { Ok(keeper.refresh().await) })
    }
}

/// No set was fetched yet.
const NEVER: u64 = u64::MAX;

struct Keeper {
    client: Client,
    settings: JwksSettings,
    hooks: Hooks,
    began: Instant,
    /// When a set was last fetched well, in milliseconds after `began`.
    fetched_ms: AtomicU64,
    state: Mutex<State>,
    turns: Turns,
}

#[derive(Default)]
struct State {
    set: Option<Bytes>,
    /// How many sets the host took.
    version: u64,
    fetches: u64,
    failures: u64,
    failures_in_row: u32,
    last_error: Option<String>,
}

impl Keeper {
    /// Fetches the set once, and says how long it is good.
    async fn fetch(&self) -> Duration {
        let fetched = self.fetched().await;
        let told = fetched.and_then(|(set, good_for)| self.take(set).map(|()| good_for));
        let fault = told.as_ref().err().cloned();
        let wait = {
            let mut state = self.state();
            state.fetches += 1;
            let wait = match &told {
                Ok(good_for) => {
                    state.failures_in_row = 0;
                    schedule::next(*good_for, self.settings.refresh)
                }
                Err(_) => {
                    state.failures += 1;
                    state.failures_in_row = state.failures_in_row.saturating_add(1);
                    back_off(state.failures_in_row)
                }
            };
            state.last_error.clone_from(&fault);
            wait
        };
        if let Some(fault) = fault {
            (self.hooks.on_fault)(&fault);
        }
        wait
    }

    async fn fetched(&self) -> Result<(Bytes, Option<Duration>), String> {
        let url = self.settings.source.key_set(&self.client).await?;
        let mut call = Call::new(Method::GET, &url, KEY_SET_BYTES_MAX);
        let kinds = HeaderValue::from_static("application/json, application/jwk-set+json");
        call.headers.insert(ACCEPT, kinds);
        let told = |fault: Fault| format!("the key set: {fault}");
        let reply = self.client.send(&call).await.map_err(told)?;
        if reply.status != http::StatusCode::OK {
            return Err(told(reply.refusal()));
        }
        // What it calls itself is not asked: sets are served from stores that know no types.
        let set = json::object(&reply.body).map_err(told)?;
        if !matches!(set.get("keys"), Some(Value::Array(_))) {
            return Err(told(Fault::Garbage("it has no list of keys")));
        }
        Ok((reply.body, schedule::max_age(&reply.headers)))
    }

    /// Gives a set to the host, where it is another one.
    fn take(&self, set: Bytes) -> Result<(), String> {
        let is_other = self.state().set.as_ref() != Some(&set);
        if is_other {
            (self.hooks.on_change)(&set).map_err(|why| format!("the key set: {why}"))?;
            let mut state = self.state();
            state.set = Some(set);
            state.version += 1;
        }
        let now = u64::try_from(self.began.elapsed().as_millis());
        let now = now.unwrap_or(NEVER - 1).min(NEVER - 1);
        self.fetched_ms.store(now, Ordering::Release);
        Ok(())
    }

    async fn refresh(&self) -> Refreshed {
        let version = self.state().version;
        // One that ran already may have read the set before the key was in it: then the next one, too.
        for _ in 0..2 {
            let Some(turn) = self.turns.join(UNKNOWN_KEY_EVERY) else {
                break;
            };
            let is_fresh = !turn.ran_before();
            turn.end().await;
            if is_fresh || self.state().version > version {
                break;
            }
        }
        if self.state().version > version {
            Refreshed::Newer
        } else {
            Refreshed::NoNewer
        }
    }

    fn age(&self) -> Option<Duration> {
        let fetched = self.fetched_ms.load(Ordering::Acquire);
        let fetched = (fetched != NEVER).then(|| Duration::from_millis(fetched))?;
        Some(self.began.elapsed().saturating_sub(fetched))
    }

    fn availability(&self) -> Availability {
        match self.age() {
            None => Availability::Pending,
            Some(age) if age <= self.settings.stale => Availability::Available,
            Some(_) => Availability::Unavailable,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keeper").field(&self.settings).finish()
    }
}

#[cfg(test)]
mod tests;
