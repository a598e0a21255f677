//! Names in place of a record's ids.
//!
//! Invariant: an id is named by the snapshot that it came with; one that the record does not have, or the snapshot
//! does not know, has no name.
//! Not here: what a consumer shows where there is no name.

use std::sync::Arc;

use super::Record;
use crate::id::EndpointId;
use crate::price::Price;
use crate::snapshot::{Endpoint, Snapshot};

/// What a snapshot calls what a record knows by id.
#[derive(Debug, Clone, Copy, Default)]
pub struct Names<'s> {
    /// Who asked.
    pub workload: Option<&'s Arc<str>>,
    /// The budget group that pays.
    pub group: Option<&'s Arc<str>>,
    /// Which rule took it.
    pub route: Option<&'s Arc<str>>,
    /// Where the last attempt went.
    pub backend: Option<&'s Arc<str>>,
    /// The address there.
    pub endpoint: Option<&'s Endpoint>,
    /// What it is charged by.
    pub price: Option<&'s Arc<Price>>,
}

impl<'s> Names<'s> {
    /// Those of an exchange.
    #[must_use]
    pub fn of(s: &'s Snapshot, record: &Record) -> Self {
        Self {
            workload: record.workload.and_then(|id| Some(&s.workload(id)?.name)),
            group: record.workload.and_then(|id| s.budgets.group(id)),
            route: record.route.and_then(|id| Some(&s.route(id)?.name)),
            backend: record.backend.and_then(|id| Some(&s.backend(id)?.name)),
            endpoint: record.endpoint.and_then(|id| s.endpoint(id)),
            price: record.charge.and_then(|charge| s.prices.get(charge.price)),
        }
    }

    /// Those of an attempt at an endpoint.
    #[must_use]
    pub fn of_endpoint(s: &'s Snapshot, id: EndpointId) -> Self {
        let endpoint = s.endpoint(id);
        Self {
            backend: endpoint.and_then(|e| Some(&s.backend(e.backend)?.name)),
            endpoint,
            ..Self::default()
        }
    }
}
