//! What SQLite's errors say: that the file is not what was written, or that a row can never be.
//!
//! Not here: what is done then (`open`, `writer`, `store`).

use rusqlite::ErrorCode;
use rusqlite::ffi::{SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_ROWID, SQLITE_ERROR};

/// What SQLite says of a header whose format of the schema it does not know.
const UNKNOWN_FORMAT: &str = "unsupported file format";

/// Whether an error says that the file is not what a ledger looks like, rather than that it cannot
/// be read or written at the moment.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    match error {
        rusqlite::Error::SqliteFailure(code, says) => match code.code {
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::SchemaChanged => true,
            // SQLite has one code for all that has none of its own; only its words tell them apart.
            ErrorCode::Unknown => {
                code.extended_code == SQLITE_ERROR
                    && says
                        .as_deref()
                        .is_some_and(|says| says == UNKNOWN_FORMAT || is_of_another_schema(says))
            }
            _ => false,
        },
        rusqlite::Error::SqlInputError { .. }
        | rusqlite::Error::QueryReturnedNoRows
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::Utf8Error(..) => true,
        _ => false,
    }
}

/// Whether words of SQLite's say that a statement does not fit the tables.
fn is_of_another_schema(says: &str) -> bool {
    ["no such table", "no such column", "no such index"]
        .iter()
        .any(|words| says.starts_with(words))
        || says.contains(" has no column named ")
        || says.contains(" values were supplied")
        || says.starts_with("ON CONFLICT clause does not match")
}

/// Faults of the row, not of the disk: trying again would fail again.
pub(crate) fn is_malformed(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(
        code,
        Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig)
    ) && !is_of_another_writer(error)
}

/// Whether the number of the next row was taken, which only this process gives out.
pub(crate) fn is_of_another_writer(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    matches!(
        code,
        Some(SQLITE_CONSTRAINT_PRIMARYKEY | SQLITE_CONSTRAINT_ROWID)
    )
}

#[cfg(test)]
mod tests;
