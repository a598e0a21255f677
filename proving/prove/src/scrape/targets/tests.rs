//! How far names lie apart; what is no target. Pages are asked for in the end-to-end tests.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use experiment::telemetry::{Query, Value};

use super::{Checked, Known, Target, distance};
use crate::scrape::exposition::Kind;

fn value(metric: &str, labels: &[(&str, &str)]) -> Value {
    Value {
        metric: metric.into(),
        labels: labels
            .iter()
            .map(|(a, b)| ((*a).into(), (*b).into()))
            .collect(),
        value: 1.0,
    }
}

fn checked(query: &str) -> Checked {
    let known = Known {
        values: vec![
            value("vllm:num_requests_running", &[("engine", "0")]),
            value("vllm:kv_cache_usage_perc", &[("engine", "0")]),
            value("vllm:num_preemptions_total", &[]),
        ],
        kinds: BTreeMap::from([("later".to_owned(), Kind::Gauge)]),
        says: String::new(),
    };
    let query: Query = query.parse().expect("a query");
    let mut checked = Checked::default();
    for selector in query.selectors() {
        checked.missing(&query, &selector, &known);
    }
    checked
}

#[test]
fn the_distance_of_names_is_what_has_to_be_typed() {
    for (one, other, expected) in [
        ("", "abc", 3),
        ("abc", "abc", 0),
        ("kitten", "sitting", 3),
        ("abc", "", 3),
    ] {
        assert_eq!(distance(one, other), expected, "{one} {other}");
        assert_eq!(distance(other, one), expected, "{other} {one}");
    }
}

#[test]
fn a_gauge_that_is_not_there_is_a_fault_with_its_nearest_names() {
    let checked = checked("max(engine:vllm:num_request_running)");
    let says = &checked.faults[0].says;
    assert!(
        says.contains(
            "there is no vllm:num_request_running; nearest are vllm:num_requests_running"
        ),
        "{says}"
    );
    assert!(checked.warnings.is_empty());
}

#[test]
fn what_counts_may_come_with_traffic_unless_it_is_a_slip() {
    let far = checked("mean(engine:vllm:time_to_first_token_seconds)");
    assert_eq!((far.faults.len(), far.warnings.len()), (0, 2), "{far:?}");
    let slip = checked("increase(engine:vllm:num_preemption_total)");
    assert_eq!((slip.faults.len(), slip.warnings.len()), (1, 0), "{slip:?}");
    let announced = checked("avg(engine:later)");
    assert_eq!((announced.faults.len(), announced.warnings.len()), (0, 1));
}

#[test]
fn an_old_name_is_a_fault_that_says_todays() {
    let checked = checked("avg(engine:vllm:gpu_cache_usage_perc)");
    let says = checked.faults[0].to_string();
    assert!(says.ends_with("ask for vllm:kv_cache_usage_perc"), "{says}");
}

#[test]
fn labels_that_no_series_has_are_told_with_those_that_there_are() {
    let checked = checked("avg(engine:vllm:kv_cache_usage_perc{engine=\"1\"})");
    assert!(
        checked.faults[0].says.contains("{engine=\"0\"}"),
        "{checked:?}"
    );
}

#[test]
fn a_target_is_a_url_whose_path_and_query_are_asked_for() {
    for (url, path) in [
        ("http://127.0.0.1:9", "/metrics"),
        ("http://127.0.0.1:9/", "/metrics"),
        (
            "http://127.0.0.1:9/stats/prometheus?usedonly",
            "/stats/prometheus?usedonly",
        ),
        ("http://127.0.0.1:9?a=b", "/metrics?a=b"),
    ] {
        assert_eq!(Target::parse("x", url).expect(url).head.path(), path);
    }
    for url in [
        "127.0.0.1:9/metrics",
        "ftp://127.0.0.1/x",
        "http://",
        "http://127.0.0.1:9/a b",
    ] {
        let says = Target::parse("x", url).expect_err(url);
        assert!(says.starts_with("target x: "), "{says}");
    }
}

#[test]
fn a_target_beside_whose_metrics_an_engine_says_that_it_is_simulated_is_known_for_one() {
    for (body, is_simulated) in [
        (
            r#"{"system_env": {"vllm_version": "0.26.0", "simulated": true}}"#,
            true,
        ),
        (r#"{"system_env": {"vllm_version": "0.26.0"}}"#, false),
        (r#"{"detail": "Not Found"}"#, false),
        ("<html>", false),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!(
            "http://{}/metrics",
            listener.local_addr().expect("an address")
        );
        let server = thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("a connection");
            let mut head = [0; 4096];
            let length = socket.read(&mut head).expect("a head");
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            socket.write_all(answer.as_bytes()).expect("it is read");
            String::from_utf8_lossy(&head[..length]).into_owned()
        });
        let target = Target::parse("engine", &url).expect("a target");
        assert_eq!(
            target.is_simulated(Duration::from_secs(100)),
            is_simulated,
            "{body}"
        );
        let asked = server.join().expect("it answered");
        assert!(asked.starts_with("GET /server_info HTTP/1.1"), "{asked}");
    }
    let gone = Target::parse("engine", "http://127.0.0.1:1/metrics").expect("a target");
    assert!(!gone.is_simulated(Duration::from_secs(100)));
}
