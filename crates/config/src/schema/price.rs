//! `prices`: what tokens cost.
//!
//! Not here: what they become (`lower`).

use crate::decode::{At, ListOf, MapOf, OneOrMany, record};
use crate::scalar::{Amount, Currency, Decimal, Name, PricePer, Tag};

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
