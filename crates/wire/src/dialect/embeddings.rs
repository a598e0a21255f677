//! Embeddings.

use super::description::{Dialect, Name};

pub(super) const DIALECT: Dialect = Dialect {
    name: "embeddings",
    paths: &["embeddings"],
    members: &[
        (Name::Model, "model"),
        (Name::Counted, "input"),
        (Name::User, "user"),
    ],
    ..Dialect::JSON
};
