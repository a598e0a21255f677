//! What the rows of a period come to, by whoever asks for it.
//!
//! Invariant: sums are exact (whole numbers wide enough not to overflow); what is not known is
//! counted as unknown and adds nothing. An indeterminate row adds to its own counts alone.
//! Not here: how a report looks (`table`, `statement`), single rows (`export`).

mod export;
mod focus;
mod layout;
mod money;
mod parquet;
mod statement;
mod table;
mod unit_prices;
mod words;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

pub use self::parquet::parquet;
pub use export::{ExportError, csv, json_lines};
pub use focus::focus;
pub use layout::{laid_out, wrapped};
pub use money::{decimal, rounded};
pub use statement::Statement;
pub use table::{as_csv, as_json, drift_table, table};

use crate::date;
use crate::read::{Period, ReadError, Reader, Stored};

/// What a report is cut by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    /// Who asked.
    Workload,
    /// The budget group that pays.
    Group,
    /// The model sent upstream, or else the one asked for.
    Model,
    /// Where it went.
    Backend,
    /// The day it ended, UTC.
    Day,
    /// The id of the key that was brought.
    Key,
    /// The person or service behind the call.
    User,
    /// The tool, prompt or resource that a message to servers of tools is about.
    Tool,
    /// The value of the tag of this name.
    Tag(Box<str>),
}

/// What stands for a name that a row does not have.
pub const NONE: &str = "(none)";

/// A name in a table, a CSV or a statement. One that could be taken for [`NONE`], or for nothing, stands in quotes.
#[must_use]
pub fn shown(name: Option<&str>) -> Cow<'_, str> {
    match name {
        None => NONE.into(),
        Some(name) if name.is_empty() || name.starts_with(['(', '"']) => {
            serde_json::Value::from(name).to_string().into()
        }
        Some(name) => name.into(),
    }
}

impl By {
    /// The heading of its column.
    #[must_use]
    pub fn heading(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Workload => "workload",
            Self::Group => "group",
            Self::Model => "model",
            Self::Backend => "backend",
            Self::Day => "day",
            Self::Key => "key",
            Self::User => "user",
            Self::Tool => "tool",
            Self::Tag(name) => return format!("tag:{name}").into(),
        })
    }

    /// What a row belongs to; `None` where it has no such name.
    #[must_use]
    pub fn of(&self, row: &Stored) -> Option<String> {
        let name = match self {
            Self::Workload => row.text("workload"),
            Self::Group => row.text("budget_group"),
            Self::Model => row.text("model_sent").or(row.text("model_asked")),
            Self::Backend => row.text("backend"),
            Self::Day => {
                let ended = row.number("ended_unix_ms").unwrap_or_default();
                return Some(date::day(ended.unsigned_abs()));
            }
            Self::Key => row.text("key_id"),
            Self::User => row.text("user_id"),
            Self::Tool => return used(row),
            Self::Tag(name) => return row.tags().remove(&**name),
        };
        name.map(str::to_owned)
    }
}

/// What a message to servers of tools uses, by its name. A question about it (what became of its task, how it is completed) is no use of it, and
/// stands apart.
fn used(row: &Stored) -> Option<String> {
    let name = row.text("mcp_name")?;
    Some(match row.text("mcp_method") {
        None | Some("tools/call" | "tools/list" | "prompts/get" | "resources/read") => {
            name.to_owned()
        }
        Some(asked) => format!("{name} ({asked})"),
    })
}

/// The two witnesses of one direction, over rows that have both and whose engine's word can be believed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drift {
    /// Such rows.
    pub exchanges: u64,
    /// Tokens by the engine's word.
    pub reported: u128,
    /// Tokens by the gate's count.
    pub counted: u128,
}

impl Drift {
    fn add(&mut self, reported: Option<i64>, counted: Option<i64>) {
        if let (Some(reported), Some(counted)) = (reported, counted) {
            self.exchanges += 1;
            self.reported += u128::from(reported.unsigned_abs());
            self.counted += u128::from(counted.unsigned_abs());
        }
    }

    /// How much the engine's word is above the gate's count; `None` without a count.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a ratio to be looked at")]
    pub fn ratio(&self) -> Option<f64> {
        (self.counted > 0).then(|| self.reported as f64 / self.counted as f64 - 1.0)
    }
}

