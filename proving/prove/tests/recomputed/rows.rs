//! The rows of `requests.parquet` and of `--records`, and those of `pairs.parquet`.
//!
//! Not here: what a figure is made of.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

/// One exchange.
pub(super) struct Row {
    pub(super) profile: String,
    pub(super) failure: Option<String>,
    numbers: BTreeMap<String, i64>,
}

impl Row {
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.numbers.get(name).copied()
    }

    /// A moment, or a time, of this row in seconds.
    #[expect(
        clippy::cast_precision_loss,
        reason = "nanoseconds below 2^53 are 104 days"
    )]
    pub(super) fn seconds(&self, name: &str) -> Option<f64> {
        Some(self.number(name)? as f64 / 1e9)
    }

    pub(super) fn due(&self) -> f64 {
        self.seconds("intended_ns").expect("each row was due")
    }

    pub(super) fn ended(&self) -> f64 {
        self.seconds("ended_ns").expect("each row ended")
    }

    pub(super) fn is_good(&self) -> bool {
        self.failure.is_none()
    }

    /// When output began: an answer without events begins with its body.
    pub(super) fn first(&self) -> Option<f64> {
        let of_body = || {
            self.seconds("body_ns")
                .filter(|_| self.number("events") == Some(0))
        };
        self.seconds("first_token_ns").or_else(of_body)
    }

    /// The time from when it was due to one of its moments.
    pub(super) fn since_due(&self, moment: Option<f64>) -> Option<f64> {
        moment.map(|moment| moment - self.due())
    }
}

/// All rows of a file, in the order of their dues.
pub(super) fn read(path: &Path) -> Vec<Row> {
    let file = File::open(path).expect("a file of rows");
    let reader = SerializedFileReader::new(file).expect("a Parquet file");
    let mut rows: Vec<Row> = reader
        .get_row_iter(None)
        .expect("rows")
        .map(|row| {
            let mut read = Row {
                profile: String::new(),
                failure: None,
                numbers: BTreeMap::new(),
            };
            let row = row.expect("a row");
            for (name, field) in row.get_column_iter() {
                match (&**name, field) {
                    ("profile", Field::Str(text)) => read.profile.clone_from(text),
                    ("failure", Field::Str(text)) => read.failure = Some(text.clone()),
                    (_, Field::Long(number)) => drop(read.numbers.insert(name.clone(), *number)),
                    (_, Field::Bool(flag)) => {
                        read.numbers.insert(name.clone(), i64::from(*flag));
                    }
                    _ => {}
                }
            }
            read
        })
        .collect();
    rows.sort_by_key(|row| row.number("intended_ns"));
    rows
}

/// What of rows there is, as a list.
pub(super) fn times<'a>(
    rows: impl IntoIterator<Item = &'a Row>,
    of: impl Fn(&Row) -> Option<f64>,
) -> Vec<f64> {
    rows.into_iter().filter_map(of).collect()
}

#[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
