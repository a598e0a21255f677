//! End-to-end tests: the real binary, real sockets, real clients, real engines.
//!
//! Invariant: no test passes because something was unreachable; every wait has a timeout, and a
//! timeout is a failure that names what was awaited.
//! Not here: what can be shown without a process (unit tests and vectors).

mod admin;
mod agents_at_work;
mod balancing;
mod batches;
mod bodies;
mod browser;
mod browser_login;
mod budgets;
mod calibration;
mod charging;
mod cli;
mod client_addresses;
mod client_certificates;
mod conditions;
mod connections;
mod corpus;
mod counting;
mod credentials;
mod deploy;
mod drain;
mod endpoint_picker;
mod failover;
mod fixture;
mod forward_proxy;
mod framing;
mod harness;
mod http2;
mod identity;
mod identity_sources;
mod in_cluster;
mod ledger;
mod limits;
mod manifests;
mod mcp;
mod memory;
mod observability;
mod operations;
mod overhead;
mod parser_agreement;
mod plain_http;
mod realtime;
mod reload;
mod sdk;
mod secrecy;
mod smoke;
mod toolbench;
mod traces;
mod translation;
mod upstream_addresses;
mod upstream_credentials;
mod upstream_faults;
mod usage;
mod white_paper;
