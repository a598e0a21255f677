//! `prove run` as far as it needs no gateway: scenarios with faults, virtual time, targets that are not there.
//!
//! Not here: real time through the gate (`tests/e2e`).

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use testing::eventually;

use super::answers::{page, serve};
use super::{PROVE, ports, recomputed, serving};

const SMALL: &str = include_str!("../campaign/small.toml");
const WORKLOAD: &str = include_str!("../campaign/workload.toml");

/// A scenario of few users on a small machine.
const SCENARIO: &str = r#"
title = "small"
seed = 3
[engine]
preset = "small.toml"
workload = "workload.toml"
[baseline]
users = 2
warm_up = "5s"
min = "20s"
requests = 10
[ramp]
step = 4
window = "20s"
max_users = 60
[soak]
settle = "5s"
length = "30s"
[[objective]]
name = "TTFT, s"
query = "mean(engine:vllm:time_to_first_token_seconds)"
below = 5.0
[[published]]
name = "users"
value = 10
figure = "/t2_users"
"#;

fn scenario(text: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("scenario.toml"), text).expect("a file");
    fs::write(dir.path().join("small.toml"), SMALL).expect("a file");
    fs::write(dir.path().join("workload.toml"), WORKLOAD).expect("a file");
    dir
}

fn run(dir: &Path, args: &[&str]) -> Output {
    let output = Command::new(PROVE)
        .arg("run")
        .arg(dir)
        .arg("--out")
        .arg(dir.join("out"))
        .args(args)
        .output();
    output.expect("prove runs")
}

