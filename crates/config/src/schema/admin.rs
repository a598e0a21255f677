//! `admin`: who may do what on the admin endpoint.
//!
//! Not here: what it becomes (`lower::admin`).

use super::Bearer;
use crate::decode::{At, MapOf, OneOrMany, record};
use crate::scalar::{AdminRole, Inline, Name, SecretFile, Variable};

record! {
    /// Who may do what on the admin endpoint.
    Admin {
        /// What a caller brings as `authorization: Bearer …` that may do everything.
        optional bearer: Bearer,
        /// Further credentials, by the name that the log has for who brings them.
        optional bearers: MapOf<Name, AdminBearer>,
    }
}

record! {
    /// A credential of the admin endpoint, from exactly one of `file`, `env` and `inline`.
    AdminBearer {
        /// File that holds it alone; watched, and used anew within a second of a change.
        optional file: At<SecretFile>,
        /// Environment variable that holds it.
        optional env: At<Variable>,
        /// The secret itself, for tests.
        optional inline: At<Inline>,
        /// What it opens, none of which includes another: read, operate, keys.
        required roles: OneOrMany<AdminRole>,
    }
}
