//! Metrics of how endpoints of balanced backends are chosen.
//!
//! Not here: how (`policy::balancing`), the questions to engines (`metrics::identity`).

use policy::balancing::Why;
use policy::clock::Mono;
use policy::snapshot::Snapshot;
use telemetry::Extra;
use telemetry::extras::number;

use crate::balancing::endpoints;

/// All of them, now.
pub(super) fn of(s: &Snapshot, now: Mono) -> Vec<Extra> {
    let mut extras = Vec::new();
    for (backend, endpoint, shared) in endpoints(s) {
        let mut put = |extra: Extra| {
            extras.push(
                extra
                    .with("backend", backend)
                    .with("endpoint", &endpoint.name),
            );
        };
        for why in Why::ALL {
            let help = "Attempts at an endpoint of a balanced backend, by why it was chosen.";
            let chosen = number(shared.chosen(why));
            put(
                Extra::counter("tollgate_balancing_chosen_total", help, chosen)
                    .with("reason", why.as_str()),
            );
        }
        let (prompt, seen) = shared.bytes();
        let help = "Bytes of the prompts that went to an endpoint, as far as they are looked at.";
        put(Extra::counter(
            "tollgate_balancing_prompt_bytes_total",
            help,
            number(prompt),
        ));
        let help = "Of those bytes the ones with which an earlier prompt there had begun.";
        put(Extra::counter(
            "tollgate_balancing_seen_bytes_total",
            help,
            number(seen),
        ));
        let standing = shared.load.standing(now);
        let help = "Calls of this gate that run at an endpoint of a balanced backend.";
        let in_flight = number(u64::from(standing.in_flight));
        put(Extra::gauge(
            "tollgate_balancing_in_flight",
            help,
            in_flight,
        ));
        let help = "Bytes of their prompts that the endpoint has not begun to answer.";
        let unread = number(standing.unread_bytes);
        put(Extra::gauge(
            "tollgate_balancing_unread_bytes",
            help,
            unread,
        ));
        let Some(reported) = standing.reported else {
            continue;
        };
        let help = "Calls that an engine runs, as it said last.";
        let running = number(u64::from(reported.running));
        put(Extra::gauge(
            "tollgate_balancing_engine_running",
            help,
            running,
        ));
        let help = "Calls that wait in an engine, as it said last.";
        let waiting = number(u64::from(reported.waiting));
        put(Extra::gauge(
            "tollgate_balancing_engine_waiting",
            help,
            waiting,
        ));
        let help = "Share of an engine's KV cache in use, as it said last, 0 to 1.";
        let kv = f64::from(reported.kv_millionths) / 1e6;
        put(Extra::gauge(
            "tollgate_balancing_engine_kv_cache_ratio",
            help,
            kv,
        ));
    }
    extras
}
