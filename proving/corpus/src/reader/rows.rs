//! Formats that have one session in a row of a Parquet file, or in a line of JSON.
//!
//! Invariant: a row and a line of the same members are the same session.
//! Not here: the formats themselves, one in each file that makes a [`Rows`].

use std::ops::ControlFlow;
use std::path::PathBuf;

use super::columns;
use super::files::{format, walk};
use super::records::{line_units, lines};
use super::{At, Fault, Part, Position, ReadError, Reader, Sink, Tally, Unit};
use crate::conversation::Conversation;
use crate::json::{Json, Oddities, parse};

/// A format of rows.
pub(super) struct Rows {
    pub(super) name: &'static str,
    /// The columns that are read; those of a line that are neither these nor in `passed` are counted.
    pub(super) columns: &'static [&'static str],
    /// The columns that the format has and that say nothing of a session.
    pub(super) passed: &'static [&'static str],
    /// The columns by which a row is named.
    pub(super) names: &'static [&'static str],
    /// Names a row by these columns; the text is what it is called where they say nothing.
    pub(super) name_of: fn(&Json, &str) -> String,
    pub(super) session: Session,
}

/// Makes sessions of a row, each with its own verdict. The text names the row where its columns do not.
pub(super) type Session = fn(Json, &str, &mut Tally) -> Vec<Result<Conversation, Fault>>;

impl Reader for Rows {
    fn name(&self) -> &'static str {
        self.name
    }

    fn units(&self, paths: &[PathBuf]) -> Result<Vec<Unit>, ReadError> {
        let mut units = Vec::new();
        for path in walk(self.name, paths, &[".parquet", ".jsonl", ".ndjson"])? {
            units.extend(if columns::is_parquet(&path)? {
                columns::units(path)?
            } else {
                line_units(vec![path])?
            });
        }
        Ok(units)
    }

    fn read(&self, unit: &Unit, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        if !columns::is_parquet(&unit.file)? {
            if matches!(unit.part, Part::RowGroup(_)) {
                return Err(format(&unit.file, "is no Parquet file any more"));
            }
            return lines(unit, &mut |at, bytes| {
                let position = position(unit, at);
                if !sink.wants(&position) {
                    return ControlFlow::Continue(());
                }
                let row = bytes.and_then(|bytes| read_json(bytes, sink.tally_mut()));
                if let Ok(row) = &row {
                    let known: Vec<_> = [self.columns, self.passed].concat();
                    sink.tally_mut().unknown_members("row", row, &known);
                }
                self.give(position, row, sink)
            });
        }
        let mut oddities = Oddities::default();
        let read = columns::rows(unit, self.columns, &mut oddities, &mut |number, row| {
            let position = position(unit, At::Row(number));
            if sink.wants(&position) {
                self.give(position, row, sink)
            } else {
                ControlFlow::Continue(())
            }
        });
        sink.tally_mut().oddities.absorb(oddities);
        read
    }

    fn list(
        &self,
        unit: &Unit,
        each: &mut dyn FnMut(Position, &str) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let file = &unit.file;
        if columns::is_parquet(file)? && columns::has_any(file, self.names)? {
            let oddities = &mut Oddities::default();
            return columns::rows(unit, self.names, oddities, &mut |number, row| {
                let position = position(unit, At::Row(number));
                let name = (self.name_of)(&row.unwrap_or_default(), &fallback(&position));
                each(position, &name)
            });
        }
        let mut whole = |position, session: Result<Conversation, Fault>| match session {
            Ok(session) => each(position, &session.id),
            Err(_) => ControlFlow::Continue(()),
        };
        self.read(unit, &mut Sink::new(&mut whole))
    }
}

impl Rows {
    fn give(
        &self,
        position: Position,
        row: Result<Json, Fault>,
        sink: &mut Sink<'_>,
    ) -> ControlFlow<()> {
        let row = match row {
            Ok(row) if row.is_object() => row,
            Ok(_) => {
                let fault = Fault::broken("no_object", "is no JSON object");
                return sink.give(position, Err(fault));
            }
            Err(fault) => return sink.give(position, Err(fault)),
        };
        let name = (self.name_of)(&row, &fallback(&position));
        let sessions = (self.session)(row, &name, sink.tally_mut());
        for (part, session) in sessions.into_iter().enumerate() {
            let part = u32::try_from(part).unwrap_or(u32::MAX);
            let position = Position {
                part,
                ..position.clone()
            };
            sink.give(position, session)?;
        }
        ControlFlow::Continue(())
    }
}

fn position(unit: &Unit, at: At) -> Position {
    Position {
        file: unit.file.clone(),
        at,
        part: 0,
    }
}

/// The first of these columns that says something.
pub(super) fn said(row: &Json, columns: &[&str]) -> Option<String> {
    columns.iter().find_map(|column| match row.get(column) {
        Some(Json::String(text)) if !text.is_empty() => Some(text.clone()),
        Some(number @ Json::Number(_)) => Some(number.to_string()),
        _ => None,
    })
}

/// The name of a record that names itself nowhere: its file and place.
pub(super) fn fallback(position: &Position) -> String {
    let file = super::files::short_name(&position.file);
    match &position.at {
        At::Whole => file,
        At::Line(n) | At::Byte(n) | At::Row(n) | At::Session(n) => format!("{file}-{n}"),
        At::Member(name) => format!("{file}-{name}"),
    }
}

/// Reads a record, with what is odd about it counted.
pub(super) fn read_json(bytes: &[u8], tally: &mut Tally) -> Result<Json, Fault> {
    parse(bytes, &mut tally.oddities)
        .map_err(|error| Fault::broken("no_json", format!("is no JSON: {error}")))
}

/// Reads JSON that stands in a string, which is itself a column of a row.
pub(super) fn inner_json(
    value: Option<Json>,
    name: &str,
    tally: &mut Tally,
) -> Result<Json, Fault> {
    match value {
        Some(Json::String(text)) => parse(text.as_bytes(), &mut tally.oddities)
            .map_err(|error| Fault::broken("no_json", format!("its {name} is no JSON: {error}"))),
        Some(other) => Ok(other),
        None => Ok(Json::Null),
    }
}
