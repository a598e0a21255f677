//! What the endpoint asks of the running gate, and the resources that it shows.
//!
//! What waits for a disk is a plain function, and is called beside the runtime.
//! Invariant: field names are a contract (docs/operations.md): one that is there stays, with its unit and its
//! meaning; amounts are whole numbers of the unit that stands beside them.
//! Not here: paths and statuses (`server`, `api`).

use std::sync::Arc;

use policy::admin::{Access, Person};
use policy::login::Login;
use policy::secret::Secret;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The gate behind the endpoint. What is asked is answered as it is now.
pub trait Gateway: Send + Sync + 'static {
    /// Who is answered.
    fn access(&self) -> Arc<Access>;
    /// People who log in, where they may.
    fn people(&self) -> Option<Arc<dyn People>>;
    /// How it is.
    fn health(&self) -> Health;
    /// The configuration in force.
    fn config(&self) -> Config;
    /// Where the limits stand.
    fn limits(&self) -> Vec<Limit>;
    /// Where the budgets stand in their running periods.
    fn budgets(&self) -> Vec<Budget>;
    /// The ledger's state, where there is a ledger.
    fn ledger(&self) -> Option<Value>;
    /// How the gate's counts stand to those of engines, where the gate counts.
    fn tokens(&self) -> Option<Value>;
    /// Servers of tools, what they list and what each workload sees, where the configuration has such servers.
    fn mcp(&self) -> Option<Value>;
    /// The page for Prometheus.
    fn metrics(&self) -> impl Future<Output = String> + Send;
    /// Reads the configuration anew, and gives its version. It waits for files.
    ///
    /// # Errors
    /// Why it was refused, for people.
    fn reload(&self) -> Result<String, String>;
    /// Begins to stop the gate.
    fn drain(&self);

    /// What a new key is to be, as JSON says it.
    type NewKey: DeserializeOwned + Send + 'static;
    /// How a key is rotated, as JSON says it.
    type Rotation: DeserializeOwned + Default + Send + 'static;
    /// What of a key is to change, as JSON says it.
    type KeyChange: DeserializeOwned + Send + 'static;
    /// At most so many keys in the order made, from the one after an id. This and what follows waits for a file.
    ///
    /// # Errors
    /// [`KeyFault`], as of all of these.
    fn keys(&self, after: Option<&str>, most: usize) -> Result<Vec<Value>, KeyFault>;
    /// One key.
    ///
    /// # Errors
    /// [`KeyFault`].
    fn key(&self, id: &str) -> Result<Value, KeyFault>;
    /// Makes a key.
    ///
    /// # Errors
    /// [`KeyFault`].
    fn create_key(&self, wanted: Self::NewKey) -> Result<Changed, KeyFault>;
    /// Changes what a key may.
    ///
    /// # Errors
    /// [`KeyFault`].
    fn change_key(&self, id: &str, change: Self::KeyChange) -> Result<Changed, KeyFault>;
    /// Gives a key another secret.
    ///
    /// # Errors
    /// [`KeyFault`].
    fn rotate_key(&self, id: &str, how: Self::Rotation) -> Result<Changed, KeyFault>;
    /// Ends a key for good.
    ///
    /// # Errors
    /// [`KeyFault`].
    fn revoke_key(&self, id: &str) -> Result<Changed, KeyFault>;
}

/// People who log in with a browser. What they keep meanwhile is theirs: nothing of them is kept here.
pub trait People: Login {
    /// Where browsers reach the endpoint, as they write it: scheme, host and port.
    fn origin(&self) -> &str;
    /// The path to which the provider sends them back.
    fn callback(&self) -> &str;
    /// Whose session the value of the session's cookie is.
    ///
    /// # Errors
    /// Why it is none, for the log.
    fn who(&self, session: &[u8]) -> Result<Person, &'static str>;
}

/// A key that was changed.
#[derive(Debug)]
pub struct Changed {
    /// As it is now, with its `id` and its `workload`, and without a secret or a hash.
    pub key: Value,
    /// Its new secret.
    pub secret: Option<Secret>,
    /// Whether the running gate has taken the change.
    pub is_in_force: bool,
}

