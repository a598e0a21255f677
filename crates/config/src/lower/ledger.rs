//! `ledger`: where usage is written, and where its copy goes.
//!
//! Not here: opening it (`tollgate`), the routes that wait for it (`route`).

use super::said;
use crate::decode::{Field, Place};
use crate::host::Ledger;
use crate::schema;
use crate::schema::ledger::Postgres;

/// Smallest size that leaves room for rows beside the file's own pages.
const SIZE_MIN: u64 = 1 << 20;

impl super::Lowering<'_> {
    /// `None` where there is none, or when something is wrong, which is then among the findings.
    pub(super) fn ledger(&mut self, written: &Field<schema::Ledger>) -> Option<Ledger> {
        let written = written.get()?;
        if let Some(at) = written.size.get().filter(|at| at.value.0 < SIZE_MIN) {
            self.refuse(at, "leaves no room for rows", "write 1MiB or more");
        }
        let postgres = written.postgres.get().and_then(|server| {
            let place = Place::new(
                "ledger.postgres",
                written.path.get().map_or(0, |at| at.place.line),
            );
            let Postgres { file, env } = server;
            let found = self.secret(file, env, &Field::Absent, &place, "file and env");
            found.map(|(secret, _)| secret)
        });
        Some(Ledger {
            path: self.path_of(&written.path.get()?.value.0),
            node: said(&written.node, "gate").into(),
            retention: written.retention.value().map(|age| age.0),
            bytes_max: written.size.value().map(|size| size.0),
            postgres,
        })
    }
}
