//! Workers of a real Locust master, steered and read through its web page's API.
//!
//! What the workers of most tests report is made by a formula (`prove synthetic-worker`), and each prints what it made,
//! so that the master's sums can be held against it to the last request; those of one replay a corpus.
//! Invariant: loopback only, a dozen users, and every process that is started is ended with its test.
//! Not here: damage, lost connections and lost masters, which a scripted master shows (the unit tests).

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use testing::{PATIENCE, found, pace};

use super::replay::{assert_ended, passed};
use super::{PROVE, ports};

const LOCUSTFILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/e2e/locust/locustfile.py"
);

/// A process that ends with its test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Master {
    process: Ended,
    workers_port: u16,
    web_port: u16,
    log: tempfile::NamedTempFile,
}

impl Master {
    fn start() -> Self {
        Self::of(LOCUSTFILE.as_ref())
    }

    /// One whose workers' classes stand in this file.
    fn of(locustfile: &Path) -> Self {
        let python = std::env::var("TOLLGATE_E2E_PYTHON");
        let python = python.expect("TOLLGATE_E2E_PYTHON is not set: run `cargo xtask e2e`");
        let [workers_port, web_port] = ports::two_free().expect("two ports");
        let log = tempfile::NamedTempFile::new().expect("a file");
        let process = Command::new(python)
            .args(["-m", "locust", "--master", "--enable-rebalancing", "-f"])
            .arg(locustfile)
            .args(["--master-bind-host", "127.0.0.1", "--web-host", "127.0.0.1"])
            .args(["--master-bind-port", &workers_port.to_string()])
            .args(["--web-port", &web_port.to_string()])
            .env("PYTHONDONTWRITEBYTECODE", "1")
            // Tasks of an empty directory, so that no configuration file of somebody's is found.
            .current_dir(locustfile.parent().expect("a directory"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.reopen().expect("a file"))
            .spawn()
            .expect("Python starts");
        let master = Self {
            process: Ended(process),
            workers_port,
            web_port,
            log,
        };
        master.until("the web page answers", |_| true);
        master
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap_or_default()
    }

    /// The statistics, once they are as they should be.
    fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        found(what, || {
            let told = self.ask("GET", "/stats/requests", "");
            let told = told.filter(|told| holds(told));
            if told.is_none() {
                // Each look costs the master more than all that it does for its workers.
                pace(Duration::from_millis(100));
            }
            told
        })
    }

    fn post(&self, path: &str, form: &str) {
        let answer = self.ask("POST", path, form);
        let done = answer
            .as_ref()
            .is_some_and(|answer| answer["success"] == true);
        assert!(done, "{path} {form}: {answer:?}\n{}", self.log());
    }

    fn ask(&self, method: &str, path: &str, form: &str) -> Option<Value> {
        let mut socket = TcpStream::connect(("127.0.0.1", self.web_port)).ok()?;
        socket.set_read_timeout(Some(PATIENCE)).ok()?;
        let length = form.len();
        let request = format!(
            "{method} {path} HTTP/1.0\r\nHost: localhost\r\nContent-Length: {length}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\n\r\n{form}"
        );
        socket.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer).ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!(
                "{:#?}\n{}",
                self.ask("GET", "/stats/requests", ""),
                self.log()
            );
        }
    }
}

struct Worker {
    process: Ended,
    lines: Receiver<Value>,
}

impl Worker {
    fn start(master: &Master, name: &str) -> Self {
        let mut process = Command::new(PROVE)
            .args([
                "synthetic-worker",
                "--classes",
                "Agent,Chat",
                "--name",
                name,
            ])
            .args(["--master", &format!("127.0.0.1:{}", master.workers_port)])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("prove starts");
        let stdout = process.stdout.take().expect("a pipe");
        let (to, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let told: Value = serde_json::from_str(&line).expect("a line of JSON");
                if to.send(told).is_err() {
                    break;
                }
            }
        });
        Self {
            process: Ended(process),
            lines,
        }
    }

    /// The next line of this kind.
    fn told(&self, event: &str) -> Value {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|error| panic!("no {event} was told: {error}"));
            if line["event"] == event {
                return line;
            }
        }
    }
}

