//! Tokens and rights of Kubernetes, of a fake API server.
//!
//! Not here: a real one (`kube_apiserver`), what an answer of an API server means (`callout::kubernetes`).

mod access;
mod fake;
mod tokens;
