//! Single rows, as they stand, for other machines.
//!
//! Invariant: every column of the ledger, in its order, with the row's number before and its hash
//! and exact cost after; what is NULL is empty (CSV) or null (JSON), never zero.
//! Not here: rows shaped for FinOps tools (`focus`).

use std::io::{self, Write};

use crate::columns::{COLUMNS, Value};
use crate::hex::hex;
use crate::read::{Period, ReadError, Reader, Stored};

use super::decimal;

/// Why an export ended early.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The ledger could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The target did not take it.
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
}

impl From<::parquet::errors::ParquetError> for ExportError {
    fn from(error: ::parquet::errors::ParquetError) -> Self {
        Self::Write(match error {
            ::parquet::errors::ParquetError::External(cause) => match cause.downcast() {
                Ok(cause) => *cause,
                Err(cause) => io::Error::other(cause),
            },
            other => io::Error::other(other),
        })
    }
}

/// Rows of a period as CSV (RFC 4180) with a heading. Gives their number.
///
/// # Errors
/// When the ledger cannot be read or `out` not written.
pub fn csv(reader: &Reader, period: Period, out: &mut dyn Write) -> Result<u64, ExportError> {
    let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
    write!(out, "seq,{},hash,cost\r\n", names.join(","))?;
    let mut rows = 0;
    reader.each(period, |row| {
        let cells: Vec<String> = row.values.iter().map(cell).collect();
        write!(
            out,
            "{},{},{},{}\r\n",
            row.seq,
            cells.join(","),
            row.hash,
            cost(&row).unwrap_or_default()
        )?;
        rows += 1;
        Ok::<(), ExportError>(())
    })?;
    Ok(rows)
}

/// Rows of a period as JSON, one object to a line. Gives their number.
///
/// # Errors
/// When the ledger cannot be read or `out` not written.
pub fn json_lines(
    reader: &Reader,
    period: Period,
    out: &mut dyn Write,
) -> Result<u64, ExportError> {
    let mut rows = 0;
    reader.each(period, |row| {
        writeln!(out, "{}", row.to_json())?;
        rows += 1;
        Ok::<(), ExportError>(())
    })?;
    Ok(rows)
}

impl Stored {
    /// The row as a JSON object.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let mut object = serde_json::Map::new();
        object.insert("seq".to_owned(), self.seq.into());
        for ((name, _), value) in COLUMNS.iter().zip(&self.values) {
            let value = match value {
                Value::Null => serde_json::Value::Null,
                Value::Integer(n) => (*n).into(),
                Value::Real(x) => (*x).into(),
                Value::Text(text) => text.as_str().into(),
                Value::Blob(bytes) => hex(bytes).into(),
            };
            object.insert((*name).to_owned(), value);
        }
        object.insert("hash".to_owned(), self.hash.to_string().into());
        object.insert("cost".to_owned(), cost(self).into());
        object.into()
    }
}

fn cost(row: &Stored) -> Option<String> {
    row.number("cost_pico").map(|pico| decimal(pico.into()))
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Integer(n) => n.to_string(),
        Value::Real(x) => x.to_string(),
        Value::Text(text) => field(text),
        Value::Blob(bytes) => hex(bytes),
    }
}

/// A field of CSV, quoted where it must be. What a spreadsheet would run as a formula has an apostrophe before it: who
/// calls may have chosen the text.
pub(super) fn field(text: &str) -> String {
    let is_formula = text.len() > 1 && text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let mark = if is_formula { "'" } else { "" };
    if text.contains([',', '"', '\r', '\n']) {
        return format!("\"{mark}{}\"", text.replace('"', "\"\""));
    }
    format!("{mark}{text}")
}
