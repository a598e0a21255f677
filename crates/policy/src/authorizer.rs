//! Somebody outside who is asked whether a call may be made.
//!
//! Not here: when it is asked, and what its answer means for the call (`exchange`).

use std::fmt;

use wire::head::RequestHead;

use crate::caller::{Later, Peer};
use crate::record::Record;
use crate::snapshot::Snapshot;

/// Who is asked.
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// Asks. The answer comes when it comes; the host waits no longer than the exchange says.
    fn ask(&self, call: &Asked<'_>) -> Later<Authorization>;
}

/// The call that is asked about; its body has not come yet.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Its head as it came, credential included.
    pub head: &'a RequestHead,
    /// Where it came from.
    pub peer: &'a Peer,
    /// Who calls, and what for.
    pub record: &'a Record,
    /// The names in the record.
    pub snapshot: &'a Snapshot,
}

/// What was answered. The texts are for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authorization {
    /// The call may be made.
    Allowed,
    /// It may not.
    Denied(Box<str>),
    /// Nobody could say.
    Unavailable(Box<str>),
}
