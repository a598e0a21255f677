//! The white paper's suite, as it is shipped, against the gate that users run and against a real Envoy: it passes, and
//! whatever is broken on purpose is caught.
//!
//! Where no configuration of a gateway is that wrong, a relay before it misbehaves.
//! Not here: targets that do not answer (`tests/prove`), every expectation's failing side (the unit tests).

mod relay;

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use testing::eventually;

use super::{PROVE, gate, ports};
use relay::{Relay, Wrong};

pub(super) const SCENARIO: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/white-paper");
const LIMITED_BY_ENVOY: &str = "envoy_http_local_rate_limit_rate_limited{envoy_local_http_ratelimit_prefix=\"swe_rebench_ide\"}";
const LIMITED: &str =
    "http_local_rate_limit_rate_limited{workload=\"swe-rebench-ide\", kind=\"requests\"}";

/// The shipped suite, but for the two cases that wait, 61 s in all: two tests have these as well.
pub(super) fn without_waits() -> String {
    let whole = fs::read_to_string(Path::new(SCENARIO).join("verify.toml")).expect("a suite");
    let mark = "\n[[case]]\n";
    let (head, cases) = whole.split_once(mark).expect("cases");
    let (waiting, others): (Vec<&str>, Vec<&str>) = cases
        .split(mark)
        .partition(|case| case.contains("\nwait = "));
    assert_eq!(waiting.len(), 2);
    [head, &others.join(mark)].join(mark)
}

/// How many cases that has.
pub(super) const QUICK: u64 = 11;

/// What came of a suite.
struct Came {
    code: Option<i32>,
    said: String,
    result: Value,
}

impl Came {
    fn of(output: &Output) -> Self {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let result = serde_json::from_slice(&output.stdout);
        Self {
            code: output.status.code(),
            result: result.unwrap_or_else(|error| panic!("{error}: {said}")),
            said,
        }
    }

    /// The names of the cases that failed; asserts that none is an error.
    fn failed(&self) -> Vec<&str> {
        let cases = self.result["cases"].as_array().expect("cases");
        assert!(
            cases.iter().all(|case| case["outcome"] != "error"),
            "{}",
            self.said
        );
        let failed = cases.iter().filter(|case| case["outcome"] == "failed");
        failed
            .map(|case| case["name"].as_str().expect("a name"))
            .collect()
    }

    /// What was found in a case.
    fn got(&self, name: &str) -> &str {
        let mut cases = self.result["cases"].as_array().expect("cases").iter();
        let case = cases
            .find(|case| case["name"] == name)
            .expect("a case of this name");
        case["got"].as_str().expect("text")
    }

    #[track_caller]
    fn passed(&self, cases: u64) {
        assert_eq!(
            (self.code, self.failed().len()),
            (Some(0), 0),
            "{}",
            self.said
        );
        assert_eq!(self.result["passed"], cases, "{}", self.said);
    }

    #[track_caller]
    fn fails(&self, cases: &[&str]) {
        assert_eq!(
            (self.code, self.failed()),
            (Some(1), cases.to_vec()),
            "{}",
            self.said
        );
    }
}

/// The quick suite against a copy of a gateway's directory that runs `program`, with `change` made to its configuration.
/// A file that nobody else reads, as the gate asks of those with secrets.
fn write_private(path: &Path, text: &str) {
    let mut how = fs::OpenOptions::new();
    how.write(true).create(true).truncate(true).mode(0o600);
    let mut file = how.open(path).expect("a file");
    file.write_all(text.as_bytes()).expect("is written");
}

fn verify(gateway: &str, program: &Path, change: impl Fn(String) -> String) -> Came {
    verify_by(&without_waits(), gateway, program, change)
}

/// Likewise the whole one.
fn verify_whole(gateway: &str, program: &Path, change: impl Fn(String) -> String) -> Came {
    let whole = fs::read_to_string(Path::new(SCENARIO).join("verify.toml"));
    verify_by(&whole.expect("a suite"), gateway, program, change)
}

