//! A Prometheus with the project's configuration, a shorter scrape interval, and a test's targets.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Connection, free_address};

/// Metrics with their labels and the values of each.
pub(super) type Known = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

pub(super) struct Rule {
    pub(super) name: String,
    pub(super) query: String,
    pub(super) is_alert: bool,
    /// The error of its last evaluation.
    pub(super) fault: String,
}

pub(super) struct Prometheus {
    child: Child,
    address: SocketAddr,
    _dir: TempDir,
}

impl Prometheus {
    /// Starts Prometheus and waits until every target was scraped three times.
    pub(super) fn start(deploy: &str, targets: &[(&str, SocketAddr)]) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let read = |name: &str| {
            std::fs::read_to_string(format!("{deploy}/prometheus/{name}"))
                .expect("a file of deploy/")
        };
        let mut config = read("prometheus.yml").replace("interval: 15s", "interval: 1s");
        for (usual, address) in targets {
            assert!(config.contains(usual), "prometheus.yml scrapes no {usual}");
            config = config.replace(usual, &address.to_string());
        }
        std::fs::write(dir.path().join("prometheus.yml"), config).expect("a file");
        for rules in ["recording.yml", "alerts.yml"] {
            let text = read(rules);
            std::fs::write(dir.path().join(rules), text).expect("a file");
        }
        let address = free_address();
        let child = Command::new("prometheus")
            .arg(format!(
                "--config.file={}",
                dir.path().join("prometheus.yml").display()
            ))
            .arg(format!(
                "--storage.tsdb.path={}",
                dir.path().join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("prometheus is not installed: run `cargo xtask setup`");
        let prometheus = Self {
            child,
            address,
            _dir: dir,
        };
        testing::eventually("Prometheus listens", || {
            std::net::TcpStream::connect(address).is_ok()
        });
        testing::eventually("all targets are scraped", || {
            let up = prometheus.get("query", "count_over_time(up[1m]) >= 3 and up == 1");
            up.is_some_and(|up| {
                up["result"]
                    .as_array()
                    .is_some_and(|r| r.len() == targets.len())
            })
        });
        prometheus
    }

    /// The result of an expression, which must be valid.
    pub(super) fn ask(&self, expr: &str) -> Vec<Value> {
        let answer = self
            .get("query", expr)
            .unwrap_or_else(|| panic!("Prometheus refuses {expr}"));
        answer["result"].as_array().cloned().unwrap_or_default()
    }

    /// Every series that it has.
    pub(super) fn known(&self) -> Known {
        let all = self
            .get("series", r#"{__name__=~".+"}"#)
            .expect("its series");
        let mut known = Known::new();
        for series in all.as_array().expect("a list") {
            let series = series.as_object().expect("labels");
            let labels = known.entry(text(&series["__name__"])).or_default();
            for (label, value) in series {
                labels.entry(label.clone()).or_default().insert(text(value));
            }
        }
        known
    }

    /// Its rules.
    pub(super) fn rules(&self) -> Vec<Rule> {
        let answer = self.fetch("/api/v1/rules").expect("its rules");
        let groups = answer["groups"].as_array().cloned().unwrap_or_default();
        let rules = groups
            .iter()
            .flat_map(|group| group["rules"].as_array().cloned().unwrap_or_default());
        let rule = |rule: Value| Rule {
            name: text(&rule["name"]),
            query: text(&rule["query"]),
            is_alert: rule["type"] == "alerting",
            fault: text(&rule["lastError"]),
        };
        rules.map(rule).collect()
    }

    fn get(&self, what: &str, expr: &str) -> Option<Value> {
        let encoded: String = expr.bytes().map(|b| format!("%{b:02X}")).collect();
        let key = if what == "query" { "query" } else { "match[]" };
        self.fetch(&format!("/api/v1/{what}?{key}={encoded}"))
    }

    fn fetch(&self, target: &str) -> Option<Value> {
        let request = format!("GET {target} HTTP/1.1\r\nhost: p\r\nconnection: close\r\n\r\n");
        let answer = Connection::open(self.address).call(request.as_bytes());
        (answer.status == 200).then(|| answer.json()["data"].clone())
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
