//! Traces of agents in lanes, in virtual time and before a simulated engine in real time.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::PROVE;
use super::serving::serve;

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/agentx/samples.jsonl")
}

fn agentx(traces: &Path, further: &[&str]) -> Output {
    let mut command = Command::new(PROVE);
    command.arg("agentx").arg(traces).args(further);
    command.output().expect("prove runs")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
    })
}

fn records(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("records");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// Who begins where: of each lane the streams that its primers are of, and which request of each.
fn primers(records: &[Value]) -> BTreeMap<u64, Vec<(String, u64)>> {
    let mut all: BTreeMap<u64, Vec<(String, u64)>> = BTreeMap::new();
    for record in records.iter().filter(|record| record["kind"] == "primer") {
        let stream = record["stream"].as_str().expect("a stream").to_owned();
        let lane = all
            .entry(record["lane"].as_u64().expect("a lane"))
            .or_default();
        lane.push((stream, record["request"].as_u64().expect("a number")));
    }
    all
}

#[test]
fn an_hour_of_forty_traces_in_virtual_time_is_by_the_rules_and_the_same_each_time() {
    let dir = tempfile::tempdir().expect("a directory");
    let [one, other] = ["one", "other"].map(|name| dir.path().join(name));
    let run = |records: &Path| {
        let file = records.to_string_lossy().into_owned();
        let output = agentx(
            &samples(),
            &["--virtual", "--lanes", "8", "--json", "--records", &file],
        );
        assert_eq!(
            output.status.code(),
            Some(0),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        json(&output)
    };
    let result = run(&one);
    assert_eq!(result, run(&other));
    assert_eq!(records(&one), records(&other));
    assert_eq!(
        (&result["traces"], &result["submission_valid"]),
        (&40.into(), &true.into())
    );
    assert!(
        result["engine"]
            .as_str()
            .expect("said")
            .starts_with("SIMULATED ENGINE")
    );
    let records = records(&one);
    let count = |kind: &str| {
        records
            .iter()
            .filter(|record| record["kind"] == kind)
            .count() as u64
    };
    assert_eq!(Some(count("primer")), result["primers"].as_u64());
    assert_eq!((count("warm_up"), &result["warm_ups"]), (80, &80.into()));
    assert_eq!(Some(count("measured")), result["requests"].as_u64());
    let begun = result["warm_up_s"].as_f64().expect("a time");
    for record in &records {
        let sent = record["sent_s"].as_f64().expect("a time");
        let is_measured = record["kind"] == "measured";
        assert_eq!(is_measured, sent >= begun, "{record}");
        assert!(sent <= begun + 3_600.0, "{record}");
        if record["kind"] == "primer" && record["is_cancelled"] == false {
            assert_eq!(record["output_tokens"], 1, "{record}");
        }
    }
    for figure in ["ttft_s", "itl_s", "request_latency_s"] {
        for part in ["mean", "p50", "p90", "p95"] {
            assert!(result[figure][part].as_f64() > Some(0.0), "{figure} {part}");
        }
    }
    assert!(result["output_tokens_per_s_per_gpu"].as_f64() > Some(0.0));
}

#[test]
fn lanes_in_real_time_begin_as_in_virtual_time_and_the_engine_counts_what_they_sent() {
    let dir = tempfile::tempdir().expect("a directory");
    let [in_virtual, in_real] = ["virtual", "real"].map(|name| dir.path().join(name));
    let rules = [
        "--lanes",
        "4",
        "--warm-ups",
        "2",
        "--duration",
        "3s",
        "--grace",
        "20s",
        "--seed",
        "5",
        "--json",
    ];
    let virtual_file = in_virtual.to_string_lossy().into_owned();
    let mut further = vec!["--virtual", "--records", &virtual_file];
    further.extend(rules);
    json(&agentx(&samples(), &further));
    let (_engine, [at]) = serve(|[at]: [std::net::SocketAddr; 1]| {
        let mut command = Command::new(PROVE);
        command.args([
            "engine",
            "--enable-prompt-tokens-details",
            "--preset",
            "instant",
            "--model",
            "gpt-oss-120b",
        ]);
        command
            .args(["--listen", &at.to_string()])
            .stderr(Stdio::null());
        command
    });
    let (target, real_file) = (
        format!("http://{at}"),
        in_real.to_string_lossy().into_owned(),
    );
    let mut further = vec!["--target", &target, "--records", &real_file, "--gpus", "2"];
    further.extend(rules);
    let output = agentx(&samples(), &further);
    let result = json(&output);
    // Short, and with other rules: it says so, and how.
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        result["submission_invalid_reasons"],
        serde_json::json!(["duration_below_an_hour", "rules_changed"]),
        "{result}"
    );
    assert_eq!(
        (&result["errors"], &result["warm_ups"]),
        (&0.into(), &8.into()),
        "{result}"
    );
    let (of_virtual, of_real) = (records(&in_virtual), records(&in_real));
    assert_eq!(primers(&of_virtual), primers(&of_real));
    let traces = fs::read_to_string(samples()).expect("samples");
    let asked = asked(&traces);
    let mut sums = (0, 0);
    for record in of_real
        .iter()
        .filter(|record| record["is_cancelled"] == false)
    {
        let (stream, request) = (
            record["stream"].as_str().expect("a stream"),
            record["request"].as_u64(),
        );
        let (prompt, output) = asked[&(stream.to_owned(), request.expect("a number"))];
        let output = if record["kind"] == "primer" {
            1
        } else {
            output
        };
        assert_eq!(record["output_tokens"], output, "{record}");
        // What the template and the words of the play add.
        let reported = record["prompt_tokens"].as_u64().expect("a count");
        assert!(
            (prompt..prompt + 200).contains(&reported),
            "{prompt} {record}"
        );
        sums = (sums.0 + reported, sums.1 + output);
    }
    // A prompt of a play shares what the one before had, and nothing with another play.
    assert!(result["cached_share"].as_f64() > Some(0.5), "{result}");
    assert_eq!(result["cancelled"], 0, "{result}");
    let page = page_of(&at.to_string());
    assert_eq!(metric(&page, "vllm:prompt_tokens_total"), sums.0);
    assert_eq!(metric(&page, "vllm:generation_tokens_total"), sums.1);
}

/// Lengths of each stream's requests, read once more.
fn asked(traces: &str) -> BTreeMap<(String, u64), (u64, u64)> {
    let mut all = BTreeMap::new();
    for line in traces.lines() {
        let trace: Value = serde_json::from_str(line).expect("JSON");
        follow(&trace, trace["id"].as_str().expect("an id"), &mut all);
    }
    all
}

fn follow(of: &Value, id: &str, all: &mut BTreeMap<(String, u64), (u64, u64)>) {
    let (mut own, mut groups) = (0, 0);
    for request in of["requests"].as_array().expect("requests") {
        if request.get("requests").is_some() {
            follow(request, &format!("{id}/{groups}"), all);
            groups += 1;
        } else {
            let lengths = (
                request["in"].as_u64().expect("in"),
                request["out"].as_u64().expect("out"),
            );
            all.insert((id.to_owned(), own), lengths);
            own += 1;
        }
    }
}

fn page_of(address: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut socket = std::net::TcpStream::connect(address).expect("it listens");
    socket
        .write_all(b"GET /metrics HTTP/1.0\r\nHost: engine\r\n\r\n")
        .expect("it is written");
    let mut page = String::new();
    socket.read_to_string(&mut page).expect("a page");
    page
}

fn metric(page: &str, name: &str) -> u64 {
    let of_name = page.lines().filter(|line| line.starts_with(name));
    of_name
        .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
        .sum::<f64>() as u64
}

#[test]
fn the_samples_are_those_that_are_made_and_what_is_no_trace_is_told_of() {
    let made = agentx(Path::new("unused"), &["--sample", "40"]);
    let shipped = fs::read_to_string(samples()).expect("samples");
    assert_eq!(
        String::from_utf8_lossy(&made.stdout),
        shipped,
        "prove agentx --sample 40 > scenarios/agentx/samples.jsonl"
    );
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("traces.jsonl");
    fs::write(&file, "{\"id\":\"a\"}\nno\n").expect("a file");
    let none = agentx(&file, &["--virtual"]);
    assert_eq!(none.status.code(), Some(2));
    let says = String::from_utf8_lossy(&none.stderr);
    assert!(
        says.contains("no trace is left") && says.contains("2 could not be read"),
        "{says}"
    );
    let first = shipped.lines().next().expect("a line");
    fs::write(&file, format!("no\n{first}\n")).expect("a file");
    let one = agentx(&file, &["--virtual", "--lanes", "1", "--duration", "60s"]);
    let says = String::from_utf8_lossy(&one.stdout);
    assert!(says.contains("traces.jsonl:1: is no JSON"), "{says}");
}
