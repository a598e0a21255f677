//! What the exchanges of a period came to, for budgets that begin anew with the process.
//!
//! Here an exchange counts in the period in which it began, as budgets have it; a report counts it
//! where it ended.
//! Invariant: every row of the period is in exactly one sum of tokens, or is handed on with what
//! was held for it; a cost is in exactly one sum of money, each rounded up to 1e-9 as budgets do.
//! Not here: which budget counts what (`policy::budget`).

use policy::caller::Claims;
use rusqlite::params;

use crate::read::{Period, ReadError, Reader};

/// Who asked, as a row has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// The key's id; `None` where rows do not say it, or are not told apart by it.
    pub key: Option<String>,
    /// The user, likewise.
    pub user: Option<String>,
    /// Who issued the token that names the user, likewise.
    pub issuer: Option<String>,
}

impl Subject {
    /// What tells its user from one of the same name at another issuer.
    pub(crate) fn claims(&self) -> Claims {
        self.issuer
            .as_deref()
            .map(Claims::of_issuer)
            .unwrap_or_default()
    }

    /// Of a row whose columns from `at` on are the three.
    fn read(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Self> {
        Ok(Self {
            key: row.get(at)?,
            user: row.get(at + 1)?,
            issuer: row.get(at + 2)?,
        })
    }
}

/// Settled exchanges of one workload with one model in one currency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spent {
    /// Who asked.
    pub workload: Option<String>,
    /// Which key or user of it.
    pub subject: Subject,
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
    /// Who asked.
    pub workload: Option<String>,
    /// Which key or user of it.
    pub subject: Subject,
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

const SUMS: &str = "SELECT workload, coalesce(model_sent, model_asked), currency,
  coalesce(sum(coalesce(prompt_tokens, 0) + coalesce(completion_tokens, 0)), 0),
  coalesce(sum((cost_pico + 999) / 1000), 0), {who}
  FROM settled WHERE ended_unix_ms >= ?1 AND started_unix_ms >= ?1 AND started_unix_ms < ?2
  AND state = 'settled' GROUP BY 1, 2, 3, 6, 7, 8";

const UNSURE: &str = "SELECT workload, coalesce(model_sent, model_asked), backend,
  state = 'settled', coalesce(prompt_tokens, 0), coalesce(completion_tokens, 0),
  max(coalesce(reserved_tokens, 0), coalesce(at_least_tokens, 0)), {who}
  FROM settled WHERE ended_unix_ms >= ?1 AND started_unix_ms >= ?1 AND started_unix_ms < ?2
  AND (state <> 'settled' OR (cost_pico IS NULL
    AND coalesce(prompt_tokens, 0) + coalesce(completion_tokens, 0) > 0))
  UNION ALL SELECT workload, coalesce(model_sent, model_asked), backend, 0, 0, 0,
  max(reserved_tokens, progress_tokens), {who}
  FROM open WHERE started_unix_ms >= ?1 AND started_unix_ms < ?2";

/// Calls of a tool by one workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calls {
    /// Who called.
    pub workload: Option<String>,
    /// Which key or user of it.
    pub subject: Subject,
    /// The tool, by its whole name as far as a row keeps it.
    pub tool: String,
    /// How many.
    pub count: u64,
}

/// A call that was refused was none. One whose end nobody saw was let in, and so is one that is open.
const CALLS: &str = "SELECT workload, mcp_name, count(*), {who}
  FROM settled WHERE ended_unix_ms >= ?1 AND started_unix_ms >= ?1 AND started_unix_ms < ?2
  AND mcp_method = 'tools/call' AND outcome <> 'refused' GROUP BY 1, 2, 4, 5, 6
  UNION ALL SELECT workload, mcp_name, count(*), {who}
  FROM open WHERE started_unix_ms >= ?1 AND started_unix_ms < ?2 AND mcp_method = 'tools/call' GROUP BY 1, 2, 4, 5, 6";

