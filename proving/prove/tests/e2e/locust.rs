//! Workers of a real Locust master, steered and read through its web page's API.
//!
//! Workers replay a corpus, and the master's sums are held against their own results to the last request.
//! Invariant: loopback only, a dozen users, and every process that is started is ended with its test.
//! Not here: damage, lost connections and lost masters, which a scripted master shows (the unit tests).

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use load::client::{Request, fetch};
use load::source::Head;
use serde_json::{Value, json};
use testing::{PATIENCE, found, pace};

use super::{PROVE, ports};

const PROFILES: [&str; 2] = ["coding", "api-orchestration"];

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
        let kind = "application/x-www-form-urlencoded";
        ask(self.web_port, method, path, (kind, form))
    }
}

/// The JSON that somebody on loopback answers with.
fn ask(port: u16, method: &str, path: &str, (kind, body): (&str, &str)) -> Option<Value> {
    let head = if method == "GET" {
        Head::get(path)
    } else {
        Head::post(path)
    };
    let head = head.and_then(|head| head.with("host", "localhost")?.with("content-type", kind));
    let request = Request {
        head: head.expect("a head"),
        body: body.to_owned().into(),
    };
    let answer = fetch(([127, 0, 0, 1], port).into(), &request, PATIENCE).ok()?;
    serde_json::from_slice(&answer.body).ok()
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

/// A worker that replays a corpus, and the rows that it wrote.
struct Replaying {
    process: Ended,
    out: PathBuf,
    /// What it said to people.
    log: PathBuf,
}

impl Replaying {
    fn start(master: &Master, corpus: &Path, target: &str, name: &str) -> Self {
        let [out, log] =
            ["json", "log"].map(|kind| corpus.with_file_name(format!("{name}.{kind}")));
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
            .stderr(File::create(&log).expect("a file"))
            .spawn()
            .expect("prove starts");
        Self {
            process: Ended(process),
            out,
            log,
        }
    }

    /// What it wrote of a run that has stopped, the first or a later one.
    fn result(&self, run: u32) -> Value {
        let name = self.out.file_stem().expect("a name").to_string_lossy();
        let file = match run {
            1 => self.out.clone(),
            later => self.out.with_file_name(format!("{name}-{later}.json")),
        };
        serde_json::from_str(&std::fs::read_to_string(file).expect("a result")).expect("JSON")
    }
}

/// Two workers of one master, and the engine that they ask. Workers end before what they ask.
struct Fleet {
    workers: [Replaying; 2],
    master: Master,
    engine: super::replay::Engine,
    _dir: tempfile::TempDir,
}

impl Fleet {
    fn start() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let corpus = super::replay::corpus(dir.path(), &PROFILES, 20);
        let engine = super::replay::Engine::start("instant");
        let locustfile = Command::new(PROVE)
            .args(["load", "--locustfile"])
            .arg(&corpus)
            .output()
            .expect("prove runs");
        let path = dir.path().join("locustfile.py");
        std::fs::write(&path, locustfile.stdout).expect("a file");
        let master = Master::of(&path);
        let workers =
            ["one", "two"].map(|name| Replaying::start(&master, &corpus, &engine.url(), name));
        master.until("two workers", |told| {
            told["workers"].as_array().is_some_and(|all| all.len() == 2)
        });
        Self {
            workers,
            master,
            engine,
            _dir: dir,
        }
    }

    /// So many users at work, as many at each worker.
    fn swarm(&self, count: u64, rate: u64) {
        let form = format!("user_count={count}&spawn_rate={rate}");
        self.master.post("/swarm", &form);
        self.master.until(&form, |told| {
            told["state"] == "running" && users(told) == [count / 2; 2]
        });
    }

    /// Stops a run once the master has heard of so many requests; its statistics, and the workers' own results.
    fn stop(&self, run: u32, least: u64) -> (Value, [Value; 2]) {
        self.master
            .until("requests", |told| requests(told) > Some(least));
        self.master.post("/stop", "");
        let told = self
            .master
            .until("stopped", |told| told["state"] == "stopped");
        (
            told,
            self.workers.each_ref().map(|worker| worker.result(run)),
        )
    }
}

/// A count, added up over the workers.
fn own(results: &[Value; 2], pointer: &str) -> u64 {
    let figures = results.iter().map(|result| result.pointer(pointer));
    figures
        .map(|figure| figure.and_then(Value::as_u64).expect("a count"))
        .sum()
}

