//! Prices that are written for a backend's own name of a model.
//!
//! Invariant: what is written for the gate's name counts before; such a price is that of the one backend.
//! Not here: the catalogue, which goes by backends' own names as well (`catalogue`).

use std::collections::HashSet;

use policy::id::BackendId;
use policy::price::Price;
use policy::snapshot::Snapshot;

use super::super::backend::number;
use super::id;

/// A model of the gate's that has no price of its own, and the backend that calls it by a name that has one.
pub(in crate::lower) struct Renamed<'s> {
    pub(super) known: &'s str,
    pub(super) at: BackendId,
    pub(super) backend: &'s str,
}

impl Renamed<'_> {
    /// What a call of it costs there.
    pub(super) fn price(&self, of_own_name: &Price) -> Price {
        let mut price = of_own_name.clone();
        price.id = id(&price, self.known, self.backend).into();
        price
    }
}

/// Those that some backend calls by this name.
pub(in crate::lower) fn renamed<'s>(
    name: &str,
    written: &HashSet<&str>,
    s: &'s Snapshot,
) -> Vec<Renamed<'s>> {
    let mut found = Vec::new();
    for (index, backend) in s.backends.iter().enumerate() {
        let names = backend.model_names.iter();
        for (known, _) in names.filter(|(known, sent)| ***sent == *name && ***known != *name) {
            if !written.contains(&**known) {
                found.push(Renamed {
                    known,
                    at: BackendId(number(index)),
                    backend: &backend.name,
                });
            }
        }
    }
    found
}