fn users(told: &Value) -> Vec<u64> {
    let workers = told["workers"].as_array().into_iter().flatten();
    workers
        .map(|worker| worker["user_count"].as_u64().expect("a number"))
        .collect()
}

/// All that the master has heard of.
fn requests(told: &Value) -> Option<u64> {
    let total = told["stats"].as_array()?.last()?;
    total["num_requests"].as_u64()
}

/// A figure of an entry, added up over what the workers printed.
fn sum(seen: &[&Value], name: &str, figure: &str) -> u64 {
    let entries = seen.iter().flat_map(|seen| seen["entries"].as_array());
    let of_name = entries.flatten().filter(|entry| entry["name"] == name);
    of_name.filter_map(|entry| entry[figure].as_u64()).sum()
}

/// Asserts that the master's statistics are those of all workers together.
fn assert_equal(told: &Value, seen: &[&Value]) {
    let stats = told["stats"].as_array().expect("entries");
    let aggregated = stats.last().expect("the total");
    let all: u64 = seen
        .iter()
        .filter_map(|seen| seen["requests"].as_u64())
        .sum();
    assert_eq!(aggregated["num_requests"], all, "{told:#}\n{seen:#?}");
    assert!(all > 50, "{all}");
    for class in ["Agent", "Chat"] {
        for part in ["", " TTFT", " TPOT", " E2E"] {
            let name = format!("/synthetic/{class}{part}");
            let entry = stats.iter().find(|entry| entry["name"] == *name);
            let entry = entry.unwrap_or_else(|| panic!("no {name}: {told:#}"));
            let of = |figure| sum(seen, &name, figure);
            assert_eq!(entry["num_requests"], of("requests"), "{name}");
            assert_eq!(entry["num_failures"], of("failures"), "{name}");
            let size = entry["avg_content_length"].as_f64().expect("a number");
            let bytes = of("bytes") as f64 / of("requests") as f64;
            assert!((size - bytes).abs() < 1e-6, "{name}: {size} {bytes}");
            let mean = entry["avg_response_time"].as_f64().expect("a number");
            let expected = of("sum_us") as f64 / 1e3 / (of("requests") - of("untimed")) as f64;
            assert!((mean - expected).abs() < 1e-6, "{name}: {mean} {expected}");
        }
    }
    let errors = |of: &Value, count: &str| -> u64 {
        let errors = of["errors"].as_array().into_iter().flatten();
        errors.filter_map(|error| error[count].as_u64()).sum()
    };
    let counted: u64 = seen.iter().map(|seen| errors(seen, "count")).sum();
    assert_eq!(errors(told, "occurrences"), counted);
    assert_eq!(aggregated["num_failures"], counted);
}