/// What some rows come to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Rows.
    pub exchanges: u64,
    /// Of these, failed by us or upstream: the outcome `failed`, or a status of 500 and above.
    pub errors: u64,
    /// Refused by policy.
    pub refused: u64,
    /// Left by the client.
    pub aborted: u64,
    /// Not seen to their end.
    pub indeterminate: u64,
    /// The fewest tokens that the indeterminate came to.
    pub at_least: u128,
    /// The most, of those that have a most.
    pub at_most: u128,
    /// Input tokens.
    pub prompt: u128,
    /// Output tokens.
    pub completion: u128,
    /// Input tokens that the engine had cached.
    pub cached: u128,
    /// Output tokens spent on reasoning.
    pub reasoning: u128,
    /// Billed tokens by who counted them: reported, counted, estimated.
    pub by_witness: [u128; 3],
    /// Money by currency, in pico-units.
    pub cost: BTreeMap<String, i128>,
    /// Rows with tokens and no known cost.
    pub unpriced: u64,
    /// Ids of the prices that they were charged by.
    pub prices: BTreeSet<String>,
    /// Of the input.
    pub prompt_drift: Drift,
    /// Of the output.
    pub completion_drift: Drift,
}

/// The words in a source column, in the order of [`Totals::by_witness`].
pub const WITNESSES: [&str; 3] = ["reported", "counted", "estimated"];

impl Totals {
    /// Adds a row.
    pub fn add(&mut self, row: &Stored) {
        self.exchanges += 1;
        if row.text("state") == Some("indeterminate") {
            self.indeterminate += 1;
            let least = sum(row, "at_least_tokens");
            self.at_least += least;
            self.at_most += sum(row, "at_most_tokens").max(least);
            return;
        }
        let outcome = row.text("outcome").unwrap_or_default();
        self.errors += u64::from(outcome == "failed" || row.number("status") >= Some(500));
        self.refused += u64::from(outcome == "refused");
        self.aborted += u64::from(outcome == "aborted");
        let (prompt, completion) = (sum(row, "prompt_tokens"), sum(row, "completion_tokens"));
        self.prompt += prompt;
        self.completion += completion;
        self.cached += sum(row, "cached_tokens");
        self.reasoning += sum(row, "reasoning_tokens");
        for (tokens, source) in [(prompt, "prompt_source"), (completion, "completion_source")] {
            let said = row.text(source);
            if let Some(at) = WITNESSES.iter().position(|word| said == Some(word)) {
                self.by_witness[at] += tokens;
            }
        }
        match (row.number("cost_pico"), row.text("currency")) {
            (Some(pico), Some(currency)) => {
                if let Some(id) = row.text("price_id").filter(|id| !self.prices.contains(*id)) {
                    self.prices.insert(id.to_owned());
                }
                *self.cost.entry(currency.to_owned()).or_default() += i128::from(pico);
            }
            _ => self.unpriced += u64::from(prompt + completion > 0),
        }
        self.prompt_drift.add(
            believed(row, "prompt_source", "prompt_reported"),
            row.number("prompt_counted"),
        );
        self.completion_drift.add(
            believed(row, "completion_source", "completion_reported"),
            row.number("completion_counted"),
        );
    }

    /// Both directions.
    #[must_use]
    pub fn tokens(&self) -> u128 {
        self.prompt + self.completion
    }
}

/// What an engine reported, unless it may be what stands beside a charge because it cannot be true: another number is charged, and
/// something is wrong with the report.
fn believed(row: &Stored, source: &str, reported: &str) -> Option<i64> {
    let is_set = |flag: &str| row.number(flag) == Some(1);
    let is_wrong = is_set("usage_invalid") || is_set("usage_doubtful");
    if is_wrong && row.text(source) != Some("reported") {
        return None;
    }
    row.number(reported)
}

/// A line of a report: what it is of, and what that comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// One name for each cut; `None` of rows that have none, which are a line of their own.
    pub of: Vec<Option<String>>,
    /// What it comes to.
    pub totals: Totals,
}

/// The rows of a period, cut by each of `by` in turn; lines in the order of their names.
///
/// # Errors
/// When the ledger cannot be read.
pub fn report(reader: &Reader, period: Period, by: &[By]) -> Result<Vec<Line>, ReadError> {
    let mut lines: BTreeMap<Vec<Option<String>>, Totals> = BTreeMap::new();
    reader.each(period, |row| {
        let of = by.iter().map(|by| by.of(&row)).collect();
        lines.entry(of).or_default().add(&row);
        Ok::<(), ReadError>(())
    })?;
    Ok(lines
        .into_iter()
        .map(|(of, totals)| Line { of, totals })
        .collect())
}

fn sum(row: &Stored, column: &str) -> u128 {
    u128::from(row.number(column).unwrap_or_default().unsigned_abs())
}

#[cfg(test)]
mod tests;
