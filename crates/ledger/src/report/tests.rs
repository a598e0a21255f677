//! Sums, unknowns and escapes.

use policy::price::Pico;
use policy::record::{Count, Outcome};

use super::{
    By, Statement, as_csv, as_json, csv, decimal, drift_table, focus, json_lines, report, rounded,
    table,
};
use crate::entry::Ending;
use crate::read::{Period, Reader};
use crate::row::{Price, Settlement, Witnesses};
use crate::schema::{connect, make};
use crate::store::tests::settlement;
use crate::store::{Note, Store};

mod who;

/// Four rows: two priced, one without a price, one indeterminate.
pub(super) fn ledger() -> (tempfile::TempDir, Reader) {
    let mut rows: Vec<Settlement> = (1..=4).map(settlement).collect();
    for (row, cost) in rows.iter_mut().zip([250_000_000_001, 750_000_000_000]) {
        row.record.tokens.prompt = Count::Reported(u64::MAX);
        row.prompt = Witnesses {
            reported: Some(110),
            counted: Some(100),
            ..Witnesses::default()
        };
        row.record.tokens.completion = Count::Counted(20);
        row.price = Some(Price {
            id: "p1".into(),
            currency: "USD".into(),
            cost: Some(Pico(cost)),
        });
    }
    rows[1].record.outcome = Outcome::Failed;
    rows[2].named.workload = Some("=cmd|' /C calc'!A0,<b>".into());
    rows[2].record.tokens.prompt = Count::Estimated(7);
    rows[3].state = crate::State::Indeterminate;
    of(rows
        .into_iter()
        .map(|row| Note::Settle(Ending::of(&row, "test"))))
}

/// A ledger of these.
fn of(notes: impl Iterator<Item = Note>) -> (tempfile::TempDir, Reader) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    make(&path, [7; 16]).expect("makes tables");
    let db = connect(&path).expect("opens");
    let mut store = Store::new(db, &path).expect("has a head");
    let notes: Vec<_> = notes.collect();
    store.apply(notes.iter()).expect("writes");
    drop(store);
    let reader = Reader::open(&path).expect("opens");
    (dir, reader)
}

#[test]
fn sums_are_exact_and_unknowns_add_nothing() {
    let (_dir, reader) = ledger();
    let lines = report(&reader, Period::ALL, &[]).expect("reads");
    let t = &lines[0].totals;
    assert_eq!(
        (t.exchanges, t.errors, t.unpriced, t.indeterminate),
        (4, 1, 1, 1)
    );
    assert_eq!(t.prompt, 2 * u128::from(i64::MAX.unsigned_abs()) + 7);
    assert_eq!(t.cost.get("USD"), Some(&1_000_000_000_001));
    assert_eq!(t.by_witness[1..], [40, 7]);
    assert_eq!(
        (
            t.prompt_drift.exchanges,
            t.prompt_drift.reported,
            t.prompt_drift.counted
        ),
        (3, 223, 203)
    );
}

#[test]
fn questions_about_a_tool_are_no_uses_of_it() {
    let mut rows: Vec<Settlement> = (1..=5).map(settlement).collect();
    let methods = ["tools/call", "tasks/get", "tools/call", "tasks/get", ""];
    for (row, method) in rows.iter_mut().zip(methods) {
        row.named.method = (!method.is_empty()).then(|| method.into());
        row.named.tool = Some("jobs__report".into());
    }
    let notes = rows.iter().map(|row| Note::Settle(Ending::of(row, "test")));
    let (_dir, reader) = of(notes);
    let lines = report(&reader, Period::ALL, &[By::Tool]).expect("reads");
    let lines = lines.iter().map(|line| {
        let of = line.of[0].as_deref().unwrap_or_default();
        (of, line.totals.exchanges)
    });
    let expected = [("jobs__report", 3), ("jobs__report (tasks/get)", 2)];
    assert_eq!(lines.collect::<Vec<_>>(), expected);
}

