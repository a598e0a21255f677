//! Targets that answer, and one that does everything wrong in turn.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::PROVE;
use super::ports::{self, Closed};

/// What a server that does not behave does with the next request.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Metrics,
    Html,
    Redirect,
    Hang,
    HangUp,
}

const PAGE: &str = "# TYPE up gauge\nup{of=\"it\"} 1\nthis line is none\n";

/// A server whose ways can be changed, and that can go and come back on the same port.
struct Moody {
    address: SocketAddr,
    mode: Arc<Mutex<Mode>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Moody {
    fn at(address: &str, mode: Mode) -> Self {
        let listener = TcpListener::bind(address).expect("a port");
        let address = listener.local_addr().expect("an address");
        let (mode, over) = (Arc::new(Mutex::new(mode)), Arc::new(AtomicBool::new(false)));
        let (theirs, is_over) = (Arc::clone(&mode), Arc::clone(&over));
        let thread = thread::spawn(move || {
            let mut hung = Vec::new();
            for stream in listener.incoming().flatten() {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                hung.extend(answer(stream, *theirs.lock().expect("no panic")));
            }
        });
        Self {
            address,
            mode,
            over,
            thread: Some(thread),
        }
    }

    fn becomes(&self, mode: Mode) {
        *self.mode.lock().expect("no panic") = mode;
    }

    fn die(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            thread.join().expect("no panic");
        }
    }
}

