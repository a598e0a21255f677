//! What the exchanges of a period came to, for budgets that begin anew with the process.
//!
//! Here an exchange counts in the period in which it began, as budgets have it; a report counts it
//! where it ended.
//! Invariant: every row of the period is in exactly one sum of tokens, or is handed on with what
//! was held for it; a cost is in exactly one sum of money, each rounded up to 1e-9 as budgets do.
//! Cut by key or by user, the same holds of the rows that have one.
//! Not here: which budget counts what (`policy::budget`).

use rusqlite::params;

use crate::read::{Period, ReadError, Reader};

/// What sums are cut by, beside workload, model and currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Nothing: all rows.
    All,
    /// The id of the key that was brought; rows with one alone.
    Key,
    /// The user; rows with one alone.
    User,
}

impl Whose {
    /// The expression and the condition.
    fn sql(self) -> (&'static str, &'static str) {
        match self {
            Self::All => ("NULL", "1"),
            Self::Key => ("key_id", "key_id IS NOT NULL"),
            Self::User => ("user_id", "user_id IS NOT NULL"),
        }
    }
}

/// Settled exchanges of one workload with one model in one currency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spent {
    /// The key's id or the user, where sums are cut by it, as [`policy::attribution::kept`] has it.
    pub whose: Option<String>,
    /// Who asked.
    pub workload: Option<String>,
    /// The model sent upstream, or else the one asked for.
    pub model: Option<String>,
    /// The currency of `nanos`.
    pub currency: Option<String>,
    /// Prompt and completion tokens.
    pub tokens: u64,
    /// What those with a cost came to, in 1e-9 of the currency's unit.
    pub nanos: u64,
}

/// A row that says too little: it has tokens and no cost, or its end was not seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsure {
    /// The key's id or the user, where sums are cut by it.
    pub whose: Option<String>,
    /// Who asked.
    pub workload: Option<String>,
    /// The model sent upstream, or else the one asked for.
    pub model: Option<String>,
    /// Where it went.
    pub backend: Option<String>,
    /// What is known of it.
    pub tokens: Known,
}

/// What an [`Unsure`] row says of its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// Prompt and completion, which are in a [`Spent`] too; only their cost is not.
    Counts(u64, u64),
    /// It is open or indeterminate: tokens held for it, or more if it had come further.
    Held(u64),
}

fn sums(whose: Whose) -> String {
    let (of, is_one) = whose.sql();
    format!(
        "SELECT {of}, workload, coalesce(model_sent, model_asked), currency,
  coalesce(sum(coalesce(prompt_tokens, 0) + coalesce(completion_tokens, 0)), 0),
  coalesce(sum((cost_pico + 999) / 1000), 0)
  FROM settled WHERE ended_unix_ms >= ?1 AND started_unix_ms >= ?1 AND started_unix_ms < ?2
  AND state = 'settled' AND {is_one} GROUP BY 1, 2, 3, 4"
    )
}

fn unsure_rows(whose: Whose) -> String {
    let (of, is_one) = whose.sql();
    format!(
        "SELECT {of}, workload, coalesce(model_sent, model_asked), backend,
  state = 'settled', coalesce(prompt_tokens, 0), coalesce(completion_tokens, 0),
  max(coalesce(reserved_tokens, 0), coalesce(at_least_tokens, 0))
  FROM settled WHERE ended_unix_ms >= ?1 AND started_unix_ms >= ?1 AND started_unix_ms < ?2
  AND {is_one} AND (state <> 'settled' OR (cost_pico IS NULL
    AND coalesce(prompt_tokens, 0) + coalesce(completion_tokens, 0) > 0))
  UNION ALL SELECT {of}, workload, coalesce(model_sent, model_asked), backend, 0, 0, 0,
  max(reserved_tokens, progress_tokens)
  FROM open WHERE started_unix_ms >= ?1 AND started_unix_ms < ?2 AND {is_one}"
    )
}

impl Reader {
    /// Calls `sum` with what the exchanges that began in `period` came to, and `unsure` with each
    /// row that says too little; both cut by `whose`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn spent(
        &self,
        period: Period,
        whose: Whose,
        mut sum: impl FnMut(Spent),
        mut unsure: impl FnMut(Unsure),
    ) -> Result<(), ReadError> {
        let bounds = [period.from_ms, period.to_ms].map(|ms| i64::try_from(ms).unwrap_or(i64::MAX));
        // One view of the file for both, so that nothing ends between them.
        let tx = self.db.unchecked_transaction()?;
        let mut statement = tx.prepare(&sums(whose))?;
        let mut rows = statement.query(params![bounds[0], bounds[1]])?;
        while let Some(row) = rows.next()? {
            sum(Spent {
                whose: row.get(0)?,
                workload: row.get(1)?,
                model: row.get(2)?,
                currency: row.get(3)?,
                tokens: row.get::<_, i64>(4)?.unsigned_abs(),
                nanos: row.get::<_, i64>(5)?.unsigned_abs(),
            });
        }
        let mut statement = tx.prepare(&unsure_rows(whose))?;
        let mut rows = statement.query(params![bounds[0], bounds[1]])?;
        while let Some(row) = rows.next()? {
            let number = |at| row.get::<_, i64>(at).map(i64::unsigned_abs);
            let tokens = if row.get(4)? {
                Known::Counts(number(5)?, number(6)?)
            } else {
                Known::Held(number(7)?)
            };
            unsure(Unsure {
                whose: row.get(0)?,
                workload: row.get(1)?,
                model: row.get(2)?,
                backend: row.get(3)?,
                tokens,
            });
        }
        Ok(())
    }
}