#[test]
fn what_an_engine_reports_and_nobody_believes_is_no_drift() {
    let beside = |reported, counted| Witnesses {
        reported: Some(reported),
        counted: Some(counted),
        ..Witnesses::default()
    };
    let mut rows: Vec<Settlement> = (1..=5).map(settlement).collect();
    for row in &mut rows {
        row.record.tokens.prompt = Count::Reported(110);
        row.prompt = beside(110, 100);
        row.record.tokens.completion = Count::Reported(20);
        row.completion = beside(20, 20);
    }
    // Beyond its window, and a sum that cannot be read.
    rows[0].record.tokens.doubtful = true;
    rows[0].record.tokens.prompt = Count::Counted(100);
    rows[0].prompt = beside(48_000_000, 100);
    rows[1].record.tokens.invalid = true;
    rows[1].record.tokens.completion = Count::Estimated(20);
    rows[1].completion = beside(1_000_000_000_000, 20);
    // Charged as it was reported, though that does not add up; and by the gate's count although nothing is wrong.
    rows[2].record.tokens.doubtful = true;
    rows[3].record.tokens.prompt = Count::Counted(100);
    let notes = rows.iter().map(|row| Note::Settle(Ending::of(row, "test")));
    let (_dir, reader) = of(notes);
    let totals = &report(&reader, Period::ALL, &[]).expect("reads")[0].totals;
    let sides = |drift: &super::Drift| (drift.exchanges, drift.reported, drift.counted);
    assert_eq!(sides(&totals.prompt_drift), (4, 440, 400));
    assert_eq!(sides(&totals.completion_drift), (4, 80, 80));
}

#[test]
fn a_period_takes_its_first_moment_and_not_the_one_after_its_last() {
    let (_dir, reader) = ledger();
    let period = Period {
        from_ms: 2001,
        to_ms: 2003,
    };
    let lines = report(&reader, period, &[By::Day, By::Workload]).expect("reads");
    assert_eq!(lines.len(), 1);
    assert_eq!(
        (&*lines[0].of, lines[0].totals.exchanges),
        (
            &[Some("1970-01-01".to_owned()), Some("ide".to_owned())][..],
            2
        )
    );
}

