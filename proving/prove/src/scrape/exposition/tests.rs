//! Both formats as real servers write them, what is no page, and any bytes.

use std::time::Duration;

use experiment::telemetry::{Query, Sample, Span, Telemetry};
use proptest::prelude::*;

use super::{Kind, Page};

fn read(text: &str) -> Page {
    Page::read(text.as_bytes())
}

#[test]
fn a_page_of_prometheus_is_read_with_its_labels_and_without_its_buckets() {
    let page = read(
        "# HELP vllm:e2e_request_latency_seconds Histogram of e2e.\n\
         # TYPE vllm:e2e_request_latency_seconds histogram\n\
         vllm:e2e_request_latency_seconds_bucket{engine=\"0\",le=\"0.3\",model_name=\"m\"} 1.0\n\
         vllm:e2e_request_latency_seconds_bucket{engine=\"0\",le=\"+Inf\",model_name=\"m\"} 2.0\n\
         vllm:e2e_request_latency_seconds_count{model_name=\"m\",engine=\"0\"} 2.0\n\
         vllm:e2e_request_latency_seconds_sum{engine=\"0\",model_name=\"m\"} 1.5e1\n\
         # TYPE up gauge\n\
         up 1 1700000000000\n\
         up_bucket 7\n",
    );
    assert_eq!((page.unread, page.buckets, page.values.len()), (0, 2, 4));
    let count = &page.values[0];
    assert_eq!(count.metric, "vllm:e2e_request_latency_seconds_count");
    let sorted = [("engine", "0"), ("model_name", "m")].map(|(a, b)| (a.into(), b.into()));
    assert_eq!(count.labels, sorted, "sorted by name");
    assert_eq!(page.values[1].value, 15.0);
    assert_eq!(page.values[3].metric, "up_bucket", "no edge, no bucket");
    assert_eq!(page.kinds["up"], Kind::Gauge);
    assert_eq!(
        page.kinds["vllm:e2e_request_latency_seconds"],
        Kind::Histogram
    );
}

#[test]
fn escapes_in_values_of_labels_are_undone_and_marks_within_them_mean_nothing() {
    let page = read("a{path=\"C:\\\\x \\\"y\\\" } # , =\\n\\z\",b=\"é\",} 1\n");
    assert_eq!(page.unread, 0, "{page:?}");
    let labels = &page.values[0].labels;
    assert_eq!(labels[0], ("b".into(), "é".into()));
    assert_eq!(labels[1].1, "C:\\x \"y\" } # , =\n\\z");
}

#[test]
fn openmetrics_exemplars_timestamps_and_its_end_are_no_fault() {
    let page = read(
        "# TYPE requests counter\n# UNIT requests requests\n\
         requests_total{code=\"200\"} 17 1520879607.789 # {trace_id=\"KO\"} 0.67 1520879607.7\n\
         latency_bucket{le=\"0.1\"} 8 # {} 0.054\nrequests_created{code=\"200\"} 1.5e9\n# EOF\n",
    );
    assert_eq!((page.unread, page.values.len(), page.buckets), (0, 2, 1));
    assert_eq!(page.values[0].value, 17.0);
    assert_eq!(page.kinds["requests"], Kind::Counter);
}

#[test]
fn infinities_and_what_is_no_number_are_values() {
    let page = read("a +Inf\nb -Inf\nc NaN\nd Inf\ne 1e-3\nf -0.5\n");
    let values: Vec<f64> = page.values.iter().map(|value| value.value).collect();
    assert_eq!(values[..2], [f64::INFINITY, f64::NEG_INFINITY]);
    assert!(values[2].is_nan() && values[3].is_infinite());
    assert_eq!(values[4..], [0.001, -0.5]);
}

#[test]
fn a_line_that_cannot_be_read_is_counted_and_the_first_is_told_with_its_number() {
    let page =
        read("a 1\nb\nc{x=\"1} 2\nd{x=1} 3\n1e 4\nf infinity\ng 1 2 3\nh{x=\"1\"}\ni 0x10\nz 5\n");
    assert_eq!((page.values.len(), page.unread), (2, 8), "{page:?}");
    assert_eq!(page.first_unread, Some((2, "b".into())));
    assert!(page.is_metrics());
}

