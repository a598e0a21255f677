//! `prove verify` where something is wrong: each a clear end with its own exit code, and every case reported.
//!
//! Not here: suites that pass against real gateways (the end-to-end tests).

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use testing::{Began, eventually, found};

use super::answers::{page, serve};
use super::ports::Closed;
use super::{PROVE, faults};

const SUITE: &str = "name = 'small'\ntimeout = '100s'\n\
    [[case]]\nname = 'first'\nsays = 'it answers'\n[[case.call]]\n\
    [[case]]\nname = 'second'\nsays = 'it still does'\n[[case.call]]\n";
const GOOD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

/// The suite with little patience, for who is silent on purpose.
fn impatient(timeout: &str) -> String {
    SUITE.replace("'100s'", timeout)
}

fn suite(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("verify.toml");
    fs::write(&file, text).expect("a file");
    (dir, file)
}

fn verify(suite: &Path, further: &[&str]) -> Output {
    let mut command = Command::new(PROVE);
    command.args(["verify", "--json", "--suite"]).arg(suite);
    command.args(further).output().expect("prove runs")
}

/// The page, or the error, as one line.
fn said(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The URL of one that answers so.
fn gateway(answer: impl Fn(usize) -> Option<String> + Send + 'static) -> String {
    format!("http://{}", serve(answer))
}

/// Outcomes in their order.
fn outcomes(output: &Output) -> Vec<String> {
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let cases = result["cases"].as_array().expect("cases").iter();
    cases
        .map(|case| case["outcome"].as_str().expect("an outcome").to_owned())
        .collect()
}

#[test]
fn a_gateway_that_answers_passes_and_every_file_says_so() {
    let (dir, file) = suite(SUITE);
    let target = gateway(|_| Some(GOOD.into()));
    let (junit, out) = (dir.path().join("junit.xml"), dir.path().join("out.json"));
    let files = [junit.to_str().expect("text"), out.to_str().expect("text")];
    let output = verify(
        &file,
        &["--target", &target, "--junit", files[0], "--out", files[1]],
    );
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(outcomes(&output), ["passed", "passed"]);
    let xml = fs::read_to_string(junit).expect("a file");
    assert!(
        xml.contains("tests=\"2\" failures=\"0\" errors=\"0\""),
        "{xml}"
    );
    assert_eq!(fs::read(out).expect("a file"), output.stdout);
    assert!(
        said(&output).contains("2 of 2 cases passed"),
        "{}",
        said(&output)
    );
}

#[test]
fn a_target_that_is_gone_slow_or_a_web_page_is_an_error_of_its_own_and_all_cases_are_told() {
    let (_dir, file) = suite(SUITE);
    let (_impatient_dir, impatient) = suite(&impatient("'400ms'"));
    let closed_port = Closed::new();
    let closed = format!("http://{}", closed_port.address);
    let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>";
    for (file, target, says) in [
        (&file, closed, "cannot be reached"),
        (
            &impatient,
            gateway(|_| None),
            "did not answer whole within 400ms",
        ),
        (&file, gateway(move |_| Some(page.into())), "web page"),
        (
            &file,
            gateway(|_| Some("SSH-2.0-x\r\n".into())),
            "no HTTP answer",
        ),
        (
            &file,
            gateway(|_| Some(GOOD.replace("application", "a\x01b"))),
            "no HTTP answer",
        ),
    ] {
        let output = verify(file, &["--target", &target]);
        assert_eq!(output.status.code(), Some(5), "{says}: {}", said(&output));
        assert_eq!(outcomes(&output), ["error", "error"], "{says}");
        assert!(said(&output).contains(says), "{says}: {}", said(&output));
        let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(result["verdict"], "unreachable");
        let second = result["cases"][1]["got"].as_str().expect("text");
        assert!(second.starts_with("not asked: "), "{second}");
    }
}

#[test]
fn a_target_that_dies_between_two_cases_leaves_one_pass_and_one_error() {
    let (_dir, file) = suite(SUITE);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let target = format!("http://{}", listener.local_addr().expect("bound"));
    let mortal = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a call");
        let _ = stream.read(&mut [0; 8192]);
        // Whoever has the answer finds nobody any more.
        drop(listener);
        stream.write_all(GOOD.as_bytes()).expect("a client");
    });
    let output = verify(&file, &["--target", &target]);
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    assert_eq!(outcomes(&output), ["passed", "error"]);
    mortal.join().expect("no panic");
}