#[test]
fn tables_hold_every_line_and_the_sum() {
    let (_dir, reader) = ledger();
    let by = [By::Workload];
    let lines = report(&reader, Period::ALL, &by).expect("reads");
    let text = table(&lines, &by, 120);
    assert!(
        text.starts_with("workload") && text.contains("1.0000 USD"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 6, "{text}");
    let drift = drift_table(&lines, &by, 120);
    assert!(drift.contains("10.00 %"), "{drift}");
    assert!(as_csv(&lines, &by).contains(",1.000000000001,USD\r\n"));
    assert_eq!(as_json(&lines, &by)[1]["cost"]["USD"], "1.000000000001");
}

#[test]
fn exports_hold_every_row_and_null_is_not_zero() {
    let (_dir, reader) = ledger();
    let (mut as_csv, mut as_json, mut charges) = (Vec::new(), Vec::new(), Vec::new());
    assert_eq!(csv(&reader, Period::ALL, &mut as_csv).expect("writes"), 4);
    assert_eq!(
        json_lines(&reader, Period::ALL, &mut as_json).expect("writes"),
        4
    );
    assert_eq!(
        focus(&reader, Period::ALL, "us", &mut charges).expect("writes"),
        3
    );
    let last = String::from_utf8(as_json)
        .expect("text")
        .lines()
        .last()
        .map(str::to_owned)
        .expect("a line");
    let last: serde_json::Value = serde_json::from_str(&last).expect("JSON");
    assert_eq!(
        (&last["cost"], &last["prompt_reported"]),
        (&serde_json::Value::Null, &4.into())
    );
    let charges = String::from_utf8(charges).expect("text");
    assert!(
        charges
            .lines()
            .any(|line| line.starts_with("1.000000000001,engineering,")),
        "{charges}"
    );
    let unknown = charges
        .lines()
        .filter(|line| line.starts_with(",engineering,"))
        .count();
    assert_eq!(unknown, 2, "{charges}");
}

#[test]
fn a_statement_says_what_is_not_in_its_sum_and_runs_nothing() {
    let (_dir, reader) = ledger();
    let issued = 1_773_000_000_000;
    let statement = Statement::of(&reader, Period::ALL, "March <2026>", issued).expect("reads");
    let html = statement.html();
    for expected in [
        "March &lt;2026&gt;",
        "1.00 USD",
        "Not in the cost: 1 exchange with tokens that no known price covers.",
        "Not in tokens and cost: 1 exchange incomplete",
        "All that the ledger has. Issued 2026-03-08T20:00:00Z.",
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">",
        "@media(max-width:",
        "<td data-of=\"Failed\">1</td>",
        "<td data-of=\"Drift in, out\">+10.0 %, -</td>",
        "<li>gpt-oss-120b: price p1, which the ledger does not have</li>",
    ] {
        assert!(html.contains(expected), "{expected}: {html}");
    }
    assert!(!html.contains("<b>"));
    assert!(statement.csv().contains("\"'=cmd|"), "{}", statement.csv());
}

#[test]
fn money_is_written_exactly_and_rounded_half_to_even() {
    let cases = [
        (0, "0.00", "0.00"),
        (5_000_000_000, "0.005", "0.00"),
        (15_000_000_000, "0.015", "0.02"),
        (-1_005_000_000_001, "-1.005000000001", "-1.01"),
    ];
    for (pico, exact, cents) in cases {
        assert_eq!(
            (decimal(pico).as_str(), rounded(pico, 2).as_str()),
            (exact, cents)
        );
    }
    assert_eq!(rounded(999_999_999_999, 4), "1.0000");
}

/// A line of these names, and what a busy month comes to, in two currencies.
fn line(of: &[&str], currencies: &[&str]) -> super::Line {
    let mut totals = super::Totals {
        exchanges: 123_456,
        errors: 1234,
        unpriced: 1234,
        indeterminate: 12,
        at_most: 1_234_567,
        prompt: 987_654_321,
        completion: 87_654_321,
        ..super::Totals::default()
    };
    totals.prompt_drift = super::Drift {
        exchanges: 10,
        reported: 1003,
        counted: 1000,
    };
    for currency in currencies {
        let pico = 12_345_678_900_000_000;
        totals.cost.insert((*currency).to_owned(), pico);
    }
    let of = of.iter().map(|name| Some((*name).to_owned())).collect();
    super::Line { of, totals }
}

#[test]
fn a_busy_month_fits_eighty_columns_and_says_nothing_that_is_not_there() {
    let long = "a-model-whose-name-a-client-made-up-to-break-tables";
    let every = [
        By::Group,
        By::Workload,
        By::Model,
        By::Backend,
        By::Day,
        By::Key,
        By::User,
        By::Tag("a-tag-whose-name-is-as-long-as-the-longest-that-a-row-may-ever-h".into()),
    ];
    for by in 1..=every.len() {
        let names = [
            "product",
            "chat-bot",
            long,
            "on-prem-in-the-second-room",
            "2026-11-21",
            "a-key-with-a-long-id",
            "somebody@example.com, who has a long name",
            "a value of a tag that is longer than anybody wants to read",
        ];
        let lines = [
            line(&names[..by], &["EUR", "USD"]),
            line(
                &["ide", "mistral", "m", "b", "2026-11-22", "k", "u", "t"][..by],
                &["USD"],
            ),
        ];
        for text in [
            table(&lines, &every[..by], 80),
            drift_table(&lines, &every[..by], 80),
        ] {
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(80), "{longest:?}\n{text}");
        }
        let text = table(&lines, &every[..by], 80);
        for whole in ["24691.3578 USD", "0.3/- %", "987654321", "Not in the cost"] {
            assert!(text.contains(whole), "no {whole}:\n{text}");
        }
    }
    let text = table(&[line(&["ide"], &["USD"])], &[By::Workload], 100);
    assert!(
        text.starts_with("workload  exchanges"),
        "columns where they fit: {text}"
    );
    let nothing = super::Line {
        of: vec![Some(long.to_owned())],
        totals: super::Totals::default(),
    };
    let text = table(&[nothing], &[By::Model], 80);
    assert!(!text.contains("cost") && !text.contains("drift"), "{text}");
    assert!(text.contains("a-model-whose-name-a-client-mad…"), "{text}");
}

