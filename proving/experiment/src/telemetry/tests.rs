//! Counters that begin late, fall or say nothing; questions as text.

use super::*;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn span(from: u64, to: u64) -> Span {
    Span {
        from: secs(from),
        to: secs(to),
    }
}

fn value(metric: &str, engine: &str, value: f64) -> Value {
    Value {
        metric: metric.into(),
        labels: vec![("engine".into(), engine.into())],
        value,
    }
}

fn sample(at: u64, values: Vec<Value>) -> Sample {
    Sample {
        at: secs(at),
        target: "engine".into(),
        values,
    }
}

fn query(text: &str) -> Query {
    text.parse().unwrap()
}

/// What is heard, one sample a second, of one counter `n`.
fn counting(figures: &[f64]) -> Telemetry {
    let mut telemetry = Telemetry::new(&[query("increase(engine:n)")]);
    for (at, figure) in (0..).zip(figures) {
        telemetry.hear(&sample(at, vec![value("n", "0", *figure)]));
    }
    telemetry
}

#[test]
fn a_counter_counts_from_where_it_stood_first() {
    let telemetry = counting(&[100.0, 101.0, 104.0, 104.0]);
    let asked = |from, to| telemetry.ask(&query("increase(engine:n)"), span(from, to));
    assert_eq!(asked(0, 3), Some(4.0));
    assert_eq!(asked(1, 2), Some(3.0), "a span is without its beginning");
    assert_eq!(asked(2, 3), Some(0.0));
    assert_eq!(asked(3, 9), None, "nothing was heard, which is not 0");
    assert_eq!(asked(9, 2), None, "a span that ends before it begins");
    let rate = telemetry.ask(&query("rate(engine:n)"), span(0, 2));
    assert_eq!(rate, Some(2.0));
}

#[test]
fn a_counter_that_falls_was_reset_and_counts_from_0() {
    let telemetry = counting(&[100.0, 110.0, 3.0, 5.0]);
    let asked = telemetry.ask(&query("increase(engine:n)"), span(0, 3));
    assert_eq!(asked, Some(10.0 + 3.0 + 2.0));
}

#[test]
fn growth_counts_on_and_from_0_where_a_counter_fell_or_is_new() {
    assert_eq!(growth(Some(10.0), 14.0, false), 4.0);
    assert_eq!(growth(Some(10.0), 3.0, false), 3.0, "it fell");
    assert_eq!(growth(None, 3.0, false), 3.0, "it is new");
    assert_eq!(growth(None, 3.0, true), 0.0, "it was counted before");
}

#[test]
fn a_series_that_appears_later_began_at_0() {
    let increase = query("increase(engine:n)");
    let mut telemetry = Telemetry::new([&increase]);
    telemetry.hear(&sample(0, vec![value("n", "0", 50.0)]));
    telemetry.hear(&sample(
        1,
        vec![value("n", "0", 51.0), value("n", "1", 7.0)],
    ));
    assert_eq!(telemetry.ask(&increase, span(0, 1)), Some(8.0));
    let own = query("increase(engine:n{engine=\"1\"})");
    assert_eq!(
        telemetry.ask(&own, span(0, 1)),
        None,
        "nobody said it would be asked"
    );
}

#[test]
fn a_sample_out_of_order_and_one_that_is_no_number_are_passed_over() {
    let mut telemetry = counting(&[0.0, 5.0]);
    telemetry.hear(&sample(1, vec![value("n", "0", 900.0)]));
    telemetry.hear(&sample(0, vec![value("n", "0", 900.0)]));
    telemetry.hear(&sample(2, vec![value("n", "0", f64::NAN)]));
    telemetry.hear(&sample(3, vec![value("n", "0", 6.0)]));
    let asked = telemetry.ask(&query("increase(engine:n)"), span(0, 3));
    assert_eq!(asked, Some(6.0));
    assert_eq!(telemetry.last_heard("engine"), Some(secs(3)));
    assert_eq!(telemetry.last_heard("gpu"), None);
}

