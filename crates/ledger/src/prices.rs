//! The prices that rows were charged by, kept once each beside the rows that name them.
//!
//! A row has its cost and the id of its price; what one token cost, and which part of the cost is of
//! which kind of token, is worked out from here when somebody asks.
//! Invariant: a price never changes under its id, which is made of its content. It is no part of the
//! chain: the parts of a row's cost must come to the cost that is in the chain, and what does not is
//! shown as such.
//! Not here: what a call costs (`policy::price`), how prices are shown (`report`).

use std::collections::BTreeMap;
use std::sync::Arc;

use policy::price::{Pico, Price, Rates};
use rusqlite::{Connection, Row, Transaction, params};
use serde_json::{Value, json};

use crate::read::{ReadError, Reader, Stored};

/// A price on its way to the file.
#[derive(Debug, Clone)]
pub(crate) struct PriceNote {
    id: Box<str>,
    said: Box<str>,
}

/// A kind of tokens, as a rate and the column of a row that counts it. The last kind of a direction
/// has no column: it is what the others leave.
struct Kind {
    name: &'static str,
    column: Option<&'static str>,
    rate: fn(&Rates) -> Pico,
}

/// Of the prompt, in the order in which they are charged.
const PROMPT: [Kind; 5] = [
    kind("Cached input", Some("cached_tokens"), |r| r.cached),
    kind("Cache write (1 h)", Some("cache_write_1h_tokens"), |r| {
        r.cache_write_1h
    }),
    kind("Cache write (5 min)", Some("cache_write_5m_tokens"), |r| {
        r.cache_write_5m
    }),
    kind("Audio input", Some("audio_prompt_tokens"), |r| {
        r.audio_input
    }),
    kind("Input", None, |r| r.input),
];

/// Of the completion.
const COMPLETION: [Kind; 3] = [
    kind("Reasoning output", Some("reasoning_tokens"), |r| {
        r.reasoning
    }),
    kind("Audio output", Some("audio_completion_tokens"), |r| {
        r.audio_output
    }),
    kind("Output", None, |r| r.output),
];

const fn kind(name: &'static str, column: Option<&'static str>, rate: fn(&Rates) -> Pico) -> Kind {
    Kind { name, column, rate }
}

/// What one token of each kind costs, in pico-units.
pub(crate) type OfKinds = BTreeMap<String, i128>;

/// A price as the ledger keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownPrice {
    /// Whose calls it is for, in words; empty where it is everybody's.
    pub whose: String,
    /// ISO 4217 code.
    pub currency: String,
    /// Per call, in pico-units.
    pub request: i128,
    /// For prompts of more tokens than this: per token of each kind, in pico-units; ascending.
    pub rates: Vec<(u64, OfKinds)>,
}

/// The prices of a ledger, by id.
pub type Prices = BTreeMap<String, KnownPrice>;

/// A part of what a row was charged, or of what it used where its price is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// The kind of tokens, or `Requests`, or `Other`.
    pub(crate) kind: &'static str,
    /// Tokens or requests.
    pub(crate) quantity: u64,
    /// What one of them costs.
    pub(crate) unit: Option<i128>,
    /// What all of them cost.
    pub(crate) cost: Option<i128>,
}

impl PriceNote {
    pub(crate) fn of(price: &Price) -> Self {
        let rates = |above: u64, rates: &Rates| {
            let kinds = PROMPT.iter().chain(&COMPLETION);
            let kinds: serde_json::Map<String, Value> = kinds
                .map(|kind| {
                    let pico = (kind.rate)(rates).0.to_string();
                    (kind.name.to_owned(), pico.into())
                })
                .collect();
            json!({"above": above, "per_token": kinds})
        };
        let tiers = price
            .tiers
            .iter()
            .map(|tier| rates(tier.above, &tier.rates));
        let all: Vec<Value> = std::iter::once(rates(0, &price.rates))
            .chain(tiers)
            .collect();
        let mut said = json!({
            "currency": &*price.currency,
            "per_request": price.request.0.to_string(),
            "rates": all,
        });
        if !price.whose.is_empty() {
            said["for"] = (*price.whose).into();
        }
        Self {
            id: (*price.id).into(),
            said: said.to_string().into(),
        }
    }

    /// All of a snapshot's, each once.
    pub(crate) fn all<'p>(prices: impl Iterator<Item = &'p Arc<Price>>) -> Box<[Self]> {
        let by_id: BTreeMap<&str, &Arc<Price>> = prices.map(|price| (&*price.id, price)).collect();
        by_id.into_values().map(|price| Self::of(price)).collect()
    }
}

/// Keeps those that are not kept yet.
pub(crate) fn keep(tx: &Transaction<'_>, prices: &[PriceNote]) -> rusqlite::Result<()> {
    tx.execute_batch(TABLE)?;
    let sql = "INSERT INTO prices VALUES (?1, ?2) ON CONFLICT DO NOTHING";
    let mut statement = tx.prepare_cached(sql)?;
    for price in prices {
        statement.execute(params![price.id, price.said])?;
    }
    Ok(())
}

