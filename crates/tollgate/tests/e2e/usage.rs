//! U6: what is read of the engine's usage, and what is sent to get it.
//!
//! Invariant: the record says reported, estimated or invalid, rightly; the client's bytes are the
//! upstream's, but for the one event that the gate asked for itself.
//! Not here: where streams are cut (`upstream_faults`).

mod requested;
mod reported;
