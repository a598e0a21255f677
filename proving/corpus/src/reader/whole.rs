//! Formats that have one record in a file.
//!
//! Invariant: a file that is larger than [`MAX_RECORD_BYTES`] is a fault, and is not read.
//! Not here: the formats themselves.

use std::ops::ControlFlow;
use std::path::PathBuf;

use super::files::{walk, whole, whole_units};
use super::records::too_long;
use super::rows::{fallback, read_json};
use super::{At, Fault, MAX_RECORD_BYTES, Position, ReadError, Reader, Sink, Tally, Unit};
use crate::conversation::Conversation;
use crate::json::Json;

/// A format of whole files.
pub(super) struct Whole {
    pub(super) name: &'static str,
    pub(super) sessions: Sessions,
}

/// Makes sessions of a file, which the text names.
pub(super) type Sessions = fn(Json, &str, &mut Tally) -> Vec<Result<Conversation, Fault>>;

impl Reader for Whole {
    fn name(&self) -> &'static str {
        self.name
    }

    fn units(&self, paths: &[PathBuf]) -> Result<Vec<Unit>, ReadError> {
        whole_units(walk(self.name, paths, &[".json"])?)
    }

    fn read(&self, unit: &Unit, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        let position = Position {
            file: unit.file.clone(),
            at: At::Whole,
            part: 0,
        };
        let record = match whole(&unit.file, MAX_RECORD_BYTES)? {
            Some(bytes) => read_json(&bytes, sink.tally_mut()),
            None => Err(too_long()),
        };
        let sessions = match record {
            Ok(record) => {
                let name = fallback(&position);
                (self.sessions)(record, &name, sink.tally_mut())
            }
            Err(fault) => vec![Err(fault)],
        };
        for (part, session) in sessions.into_iter().enumerate() {
            let part = u32::try_from(part).unwrap_or(u32::MAX);
            let position = Position {
                part,
                ..position.clone()
            };
            if sink.give(position, session) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }
}
