//! HTTP APIs as servers of tools, by their OpenAPI descriptions (3.0, 3.1 and 3.2): each operation is a tool, and a call of it a request.
//!
//! A crate for its purity: texts in, requests and results out.
//! Invariant: nothing that a description refers to is fetched, and all that is read of it has a bound. An argument is encoded for the
//! one place that it belongs to, so that none adds to a path, a query or a header what its operation does not have there.
//! Not here: where a description comes from (`config`, `tollgate`), who may use which tool ([`policy::mcp`]), sending (`proxy`).

mod answer;
mod api;
mod arguments;
mod base;
mod body;
mod document;
mod encode;
mod operation;
mod parameter;
mod reference;
mod remote;
mod schema;
mod yaml;

pub use api::{Api, Left, Methods, OPERATIONS_MAX};
pub use base::{Server, resolved};
pub use document::{DESCRIPTION_BYTES_MAX, Description, Fault};
pub use remote::Remote;
