//! Somebody outside who is asked whether a call may be made.
//!
//! Not here: when it is asked, and what its answer means for the call (`exchange`).

use std::fmt;
use std::net::IpAddr;

use wire::head::RequestHead;

use crate::caller::{Caller, Later};

/// Who is asked.
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// Whether it is asked once the body is read and the call has its route; else as soon as the head is read.
    fn needs_body(&self) -> bool {
        false
    }
    /// Asks. The answer comes when it comes; the host waits no longer than the exchange says.
    fn ask(&self, call: &Asked<'_>) -> Later<Authorization>;
}

/// The call that is asked about.
#[derive(Debug, Clone)]
pub struct Asked<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its head as it came, credential included.
    pub head: &'a RequestHead,
    /// The client's address.
    pub source: IpAddr,
    /// The workload's name.
    pub workload: &'a str,
    /// Who is proven to be behind it; `None` where a header says who calls.
    pub caller: Option<&'a Caller>,
    /// The model, as the client names it; `None` before the body is read, and where it names none.
    pub model: Option<&'a str>,
    /// The route's name; `None` before the body is read, and for a call that takes none.
    pub route: Option<&'a str>,
    /// The names of the backends that the call could go to.
    pub backends: Vec<&'a str>,
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
