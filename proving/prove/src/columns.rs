//! Parquet files of ours, column by column: rows of requests, samples, pairs of stamps.
//!
//! Invariant: a file that begins has all of its columns, in their order; each group has as many values of each.
//! Not here: what a column holds, when a group is written.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

/// Begins a file whose rows are called `row`. Bytes are text.
pub(crate) fn begin<W: Write + Send>(
    out: W,
    row: &str,
    repetition: Repetition,
    columns: impl IntoIterator<Item = (&'static str, Physical)>,
) -> Result<SerializedFileWriter<W>, ParquetError> {
    let fields = columns.into_iter().map(|(name, physical)| {
        let is_text = physical == Physical::BYTE_ARRAY;
        let field = Type::primitive_type_builder(name, physical)
            .with_repetition(repetition)
            .with_logical_type(is_text.then_some(LogicalType::String));
        field.build().map(Arc::new)
    });
    let schema = Type::group_type_builder(row)
        .with_fields(fields.collect::<Result<Vec<_>, _>>()?)
        .build()?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("prove {}", env!("CARGO_PKG_VERSION")))
        .build();
    SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))
}

/// Writes the next column of a group; `levels` says which of its rows have a value, where some have none.
pub(crate) fn write<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General(
            "bug: more columns than the schema has".into(),
        ));
    };
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}
