//! What the process needs of the machine before a gate can run by a configuration: asked alike by `check`, a start and a
//! reload.
//!
//! Invariant: what a start refuses because of a file or a word, a reload refuses, too; nothing is opened to be
//! written, made or changed.
//! Not here: what a document may say (`config`); what is made of the files that it names (`running`); what only the next start can find, since the gate itself stands in the
//! way: addresses in use, and what is inside of another ledger.

use config::{Fault, Host};

use crate::fixed::Fixed;
use crate::{ledger_log, traces, writable};

/// Every fault of what the process itself uses: files that it writes, and whom it sends to. What a gate has open
/// already, as `open` says, is not asked for again: a full disk is the ledger's to tell, and keeps no secret from being
/// rotated.
pub(crate) fn faults(host: &Host, open: Option<&Fixed>) -> Vec<Fault> {
    let is_open = |fault: &Fault| match (fault.path.as_str(), open) {
        ("ledger.path", Some(open)) => {
            let path = |of: Option<&config::Ledger>| of.map(|of| of.path.clone());
            path(open.ledger.as_ref()) == path(host.ledger.as_ref())
        }
        ("access_log", Some(open)) => open.access_log == host.access_log,
        _ => false,
    };
    let mut faults = writable::faults(host);
    faults.retain(|fault| !is_open(fault));
    let collector = host
        .traces
        .as_ref()
        .and_then(|of| traces::endpoint(of).err());
    let server = host.ledger.as_ref();
    let server = server.and_then(|of| ledger_log::check_server(of).err());
    let sent_to = [("traces", collector), ("ledger.postgres", server)];
    faults.extend(sent_to.into_iter().filter_map(|(path, says)| {
        Some(Fault {
            file: None,
            path: path.to_owned(),
            line: None,
            says: says?,
            hint: String::new(),
        })
    }));
    faults
}
