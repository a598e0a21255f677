//! `tollgate demo` on ports that the system chooses, ended when dropped.
//!
//! Not here: assertions on the demo.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use testing::{eventually, found};

use super::{Connection, Gate, Response};

/// A running demo.
pub(crate) struct Demo {
    pub(crate) data: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) on_prem: SocketAddr,
    pub(crate) frontier: SocketAddr,
    dir: TempDir,
    child: Child,
}

impl Demo {
    /// Starts it with quick engines and an access log, and waits until it is ready.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Likewise, with further arguments.
    pub(crate) fn start_with(further: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let file = |name| std::fs::File::create(dir.path().join(name)).expect("a file");
        let mut child = Command::new(Gate::binary())
            .arg("demo")
            .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .args(["--on-prem", "127.0.0.1:0", "--frontier", "127.0.0.1:0"])
            .args(["--ttft-ms", "2", "--inter-token-ms", "1", "--access-log"])
            .arg(dir.path().join("access.jsonl"))
            .args(further)
            .env("TMPDIR", dir.path())
            .stdin(Stdio::null())
            .stdout(file("stdout"))
            .stderr(file("stderr"))
            .spawn()
            .expect("the binary starts");
        let read = |name| std::fs::read_to_string(dir.path().join(name)).unwrap_or_default();
        eventually("the demo introduces itself", || {
            let ended = child.try_wait().expect("the child can be asked");
            let is_introduced = read("stdout").contains("Ctrl-C");
            if let Some(status) = ended.filter(|_| !is_introduced) {
                panic!("the demo ended with {status}:\n{}", read("stderr"));
            }
            is_introduced
        });
        let said = read("stdout");
        let demo = Self {
            data: address(&said, "data"),
            admin: address(&said, "admin"),
            on_prem: address(&said, "on-prem"),
            frontier: address(&said, "frontier"),
            dir,
            child,
        };
        if further.is_empty() {
            eventually("the demo is ready", || {
                get(demo.admin, "/readyz").status == 200
            });
        }
        demo
    }

    /// The base URL for an SDK.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.data)
    }

    /// The sum of a metric's samples whose line holds every one of `labels` (`name="value"`).
    pub(crate) fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        let page = get(self.admin, "/stats/prometheus").text();
        let lines: Vec<&str> = page
            .lines()
            .filter(|l| {
                l.strip_prefix(name)
                    .is_some_and(|rest| rest.starts_with(['{', ' ']))
            })
            .filter(|l| labels.iter().all(|label| l.contains(label)))
            .collect();
        assert!(
            !lines.is_empty(),
            "no sample of {name} {labels:?} in\n{page}"
        );
        let values = lines
            .iter()
            .map(|l| l.rsplit(' ').next().unwrap_or_default());
        values
            .map(|v| v.parse::<f64>().expect("a sample is a number"))
            .sum()
    }

    /// The access log, once it has at least `n` lines.
    pub(crate) fn records(&self, n: usize) -> Vec<Value> {
        let mut text = String::new();
        eventually("the access log has its lines", || {
            text = self.read("access.jsonl");
            text.ends_with('\n') && text.lines().count() >= n
        });
        text.lines()
            .map(|l| serde_json::from_str(l).expect("a line is JSON"))
            .collect()
    }

    /// A file of its directory: `stdout`, `stderr` or `access.jsonl`.
    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Sends SIGINT, as Ctrl-C does, and waits for the exit.
    pub(crate) fn interrupt(&mut self) -> ExitStatus {
        self.signal("INT")
    }

    /// Sends a signal by its name, and waits for the exit.
    pub(crate) fn signal(&mut self, name: &str) -> ExitStatus {
        let id = self.child.id().to_string();
        let signalled = Command::new("kill").args(["-s", name, &id]).status();
        assert!(signalled.expect("kill runs").success());
        self.ended()
    }

    /// Waits for it to end.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        found("the demo ends", || {
            self.child.try_wait().expect("the child can be asked")
        })
    }

    /// Directories of the demo's own that are there.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path()).expect("the directory can be read");
        let names = entries.map(|e| {
            e.expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        });
        names
            .filter(|name| name.starts_with("tollgate-demo-"))
            .collect()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        if std::thread::panicking() {
            drop(writeln!(std::io::stderr(), "demo: {}", self.read("stderr")));
        }
    }
}

/// GET on a connection of its own.
pub(crate) fn get(from: SocketAddr, path: &str) -> Response {
    let request = format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n");
    Connection::open(from).call(request.as_bytes())
}

/// Every request that an engine received, as its inspection endpoint lists them.
pub(crate) fn seen_by(engine: SocketAddr) -> Vec<Value> {
    let answer = get(engine, "/_engine/requests");
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["requests"]
        .as_array()
        .expect("a list")
        .clone()
}

/// Reads an address from the introduction: `  data      http://127.0.0.1:1975/v1 …`.
fn address(said: &str, which: &str) -> SocketAddr {
    let rest = said.lines().find_map(|l| {
        l.trim_start()
            .strip_prefix(which)?
            .trim()
            .strip_prefix("http://")
    });
    let rest = rest.unwrap_or_else(|| panic!("no address of {which} in\n{said}"));
    let end = rest.find(['/', ' ']).unwrap_or(rest.len());
    rest[..end].parse().expect("an address")
}