impl Reader {
    /// Calls `each` with the calls of tools that began in `period`; `by_subject` as of [`Reader::spent`]. Files from before there were such
    /// calls have none.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn calls(
        &self,
        period: Period,
        by_subject: bool,
        mut each: impl FnMut(Calls),
    ) -> Result<(), ReadError> {
        let named = "SELECT (SELECT count(*) FROM pragma_table_info('settled') WHERE name IN ('mcp_method', 'mcp_name'))
          + (SELECT count(*) FROM pragma_table_info('open') WHERE name IN ('mcp_method', 'mcp_name'))";
        let found: i64 = self.db.query_row(named, [], |row| row.get(0))?;
        if found < 4 {
            return Ok(());
        }
        let bounds = [period.from_ms, period.to_ms].map(|ms| i64::try_from(ms).unwrap_or(i64::MAX));
        let mut statement = self.db.prepare(&told_apart(CALLS, by_subject))?;
        let mut rows = statement.query(params![bounds[0], bounds[1]])?;
        while let Some(row) = rows.next()? {
            each(Calls {
                workload: row.get(0)?,
                tool: row.get::<_, Option<String>>(1)?.unwrap_or_default(),
                count: row.get::<_, i64>(2)?.unsigned_abs(),
                subject: Subject::read(row, 3)?,
            });
        }
        Ok(())
    }

    /// Whether rows say which key and user asked, also those that are open.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn knows_subjects(&self) -> Result<bool, ReadError> {
        let both = "SELECT (SELECT count(*) FROM pragma_table_info('settled') WHERE name IN ('key_id', 'user_id', 'user_issuer'))
          + (SELECT count(*) FROM pragma_table_info('open') WHERE name IN ('key_id', 'user_id', 'user_issuer'))";
        let found: i64 = self.db.query_row(both, [], |row| row.get(0))?;
        Ok(found == 6)
    }

    /// Calls `sum` with what the exchanges that began in `period` came to, and `unsure` with each
    /// row that says too little; `by_subject`: for each key and user apart, which rows have to know.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn spent(
        &self,
        period: Period,
        by_subject: bool,
        mut sum: impl FnMut(Spent),
        mut unsure: impl FnMut(Unsure),
    ) -> Result<(), ReadError> {
        let bounds = [period.from_ms, period.to_ms].map(|ms| i64::try_from(ms).unwrap_or(i64::MAX));
        // One view of the file for both, so that nothing ends between them.
        let tx = self.db.unchecked_transaction()?;
        let mut statement = tx.prepare(&told_apart(SUMS, by_subject))?;
        let mut rows = statement.query(params![bounds[0], bounds[1]])?;
        while let Some(row) = rows.next()? {
            sum(Spent {
                workload: row.get(0)?,
                model: row.get(1)?,
                currency: row.get(2)?,
                tokens: row.get::<_, i64>(3)?.unsigned_abs(),
                nanos: row.get::<_, i64>(4)?.unsigned_abs(),
                subject: Subject::read(row, 5)?,
            });
        }
        let mut statement = tx.prepare(&told_apart(UNSURE, by_subject))?;
        let mut rows = statement.query(params![bounds[0], bounds[1]])?;
        while let Some(row) = rows.next()? {
            let number = |at| row.get::<_, i64>(at).map(i64::unsigned_abs);
            let tokens = if row.get(3)? {
                Known::Counts(number(4)?, number(5)?)
            } else {
                Known::Held(number(6)?)
            };
            unsure(Unsure {
                workload: row.get(0)?,
                model: row.get(1)?,
                backend: row.get(2)?,
                subject: Subject::read(row, 7)?,
                tokens,
            });
        }
        Ok(())
    }
}

/// A statement that tells keys and users apart, or does not.
fn told_apart(statement: &str, by_subject: bool) -> String {
    let who = if by_subject {
        "key_id, user_id, user_issuer"
    } else {
        "NULL, NULL, NULL"
    };
    statement.replace("{who}", who)
}

#[cfg(test)]
mod tests;
