//! The admin endpoint: probes, metrics, the configuration in force, and a JSON API that a CLI and a console use.
//!
//! A crate of its own because it *waits*, on sockets that are not the data plane's, and because its resources are a
//! contract: what it shows is plain data that the host fills in ([`Gateway`]).
//! Invariant: nothing here can show a secret, but that of a key to who has it made: the document is the redacted one
//! that `config` made. No page of another origin is answered, nor one that rebinds its name to this host; nothing is
//! changed for who brings no credential.
//! Not here: the data plane (`proxy`), where levels, metrics and keys come from (the host).

mod access;
mod api;
mod body;
mod gateway;
pub mod html;
mod keys;
mod login;
mod reply;
mod server;

pub use gateway::{Budget, Changed, Config, Gateway, Health, KeyFault, KeyFile, Limit, People};
pub use server::serve;
