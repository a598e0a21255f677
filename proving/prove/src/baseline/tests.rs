//! What is worse, what is noise, and what cannot be compared.

use std::path::Path;

use serde_json::{Value, json};

use super::{Options, compared};

fn race(cpu: [f64; 3], rps: [f64; 3]) -> Value {
    let figure = |[median, min, max]: [f64; 3]| json!({ "median": median, "min": min, "max": max });
    json!({
        "schema": "tollgate.race/1", "seconds": 3.0, "machine": { "cpu": "x", "cores": 2 },
        "rows": [{
            "subject": "tollgate", "scenario": "unary_1k",
            "cpu_us_per_request": figure(cpu), "rps": figure(rps),
            "latency_us": { "p50": figure([50.0, 49.0, 51.0]), "max": figure([1.0, 1.0, 9.0]) },
        }],
    })
}

fn oauth(p99: [f64; 3]) -> Value {
    let iterations = p99.map(|p99_ms| json!({ "p99_ms": p99_ms, "success_percent": 100.0 }));
    json!({
        "schema": "tollgate.oauth-rbac/1", "connections": 50,
        "runs": [{ "variant": "jwt", "limit": "none", "iterations": iterations }],
    })
}

fn told(before: &Value, now: &Value) -> (bool, String) {
    let compared = compared(Path::new("old.json"), before, now, 0.1);
    (compared.is_worse(), format!("{:?}", compared.section()))
}

#[test]
fn what_is_worse_in_every_round_by_more_than_the_tolerance_is_worse() {
    let before = race([20.0, 19.0, 21.0], [1000.0, 990.0, 1010.0]);
    let (is_worse, says) = told(&before, &race([25.0, 24.0, 26.0], [1000.0, 990.0, 1010.0]));
    assert!(is_worse, "{says}");
    for part in ["cpu_us_per_request", "20.00", "25.00", "+25.0 %", "worse"] {
        assert!(says.contains(part), "no {part} in {says}");
    }
    let (is_worse, says) = told(&before, &race([20.0, 19.0, 21.0], [800.0, 790.0, 810.0]));
    assert!(is_worse && says.contains("-20.0 %"), "{says}");
    let (is_worse, says) = told(&before, &race([15.0, 14.0, 16.0], [1200.0, 1190.0, 1210.0]));
    assert!(!is_worse && says.contains("better"), "{says}");
    assert!(says.contains("1 figures are as before"), "{says}");
}

#[test]
fn rounds_that_overlap_and_small_changes_are_as_before() {
    let before = race([20.0, 15.0, 30.0], [1000.0, 990.0, 1010.0]);
    for now in [
        race([29.0, 28.0, 31.0], [1000.0, 990.0, 1010.0]),
        race([21.5, 21.4, 21.6], [950.0, 940.0, 960.0]),
    ] {
        let (is_worse, says) = told(&before, &now);
        assert!(!is_worse, "{says}");
        assert!(says.contains("3 figures are as before"), "{says}");
    }
}

#[test]
fn iterations_are_the_rounds_of_oauth_and_rbac() {
    let before = oauth([10.0, 11.0, 12.0]);
    assert!(told(&before, &oauth([14.0, 15.0, 16.0])).0);
    assert!(!told(&before, &oauth([11.5, 15.0, 16.0])).0);
}

#[test]
fn a_row_that_is_gone_and_another_machine_are_told() {
    let before = race([20.0, 19.0, 21.0], [1.0, 1.0, 1.0]);
    let mut now = before.clone();
    now["rows"][0]["scenario"] = json!("other");
    let (is_worse, says) = told(&before, &now);
    assert!(is_worse && says.contains("not measured any more: tollgate, unary_1k"));
    let mut now = before.clone();
    now["machine"]["cores"] = json!(64);
    let (is_worse, says) = told(&before, &now);
    assert!(
        !is_worse && says.contains("its cores: 2 before, 64 now"),
        "{says}"
    );
}

#[test]
fn a_file_of_another_kind_is_refused_before_anything_is_measured() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("old.json");
    let options = |file: &Path| Options {
        baseline: Some(file.to_owned()),
        tolerance: 0.1,
    };
    let none = options(&file).read("tollgate.race/1");
    assert!(none.is_err_and(|says| says.contains("old.json")));
    std::fs::write(&file, oauth([1.0; 3]).to_string()).expect("a file");
    let other = options(&file).read("tollgate.race/1").err();
    let says = other.expect("refused");
    assert!(says.contains("tollgate.oauth-rbac/1"), "{says}");
    assert!(options(&file).read("tollgate.oauth-rbac/1").is_ok());
}
