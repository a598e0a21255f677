//! Samples as a Parquet file: `time_ms`, `target`, `metric`, `labels`, `value`.
//!
//! Invariant: memory is bounded by one group of rows, and the file by [`MOST_ROWS`]; beyond half of them only what queries
//! ask for is kept, and what is left out is counted. What cannot be written is told once, and the file is not touched
//! again; whoever goes on scraping is not disturbed.
//! Not here: what a figure means, rows of exchanges (`load::records`).

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use experiment::telemetry::{Query, Sample};
use parquet::basic::{Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;

use super::targets::labels_of;
use crate::columns;

/// Rows that are held before they are written: some 20 MB.
const GROUP_ROWS: usize = 100_000;
/// Rows of a file: some 3 GB.
const MOST_ROWS: u64 = 400_000_000;

/// The file could not be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {says}; it has {rows} whole rows and no end, so that it cannot be read", path.display())]
pub(crate) struct StoreError {
    path: PathBuf,
    says: String,
    rows: u64,
}

/// The file being written.
pub(crate) struct Store<W: Write + Send = BufWriter<File>> {
    path: PathBuf,
    /// `None` once it could not be written.
    file: Option<SerializedFileWriter<W>>,
    group: Group,
    rows: u64,
    /// Rows that were added, written or not.
    added: u64,
    most_rows: u64,
    /// What is kept when there is little room: targets and metrics.
    asked: BTreeSet<(String, String)>,
    left_out: u64,
    fault: Option<StoreError>,
}

/// Rows by column.
#[derive(Default)]
struct Group {
    time_ms: Vec<i64>,
    target: Vec<ByteArray>,
    metric: Vec<ByteArray>,
    labels: Vec<ByteArray>,
    value: Vec<f64>,
}

impl Store {
    /// Begins a file.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn create(path: &Path) -> Result<Self, StoreError> {
        let made = File::create(path).map(BufWriter::new);
        let fault = |says: String| StoreError {
            path: path.to_owned(),
            says,
            rows: 0,
        };
        Self::begin(path, made.map_err(|error| fault(error.to_string()))?)
    }
}

impl<W: Write + Send> Store<W> {
    fn begin(path: &Path, out: W) -> Result<Self, StoreError> {
        let file = begin(out).map_err(|error| StoreError {
            path: path.to_owned(),
            says: error.to_string(),
            rows: 0,
        })?;
        Ok(Self {
            path: path.to_owned(),
            file: Some(file),
            group: Group::default(),
            rows: 0,
            added: 0,
            most_rows: MOST_ROWS,
            asked: BTreeSet::new(),
            left_out: 0,
            fault: None,
        })
    }

    /// What these need is kept for longer than the rest.
    pub(crate) fn prefer<'a>(&mut self, queries: impl IntoIterator<Item = &'a Query>) {
        let selectors = queries.into_iter().flat_map(Query::selectors);
        let names = selectors.map(|of| (of.target, of.metric));
        self.asked.extend(names);
    }

    /// What was left out because the file has enough, in words; `None` where nothing was.
    pub(crate) fn left_out(&self) -> Option<String> {
        let file = self.path.file_name().unwrap_or_default().to_string_lossy();
        (self.left_out > 0).then(|| {
            format!(
                "{} rows were left out of {file}, those that no query asks for first: it holds {} at most",
                self.left_out, self.most_rows
            )
        })
    }

    fn has_room_for(&self, target: &str, metric: &str) -> bool {
        self.added < self.most_rows / 2
            || self.added < self.most_rows
                && self.asked.contains(&(target.to_owned(), metric.to_owned()))
    }

    /// Adds a sample. An error comes once; what is added later is dropped.
    ///
    /// # Errors
    /// The file cannot be written, from now on.
    pub(crate) fn add(&mut self, sample: &Sample) -> Result<(), StoreError> {
        if self.file.is_none() {
            return Ok(());
        }
        let time_ms = i64::try_from(sample.at.as_millis()).unwrap_or(i64::MAX);
        let target = ByteArray::from(sample.target.as_str());
        for value in &sample.values {
            if !self.has_room_for(&sample.target, &value.metric) {
                self.left_out += 1;
                continue;
            }
            self.added += 1;
            self.group.time_ms.push(time_ms);
            self.group.target.push(target.clone());
            self.group.metric.push(value.metric.as_str().into());
            self.group
                .labels
                .push(labels_of(&value.labels).as_str().into());
            self.group.value.push(value.value);
            if self.group.value.len() >= GROUP_ROWS {
                self.write_group()?;
            }
        }
        Ok(())
    }

    /// Writes what is left, and the end of the file; how many rows it has.
    ///
    /// # Errors
    /// The file is not whole: the error that was told before, or the first.
    pub(crate) fn finish(mut self) -> Result<u64, StoreError> {
        if self.file.is_some() && !self.group.value.is_empty() {
            self.write_group()?;
        }
        if let Some(file) = self.file.take() {
            let closed = file.into_inner().map_err(io::Error::other);
            let closed = closed.and_then(|mut out| out.flush());
            closed.map_err(|error| self.broken(error.to_string()))?;
        }
        self.fault.map_or(Ok(self.rows), Err)
    }

    fn write_group(&mut self) -> Result<(), StoreError> {
        let group = std::mem::take(&mut self.group);
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        match group.write(file) {
            Ok(()) => {
                self.rows += group.value.len() as u64;
                Ok(())
            }
            Err(error) => Err(self.broken(error.to_string())),
        }
    }

    fn broken(&mut self, says: String) -> StoreError {
        let fault = StoreError {
            path: self.path.clone(),
            says,
            rows: self.rows,
        };
        (self.file, self.fault) = (None, Some(fault.clone()));
        fault
    }
}

impl Group {
    fn write<W: Write + Send>(
        &self,
        file: &mut SerializedFileWriter<W>,
    ) -> Result<(), ParquetError> {
        let mut group = file.next_row_group()?;
        columns::write::<Int64Type, W>(&mut group, &self.time_ms, None)?;
        columns::write::<ByteArrayType, W>(&mut group, &self.target, None)?;
        columns::write::<ByteArrayType, W>(&mut group, &self.metric, None)?;
        columns::write::<ByteArrayType, W>(&mut group, &self.labels, None)?;
        columns::write::<DoubleType, W>(&mut group, &self.value, None)?;
        group.close().map(drop)
    }
}

fn begin<W: Write + Send>(out: W) -> Result<SerializedFileWriter<W>, ParquetError> {
    let columns = [
        ("time_ms", Physical::INT64),
        ("target", Physical::BYTE_ARRAY),
        ("metric", Physical::BYTE_ARRAY),
        ("labels", Physical::BYTE_ARRAY),
        ("value", Physical::DOUBLE),
    ];
    columns::begin(out, "sample", Repetition::REQUIRED, columns)
}
