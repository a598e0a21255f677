//! The log's lines about what keeps the gate from its work: one when it begins, few while it lasts, one when
//! it is over.
//!
//! Workers tell of endpoints and connections; the counting pool and the exporters are asked here, for what they
//! have counted.
//! Invariant: no line holds a credential, a prompt or an upstream's own words.
//! Not here: when there is a line to write (`telemetry::Conditions`), the ledger (`ledger_log`).

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use counting::{Direction, RESULTS};
use ledger::{LedgerService, Shipping};
use policy::billing::BilledBy;
use policy::record::Trouble;
use telemetry::{AccessLog, Change, Condition, Heard, Phase, Traces};

use crate::pool::Pool;
use crate::running::Running;

/// How often is looked.
const EVERY: Duration = Duration::from_millis(500);

const POSTGRES: &str = "postgres";
const COUNTING: &str = "counting";
const ACCESS_LOG: &str = "access_log";
const TRACES: &str = "traces";

/// Looks until it is aborted.
pub(crate) async fn watch(running: Arc<Running>) {
    let began = Instant::now();
    let mut counts = Counts::default();
    let mut every = tokio::time::interval(EVERY);
    loop {
        every.tick().await;
        look(&running, &mut counts, began.elapsed());
    }
}

/// What had been counted at the last look.
#[derive(Default)]
struct Counts {
    ship_failures: u64,
    uncounted: u64,
    log_lines: u64,
    spans: u64,
}

fn look(running: &Running, counts: &mut Counts, now: Duration) {
    let outlets = &running.outlets;
    let mut told = Vec::new();
    if let Some(service) = &outlets.ledger {
        told.extend(postgres(service, counts).map(|heard| (Condition::Named(POSTGRES), heard)));
    }
    let mut more = |name, before: &mut u64, total: u64, detail: &str| {
        let times = total.saturating_sub(std::mem::replace(before, total));
        told.push((Condition::Counted(name), heard(times, detail)));
    };
    if let Some(counting) = &outlets.counting {
        more(
            COUNTING,
            &mut counts.uncounted,
            busy(counting),
            "counting.queue is full",
        );
    }
    if let Some(log) = outlets.log.as_ref().map(AccessLog::dropped) {
        let detail = "the writer does not keep up, or its target takes nothing";
        more(ACCESS_LOG, &mut counts.log_lines, log, detail);
    }
    if let Some(stats) = outlets.traces.as_ref().map(Traces::stats) {
        let lost = stats.crowded_out.saturating_add(stats.undelivered);
        more(
            TRACES,
            &mut counts.spans,
            lost,
            "the collector takes too few",
        );
    }
    let conditions = outlets.conditions.lock();
    let mut conditions = conditions.unwrap_or_else(PoisonError::into_inner);
    for (condition, heard) in told {
        conditions.tell(condition, heard);
    }
    for change in conditions.look(now) {
        write(&change);
    }
}

fn heard(times: u64, detail: &str) -> Heard {
    Heard {
        times,
        detail: detail.into(),
        is_over: false,
    }
}

fn postgres(service: &LedgerService, counts: &mut Counts) -> Option<Heard> {
    Some(copying(service.shipping()?, counts))
}

fn copying(shipping: Shipping, counts: &mut Counts) -> Heard {
    let failures = shipping.failures;
    let before = std::mem::replace(&mut counts.ship_failures, failures);
    Heard {
        times: failures.saturating_sub(before),
        // Rows that were copied since the last look may have been copied before the try that failed.
        is_over: shipping.last_fault.is_empty(),
        detail: shipping.last_fault.into(),
    }
}

/// Requests and answers that were not counted for want of room.
fn busy(counting: &Pool) -> u64 {
    let at = RESULTS.iter().position(|result| *result == "busy");
    let of = |by, direction| at.map_or(0, |at| counting.metrics().results(by, direction)[at]);
    let both = |by| Direction::ALL.map(|direction| of(by, direction));
    let all = [BilledBy::Reported, BilledBy::Counted].map(both);
    all.as_flattened().iter().sum()
}

/// What begins, lasts and ends.
struct Words {
    begins: &'static str,
    lasts: &'static str,
    ends: &'static str,
    /// Somebody must see to it.
    is_error: bool,
}

const fn warning(begins: &'static str, lasts: &'static str, ends: &'static str) -> Words {
    Words {
        begins,
        lasts,
        ends,
        is_error: false,
    }
}

fn words(condition: &Condition) -> Words {
    match condition {
        Condition::Endpoint(_) => warning(
            "an endpoint fails",
            "an endpoint still fails",
            "the endpoint answers again",
        ),
        Condition::Credential(_) => Words {
            is_error: true,
            ..warning(
                "an endpoint refuses the gate's credential",
                "an endpoint still refuses the gate's credential",
                "the endpoint takes the gate's credential again",
            )
        },
        Condition::Usage(_) => warning(
            "a backend reports usage that no call can hold",
            "a backend still reports usage that no call can hold",
            "the backend reports usage that calls can hold again",
        ),
        Condition::Beyond(_) => warning(
            "a backend reports more tokens than a call has bytes",
            "a backend still reports more tokens than a call has bytes",
            "the backend reports no more tokens than a call has bytes",
        ),
        Condition::Connections(trouble) => words_of(*trouble),
        Condition::Named(_) => warning(
            "rows are not copied to Postgres",
            "rows are still not copied to Postgres",
            "rows are copied to Postgres again",
        ),
        Condition::Counted(COUNTING) => warning(
            "calls are not counted: the pool is full",
            "calls are still not counted: the pool is full",
            "calls are counted again",
        ),
        Condition::Counted(ACCESS_LOG) => warning(
            "access-log lines are lost",
            "access-log lines are still lost",
            "no more access-log lines are lost",
        ),
        Condition::Counted(_) => warning(
            "spans are lost",
            "spans are still lost",
            "no more spans are lost",
        ),
    }
}