fn verify_by(
    suite: &str,
    gateway: &str,
    program: &Path,
    change: impl Fn(String) -> String,
) -> Came {
    let dir = tempfile::tempdir().expect("a directory");
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), suite).expect("a suite");
    let from = Path::new(SCENARIO).join("gateways").join(gateway);
    for entry in fs::read_dir(from).expect("a gateway") {
        let from = entry.expect("an entry").path();
        let name = from
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let text = fs::read_to_string(&from).expect("a text");
        let text = match name.as_str() {
            "subject.toml" => found_at(&text, program),
            _ if name.ends_with(".yaml") => change(text),
            _ => text,
        };
        write_private(&dir.path().join(name), &text);
    }
    let output = Command::new(PROVE)
        .args(["verify", "--json", "--suite"])
        .arg(file.path())
        .arg("--gateway")
        .arg(dir.path())
        .output();
    Came::of(&output.expect("prove runs"))
}

/// A manifest whose program is this one.
pub(super) fn found_at(manifest: &str, program: &Path) -> String {
    let line = |line: &str| match line.split_once(" = ") {
        Some(("find", _)) => format!("find = {{ path = ['{}'] }}", program.display()),
        Some(("install", _)) => String::new(),
        _ => line.to_owned(),
    };
    manifest.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The text with one part of it replaced; asserts that it is there.
fn replaced(text: &str, part: &str, by: &str) -> String {
    assert!(text.contains(part), "{part} is not in\n{text}");
    text.replace(part, by)
}

#[test]
fn the_suite_passes_against_our_gate() {
    verify_whole("tollgate", &gate(), |config| config).passed(QUICK + 2);
}

/// The paper's three policies as a cluster has them, with the test's ports and keys in place of theirs.
#[test]
fn the_suite_passes_against_our_gate_by_the_white_papers_manifests() {
    let example = include_str!("../../../../examples/manifests/white-paper.yaml");
    let mut objects = example.to_owned();
    for (part, by) in [
        ("      port: 1975", "      port: {port}"),
        ("        port: 8000", "        port: {upstream_port}"),
        (
            "    - fqdn:\n        hostname: generativelanguage.googleapis.com\n        port: 443",
            "    - ip:\n        address: 127.0.0.1\n        port: {frontier_port}",
        ),
        ("${GEMINI_API_KEY}", "gemini-api-key"),
        ("${VLLM_API_KEY}", "on-prem-api-key"),
        // The suite compares bodies byte for byte.
        ("          modelNameOverride: gemini-2.5-flash\n", ""),
    ] {
        objects = replaced(&objects, part, by);
    }
    // The test's upstream speaks no TLS.
    let mut objects: Vec<&str> = objects.split("---\n").collect();
    objects.retain(|object| !object.contains("kind: BackendTLSPolicy"));
    let objects = objects.join("---\n");
    // What objects cannot say stands in a file of ours beside them.
    let ours = "listen: { admin: \"127.0.0.1:{admin_port}\" }\naccess_log: \"{dir}/access.log\"\n";
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| write_private(&dir.path().join(name), text);
    let subject = Path::new(SCENARIO).join("gateways/tollgate/subject.toml");
    let subject = fs::read_to_string(subject).expect("a subject");
    let subject = replaced(&subject, "{dir}/tollgate.yaml", "{dir}");
    write("subject.toml", &found_at(&subject, &gate()));
    write("objects.yaml", &objects);
    write("gate.yaml", ours);
    let suite = Path::new(SCENARIO).join("verify.toml");
    let output = Command::new(PROVE)
        .args(["verify", "--json", "--suite"])
        .arg(suite)
        .arg("--gateway")
        .arg(dir.path())
        .output();
    Came::of(&output.expect("prove runs")).passed(QUICK + 2);
}

#[test]
fn a_limit_that_is_off_is_caught() {
    let limits = ", limits: [ { requests: 2, per: 1m, window: rolling } ]";
    let came = verify("tollgate", &gate(), |config| replaced(&config, limits, ""));
    fails_for_a_limit_that_is_off(&came);
}

#[test]
fn a_limit_of_two_every_five_seconds_and_one_of_two_for_ever_are_caught() {
    let of = |per: &'static str| {
        verify_whole("tollgate", &gate(), |config| {
            replaced(&config, "per: 1m", per)
        })
    };
    // Beside each other: either takes more than a minute.
    let [short, long] = std::thread::scope(|scope| {
        ["per: 5s", "per: 24h"]
            .map(|per| scope.spawn(move || of(per)))
            .map(|verifying| verifying.join().expect("it ends"))
    });
    assert!(
        short.failed().contains(&"Twenty seconds later"),
        "{}",
        short.said
    );
    let got = short.got("Twenty seconds later");
    assert!(got.contains("200; expected 429"), "{got}");
    long.fails(&["A minute later"]);
    let got = long.got("A minute later");
    assert!(got.contains("3 x 429; expected 2 x 200, 429"), "{got}");
    assert!(long.said.contains("asked 61."), "{}", long.said);
}

