//! Kubernetes' objects, lowered to the document that a person would write.
//!
//! A crate of its own because it is *pure*: texts in, our document and faults out, so that files and an API server are lowered alike.
//! Invariant: an object is honoured, or told: a field that would change what happens is a fault with its file, object and place, one
//! that may be left out is a warning. A Secret's content never stands in the document, which names it as a file.
//! Not here: what the document means, which every check of `config` says again; reading files (`tollgate`).

mod access_log;
mod api_keys;
mod back;
mod backend;
mod backends;
mod certificate;
mod clients;
mod cluster;
mod credential;
mod edits;
mod external;
mod fields;
mod filters;
mod findings;
mod gateway;
mod gateway_config;
mod gateway_tls;
mod gloo;
mod listener;
mod listener_set;
mod listeners;
mod live;
mod load;
mod load_balancer;
mod lower;
mod matching;
mod mode;
mod namespaces;
mod object;
mod origins;
mod plain;
mod pool;
mod pool_route;
mod quantity;
mod quota;
mod reference;
mod refs;
mod route;
mod schema;
mod security;
mod service;
mod slices;
mod target;
mod tools;
mod traffic;
mod tree;
mod trust;

use std::path::{Path, PathBuf};

use config::{Fault, Given};

pub use back::{Manifests, manifests};
pub use live::{Choice, Condition, Gate, Id, Live, Report, Trial, Verdict, live, refusal, status};
pub use load::{Beside, load};
pub use lower::lower;
pub use origins::Origins;

/// A file of objects, or of ours.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// Where it is.
    pub file: &'a Path,
    /// What it says.
    pub text: &'a str,
}

/// What objects come to.
#[derive(Debug)]
pub struct Lowered {
    /// Our document.
    pub document: String,
    /// Files that it names, relative to it.
    pub given: Vec<Given>,
    /// Which Secret or `ConfigMap` each of them is of, in the same order.
    pub given_of: Vec<String>,
    /// Which object says what of the document.
    pub origins: Origins,
    /// What is left out.
    pub warnings: Vec<Fault>,
}

/// What is wrong with objects.
#[derive(Debug)]
pub struct Refused {
    /// At least one.
    pub faults: Vec<Fault>,
    /// What would be left out.
    pub warnings: Vec<Fault>,
}

/// Whether a text is of Kubernetes' objects: one of its documents says `apiVersion` and `kind`.
#[must_use]
pub fn is_manifest(text: &str) -> bool {
    // Most texts that are not are known without being read.
    if !text.contains("apiVersion") || !text.contains("kind") {
        return false;
    }
    match config::parse_all(text) {
        Ok(documents) => documents.iter().any(object::is_object),
        // What is wrong with it is told of it as of objects.
        Err(_) => text.lines().any(|line| line.starts_with("apiVersion:")),
    }
}

/// Where a key of an object stands as a file, as seen from the document. No two have the same place: names have no `/`.
fn file_of(kind: &str, namespace: &str, name: &str, key: &str) -> PathBuf {
    let folder = match kind {
        "Secret" => "secrets",
        "ConfigMap" => "config-maps",
        "MCPRoute" => "mcp-routes",
        _ => "policies",
    };
    [folder, namespace, name, key].iter().collect()
}

#[cfg(test)]
mod tests;