fn words_of(trouble: Trouble) -> Words {
    match trouble {
        Trouble::AcceptPaused => warning(
            "no client connection is accepted: the remaining descriptors are kept for upstreams",
            "still no client connection is accepted",
            "client connections are accepted again",
        ),
        Trouble::AcceptFailed => warning(
            "connections cannot be accepted",
            "connections still cannot be accepted",
            "connections are accepted again",
        ),
        Trouble::ClientTls => warning(
            "TLS handshakes with clients fail",
            "TLS handshakes with clients still fail",
            "TLS handshakes with clients do not fail any more",
        ),
        Trouble::ClientCertificate => warning(
            "TLS handshakes with clients fail for their certificates",
            "TLS handshakes with clients still fail for their certificates",
            "TLS handshakes with clients do not fail for their certificates any more",
        ),
        Trouble::ProxyHeader => warning(
            "a trusted proxy sends no valid PROXY protocol header",
            "a trusted proxy still sends no valid PROXY protocol header",
            "trusted proxies send valid PROXY protocol headers again",
        ),
        Trouble::NoUpstreamConnection => warning(
            "no connection is free for upstreams",
            "still no connection is free for upstreams",
            "connections are free for upstreams again",
        ),
        // Told of by name.
        Trouble::Endpoint(_) | Trouble::Credential(_) => {
            warning("an endpoint fails", "an endpoint still fails", "it is over")
        }
    }
}

fn write(change: &Change) {
    let words = words(&change.condition);
    let (endpoint, backend) = match &change.condition {
        Condition::Endpoint(name) | Condition::Credential(name) => (Some(&**name), None),
        Condition::Usage(name) | Condition::Beyond(name) => (None, Some(&**name)),
        Condition::Connections(_) | Condition::Named(_) | Condition::Counted(_) => (None, None),
    };
    let (times, total) = (change.times, change.total);
    let seconds = change.lasts.as_secs();
    let detail = &*change.detail;
    let see = entry(words.begins);
    match (change.phase, words.is_error) {
        (Phase::Begins, true) => {
            tracing::error!(endpoint, backend, times, detail, see, "{}", words.begins)
        }
        (Phase::Begins, false) => {
            tracing::warn!(endpoint, backend, times, detail, see, "{}", words.begins)
        }
        (Phase::Lasts, true) => {
            tracing::error!(
                endpoint,
                backend,
                times,
                total,
                seconds,
                detail,
                see,
                "{}",
                words.lasts
            );
        }
        (Phase::Lasts, false) => {
            tracing::warn!(
                endpoint,
                backend,
                times,
                total,
                seconds,
                detail,
                see,
                "{}",
                words.lasts
            );
        }
        (Phase::Ends, _) => {
            tracing::info!(endpoint, backend, times, total, seconds, "{}", words.ends)
        }
    }
}

/// Where the documentation says what to do about a line: its page has a heading that is the line. `cargo xtask tidy` holds it.
fn entry(line: &str) -> String {
    let name = line.split(':').next().unwrap_or(line);
    let kept = name
        .chars()
        .filter(|c| c.is_alphanumeric() || *c == ' ' || *c == '-');
    let anchor: String = kept
        .map(|c| {
            if c == ' ' {
                '-'
            } else {
                c.to_ascii_lowercase()
            }
        })
        .collect();
    format!("docs/troubleshooting.md#{anchor}")
}

#[cfg(test)]
mod tests {
    use ledger::Shipping;

    use super::{Condition, Counts, copying, entry, words};

    #[test]
    fn rows_are_copied_again_when_the_last_try_was_well() {
        let mut counts = Counts::default();
        let mut look = |shipped, failures, last_fault: &str| {
            let shipping = Shipping {
                shipped,
                up_to: 0,
                failures,
                last_fault: last_fault.to_owned(),
                forked: false,
                encrypted: None,
            };
            let heard = copying(shipping, &mut counts);
            (heard.times, heard.is_over)
        };
        assert_eq!(look(5, 0, ""), (0, true));
        // A batch, and a try that failed after it.
        assert_eq!(look(9, 1, "away"), (1, false));
        assert_eq!(look(9, 1, "away"), (0, false));
        // The other way about.
        assert_eq!(look(12, 2, ""), (1, true));
        // There is nothing to copy.
        assert_eq!(look(12, 3, "away"), (1, false));
        assert_eq!(look(12, 3, ""), (0, true));
    }

    #[test]
    fn a_line_names_its_entry() {
        let line = words(&Condition::Credential("a".into())).begins;
        let page = "docs/troubleshooting.md#an-endpoint-refuses-the-gates-credential";
        assert_eq!(entry(line), page);
        let line = words(&Condition::Counted(super::COUNTING)).begins;
        assert_eq!(entry(line), "docs/troubleshooting.md#calls-are-not-counted");
    }
}
