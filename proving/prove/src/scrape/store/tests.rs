//! What is written is read back; a disk that fills up is told once.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use experiment::telemetry::{Query, Sample, Value};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;

use super::{GROUP_ROWS, Store};

fn sample(at_ms: u64, values: usize) -> Sample {
    let value = |number: usize| Value {
        metric: format!("m{number}"),
        labels: vec![("a".into(), "b\"c".into())],
        value: number as f64,
    };
    Sample {
        at: Duration::from_millis(at_ms),
        target: "engine".into(),
        values: (0..values).map(value).collect(),
    }
}

/// A disk with so much room.
struct Disk(usize);

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn samples_are_read_back_as_they_were_in_groups_of_bounded_size() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("samples.parquet");
    let mut store = Store::create(&path).expect("a file");
    store.add(&sample(1_500, 3)).expect("room");
    store.add(&sample(2_500, GROUP_ROWS)).expect("room");
    assert_eq!(store.finish().expect("a whole file"), GROUP_ROWS as u64 + 3);
    let file = std::fs::File::open(&path).expect("a file");
    let reader = SerializedFileReader::new(file).expect("Parquet");
    assert_eq!(reader.num_row_groups(), 2);
    let row = reader.get_row_iter(None).expect("rows").nth(2);
    let row = row.expect("a third").expect("a row");
    assert_eq!(row.get_long(0).expect("time_ms"), 1_500);
    assert_eq!(row.get_string(1).expect("target"), "engine");
    assert_eq!(row.get_string(2).expect("metric"), "m2");
    assert_eq!(row.get_string(3).expect("labels"), "{a=\"b\\\"c\"}");
    assert_eq!(row.get_double(4).expect("value"), 2.0);
}

#[test]
fn a_full_disk_is_told_once_and_again_at_the_end() {
    let mut store = Store::begin(Path::new("there"), Disk(2_000)).expect("room to begin");
    let big = sample(0, GROUP_ROWS);
    let told = store.add(&big).expect_err("no room");
    assert!(told.to_string().starts_with("there: "), "{told}");
    store.add(&big).expect("told already");
    assert_eq!(store.finish().expect_err("not whole"), told);
}

#[test]
fn a_file_that_cannot_be_made_is_named() {
    let told = Store::create(Path::new("/nowhere/at/all"))
        .err()
        .expect("no directory");
    assert!(told.to_string().contains("/nowhere/at/all"), "{told}");
}

#[test]
fn a_file_that_is_half_full_keeps_what_queries_ask_for_and_a_full_one_nothing() {
    let mut store = Store::begin(Path::new("rows"), Disk(1 << 20)).expect("room to begin");
    store.most_rows = 20;
    let query: Query = "increase(engine:m1)".parse().expect("a query");
    store.prefer([&query]);
    store.add(&sample(0, 10)).expect("room");
    assert_eq!(store.left_out(), None);
    for at in 1..=12 {
        store.add(&sample(at, 10)).expect("room");
    }
    // Ten of the first page, then m1 of ten pages.
    let says = store.left_out().expect("some");
    assert!(says.starts_with("110 rows were left out of rows"), "{says}");
    assert_eq!(store.finish().expect("a whole file"), 20);
}
