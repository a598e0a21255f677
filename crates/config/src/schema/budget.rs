//! `budgets`: amounts over calendar periods.
//!
//! Not here: what they become (`lower`).

use crate::decode::{At, OneOrMany, record};
use crate::scalar::{Amount, Apart, Currency, Every, Money, Name, NameGlob, Pattern, Zone};

record! {
    /// An amount of `tokens`, of `money` or of `calls` of tools for each calendar period; everybody's unless it says whose.
    Budget {
        /// Tokens, of prompt and completion together.
        optional tokens: At<Amount>,
        /// Money, by the prices of the models; an exact decimal of at most nine places.
        optional money: At<Money>,
        /// Calls of tools of `mcp`, one for each that is let through.
        optional calls: At<Amount>,
        /// ISO 4217 code of the money. Default USD.
        optional currency: At<Currency>,
        /// The period: day, week (from Monday) or month.
        required per: At<Every>,
        /// How far its midnight is from UTC's, such as "+02:00". Default +00:00.
        optional zone: At<Zone>,
        /// The workload whose calls it counts.
        optional workload: At<Name>,
        /// The group whose calls it counts.
        optional group: At<Name>,
        /// Models by name, or by the start of a name and a `*`; all unless said.
        optional model: OneOrMany<Pattern>,
        /// Tools whose calls it counts, by whole names such as github__*; all unless said.
        optional tool: OneOrMany<NameGlob>,
        /// Who of them has the amount to itself: key or user; all share it unless said.
        optional r#for: At<Apart>,
    }
}