/// One answer; a connection that is to hang is given back.
fn answer(mut stream: TcpStream, mode: Mode) -> Option<TcpStream> {
    let _asked = stream.read(&mut [0; 4096]);
    let (status, kind, body) = match mode {
        Mode::Hang => return Some(stream),
        Mode::HangUp => return None,
        Mode::Metrics => ("200 OK", "text/plain", PAGE),
        Mode::Html => ("200 OK", "text/html", "<html><body>Sign in</body></html>"),
        Mode::Redirect => ("302 Found\r\nlocation: /", "text/plain", PAGE),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    let _gone = stream.write_all((head + body).as_bytes());
    None
}

/// A process that ends with its test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

fn lines(child: &mut Child) -> impl Iterator<Item = Value> + use<> {
    let out = child.stdout.take().expect("a pipe");
    let lines = BufReader::new(out).lines();
    lines.map(|line| serde_json::from_str(&line.expect("a line")).expect("JSON"))
}

fn scrape(args: &[&str]) -> Command {
    let mut command = Command::new(PROVE);
    command.arg("scrape").args(args);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

#[test]
fn a_target_that_does_everything_wrong_is_told_once_for_each_way_and_once_when_it_is_back() {
    let mut moody = Moody::at("127.0.0.1:0", Mode::Metrics);
    let well = Moody::at("127.0.0.1:0", Mode::Metrics);
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().join("samples.parquet");
    let target = |name: &str, of: &Moody| format!("{name}=http://{}/metrics", of.address);
    let mut run = scrape(&[
        "--target",
        &target("moody", &moody),
        "--target",
        &target("well", &well),
        "--query",
        "avg(well:up)",
        "--every-ms",
        "700",
        "--seconds",
        "11",
        "--out",
        &out.display().to_string(),
    ]);
    let began = Instant::now();
    let mut run = Ends(run.spawn().expect("prove runs"));
    let mut told = lines(&mut run.0);
    let mut next = |member: &str, of: &str| -> Value {
        let found = told.find(|line| line[member] == of);
        found.unwrap_or_else(|| panic!("{member} {of} is told"))
    };
    let unread = next("unread", "moody");
    assert_eq!((&unread["line"], &unread["lines"]), (&3.into(), &1.into()));
    for (mode, says) in [
        (Mode::Html, "HTML, not metrics"),
        (Mode::Redirect, "status 302"),
        (Mode::Hang, "no whole answer within 700ms"),
        (Mode::HangUp, "broke off"),
    ] {
        moody.becomes(mode);
        let line = next("silent", "moody");
        let got = line["says"].as_str().expect("words");
        assert!(got.contains(says), "{got}");
    }
    moody.die();
    let line = next("silent", "moody");
    let got = line["says"].as_str().expect("words");
    assert!(got.starts_with("unreachable: "), "{got}");
    // Several ticks, none of which is told.
    thread::sleep(Duration::from_millis(1_600));
    let _again = Moody::at(&moody.address.to_string(), Mode::Metrics);
    let back = told.next().expect("a line");
    assert_eq!(back["back"], "moody", "told once: {back}");
    assert!(back["after_s"].as_f64() > Some(1.6), "{back}");
    let end = told.next().expect("the end");
    assert_eq!(end["answers"]["avg(well:up)"], 1.0, "{end}");
    // The other was heard all the time: some 16 samples, and more than 10 where the machine is busy.
    assert!(end["samples"].as_u64() > Some(10), "{end}");
    assert_eq!(end["samples_lost"], 0, "{end}");
    assert!(end["rows"].as_u64() > Some(10), "{end}");
    assert!(began.elapsed() < Duration::from_secs(30));
    assert_eq!(run.0.wait().expect("an end").code(), Some(0));
}

#[test]
fn every_fault_is_named_at_once_before_anything_begins() {
    let html = Moody::at("127.0.0.1:0", Mode::Html);
    let well = Moody::at("127.0.0.1:0", Mode::Metrics);
    let gone = Closed::new();
    let target = |name: &str, of: SocketAddr| format!("{name}=http://{of}/metrics");
    let mut run = Ends(
        scrape(&[
            "--target",
            &target("html", html.address),
            "--target",
            &target("gone", gone.address),
            "--target",
            &target("well", well.address),
            "--query",
            "avg(well:uq)",
            "--query",
            "avg(nobody:up)",
            "--query",
            "rate(well:requests_total)",
        ])
        .spawn()
        .expect("prove runs"),
    );
    let told: Vec<Value> = lines(&mut run.0).collect();
    let says = |member: &str| -> Vec<&str> {
        told.iter()
            .filter_map(|line| line[member].as_str())
            .collect()
    };
    let faults = says("fault");
    assert_eq!(faults.len(), 4, "{told:?}");
    assert!(
        faults[0].contains("HTML, not metrics; it begins \"<html>"),
        "{}",
        faults[0]
    );
    assert!(faults[1].contains("unreachable"), "{}", faults[1]);
    assert!(
        faults[2].contains("there is no uq; nearest are up"),
        "{}",
        faults[2]
    );
    assert!(
        faults[3].contains("no such target; there are gone, html, well"),
        "{}",
        faults[3]
    );
    let warnings = says("warning");
    assert_eq!(warnings.len(), 1, "{told:?}");
    assert!(
        warnings[0].contains("may come with the first request"),
        "{}",
        warnings[0]
    );
    assert_eq!(run.0.wait().expect("an end").code(), Some(1));
}

#[test]
fn the_pages_of_an_engine_and_its_gpus_answer_every_query_by_one_name() {
    for old in [&[][..], &["--old-metric-names"]] {
        let free = ports::two_free().expect("ports");
        let [engine, gpus] = free.map(|port| ports::loopback(port).to_string());
        let mut serving = Command::new(PROVE);
        serving.args(["engine", "--preset", PRESET, "--listen", &engine]);
        serving.args(["--dcgm", &gpus]).args(old);
        let serving = serving.stderr(Stdio::null()).spawn().expect("prove runs");
        let _serving = Ends(serving);
        let began = Instant::now();
        while TcpStream::connect(&engine).is_err() || TcpStream::connect(&gpus).is_err() {
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "the engine serves"
            );
            thread::sleep(Duration::from_millis(20));
        }
        let mut run = scrape(&[
            "--target",
            &format!("engine=http://{engine}/metrics"),
            "--target",
            &format!("gpu=http://{gpus}/metrics"),
        ]);
        for query in QUERIES {
            run.args(["--query", query]);
        }
        let mut run = Ends(
            run.args(["--every-ms", "700", "--seconds", "3.5"])
                .spawn()
                .expect("prove runs"),
        );
        let told: Vec<Value> = lines(&mut run.0).collect();
        let answers = &told.last().expect("an end")["answers"];
        for query in QUERIES {
            // Nothing was asked of it: a mean over no requests has no answer.
            let has = !query.starts_with("mean");
            assert_eq!(
                answers[query].is_number(),
                has,
                "{query} {old:?}: {told:#?}"
            );
        }
        assert_eq!(
            told.len(),
            1,
            "neither fault nor warning nor event: {told:#?}"
        );
        assert_eq!(run.0.wait().expect("an end").code(), Some(0));
    }
}

/// With GPUs, and fast to start.
const PRESET: &str = "gpt-oss-120b.h100x4";

/// What the gates and tables of a campaign ask.
const QUERIES: [&str; 10] = [
    "mean(engine:vllm:time_to_first_token_seconds)",
    "mean(engine:vllm:inter_token_latency_seconds)",
    "ratio(engine:vllm:num_preemptions_total, engine:vllm:request_success_total)",
    "rate(engine:vllm:generation_tokens_total)",
    "avg(engine:vllm:kv_cache_usage_perc)",
    "increase(engine:vllm:prefix_cache_hits_total)",
    "sum(engine:vllm:num_requests_running)",
    "avg(gpu:DCGM_FI_DEV_GPU_UTIL)",
    "sum(gpu:DCGM_FI_DEV_POWER_USAGE)",
    "max(gpu:nvlink_bytes_per_second)",
];