fn json(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

#[test]
fn every_fault_of_a_scenario_is_told_at_once_with_its_path() {
    let dir = scenario(
        "titel = 'x'\nerror_share = 2\n[engine]\npreset = 'smal.toml'\nreplicas = 0\nbalancer = 'x'\n\
         [ramp]\nstep = 0\nwindow = '10'\n[[gate]]\nname = 'a'\nquery = 'mean(engine)'\nabove = 1\nthen = 'stop'\n\
         [[objective]]\nname = 'x'\n",
    );
    let output = run(dir.path(), &["--virtual", "--balancer", "y"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    for fault in [
        "titel: unknown field",
        "engine.preset: ",
        "engine.workload: ",
        "engine.balancer: \"x\"",
        "--balancer: \"y\"",
        "error_share: ",
        "engine.replicas: ",
        "ramp.step: ",
        "ramp.window: ",
        "gate[0].query: ",
        "gate[0].then: unknown variant `stop`",
        "objective[0].query: has to be there",
    ] {
        assert!(said.contains(fault), "{fault} is not in\n{said}");
    }
}

#[test]
fn what_a_scenario_names_is_looked_at_before_anything_is_started() {
    let dir = scenario(
        "[engine]\npreset = 'smal.toml'\n[gateway]\nsubject = 'gone'\n[corpus]\npath = 'gone'\n\
         [headers]\nx-key = '${NOBODY_HAS_SET_IT}'\n[[target]]\nname = 'engine'\nurl = 'ftp://x'\n\
         [[objective]]\nname = 'x'\nquery = 'mean(elsewhere:x)'\nbelow = 1\n",
    );
    let output = run(
        dir.path(),
        &["--scrape", "gpu=http://no.such.name.invalid/"],
    );
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    for fault in [
        "engine.preset: ",
        "gateway.subject: ",
        "corpus.path: ",
        "headers.x-key: the environment has no NOBODY_HAS_SET_IT",
        "target[0].url: ",
        "--scrape gpu: ",
        "objective[0].query: no target is called elsewhere",
    ] {
        assert!(said.contains(fault), "{fault} is not in\n{said}");
    }
    let output = run(
        dir.path(),
        &["--virtual", "--scrape", "client=http://127.0.0.1:1/"],
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("client and cgroup are what we measure"),
        "{said}"
    );
}

#[test]
fn an_earlier_pass_does_not_stand_where_a_later_run_died() {
    let dir = scenario(SCENARIO);
    let out = dir.path().join("out");
    assert_eq!(run(dir.path(), &["--virtual"]).status.code(), Some(0));
    assert!(out.join("samples.parquet").is_file());
    assert!(out.join("report.simulated-engine.json").is_file());
    let corpus = dir.path().display().to_string();
    let mut args = vec!["--json", "--corpus", &corpus];
    args.extend(["--target", "http://127.0.0.1:1/v1"]);
    args.extend(["--scrape", "engine=http://127.0.0.1:1/metrics"]);
    let output = run(dir.path(), &args);
    assert_eq!(output.status.code(), Some(5));
    assert_eq!(json(&output)["verdict"], "unreachable");
    let report = fs::read_to_string(out.join("report.json")).expect("a report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["verdict"], "unreachable");
    for gone in ["samples.parquet", "report.simulated-engine.json"] {
        assert!(!out.join(gone).exists(), "{gone}");
    }
    let page = fs::read_to_string(out.join("report.md")).expect("a page");
    assert!(!page.contains("PASS"), "{page}");
}

#[test]
fn a_directory_takes_one_campaign_at_a_time_and_follows_no_link() {
    let dir = scenario(SCENARIO);
    let out = dir.path().join("out");
    fs::create_dir(&out).expect("a directory");
    let victim = dir.path().join("victim");
    fs::write(&victim, "mine").expect("a file");
    fs::write(out.join(".probe"), "mine").expect("a file");
    for name in [
        "report.simulated-engine.json",
        "samples.parquet",
        "report.simulated-engine.html.new",
    ] {
        std::os::unix::fs::symlink(&victim, out.join(name)).expect("a link");
    }
    let held = fs::File::open(&out).expect("a directory");
    held.lock().expect("nobody else has it");
    let output = run(dir.path(), &["--virtual"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("another campaign"), "{said}");
    drop(held);
    assert_eq!(run(dir.path(), &["--virtual"]).status.code(), Some(0));
    for kept in [victim, out.join(".probe")] {
        assert_eq!(fs::read_to_string(kept).expect("a file"), "mine");
    }
}

/// Waits until the gateway that a run started takes connections at the port that it was told.
fn until_a_child_listens(parent: u32) {
    let port_of = |child: &str| {
        let words = fs::read_to_string(format!("/proc/{child}/cmdline")).ok()?;
        let mut words = words.split('\0').skip_while(|word| *word != "--port");
        words.nth(1)?.parse::<u16>().ok()
    };
    let listens = || {
        let threads = fs::read_dir(format!("/proc/{parent}/task")).expect("it runs");
        threads.flatten().any(|thread| {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            let mut ports = children.split_whitespace().filter_map(port_of);
            ports.any(|port| TcpStream::connect(("127.0.0.1", port)).is_ok())
        })
    };
    eventually("a child listens", listens);
}

#[test]
fn a_hangup_while_the_suite_waits_ends_it_at_once_with_a_report() {
    let text = SCENARIO.replace(
        "[ramp]",
        "[gateway]\nsubject = 'gateway'\n[verify]\nsuite = 'verify.toml'\n[ramp]",
    );
    let dir = scenario(&text);
    let gateway = dir.path().join("gateway");
    fs::create_dir(&gateway).expect("a directory");
    let subject = format!(
        "summary = 'x'\nready_seconds = 100\nfind = {{ path = ['{PROVE}'] }}\n\
         start = ['upstream', '--port', '{{port}}']\nworkers = ''\n"
    );
    fs::write(gateway.join("subject.toml"), subject).expect("a file");
    let suite = "name = 'slow'\n[[upstream]]\nname = 'one'\ncredential = 'Bearer x'\n[[case]]\nname = 'late'\nsays = 'x'\nwait = '600s'\n\
                 [[case.call]]\nstatuses = '1 x 200'\n";
    fs::write(dir.path().join("verify.toml"), suite).expect("a file");
    let corpus = dir.path().join("corpus");
    build_corpus(&corpus);
    // Under `nohup` it would be right to go on.
    let mut child = Command::new("env")
        .args(["--default-signal=HUP", PROVE, "run"])
        .arg(dir.path())
        .arg("--corpus")
        .arg(&corpus)
        .arg("--out")
        .arg(dir.path().join("out"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("prove runs");
    let mut lines = BufReader::new(child.stderr.take().expect("its stderr")).lines();
    let is_verifying = |line: io::Result<String>| line.expect("a line").contains("verifying");
    assert!(lines.by_ref().any(is_verifying), "the suite began");
    until_a_child_listens(child.id());
    // A terminal that closes tells so twice, itself and by its shell.
    for _ in 0..2 {
        let hung_up = Command::new("kill")
            .args(["-HUP", &child.id().to_string()])
            .status();
        assert!(hung_up.expect("kill runs").success());
    }
    let status = child.wait().expect("prove ends");
    let said: Vec<String> = lines.map_while(Result::ok).collect();
    assert_eq!(status.code(), Some(130), "{said:#?}");
    let report =
        fs::read_to_string(dir.path().join("out/report.simulated-engine.json")).expect("a report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["verdict"], "interrupted");
    assert_eq!(report["verify"]["cases"][0]["name"], "late", "{report:#}");
}

#[test]
fn a_corpus_of_somebody_else_is_neither_taken_nor_taken_away() {
    let config = "[[profile]]\nname = 'coding'\nreader = 'synthetic'\nsessions = 3\n";
    let dir = scenario(&format!("{SCENARIO}[corpus]\nconfig = 'corpus.toml'\n"));
    fs::write(dir.path().join("corpus.toml"), config).expect("a file");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let target = format!("http://{}/v1", listener.local_addr().expect("an address"));
    let scrape = "engine=http://127.0.0.1:1/metrics";
    let campaign = || run(dir.path(), &["--target", &target, "--scrape", scrape]);
    let corpus = dir.path().join("out/corpus");
    build_corpus(&corpus);
    let manifest = || fs::read(corpus.join("corpus.json")).expect("a manifest");
    let theirs = manifest();
    for _ in 0..2 {
        let output = campaign();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("not empty"), "{said}");
        assert_eq!(manifest(), theirs);
    }
    fs::remove_dir_all(&corpus).expect("it is there");
    for sessions in [3, 4, 4] {
        let config = config.replace('3', &sessions.to_string());
        fs::write(dir.path().join("corpus.toml"), config).expect("a file");
        let output = campaign();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "nobody is scraped: {said}");
        let ours: Value = serde_json::from_slice(&manifest()).expect("JSON");
        assert_eq!(ours["sessions"], sessions, "{ours:#}");
    }
}

#[test]
fn a_gateway_that_runs_is_verified_where_its_calls_arrive_at_us() {
    let text = SCENARIO.replace("[ramp]", "[verify]\nsuite = 'verify.toml'\n[ramp]");
    let dir = scenario(&text);
    let suite = "name = 'short'\n[[upstream]]\nname = 'one'\ncredential = 'Bearer x'\n\
                 [[case]]\nname = 'through'\nsays = 'a call goes through'\n[case.upstream.one]\ncalls = 1\n\
                 [[case.call]]\nheaders = { authorization = 'Bearer x' }\nstatuses = '1 x 200'\n";
    fs::write(dir.path().join("verify.toml"), suite).expect("a file");
    let corpus = dir.path().join("corpus");
    build_corpus(&corpus);
    let upstream = ports::loopback(ports::free().expect("a port")).to_string();
    // A relay that changes nothing is gateway enough for this suite.
    let (_relay, [gateway]) = serving::serve(|[gateway]| {
        let mut relay = Command::new(PROVE);
        relay.args([
            "tap",
            "--listen",
            &gateway.to_string(),
            "--upstream",
            &upstream,
            "--out",
        ]);
        relay.arg(dir.path().join("stamps")).stderr(Stdio::null());
        relay
    });
    let target = format!("http://{gateway}/v1");
    let corpus = corpus.display().to_string();
    let nobody = "engine=http://127.0.0.1:1/metrics";
    let args = [
        "--json", "--target", &target, "--corpus", &corpus, "--scrape", nobody,
    ];
    let at_us = format!("one={upstream}");
    let verified = run(dir.path(), &[&args[..], &["--upstream", &at_us]].concat());
    let left_out = run(dir.path(), &args);
    let verified = json(&verified);
    assert_eq!(verified["verify"]["passed"], 1, "{verified:#}");
    assert_eq!(verified["verdict"], "unreachable", "nobody is scraped");
    let said = String::from_utf8_lossy(&left_out.stderr);
    assert!(
        said.contains("name its upstreams with --upstream"),
        "{said}"
    );
    assert!(json(&left_out)["verify"].is_null());
}

#[test]
fn a_verdict_says_which_share_of_steps_is_guessed() {
    let scaled = SCENARIO
        .replace("small.toml", "rtx4090.llama-3.1-8b")
        .replace("step = 4", "step = 60")
        .replace("max_users = 60", "max_users = 200");
    let dir = scenario(&scaled);
    let result = json(&run(dir.path(), &["--virtual", "--json"]));
    let reason = result["reason"].as_str().unwrap_or_default();
    assert!(
        reason.contains("% of the engine's steps are guessed"),
        "{reason}"
    );
}

fn build_corpus(out: &Path) {
    let built = Command::new(PROVE)
        .args(["corpus", "build", "--profile", "coding", "--reader"])
        .args(["synthetic", "--sessions", "5", "--out"])
        .arg(out)
        .output()
        .expect("prove runs");
    assert!(built.status.success());
}

#[test]
fn what_could_not_be_kept_is_no_pass() {
    let dir = scenario(SCENARIO);
    // A file may grow to so many blocks of 512 bytes and no more: pages have room, a second group of samples has none.
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"";
    let output = Command::new("sh")
        .args(["-c", script, PROVE, "run"])
        .arg(dir.path())
        .args(["--virtual", "--json", "--out"])
        .arg(dir.path().join("out"))
        .output();
    let output = output.expect("sh runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let result = json(&output);
    assert_eq!(result["verdict"], "generator_void", "{result:#}");
    let reason = result["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("samples.parquet"), "{reason}");
    assert!(said.contains("report."), "no page was written: {said}");
}

#[test]
fn a_campaign_in_virtual_time_finds_its_edge_and_says_so_the_same_each_time() {
    let dir = scenario(SCENARIO);
    let output = run(dir.path(), &["--virtual", "--json"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let result = json(&output);
    assert_eq!(result["verdict"], "passed", "{result:#}");
    let t2 = result["t2_users"].as_u64().expect("an edge");
    assert_eq!(result["t3"], false);
    assert!(result["baseline_ttft_ms"].as_f64() > Some(0.0));
    let soak = &result["soak"];
    assert_eq!(soak["users"].as_u64(), Some(t2 * 85 / 100));
    for figure in [
        "ttft_ms",
        "tpot_ms",
        "e2e_s",
        "requests_per_second",
        "kv_cache",
    ] {
        assert!(soak[figure].as_f64() > Some(0.0), "{figure}: {soak}");
    }
    assert_eq!(soak["preemptions"], 0);
    assert_eq!(result["evidence"], "SIMULATED ENGINE, virtual time");
    for file in [
        "report.simulated-engine.html",
        "report.simulated-engine.md",
        "report.simulated-engine.json",
        "samples.parquet",
    ] {
        let about = fs::metadata(dir.path().join("out").join(file)).expect(file);
        assert!(about.len() > 100, "{file}");
    }
    let again = json(&run(dir.path(), &["--virtual", "--json"]));
    assert_eq!(again["soak"], result["soak"]);
    assert_eq!(again["phases"], result["phases"]);
}

#[test]
fn a_campaign_in_virtual_time_has_the_figures_of_its_samples_and_one_that_has_others_is_told() {
    let dir = scenario(SCENARIO);
    let output = run(dir.path(), &["--virtual"]);
    assert_eq!(output.status.code(), Some(0));
    let out = dir.path().join("out");
    let text = fs::read_to_string(out.join("report.simulated-engine.json")).expect("a report");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        recomputed::campaign::differences(&report, &out),
        Vec::<String>::new()
    );
    for place in [
        "/hardware/kv_cache_mean",
        "/latency/2/engine_mean_s",
        "/series/running/points/1/1",
    ] {
        let mut other = report.clone();
        let figure = other.pointer_mut(place).expect("a figure");
        *figure = (figure.as_f64().expect("a number") * 1.01).into();
        let found = recomputed::campaign::differences(&other, &out);
        assert!(found.len() == 1 && found[0].starts_with(place), "{found:?}");
    }
    let mut other = report;
    other["soak"]["another"] = 7.into();
    let found = recomputed::campaign::differences(&other, &out);
    assert_eq!(found, ["/soak/another is not computed again"]);
}

#[test]
fn a_cache_that_is_too_small_stops_at_t3_and_replicas_carry_more() {
    let dir = scenario(SCENARIO);
    let small = run(dir.path(), &["--virtual", "--json", "--kv-blocks", "110"]);
    let result = json(&small);
    assert_eq!(small.status.code(), Some(3), "{result:#}");
    assert_eq!(
        (&result["verdict"], &result["t3"]),
        (&"t3_stop".into(), &true.into())
    );
    assert!(result["soak"].is_null());
    let one = json(&run(dir.path(), &["--virtual", "--json"]));
    let two = json(&run(
        dir.path(),
        &["--virtual", "--json", "--replicas", "2"],
    ));
    assert!(
        two["t2_users"].as_u64() > one["t2_users"].as_u64(),
        "{} and {}",
        two["t2_users"],
        one["t2_users"]
    );
}

#[test]
fn a_missed_objective_and_a_page_for_people_have_exit_codes_of_their_own() {
    let dir = scenario(&SCENARIO.replace("below = 5.0", "below = 0.0001"));
    let missed = run(dir.path(), &["--virtual", "--json"]);
    assert_eq!(missed.status.code(), Some(1), "{:#}", json(&missed));

    let sign_in = page("text/html", "<!doctype html><title>Sign in</title>");
    let address = serve(move |_| Some(sign_in.clone()));
    let dir = scenario(&SCENARIO.replace(
        "preset = \"small.toml\"",
        &format!("url = \"http://{address}\""),
    ));
    let corpus = dir.path().join("corpus");
    build_corpus(&corpus);
    let target = format!("http://{address}/v1");
    let corpus = corpus.display().to_string();
    let output = run(dir.path(), &["--target", &target, "--corpus", &corpus]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("HTML"), "{said}");
}

#[test]
fn ten_looped_sessions_saturate_far_too_late_are_told_and_are_refused_where_that_is_asked_for() {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/low-cardinality");
    let dir = tempfile::tempdir().expect("a directory");
    let campaign = |file: &str, further: &[&str]| {
        let output = Command::new(PROVE)
            .arg("run")
            .arg(shipped.join(file))
            .args(["--virtual", "--json", "--out"])
            .arg(dir.path().join(file))
            .args(further)
            .output()
            .expect("prove runs");
        let report = dir.path().join(file).join("report.simulated-engine.json");
        let report = fs::read_to_string(report).expect("a report");
        let report: Value = serde_json::from_str(&report).expect("JSON");
        (output.status.code(), report)
    };
    let (code, looped) = campaign("scenario.toml", &[]);
    assert_eq!(code, Some(0), "{}", looped["reason"]);
    let (code, many) = campaign("many.toml", &["--strict"]);
    assert_eq!(code, Some(0), "{}", many["reason"]);
    let hits = |report: &Value| {
        report["prefix_cache"]["measured"]
            .as_f64()
            .expect("a share")
    };
    assert!(
        hits(&looped) > 0.99 && hits(&many) < 0.6,
        "{} {}",
        hits(&looped),
        hits(&many)
    );
    let t2 = |report: &Value| report["t2_users"].as_u64().unwrap_or(u64::MAX);
    assert!(
        t2(&looped) > 2 * t2(&many),
        "{} {}",
        looped["t2_users"],
        many["t2_users"]
    );
    assert_eq!(looped["prefix_cache"]["unique_sessions"], 10);
    let told = looped["reservations"].to_string();
    assert!(
        told.contains("only 10 different sessions were sent"),
        "{told}"
    );
    assert!(
        !many["reservations"]
            .to_string()
            .contains("different sessions")
    );
    let (code, refused) = campaign("scenario.toml", &["--strict"]);
    assert_eq!((code, &refused["verdict"]), (Some(1), &"slo_failed".into()));
    assert!(
        refused["reason"].to_string().contains("--strict: "),
        "{}",
        refused["reason"]
    );
}
