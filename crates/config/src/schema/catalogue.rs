//! A catalogue: what models cost at the providers that make them. A document of its own, by the names of providers.
//!
//! Not here: the one that is built in (`catalogue`), what becomes of one (`lower`).

use super::price::Amounts;
use crate::decode::{At, MapOf, OneOrMany, record};
use crate::scalar::{Amount, Day, Host, Model, Name, Page};

record! {
    /// What a provider asks for its models, for a million tokens and in USD.
    Provider {
        /// Where that stands.
        required source: At<Page>,
        /// The day on which it stood there.
        required as_of: At<Day>,
        /// The hosts of its API: what it asks is for calls that go there.
        required hosts: OneOrMany<Host>,
        /// Its models.
        required models: MapOf<Model, Listed>,
    }
}

record! {
    /// What a model costs, and what is known of it.
    Listed of amounts: Amounts {
        /// Other names of the same.
        optional also: OneOrMany<Model>,
        /// The most tokens of a prompt and its answer.
        optional window: At<Amount>,
        /// The most tokens of an answer.
        optional output_max: At<Amount>,
        /// What it takes and gives beside texts, in words such as tools, reasoning, json_schema, images.
        optional can: OneOrMany<Name>,
        /// The day on which its price stood there, where it is another than its provider's.
        optional as_of: At<Day>,
    }
}
