//! What the gate asks of outside services: who a caller is, whether it may call, which credential an upstream takes.
//!
//! Invariant: it waits on a thread and a runtime of its own, never on a worker's; a worker hands a question over and
//! gets a future back. Everything has a bound, and whoever cannot be answered is told so, in time.
//! Not here: what an answer means for an exchange (`policy`), what a key set holds and whether a signature is good (the
//! host).

mod address;
mod client;
mod dial;
mod fault;
mod service;
mod tls;
mod url;

#[cfg(test)]
mod fixture;

pub use client::{Bounds, Client, Protocol};
pub use fault::Fault;
pub use service::{Answered, Handle, QUESTIONS_MAX, Service, Unanswered};
pub use tls::{ClientIdentity, Tls, TlsFault};
pub use url::{Url, UrlFault};
