//! Pairs of stamps as a Parquet file: a row for each request that client and relay both saw.
//!
//! Invariant: names of columns are those of the rows of requests where they mean the same, so that the two can be joined.
//! Not here: what pairs come to (`overhead`).

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use parquet::basic::{Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;

use super::Pair;
use crate::columns;

/// Rows of a group.
const GROUP_ROWS: usize = 100_000;

type Column = (&'static str, fn(&Pair) -> i64);

/// What is beside the profile's name.
const COLUMNS: [Column; 10] = [
    ("user", |pair| number(pair.id.user)),
    ("session", |pair| number(pair.id.session)),
    ("turn", |pair| pair.id.turn.into()),
    ("intended_ns", |pair| number(pair.id.intended_ns)),
    ("sent_ns", |pair| number(pair.sent_ns)),
    ("to_upstream_ns", |pair| pair.to_upstream_ns),
    ("first_back_ns", |pair| pair.first_back_ns),
    ("last_back_ns", |pair| pair.last_back_ns),
    ("upstream_ns", |pair| pair.upstream_ns),
    ("downstream_ns", |pair| pair.downstream_ns),
];

/// Writes all of them; profiles are named by these.
///
/// # Errors
/// The file cannot be written; it is then not whole.
pub(crate) fn write(path: &Path, profiles: &[String], pairs: &[Pair]) -> Result<(), String> {
    let of_file = |error: &dyn std::error::Error| format!("{}: {error}", path.display());
    let out = File::create(path).map_err(|error| of_file(&error))?;
    write_to(out, profiles, pairs).map_err(|error| of_file(&error))
}

fn write_to(out: File, profiles: &[String], pairs: &[Pair]) -> Result<(), ParquetError> {
    let numbers = COLUMNS.iter().map(|(name, _)| (*name, Physical::INT64));
    let all = [("profile", Physical::BYTE_ARRAY)]
        .into_iter()
        .chain(numbers);
    let mut file = columns::begin(BufWriter::new(out), "pair", Repetition::REQUIRED, all)?;
    for pairs in pairs.chunks(GROUP_ROWS) {
        let mut group = file.next_row_group()?;
        let names = pairs.iter().map(|pair| {
            let at = usize::try_from(pair.id.profile).ok();
            let name = at.and_then(|at| profiles.get(at));
            ByteArray::from(name.map_or("", String::as_str))
        });
        columns::write::<ByteArrayType, _>(&mut group, &names.collect::<Vec<_>>(), None)?;
        for (_, read) in COLUMNS {
            let values: Vec<i64> = pairs.iter().map(read).collect();
            columns::write::<Int64Type, _>(&mut group, &values, None)?;
        }
        group.close()?;
    }
    file.close().map(drop)
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
