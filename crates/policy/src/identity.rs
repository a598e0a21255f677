//! Who is calling.
//!
//! Today a header names the workload; a verified identity (mTLS, JWT) will be another variant of
//! [`Identity`] answering the same question.
//! Invariant: one value or none; two values are an error, never a choice. An unknown identity is
//! refused before anything is spent on it.
//! Not here: credentials (`credential`), which never identify a workload today.

use std::collections::HashMap;

use wire::head::RequestHead;

use crate::fast_hash::Mix;
use crate::id::WorkloadId;
use crate::refusal::Refusal;

/// How a workload is recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// The value of a request header.
    Header {
        /// Its name, in lower case.
        name: String,
        /// The workload of a request without the header; an unregistered value is still refused.
        default: Option<WorkloadId>,
    },
}

impl Default for Identity {
    fn default() -> Self {
        Self::Header {
            name: "x-workload-app".to_owned(),
            default: None,
        }
    }
}

/// Registered workloads by their names.
pub type Registered = HashMap<Box<[u8]>, WorkloadId, Mix>;

/// The workload that sent this request.
///
/// # Errors
/// [`Refusal::IdentityRepeated`] for several values, [`Refusal::WorkloadNotRegistered`] for none
/// or an unregistered one.
pub fn identify(
    head: &RequestHead,
    identity: &Identity,
    registered: &Registered,
) -> Result<WorkloadId, Refusal> {
    let Identity::Header { name, default } = identity;
    let mut values = head.fields.by_name(name.as_bytes());
    let value = values.next();
    if values.next().is_some() || value.is_some_and(|v| v.contains(&b',')) {
        return Err(Refusal::IdentityRepeated {
            header: name.clone(),
        });
    }
    value
        .map_or(*default, |v| registered.get(v).copied())
        .ok_or_else(|| Refusal::WorkloadNotRegistered {
            header: name.clone(),
        })
}

#[cfg(test)]
mod tests;
