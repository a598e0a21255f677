//! Settings that a reload cannot change: they take effect with the next start.
//!
//! Invariant: one that differs is named, never passed over.
//! Not here: the reload (`running`).

use std::net::SocketAddr;
use std::time::Duration;

use config::Loaded;
use policy::counting::Settings;

/// Settings that a reload cannot change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fixed {
    /// None where it listens on what `listen.listeners` says.
    pub(crate) data: Option<SocketAddr>,
    pub(crate) admin: SocketAddr,
    workers: Option<usize>,
    pub(crate) access_log: config::AccessLog,
    drain: [Duration; 2],
    pub(crate) ledger: Option<config::Ledger>,
    counting: Settings,
    traces: Option<config::Traces>,
    subjects: usize,
}

impl Fixed {
    /// The settings that differ, as the document names them.
    pub(crate) fn changed(&self, now: &Self) -> Vec<&'static str> {
        // A field that is added has to be named here, too.
        let Self {
            data,
            admin,
            workers,
            access_log,
            drain: [delay, grace],
            ledger,
            counting,
            traces,
            subjects,
        } = self;
        let mut changed = vec![
            (
                "listen.data",
                data.zip(now.data).is_some_and(|(was, is)| was != is),
            ),
            ("listen.admin", *admin != now.admin),
            ("workers", *workers != now.workers),
            ("access_log", *access_log != now.access_log),
            ("bounds.subjects", *subjects != now.subjects),
            ("drain.delay", *delay != now.drain[0]),
            ("drain.grace", *grace != now.drain[1]),
            // Of `counting.share`, too.
            ("counting.threads", counting.threads != now.counting.threads),
            ("counting.wait", counting.wait != now.counting.wait),
            (
                "counting.queue",
                counting.queue_bytes != now.counting.queue_bytes,
            ),
            (
                "counting.longest",
                counting.longest_bytes != now.counting.longest_bytes,
            ),
            (
                "counting.prompt_tolerance",
                counting.prompt_per_mille != now.counting.prompt_per_mille,
            ),
            (
                "counting.output_tolerance",
                counting.output_per_mille != now.counting.output_per_mille,
            ),
        ];
        match (ledger, &now.ledger) {
            (Some(was), Some(is)) => changed.extend([
                ("ledger.path", was.path != is.path),
                ("ledger.node", was.node != is.node),
                ("ledger.retention", was.retention != is.retention),
                ("ledger.size", was.bytes_max != is.bytes_max),
                ("ledger.postgres", was.postgres != is.postgres),
            ]),
            (was, is) => changed.push(("ledger", was != is)),
        }
        changed.push(("traces", *traces != now.traces));
        let mut names: Vec<_> = changed
            .into_iter()
            .filter_map(|(name, differs)| differs.then_some(name))
            .collect();
        // Whatever has no name of its own yet is not passed over.
        if names.is_empty() && self.data == now.data && self != now {
            names.push("a setting of the process");
        }
        names
    }
}

/// Those of a document.
pub(crate) fn fixed(Loaded { host, snapshot, .. }: &Loaded) -> Fixed {
    Fixed {
        // Listeners come and go while the gate runs.
        data: host.listeners.is_empty().then_some(host.data),
        admin: host.admin,
        workers: host.workers,
        access_log: host.access_log.clone(),
        drain: [host.drain_delay, host.drain_grace],
        ledger: host.ledger.clone(),
        counting: host.counting.clone(),
        traces: host.traces.clone(),
        subjects: snapshot.bounds.subjects,
    }
}
