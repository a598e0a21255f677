//! Spans on their way out of the process: the collector as the configuration names it.
//!
//! Not here: what a span says and how batches wait (`telemetry`), one call to a collector (`post`).

mod post;

use policy::trace::Sampling;
use telemetry::{Service, Traces};

/// Starts the thread that sends, and says which traces are kept.
pub(crate) fn start(settings: &config::Traces) -> Result<(Traces, Sampling), String> {
    let post = post::Post::new(settings)?;
    let service = Service {
        name: settings.service.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        instance: instance(),
    };
    let traces =
        Traces::start(service, post).map_err(|error| format!("cannot send traces: {error}"))?;
    Ok((traces, Sampling::millionths(settings.ratio_millionths)))
}

/// What tells this process from the others of its service: the machine's name and the process id.
fn instance() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}/{}", host.trim(), std::process::id())
}
