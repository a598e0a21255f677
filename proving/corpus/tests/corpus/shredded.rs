//! JSON rows as Parquet files, by the levels of Dremel (Melnik and others, 2010).
//!
//! Lists have the three levels that the format asks for; a member that a row lacks is `null`, as in any columnar file.

use std::path::Path;
use std::sync::Arc;

use corpus::json::Json;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnDescriptor, Type};

/// Writes rows, some to a row group.
pub(crate) fn write(path: &Path, schema: &str, rows: &[Json], group: usize, codec: Compression) {
    let schema = Arc::new(parse_message_type(schema).expect("schema"));
    let properties = WriterProperties::builder().set_compression(codec).build();
    let file = std::fs::File::create(path).expect("creates");
    let mut writer =
        SerializedFileWriter::new(file, Arc::clone(&schema), Arc::new(properties)).expect("writer");
    let columns = writer.schema_descr().columns().to_vec();
    for rows in rows.chunks(group) {
        let mut out = writer.next_row_group().expect("row group");
        for column in &columns {
            let mut leaves = Leaves::default();
            for row in rows {
                leaves.row(&schema, column, row);
            }
            let mut into = out.next_column().expect("column").expect("as many columns");
            leaves.write(into.untyped(), column.physical_type());
            into.close().expect("closes");
        }
        out.close().expect("closes");
    }
    writer.close().expect("closes");
}

#[derive(Default)]
struct Leaves {
    values: Vec<Json>,
    defined: Vec<i16>,
    repeated: Vec<i16>,
}

impl Leaves {
    fn row(&mut self, schema: &Type, column: &ColumnDescriptor, row: &Json) {
        let mut nodes: Vec<&Type> = Vec::new();
        let mut at = schema;
        for name in column.path().parts() {
            let fields = at.get_fields().iter();
            at = fields
                .map(AsRef::as_ref)
                .find(|f| f.name() == name)
                .expect("a field of the schema");
            nodes.push(at);
        }
        let value = row.get(nodes[0].name());
        self.visit(&nodes, value, 0, 0, 0);
    }

    fn visit(&mut self, nodes: &[&Type], value: Option<&Json>, d: i16, r: i16, lists: i16) {
        let (node, below) = (nodes[0], &nodes[1..]);
        let value = value.filter(|value| !value.is_null());
        match node.get_basic_info().repetition() {
            Repetition::REQUIRED => self.below(node, below, value, d, r, lists),
            Repetition::OPTIONAL if value.is_none() => self.leaf(None, d, r),
            Repetition::OPTIONAL => self.below(node, below, value, d + 1, r, lists),
            Repetition::REPEATED => {
                let all = value.and_then(Json::as_array).unwrap_or_default();
                if all.is_empty() {
                    self.leaf(None, d, r);
                }
                for (k, one) in all.iter().enumerate() {
                    let r = if k == 0 { r } else { lists + 1 };
                    // The element of a list is the one child of the repeated group.
                    self.visit(below, Some(one), d + 1, r, lists + 1);
                }
            }
        }
    }

    fn below(
        &mut self,
        node: &Type,
        below: &[&Type],
        value: Option<&Json>,
        d: i16,
        r: i16,
        lists: i16,
    ) {
        let Some(child) = below.first() else {
            return self.leaf(value, d, r);
        };
        let is_list = node.get_basic_info().logical_type_ref() == Some(&LogicalType::List)
            || node.get_basic_info().converted_type() == parquet::basic::ConvertedType::LIST;
        let value = if is_list {
            value
        } else {
            value.and_then(|value| value.get(child.name()))
        };
        self.visit(below, value, d, r, lists);
    }

    fn leaf(&mut self, value: Option<&Json>, d: i16, r: i16) {
        self.values.extend(value.cloned());
        self.defined.push(d);
        self.repeated.push(r);
    }

    fn write(&self, into: &mut ColumnWriter<'_>, physical: Physical) {
        let (d, r) = (Some(&self.defined[..]), Some(&self.repeated[..]));
        let written = match into {
            ColumnWriter::ByteArrayColumnWriter(out) => {
                let all: Vec<ByteArray> = self
                    .values
                    .iter()
                    .map(|v| v.as_str().expect("text").into())
                    .collect();
                out.write_batch(&all, d, r)
            }
            ColumnWriter::Int64ColumnWriter(out) => {
                let all: Vec<i64> = self
                    .values
                    .iter()
                    .map(|v| v.as_f64().expect("number") as i64)
                    .collect();
                out.write_batch(&all, d, r)
            }
            ColumnWriter::DoubleColumnWriter(out) => {
                let all: Vec<f64> = self
                    .values
                    .iter()
                    .map(|v| v.as_f64().expect("number"))
                    .collect();
                out.write_batch(&all, d, r)
            }
            ColumnWriter::BoolColumnWriter(out) => {
                let all: Vec<bool> = self
                    .values
                    .iter()
                    .map(|v| v.as_bool().expect("bool"))
                    .collect();
                out.write_batch(&all, d, r)
            }
            _ => panic!("no fixture has a column of {physical}"),
        };
        written.expect("writes");
    }
}
