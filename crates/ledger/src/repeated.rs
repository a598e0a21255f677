//! A statement that runs for one row after the other, most of whose values are those of the row before.
//!
//! Invariant: each run sees the values that it was given. A value that is bound already, from a row that still
//! lives, is not bound again: binding copies it.
//! Not here: what the statements say (`store`).

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection};

/// A statement whose first `N` parameters tend to stay the same.
pub(crate) struct Repeated<'db, 'row, const N: usize> {
    statement: CachedStatement<'db>,
    bound: [ValueRef<'row>; N],
}

impl<'db, 'row, const N: usize> Repeated<'db, 'row, N> {
    /// Takes the statement from the connection's cache, where its parameters are all NULL.
    pub(crate) fn new(db: &'db Connection, sql: &str) -> rusqlite::Result<Self> {
        Ok(Self {
            statement: db.prepare_cached(sql)?,
            bound: [ValueRef::Null; N],
        })
    }

    /// Runs it with these values, as many as there are, and behind all of its own with others that change with
    /// every run; gives how many rows changed.
    pub(crate) fn execute(
        &mut self,
        mut values: impl Iterator<Item = ValueRef<'row>>,
        changing: &[ValueRef<'_>],
    ) -> rusqlite::Result<usize> {
        for (at, bound) in self.bound.iter_mut().enumerate() {
            let value = values.next().unwrap_or(ValueRef::Null);
            if *bound != value {
                // What a binding that failed leaves.
                *bound = ValueRef::Null;
                let output = ToSqlOutput::Borrowed(value);
                self.statement.raw_bind_parameter(at + 1, output)?;
                *bound = value;
            }
        }
        for (at, value) in changing.iter().enumerate() {
            let output = ToSqlOutput::Borrowed(*value);
            self.statement.raw_bind_parameter(N + at + 1, output)?;
        }
        self.statement.raw_execute()
    }
}

#[cfg(test)]
mod tests;