#[test]
fn columns_of_csv_can_be_summed() {
    let text = as_csv(&[line(&["ide"], &["EUR", "USD"])], &[By::Workload]);
    let rows: Vec<Vec<&str>> = text.lines().map(|row| row.split(',').collect()).collect();
    let column = |name: &str| {
        let at = rows[0].iter().position(|head| *head == name).expect(name);
        rows[1..].iter().map(|row| row[at]).collect::<Vec<_>>()
    };
    assert_eq!(column("workload"), ["ide", "ide"]);
    assert_eq!(column("exchanges"), ["123456", ""]);
    assert_eq!(column("cost"), ["12345.6789", "12345.6789"]);
    assert_eq!(column("currency"), ["EUR", "USD"]);
}

#[test]
fn numbers_are_grouped_and_little_is_not_nothing() {
    use super::words::{amount, grouped};
    for (plain, read) in [
        ("1", "1"),
        ("123", "123"),
        ("1234", "1 234"),
        ("1234567.8901", "1 234 567.8901"),
        ("-123.4567", "-123.4567"),
        ("<0.0001", "<0.0001"),
    ] {
        assert_eq!(grouped(plain).replace('\u{202f}', " "), read);
    }
    assert_eq!(
        [0, 1, 50_000_001, 100_000_000].map(amount),
        ["0.0000", "<0.0001", "0.0001", "0.0001"]
    );
}

/// A price with a long tier and a fee, and the rows of three calls that were charged by it.
fn priced() -> (policy::price::Price, Vec<Settlement>) {
    let rates = |by: i128| policy::price::Rates {
        cached: Pico(10_000 * by),
        cache_write_1h: Pico(200_000 * by),
        ..policy::price::Rates::flat(Pico(100_000 * by), Pico(400_000 * by))
    };
    let price = policy::price::Price {
        id: "p-tiered".into(),
        whose: "".into(),
        currency: "USD".into(),
        request: Pico(5_000_000),
        rates: rates(1),
        tiers: vec![policy::price::Tier {
            above: 1000,
            rates: rates(2),
        }],
    };
    let calls = [(500, 200, 50, 20), (1000, 0, 7, 0), (5000, 4999, 1, 0)];
    let rows = calls
        .into_iter()
        .zip(1..)
        .map(|((prompt, cached, completion, reasoning), n)| {
            let mut row = settlement(n);
            let tokens = policy::record::Tokens {
                prompt: Count::Reported(prompt),
                completion: Count::Reported(completion),
                cached: Some(cached),
                cache_write_1h: Some(n),
                reasoning: Some(reasoning),
                audio_completion: Some(1),
                ..policy::record::Tokens::default()
            };
            row.record.tokens = tokens;
            row.price = Some(Price {
                id: price.id.as_ref().into(),
                currency: "USD".into(),
                cost: price.cost(&tokens),
            });
            row
        });
    let rows = rows.collect();
    (price, rows)
}

/// A ledger of these rows that keeps their price.
fn charged(price: policy::price::Price, rows: Vec<Settlement>) -> (tempfile::TempDir, Reader) {
    let prices = [std::sync::Arc::new(price)];
    let known = Note::Prices(crate::prices::PriceNote::all(prices.iter()));
    let rows = rows
        .into_iter()
        .map(|row| Note::Settle(Ending::of(&row, "test")));
    of([known].into_iter().chain(rows))
}

