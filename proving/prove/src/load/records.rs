//! A row for each exchange as a Parquet file.
//!
//! Invariant: times are nanoseconds since the start of the run, and null where an exchange did not come to that. Memory is
//! bounded by one group of rows.
//! Not here: what a row means (`load::observer`), sums (`rows`).

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use load::observer::Record;
use parquet::basic::{Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};

use crate::columns;

/// Rows that are held before they are written: some 20 MB.
const GROUP_ROWS: usize = 100_000;

/// A file that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {says}", path.display())]
pub(crate) struct RecordsError {
    path: PathBuf,
    says: String,
}

/// What a column holds, and how it is read of a row.
enum Column {
    Number(fn(&Record) -> Option<u64>),
    Flag(fn(&Record) -> bool),
    Profile,
    Failure,
}

const COLUMNS: [(&str, Column); 24] = [
    ("profile", Column::Profile),
    ("user", Column::Number(|row| Some(row.user))),
    ("session", Column::Number(|row| Some(row.session))),
    ("turn", Column::Number(|row| Some(row.turn.into()))),
    ("intended_ns", Column::Number(|row| Some(row.intended_ns))),
    ("sent_ns", Column::Number(|row| row.sent_ns)),
    ("head_ns", Column::Number(|row| row.head_ns)),
    ("body_ns", Column::Number(|row| row.body_ns)),
    ("first_token_ns", Column::Number(|row| row.first_token_ns)),
    (
        "first_visible_ns",
        Column::Number(|row| row.first_visible_ns),
    ),
    ("last_token_ns", Column::Number(|row| row.last_token_ns)),
    ("ended_ns", Column::Number(|row| Some(row.ended_ns))),
    (
        "time_per_token_ns",
        Column::Number(|row| row.time_per_token_ns),
    ),
    ("longest_gap_ns", Column::Number(|row| row.longest_gap_ns)),
    (
        "status",
        Column::Number(|row| (row.status > 0).then_some(row.status.into())),
    ),
    ("failure", Column::Failure),
    ("prompt_tokens", Column::Number(|row| row.prompt_tokens)),
    (
        "completion_tokens",
        Column::Number(|row| row.completion_tokens),
    ),
    ("cached_tokens", Column::Number(|row| row.cached_tokens)),
    ("events", Column::Number(|row| Some(row.events))),
    ("outputs", Column::Number(|row| Some(row.outputs))),
    ("bytes_up", Column::Number(|row| Some(row.bytes_up))),
    ("bytes_down", Column::Number(|row| Some(row.bytes_down))),
    ("reopened", Column::Flag(|row| row.reopened)),
];

/// The file being written.
pub(super) struct Records {
    path: PathBuf,
    file: SerializedFileWriter<BufWriter<File>>,
    profiles: Vec<String>,
    group: Vec<Record>,
}

impl Records {
    /// Begins a file; rows name their profiles by these.
    pub(super) fn create(path: &Path, profiles: Vec<String>) -> Result<Self, RecordsError> {
        let file = File::create(path).map_err(|error| fault(path, &error))?;
        let file = begin(BufWriter::new(file)).map_err(|error| fault(path, &error))?;
        Ok(Self {
            path: path.to_owned(),
            file,
            profiles,
            group: Vec::new(),
        })
    }

    /// Adds rows.
    pub(super) fn add(&mut self, rows: &[Record]) -> Result<(), RecordsError> {
        self.group.extend_from_slice(rows);
        if self.group.len() < GROUP_ROWS {
            return Ok(());
        }
        self.write_group()
    }

    /// Writes what is left, and the end of the file.
    pub(super) fn finish(mut self) -> Result<(), RecordsError> {
        if !self.group.is_empty() {
            self.write_group()?;
        }
        let closed = self.file.close();
        closed.map(drop).map_err(|error| fault(&self.path, &error))
    }

    fn write_group(&mut self) -> Result<(), RecordsError> {
        let rows = std::mem::take(&mut self.group);
        let profile = |row: &Record| {
            let name = usize::try_from(row.profile)
                .ok()
                .and_then(|at| self.profiles.get(at));
            name.map_or("", String::as_str)
        };
        let mut write = || -> Result<(), ParquetError> {
            let mut group = self.file.next_row_group()?;
            for (_, column) in &COLUMNS {
                match column {
                    Column::Number(read) => {
                        let values = rows.iter().map(|row| {
                            read(row).map(|value| i64::try_from(value).unwrap_or(i64::MAX))
                        });
                        write_column::<Int64Type>(&mut group, values)?;
                    }
                    Column::Flag(read) => {
                        write_column::<BoolType>(
                            &mut group,
                            rows.iter().map(|row| Some(read(row))),
                        )?;
                    }
                    Column::Profile => {
                        let names = rows.iter().map(|row| Some(ByteArray::from(profile(row))));
                        write_column::<ByteArrayType>(&mut group, names)?;
                    }
                    Column::Failure => {
                        let kinds = rows.iter().map(|row| {
                            row.failure
                                .map(|failure| ByteArray::from(failure.to_string().as_str()))
                        });
                        write_column::<ByteArrayType>(&mut group, kinds)?;
                    }
                }
            }
            group.close().map(drop)
        };
        write().map_err(|error| fault(&self.path, &error))
    }
}

fn fault(path: &Path, error: &dyn std::error::Error) -> RecordsError {
    RecordsError {
        path: path.to_owned(),
        says: error.to_string(),
    }
}

fn begin(out: BufWriter<File>) -> Result<SerializedFileWriter<BufWriter<File>>, ParquetError> {
    let columns = COLUMNS.iter().map(|(name, column)| {
        let physical = match column {
            Column::Number(_) => Physical::INT64,
            Column::Flag(_) => Physical::BOOLEAN,
            Column::Profile | Column::Failure => Physical::BYTE_ARRAY,
        };
        (*name, physical)
    });
    columns::begin(out, "exchange", Repetition::OPTIONAL, columns)
}

fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, BufWriter<File>>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let (mut present, mut levels) = (Vec::new(), Vec::new());
    for value in values {
        levels.push(i16::from(value.is_some()));
        present.extend(value);
    }
    columns::write::<T, _>(group, &present, Some(&levels))
}