#[test]
fn a_metric_that_never_existed_fails_its_case_and_the_nearest_names_are_told() {
    let text = format!("{SUITE}[metric.refused]\nseries = 'refused_total'\n");
    let text = text.replacen(
        "[[case.call]]\n",
        "metric = [{ name = 'refused', grows_by = 0 }]\n[[case.call]]\n",
        1,
    );
    let (_dir, file) = suite(&text);
    let target = gateway(|_| Some(GOOD.into()));
    let body = "refusals_total 3\nother 1\n";
    let page = gateway(move |_| Some(page("text/plain", body)));
    // A page that is not there is no metric that did not move.
    let gone = gateway(|_| Some("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".into()));
    let places = [
        format!("{page}/metrics"),
        format!("{page}/metrics#refusals_total"),
        format!("{gone}/metrics"),
    ];
    // Each waits for seconds.
    let [misnamed, named, gone] = thread::scope(|scope| {
        let verify = |place: &String| {
            let metrics = format!("refused={place}");
            verify(&file, &["--target", &target, "--metrics", &metrics])
        };
        places
            .each_ref()
            .map(|place| scope.spawn(move || verify(place)))
            .map(|run| run.join().expect("no panic"))
    });
    assert_eq!(misnamed.status.code(), Some(1), "{}", said(&misnamed));
    assert_eq!(outcomes(&misnamed), ["failed", "passed"]);
    assert!(
        said(&misnamed).contains("refused_total is not there; nearest: refusals_total"),
        "{}",
        said(&misnamed)
    );
    assert_eq!(named.status.code(), Some(0), "{}", said(&named));
    assert_eq!(gone.status.code(), Some(5), "{}", said(&gone));
}

/// A page of metrics whose counter is at 3, at 3 and `first` once it was read a second time, and later at `then`.
fn counting(first: u64, then: u64) -> String {
    const LATER: Duration = Duration::from_millis(300);
    let second = OnceLock::new();
    gateway(move |number| {
        let grown = match number {
            0 => 0,
            _ if second.get_or_init(Began::now).is_over(LATER) => then,
            _ => first,
        };
        Some(page(
            "text/plain",
            &format!("refused_total {}\n", 3 + grown),
        ))
    })
}

#[test]
fn a_counter_that_moves_late_or_further_than_it_should_is_caught() {
    let target = gateway(|_| Some(GOOD.into()));
    let cases = [
        (0, 0, 1, Some("refused_total grew by 1; expected 0")),
        (4, 4, 8, Some("refused_total grew by 8; expected 4")),
        (4, 4, 4, None),
        (4, 1, 4, None),
    ];
    // Each waits for seconds.
    thread::scope(|scope| {
        for (wanted, first, then, says) in cases {
            let target = &target;
            scope.spawn(move || counts(target, wanted, (first, then), says));
        }
    });
}

/// Runs the suite where a counter is to grow by `wanted` and does so first, and then.
fn counts(target: &str, wanted: u64, (first, then): (u64, u64), says: Option<&str>) {
    let text = format!("{SUITE}[metric.refused]\nseries = 'refused_total'\n");
    let metric = format!("metric = [{{ name = 'refused', grows_by = {wanted} }}]\n[[case.call]]\n");
    let (_dir, file) = suite(&text.replacen("[[case.call]]\n", &metric, 1));
    let metrics = format!("refused={}/metrics", counting(first, then));
    let output = verify(&file, &["--target", target, "--metrics", &metrics]);
    let code = if says.is_some() { 1 } else { 0 };
    assert_eq!(output.status.code(), Some(code), "{}", said(&output));
    assert!(
        said(&output).contains(says.unwrap_or("2 of 2 cases passed")),
        "{}",
        said(&output)
    );
}

