//! `prices`: what tokens cost.
//!
//! Not here: what they become (`lower`).

use serde_json::json;

use crate::decode::{
    At, Decode, Defs, Field, Findings, ListOf, MapOf, OneOrList, OneOrMany, record,
};
use crate::node::{Node, Value};
use crate::scalar::{Amount, CatalogueAt, Currency, Decimal, Model, Name, PricePer, Tag};

/// Prices by model, and the catalogue that knows more.
pub(crate) struct PriceList {
    pub(crate) catalogue: Field<At<CatalogueAt>>,
    pub(crate) models: MapOf<Model, OneOrList<Price>>,
}

const CATALOGUE: &str = "catalogue";

impl Decode for PriceList {
    fn decode(node: &Node, path: &str, findings: &mut Findings) -> Option<Self> {
        let Value::Map(entries) = &node.value else {
            MapOf::<Model, OneOrList<Price>>::decode(node, path, findings)?;
            return None;
        };
        // A mapping is the price of a model of that name.
        let is_catalogue = |key: &str, node: &Node| {
            key == CATALOGUE && !matches!(node.value, Value::Map(_) | Value::List(_))
        };
        let (mut catalogue, mut models) = (Field::Absent, node.clone());
        if let Some(entry) = entries.iter().find(|e| is_catalogue(&e.key, &e.node)) {
            let path = format!("{path}.{CATALOGUE}");
            catalogue = match At::decode(&entry.node, &path, findings) {
                Some(at) => Field::Is(at),
                None => Field::Bad,
            };
            if let Value::Map(entries) = &mut models.value {
                entries.retain(|entry| entry.key != CATALOGUE);
            }
            if entries.len() == 1 {
                let models = MapOf(Vec::new());
                return Some(Self { catalogue, models });
            }
        }
        let models = MapOf::decode(&models, path, findings)?;
        Some(Self { catalogue, models })
    }

    fn schema(defs: &mut Defs) -> serde_json::Value {
        let mut schema = MapOf::<Model, OneOrList<Price>>::schema(defs);
        if let Some(members) = schema.as_object_mut() {
            let mut catalogue = At::<CatalogueAt>::schema(defs);
            if let Some(members) = catalogue.as_object_mut() {
                let about =
                    "What the models of providers cost at their own addresses: builtin, or a file.";
                members.insert("description".into(), about.into());
            }
            members.insert("properties".into(), json!({ CATALOGUE: catalogue }));
        }
        schema
    }
}

impl Field<PriceList> {
    /// The models that have prices of their own; nothing where nothing is written.
    pub(crate) fn items(&self) -> &[(At<Model>, Option<OneOrList<Price>>)] {
        self.get().map_or(&[], |list| &list.models.0)
    }
}

record! {
    /// What calls to a model cost; exact decimals. Its name is the one that goes upstream.
    Price of amounts: Amounts {
        /// Whose calls it is for, where it is not everybody's; of a list, the first that is for a call is what it costs.
        optional r#for: PriceFor,
        /// For how many tokens: 1, 1K or 1M. Default 1M.
        optional per: At<PricePer>,
        /// ISO 4217 code. Default USD.
        optional currency: At<Currency>,
        /// What it costs at a backend, by the backend's name, in place of all the above.
        optional at: MapOf<Name, PriceAt>,
    }
}

record! {
    /// Whose calls a price is for: who fits all that is said.
    PriceFor {
        /// One of these workloads.
        optional workload: OneOrMany<Name>,
        /// A workload of one of these `groups`.
        optional group: OneOrMany<Name>,
        /// With one of these keys of the gate's own, by their ids.
        optional key: OneOrMany<Name>,
        /// With one of these tags, such as team=research.
        optional tag: OneOrMany<Tag>,
        /// While a budget has used more than an amount of its period.
        optional volume: PriceVolume,
    }
}

record! {
    /// What has to be used of a budget before a price is for a call.
    PriceVolume {
        /// The name of a budget of tokens.
        required budget: At<Name>,
        /// It is for calls that end when more tokens than this are used of the budget's period.
        required above: At<Amount>,
    }
}

record! {
    /// What calls to a model cost at one backend.
    PriceAt of amounts: Amounts {
        /// For how many tokens; as the model's unless said.
        optional per: At<PricePer>,
        /// ISO 4217 code; as the model's unless said.
        optional currency: At<Currency>,
    }
}

record! {
    /// What is paid for a call.
    Amounts of rates: Rates {
        /// Of each call that was answered, whatever its tokens. Default 0.
        optional request: At<Decimal>,
        /// Other prices for the whole of a call with a long prompt.
        optional tiers: ListOf<Tier>,
    }
}

record! {
    /// Prices of calls with long prompts.
    Tier {
        /// It is for calls whose prompt has more tokens than this.
        required above: At<Amount>,
    }
    and rates: Rates
}

record! {
    /// What is paid for tokens.
    Rates {
        /// Of prompt tokens.
        required input: At<Decimal>,
        /// Of completion tokens.
        required output: At<Decimal>,
        /// Of prompt tokens that the engine had cached; as `input` unless said.
        optional cached_input: At<Decimal>,
        /// Of prompt tokens written to a cache that keeps them five minutes; as `input` unless said.
        optional cache_write_5m: At<Decimal>,
        /// Of prompt tokens written to a cache that keeps them an hour; as `input` unless said.
        optional cache_write_1h: At<Decimal>,
        /// Of audio tokens of the prompt; as `input` unless said.
        optional audio_input: At<Decimal>,
        /// Of completion tokens spent on reasoning; as `output` unless said.
        optional reasoning: At<Decimal>,
        /// Of audio tokens of the completion; as `output` unless said.
        optional audio_output: At<Decimal>,
    }
}