#[test]
fn a_mean_is_of_all_series_and_has_an_answer_only_where_something_was_counted() {
    let mean = query("mean(engine:ttft)");
    let mut telemetry = Telemetry::new([&mean]);
    let page = |at, sums: [f64; 2], counts: [f64; 2]| {
        let values = vec![
            value("ttft_sum", "0", sums[0]),
            value("ttft_sum", "1", sums[1]),
            value("ttft_count", "0", counts[0]),
            value("ttft_count", "1", counts[1]),
        ];
        sample(at, values)
    };
    telemetry.hear(&page(0, [9.0, 0.0], [90.0, 0.0]));
    telemetry.hear(&page(1, [10.0, 2.0], [91.0, 3.0]));
    telemetry.hear(&page(2, [10.0, 2.0], [91.0, 3.0]));
    assert_eq!(telemetry.ask(&mean, span(0, 1)), Some(3.0 / 4.0));
    assert_eq!(telemetry.support(&mean, span(0, 1)), Some(4.0));
    assert_eq!(telemetry.ask(&mean, span(1, 2)), None);
    assert_eq!(telemetry.support(&mean, span(1, 2)), Some(0.0));
}

/// Seconds to the first token: ten calls a second of 0.1 s each, whose sum is a number only where `is_number` says so.
fn ttft(seconds: u64, broken: f64, is_number: impl Fn(u64) -> bool) -> (Query, Telemetry) {
    let mean = query("mean(engine:ttft)");
    let mut telemetry = Telemetry::new([&mean]);
    for at in 0..=seconds {
        let count = 1_000.0 + 10.0 * at as f64;
        let sum = if is_number(at) { 0.1 * count } else { broken };
        let values = vec![value("ttft_sum", "0", sum), value("ttft_count", "0", count)];
        telemetry.hear(&sample(at, values));
    }
    (mean, telemetry)
}

fn near(answer: Option<f64>, expected: f64) -> bool {
    answer.is_some_and(|answer| (answer - expected).abs() < 1e-9)
}

#[test]
fn a_sum_that_turns_to_nan_while_its_count_goes_on_gives_the_mean_until_then_and_no_other() {
    for broken in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let (mean, telemetry) = ttft(30, broken, |at| at <= 5);
        let asked = |from, to| telemetry.ask(&mean, span(from, to));
        assert!(near(asked(0, 10), 0.1), "{broken}: {:?}", asked(0, 10));
        assert_eq!(
            telemetry.support(&mean, span(0, 10)),
            Some(50.0),
            "{broken}"
        );
        assert_eq!(asked(5, 30), None, "{broken}");
        assert_eq!(telemetry.support(&mean, span(5, 30)), None, "{broken}");
    }
}

#[test]
fn a_sum_that_is_heard_again_is_divided_by_the_count_of_the_same_moments() {
    let (mean, telemetry) = ttft(30, f64::NAN, |at| !(6..=20).contains(&at));
    for (from, to) in [(0, 30), (10, 25), (18, 22), (25, 30), (5, 21)] {
        let asked = telemetry.ask(&mean, span(from, to));
        assert!(near(asked, 0.1), "{from} to {to}: {asked:?}");
    }
    assert_eq!(telemetry.ask(&mean, span(10, 20)), None);
}

#[test]
fn a_sum_that_has_no_number_on_the_first_page_does_not_count_what_was_before() {
    let (mean, telemetry) = ttft(30, f64::NAN, |at| at > 3);
    for (from, to) in [(0, 30), (2, 10), (10, 30)] {
        let asked = telemetry.ask(&mean, span(from, to));
        assert!(near(asked, 0.1), "{from} to {to}: {asked:?}");
    }
    assert_eq!(
        telemetry.ask(&mean, span(0, 4)),
        None,
        "one moment is no span"
    );
}

#[test]
fn a_sum_that_one_of_two_engines_lost_is_not_divided_by_the_count_of_both() {
    let mean = query("mean(engine:ttft)");
    let mut telemetry = Telemetry::new([&mean]);
    for at in 0..=20_u64 {
        let count = 10.0 * at as f64;
        let mut values = vec![
            value("ttft_sum", "0", 0.1 * count),
            value("ttft_count", "0", count),
            value("ttft_count", "1", count),
        ];
        // At first it has a number, then none, and then it is not on the page at all.
        match at {
            0..=5 => values.push(value("ttft_sum", "1", 0.1 * count)),
            6..=10 => values.push(value("ttft_sum", "1", f64::NAN)),
            _ => {}
        }
        telemetry.hear(&sample(at, values));
    }
    assert!(near(telemetry.ask(&mean, span(0, 20)), 0.1));
    assert_eq!(telemetry.support(&mean, span(0, 20)), Some(100.0));
    assert_eq!(telemetry.ask(&mean, span(6, 20)), None);
}

