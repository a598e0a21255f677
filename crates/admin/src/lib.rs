//! The admin endpoint: probes, metrics, the configuration in force, and a JSON API that a CLI and a console use.
//!
//! A crate of its own because it *waits*, on sockets that are not the data plane's, and because its resources are a
//! contract: what it shows is plain data that the host fills in ([`Gateway`]).
//! Invariant: nothing here changes anything, and nothing here can show a secret: the document is the redacted one
//! that `config` made. No web page is answered, neither one that says where it comes from nor one that rebinds its
//! name to this host; where a bearer is configured, nobody reads more than probes without it.
//! Not here: the data plane (`proxy`), where levels and metrics come from (the host).

mod access;
mod api;
mod gateway;
mod reply;
mod server;

pub use gateway::{Budget, Config, Gateway, Health, KeyFile, Limit};
pub use server::serve;
