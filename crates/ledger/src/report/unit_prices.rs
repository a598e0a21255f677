//! What a price comes to for a million tokens, in words.
//!
//! Invariant: every kind that costs something else than the kinds before it is told.
//! Not here: where the words stand (`statement`), what is charged (`prices`).

use super::decimal;
use super::words::grouped;
use crate::prices::KnownPrice;

/// Tokens that a unit price is told for.
const MILLION: i128 = 1_000_000;

impl KnownPrice {
    /// What a million tokens of each kind cost, a sentence for each length of prompts; kinds that cost
    /// as much as the one before are left out. Each says whose calls it is for, where it is not everybody's.
    pub(super) fn said(&self) -> Vec<String> {
        let sentence = |(above, kinds): &(u64, std::collections::BTreeMap<String, i128>)| {
            let per_million = |kind: &str| kinds.get(kind).map(|pico| pico.saturating_mul(MILLION));
            let (input, output) = (per_million("Input"), per_million("Output"));
            let is_usual = |kind: &str, pico: i128| match kind {
                "Input" | "Output" => false,
                kind if kind.contains("output") => Some(pico) == output,
                _ => Some(pico) == input,
            };
            let order = |kind: &str| !(kind == "Input" || kind == "Output");
            let mut named: Vec<(&String, i128)> = kinds
                .iter()
                .map(|(kind, pico)| (kind, pico.saturating_mul(MILLION)))
                .filter(|(kind, pico)| !is_usual(kind, *pico))
                .collect();
            named.sort_by_key(|(kind, _)| order(kind));
            let named: Vec<String> = named
                .iter()
                .map(|(kind, pico)| format!("{} {}", kind.to_lowercase(), decimal(*pico)))
                .collect();
            let prompts = if *above == 0 {
                String::new()
            } else {
                format!(", prompts above {} tokens", grouped(&above.to_string()))
            };
            format!(
                "{} {} per million{prompts}",
                named.join(", "),
                self.currency
            )
        };
        let mut said: Vec<String> = self.rates.iter().map(sentence).collect();
        if self.request != 0 {
            said.push(format!(
                "{} {} per call, image or unit of search",
                decimal(self.request),
                self.currency
            ));
        }
        if !self.whose.is_empty() {
            for sentence in &mut said {
                sentence.push_str(&format!(", for {}", self.whose));
            }
        }
        said
    }
}
