//! `tollgate check`: every fault of a configuration at once.

use std::process::ExitCode;

use config::Located;

use crate::counting::Shelf;
use crate::running::{load, publication};
use crate::world::World;
use crate::{cli, complain, say};

/// Checks and reports; 1 when there are faults.
pub(crate) fn check(options: &cli::Check) -> ExitCode {
    let file = options.config.as_deref();
    let loaded = match load(file, &World, None, policy::clock::Mono::default()) {
        Ok(loaded) => loaded,
        Err(faults) => {
            complain(&faults.to_string());
            let n = faults.faults.len();
            complain(&format!("{n} fault{}", if n == 1 { "" } else { "s" }));
            return ExitCode::FAILURE;
        }
    };
    let name = file.map_or_else(|| "environment".into(), |f| f.to_path_buf());
    for warning in &loaded.warnings {
        complain(&format!(
            "warning: {}",
            Located {
                file: &name,
                fault: warning
            }
        ));
    }
    let (workloads, routes, backends) = (
        loaded.snapshot.workloads.len(),
        loaded.snapshot.routes.len(),
        loaded.snapshot.backends.len(),
    );
    let built = Shelf::default().build(&loaded.host.tokenizers);
    if let Err(fault) = built.and_then(|_| publication(loaded, &World)) {
        complain(&format!("{}: {fault}", name.display()));
        return ExitCode::FAILURE;
    }
    say(&format!(
        "{}: good ({workloads} workloads, {routes} routes, {backends} backends)",
        name.display()
    ));
    ExitCode::SUCCESS
}