#[test]
fn what_cannot_be_run_at_all_ends_with_2_and_says_why() {
    let (_dir, file) = suite(&SUITE.replace("says = 'it answers'", "sayes = 'x'"));
    let output = verify(&file, &["--target", "http://127.0.0.1:9"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("case[0].sayes: unknown field `sayes`"),
        "{}",
        said(&output)
    );
    assert!(output.stdout.is_empty());

    let upstream = format!("{SUITE}[[upstream]]\nname = 'up'\ncredential = 'Bearer k'\n");
    let (_dir, file) = suite(&upstream);
    let held = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = format!("up={}", held.local_addr().expect("bound"));
    for (args, says) in [
        (
            &["--target", "http://127.0.0.1:9"][..],
            "give --upstream up=HOST:PORT",
        ),
        (
            &["--target", "http://127.0.0.1:9", "--upstream", &taken],
            "upstream up cannot listen at 127.0.0.1",
        ),
        (
            &[
                "--target",
                "http://127.0.0.1:9",
                "--upstream",
                "other=127.0.0.1:0",
            ],
            "has no such upstream",
        ),
        (&["--target", "gate"], "write http://HOST"),
        (
            &["--target", "http://127.0.0.1:9", "--metrics", "x=http://a"],
            "has no such metric",
        ),
        (
            &[
                "--target",
                "http://127.0.0.1:9",
                "--out",
                "/no/such/place.json",
            ],
            "/no/such/place.json",
        ),
        (
            &["--gateway", "/no/such/place"],
            "/no/such/place/subject.toml",
        ),
        (&[], "--target"),
    ] {
        let output = verify(&file, args);
        assert_eq!(output.status.code(), Some(2), "{says}: {}", said(&output));
        assert!(said(&output).contains(says), "{says}: {}", said(&output));
    }
}

/// A gateway's directory whose program is a shell.
fn shell(script: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let toml = format!(
        "summary = 'x'\nready_seconds = 100\nfind = {{ path = ['sh'] }}\nstart = ['-c', '{script}']\n"
    );
    fs::write(dir.path().join("subject.toml"), toml).expect("a file");
    dir
}

#[test]
fn a_gateway_that_ends_at_its_start_is_unreachable_with_its_last_words() {
    let (_dir, file) = suite(SUITE);
    let gateway = shell("echo no such option; exit 3");
    let output = verify(
        &file,
        &["--gateway", gateway.path().to_str().expect("text")],
    );
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    assert_eq!(outcomes(&output), ["error", "error"]);
    assert!(
        said(&output).contains("no such option"),
        "{}",
        said(&output)
    );
}

#[test]
fn an_interrupt_ends_the_gateway_that_was_started() {
    let (_dir, file) = suite(&SUITE.replacen("says =", "wait = '600s'\nsays =", 1));
    let gateway = shell(&format!("exec {PROVE} upstream --port {{port}}"));
    let child = Command::new(PROVE)
        .args(["verify", "--suite"])
        .arg(&file)
        .arg("--gateway")
        .arg(gateway.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("prove runs");
    let started = found("a gateway that was started", || {
        let started = faults::started_by(child.id());
        (!started.is_empty()).then_some(started)
    });
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    let output = child.wait_with_output().expect("its output");
    assert_eq!(output.status.code(), Some(130));
    let alive = |pid: &u32| Path::new(&format!("/proc/{pid}")).exists();
    eventually("nothing that was started is left", || {
        !started.iter().any(alive)
    });
}

#[test]
fn a_gateway_without_an_upstream_is_told_by_its_cases_and_not_by_silence() {
    // The upstream of a race answers everybody: as a gateway, it lets everything through.
    let text = "name = 'x'\n[[upstream]]\nname = 'up'\ncredential = 'Bearer k'\n\
        [[case]]\nname = 'reaches'\nsays = 'its upstream has the call'\n\
        [case.upstream.up]\ncalls = 1\n[[case.call]]\n";
    let (_dir, file) = suite(text);
    let gateway = shell(&format!("exec {PROVE} upstream --port {{port}}"));
    let output = verify(
        &file,
        &["--gateway", gateway.path().to_str().expect("text")],
    );
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        said(&output).contains("up had 0 calls; expected 1"),
        "{}",
        said(&output)
    );
}

#[test]
fn a_suite_that_is_not_there_is_told_with_the_one_that_was_meant() {
    let (_dir, file) = suite(SUITE);
    let told = |name: &str| {
        let path = file.with_file_name(name);
        let output = Command::new(PROVE)
            .args(["verify", "--suite"])
            .arg(path)
            .args(["--target", "http://127.0.0.1:1"])
            .output()
            .expect("prove runs");
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        said(&output)
    };
    let name = file.file_name().expect("a name").to_string_lossy();
    let typo = name.replacen('e', "", 1);
    let meant = format!("did you mean {}?", file.display());
    assert!(told(&typo).contains(&meant), "{}", told(&typo));
    assert!(!told("something-else.toml").contains("did you mean"));
}
