//! U6: how the engine's usage is read, and what is sent to obtain it.
//!
//! Invariant: the record says correctly whether usage is reported, estimated or invalid; the client gets the
//! upstream's bytes without the one event that the gate asked for itself.
//! Not here: where streams are split (`upstream_faults`).

mod hostile;
mod refused;
mod reported;
mod requested;