#[test]
fn a_series_whose_value_is_no_number_is_there_without_one() {
    let page = read(
        "# TYPE ttft histogram\nttft_sum abc\nttft_count 7\nother abc\nn_total{engine=\"0\"} 0x10\nn_total{engine=\"1\"} 5\n",
    );
    let seen: Vec<(&str, bool)> = page
        .values
        .iter()
        .map(|value| (&*value.metric, value.value.is_nan()))
        .collect();
    let expected = [
        ("ttft_sum", true),
        ("ttft_count", false),
        ("n_total", true),
        ("n_total", false),
    ];
    assert_eq!(seen, expected);
    assert_eq!(
        (page.unread, page.first_unread),
        (3, Some((2, "ttft_sum abc".into())))
    );
}

#[test]
fn a_sum_of_nan_of_inf_or_of_letters_beside_a_count_that_goes_on_is_no_mean() {
    let mean: Query = "mean(engine:ttft)".parse().expect("a query");
    for broken in ["NaN", "+Inf", "abc"] {
        let mut telemetry = Telemetry::new([&mean]);
        for at in 0..=20_u32 {
            // Ten calls a second of 100 ms each.
            let (count, sum) = (10 * at, format!("{}", f64::from(at)));
            let sum = if at <= 5 { &sum } else { broken };
            let page = read(&format!(
                "# TYPE ttft histogram\nttft_sum {sum}\nttft_count {count}\n"
            ));
            telemetry.hear(&Sample {
                at: Duration::from_secs(at.into()),
                target: "engine".into(),
                values: page.values,
            });
        }
        let asked = |from, to| {
            let [from, to] = [from, to].map(Duration::from_secs);
            telemetry.ask(&mean, Span { from, to })
        };
        assert_eq!(asked(0, 20), Some(0.1), "{broken}");
        assert_eq!(asked(5, 20), None, "{broken}");
    }
}

#[test]
fn a_page_of_html_is_no_page_of_metrics_and_an_empty_one_neither() {
    let html = "<!DOCTYPE html>\n<html><head><title>Sign in</title></head>\n<body>x</body></html>";
    assert!(!read(html).is_metrics());
    assert!(!read("").is_metrics());
    assert!(!read("{\"error\": {\"message\": \"no\"}}\n").is_metrics());
    assert!(read("# TYPE a counter\n").is_metrics(), "nothing yet");
}

proptest! {
    #[test]
    fn any_bytes_give_a_page(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let page = Page::read(&bytes);
        let lines = bytes.split(|byte| *byte == b'\n').count() as u64;
        let numbers = page.values.iter().filter(|value| !value.value.is_nan()).count() as u64;
        prop_assert!(page.unread + numbers + page.buckets <= lines);
        prop_assert_eq!(page.unread > 0, page.first_unread.is_some());
    }

    #[test]
    fn what_is_written_is_read_back(
        name in "[a-z:_][a-z0-9:_]{0,20}",
        label in "[a-z_][a-z0-9_]{0,10}",
        text in any::<String>(),
        value in any::<f64>(),
    ) {
        let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        // A carriage return at the end of a line belongs to the line's end, and within a value to the value.
        let page = Page::read(format!("{name}{{{label}=\"{escaped}\"}} {value:?}\n").replace("inf", "Inf").as_bytes());
        prop_assume!(!name.contains("inf") && !label.contains("inf") && !escaped.contains("inf"));
        prop_assert_eq!(page.unread, 0, "{:?}", page);
        if page.buckets == 0 {
            let read = &page.values[0];
            prop_assert_eq!(&read.metric, &name);
            prop_assert_eq!(&read.labels[0], &(label, text));
            prop_assert!(read.value.to_bits() == value.to_bits() || value.is_nan());
        }
    }
}
