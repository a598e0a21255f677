//! Parquet files to rows, as JSON.
//!
//! Rows are read a few at a time through the crate's record interface; only the columns that a format needs are read.
//! Codecs: none, Snappy, gzip and LZ4; what else a file uses is an error that says so.
//! Invariant: a damaged file is an error, also where the crate below panics (which still prints a line on standard
//! error, and needs a build that unwinds). A row that is larger than
//! [`MAX_RECORD_BYTES`] is a fault. Memory follows the pages of the file (1 MiB each, as writers have them by default)
//! and eight rows.
//! Not here: what a row says.

use std::any::Any;
use std::fs::File;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::record::reader::{ReaderIter, TreeBuilder};
use parquet::record::{Field, Row};
use parquet::schema::types::{SchemaDescriptor, Type};

use super::files::{at, begins, format};
use super::{Fault, MAX_RECORD_BYTES, Part, ReadError, Unit};
use crate::json::{Json, Oddities};
use crate::regular;

/// Rows that are decoded at a time.
const BATCH_ROWS: usize = 8;
/// Row groups of one file.
const MAX_ROW_GROUPS: usize = 100_000;

/// What takes a row, by its number in the file.
pub(super) type TakeRow<'a> = &'a mut dyn FnMut(u64, Result<Json, Fault>) -> ControlFlow<()>;

/// Whether a file is Parquet, whatever its name.
pub(super) fn is_parquet(path: &Path) -> Result<bool, ReadError> {
    begins(path, b"PAR1")
}

/// Whether a file has one of these columns.
pub(super) fn has_any(path: &Path, columns: &[&str]) -> Result<bool, ReadError> {
    let reader = open(path)?;
    let fields = reader.metadata().file_metadata().schema().get_fields();
    Ok(fields.iter().any(|field| columns.contains(&field.name())))
}

/// One unit for each row group.
pub(super) fn units(path: PathBuf) -> Result<Vec<Unit>, ReadError> {
    let reader = open(&path)?;
    let file: Arc<Path> = Arc::from(path);
    let groups = reader.metadata().row_groups().iter().enumerate();
    let unit = |(number, group): (usize, &RowGroupMetaData)| Unit {
        file: Arc::clone(&file),
        part: Part::RowGroup(number),
        bytes: u64::try_from(group.compressed_size()).unwrap_or(0),
    };
    Ok(groups.map(unit).collect())
}

/// Reads the rows of a unit: of one row group, or of the whole file in order.
pub(super) fn rows(
    unit: &Unit,
    columns: &[&str],
    oddities: &mut Oddities,
    take: TakeRow<'_>,
) -> Result<(), ReadError> {
    let path = &unit.file;
    let reader = open(path)?;
    let count = reader.metadata().num_row_groups();
    let groups = match unit.part {
        Part::RowGroup(number) if number < count => number..number + 1,
        Part::RowGroup(_) => return Err(format(path, "has lost a row group since it was listed")),
        _ => 0..count,
    };
    for number in groups {
        let before = reader.metadata().row_groups()[..number].iter();
        let first: u64 = before
            .map(|g| u64::try_from(g.num_rows()).unwrap_or(0))
            .sum();
        let going = guarded(path, || {
            let group = reader.get_row_group(number)?;
            read_group(&*group, columns)
        })?;
        let Some(iter) = going.map_err(|says| format(path, says))? else {
            let says = format!("has none of the columns {}", columns.join(", "));
            return Err(format(path, says));
        };
        if each_row(path, iter, first, oddities, take)?.is_break() {
            return Ok(());
        }
    }
    Ok(())
}

fn each_row(
    path: &Path,
    mut iter: ReaderIter,
    first: u64,
    oddities: &mut Oddities,
    take: TakeRow<'_>,
) -> Result<ControlFlow<()>, ReadError> {
    let mut number = first;
    // The crate goes on after an error of a row with the same error, so the first ends the group.
    while let Some(row) = guarded(path, || iter.next().transpose())? {
        let mut room = MAX_RECORD_BYTES;
        let value = object(&row, &mut room, oddities);
        let value = value.ok_or_else(super::records::too_long);
        if take(number, value).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        number += 1;
    }
    Ok(ControlFlow::Continue(()))
}

fn open(path: &Path) -> Result<SerializedFileReader<File>, ReadError> {
    let file = regular::open(path).map_err(|source| at(path, source))?;
    let reader = guarded(path, || SerializedFileReader::new(file))?;
    if reader.metadata().num_row_groups() > MAX_ROW_GROUPS {
        return Err(format(path, "has more than 100,000 row groups"));
    }
    Ok(reader)
}

