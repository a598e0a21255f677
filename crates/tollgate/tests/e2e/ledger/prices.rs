//! Token prices in exports and statements.

use std::time::Duration;

use super::{call, config, engine, rows, stop, usage};
use crate::harness::Gate;

#[test]
fn each_kind_of_token_is_charged_at_the_price_of_its_time() {
    let upstream = engine(5, 4, Duration::ZERO);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let priced = |input: u32| {
        let config = config(upstream.address, &ledger, "strict");
        format!("{config}prices: {{ m: {{ input: {input}, output: 10 }} }}\n")
    };
    let gate = Gate::start(&priced(1), &[]);
    assert_eq!(gate.call(&call("before", "m")).status, 200);
    let taken = || gate.metric("tollgate_config_reloads_total", &["result=\"taken\""]);
    gate.reconfigure(&priced(3));
    testing::eventually("the new price", || taken() >= 1.0);
    assert_eq!(gate.call(&call("after", "m")).status, 200);
    stop(gate);

    let csv = usage(&ledger, &["export", "--form", "focus"]);
    let mut lines = csv.lines();
    let heads: Vec<&str> = lines.next().expect("a head").split(',').collect();
    let at = |name: &str| heads.iter().position(|head| *head == name).expect(name);
    let mut charges: Vec<[&str; 4]> = lines
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            [
                "SkuMeter",
                "ConsumedQuantity",
                "ListUnitPrice",
                "BilledCost",
            ]
            .map(|n| cells[at(n)])
        })
        .collect();
    charges.sort_unstable();
    let expected = [
        ["Input", "5", "0.000001", "0.000005"],
        ["Input", "5", "0.000003", "0.000015"],
        ["Output", "4", "0.00001", "0.00004"],
        ["Output", "4", "0.00001", "0.00004"],
    ];
    assert_eq!(charges, expected, "{csv}");
    let rows = rows(&ledger);
    assert_eq!(
        [&rows["before"]["cost"], &rows["after"]["cost"]],
        ["0.000045", "0.000055"]
    );
    let statement = usage(&ledger, &["statement"]);
    for line in [
        "m: input 1.00, output 10.00 USD per million",
        "m: input 3.00, output 10.00 USD per million",
        "Issued 20",
    ] {
        assert!(statement.contains(line), "no {line:?}: {statement}");
    }
    usage(&ledger, &["verify"]);
}
