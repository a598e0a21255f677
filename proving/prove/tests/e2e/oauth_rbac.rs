//! The scenario of tokens and rights with few requests, and its result file against its documentation.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::{PROVE, gate};

const DOCUMENT: &str = include_str!("../../../../docs/oauth-rbac.md");
const SCENARIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/oauth-rbac");

/// Runs the scenario as shipped, with fewer requests; the exit code, and what it printed and wrote.
fn ran(args: &[&str]) -> (Option<i32>, Value) {
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().join("out/result.json");
    let output = Command::new(PROVE)
        .args(["oauth-rbac", SCENARIO, "--json", "--connections", "4"])
        .args(args)
        .arg("--out")
        .arg(&out)
        .arg("--gate")
        .arg(gate())
        .output()
        .expect("prove runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let result: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    let written = std::fs::read(&out).expect("a result");
    let written: Value = serde_json::from_slice(&written).expect("JSON");
    assert_eq!(written, result);
    let page = std::fs::read_to_string(out.with_extension("html")).expect("a page");
    assert!(page.contains("<table>") && page.contains("averages of all iterations"));
    (output.status.code(), result)
}

fn run<'a>(result: &'a Value, variant: &str) -> &'a Value {
    let runs = result["runs"].as_array().expect("runs");
    let run = runs.iter().find(|run| run["variant"] == variant);
    run.unwrap_or_else(|| panic!("no run of {variant}: {result:#}"))
}

#[test]
fn every_variant_lets_in_whom_it_must_and_asks_as_often_as_it_says() {
    let args = ["--limits", "none", "--iterations", "2", "--requests", "60"];
    let (code, result) = ran(&args);
    assert_eq!(
        (code, &result["trusted"]),
        (Some(0), &true.into()),
        "{result:#}"
    );
    // The first of the tokens was brought by a check, whose answer is known for some seconds.
    for (variant, tokens, calls) in [
        ("introspection", 0..=6, 0..=0),
        ("introspection-new", 119..=120, 0..=0),
        ("jwt", 0..=0, 0..=0),
        ("jwt-new", 0..=0, 0..=0),
        ("ext_authz", 0..=0, 120..=120),
        ("kubernetes", 0..=6, 0..=6),
        ("kubernetes-new", 119..=120, 0..=6),
    ] {
        let run = run(&result, variant);
        let asked = |what: &str| run["asked"][what].as_u64().expect(what);
        assert!(
            tokens.contains(&asked("introspections")),
            "{variant}: {run:#}"
        );
        assert!(
            calls.contains(&asked("authorizations")),
            "{variant}: {run:#}"
        );
        let statuses: Vec<u64> = run["checks"]
            .as_array()
            .expect("checks")
            .iter()
            .filter_map(|check| check["status"].as_u64())
            .collect();
        let bad = if variant == "ext_authz" { 403 } else { 401 };
        assert_eq!(statuses, [200, 403, bad], "{variant}");
        for iteration in run["iterations"].as_array().expect("iterations") {
            assert_eq!(iteration["answered"], 60, "{variant}");
            assert!(iteration["p50_ms"].as_f64() <= iteration["p99_ms"].as_f64());
        }
        assert!(run["average"]["rps"].as_f64() > Some(0.0));
        let parts = run["parts"].as_array().expect("parts");
        assert!(
            parts
                .iter()
                .all(|part| part["mib_peak"].as_f64() > Some(1.0)),
            "{run:#}"
        );
    }
}

#[test]
fn two_proxies_stand_beside_the_gate_in_one_run_where_they_are_installed() {
    let args = [
        "--variants",
        "two-proxies,jwt",
        "--limits",
        "none",
        "--iterations",
        "1",
        "--requests",
        "60",
    ];
    let (code, result) = ran(&args);
    let both = run(&result, "two-proxies");
    if let Some(problem) = both["problem"].as_str() {
        assert!(
            problem.contains("oauth2-proxy is not on PATH: go install"),
            "{problem}"
        );
        assert_eq!((code, &result["trusted"]), (Some(1), &false.into()));
        testing::skip(problem);
        return;
    }
    assert_eq!(code, Some(0), "{result:#}");
    for variant in ["two-proxies", "jwt"] {
        let run = run(&result, variant);
        let checks = run["checks"].as_array().expect("checks").iter();
        let statuses: Vec<u64> = checks
            .filter_map(|check| check["status"].as_u64())
            .collect();
        assert_eq!(statuses, [200, 403, 401], "{variant}");
        assert_eq!(run["iterations"][0]["answered"], 60, "{variant}");
    }
    // What stages there are is the gate's to say.
    assert_eq!(both["stages"], Value::Array(Vec::new()));
}

