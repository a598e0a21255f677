//! What cannot be read says so.

use parquet::file::metadata::ColumnChunkMetaData;
use parquet::schema::parser::parse_message_type;

use super::*;

#[test]
fn a_codec_that_is_not_linked_is_named_with_what_to_do() {
    let schema = parse_message_type("message m { optional binary a (UTF8); optional binary b; }");
    let schema = Arc::new(SchemaDescriptor::new(Arc::new(schema.unwrap())));
    let column = |at: usize, codec| {
        let chunk = ColumnChunkMetaData::builder(schema.column(at));
        chunk.set_compression(codec).build().unwrap()
    };
    let zstd = Compression::ZSTD(Default::default());
    let group = RowGroupMetaData::builder(Arc::clone(&schema))
        .set_column_metadata(vec![column(0, Compression::SNAPPY), column(1, zstd)])
        .build()
        .unwrap();
    assert_eq!(unreadable(&group, &["a"]), None);
    let says = unreadable(&group, &["a", "b"]).unwrap();
    assert!(
        says.starts_with("its column b is compressed by ZSTD"),
        "{says}"
    );
    assert!(
        says.ends_with("write the file again with snappy, gzip or lz4"),
        "{says}"
    );
}

#[test]
fn a_panic_over_a_damaged_file_is_an_error_of_that_file() {
    let result: Result<(), ReadError> = guarded(Path::new("x.parquet"), || panic!("level {}", 7));
    let says = result.unwrap_err().to_string();
    assert_eq!(says, "x.parquet: is damaged Parquet: level 7");
}
