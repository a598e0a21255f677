//! What every way into the gate stands on: who calls, may it, what is left for it, what is recorded.
//!
//! A protocol is a machine of its own (HTTP inference is [`crate::exchange`]); what two of them need is here, once. A host calls in
//! this order. Each step takes what the one before gave, so that no other order can be written:
//!
//! | step | gives |
//! |---|---|
//! | [`Begun::new`] | a call that came, with the id and the start of its record |
//! | [`Begun::identify`] | a [`Known`] caller, a question to whoever knows ([`Asking`]), or the end |
//! | [`Asking::answered`] | a [`Known`] caller, or the end |
//! | [`Known::authorize`] | an [`Allowed`] call, where the rules of the configuration allow it, or the end |
//! | [`Allowed::admit`] | an [`Admitted`] call, which holds its share of every limit and budget that counts it, or the end |
//! | [`Known::count`], [`Counted::authorize`] | the same in the other order, where work is done to find out what the rules are asked about |
//! | [`Known::ran`], [`Ran::owe`] | an [`Admitted`] call that ran before anybody could let it: a server makes it by itself, say |
//! | [`Admitted::settle`], [`Admitted::release`] | the end: what it used is counted, or it never was |
//!
//! The end is an [`Ended`]: its record is complete, and goes to the host's [`crate::record::Sink`], and to its
//! [`crate::usage_ledger::UsageLedger`] where it was admitted and entered there.
//! Invariant: a refused call holds nothing; an admitted one has to be settled or released.
//! Not here: what a call asks for and costs (its protocol), where it goes ([`crate::attempt`]).

mod authorize;
mod call;
mod demand;
mod identify;
mod presented;
mod reservation;
mod token;

use crate::clock::Mono;
use crate::levels::Levels;
use crate::shard::Shard;
use crate::snapshot::Snapshot;

pub use self::authorize::{Call, asked, authorize};
pub use self::call::{
    Admitted, Allowed, Asking, Begun, Counted, Ended, Identification, Known, Ran,
};
pub use self::demand::{Demand, Most};
pub(crate) use self::identify::{
    CredentialQuestion, Identified, Identity, Unidentified, answered, identify,
};
pub use self::presented::{Http, Presented};
pub use self::reservation::Settled;
pub(crate) use self::reservation::{Reservation, limits_of, reserve, tightest};
pub use self::token::token_of;

/// What an event is judged by, beside the call itself.
pub struct Env<'a> {
    /// The configuration that the call keeps to its end.
    pub snapshot: &'a Snapshot,
    /// The levels of that configuration's limits and budgets.
    pub levels: &'a Levels,
    /// The memory of its worker.
    pub shard: &'a mut Shard,
    /// When the event happened.
    pub now: Mono,
}
