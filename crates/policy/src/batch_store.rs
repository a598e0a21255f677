//! Files and batches that a provider keeps under an account that several workloads use: whose they are, and who knows that.
//!
//! Invariant: an id is its owner's alone. Whoever else names it is told that it is not there, as of one that never was; so is everybody
//! where nobody knows whose it is.
//! Not here: reading files and batches (`wire::batch`), what their calls may ask for and cost ([`crate::batches`]), where it is kept
//! whose they are, and sending (the host).

mod absent;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use wire::batch::Api;

pub use self::absent::Nobody;
use crate::caller::{Caller, Later};
use crate::operation::Operation;

/// Purposes that a file may have: no other one holds calls, or is for more than to be read.
pub const PURPOSES: [&str; 4] = ["batch", "user_data", "vision", "assistants"];
/// That of a file of calls.
pub const OF_CALLS: &str = "batch";

/// That a route lets its workloads keep files and have batches made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batches {
    /// Whose API its backend speaks.
    pub api: Api,
    /// Batches of one workload that may be uncharged at once.
    pub unsettled: u32,
    /// What of a model's price the calls of a batch cost, millionths.
    pub price_share: u32,
    /// How often the provider is asked for what becomes of a batch.
    pub every: Duration,
}

/// Whose a file or a batch is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The workload, by name.
    pub workload: Arc<str>,
    /// Who issued the token that its caller brought, where one did: the same name is another's elsewhere.
    pub issuer: Option<Arc<str>>,
}

/// Who had it made, for the row of what it used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Maker {
    /// The id of the key that was brought.
    pub key: Option<Arc<str>>,
    /// The person or service.
    pub user: Option<Arc<str>>,
    /// What else is recorded.
    pub tags: Box<[(Arc<str>, Arc<str>)]>,
}

/// What is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A file.
    File,
    /// A batch.
    Batch,
}

impl Kind {
    /// The word in messages and files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Batch => "batch",
        }
    }
}

/// A file or a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thing {
    /// The backend that has it, by name.
    pub backend: Arc<str>,
    /// Whose API it is of.
    pub api: Api,
    /// Which of the two it is.
    pub kind: Kind,
    /// What its provider calls it.
    pub id: Box<str>,
    /// Whose it is.
    pub owner: Owner,
    /// Who had it made.
    pub maker: Maker,
    /// When, milliseconds since the Unix epoch.
    pub created_unix_ms: u64,
    /// What its calls ask for, each once; of a file that holds none, nothing.
    pub calls: Box<[(Operation, Box<str>)]>,
    /// What its provider said of it last.
    pub object: Bytes,
    /// It is a batch that was not charged yet.
    pub is_unsettled: bool,
}

/// Which page of a list is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Most of them.
    pub limit: usize,
    /// Those behind this one, in the order of the list.
    pub after: Option<Box<str>>,
    /// Those before this one.
    pub before: Option<Box<str>>,
    /// The oldest first.
    pub ascends: bool,
}

/// A page of a list, and whether more follow.
pub type Listed = (Vec<Thing>, bool);

/// Nobody can say whose what is now: the disk does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Away;

/// Why something is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotKept {
    /// Nobody can say.
    Away,
    /// It is another's.
    Taken,
}

/// That a person gave up a batch that cannot be counted: it is charged nothing, and its row says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenUp {
    /// The batch.
    pub thing: Thing,
    /// Who said so.
    pub who: Box<str>,
    /// Why.
    pub why: Box<str>,
    /// When, milliseconds since the Unix epoch.
    pub unix_ms: u64,
}

/// How many batches there are that were not charged yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unsettled {
    /// By workload.
    pub by_workload: Vec<(Arc<str>, u64)>,
    /// When the oldest of them was made, milliseconds since the Unix epoch.
    pub oldest_unix_ms: Option<u64>,
}