/// The rows of a group with the columns of these names; `None` where it has none of them.
fn read_group(
    group: &dyn RowGroupReader,
    columns: &[&str],
) -> parquet::errors::Result<Result<Option<ReaderIter>, String>> {
    let about = group.metadata();
    let schema = about.schema_descr().root_schema();
    let fields: Vec<_> = schema
        .get_fields()
        .iter()
        .filter(|field| columns.contains(&field.name()))
        .cloned()
        .collect();
    if fields.is_empty() {
        return Ok(Ok(None));
    }
    if let Some(says) = unreadable(about, columns) {
        return Ok(Err(says));
    }
    let wanted = Type::group_type_builder(schema.name())
        .with_fields(fields)
        .build()?;
    let wanted = Arc::new(SchemaDescriptor::new(Arc::new(wanted)));
    let builder = TreeBuilder::new().with_batch_size(BATCH_ROWS);
    builder.as_iter(wanted, group).map(|iter| Ok(Some(iter)))
}

/// Says which column uses a codec that is not linked.
fn unreadable(group: &RowGroupMetaData, columns: &[&str]) -> Option<String> {
    let of = |column: &&parquet::file::metadata::ColumnChunkMetaData| {
        let top = column.column_path().parts().first();
        top.is_some_and(|top| columns.contains(&top.as_str()))
    };
    let column = group.columns().iter().filter(of).find(|column| {
        !matches!(
            column.compression(),
            Compression::UNCOMPRESSED
                | Compression::SNAPPY
                | Compression::GZIP(_)
                | Compression::LZ4
                | Compression::LZ4_RAW
        )
    })?;
    Some(format!(
        "its column {} is compressed by {}, which is not read: write the file again with snappy, gzip or lz4",
        column.column_path().string(),
        column.compression()
    ))
}

/// Runs what the crate may panic in over damaged files.
fn guarded<T>(
    path: &Path,
    read: impl FnOnce() -> parquet::errors::Result<T>,
) -> Result<T, ReadError> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(format(path, format!("is damaged Parquet: {error}"))),
        Err(panic) => Err(format(
            path,
            format!("is damaged Parquet: {}", told(&*panic)),
        )),
    }
}

fn told(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("it cannot be decoded").to_owned()
}

/// A row as an object; `None` past the room.
fn object(row: &Row, room: &mut usize, oddities: &mut Oddities) -> Option<Json> {
    let mut members = Vec::with_capacity(row.len());
    for (name, field) in row.get_column_iter() {
        members.push((name.clone(), value(field, room, oddities)?));
    }
    Some(Json::Object(members))
}

fn value(field: &Field, room: &mut usize, oddities: &mut Oddities) -> Option<Json> {
    let bytes = match field {
        Field::Str(text) => text.len(),
        Field::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    // Every value takes some memory, so that many small ones end too.
    *room = room.checked_sub(bytes + 16)?;
    Some(match field {
        Field::Null => Json::Null,
        Field::Bool(b) => Json::Bool(*b),
        Field::Byte(n) => Json::from(i64::from(*n)),
        Field::Short(n) => Json::from(i64::from(*n)),
        Field::Int(n) | Field::Date(n) | Field::TimeMillis(n) => Json::from(i64::from(*n)),
        Field::Long(n)
        | Field::TimeMicros(n)
        | Field::TimestampMillis(n)
        | Field::TimestampMicros(n) => Json::from(*n),
        Field::UByte(n) => Json::from(u64::from(*n)),
        Field::UShort(n) => Json::from(u64::from(*n)),
        Field::UInt(n) => Json::from(u64::from(*n)),
        Field::ULong(n) => Json::from(*n),
        Field::Float(n) => finite(f64::from(*n), oddities),
        Field::Double(n) => finite(*n, oddities),
        Field::Str(text) => Json::from(text.as_str()),
        Field::Bytes(bytes) => text(bytes.data(), oddities),
        Field::Group(row) => object(row, room, oddities)?,
        Field::ListInternal(list) => {
            let elements = list.elements().iter();
            let all: Option<Vec<_>> = elements.map(|one| value(one, room, oddities)).collect();
            Json::Array(all?)
        }
        Field::MapInternal(map) => {
            let mut members = Vec::new();
            for (key, one) in map.entries() {
                let name = match key {
                    Field::Str(name) => name.clone(),
                    other => other.to_string(),
                };
                members.push((name, value(one, room, oddities)?));
            }
            Json::Object(members)
        }
        other => Json::from(other.to_string()),
    })
}

fn finite(number: f64, oddities: &mut Oddities) -> Json {
    if !number.is_finite() {
        oddities.numbers_not_finite += 1;
    }
    Json::from(number)
}

fn text(bytes: &[u8], oddities: &mut Oddities) -> Json {
    if std::str::from_utf8(bytes).is_err() {
        oddities.invalid_utf8 += 1;
    }
    Json::from(String::from_utf8_lossy(bytes).into_owned())
}

#[cfg(test)]
mod tests;