/// Why nothing was done with a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyFault {
    /// No source of identities has keys.
    #[error(
        "the gate has no keys of its own; write identity: [ {{ keys: {{ file: keys.jsonl }} }} ]"
    )]
    NotConfigured,
    /// There is no key of this id.
    #[error("there is no key {0:?}; a list of the keys shows those there are")]
    Unknown(String),
    /// What is asked for cannot be.
    #[error("{0}")]
    Wrong(String),
    /// The key of this id is revoked.
    #[error("the key {0} is revoked; make another")]
    Revoked(String),
    /// The secret that the key had before its present one is still good, and would end at once.
    #[error(
        "the key {id} has an older secret that is good until {until}; another rotation ends it at once: wait until then, or force it (`--force` of the command, `force: true` of the API)"
    )]
    Rotating {
        /// Of the key.
        id: String,
        /// When it ends by itself, as a date.
        until: String,
    },
    /// The file of keys cannot be read or changed.
    #[error("{0}")]
    Unavailable(String),
}

/// How the gate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Health {
    /// Its workers run.
    pub is_alive: bool,
    /// It takes new exchanges.
    pub is_ready: bool,
    /// It was told to stop, and ends what is in flight.
    pub is_draining: bool,
    /// Whether the ledger's disk takes rows; `None` where there is no ledger.
    pub ledger_available: Option<bool>,
}

impl Health {
    /// One word: `ok`, `draining` or `unavailable`.
    pub(crate) const fn status(self) -> &'static str {
        if self.is_ready { "ok" } else { self.unwell() }
    }

    /// The word where it is not well.
    pub(crate) const fn unwell(self) -> &'static str {
        if self.is_draining {
            "draining"
        } else {
            "unavailable"
        }
    }
}

/// The configuration in force.
#[derive(Debug, Clone)]
pub struct Config {
    /// Short hash of its content.
    pub version: String,
    /// The document, with secrets redacted.
    pub document: Arc<Value>,
    /// Files of keys, which the version says nothing of.
    pub key_files: Vec<KeyFile>,
}

/// A file of keys as it was last read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyFile {
    /// Which source of identities it is of, such as `identity[0]`.
    pub source: String,
    /// Keys in it, revoked ones included.
    pub keys: usize,
    /// Short hash of its content; none where it is not well, and nobody is let in by it.
    pub version: Option<String>,
}

/// One limit of one workload on one route.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limit {
    /// Whose.
    pub workload: String,
    /// On which route.
    pub route: String,
    /// `requests` or `tokens`.
    pub unit: &'static str,
    /// Units refilled over one window.
    pub amount: u64,
    /// The window.
    pub window_seconds: f64,
    /// Units that a full bucket holds.
    pub burst: u64,
    /// How it counts: `bucket` or `rolling`.
    pub window: &'static str,
    /// Units left; 0 while in debt, `null` where each key or user has a bucket of its own.
    pub remaining: Option<u64>,
    /// Time until the bucket is full again.
    pub full_in_seconds: Option<f64>,
    /// Who has the bucket to itself: `workload`, `key` or `user`.
    pub r#for: &'static str,
}

/// One budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Budget {
    /// As configured.
    pub name: String,
    /// `tokens`, or `nano_units`: 1e-9 of the currency's unit.
    pub unit: &'static str,
    /// ISO 4217 code, where it counts money.
    pub currency: Option<String>,
    /// Units that a period has.
    pub amount: u64,
    /// Units spent and reserved in the running period; `null` where each key or user has the amount to itself.
    pub held: Option<u64>,
    /// Units left of it.
    pub remaining: Option<u64>,
    /// Calls of the period that it had no room for.
    pub refused_calls: u64,
    /// `day`, `week` or `month`.
    pub period: &'static str,
    /// When the running period began.
    pub period_starts_unix_ms: u64,
    /// When the next one begins.
    pub period_ends_unix_ms: u64,
    /// Whose calls it counts; `null` for everybody's.
    pub workloads: Option<Vec<String>>,
    /// Who of them has the amount to itself: `key` or `user`; `null` where they share it.
    pub r#for: Option<&'static str>,
}
