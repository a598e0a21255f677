//! Limits and budgets of a configuration, as the API shows them.

use std::path::Path;

use crate::world::World;

use super::*;

const CONFIG: &str = "
backends: { own: { url: http://127.0.0.1:1/v1, credential: { inline: canary } } }
routes:
  - workload: ide
    backend: own
    limits: [ { requests: 2, per: 1m }, { tokens: 1000, per: 1h }, { tokens: 10, per: 1m, window: rolling } ]
prices: { m: { input: 1, output: 1, per: 1M } }
budgets:
  company: { money: 5, per: day }
  ides: { tokens: 100, per: month, workload: ide }
ledger: { path: usage.db }
";

#[test]
fn levels_are_whole_numbers_of_the_unit_beside_them() {
    let path = Path::new("tollgate.yaml");
    let loaded = config::parse_document(path, CONFIG.as_bytes(), &World);
    let loaded = loaded.unwrap_or_else(|faults| panic!("{faults}"));
    let revision = Revision::first(loaded.snapshot);
    let Revision { snapshot, levels } = &revision;
    let first = levels.bucket(LimitId(0)).expect("a limit");
    assert_eq!(first.take(1, Mono::default()), Ok(()));
    let all = limits(&revision, Mono::default());
    let of = |limit: &Limit| {
        (
            limit.unit,
            limit.amount,
            limit.burst,
            limit.remaining,
            limit.window,
        )
    };
    assert_eq!(
        all.iter().map(of).collect::<Vec<_>>(),
        [
            ("requests", 2, 2, Some(1), "bucket"),
            ("tokens", 1000, 1000, Some(1000), "bucket"),
            ("tokens", 10, 10, Some(10), "rolling"),
        ]
    );
    assert_eq!(
        (all[0].window_seconds, all[1].window_seconds),
        (60.0, 3600.0)
    );
    assert_eq!(
        (all[0].full_in_seconds, all[1].full_in_seconds),
        (Some(30.0), Some(0.0))
    );
    assert_eq!((&*all[0].workload, &*all[0].route), ("ide", "own"));

    let now = now_ms();
    for (id, budget) in snapshot.budgets.iter() {
        let period = budget.calendar.of(now);
        let spent = levels.spent(id).expect("a budget");
        spent.settle(period, 0, 30);
        spent.refused(period);
    }
    let all = budgets(&revision, now);
    let [company, ides] = &all[..] else {
        panic!("{all:?}");
    };
    let unit = |budget: &Budget| (budget.unit, budget.currency.clone());
    assert_eq!(unit(company), ("nano_units", Some("USD".to_owned())));
    assert_eq!(unit(ides), ("tokens", None));
    let level = |budget: &Budget| {
        let [held, remaining] = [budget.held, budget.remaining].map(|units| units.expect("shared"));
        (budget.amount, held, remaining)
    };
    assert_eq!(level(company), (5_000_000_000, 30, 4_999_999_970));
    assert_eq!(level(ides), (100, 30, 70));
    assert_eq!((company.period, ides.period), ("day", "month"));
    assert_eq!((company.refused_calls, ides.refused_calls), (1, 1));
    assert_eq!(company.workloads, None);
    assert_eq!(ides.workloads, Some(vec!["ide".to_owned()]));
    assert!(company.period_starts_unix_ms <= now && now < company.period_ends_unix_ms);
}