#[test]
fn a_limit_holds_or_its_run_says_why_not_and_the_file_is_as_documented() {
    let args = [
        "--variants",
        "introspection-new",
        "--limits",
        "gate at 0.05 core,service at 0.05 core",
        "--iterations",
        "1",
        // Enough to last for many periods of the limit.
        "--requests",
        "1000",
    ];
    let (code, result) = ran(&args);
    let runs = result["runs"].as_array().expect("runs");
    if let Some(problem) = runs[0]["problem"].as_str() {
        assert!(problem.contains("no permission for cgroups"), "{problem}");
        assert_eq!((code, &result["trusted"]), (Some(1), &false.into()));
        testing::skip(problem);
        return;
    }
    for (run, part, spent) in [
        (&runs[0], "gate", "gate_throttled"),
        (&runs[1], "service", "service_throttled"),
    ] {
        let parts = run["parts"].as_array().expect("parts");
        let part = parts
            .iter()
            .find(|one| one["part"] == part)
            .expect("the part");
        assert!(part["cores_mean"].as_f64() < Some(0.1), "{run:#}");
        assert!(run[spent]["periods"].as_u64() > Some(0), "{run:#}");
    }
    assert_eq!(names(&result), documented("The file"));
    let runs: BTreeSet<String> = runs.iter().flat_map(names).collect();
    assert_eq!(runs, documented("`runs[]`"));
    let run = &result["runs"][0];
    assert_eq!(names(&run["iterations"][0]), documented("`iterations[]`"));
    assert_eq!(names(&run["parts"][0]), documented("`parts[]`"));
    assert_eq!(names(&run["stages"][0]), documented("`stages[]`"));
    let stages = run["stages"].as_array().expect("stages");
    let stages: Vec<&str> = stages
        .iter()
        .filter_map(|one| one["stage"].as_str())
        .collect();
    assert!(
        ["own", "identity", "upstream"]
            .iter()
            .all(|one| stages.contains(one)),
        "{stages:?}"
    );
}

#[test]
fn a_gateway_that_runs_already_is_asked_with_the_tokens_in_turn() {
    let (url, seen) = gateway();
    let dir = tempfile::tempdir().expect("a directory");
    let tokens = dir.path().join("tokens.txt");
    let asked = |text: &str| {
        std::fs::write(&tokens, text).expect("a file");
        let out = dir.path().join("result.json");
        let output = Command::new(PROVE)
            .args(["oauth-rbac", SCENARIO, "--json", "--connections", "4"])
            .args(["--iterations", "2", "--requests", "60", "--target", &url])
            .args([Path::new("--tokens"), &tokens, Path::new("--out"), &out])
            .output()
            .expect("prove runs");
        let says = String::from_utf8_lossy(&output.stderr).into_owned();
        let result: Value = serde_json::from_slice(&output.stdout).expect(&says);
        (output.status.code(), result, says)
    };
    let (code, result, says) = asked("good-1\n\n good-2 \ngood-3\n");
    assert_eq!(code, Some(0), "{result:#}");
    assert_eq!(
        (&result["gate"], &result["target"]),
        (&Value::Null, &url.as_str().into())
    );
    let run = run(&result, "target");
    assert_eq!(run["checks"][0]["status"], 200);
    assert_eq!(run["checks"][1]["status"], 401);
    let iterations = run["iterations"].as_array().expect("iterations");
    assert_eq!(iterations.len(), 2);
    for iteration in iterations {
        assert_eq!(iteration["answered"], 60);
        assert!(iteration["p50_ms"].as_f64() > Some(0.0));
    }
    assert!(
        says.contains("published") && !says.contains("good-"),
        "{says}"
    );
    let seen = std::mem::take(&mut *seen.lock().expect("no poison"));
    let of = |token: &str| seen.iter().filter(|seen| **seen == token).count();
    assert_eq!((of("good-1"), of("good-2"), of("good-3")), (41, 40, 40));

    let (code, result, says) = asked("bad\n");
    assert_eq!(code, Some(1));
    let problem = "a token of the file: status 401 in place of 200";
    assert_eq!(result["runs"][0]["problem"], problem, "{says}");
}

/// Lets in whoever's token begins with `good`, on connections that are kept; its URL, and the tokens in the order in which they came.
fn gateway() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!(
        "http://{}/echo?a=b",
        listener.local_addr().expect("an address")
    );
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = seen.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let seen = kept.clone();
            std::thread::spawn(move || serve(stream, &seen));
        }
    });
    (url, seen)
}

fn serve(mut stream: TcpStream, seen: &Mutex<Vec<String>>) {
    let mut lines = BufReader::new(stream.try_clone().expect("a socket")).lines();
    loop {
        let head: Vec<String> = lines
            .by_ref()
            .map_while(Result::ok)
            .take_while(|line| !line.is_empty())
            .collect();
        let Some(first) = head.first() else { return };
        assert_eq!(first, "GET /echo?a=b HTTP/1.1");
        let token = head
            .iter()
            .find_map(|line| line.strip_prefix("authorization: Bearer "));
        let status = match token {
            Some(token) if token.starts_with("good") => "200 OK",
            _ => "401 Unauthorized",
        };
        seen.lock()
            .expect("no poison")
            .extend(token.map(ToOwned::to_owned));
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\nok");
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn names(value: &Value) -> BTreeSet<String> {
    value
        .as_object()
        .expect("an object")
        .keys()
        .cloned()
        .collect()
}

/// The names in the first column of the table under a heading; several may share a line.
fn documented(heading: &str) -> BTreeSet<String> {
    let marker = format!("\n### {heading}\n");
    let (_, section) = DOCUMENT.split_once(&marker).expect("a section");
    let section = section.split("\n#").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.filter_map(|line| line.split('|').nth(1));
    let names = cells.flat_map(|cell| cell.split(','));
    names
        .map(|name| name.trim().trim_matches('`').to_owned())
        .collect()
}

#[test]
fn a_scenario_that_is_not_there_and_a_variant_that_is_unknown_are_told() {
    let said = |args: &[&str]| {
        let output = Command::new(PROVE).arg("oauth-rbac").args(args).output();
        let output = output.expect("prove runs");
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let nowhere = Path::new(SCENARIO).join("none").display().to_string();
    let says = said(&[&nowhere]);
    assert!(says.contains("none/scenario.toml: No such file"), "{says}");
    let says = said(&[SCENARIO, "--variants", "saml"]);
    assert!(
        says.contains("no variant named saml; there are introspection"),
        "{says}"
    );
}
