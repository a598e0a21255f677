//! The gate as its users meet it: the real binary, real sockets, real clients, real engines.
//!
//! Invariant: nothing here passes because something was unreachable; every wait has a bound and
//! every bound that is hit is a failure that says so.
//! Not here: what can be shown without a process (unit tests and vectors).

mod client_addresses;
mod admin;
mod bodies;
mod browser;
mod budgets;
mod reload;
mod charging;
mod cli;
mod conditions;
mod connections;
mod corpus;
mod counting;
mod credentials;
mod deploy;
mod drain;
mod failover;
mod faults;
mod framing;
mod harness;
mod http2;
mod identity;
mod ledger;
mod limits;
mod operations;
mod overhead;
mod white_paper;
mod forward_proxy;
mod parser_agreement;
mod fixture;
mod sdk;
mod secrecy;
mod observability;
#[path = "../../../../xtask/skipped.rs"]
mod skipped;
mod smoke;
mod toolbench;
mod traces;
mod upstream_faults;
mod usage;
