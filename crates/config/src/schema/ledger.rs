//! `ledger`: a row on disk for each exchange.
//!
//! Not here: what they become (`lower`).

use crate::decode::{At, record};
use crate::scalar::{Age, File, Name, SecretFile, Size, Variable};

record! {
    /// The usage ledger.
    Ledger {
        /// Its file, made where there is none; the directory must exist.
        required path: At<File>,
        /// This gate's name in each row. Default gate.
        optional node: At<Name>,
        /// Age at which rows are pruned; kept for good unless said.
        optional retention: At<Age>,
        /// Size of the file above which the oldest rows are pruned; none unless said.
        optional size: At<Size>,
        /// The fleet's Postgres, which gets a copy of every row.
        optional postgres: Postgres,
    }
}

record! {
    /// A connection string such as postgres://gate@db/usage, from exactly one of `file` and `env`.
    Postgres {
        /// File that holds it alone; read at the start.
        optional file: At<SecretFile>,
        /// Environment variable that holds it.
        optional env: At<Variable>,
    }
}
