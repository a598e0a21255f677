//! `prices`: decimals to whole 1e-12 units per token.
//!
//! Invariant: no rounding; a price that is not a whole number of units is a fault.

use policy::price::{Pico, Price, Prices};

use crate::decode::{At, MapOf};
use crate::scalar::{Decimal, Model};
use crate::schema;

const PICO_PLACES: u32 = 12;

impl super::Lowering<'_> {
    pub(super) fn prices(&mut self, written: &MapOf<Model, schema::Price>) -> Prices {
        let mut prices = Prices::default();
        for (model, price) in &written.0 {
            let Some(price) = price else { continue };
            let per = price.per.get().map_or(6, |at| at.value.0);
            let input = price.input.get().and_then(|at| self.pico(at, per));
            let output = price.output.get().and_then(|at| self.pico(at, per));
            let (Some(input), Some(output)) = (input, output) else {
                continue;
            };
            let currency = price
                .currency
                .get()
                .map_or("USD", |at| at.value.0.as_str())
                .to_owned();
            prices.0.insert(
                model.value.0.clone(),
                Price {
                    input,
                    output,
                    currency,
                },
            );
        }
        prices
    }

    fn pico(&mut self, at: &At<Decimal>, per: u32) -> Option<Pico> {
        let Decimal { digits, places } = at.value;
        let finer = places + per;
        if let Some(shift) = PICO_PLACES.checked_sub(finer) {
            return Some(Pico(digits.checked_mul(10_i128.checked_pow(shift)?)?));
        }
        let unit = 10_i128.checked_pow(finer - PICO_PLACES)?;
        if digits % unit == 0 {
            return Some(Pico(digits / unit));
        }
        let says = format!("{} is finer than 1e-12 for a token", at.shown);
        let most = PICO_PLACES.saturating_sub(per);
        self.findings.fault(
            &at.place,
            says,
            format!("write at most {most} decimal places"),
        );
        None
    }
}
