//! Metrics of servers of tools that are of no exchange.
//!
//! Not here: what counts them (`policy::mcp`).

use policy::snapshot::Snapshot;
use telemetry::Extra;
use telemetry::extras::number;

/// All of them, now.
pub(super) fn of(s: &Snapshot) -> Vec<Extra> {
    let config = s.mcp.as_deref();
    let servers = config.into_iter().flat_map(|config| {
        let pinned = move |server| (config, server);
        config.servers.iter().map(pinned)
    });
    let pinned = servers.filter_map(|(config, server)| {
        let count = config.seen.count(server.pins.as_ref()?);
        let help = "Tools of a server whose definition was found to be another than the pinned one, each change once.";
        let extra = Extra::counter("tollgate_mcp_tool_changes_total", help, number(count));
        Some(extra.with("server", &server.name))
    });
    pinned.collect()
}