/// Knows whose files and batches are, on a disk of its own.
///
/// What it says that it keeps survives a crash. Where it cannot answer it says so, and nobody is given anything.
pub trait BatchStore: Debug + Send + Sync {
    /// Whether a workload may have another one made.
    fn has_room(&self, workload: Arc<str>) -> Later<Result<bool, Away>>;
    /// Notes that one is about to be made, before its provider is asked: it counts from then on, and nobody finds it. Its id is given by
    /// which [`Self::made`] or [`Self::remove`] ends that; a process that ends before leaves an error in the log of the next.
    fn begin(&self, thing: Thing) -> Later<Result<At, Away>>;
    /// It was made: keeps it in the place of what was noted.
    fn made(&self, begun: At, thing: Thing) -> Later<Result<(), NotKept>>;
    /// Keeps a new one, however many there are: it was made.
    fn keep(&self, thing: Thing) -> Later<Result<(), NotKept>>;
    /// The one of this id, if it is this owner's.
    fn find(&self, of: Owner, at: At) -> Later<Result<Option<Thing>, Away>>;
    /// Those of an owner at a backend, and whether more follow; `None` where the page begins at one that is not the owner's.
    fn page(
        &self,
        of: Owner,
        backend: Arc<str>,
        kind: Kind,
        page: Page,
    ) -> Later<Result<Option<Listed>, Away>>;
    /// What its provider says of it now. A batch that was over does not run again, and one that had a result has it: an older answer is
    /// not kept.
    fn told(&self, at: At, object: Bytes) -> Later<Result<(), Away>>;
    /// The batch of this owner's whose result is this file, where that batch was not charged yet.
    fn holds(&self, of: Owner, file: At) -> Later<Result<Option<At>, Away>>;
    /// Forgets it.
    fn remove(&self, at: At) -> Later<Result<(), Away>>;
    /// How many batches of a workload are not charged yet.
    fn unsettled_of(&self, workload: Arc<str>) -> Later<Result<u64, Away>>;
    /// Backends at which batches are that are not charged yet.
    fn unsettled_backends(&self) -> Later<Result<Vec<Arc<str>>, Away>>;
    /// Batches of a backend that are not charged yet, the oldest first, behind this many; at most 100.
    fn unsettled(&self, backend: Arc<str>, behind: usize) -> Later<Result<Vec<Thing>, Away>>;
    /// Batches that are not charged yet and that a person gave up; at most 100.
    fn given_up(&self) -> Later<Result<Vec<GivenUp>, Away>>;
    /// Whether a batch is still to be charged: it was not, and nobody gave it up.
    fn is_due(&self, at: At) -> Later<Result<bool, Away>>;
    /// A batch was charged, or its row says that it never is.
    fn settled(&self, at: At) -> Later<Result<(), Away>>;
    /// The name of the row of what a batch used of a model: the same for ever.
    fn row(&self, of: &Thing, model: &str) -> [u8; 16];
    /// Which of these rows are on disk.
    fn on_disk(&self, rows: Vec<[u8; 16]>) -> Later<Result<Vec<bool>, Away>>;
    /// Whether the asker is the one who charges batches from now on; there is one at a time, until it says that it ends.
    fn claim(&self) -> bool;
    /// Who charges batches ends.
    fn release(&self);
    /// The provider says that this batch is over: it is to be charged soon.
    fn hurry(&self, at: &At);
    /// Batches that are to be charged soon, once each.
    fn hurried(&self) -> Vec<At>;
    /// Who made a batch, where no disk may have that: until it was charged, or the gate ends.
    fn remember_user(&self, at: At, user: Arc<str>);
    /// The same, to charge it.
    fn remembered_user(&self, at: &At) -> Option<Arc<str>>;
    /// For whoever looks at the gate.
    fn stats(&self) -> Unsettled;
}

/// Which file or batch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct At {
    /// The backend that has it, by name.
    pub backend: Arc<str>,
    /// Which of the two it is.
    pub kind: Kind,
    /// What its provider calls it.
    pub id: Box<str>,
}

impl Thing {
    /// Which it is.
    #[must_use]
    pub fn at(&self) -> At {
        At {
            backend: Arc::clone(&self.backend),
            kind: self.kind,
            id: self.id.clone(),
        }
    }
}

impl Owner {
    /// Of a caller of this workload.
    #[must_use]
    pub fn of(workload: &Arc<str>, caller: Option<&Caller>) -> Self {
        Self {
            workload: Arc::clone(workload),
            issuer: caller.and_then(Caller::issuer).map(Arc::from),
        }
    }
}