#[test]
fn charges_are_of_one_kind_of_tokens_each_and_come_to_the_cost_of_the_rows() {
    let (price, rows) = priced();
    let total: i128 = rows
        .iter()
        .filter_map(|row| row.price.as_ref()?.cost)
        .map(|c| c.0)
        .sum();
    let (_dir, reader) = charged(price, rows);
    let mut out = Vec::new();
    focus(&reader, Period::ALL, "us", &mut out).expect("writes");
    let text = String::from_utf8(out).expect("text");
    let rows: Vec<Vec<&str>> = text.lines().map(|row| row.split(',').collect()).collect();
    let at = |name: &str| rows[0].iter().position(|head| *head == name).expect(name);
    let pico = |text: &str| {
        let (whole, part) = text.split_once('.').expect("a decimal");
        format!("{whole}{part:0<12}")
            .parse::<i128>()
            .expect("a number")
    };
    let mut kinds = std::collections::BTreeMap::new();
    let (mut sum, mut exchanges) = (0, 0);
    for row in &rows[1..] {
        let (quantity, unit) = (row[at("PricingQuantity")], row[at("ListUnitPrice")]);
        let cost = pico(row[at("BilledCost")]);
        assert_eq!(
            quantity.parse::<i128>().expect("a number") * pico(unit),
            cost,
            "{row:?}"
        );
        *kinds.entry(row[at("SkuMeter")]).or_insert(0) +=
            quantity.parse::<u64>().expect("a number");
        sum += cost;
        // The tags, which hold commas, stand before it.
        exchanges += row[row.len() - 5].parse::<u64>().expect("a number");
    }
    let expected = [
        ("Audio output", 3),
        ("Cache write (1 h)", 4),
        ("Cached input", 5199),
        ("Input", 1297),
        ("Output", 35),
        ("Reasoning output", 20),
        ("Requests", 3),
    ];
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), expected);
    assert_eq!((sum, exchanges), (total, 3), "{text}");
}

#[test]
fn a_statement_tells_the_unit_prices_that_a_line_was_charged_by() {
    let (price, rows) = priced();
    let (_dir, reader) = charged(price, rows);
    let statement = Statement::of(&reader, Period::ALL, "March", 0).expect("reads");
    for told in [
        "input 0.10, output 0.40, cache write (1 h) 0.20, cached input 0.01 USD per million",
        "input 0.20, output 0.80, cache write (1 h) 0.40, cached input 0.02 USD per million, prompts above 1\u{202f}000 tokens",
        "0.000005 USD per call",
    ] {
        assert!(
            statement.html().contains(told),
            "no {told:?}: {}",
            statement.html()
        );
        assert!(
            statement.csv().contains(told),
            "no {told:?}: {}",
            statement.csv()
        );
    }
}

#[test]
fn a_statement_says_for_whom_a_unit_price_is() {
    let (mut price, rows) = priced();
    price.whose = "tag team=research".into();
    let (_dir, reader) = charged(price, rows);
    let statement = Statement::of(&reader, Period::ALL, "March", 0).expect("reads");
    for told in [
        "input 0.10, output 0.40, cache write (1 h) 0.20, cached input 0.01 USD per million, for tag team=research",
        "0.000005 USD per call, image or unit of search, for tag team=research",
    ] {
        assert!(statement.html().contains(told), "{}", statement.html());
        assert!(statement.csv().contains(told), "{}", statement.csv());
    }
}

#[test]
fn a_cost_that_the_kept_price_does_not_explain_is_a_charge_of_its_own() {
    let (price, mut rows) = priced();
    if let Some(cost) = rows[0].price.as_mut().and_then(|price| price.cost.as_mut()) {
        cost.0 += 7;
    }
    let (_dir, reader) = charged(price, rows);
    let mut out = Vec::new();
    focus(&reader, Period::ALL, "us", &mut out).expect("writes");
    let text = String::from_utf8(out).expect("text");
    let other = text.lines().find(|line| line.contains("Other: "));
    assert!(
        other.is_some_and(|line| line.starts_with("0.000000000007,")),
        "{text}"
    );
}

#[test]
fn units_of_search_are_as_many_requests_as_they_cost() {
    let (price, mut rows) = priced();
    let request = price.request.0;
    if let Some(cost) = rows[0].price.as_mut().and_then(|price| price.cost.as_mut()) {
        cost.0 += 3 * request;
    }
    let (_dir, reader) = charged(price, rows);
    let mut out = Vec::new();
    focus(&reader, Period::ALL, "us", &mut out).expect("writes");
    let text = String::from_utf8(out).expect("text");
    assert!(!text.contains("Other: "), "{text}");
    let heads: Vec<&str> = text.lines().next().expect("heads").split(',').collect();
    let at = heads
        .iter()
        .position(|head| *head == "PricingQuantity")
        .expect("a column");
    let requests = text.lines().filter(|line| line.contains("Requests: "));
    let quantities = requests.map(|line| line.split(',').nth(at).expect("a cell").parse::<u64>());
    assert_eq!(quantities.map(Result::unwrap).sum::<u64>(), 6, "{text}");
}
