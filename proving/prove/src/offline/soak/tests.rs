//! Workloads by name and by file.

use super::*;

const PROFILE: &str = r#"
[[profile]]
name = "a"
arrivals = "trace:a.jsonl"
think = "exponential:5s"
first_tokens = { mean = 1000 }
output_tokens = { mean = 400 }
"#;

#[test]
fn a_workload_is_found_by_name_or_file_and_its_trace_beside_it() {
    assert_eq!(workload("paper").unwrap().profiles.len(), 4);
    let unknown = workload("no-such").unwrap_err().to_string();
    assert!(
        unknown.contains("no-such") && unknown.contains("paper"),
        "{unknown}"
    );

    let dir = std::env::temp_dir().join(format!("soak-workload-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("w.toml");
    std::fs::write(&file, PROFILE).unwrap();
    let name = file.to_str().unwrap();
    let missing = workload(name).unwrap_err().to_string();
    assert!(
        missing.contains("w.toml:2: profile[0].arrivals: "),
        "{missing}"
    );
    assert!(missing.contains("a.jsonl"), "{missing}");
    let trace = "{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1}\n\
                 {\"timestamp\": 500, \"input_length\": 1, \"output_length\": 1}\n";
    std::fs::write(dir.join("a.jsonl"), trace).unwrap();
    assert_eq!(workload(name).unwrap().profiles.len(), 1);
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_time_has_a_unit_or_is_in_seconds() {
    assert_eq!(seconds("250ms"), Ok(Duration::from_millis(250)));
    assert_eq!(seconds("7.5s"), seconds("7.5"));
    assert!(seconds("soon").is_err() && seconds("-1s").is_err());
}
