//! A load client that costs less than anything it measures.
//!
//! [`source`] says what is sent, as bytes that nobody joins or parses; [`client`] sends it over HTTP/1.1 or HTTP/2, plain or
//! over TLS; [`observer`] times what comes back at the socket, without decoding it; [`run`] does this when the workload says,
//! on a thread a core with nothing shared, and counts latency from the intended moment too, so that a stalled subject cannot
//! hide its queue.
//!
//! Reason to exist: sharing (races, audits and replays) and weight: nothing here knows a gateway.
//! Invariant: everything is bounded by time, by the number of connections and by memory a connection.
//! Not here: processes, machines, figures about a subject (`prove`); laws of arrivals, statistics (`experiment`).

pub mod client;
pub mod observer;
pub mod run;
pub mod source;
