//! Whole campaigns in real time, small: the gate that users run, the simulated engine with its GPUs, a real corpus.
//!
//! Not here: virtual time (`tests/prove`), what the controller decides (`experiment`).

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use testing::{PATIENCE, eventually, pace, skip};

use super::replay::Engine;
use super::verify::{QUICK, SCENARIO, found_at, without_waits};
use super::{PROVE, gate, ports, recomputed};

/// Campaigns at most, until one is not void.
const ATTEMPTS: u32 = 3;
/// A generator that is void has sent something later than this.
const LATE_S: f64 = 0.01;

const SMALL: &str = include_str!("../campaign/small.toml");

/// Few users on a small machine; `{…}` is filled in by the test.
const TEXT: &str = r#"
title = "small, in real time"
seed = 5
[gateway]
subject = "gateway"
[verify]
suite = "verify.toml"
[engine]
preset = "small.toml"
args = ["--enable-prompt-tokens-details"]
[corpus]
config = "corpus.toml"
args = ["--ignore-eos"]
[[profile]]
name = "coding"
think = "exponential:300ms"
headers = { x-workload-app = "swe-rebench-ide" }
[baseline]
users = 2
warm_up = "1s"
min = "4s"
requests = 5
[ramp]
step = 6
window = "4s"
max_users = 80
# Far back: beside other tests, users just below the edge would cross it again.
retract = 0.4
[soak]
settle = "2s"
length = "12s"
[scrape]
silence = "3s"
patience = "10s"
[[objective]]
name = "TTFT of users, s"
query = "mean(client:ttft_seconds)"
below = 5.0
"#;

const CORPUS: &str = r#"
[[profile]]
name = "coding"
reader = "synthetic"
sessions = 200
[profile.options]
turns = "3"
first-prompt = "300"
appended = "60"
output = "40"
"#;

/// A scenario beside which the shipped suite and our gate lie.
fn scenario() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).expect("a file");
    write("scenario.toml", TEXT);
    write("corpus.toml", CORPUS);
    write("small.toml", SMALL);
    write("verify.toml", &without_waits());
    // The suite has the one with two requests a minute, and the load the other.
    let of_http2 = ("tollgate-http2-load", "tollgate-http2-load");
    let own = [("gateway", "tollgate"), ("tollgate-load", "tollgate-load")];
    for (to, from) in own.into_iter().chain([of_http2]) {
        fs::create_dir(dir.path().join(to)).expect("a directory");
        let from = Path::new(SCENARIO).join("gateways").join(from);
        for entry in fs::read_dir(from).expect("a gateway") {
            let from = entry.expect("an entry").path();
            let name = from.file_name().expect("a name").to_string_lossy();
            let text = fs::read_to_string(&from).expect("a text");
            let text = if name == "subject.toml" {
                found_at(&text, &gate())
            } else {
                text
            };
            write(&format!("{to}/{name}"), &text);
        }
    }
    dir
}

fn command(dir: &Path) -> Command {
    let mut command = Command::new(PROVE);
    command
        .arg("run")
        .arg(dir)
        .arg("--out")
        .arg(dir.join("out"));
    command
}

