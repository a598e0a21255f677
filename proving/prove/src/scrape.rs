//! What targets say of themselves, once a second: pages of metrics as [`experiment::telemetry`] takes them.
//!
//! Invariant: a target that says nothing gives no sample, and never zeros; it is an event when that begins and when it
//! ends, and keeps no other target from being heard.
//! Not here: questions and gates (`experiment`), what a campaign makes of them (`campaign`).

pub(crate) mod cfs;
pub(crate) mod command;
pub(crate) mod exposition;
pub(crate) mod names;
mod page;
pub(crate) mod scraper;
pub(crate) mod store;
pub(crate) mod targets;
