//! A price for tests.
//!
//! Not here: snapshots and records for tests (`sample`, which benches and examples share).

use std::sync::Arc;

use policy::price::{Pico, Price, Rates};

/// So many 1e-12 units for each token.
pub(crate) fn price(currency: &str, pico: i128) -> Price {
    let rate = Pico(pico);
    Price {
        id: Arc::from("p"),
        whose: Arc::from(""),
        currency: Arc::from(currency),
        request: Pico(0),
        rates: Rates::flat(rate, rate),
        tiers: Vec::new(),
    }
}
