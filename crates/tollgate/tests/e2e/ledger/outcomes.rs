//! The row of each way in which an exchange can end.

use std::time::Duration;

use serde_json::Value;

use super::{answer, call, config, rows, stop, usage};
use crate::harness::{Connection, Gate, Step, Upstream};

#[test]
fn every_admitted_exchange_leaves_one_row_and_a_refused_one_none() {
    let upstream = Upstream::start(|_, seen| match seen.header("x-request-id")[0].as_str() {
        "broken" => vec![Step::Close],
        "left" => vec![Step::Sleep(Duration::from_hours(1))],
        _ => vec![Step::Send(answer(11, 7))],
    });
    for billing in ["grouped", "strict"] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let ledger = dir.path().join("usage.db");
        let gate = Gate::start(&config(upstream.address, &ledger, billing), &[]);
        assert_eq!(gate.call(&call("whole", "m")).status, 200);
        assert_eq!(gate.call(&call("refused", "unknown")).status, 404);
        assert_eq!(gate.call(&call("broken", "m")).status, 502);
        let before = upstream.seen().len();
        let mut leaving = Connection::open(gate.data);
        leaving.send(&call("left", "m"));
        testing::eventually("the call is under way", || upstream.seen().len() > before);
        drop(leaving);
        testing::eventually("it is seen to leave", || {
            gate.metric("tollgate_exchanges_total", &["outcome=\"aborted\""]) >= 1.0
        });
        stop(gate);

        let rows = rows(&ledger);
        assert_eq!(rows.len(), 3, "{rows:?}");
        assert_eq!(rows["whole"]["outcome"], "completed");
        assert_eq!(rows["whole"]["prompt_tokens"], 11);
        assert_eq!(rows["whole"]["prompt_source"], "reported");
        assert_eq!(rows["whole"]["completion_tokens"], 7);
        assert_eq!(rows["broken"]["outcome"], "failed");
        assert_eq!(rows["left"]["outcome"], "aborted");
        for unheard in ["broken", "left"] {
            // Their usage is unknown, so their reservation is charged.
            let row = &rows[unheard];
            let tokens = |column: &str| row[column].as_u64().unwrap_or(0);
            let charged = tokens("prompt_tokens") + tokens("completion_tokens");
            let runs = 1 + tokens("unconfirmed_attempts");
            assert_eq!(runs, tokens("attempts"), "{row}");
            assert_eq!(charged, runs * tokens("reserved_tokens"), "{row}");
            assert_eq!(row["completion_source"], "estimated", "{row}");
            assert!(charged > 0, "{row}");
        }
        assert!(rows.values().all(|row| row["state"] == "settled"));
        assert!(rows.values().all(|row| row["workload"] == "w"));
        let report = usage(&ledger, &["report", "--json"]);
        let report: Value = serde_json::from_str(&report).expect("a report is JSON");
        assert!(report.to_string().contains("\"w\""), "{report}");
        usage(&ledger, &["verify"]);
    }
}
