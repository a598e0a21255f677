//! `tollgate check`: every fault of a configuration at once.

use std::process::ExitCode;

use config::{Fault, Located};

use crate::counting::Shelf;
use crate::running::{load, publication};
use crate::source::Source;
use crate::world::World;
use crate::{cli, complain, say, writable};

/// Checks and reports; 1 when there are faults.
pub(crate) fn check(options: &cli::Check) -> ExitCode {
    let source = Source::of(options.config.as_deref());
    if options.config.is_none() {
        complain(&source.to_string());
    }
    let loaded = match load(source.file(), &World, None, policy::clock::Mono::default()) {
        Ok(loaded) => loaded,
        Err(faults) => {
            complain(&faults.to_string());
            return counted(faults.faults.len());
        }
    };
    let name = source.name();
    let show = |fault: &Fault| Located { file: name, fault }.to_string();
    for warning in &loaded.warnings {
        complain(&format!("warning: {}", show(warning)));
    }
    let unwritable = writable::faults(&loaded.host);
    for fault in &unwritable {
        complain(&show(fault));
    }
    let (workloads, routes, backends) = (
        loaded.snapshot.workloads.len(),
        loaded.snapshot.routes.len(),
        loaded.snapshot.backends.len(),
    );
    let built = Shelf::default().build(&loaded.host.tokenizers);
    let built = built.and_then(|_| publication(loaded, &World));
    if let Err(fault) = &built {
        complain(&format!("{}: {fault}", name.display()));
    }
    let faults = unwritable.len() + usize::from(built.is_err());
    if faults > 0 {
        return counted(faults);
    }
    say(&format!(
        "{}: good ({workloads} workloads, {routes} routes, {backends} backends)",
        name.display()
    ));
    ExitCode::SUCCESS
}

fn counted(n: usize) -> ExitCode {
    complain(&format!("{n} fault{}", if n == 1 { "" } else { "s" }));
    ExitCode::FAILURE
}
