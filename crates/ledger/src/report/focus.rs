//! Charges in the columns of FOCUS, the FinOps Open Cost and Usage Specification (version 1.2,
//! <https://focus.finops.org>), as CSV.
//!
//! A charge is an hour of one caller's (workload, key, user, tags) tokens of one kind (input, cached input, output, …) on one
//! model, backend and price, so that a quantity times its unit price is its cost. The charges of a row
//! come to the row's own cost. Columns that start with `x_` are ours, as the specification asks. Where a
//! price is unknown the cost columns are empty: the specification wants a number there, and zero would
//! be a lie.
//! Not here: taxes, discounts, commitments: the gate sells nothing, so every cost column is the same.

use std::collections::BTreeMap;
use std::io::Write;

use serde_json::json;

use super::export::{ExportError, field};
use super::{By, decimal};
use crate::date::{month_of, timestamp};
use crate::prices::{Part, parts};
use crate::read::{Period, Reader, Stored};

const HOUR_MS: u64 = 3_600_000;

const COLUMNS: [&str; 38] = [
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
    "ContractedUnitPrice",
    "EffectiveCost",
    "InvoiceIssuerName",
    "ListCost",
    "ListUnitPrice",
    "PricingCategory",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "ResourceId",
    "ServiceCategory",
    "ServiceName",
    "SkuId",
    "SkuMeter",
    "SkuPriceId",
    "SubAccountId",
    "Tags",
    "x_Exchanges",
    "x_IndeterminateExchanges",
    "x_UnpricedExchanges",
    "x_KeyId",
    "x_UserId",
];

/// What the names of the gate's own tags begin with, as the specification asks of tags that a provider makes.
const OWN: &str = "tollgate/";

/// What a charge is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Of {
    hour: u64,
    workload: String,
    group: String,
    key: String,
    user: String,
    tags: String,
    model: String,
    backend: String,
    currency: String,
    price: String,
    /// Whether the cost is known; with rows that have none in it, the sum would be less than the truth.
    is_priced: bool,
    kind: &'static str,
    unit: Option<i128>,
}

/// What it comes to. An exchange is counted in the first of its charges only, so that each column can
/// be summed.
#[derive(Debug, Default)]
struct Sum {
    quantity: u128,
    cost: i128,
    exchanges: u64,
    indeterminate: u64,
    unpriced: u64,
}

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
    let prices = reader.prices()?;
    let mut charges: BTreeMap<Of, Sum> = BTreeMap::new();
    reader.each(period, |row| {
        for (at, part) in charged(&row, &prices).into_iter().enumerate() {
            let of = of(&row, &part);
            let first = u64::from(at == 0);
            let is_indeterminate = row.text("state") == Some("indeterminate");
            let unpriced = u64::from(!is_indeterminate && !of.is_priced);
            let sum = charges.entry(of).or_default();
            sum.quantity += u128::from(part.quantity);
            sum.cost += part.cost.unwrap_or(0);
            sum.exchanges += first;
            sum.indeterminate += first * u64::from(is_indeterminate);
            sum.unpriced += first * unpriced;
        }
        Ok::<(), ExportError>(())
    })?;
    write!(out, "{}\r\n", COLUMNS.join(","))?;
    for (of, sum) in &charges {
        let cells = charge(of, sum, issuer).map(|cell| field(&cell));
        write!(out, "{}\r\n", cells.join(","))?;
    }
    Ok(charges.len() as u64)
}

/// The parts of a row, at least one where it may have cost something.
fn charged(row: &Stored, prices: &crate::prices::Prices) -> Vec<Part> {
    if row.text("state") == Some("indeterminate") {
        return vec![Part {
            kind: "Unknown",
            quantity: 0,
            unit: None,
            cost: None,
        }];
    }
    let mut parts = parts(row, prices);
    let cost = row.number("cost_pico").map(i128::from);
    // Charged by a price that this ledger does not have: the whole is known, its parts are not.
    if let Some(cost) = cost.filter(|_| parts.iter().any(|part| part.cost.is_none())) {
        let tokens = parts.iter().map(|part| part.quantity).sum();
        parts = vec![Part {
            kind: "All tokens",
            quantity: tokens,
            unit: None,
            cost: Some(cost),
        }];
    }
    parts
}

fn of(row: &Stored, part: &Part) -> Of {
    let hour = row
        .number("ended_unix_ms")
        .unwrap_or_default()
        .unsigned_abs()
        / HOUR_MS;
    let text = |name| row.text(name).unwrap_or_default().to_owned();
    let of = |by: By| by.of(row).unwrap_or_else(|| "-".to_owned());
    Of {
        hour,
        workload: of(By::Workload),
        group: of(By::Group),
        key: text("key_id"),
        user: text("user_id"),
        tags: text("tags"),
        model: of(By::Model),
        backend: of(By::Backend),
        currency: text("currency"),
        price: text("price_id"),
        is_priced: part.cost.is_some(),
        kind: part.kind,
        unit: part.unit,
    }
}

fn charge(of: &Of, sum: &Sum, issuer: &str) -> [String; 38] {
    let begins = of.hour * HOUR_MS;
    let (month, next_month) = month_of(begins);
    let cost = if of.is_priced {
        decimal(sum.cost)
    } else {
        String::new()
    };
    let unit_price = of.unit.map_or_else(String::new, decimal);
    let unit = if of.kind == "Requests" {
        "Requests"
    } else {
        "Tokens"
    };
    let text = str::to_owned;
    [
        cost.clone(),
        of.group.clone(),
        of.group.clone(),
        of.currency.clone(),
        timestamp(next_month),
        timestamp(month),
        text("Usage"),
        String::new(),
        format!("{}: {} by {}", of.kind, of.model, of.workload),
        text("Usage-Based"),
        timestamp(begins + HOUR_MS),
        timestamp(begins),
        sum.quantity.to_string(),
        text(unit),
        cost.clone(),
        unit_price.clone(),
        cost.clone(),
        text(issuer),
        cost,
        unit_price,
        text("Standard"),
        sum.quantity.to_string(),
        text(unit),
        of.backend.clone(),
        of.backend.clone(),
        of.model.clone(),
        text("AI and Machine Learning"),
        text("LLM inference"),
        of.model.clone(),
        text(of.kind),
        of.price.clone(),
        of.workload.clone(),
        tags(of),
        sum.exchanges.to_string(),
        sum.indeterminate.to_string(),
        sum.unpriced.to_string(),
        of.key.clone(),
        of.user.clone(),
    ]
}

/// The caller's tags under their names, and the gate's own.
fn tags(of: &Of) -> String {
    let mut tags: BTreeMap<String, String> = serde_json::from_str(&of.tags).unwrap_or_default();
    let own = [
        ("workload", &of.workload),
        ("group", &of.group),
        ("backend", &of.backend),
    ];
    tags.extend(own.map(|(name, value)| (format!("{OWN}{name}"), value.clone())));
    json!(tags).to_string()
}
