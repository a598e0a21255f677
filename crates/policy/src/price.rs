//! Prices of models, as written in the configuration.
//!
//! Invariant: an unknown price is unknown, never zero.
//! Not here: what a call costs. Prices are accepted and validated today; charging comes with
//! the ledger.

use std::collections::BTreeMap;

/// Decimal money: 1e-12 of the currency's unit, so that a price per token is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pico(pub i128);

/// Price of one token in each direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Price {
    /// Per prompt token.
    pub input: Pico,
    /// Per completion token.
    pub output: Pico,
    /// ISO 4217 code.
    pub currency: String,
}

/// The catalogue: model name to price.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prices(pub BTreeMap<String, Price>);