fn fails_for_a_limit_that_is_off(came: &Came) {
    came.fails(&["Local rate limiting", "Identity-based routing"]);
    let got = came.got("Local rate limiting");
    assert!(got.contains("6 x 200; expected 2 x 200, 4 x 429"), "{got}");
    assert!(got.contains("on-prem had 6 calls; expected 2"), "{got}");
    assert!(
        got.contains("is not there; nearest: ") || got.contains("grew by 0; expected 4"),
        "{got}"
    );
}

#[test]
fn an_unknown_identity_that_is_let_through_is_caught() {
    let came = verify("tollgate", &gate(), |config| {
        replaced(
            &config,
            "[terminal-bench-ci,",
            "[unknown-guest, terminal-bench-ci,",
        )
    });
    fails_for_an_unknown_identity(&came);
}

fn fails_for_an_unknown_identity(came: &Came) {
    came.fails(&["Identity-based routing"]);
    let got = came.got("Identity-based routing");
    assert!(
        got.contains("(x-workload-app: unknown-guest): 200; expected 404"),
        "{got}"
    );
    assert!(got.contains("on-prem had 1 calls; expected 0"), "{got}");
}

/// The gateway answers, and says so of its upstream: cases that fail, not an unreachable target.
#[test]
fn an_upstream_that_the_gateway_cannot_reach_is_caught() {
    let nobody = ports::free().expect("a port").to_string();
    let came = verify("tollgate", &gate(), |config| {
        replaced(&config, "{upstream_port}", &nobody)
    });
    fails_for_an_upstream_that_is_down(&came, 502);
}

fn fails_for_an_upstream_that_is_down(came: &Came, status: u16) {
    came.fails(&[
        "Local rate limiting",
        "Workloads of the corpus",
        "Streams flow",
        "Usage is what the upstream said",
        "Broken streams are shown broken",
        "An upstream that is down",
    ]);
    assert!(
        came.got("Streams flow")
            .contains(&format!("2 x {status}; expected 2 x 200")),
        "{}",
        came.said
    );
}

