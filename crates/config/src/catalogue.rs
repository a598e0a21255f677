//! What models cost at the providers that make them: a catalogue, the one that is built in or a file like it.
//!
//! Invariant: a price of a catalogue is for calls that go to its provider's own address, and whatever a configuration says of a model
//! goes before it. What is not in it has no price.
//! Not here: reading one (`document`), which backends are whose (`lower`).

use policy::price::Price;

/// The catalogue that is built in.
pub const BUILT_IN: &str = include_str!("catalogue/builtin.yaml");

/// How messages name it.
pub(crate) const BUILT_IN_NAME: &str = "the catalogue that is built in";

/// A model of a catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueModel {
    /// Who makes it and answers calls to it.
    pub provider: String,
    /// The hosts of the provider's API.
    pub hosts: Vec<String>,
    /// As calls name it.
    pub name: String,
    /// Other names of it.
    pub also: Vec<String>,
    /// What it costs, under its name.
    pub price: Price,
    /// The most tokens of a prompt and its answer.
    pub window: Option<u64>,
    /// The most tokens of an answer.
    pub output_max: Option<u64>,
    /// What it takes and gives beside texts.
    pub can: Vec<String>,
    /// Where its price stands.
    pub source: String,
    /// The day on which it stood there.
    pub as_of: String,
}

#[cfg(test)]
mod tests;