/// What the master says of an entry.
fn entry<'a>(told: &'a Value, name: &str) -> &'a Value {
    let stats = told["stats"].as_array().expect("entries");
    let entry = stats.iter().find(|entry| entry["name"] == name);
    entry.unwrap_or_else(|| panic!("no {name}: {told:#}"))
}

#[test]
fn a_corpus_is_replayed_by_a_fleet_whose_statistics_are_those_of_its_own_results() {
    let mut fleet = Fleet::start();
    assert_eq!(users(&fleet.master.until("nobody", |_| true)), [0, 0]);
    // A ramp of several steps, then another on top of it.
    fleet.swarm(4, 2);
    fleet.swarm(12, 4);
    let (told, results) = fleet.stop(1, 300);
    assert_eq!(
        requests(&told),
        Some(own(&results, "/requests")),
        "{told:#}"
    );
    assert_eq!(own(&results, "/errors"), 0);
    for profile in PROFILES {
        let answered = own(&results, &format!("/profiles/{profile}/requests"));
        for part in ["", " TTFT", " E2E"] {
            let entry = entry(&told, &format!("{profile}{part}"));
            assert_eq!(entry["num_requests"], answered, "{profile}{part}");
        }
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
        let mean = entry(&told, profile)["avg_response_time"].as_f64();
        let own = sum / answered as f64;
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

    // A second run begins from nothing, and failures are counted too.
    let port = fleet.engine.url();
    let port = port
        .trim_end_matches("/v1")
        .rsplit_once(':')
        .expect("a port")
        .1;
    let asked = (
        "application/json",
        r#"{"fault": "status=503", "share": 0.2}"#,
    );
    ask(
        port.parse().expect("a number"),
        "POST",
        "/_engine/faults",
        asked,
    )
    .expect("it is set");
    fleet.swarm(8, 8);
    let (told, results) = fleet.stop(2, 100);
    let failed = own(&results, "/errors");
    assert_eq!(
        requests(&told),
        Some(own(&results, "/requests")),
        "{told:#}"
    );
    assert!(failed > 0, "{told:#}");
    assert_eq!(
        entry(&told, "Aggregated")["num_failures"],
        failed,
        "{told:#}"
    );
    let errors = told["errors"].as_array().into_iter().flatten();
    let counted: u64 = errors
        .filter_map(|error| error["occurrences"].as_u64())
        .sum();
    assert_eq!(counted, failed, "{told:#}");

    // The master ends, and takes its workers along.
    let pid = rustix::process::Pid::from_child(&fleet.master.process.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    for worker in &mut fleet.workers {
        let status = worker.process.0.wait().expect("it ends");
        // The worse of its runs had failures.
        assert!(matches!(status.code(), Some(1 | 4)), "{status}");
        let said = std::fs::read_to_string(&worker.log).expect("its words");
        assert!(
            said.contains("joined as worker") && !said.contains("lack"),
            "{said}"
        );
    }
    fleet.master.process.0.wait().expect("it ends");
    let log = fleet.master.log();
    for word in ["Traceback", "ERROR", "unknown worker", "Unknown message"] {
        assert!(!log.contains(word), "{word} in\n{log}");
    }
}

#[test]
fn a_killed_worker_is_missing_and_its_users_move_to_the_other() {
    let mut fleet = Fleet::start();
    fleet.swarm(6, 6);
    fleet.workers[0].process.0.kill().expect("it runs");
    let state_of = |told: &Value, name: &str| {
        let workers = told["workers"].as_array().into_iter().flatten();
        let mut of_name =
            workers.filter(|worker| worker["id"].as_str().is_some_and(|id| id.starts_with(name)));
        of_name
            .next()
            .map(|worker| (worker["state"].clone(), worker["user_count"].clone()))
    };
    fleet
        .master
        .until("the first missing, its users with the second", |told| {
            state_of(told, "one") == Some((json!("missing"), json!(0)))
                && state_of(told, "two") == Some((json!("running"), json!(6)))
        });
    fleet.master.post("/stop", "");
    fleet
        .master
        .until("stopped", |told| told["state"] == "stopped");
    assert!(fleet.workers[1].result(1)["requests"].as_u64() > Some(0));
}