/// Copies those of one ledger into another, as far as they can be read.
pub(crate) fn copy(from: &Connection, to: &mut Connection) -> rusqlite::Result<()> {
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name = 'prices'";
    if from.query_row(tables, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(());
    }
    let mut statement = from.prepare("SELECT id, said FROM prices")?;
    let note = |row: &Row<'_>| {
        Ok(PriceNote {
            id: row.get::<_, String>(0)?.into(),
            said: row.get::<_, String>(1)?.into(),
        })
    };
    let notes = statement.query_map([], note)?.map_while(Result::ok);
    let notes: Vec<PriceNote> = notes.collect();
    let tx = to.transaction()?;
    keep(&tx, &notes)?;
    tx.commit()
}

/// Files of older builds get it with their first price.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS prices (
  id TEXT PRIMARY KEY,
  said TEXT NOT NULL
) STRICT, WITHOUT ROWID";

impl Reader {
    /// Every price that is kept.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn prices(&self) -> Result<Prices, ReadError> {
        let tables = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'prices'";
        let tables: i64 = self.db.query_row(tables, [], |row| row.get(0))?;
        if tables == 0 {
            return Ok(Prices::new());
        }
        let mut statement = self.db.prepare("SELECT id, said FROM prices")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let rows: Vec<(String, String)> = rows.collect::<Result<_, _>>()?;
        let known = |(id, said): (String, String)| Some((id, KnownPrice::read(&said)?));
        Ok(rows.into_iter().filter_map(known).collect())
    }
}

impl KnownPrice {
    /// `None` where it is not as this build writes it.
    fn read(said: &str) -> Option<Self> {
        let said: Value = serde_json::from_str(said).ok()?;
        let pico = |value: &Value| value.as_str()?.parse().ok();
        let of_kinds = |value: &Value| {
            let kinds = value.get("per_token")?.as_object()?.iter();
            let kinds = kinds.map(|(kind, value)| Some((kind.clone(), pico(value)?)));
            Some((value.get("above")?.as_u64()?, kinds.collect::<Option<_>>()?))
        };
        let rates = said.get("rates")?.as_array()?.iter();
        let whose = said.get("for").and_then(Value::as_str);
        Some(Self {
            whose: whose.unwrap_or_default().to_owned(),
            currency: said.get("currency")?.as_str()?.to_owned(),
            request: pico(said.get("per_request")?)?,
            rates: rates.map(of_kinds).collect::<Option<_>>()?,
        })
    }

    /// What a token of a kind costs in a call with a prompt of so many.
    fn unit(&self, prompt: u64, kind: &str) -> Option<i128> {
        let (_, kinds) = self
            .rates
            .iter()
            .rev()
            .find(|(above, _)| *above == 0 || prompt > *above)?;
        kinds.get(kind).copied()
    }
}

/// How many times a row was charged what a request costs, by what its tokens leave of its cost: once, or for each unit of search.
fn requests(rest: i128, request: i128) -> u64 {
    let units = match request {
        0 => return 0,
        _ if rest % request == 0 => u64::try_from(rest / request).unwrap_or(1),
        _ => 1,
    };
    units.max(1)
}

/// The tokens of a row by kind, each with its cost where that is known. The costs come to the row's
/// own: what the price does not explain is a part of its own.
pub(crate) fn parts(row: &Stored, prices: &Prices) -> Vec<Part> {
    let count = |column| row.number(column).unwrap_or(0).unsigned_abs();
    let (prompt, completion) = (count("prompt_tokens"), count("completion_tokens"));
    let cost = row.number("cost_pico").map(i128::from);
    let price = row.text("price_id").and_then(|id| prices.get(id));
    let price = price.filter(|_| cost.is_some());
    let mut parts = Vec::new();
    for (all, kinds) in [(prompt, &PROMPT[..]), (completion, &COMPLETION)] {
        let mut left = all;
        for kind in kinds {
            let quantity = kind.column.map_or(left, |column| count(column).min(left));
            left -= quantity;
            let unit = price.and_then(|price| price.unit(prompt, kind.name));
            parts.push(Part {
                kind: kind.name,
                quantity,
                unit,
                cost: unit.map(|unit| unit.saturating_mul(i128::from(quantity))),
            });
        }
    }
    if let Some(request) = price.map(|price| price.request) {
        let of_tokens: i128 = parts.iter().filter_map(|part| part.cost).sum();
        let quantity = requests(cost.map_or(0, |cost| cost - of_tokens), request);
        parts.push(Part {
            kind: "Requests",
            quantity,
            unit: Some(request),
            cost: Some(request.saturating_mul(i128::from(quantity))),
        });
    }
    parts.retain(|part| part.quantity > 0);
    let explained: i128 = parts.iter().filter_map(|part| part.cost).sum();
    let rest = cost.map_or(0, |cost| cost - explained);
    if rest != 0 {
        parts.push(Part {
            kind: "Other",
            quantity: 0,
            unit: None,
            cost: Some(rest),
        });
    }
    parts
}