#[test]
fn a_ratio_whose_parts_are_of_other_moments_has_no_answer() {
    let ratio = query("ratio(engine:lost, engine:done)");
    let across = query("ratio(engine:lost, gateway:done)");
    let mut telemetry = Telemetry::new([&ratio, &across]);
    for at in 0..=20_u64 {
        let done = 10.0 * at as f64;
        let lost = if at <= 5 { at as f64 } else { f64::NAN };
        let values = vec![value("lost", "0", lost), value("done", "0", done)];
        telemetry.hear(&sample(at, values));
        telemetry.hear(&Sample {
            target: "gateway".into(),
            ..sample(at, vec![value("done", "0", done)])
        });
    }
    assert!(near(telemetry.ask(&ratio, span(0, 20)), 0.1));
    assert_eq!(telemetry.ask(&ratio, span(6, 20)), None);
    assert!(near(telemetry.ask(&across, span(0, 5)), 0.1));
    assert_eq!(telemetry.ask(&across, span(0, 20)), None, "15 s apart");
}

#[test]
fn a_rate_is_of_the_time_in_which_its_counter_had_a_number() {
    let rate = query("rate(engine:n)");
    let mut telemetry = Telemetry::new([&rate]);
    for at in 0..=20_u64 {
        let figure = if at <= 10 { 3.0 * at as f64 } else { f64::NAN };
        telemetry.hear(&sample(at, vec![value("n", "0", figure)]));
    }
    assert_eq!(telemetry.ask(&rate, span(0, 20)), Some(3.0));
    assert_eq!(telemetry.ask(&rate, span(10, 20)), None);
}

#[test]
fn a_ratio_takes_a_counter_that_is_not_there_for_0_and_a_lower_one_below_1_for_1() {
    let ratio = query("ratio(engine:lost, engine:done)");
    let mut telemetry = Telemetry::new([&ratio]);
    assert_eq!(telemetry.ask(&ratio, span(0, 1)), None);
    assert_eq!(telemetry.missing(&ratio).len(), 2);
    telemetry.hear(&sample(0, vec![value("done", "0", 0.0)]));
    telemetry.hear(&sample(1, vec![value("done", "0", 10.0)]));
    assert_eq!(telemetry.ask(&ratio, span(0, 1)), Some(0.0));
    assert_eq!(telemetry.missing(&ratio)[0].metric, "lost");
    let lost = vec![value("done", "0", 10.0), value("lost", "0", 3.0)];
    telemetry.hear(&sample(2, lost));
    assert_eq!(telemetry.ask(&ratio, span(0, 2)), Some(0.3));
    assert_eq!(telemetry.ask(&ratio, span(1, 2)), Some(3.0));
    assert_eq!(telemetry.missing(&ratio), []);
    assert_eq!(telemetry.ask(&ratio, span(2, 3)), None, "nobody was heard");
}

#[test]
fn a_counter_that_was_there_and_is_gone_is_unknown_and_not_0() {
    let ratio = query("ratio(engine:lost, engine:done)");
    let mut telemetry = Telemetry::new([&ratio]);
    let page = |at, lost: &[f64]| {
        let lost = lost.iter().map(|&lost| value("lost", "0", lost));
        sample(at, lost.chain([value("done", "0", at as f64)]).collect())
    };
    telemetry.hear(&page(0, &[0.0]));
    telemetry.hear(&page(1, &[1.0]));
    telemetry.hear(&page(2, &[]));
    telemetry.hear(&page(3, &[]));
    assert_eq!(telemetry.ask(&ratio, span(0, 1)), Some(1.0));
    assert_eq!(telemetry.ask(&ratio, span(1, 3)), None);
    let [lost, done] = &ratio.selectors()[..] else {
        panic!("two");
    };
    let absence = |of| telemetry.longest_absence(of, span(0, 3));
    assert_eq!([absence(lost), absence(done)], [secs(2), secs(1)]);
}

#[test]
fn gauges_are_averaged_added_up_and_searched_for_their_highest() {
    let texts = ["avg(engine:g)", "sum(engine:g)", "max(engine:g)"];
    let [average, total, highest] = texts.map(query);
    let mut telemetry = Telemetry::new([&average, &total, &highest]);
    let page = |at, a, b| sample(at, vec![value("g", "0", a), value("g", "1", b)]);
    telemetry.hear(&page(1, 1.0, 3.0));
    telemetry.hear(&page(2, 5.0, -7.0));
    let asked = [average, total, highest].map(|query| telemetry.ask(&query, span(0, 2)));
    assert_eq!(asked, [Some(0.5), Some(1.0), Some(5.0)]);
}