/// A campaign in whose course answers have come.
fn under_way(dir: &Path) -> Child {
    let page = ports::free().expect("a port");
    let child = command(dir)
        .args(["--json", "--no-verify"])
        .args(["--watch", &format!("127.0.0.1:{page}")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("prove runs");
    eventually("a user was answered", || {
        let answered = watched(page).and_then(|now| now["answered"].as_u64());
        let is_so = answered > Some(0);
        if !is_so {
            pace(Duration::from_millis(50));
        }
        is_so
    });
    child
}

/// What the page for a browser tells, once there is one.
fn watched(page: u16) -> Option<Value> {
    serde_json::from_str(&get(&format!("127.0.0.1:{page}"), "/state.json")?).ok()
}

/// The body at a path, if there is one.
fn get(address: &str, path: &str) -> Option<String> {
    let mut socket = TcpStream::connect(address).ok()?;
    socket.set_read_timeout(Some(PATIENCE)).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).ok()?;
    Some(answer.split_once("\r\n\r\n")?.1.to_owned())
}

fn json(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

#[test]
fn a_campaign_verifies_ramps_retracts_soaks_and_tells_the_gates_own_time() {
    let dir = scenario();
    let (result, said, late) = until_fit(dir.path());
    let t2 = result["t2_users"]
        .as_u64()
        .unwrap_or_else(|| panic!("no edge: {result:#}\n{said}"));
    assert_eq!(result["soak"]["users"].as_u64(), Some(t2 * 40 / 100));
    assert_eq!(result["evidence"], "SIMULATED ENGINE", "{result:#}");
    assert!(said.contains("SIMULATED ENGINE: "), "{said}");
    let report = report(dir.path());
    assert_eq!(report["verify"]["passed"], QUICK, "{}", report["verify"]);
    assert!(
        report["errors"].as_array().is_some_and(Vec::is_empty),
        "{}",
        report["errors"]
    );

    let hashes = &report["reproduce"]["hashes"];
    for file in ["scenario.toml", "corpus.json", "verify.toml"] {
        assert!(hashes[file].is_string(), "{file}: {hashes}");
    }
    let overhead = &report["overhead"];
    assert_eq!(overhead["method"], "paired", "{said}");
    let seconds = |name: &str| {
        overhead[name]
            .as_f64()
            .unwrap_or_else(|| panic!("{name}: {overhead}"))
    };
    // The gate's record of the paired requests, and its histogram over the same span, at whose edges the two have not the
    // same requests.
    let (record, histogram) = (seconds("own_record_s"), seconds("own_histogram_s"));
    assert!(
        (record / histogram - 1.0).abs() < 0.3,
        "{record} and {histogram}"
    );
    assert!(seconds("downstream_s") > seconds("upstream_s"));

    let tokens = report["tokens"].as_array().expect("tokens");
    assert!(
        tokens
            .iter()
            .any(|row| row["workload"] == "swe-rebench-ide" && row["cost"].as_f64() > Some(0.0)),
        "{tokens:?}"
    );
    assert!(
        tokens.iter().any(|row| row["drift"]
            .as_f64()
            .is_some_and(|drift| drift.abs() < 0.01)),
        "{tokens:?}"
    );
    for name in [
        "ttft_s",
        "kv_cache",
        "nvlink_bytes_per_s",
        "upstream_s",
        "gate_s",
        "users",
    ] {
        assert!(report["series"][name]["points"].is_array(), "{name}");
    }
    for file in [
        "requests.parquet",
        "samples.parquet",
        "report.simulated-engine.html",
        "report.simulated-engine.md",
    ] {
        assert!(
            fs::metadata(dir.path().join("out").join(file))
                .expect(file)
                .len()
                > 1000,
            "{file}"
        );
    }
    has_the_figures_of_its_files(dir.path(), &report);
    if let Some(late) = late {
        skip(&format!(
            "no campaign passed: the generator did not come to its turn on this machine, {ATTEMPTS} times: {late}"
        ));
    }
}

#[track_caller]
fn has_the_figures_of_its_files(dir: &Path, report: &Value) {
    let differences = recomputed::campaign::differences(report, &dir.join("out"));
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Two profiles at an engine without a gateway, a fifth of whose answers are refusals.
const REFUSED: &str = r#"
seed = 5
error_share = 1.0
[engine]
preset = "small.toml"
[corpus]
config = "corpus.toml"
args = ["--ignore-eos"]
[[profile]]
name = "coding"
weight = 2.0
think = "exponential:300ms"
[[profile]]
name = "terminal"
weight = 1.0
think = "constant:200ms"
[baseline]
users = 3
warm_up = "1s"
min = "3s"
requests = 5
[ramp]
step = 3
window = "2s"
max_users = 6
[soak]
settle = "1s"
length = "6s"
[scrape]
silence = "30s"
patience = "60s"
"#;

#[test]
fn a_campaign_whose_engine_refuses_a_fifth_has_the_figures_of_its_files() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).expect("a file");
    write("scenario.toml", REFUSED);
    write("small.toml", SMALL);
    let terminal = CORPUS.replace("\"coding\"", "\"terminal\"");
    write("corpus.toml", &format!("{CORPUS}{terminal}"));
    let engine = Engine::start(dir.path().join("small.toml").to_str().expect("text"));
    let address = engine.address();
    engine.fail("status=503", 0.2);
    let output = command(dir.path())
        .args(["--json", "--target", &format!("http://{address}/v1")])
        .args(["--scrape", &format!("engine=http://{address}/metrics")])
        .output();
    let result = json(&output.expect("prove runs"));
    let report = report(dir.path());
    let kinds = report["errors"].as_array().expect("errors").iter();
    let soak = kinds.filter(|error| error["phase"] == "soak");
    assert!(soak.count() > 0, "{result:#}");
    has_the_figures_of_its_files(dir.path(), &report);
}

/// A campaign that was not void. Beside other tests a machine may be too slow for the generator, which then has to have
/// sent late: such a run is no pass, and is made again. After the last attempt it is told how late.
fn until_fit(dir: &Path) -> (Value, String, Option<String>) {
    for attempt in 1.. {
        let output = command(dir).arg("--json").output().expect("prove runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let result = json(&output);
        if output.status.code() == Some(0) {
            assert_eq!(result["verdict"], "passed", "{result:#}");
            return (result, said, None);
        }
        assert_eq!(output.status.code(), Some(4), "{result:#}\n{said}");
        let generator = report(dir)["generator"].clone();
        assert_eq!(generator["verdict"], "void", "{result:#}\n{generator}");
        assert!(
            generator["lag"]["max"].as_f64() > Some(LATE_S),
            "void without being late: {generator}\n{result:#}"
        );
        if attempt == ATTEMPTS {
            return (result, said, Some(generator["lag"].to_string()));
        }
    }
    unreachable!("attempts end")
}

fn report(dir: &Path) -> Value {
    let report =
        fs::read_to_string(dir.join("out/report.simulated-engine.json")).expect("a report");
    serde_json::from_str(&report).expect("JSON")
}

#[test]
fn an_interrupted_campaign_tells_what_it_has_and_leaves_nothing_behind() {
    let dir = scenario();
    let child = under_way(dir.path());
    let log = dir.path().join("out/rig/tollgate-load/output.log");
    let said = fs::read_to_string(&log).expect("a log");
    let port = said
        .split("ready data=")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let gate: std::net::SocketAddr = port.expect("an address").parse().expect("an address");
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(killed.expect("kill runs").success());
    let output = child.wait_with_output().expect("prove ends");
    let result = json(&output);
    assert_eq!(
        (output.status.code(), &result["verdict"]),
        (Some(130), &"interrupted".into())
    );
    assert!(
        fs::metadata(dir.path().join("out/report.simulated-engine.html"))
            .expect("a report")
            .len()
            > 1000
    );
    TcpStream::connect(gate).expect_err("the gate has ended");
}

#[test]
fn users_of_http2_share_connections() {
    let dir = scenario();
    let text = TEXT.replacen("seed = 5", "seed = 5\nprotocol = \"http2\"", 1);
    let text = text.replace("users = 2", "users = 20");
    fs::write(dir.path().join("scenario.toml"), text).expect("a file");
    let child = under_way(dir.path());
    let log = dir.path().join("out/rig/tollgate-load/output.log");
    let said = fs::read_to_string(&log).expect("a log");
    let admin = said
        .split("admin=")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next());
    let page = || get(admin.expect("an address"), "/stats/prometheus");
    let open = |page: &str| {
        let mut lines = page.lines();
        let line = lines.find_map(|line| line.strip_prefix("tollgate_open_connections "));
        line.and_then(|count| count.parse::<f64>().ok())
    };
    // Eighty users at most are three connections, of which twenty users need no more than that.
    eventually("all are at work", || {
        let page = page().unwrap_or_default();
        page.contains("tollgate_attempts_total") && open(&page) >= Some(2.0)
    });
    let most = open(&page().expect("a page"));
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(killed.expect("kill runs").success());
    let result = json(&child.wait_with_output().expect("prove ends"));
    // One more is of whoever asks for the gate's own time.
    assert!(most <= Some(4.0), "{most:?}: {result:#}");
    let report = report(dir.path());
    assert_eq!(
        report["errors"].as_array().map(Vec::len),
        Some(0),
        "{report:#}"
    );
}

#[test]
fn a_campaign_over_http2_on_both_sides_pairs_its_requests_and_tells_the_gates_own_time() {
    let dir = scenario();
    let text = TEXT.replacen("seed = 5", "seed = 5\nprotocol = \"http2\"", 1);
    let text = text.replace("subject = \"gateway\"", "subject = \"tollgate-http2-load\"");
    // A ramp of two windows and a short soak: what is looked at is what passes between gate and engine.
    let text = text
        .replace("max_users = 80", "max_users = 14")
        .replace("length = \"12s\"", "length = \"6s\"");
    fs::write(dir.path().join("scenario.toml"), text).expect("a file");
    let output = command(dir.path())
        .args(["--json", "--no-verify"])
        .output()
        .expect("prove runs");
    let result = json(&output);
    let report = report(dir.path());
    assert_eq!(
        report["errors"].as_array().map(Vec::len),
        Some(0),
        "{report:#}"
    );
    let overhead = &report["overhead"];
    assert_eq!(overhead["method"], "paired", "{result:#}");
    let count = |name: &str| overhead[name].as_u64();
    // How many there are hangs on the machine.
    assert!(count("requests") > Some(4), "{overhead}");
    let seconds = |name: &str| overhead[name].as_f64();
    assert!(
        seconds("downstream_s") > seconds("upstream_s"),
        "{overhead}"
    );
    for name in ["upstream_s", "gate_s"] {
        assert!(report["series"][name]["points"].is_array(), "{name}");
    }
    let pairs = dir.path().join("out/pairs.parquet");
    assert!(fs::metadata(pairs).expect("pairs").len() > 1_000);
}

#[test]
fn an_engine_that_dies_ends_the_campaign_as_unreachable() {
    let dir = scenario();
    let child = under_way(dir.path());
    // The engine is the process whose command line names this test's preset.
    let preset = dir.path().join("small.toml").display().to_string();
    let engines = Command::new("pgrep")
        .args(["-f", &format!("engine --listen .*{preset}")])
        .output();
    let engines = String::from_utf8(engines.expect("pgrep runs").stdout).expect("numbers");
    assert!(!engines.trim().is_empty(), "there is an engine");
    for engine in engines.split_whitespace() {
        let killed = Command::new("kill").args(["-KILL", engine]).status();
        assert!(killed.is_ok(), "kill runs");
    }
    let output = child.wait_with_output().expect("prove ends");
    let result = json(&output);
    assert_eq!(
        (output.status.code(), &result["verdict"]),
        (Some(5), &"unreachable".into()),
        "{result:#}"
    );
    assert!(
        result["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("engine")),
        "{result:#}"
    );
}
