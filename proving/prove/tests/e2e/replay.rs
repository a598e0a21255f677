//! A corpus from its build to its replay, by the commands that people give, against the simulated engine.
//!
//! Invariant: loopback only; every process that is started is ended with its test.
//! Not here: genuine datasets, which a clone does not have, but for those whose folder `CORPUS_TOOLBENCH` names.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use super::{PROVE, recomputed};

const MODEL: &str = "gpt-oss-120b";

/// An engine that ends with its test.
pub(crate) struct Engine {
    process: Child,
    url: String,
}

impl Engine {
    pub(crate) fn start(preset: &str) -> Self {
        let mut process = Command::new(PROVE)
            .args([
                "engine",
                "--enable-prompt-tokens-details",
                "--preset",
                preset,
                "--model",
                MODEL,
                "--listen",
                "127.0.0.1:0",
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("prove starts");
        let told = process.stderr.take().expect("a pipe");
        let line = BufReader::new(told)
            .lines()
            .map_while(Result::ok)
            .find_map(|line| {
                let at = line.find("http://")?;
                Some(line[at..].trim().to_owned())
            });
        Self {
            process,
            url: line.expect("it says where it listens"),
        }
    }

    /// The base URL, as an SDK is given it.
    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    pub(crate) fn address(&self) -> &str {
        let url = self.url.trim_start_matches("http://");
        url.trim_end_matches("/v1")
    }

    /// From now on a share of its answers is this fault.
    pub(crate) fn fail(&self, fault: &str, share: f64) {
        let mut socket = TcpStream::connect(self.address()).expect("it listens");
        let body = format!("{{\"fault\": \"{fault}\", \"share\": {share}}}");
        let length = body.len();
        let asked = format!(
            "POST /_engine/faults HTTP/1.0\r\nHost: engine\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        socket.write_all(asked.as_bytes()).expect("it is written");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("an answer");
        assert!(answer.contains(" 200 "), "{answer}");
    }

    /// A sum of one family of its metrics.
    fn metric(&self, name: &str) -> f64 {
        let mut socket = TcpStream::connect(self.address()).expect("it listens");
        let asked = socket.write_all(b"GET /metrics HTTP/1.0\r\nHost: engine\r\n\r\n");
        asked.expect("it is written");
        let mut page = String::new();
        socket.read_to_string(&mut page).expect("a page");
        let of_name = page.lines().filter(|line| line.starts_with(name));
        of_name
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
            .sum()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn prove(args: &[&str]) -> Output {
    Command::new(PROVE).args(args).output().expect("prove runs")
}

/// What it printed, as JSON, and its exit code.
fn document(args: &[&str]) -> (Value, Option<i32>) {
    let output = prove(args);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let document = serde_json::from_str(&said);
    (
        document.unwrap_or_else(|error| panic!("{args:?}: {error}\n{said}\n{errors}")),
        output.status.code(),
    )
}

/// Fails unless the run's exit code and verdict are as they have to be: where the machine kept the generator from its
/// turn, 4 and `void`, which takes nothing from what was sent, answered and counted; else what `of_answers` says.
pub(crate) fn assert_ended(
    result: &Value,
    code: Option<i32>,
    of_answers: impl FnOnce(i32, &str) -> bool,
) {
    let verdict = result["verdict"].as_str().expect("a verdict");
    let code = code.expect("it was not killed");
    let certificate = &result["certificate"];
    if certificate["verdict"] == "void" {
        assert!(certificate["stalled_s"].as_f64() > Some(0.0), "{result:#}");
        assert_eq!((code, verdict), (4, "void"), "{result:#}");
    } else {
        assert!(of_answers(code, verdict), "{code} {result:#}");
    }
}

/// Nothing failed, and nothing says that what was sent was not as it should be.
pub(crate) fn passed(code: i32, verdict: &str) -> bool {
    code == 0 && ["good", "unproven"].contains(&verdict)
}

/// A corpus of so many made-up sessions for each of these profiles.
pub(crate) fn corpus(dir: &Path, profiles: &[&str], sessions: u64) -> PathBuf {
    let out = dir.join("corpus");
    let sessions = sessions.to_string();
    let mut args = vec!["corpus", "build", "--model", MODEL, "--seed", "7"];
    for profile in profiles {
        args.extend([
            "--profile",
            profile,
            "--reader",
            "synthetic",
            "--sessions",
            &sessions,
        ]);
    }
    args.extend(["--out", out.to_str().expect("text")]);
    let output = prove(&args);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    out
}

#[test]
fn a_corpus_is_built_inspected_verified_and_replayed_once_without_an_error() {
    let dir = tempfile::tempdir().expect("a directory");
    let corpus = corpus(dir.path(), &["coding", "terminal"], 40);
    let corpus = corpus.to_str().expect("text");
    let (told, code) = document(&["corpus", "inspect", corpus, "--json"]);
    assert_eq!(code, Some(0));
    assert_eq!(
        (&told["sessions"], &told["skipped"]),
        (&80.into(), &0.into())
    );
    let requests = told["requests"].as_u64().expect("a count");
    assert!(told["bytes_stored"].as_u64() < told["bytes_unrolled"].as_u64());
    assert!(prove(&["corpus", "verify", corpus]).status.success());

    let engine = Engine::start("instant");
    let rows = dir.path().join("rows.parquet");
    let rows = rows.to_str().expect("text");
    let url = engine.url();
    let args = [
        "load",
        corpus,
        "--target",
        &url,
        "--once",
        "--json",
        "--records",
        rows,
    ];
    let (result, code) = document(&args);
    assert_ended(&result, code, passed);
    assert_eq!(
        (&result["requests"], &result["errors"]),
        (&requests.into(), &0.into())
    );
    assert_eq!(result["sessions"]["started"], 80);
    has_the_figures_of_its_rows(&result, rows.as_ref());
    assert_eq!(result["generator"]["rows"], requests);
    let predicted = result["run"]["predicted_hit_rate"]
        .as_f64()
        .expect("a share");
    let of = |what| engine.metric(&format!("vllm:prefix_cache_{what}_total"));
    let (hits, queries) = (of("hits"), of("queries"));
    let measured = hits / queries;
    assert!(
        (predicted - measured).abs() < 0.02,
        "{predicted} and {hits} of {queries}"
    );
}

#[track_caller]
fn has_the_figures_of_its_rows(result: &Value, rows: &Path) {
    let differences = recomputed::load::differences(result, rows);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn replays_at_an_engine_that_fails_now_and_then_have_the_figures_of_their_rows() {
    let dir = tempfile::tempdir().expect("a directory");
    let corpus = corpus(dir.path(), &["coding", "terminal"], 30);
    let preset = dir.path().join("small.toml");
    std::fs::write(&preset, include_str!("../campaign/small.toml")).expect("a file");
    let cases = [
        (
            "status=503",
            &["--slo", "ttft<=50ms,tpot<=8ms,itl<=40ms,e2e<=1s"][..],
        ),
        ("status=429, retry-after=1", &["--heed-retry-after", "2s"]),
        ("reset=5", &["--rate=4"]),
        ("usage=huge", &["--requests", "60"]),
        // Some are never sent, some never end.
        ("split=7", &["--connections=1", "--rate=12"]),
        ("stall=5:9000", &["--drain", "200ms"]),
        ("stall-head=700", &["--timeout", "500ms"]),
    ];
    // Each takes seconds, in which others want the machine as well.
    for some in cases.chunks(3) {
        std::thread::scope(|scope| {
            for (fault, further) in some {
                let (corpus, preset, dir) = (&corpus, &preset, dir.path());
                scope.spawn(move || {
                    let engine = Engine::start(preset.to_str().expect("text"));
                    engine.fail(fault, 0.2);
                    let rows = dir.join(format!("{}.parquet", further[0]));
                    let url = engine.url();
                    let mut args = vec!["load", corpus.to_str().expect("text"), "--json"];
                    args.extend(["--target", &url, "--warm-up", "1s", "--duration", "4s"]);
                    args.extend(["--think", "exponential:100ms", "--records"]);
                    args.push(rows.to_str().expect("text"));
                    let (result, _) = document(&[&args[..], further].concat());
                    assert!(result["answered"].as_u64() > Some(0), "{result:#}");
                    has_the_figures_of_its_rows(&result, &rows);
                });
            }
        });
    }
}

#[test]
fn a_damaged_corpus_a_dead_target_and_a_wrong_model_have_results_of_their_own() {
    let dir = tempfile::tempdir().expect("a directory");
    let corpus = corpus(dir.path(), &["coding"], 10);
    let path = corpus.to_str().expect("text");
    let dead = [
        "load",
        path,
        "--target",
        "http://127.0.0.1:1",
        "--once",
        "--json",
    ];
    let (result, code) = document(&dead);
    assert_ended(&result, code, |code, verdict| {
        (code, verdict) == (1, "errors")
    });
    assert_eq!(result["errors_by_kind"]["connect"], result["errors"]);

    let bodies = std::fs::read_dir(&corpus).expect("a directory");
    let mut bodies = bodies.map(|entry| entry.expect("an entry").path());
    let bodies = bodies
        .find(|path| path.ends_with("bodies"))
        .expect("bodies");
    let mut bytes = std::fs::read(&bodies).expect("bodies");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&bodies, bytes).expect("bodies");
    let damaged = prove(&["load", path, "--target", "http://127.0.0.1:1", "--once"]);
    let says = String::from_utf8_lossy(&damaged.stderr).into_owned();
    assert_eq!(damaged.status.code(), Some(2), "{says}");
    assert!(says.contains("bodies"), "{says}");
    assert_eq!(prove(&["corpus", "verify", path]).status.code(), Some(1));
}

#[test]
fn genuine_answers_of_toolbench_are_accepted_whichever_repair_was_asked_for() {
    let Some(answers) = std::env::var_os("CORPUS_TOOLBENCH") else {
        testing::skip("CORPUS_TOOLBENCH names no folder of genuine answers");
        return;
    };
    let answers = answers.to_str().expect("text");
    for repair in ["strict", "paper"] {
        let dir = tempfile::tempdir().expect("a directory");
        let out = dir.path().join("corpus");
        let out = out.to_str().expect("text");
        let built = prove(&[
            "corpus",
            "build",
            "--profile",
            "api-orchestration",
            "--reader",
            "toolbench",
            answers,
            "--repair",
            repair,
            "--model",
            MODEL,
            "--out",
            out,
        ]);
        assert!(
            built.status.success(),
            "{}",
            String::from_utf8_lossy(&built.stderr)
        );
        let engine = Engine::start("instant");
        let (result, code) =
            document(&["load", out, "--target", &engine.url(), "--once", "--json"]);
        assert_ended(&result, code, passed);
        assert_eq!(result["errors"], 0, "{result:#}");
    }
}

#[test]
fn a_recorded_trace_of_a_thousand_lines_is_replayed_with_its_lengths_and_its_hits() {
    let dir = tempfile::tempdir().expect("a directory");
    let trace = dir.path().join("trace.jsonl");
    // Ten conversations in turn, each of whose prompts is the one before and a block more; one in a hundred comes twice.
    let (mut lines, mut prompts, mut outputs) = (String::new(), 0, 0);
    for at in 0..1_000_u64 {
        let number = at - u64::from(at % 100 == 99) * 10;
        let (talk, turn) = (number % 10, number / 10 % 20);
        let blocks: Vec<String> = (0..=turn)
            .map(|block| (talk * 1_000 + block).to_string())
            .collect();
        let (input, output) = ((turn + 1) * 64, 1 + number % 7);
        (prompts, outputs) = (prompts + input, outputs + output);
        lines += &format!(
            "{{\"timestamp\":{},\"input_length\":{input},\"output_length\":{output},\"hash_ids\":[{}]}}\n",
            at * 5,
            blocks.join(",")
        );
    }
    std::fs::write(&trace, lines).expect("a file");
    let (trace, out) = (trace.to_str().expect("text"), dir.path().join("corpus"));
    let out = out.to_str().expect("text");
    let built = prove(&[
        "corpus",
        "build",
        "--model",
        MODEL,
        "--ignore-eos",
        "--profile",
        "recorded",
        "--reader",
        "trace",
        trace,
        "--set",
        "block=64",
        "--out",
        out,
    ]);
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    let (told, _) = document(&["corpus", "inspect", out, "--json"]);
    assert_eq!(
        (&told["sessions"], &told["skipped"]),
        (&1_000.into(), &0.into()),
        "{told:#}"
    );

    let engine = Engine::start("instant");
    let url = engine.url();
    let arrivals = format!("trace:{trace}");
    let args = [
        "load",
        out,
        "--target",
        &url,
        "--arrivals",
        &arrivals,
        "--duration",
        "6s",
        "--json",
    ];
    let (result, code) = document(&args);
    // Gaps of 5 ms: on a busy machine the generator is late, which takes nothing from what was sent, answered and counted.
    assert!(matches!(code, Some(0 | 4)), "{code:?} {result:#}");
    let count = |member: &str| result[member].as_u64().expect("a count");
    assert_eq!(
        (count("requests"), count("errors"), count("unsent")),
        (1_000, 0, 0),
        "{result:#}"
    );
    let tokens = |kind: &str| result["tokens"][kind].as_u64().expect("tokens");
    assert_eq!(tokens("completion"), outputs);
    // The template's come on top, as many of each prompt.
    let template = tokens("prompt") - prompts;
    assert!(template % 1_000 == 0 && template < 200_000, "{template}");
    let share = engine.metric("vllm:prefix_cache_hits_total")
        / engine.metric("vllm:prefix_cache_queries_total");
    let foretold = result["run"]["predicted_hit_rate"]
        .as_f64()
        .expect("a share");
    assert!(
        foretold > 0.5 && (share - foretold).abs() < 0.05,
        "{share} for {foretold}"
    );
}