#[test]
fn a_label_picks_series_and_another_target_none() {
    let [one, other] = ["increase(engine:n{engine=\"1\"})", "increase(gateway:n)"].map(query);
    let mut telemetry = Telemetry::new([&one, &other]);
    let page = |at, a, b| sample(at, vec![value("n", "0", a), value("n", "1", b)]);
    telemetry.hear(&page(0, 0.0, 0.0));
    telemetry.hear(&page(1, 5.0, 2.0));
    assert_eq!(telemetry.ask(&one, span(0, 1)), Some(2.0));
    assert_eq!(telemetry.ask(&other, span(0, 1)), None);
    assert_eq!(telemetry.missing(&other).len(), 1);
}

#[test]
fn a_label_that_never_stands_still_takes_no_memory_without_end() {
    let increase = query("increase(engine:n)");
    let mut telemetry = Telemetry::new([&increase]);
    telemetry.hear(&sample(0, Vec::new()));
    for at in 1..=30 {
        let values = (0..1000).map(|i| value("n", &format!("{at}-{i}"), 1.0));
        telemetry.hear(&sample(at, values.collect()));
    }
    assert_eq!(telemetry.ask(&increase, span(0, 30)), Some(10_000.0));
}

#[test]
fn a_query_gives_its_text_back() {
    let texts = [
        "mean(engine:vllm:time_to_first_token_seconds)",
        "ratio(engine:vllm:num_preemptions_total, engine:vllm:request_success_total)",
        "sum(gpu:DCGM_FI_PROF_NVLINK_TX_BYTES{gpu=\"0\"})",
        "increase(gate-2:a{b=\"c, {d}\", e=\"\"})",
        "ratio(a:b{c=\"d,e\"}, f:g{h=\"i\"})",
        "max(a:b)",
        "avg(a:b)",
        "rate(a:b)",
    ];
    for text in texts {
        let read = query(text);
        assert_eq!(read.to_string(), text);
        let json = serde_json::to_string(&read).unwrap();
        assert_eq!(serde_json::from_str::<Query>(&json).unwrap(), read);
    }
    let spaced = query("  mean( engine:a{ b = \"c\" ,} ) ");
    assert_eq!(spaced.to_string(), "mean(engine:a{b=\"c\"})");
}

#[test]
fn a_query_that_cannot_be_read_says_why() {
    let faults = [
        ("", "write FUNCTION"),
        ("mean", "write FUNCTION"),
        ("mean(a:b", "write FUNCTION"),
        ("median(a:b)", "is none of mean, ratio"),
        ("mean()", "is no TARGET:METRIC"),
        ("mean(metric)", "is no TARGET:METRIC"),
        ("mean(a b:c)", "is no TARGET:METRIC"),
        ("mean(a:b, c:d)", "ratio has two"),
        ("ratio(a:b)", "ratio has two"),
        ("ratio(a:b, c:d, e:f)", "ratio has two"),
        ("rate(a:b{c=\"d\")", "without its }"),
        ("rate(a:b{c=d})", "is no LABEL"),
        ("rate(a:b{c})", "is no LABEL"),
        ("rate(a:b{=\"d\"})", "is no LABEL"),
        ("rate(a:b{c=\"d\"e\"})", "is no LABEL"),
    ];
    for (text, says) in faults {
        let error = text.parse::<Query>().unwrap_err();
        assert_eq!(error.text, text);
        assert!(error.to_string().contains(says), "{text}: {error}");
    }
}

#[test]
fn a_span_in_which_a_target_was_silent_has_no_ratio_also_afterwards() {
    let text = "ratio(engine:n, engine:m)";
    let mut telemetry = Telemetry::new(&[query(text)]);
    for at in [0, 1, 5] {
        let figure = at as f64;
        telemetry.hear(&sample(
            at,
            vec![value("n", "0", figure), value("m", "0", 2.0 * figure)],
        ));
    }
    let asked = |from, to| telemetry.ask(&query(text), span(from, to));
    assert_eq!(asked(0, 1), Some(0.5));
    assert_eq!(asked(2, 4), None);
    assert_eq!(asked(4, 5), Some(0.5));
}
