//! Single rows as a Parquet file, for who analyses them with other tools.
//!
//! Invariant: the rows and columns of the CSV export, typed: moments are timestamps in UTC, the exact cost
//! is a decimal, flags are booleans, names and ids are strings. What is NULL is null.
//! Not here: rows shaped for FinOps tools (`focus`).

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, FixedLenByteArray, FixedLenByteArrayType,
    Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use super::export::ExportError;
use crate::columns::{COLUMNS, Kind, Value};
use crate::hex::hex;
use crate::read::{Period, Reader, Stored};

/// Rows that are held before they are written: some 50 MB.
const GROUP_ROWS: usize = 100_000;
/// A cost is a decimal of so many digits, so many of them after the point: 1e-12 of the currency's unit.
const COST_DIGITS: i32 = 38;
const COST_SCALE: i32 = 12;
const COST_BYTES: i32 = 16;

/// What a column of the file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Number,
    Moment,
    Flag,
    Text,
    Cost,
}

/// Rows of a period as Parquet, compressed with Snappy. Gives their number.
///
/// # Errors
/// When the ledger cannot be read or `out` not written.
pub fn parquet(
    reader: &Reader,
    period: Period,
    out: &mut (dyn Write + Send),
) -> Result<u64, ExportError> {
    let columns = columns();
    let fields: Result<Vec<_>, _> = columns.iter().map(field).collect();
    let schema = Type::group_type_builder("usage")
        .with_fields(fields?)
        .build()?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("tollgate {}", env!("CARGO_PKG_VERSION")))
        .build();
    let mut file = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
    let mut group = Vec::new();
    let mut rows = 0;
    reader.each(period, |row| {
        group.push(row);
        rows += 1;
        if group.len() < GROUP_ROWS {
            return Ok(());
        }
        write_group(&mut file, &columns, &std::mem::take(&mut group))
    })?;
    if !group.is_empty() {
        write_group(&mut file, &columns, &group)?;
    }
    file.close()?;
    Ok(rows)
}

/// Names and contents, in the order of the file.
fn columns() -> Vec<(&'static str, Holds)> {
    let of_ledger = COLUMNS.iter().map(|(name, kind)| match (*name, kind) {
        ("started_unix_ms", _) => ("started", Holds::Moment),
        ("ended_unix_ms", _) => ("ended", Holds::Moment),
        ("cost_pico", _) => ("cost", Holds::Cost),
        (name @ ("streamed" | "usage_invalid"), _) => (name, Holds::Flag),
        (name, Kind::Number) => (name, Holds::Number),
        (name, Kind::Text | Kind::Bytes) => (name, Holds::Text),
    });
    let [seq, hash] = [("seq", Holds::Number), ("hash", Holds::Text)];
    std::iter::once(seq)
        .chain(of_ledger)
        .chain(std::iter::once(hash))
        .collect()
}

fn field((name, holds): &(&str, Holds)) -> Result<Arc<Type>, ParquetError> {
    let physical = match holds {
        Holds::Number | Holds::Moment => Physical::INT64,
        Holds::Flag => Physical::BOOLEAN,
        Holds::Text => Physical::BYTE_ARRAY,
        Holds::Cost => Physical::FIXED_LEN_BYTE_ARRAY,
    };
    let logical = match holds {
        Holds::Number | Holds::Flag => None,
        Holds::Moment => Some(LogicalType::timestamp(true, TimeUnit::MILLIS)),
        Holds::Text => Some(LogicalType::String),
        Holds::Cost => Some(LogicalType::decimal(COST_SCALE, COST_DIGITS)),
    };
    let mut built = Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical);
    if *holds == Holds::Cost {
        built = built
            .with_length(COST_BYTES)
            .with_precision(COST_DIGITS)
            .with_scale(COST_SCALE);
    }
    built.build().map(Arc::new)
}

fn write_group(
    file: &mut SerializedFileWriter<&mut (dyn Write + Send)>,
    columns: &[(&'static str, Holds)],
    rows: &[Stored],
) -> Result<(), ExportError> {
    let mut group = file.next_row_group()?;
    for at in 0..columns.len() {
        let Some(mut column) = group.next_column()? else {
            break;
        };
        let (_, holds) = columns[at];
        let values = rows.iter().map(|row| value(row, at, columns.len()));
        write_column(&mut column, holds, values)?;
        column.close()?;
    }
    group.close()?;
    Ok(())
}

/// The value of a row in column `at` of `width`.
fn value(row: &Stored, at: usize, width: usize) -> Value {
    match at {
        0 => Value::Integer(row.seq),
        at if at + 1 == width => Value::Text(row.hash.to_string()),
        at => row.values.get(at - 1).cloned().unwrap_or(Value::Null),
    }
}

fn write_column(
    column: &mut SerializedColumnWriter<'_>,
    holds: Holds,
    values: impl Iterator<Item = Value>,
) -> Result<(), ParquetError> {
    match holds {
        Holds::Number | Holds::Moment => write_typed::<Int64Type>(column, values.map(number)),
        Holds::Flag => write_typed::<BoolType>(column, values.map(|v| number(v).map(|n| n != 0))),
        Holds::Text => write_typed::<ByteArrayType>(column, values.map(text)),
        Holds::Cost => write_typed::<FixedLenByteArrayType>(column, values.map(cost)),
    }
}

/// Writes values and, where there is none, nulls.
fn write_typed<T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let mut present = Vec::new();
    let mut levels = Vec::new();
    for value in values {
        levels.push(i16::from(value.is_some()));
        present.extend(value);
    }
    let column = column.typed::<T>();
    column.write_batch(&present, Some(&levels), None).map(drop)
}

fn number(value: Value) -> Option<i64> {
    match value {
        Value::Integer(n) => Some(n),
        _ => None,
    }
}

fn text(value: Value) -> Option<ByteArray> {
    match value {
        Value::Text(text) => Some(text.into_bytes().into()),
        Value::Blob(bytes) => Some(hex(&bytes).into_bytes().into()),
        _ => None,
    }
}

fn cost(value: Value) -> Option<FixedLenByteArray> {
    number(value).map(|pico| i128::from(pico).to_be_bytes().to_vec().into())
}

#[cfg(test)]
mod tests;
