//! A worker of a Locust master: a fleet whose engine, web page and reports people already run.
//!
//! The master says how many users to have; the load run has them, counts what they see in [`LocustStats`]s, and gives those
//! to [`Worker::add`]. All else (joining, heartbeats, reports, a master that is away for a while) is done here, on a
//! thread of its own. The master needs a locustfile that declares User classes of the same names.
//! Invariant: nothing that the load run calls waits for the master.
//! Not here: users and requests; a master.

mod delivery;
mod health;
mod machine;
mod message;
mod stats;
mod worker;
mod zmtp;

pub(crate) use machine::{Event, Pace};
pub(crate) use message::Users;
pub(crate) use stats::{LocustStats, Of, Part, Seen};
pub(crate) use worker::{JoinError, Options, Worker};
