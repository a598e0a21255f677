//! Roles of the admin endpoint.

use policy::admin::Role;
use serde_json::{Value, json};

use crate::decode::{Problem, Written};

/// A role of the admin endpoint.
#[derive(Clone, Copy)]
pub(crate) struct AdminRole(pub(crate) Role);

impl Written for AdminRole {
    /// It stands beside secrets, one of which may have slipped here.
    const IS_SHOWN: bool = false;

    fn read(text: &str) -> Result<Self, Problem> {
        let names = Role::ALL.map(Role::as_str).join(", ");
        Role::named(text)
            .map(Self)
            .ok_or_else(|| Problem::new("is not a role", format!("write some of {names}")))
    }

    fn schema() -> Value {
        json!({ "enum": Role::ALL.map(Role::as_str) })
    }
}
