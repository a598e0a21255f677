//! Nested budgets (company, group, workload): a call must fit in each, and its unused reservation is released.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{call, config, engine, left, status, stop};
use crate::harness::{Connection, Gate, Step, Upstream};

const NESTED: &str = "company: { tokens: 1000, per: month }, \
                      team: { group: team, tokens: 600, per: week }, \
                      alone: { workload: a, tokens: 300, per: day }";

fn grouped(upstream: &Upstream, ledger: &std::path::Path, budgets: &str) -> String {
    config(upstream, ledger, budgets) + "groups: { team: [a, b] }\n"
}

#[test]
fn a_refusal_at_one_budget_level_leaves_the_others_unchanged() {
    let upstream = engine(Duration::ZERO);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let gate = Gate::start(&grouped(&upstream, &ledger, NESTED), &[]);
    let all = |gate: &Gate| ["company", "team", "alone"].map(|name| left(gate, name));
    assert_eq!(status(&gate, "a", 10, "240,10"), 200);
    testing::eventually("it is settled", || all(&gate) == [750.0, 350.0, 50.0]);
    assert_eq!(status(&gate, "a", 60, "1,1"), 402, "alone has 50 left");
    assert_eq!(all(&gate), [750.0, 350.0, 50.0]);
    assert_eq!(status(&gate, "b", 10, "320,10"), 200);
    testing::eventually("it is settled", || all(&gate) == [420.0, 20.0, 50.0]);
    assert_eq!(status(&gate, "b", 60, "1,1"), 402, "the team has 20 left");
    assert_eq!(status(&gate, "c", 10, "400,10"), 200);
    testing::eventually("it is settled", || all(&gate) == [10.0, 20.0, 50.0]);
    assert_eq!(
        status(&gate, "c", 60, "1,1"),
        402,
        "the company has 10 left"
    );
    testing::eventually("marks are told of", || {
        let log = gate.log();
        let lines = |budget: &str, percent: &str| {
            let of = |line: &&str| {
                line.contains(&format!("budget {budget} has used {percent} %: "))
                    && line.contains("#a-budget-has-used-half-or-more")
                    && line.contains(&format!("budget={budget} "))
                    && line.contains(&format!("percent={percent} "))
            };
            log.lines().filter(of).count()
        };
        lines("company", "50") == 1
            && lines("company", "80") == 1
            && lines("company", "100") == 0
            && lines("team", "80") == 1
            && lines("alone", "80") == 1
            && log.contains("#a-budget-refused-its-first-call-of-the-period")
    });
    assert!(gate.log().contains("#there-was-no-ledger"));
    let passed = |percent: &str| {
        let labels = ["budget=\"company\"", percent];
        gate.metric("tollgate_budget_passed", &labels)
    };
    let passed = ["50", "80", "100"].map(|p| passed(&format!("percent=\"{p}\"")));
    assert_eq!(passed, [1.0, 1.0, 0.0]);
    stop(gate);
}

#[test]
fn a_failed_call_releases_its_reservation_and_an_abandoned_one_is_charged_for_it() {
    let upstream = Upstream::start(|_, seen| {
        if seen.json()["user"] == "hang" {
            return vec![Step::Sleep(Duration::from_hours(1))];
        }
        vec![Step::Send(crate::harness::answer::json(500, "{}"))]
    });
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let gate = Gate::start(&grouped(&upstream, &ledger, NESTED), &[]);
    assert_eq!(status(&gate, "a", 100, "1,1"), 500);
    assert_eq!(left(&gate, "alone"), 300.0);
    let mut client = Connection::open(gate.data);
    client.send(&call("a", 100, "hang"));
    testing::eventually("it is reserved", || {
        left(&gate, "alone") < 200.0 && left(&gate, "company") < 900.0
    });
    let held = (left(&gate, "alone"), left(&gate, "company"));
    drop(client);
    let aborted = ["outcome=\"aborted\""];
    testing::eventually("it has ended", || {
        gate.metric("tollgate_exchanges_total", &aborted) > 0.5
    });
    // It was sent upstream whole, so the engine may have generated all that was reserved for it.
    assert_eq!((left(&gate, "alone"), left(&gate, "company")), held);
    stop(gate);
}

#[test]
fn concurrent_calls_never_overspend_a_budget() {
    const CLIENTS: usize = 16;
    let upstream = engine(Duration::from_millis(2));
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let budgets =
        "company: { tokens: 20000, per: month }, b: { workload: b, tokens: 5000, per: day }";
    let gate = Gate::start(&config(&upstream, &ledger, budgets), &[]);
    let used = [AtomicU64::new(0), AtomicU64::new(0)];
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (gate, used) = (&gate, &used);
            scope.spawn(move || {
                let who = client % 2;
                for n in 0..100 {
                    // The reservation of a call is greater than the usage that the upstream reports.
                    let usage = format!("{},{}", 5 + n % 3, 60 + n % 40);
                    let answer = gate.call(&call(["a", "b"][who], 100, &usage));
                    match answer.status {
                        200 => used[who].fetch_add(65 + n % 3 + n % 40, Ordering::SeqCst),
                        402 => 0,
                        other => panic!("{other}"),
                    };
                }
            });
        }
    });
    let [a, b] = used.map(AtomicU64::into_inner);
    assert!(b <= 5000 && b > 4500, "{b}");
    assert!(a + b <= 20_000 && a + b > 19_000, "{a} and {b}");
    testing::eventually("all is settled", || {
        #[expect(clippy::cast_precision_loss, reason = "small")]
        let real = [20_000.0 - (a + b) as f64, 5000.0 - b as f64];
        [left(&gate, "company"), left(&gate, "b")] == real
    });
    stop(gate);
}
