//! The file read back by the format's own reader, beside the CSV of the same rows.

use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::Field;

use super::parquet;
use crate::read::{Period, Reader};
use crate::report::tests::ledger;

/// Every row as name and text, what is null left out.
fn rows(reader: &Reader, period: Period) -> Vec<Vec<(String, String)>> {
    let mut file = Vec::new();
    let told = parquet(reader, period, &mut file).expect("writes");
    let file = SerializedFileReader::new(bytes::Bytes::from(file)).expect("a Parquet file");
    assert_eq!(
        file.metadata().file_metadata().num_rows().unsigned_abs(),
        told
    );
    let rows = file.get_row_iter(None).expect("rows");
    let present = |row: ::parquet::record::Row| {
        let fields = row.get_column_iter();
        fields
            .filter(|(_, field)| !matches!(field, Field::Null))
            .map(|(name, field)| (name.clone(), text(field)))
            .collect()
    };
    rows.map(|row| present(row.expect("a row"))).collect()
}

fn text(field: &Field) -> String {
    match field {
        Field::Str(text) => text.clone(),
        Field::Long(n) | Field::TimestampMillis(n) => n.to_string(),
        Field::Bool(is) => u8::from(*is).to_string(),
        Field::Decimal(cost) => {
            let bytes = <[u8; 16]>::try_from(cost.data()).expect("sixteen bytes");
            assert_eq!((cost.precision(), cost.scale()), (38, 12));
            i128::from_be_bytes(bytes).to_string()
        }
        other => panic!("{other:?} is of no column"),
    }
}

#[test]
fn every_value_is_that_of_the_row() {
    let (_dir, reader) = ledger();
    let rows = rows(&reader, Period::ALL);
    let mut stored = Vec::new();
    let each = reader.each(Period::ALL, |row| {
        stored.push(row.to_json());
        Ok::<(), crate::ReadError>(())
    });
    each.expect("reads");
    assert_eq!((rows.len(), stored.len()), (4, 4));
    for (row, stored) in rows.iter().zip(&stored) {
        let mut seen = 0;
        for (name, value) in stored.as_object().expect("an object") {
            let column = match name.as_str() {
                "cost" => continue,
                "cost_pico" => "cost",
                "started_unix_ms" => "started",
                "ended_unix_ms" => "ended",
                name => name,
            };
            let found = row.iter().find(|(name, _)| name == column);
            let found = found.map(|(_, value)| value.as_str());
            let expected = match value {
                serde_json::Value::Null => None,
                serde_json::Value::String(text) => Some(text.clone()),
                other => Some(other.to_string()),
            };
            assert_eq!(found, expected.as_deref(), "{name}");
            seen += usize::from(found.is_some());
        }
        assert_eq!(seen, row.len(), "no column that the row does not have");
    }
}

#[test]
fn a_period_without_rows_is_a_whole_file() {
    let (_dir, reader) = ledger();
    let none = Period {
        from_ms: 1,
        to_ms: 2,
    };
    assert_eq!(rows(&reader, none), Vec::<Vec<(String, String)>>::new());
}
