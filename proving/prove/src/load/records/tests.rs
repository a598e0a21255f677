//! Rows, written and read again.

use load::client::Failure;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;

use super::Records;
use crate::load::rows::tests::row;

#[test]
fn rows_are_read_again_as_they_were_with_nulls_where_there_was_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("rows.parquet");
    let mut records = Records::create(&path, vec!["coding".into()]).expect("a file");
    let mut failed = row(7, Some(Failure::Status(503)));
    (failed.first_token_ns, failed.status) = (None, 503);
    records.add(&[row(5, None), failed]).expect("room");
    records.finish().expect("an end");
    let file = std::fs::File::open(&path).expect("a file");
    let reader = SerializedFileReader::new(file).expect("a Parquet file");
    let rows: Vec<_> = reader
        .get_row_iter(None)
        .expect("rows")
        .map(|row| row.expect("a row"))
        .collect();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].get_string(0).expect("a profile"), "coding");
    assert_eq!(rows[0].get_long(4).expect("a moment"), 5_000_000);
    assert_eq!(rows[0].get_long(8).expect("a moment"), 15_000_000);
    assert!(rows[0].get_string(15).is_err(), "no failure");
    assert!(rows[1].get_long(8).is_err(), "no token");
    assert_eq!(rows[1].get_string(15).expect("a failure"), "status_503");
    assert!(!rows[1].get_bool(23).expect("a flag"));
}

#[test]
fn a_file_that_cannot_be_made_is_named() {
    let error = Records::create("/nowhere/at/all.parquet".as_ref(), Vec::new());
    let error = error.err().expect("no directory").to_string();
    assert!(error.starts_with("/nowhere/at/all.parquet: "), "{error}");
}
