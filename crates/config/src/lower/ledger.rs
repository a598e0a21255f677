//! `ledger`: where usage is written, and where its copy goes.
//!
//! Not here: opening it (`tollgate`), the routes that wait for it (`route`).

use crate::decode::{Field, Place};
use crate::host::Ledger;
use crate::schema;

/// Smallest size that leaves room for rows beside the file's own pages.
const SIZE_MIN: u64 = 1 << 20;

impl super::Lowering<'_> {
    /// `None` where there is none, or when something is wrong, which is then among the findings.
    pub(super) fn ledger(&mut self, written: &Field<schema::Ledger>) -> Option<Ledger> {
        let written = written.get()?;
        if let Some(at) = written.size.get().filter(|at| at.value.0 < SIZE_MIN) {
            let says = format!("{} leaves no room for rows", at.shown);
            self.findings.fault(&at.place, says, "write 1MiB or more");
        }
        let postgres = written.postgres.get().and_then(|server| {
            let place = Place {
                path: "ledger.postgres".to_owned(),
                line: written.path.get().map_or(0, |at| at.place.line),
            };
            let found = self.secret(
                &server.file,
                &server.env,
                &Field::Absent,
                &place,
                "file and env",
            );
            found.map(|(secret, _)| secret)
        });
        Some(Ledger {
            path: self.path_of(&written.path.get()?.value.0),
            node: written
                .node
                .get()
                .map_or_else(|| "gate".into(), |at| at.value.0.as_str().into()),
            retention: written.retention.get().map(|at| at.value.0),
            bytes_max: written.size.get().map(|at| at.value.0),
            postgres,
        })
    }
}
