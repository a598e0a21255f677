//! Charges in the columns of FOCUS, the FinOps Open Cost and Usage Specification (version 1.2,
//! <https://focus.finops.org>), as CSV.
//!
//! A charge is an hour of one workload on one model, backend and price. Columns that start with
//! `x_` are ours, as the specification asks. Where a price is unknown the cost columns are empty:
//! the specification wants a number there, and zero would be a lie.
//! Not here: taxes, discounts, commitments: the gate sells nothing, so every cost column is the same.

use std::collections::BTreeMap;
use std::io::Write;

use serde_json::json;

use super::export::{ExportError, field};
use super::{By, Totals, decimal};
use crate::date::{month_of, stamp};
use crate::read::{Period, Reader};

const HOUR_MS: u64 = 3_600_000;

const COLUMNS: [&str; 31] = [
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargeFrequency",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ConsumedQuantity",
    "ConsumedUnit",
    "ContractedCost",
    "EffectiveCost",
    "InvoiceIssuerName",
    "ListCost",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "ResourceId",
    "ServiceCategory",
    "ServiceName",
    "SkuId",
    "SkuPriceId",
    "SubAccountId",
    "Tags",
    "x_IndeterminateExchanges",
    "x_UnpricedExchanges",
];

/// What a charge is of: the hour, then workload, group, model, backend, currency and price.
type Of = (u64, [String; 6]);

/// Writes the charges of a period; `issuer` is who bills. Gives their number.
///
/// # Errors
/// When the ledger cannot be read or `out` not written.
pub fn focus(
    reader: &Reader,
    period: Period,
    issuer: &str,
    out: &mut dyn Write,
) -> Result<u64, ExportError> {
    let mut charges: BTreeMap<Of, Totals> = BTreeMap::new();
    reader.each(period, |row| {
        let hour = row
            .number("ended_unix_ms")
            .unwrap_or_default()
            .unsigned_abs()
            / HOUR_MS;
        let [workload, group, model, backend] =
            [By::Workload, By::Group, By::Model, By::Backend].map(|by| by.of(&row));
        let [currency, price] =
            ["currency", "price_id"].map(|name| row.text(name).unwrap_or_default().to_owned());
        let of = (hour, [workload, group, model, backend, currency, price]);
        charges.entry(of).or_default().add(&row);
        Ok::<(), ExportError>(())
    })?;
    write!(out, "{}\r\n", COLUMNS.join(","))?;
    for (of, totals) in &charges {
        let cells = charge(of, totals, issuer).map(|cell| field(&cell));
        write!(out, "{}\r\n", cells.join(","))?;
    }
    Ok(charges.len() as u64)
}

fn charge(
    (hour, [workload, group, model, backend, currency, price]): &Of,
    totals: &Totals,
    issuer: &str,
) -> [String; 31] {
    let begins = hour * HOUR_MS;
    let (month, next_month) = month_of(begins);
    // With rows that have no cost in it, the sum would be less than the truth.
    let known = totals
        .cost
        .get(currency)
        .filter(|_| totals.unpriced == 0 && totals.indeterminate == 0);
    let cost = known.map_or_else(String::new, |pico| decimal(*pico));
    let tags = json!({
        "workload": workload, "group": group, "backend": backend,
        "prompt_tokens": totals.prompt.to_string(), "completion_tokens": totals.completion.to_string(),
        "exchanges": totals.exchanges.to_string(),
    });
    let text = str::to_owned;
    [
        cost.clone(),
        group.clone(),
        group.clone(),
        currency.clone(),
        stamp(next_month),
        stamp(month),
        text("Usage"),
        String::new(),
        format!("{model} by {workload}"),
        text("Usage-Based"),
        stamp(begins + HOUR_MS),
        stamp(begins),
        totals.tokens().to_string(),
        text("Tokens"),
        cost.clone(),
        cost.clone(),
        text(issuer),
        cost,
        totals.tokens().to_string(),
        text("Tokens"),
        backend.clone(),
        backend.clone(),
        model.clone(),
        text("AI and Machine Learning"),
        text("LLM inference"),
        model.clone(),
        price.clone(),
        workload.clone(),
        tags.to_string(),
        totals.indeterminate.to_string(),
        totals.unpriced.to_string(),
    ]
}