#[test]
fn two_workers_under_a_real_master_report_to_the_last_request() {
    let mut master = Master::start();
    let mut workers = ["first", "second"].map(|name| Worker::start(&master, name));
    let told = master.until("two workers", |told| {
        told["workers"].as_array().is_some_and(|all| all.len() == 2)
    });
    assert_eq!(users(&told), [0, 0]);
    let mut indices = workers
        .each_ref()
        .map(|worker| worker.told("joined")["index"].clone());
    indices.sort_by_key(Value::as_u64);
    assert_eq!(indices, [json!(0), json!(1)]);

    // A ramp of several steps, then another on top of it.
    master.post(
        "/swarm",
        "user_count=4&spawn_rate=2&host=http://engine.test",
    );
    let first = workers[0].told("spawn");
    assert_eq!(
        (&first["host"], &first["new_run"]),
        (&json!("http://engine.test"), &json!(true))
    );
    master.until("4 users", |told| {
        told["state"] == "running" && users(told) == [2, 2]
    });
    assert_eq!(workers[0].told("ramped")["users"], 4);
    master.post("/swarm", "user_count=8&spawn_rate=4");
    master.until("8 users", |told| {
        told["state"] == "running" && users(told) == [4, 4]
    });
    assert_eq!(workers[1].told("ramped")["users"], 4);
    assert_eq!(workers[1].told("ramped")["users"], 8);
    let told = master.until("statistics while users run", |told| {
        requests(told) > Some(200)
    });
    let rate = told["current_rps"].as_f64();
    assert!(rate > Some(0.0), "{rate:?}");

    master.post("/stop", "");
    let stopped = workers
        .each_ref()
        .map(|worker| worker.told("stop")["seen"].clone());
    let told = master.until("stopped", |told| told["state"] == "stopped");
    assert_equal(&told, &stopped.each_ref());
    let states: Vec<_> = told["workers"]
        .as_array()
        .expect("workers")
        .iter()
        .map(|worker| &worker["state"])
        .collect();
    assert_eq!(states, ["ready", "ready"]);

    // A second run begins from nothing.
    master.post("/swarm", "user_count=8&spawn_rate=8");
    master.until("8 users again", |told| {
        told["state"] == "running" && users(told) == [4, 4]
    });
    master.until("statistics of the second run", |told| {
        requests(told) > Some(100)
    });
    master.post("/stop", "");
    let stopped = workers
        .each_ref()
        .map(|worker| worker.told("stop")["seen"].clone());
    let told = master.until("stopped again", |told| told["state"] == "stopped");
    assert_equal(&told, &stopped.each_ref());

    // The master ends, and takes its workers along; not one request is in doubt.
    let pid = rustix::process::Pid::from_child(&master.process.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    for worker in &mut workers {
        worker.told("quit");
        let end = worker.told("end");
        let delivered = &end["delivered"];
        assert_eq!(
            (&delivered["doubtful"], &delivered["dropped"]),
            (&json!(0), &json!(0)),
            "{end}"
        );
        let status = worker.process.0.wait().expect("it ends");
        assert!(status.success(), "{status}");
    }
    master.process.0.wait().expect("it ends");
    let log = master.log();
    for word in ["Traceback", "ERROR", "unknown worker", "Unknown message"] {
        assert!(!log.contains(word), "{word} in\n{log}");
    }
}

#[test]
fn a_killed_worker_is_missing_and_its_users_move_to_the_other() {
    let master = Master::start();
    let [mut first, second] = ["first", "second"].map(|name| Worker::start(&master, name));
    master.until("two workers", |told| {
        told["workers"].as_array().is_some_and(|all| all.len() == 2)
    });
    master.post("/swarm", "user_count=6&spawn_rate=6");
    master.until("6 users", |told| {
        told["state"] == "running" && users(told) == [3, 3]
    });
    first.process.0.kill().expect("it runs");
    let state_of = |told: &Value, name: &str| {
        let workers = told["workers"].as_array().into_iter().flatten();
        let mut of_name =
            workers.filter(|worker| worker["id"].as_str().is_some_and(|id| id.starts_with(name)));
        of_name
            .next()
            .map(|worker| (worker["state"].clone(), worker["user_count"].clone()))
    };
    master.until("the first missing, its users with the second", |told| {
        state_of(told, "first") == Some((json!("missing"), json!(0)))
            && state_of(told, "second") == Some((json!("running"), json!(6)))
    });
    master.post("/stop", "");
    let stopped = second.told("stop");
    assert!(stopped["seen"]["requests"].as_u64() > Some(0));
}

/// A worker that replays a corpus, and the rows that it wrote.
struct Replaying {
    process: Ended,
    out: std::path::PathBuf,
}

impl Replaying {
    fn start(master: &Master, corpus: &Path, target: &str, name: &str) -> Self {
        let out = corpus.with_file_name(format!("{name}.json"));
        let process = Command::new(PROVE)
            .args([
                "load",
                "--target",
                target,
                "--threads",
                "1",
                "--locust-name",
                name,
            ])
            .args(["--think", "exponential:100ms"])
            .args([
                "--locust-master",
                &format!("127.0.0.1:{}", master.workers_port),
            ])
            .arg("--out")
            .arg(&out)
            .arg(corpus)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("prove starts");
        Self {
            process: Ended(process),
            out,
        }
    }

    /// What it wrote of its run when the master ended.
    fn result(&mut self) -> Value {
        let status = self.process.0.wait().expect("it ends");
        let text = std::fs::read_to_string(&self.out).expect("a result");
        let result = serde_json::from_str(&text).expect("JSON");
        assert_ended(&result, status.code(), passed);
        result
    }
}

#[test]
fn a_corpus_is_replayed_by_a_fleet_whose_statistics_are_those_of_its_own_results() {
    let dir = tempfile::tempdir().expect("a directory");
    let corpus = super::replay::corpus(dir.path(), &["coding", "api-orchestration"], 20);
    let engine = super::replay::Engine::start();
    let locustfile = Command::new(PROVE)
        .args(["load", "--locustfile"])
        .arg(&corpus)
        .output()
        .expect("prove runs");
    let path = dir.path().join("locustfile.py");
    std::fs::write(&path, locustfile.stdout).expect("a file");
    let master = Master::of(&path);
    let mut workers =
        ["one", "two"].map(|name| Replaying::start(&master, &corpus, &engine.url(), name));
    master.until("two workers", |told| {
        told["workers"].as_array().is_some_and(|all| all.len() == 2)
    });
    master.post("/swarm", "user_count=4&spawn_rate=4");
    master.until("4 users", |told| {
        told["state"] == "running" && users(told) == [2, 2]
    });
    master.post("/swarm", "user_count=12&spawn_rate=4");
    master.until("12 users", |told| {
        told["state"] == "running" && users(told) == [6, 6]
    });
    master.until("300 requests", |told| requests(told) > Some(300));
    master.post("/stop", "");
    let told = master.until("stopped", |told| told["state"] == "stopped");
    let pid = rustix::process::Pid::from_child(&master.process.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    let results = workers.each_mut().map(Replaying::result);
    let own = |pointer: &str| -> u64 {
        let figures = results.iter().map(|result| result.pointer(pointer));
        figures
            .map(|figure| figure.and_then(Value::as_u64).expect("a count"))
            .sum()
    };
    assert_eq!(requests(&told), Some(own("/requests")), "{told:#}");
    assert_eq!(own("/errors"), 0);
    let stats = told["stats"].as_array().expect("entries");
    for profile in ["coding", "api-orchestration"] {
        let entry = stats.iter().find(|entry| entry["name"] == profile);
        let entry = entry.unwrap_or_else(|| panic!("no {profile}: {told:#}"));
        let answered = own(&format!("/profiles/{profile}/requests"));
        assert_eq!(entry["num_requests"], answered, "{profile}");
        // The mean from the intended moment, to the microsecond that a histogram of three digits loses.
        let sum: f64 = results
            .iter()
            .map(|result| {
                let figures = &result["profiles"][profile];
                let count = figures["requests"].as_f64().expect("a count");
                // A worker that had no user of it has none.
                count * figures["e2e_ms"]["mean"].as_f64().unwrap_or(0.0)
            })
            .sum();
        let (mean, own) = (entry["avg_response_time"].as_f64(), sum / answered as f64);
        let differs = (mean.expect("a mean") - own).abs() / own;
        assert!(differs < 0.01, "{profile}: {mean:?} {own}");
    }
    let seeds = results
        .each_ref()
        .map(|result| result["run"]["seed"].clone());
    assert_ne!(seeds[0], seeds[1]);
    for result in &results {
        assert_ne!(result["certificate"]["verdict"], "failed", "{result:#}");
    }
}
