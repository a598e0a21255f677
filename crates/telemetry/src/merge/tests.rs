//! Merging is exact.

use policy::id::{EndpointId, WorkloadId};
use policy::limit::Kind;
use policy::record::{AttemptRecord, Gauge, Outcome, Record, Sink};
use policy::retry::Retry;
use std::time::Duration;

use testing::Draw;

use super::merge;
use crate::sample::{completed, limited, snapshot, unknown};
use crate::worker_metrics::{MetricsSnapshot, WorkerMetrics};

#[test]
fn the_page_of_many_workers_is_the_page_of_one() {
    let seed = testing::seed("the_page_of_many_workers_is_the_page_of_one");
    let mut draw = Draw::new(seed);
    // Two snapshots whose ids disagree, and workers that see them in different orders.
    let snapshots = [
        snapshot("v1", &["a", "b", "c"]),
        snapshot("v2", &["c", "d", "a"]),
    ];
    let mut workers: Vec<WorkerMetrics> = (0..4).map(|_| WorkerMetrics::new(None)).collect();
    let mut alone = WorkerMetrics::new(None);
    for _ in 0..5000 {
        let s = &snapshots[usize::from(draw.below(2) == 1)];
        let who = u32::try_from(draw.below(3)).unwrap();
        let record = match draw.below(4) {
            0 => limited(who, Kind::Tokens),
            1 => unknown(),
            2 => Record {
                outcome: Outcome::Failed,
                code: "upstream_reset",
                status: 502,
                ..completed(who)
            },
            _ => Record {
                duration: Duration::from_micros(draw.next() % (1 << 24)),
                own: Some(Duration::from_nanos(draw.next() % (1 << 20))),
                ..completed(who)
            },
        };
        let attempt = AttemptRecord {
            endpoint: EndpointId(0),
            result: Ok(200),
            retry: match draw.below(3) {
                0 => Retry::No,
                1 => Retry::Granted,
                _ => Retry::Refused,
            },
        };
        let worker = draw.below(4);
        for facts in [&mut workers[worker], &mut alone] {
            facts.exchange(s, &record);
            facts.attempt(s, &attempt);
            facts.gauge(Gauge::Exchanges, 1);
        }
    }
    let mut copies: Vec<MetricsSnapshot> = workers
        .iter()
        .map(|w| MetricsSnapshot::of(w.copy()).unwrap())
        .collect();
    let one = merge(vec![MetricsSnapshot::of(alone.copy()).unwrap()]);
    let text = |page: String| {
        // Of all lines, only this one speaks of single workers.
        let lines = page.lines().filter(|l| !l.starts_with("tollgate_series "));
        lines.collect::<Vec<_>>().join("\n")
    };
    let many = merge(copies.clone());
    assert_eq!(text(many.render(&[])), text(one.render(&[])));
    assert_eq!(many.by_workload(), one.by_workload());
    copies.reverse();
    assert_eq!(text(merge(copies).render(&[])), text(one.render(&[])));
    let ended: u64 = one.by_workload().iter().map(|t| t.exchanges).sum();
    assert_eq!(ended, 5000);
}

#[test]
fn registered_workloads_and_limits_are_there_before_traffic() {
    let mut merged = merge(vec![]);
    merged.register(&snapshot("v1", &["quiet"]));
    let totals = merged.by_workload();
    assert_eq!(totals.len(), 1);
    assert_eq!((&*totals[0].name, totals[0].exchanges), ("quiet", 0));
    let page = merged.render(&[]);
    for kind in ["requests", "tokens"] {
        let line = format!(
            "http_local_rate_limit_rate_limited{{workload=\"quiet\",route=\"all\",kind=\"{kind}\"}} 0\n"
        );
        assert!(page.contains(&line), "{page}");
    }
}

#[test]
fn registering_does_not_disturb_counts() {
    let s = snapshot("v1", &["a"]);
    let mut facts = WorkerMetrics::new(None);
    for _ in 0..4 {
        facts.exchange(&s, &limited(0, Kind::Requests));
    }
    let mut merged = merge(vec![MetricsSnapshot::of(facts.copy()).unwrap()]);
    merged.register(&s);
    let page = merged.render(&[]);
    assert!(page.contains("{workload=\"a\",route=\"all\",kind=\"requests\"} 4\n"));
    assert!(page.contains("{workload=\"a\",route=\"all\",kind=\"tokens\"} 0\n"));
}

#[test]
fn an_id_outside_its_snapshot_is_other_and_not_a_crash() {
    let s = snapshot("v1", &["a"]);
    let mut facts = WorkerMetrics::new(None);
    let stray = Record {
        workload: Some(WorkloadId(99)),
        ..completed(0)
    };
    facts.exchange(&s, &stray);
    let merged = merge(vec![MetricsSnapshot::of(facts.copy()).unwrap()]);
    assert_eq!(&*merged.by_workload()[0].name, "other");
}