/// A gateway with the shipped configuration, started here, so that something can stand before it.
struct Gateway {
    process: Child,
    port: u16,
    upstreams: [u16; 2],
    /// Where the counter of its limit is.
    limited: String,
    _dir: tempfile::TempDir,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Gateway {
    /// Our gate, with `change` made to its configuration.
    fn gate(change: impl Fn(String) -> String) -> Self {
        Self::start("tollgate", LIMITED, change, |dir| {
            let mut command = Command::new(gate());
            command.args(["run", "-c"]).arg(dir.join("tollgate.yaml"));
            command
        })
    }

    fn envoy() -> Self {
        Self::start(
            "envoy",
            LIMITED_BY_ENVOY,
            |config| config,
            |dir| {
                let mut command = Command::new(envoy());
                command.arg("-c").arg(dir.join("envoy.yaml")).args([
                    "--concurrency",
                    "1",
                    "--use-dynamic-base-id",
                    "-l",
                    "warning",
                ]);
                command
            },
        )
    }

    fn start(
        name: &str,
        limited: &str,
        change: impl Fn(String) -> String,
        command: impl Fn(&Path) -> Command,
    ) -> Self {
        let ([port, admin_port], upstreams) = (
            ports::two_free().expect("ports"),
            ports::two_free().expect("ports"),
        );
        let dir = tempfile::tempdir().expect("a directory");
        let from = Path::new(SCENARIO).join("gateways").join(name);
        for entry in fs::read_dir(from).expect("a gateway") {
            let from = entry.expect("an entry").path();
            let text = fs::read_to_string(&from).expect("a text");
            let is_config = from.extension().is_some_and(|end| end == "yaml");
            let text = if is_config { change(text) } else { text };
            let text = text
                .replace("{port}", &port.to_string())
                .replace("{admin_port}", &admin_port.to_string())
                .replace("{upstream_port}", &upstreams[0].to_string())
                .replace("{frontier_port}", &upstreams[1].to_string())
                .replace("{dir}", &dir.path().display().to_string());
            write_private(&dir.path().join(from.file_name().expect("a name")), &text);
        }
        let process = command(dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the gateway starts");
        let gateway = Self {
            process,
            port,
            upstreams,
            limited: format!("limited=http://127.0.0.1:{admin_port}/stats/prometheus#{limited}"),
            _dir: dir,
        };
        eventually("the gateway is there", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        gateway
    }

    /// The suite against whoever listens at `port`, with this gateway behind.
    fn verify(&self, port: u16) -> Came {
        let [on_prem, frontier] = self.upstreams;
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), without_waits()).expect("a suite");
        let output = Command::new(PROVE)
            .args(["verify", "--json", "--suite"])
            .arg(file.path())
            .args(["--target", &format!("http://127.0.0.1:{port}")])
            .args(["--upstream", &format!("on-prem=127.0.0.1:{on_prem}")])
            .args(["--upstream", &format!("frontier=127.0.0.1:{frontier}")])
            .args(["--metrics", &self.limited])
            .output();
        Came::of(&output.expect("prove runs"))
    }

    /// The suite with a relay before this gateway that misbehaves.
    fn verify_behind(&self, wrong: Wrong) -> Came {
        self.verify(Relay::start(self.port, wrong).port)
    }
}

#[test]
fn a_gateway_that_runs_already_passes_and_a_relay_that_does_nothing_changes_nothing() {
    Gateway::gate(|config| config)
        .verify_behind(Wrong::Nothing)
        .passed(QUICK);
}

#[test]
fn a_clients_credential_that_is_forwarded_is_caught() {
    let gate = Gateway::gate(|config| {
        let route = "workload: toolbench-agent, backend: frontier";
        replaced(
            &config,
            route,
            &format!("{route}, forward_headers: [x-title]"),
        )
    });
    let came = gate.verify_behind(Wrong::CopiesCredential);
    came.fails(&["Zero-trust security", "Streams flow"]);
    let got = came.got("Zero-trust security");
    assert!(
        got.contains("arrived at frontier in header x-title"),
        "{got}"
    );
    assert!(!came.said.contains("malicious-token"), "{}", came.said);
}

/// Both gateways', whatever stands behind the relay.
fn fails_for_a_key_that_comes_back(came: &Came) {
    assert_eq!(
        (came.code, came.failed().len() as u64),
        (Some(1), QUICK),
        "{}",
        came.said
    );
    let got = came.got("Zero-trust security");
    assert!(
        got.contains("(never_downstream 1) came back in header x-debug"),
        "{got}"
    );
    assert!(!came.said.contains("gemini-api-key"), "{}", came.said);
}

#[test]
fn an_upstreams_key_that_comes_back_is_caught() {
    let gate = Gateway::gate(|config| config);
    fails_for_a_key_that_comes_back(&gate.verify_behind(Wrong::EchoesKey));
}

#[test]
fn an_upstreams_key_in_an_interim_answer_is_caught() {
    let gate = Gateway::gate(|config| config);
    let came = gate.verify_behind(Wrong::HintsKey);
    assert_eq!(came.code, Some(1), "{}", came.said);
    let got = came.got("Zero-trust security");
    let place = "(never_downstream 1) came back in the bytes of a connection, plain";
    assert!(got.contains(place), "{got}");
    assert!(!came.said.contains("gemini-api-key"), "{}", came.said);
}

#[test]
fn a_broken_stream_that_ends_cleanly_is_caught() {
    let gate = Gateway::gate(|config| config);
    let came = gate.verify_behind(Wrong::EndsCleanly);
    came.fails(&["Broken streams are shown broken"]);
    let got = came.got("Broken streams are shown broken");
    assert!(got.contains("the client saw a clean end"), "{got}");
}

fn fails_for_a_truncated_stream(came: &Came) {
    came.fails(&["Streams flow", "Usage is what the upstream said"]);
    let got = came.got("Streams flow");
    assert!(got.contains("differ from byte"), "{got}");
}

#[test]
fn a_stream_that_is_truncated_is_caught() {
    let gate = Gateway::gate(|config| config);
    fails_for_a_truncated_stream(&gate.verify_behind(Wrong::Truncates));
}

/// The Envoy of the end-to-end tests' Python environment.
fn envoy() -> PathBuf {
    let python = std::env::var_os("TOLLGATE_E2E_PYTHON");
    let python =
        PathBuf::from(python.expect("TOLLGATE_E2E_PYTHON is not set: run `cargo xtask e2e`"));
    let lib = python
        .ancestors()
        .nth(2)
        .expect("an environment")
        .join("lib");
    let versions = fs::read_dir(&lib).expect("an environment's lib");
    let inside = "site-packages/envoy/_bin/envoy";
    let mut found = versions.map(|entry| entry.expect("an entry").path().join(inside));
    let found = found.find(|program| program.is_file());
    found.unwrap_or_else(|| panic!("no envoy below {}: run `cargo xtask setup`", lib.display()))
}

#[test]
fn the_same_suite_passes_against_envoy() {
    verify("envoy", &envoy(), |config| config).passed(QUICK);
}

#[test]
fn an_envoy_that_leaves_a_clients_credential_is_caught() {
    let came = verify("envoy", &envoy(), |config| {
        replaced(&config, "overwrite: true", "overwrite: false")
    });
    let failed = came.failed();
    assert!(failed.contains(&"Zero-trust security"), "{failed:?}");
    let got = came.got("Zero-trust security");
    assert!(
        got.contains("arrived at frontier in header authorization"),
        "{got}"
    );
}

#[test]
fn an_envoy_whose_limit_is_off_is_caught() {
    let came = verify("envoy", &envoy(), |config| {
        let enabled = "filter_enabled: { default_value: { numerator: 100,";
        replaced(&config, enabled, &enabled.replace("100", "0"))
    });
    fails_for_a_limit_that_is_off(&came);
}

#[test]
fn an_envoy_that_lets_an_unknown_identity_through_is_caught() {
    let came = verify("envoy", &envoy(), |config| {
        replaced(
            &config,
            "\"terminal-bench-ci|",
            "\"unknown-guest|terminal-bench-ci|",
        )
    });
    fails_for_an_unknown_identity(&came);
}

#[test]
fn an_envoy_that_cannot_reach_its_upstream_is_caught() {
    let nobody = ports::free().expect("a port").to_string();
    let came = verify("envoy", &envoy(), |config| {
        replaced(&config, "{upstream_port}", &nobody)
    });
    fails_for_an_upstream_that_is_down(&came, 503);
}

#[test]
fn an_envoy_whose_streams_are_truncated_is_caught() {
    let envoy = Gateway::envoy();
    envoy.verify_behind(Wrong::Nothing).passed(QUICK);
    // Limits are by the minute: the next has to be another's.
    drop(envoy);
    fails_for_a_truncated_stream(&Gateway::envoy().verify_behind(Wrong::Truncates));
}

#[test]
fn an_envoy_that_tells_an_upstreams_key_is_caught() {
    fails_for_a_key_that_comes_back(&Gateway::envoy().verify_behind(Wrong::EchoesKey));
}
