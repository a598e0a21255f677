//! Observability: the pages of the admin listener, the metrics, the number of workers.
//!
//! Not here: that no secret is shown (`secrecy`).

mod cpu_quota;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};

use testing::eventually;

use crate::harness::{Connection, Gate, Step, Upstream, answer, chat, post};

const PAGES: [&str; 7] = [
    "/livez",
    "/readyz",
    "/health",
    "/healthz",
    "/metrics",
    "/stats/prometheus",
    "/config",
];

fn answering() -> Upstream {
    Upstream::start(|n, seen| {
        let (kind, body) = if seen.json()["stream"] == true {
            let usage = r#"data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":9}}"#;
            let event = r#"data: {"choices":[{"index":0,"delta":{"content":"x"}}]}"#;
            (
                "text/event-stream",
                format!("{event}\n\n{event}\n\n{usage}\n\ndata: [DONE]\n\n"),
            )
        } else if seen.head.contains("/embeddings ") {
            (
                "application/json",
                r#"{"data":[],"usage":{"prompt_tokens":-1}}"#.to_owned(),
            )
        } else {
            ("application/json", r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"prompt_tokens_details":{"cached_tokens":1},"completion_tokens_details":{"reasoning_tokens":1}}}"#.to_owned())
        };
        let status = if n == 0 {
            "503 Service Unavailable"
        } else {
            "200 OK"
        };
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        vec![Step::Send((head + &body).into_bytes())]
    })
}

fn config(upstream: &Upstream) -> String {
    format!(
        "backends: {{ up: {{ url: http://{}/v1 }}, lost: {{ url: http://127.0.0.1:9/v1 }}, \
         other: {{ url: http://127.0.0.1:9/v1, dialect: anthropic }} }}\n\
         routes: [ {{ workload: lost, backend: lost }}, {{ workload: other, backend: other }}, {{ workload: again, backend: [lost, up] }}, \
         {{ workload: w, backend: up, limits: [ {{ requests: 1000000, per: 1m }} ] }}, {{ workload: few, backend: up, limits: [ {{ requests: 1, per: 1h }} ] }} ]\n\
         prices: {{ m: {{ input: 1, output: 2 }} }}\n",
        upstream.address
    )
}

fn ask(gate: &Gate, method: &str, path: &str, host: &str) -> crate::harness::Response {
    let request = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    let mut connection = Connection::open(gate.admin);
    connection.send(request.as_bytes());
    if method != "HEAD" {
        return connection.response();
    }
    while connection.more() {}
    let raw = connection.unread().to_vec();
    let text = String::from_utf8(raw).expect("text");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    assert_eq!(body, "", "HEAD has no body");
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|s| s.parse().ok())
        .expect("a status");
    crate::harness::Response {
        status,
        headers: Vec::new(),
        body: Vec::new(),
        whole: true,
    }
}

#[test]
fn admin_pages_answer_only_get_and_head() {
    let upstream = answering();
    let gate = Gate::start_listening("", &config(&upstream), &[]);
    for path in PAGES {
        let page = ask(&gate, "GET", path, "127.0.0.1");
        assert_eq!(page.status, 200, "{path}");
        assert!(!page.body.is_empty() && page.whole, "{path}");
        assert_eq!(
            ask(&gate, "HEAD", path, "localhost:1976").status,
            200,
            "{path}"
        );
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
            let refused = ask(&gate, method, path, "127.0.0.1");
            assert_eq!(refused.status, 405, "{method} {path}");
            assert_eq!(refused.header("allow"), Some("GET, HEAD"));
            assert_eq!(refused.code(), "method_not_allowed");
        }
        for host in [
            "evil.example",
            "evil.example:1976",
            "127.0.0.1.evil.example",
            "localhost.evil",
        ] {
            let refused = ask(&gate, "GET", path, host);
            assert_eq!(
                (refused.status, refused.code().as_str()),
                (421, "host_not_allowed"),
                "{host}"
            );
        }
        assert_eq!(ask(&gate, "GET", path, "[::1]:1976").status, 200);
        assert_eq!(
            ask(&gate, "GET", &format!("{path}?x=1"), "127.0.0.1").status,
            200
        );
    }
    for path in ["/", "/v1/models", "/metrics/", "/../config", "/debug/pprof"] {
        let missing = ask(&gate, "GET", path, "127.0.0.1");
        assert_eq!(
            (missing.status, missing.code().as_str()),
            (404, "unknown_url"),
            "{path}"
        );
    }
    assert_eq!(
        ask(&gate, "GET", "/metrics", "127.0.0.1").header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    assert_eq!(
        ask(&gate, "GET", "/config", "127.0.0.1").header("content-type"),
        Some("application/json")
    );
}

#[test]
fn no_admin_page_is_on_the_data_listener() {
    let upstream = answering();
    let gate = Gate::start(&config(&upstream), &[]);
    for path in PAGES {
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-workload-app: w\r\n\r\n");
        let response = gate.call(request.as_bytes());
        assert_eq!(response.status, 404, "{path}");
        assert_eq!(response.code(), "unknown_url");
    }
    assert!(upstream.seen().is_empty());
}

/// A metric family: its type, and its samples by label text.
#[derive(Default)]
struct Family {
    kind: String,
    samples: Vec<(String, BTreeMap<String, String>, f64)>,
}

/// Parses a metrics page strictly: anything that the format does not allow is a failure.
fn parse(page: &str) -> BTreeMap<String, Family> {
    let mut families = BTreeMap::<String, Family>::new();
    let mut helped = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut current = String::new();
    assert!(page.ends_with('\n') && !page.contains("\n\n") && !page.contains('\r'));
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a help text");
            assert!(
                !help.trim().is_empty() && helped.insert(name.to_owned()),
                "{line}"
            );
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(helped.contains(name), "{name} has no help before its type");
            current = name.to_owned();
            let family = Family {
                kind: kind.into(),
                ..Family::default()
            };
            assert!(
                families.insert(current.clone(), family).is_none(),
                "{name} stands twice"
            );
            continue;
        }
        assert!(!line.starts_with('#'), "{line}");
        let (series, value) = line.rsplit_once(' ').expect("a value");
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
        assert!(seen.insert(series.to_owned()), "{series} stands twice");
        let (name, labels) = match series.split_once('{') {
            Some((name, rest)) => (name, labels(rest.strip_suffix('}').expect("a brace"))),
            None => (series, BTreeMap::new()),
        };
        let family = families
            .get_mut(&current)
            .expect("a type before its samples");
        let suffix = name
            .strip_prefix(current.as_str())
            .unwrap_or_else(|| panic!("{line}"));
        let fits = if family.kind == "histogram" {
            matches!(suffix, "_bucket" | "_sum" | "_count")
        } else {
            suffix.is_empty()
        };
        assert!(fits, "{line} under {current}");
        family.samples.push((suffix.to_owned(), labels, value));
    }
    families
}

fn labels(mut text: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    while !text.is_empty() {
        let (name, rest) = text.split_once("=\"").expect("a label");
        assert!(
            name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'),
            "{name}"
        );
        let end = (0..rest.len())
            .find(|&i| {
                let escapes = rest[..i].bytes().rev().take_while(|b| *b == b'\\').count();
                rest.as_bytes()[i] == b'"' && escapes.is_multiple_of(2)
            })
            .expect("a closing quote");
        assert!(
            all.insert(name.to_owned(), rest[..end].to_owned())
                .is_none(),
            "{name} twice"
        );
        let rest = &rest[end + 1..];
        text = rest.strip_prefix(',').unwrap_or(rest);
        assert!(rest.is_empty() || rest.starts_with(','), "{rest}");
    }
    all
}

/// Asserts that buckets increase up to `+Inf`, which equals the count.
fn check_histogram(name: &str, family: &Family) {
    let mut rows = BTreeMap::<String, Vec<(f64, f64)>>::new();
    let mut counts = BTreeMap::new();
    for (suffix, labels, value) in &family.samples {
        let mut rest = labels.clone();
        let le = rest.remove("le");
        let key = format!("{rest:?}");
        match suffix.as_str() {
            "_bucket" => {
                let le = le
                    .expect("a bound")
                    .replace("+Inf", "inf")
                    .parse()
                    .expect("a bound");
                rows.entry(key).or_default().push((le, *value));
            }
            "_count" => drop(counts.insert(key, *value)),
            _ => assert!(*value >= 0.0),
        }
    }
    assert_eq!(rows.len(), counts.len(), "{name}");
    for (key, row) in rows {
        assert!(
            row.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1),
            "{name}{key}"
        );
        let (bound, all) = *row.last().expect("a bucket");
        assert!(bound.is_infinite() && all == counts[&key], "{name}{key}");
    }
}

/// Calls that [`traffic`] makes.
const CALLS: usize = 9;

/// Traffic of every kind that metrics distinguish.
fn traffic(gate: &Gate) {
    for (workload, stream) in [
        ("w", false),
        ("w", true),
        ("few", false),
        ("few", false),
        ("nobody", false),
        ("lost", false),
        ("again", false),
    ] {
        let workload = format!("x-workload-app: {workload}");
        gate.call(&post(
            "/v1/chat/completions",
            &[&workload],
            &chat("m", stream),
        ));
    }
    gate.call(&post(
        "/v1/embeddings",
        &["x-workload-app: w"],
        r#"{"model":"m","input":"x"}"#,
    ));
    gate.call(&post("/v1/chat/completions", &["x-workload-app: w"], "{"));
    gate.records(CALLS);
}

#[test]
fn the_metrics_page_is_well_formed_and_documented() {
    let upstream = answering();
    let counted = format!("{}\ntokenizers: {{ \"*\": o200k }}\n", config(&upstream));
    let gate = Gate::start(&counted, &[]);
    traffic(&gate);
    let dropped = r#"{"model":"m","messages":[],"seed":1}"#;
    gate.call(&post(
        "/v1/chat/completions",
        &["x-workload-app: other"],
        dropped,
    ));
    gate.records(CALLS + 1);
    testing::eventually("something was counted", || {
        gate.metrics().contains("tollgate_token_drift_ratio{")
    });
    let page = gate.metrics();
    let families = parse(&page);
    for (name, family) in &families {
        assert!(!family.samples.is_empty(), "{name} has no sample");
        match family.kind.as_str() {
            "histogram" => check_histogram(name, family),
            _ => assert!(
                family
                    .samples
                    .iter()
                    .all(|(_, _, v)| v.is_finite() && (*v >= 0.0 || may_be_negative(name))),
                "{name}"
            ),
        }
    }
    let docs = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/metrics.md"
    ))
    .expect("the page of the manual");
    let documented: BTreeSet<&str> = docs
        .lines()
        .filter_map(|l| l.strip_prefix("| `")?.split_once('`'))
        .filter(|(_, rest)| {
            [" | counter", " | gauge", " | histogram"]
                .iter()
                .any(|k| rest.starts_with(k))
        })
        .map(|(name, _)| name)
        .collect();
    assert!(documented.len() > 15, "{documented:?}");
    for name in &documented {
        assert!(
            families.contains_key(*name),
            "{name} is documented and not there"
        );
    }
    for name in families.keys() {
        assert!(
            docs.contains(&format!("`{name}`")) || docs.contains(&format!("`{name}{{")),
            "{name} is not documented"
        );
    }
    assert_eq!(
        gate.metric(
            "http_local_rate_limit_rate_limited",
            &["workload=\"few\"", "kind=\"requests\""]
        ),
        1.0
    );
    promtool(&page);
}

/// Whether a metric is of a difference.
fn may_be_negative(name: &str) -> bool {
    name.ends_with("_ratio") || name.ends_with("_difference")
}

/// Checks the page with Prometheus's own tool.
fn promtool(page: &str) {
    let tool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut tool = tool.expect("promtool is not installed: run `cargo xtask setup`");
    let mut input = tool.stdin.take().expect("it is piped");
    input.write_all(page.as_bytes()).expect("it reads");
    drop(input);
    let output = tool.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    let known = [
        "http_local_rate_limit_rate_limited",
        "gen_ai_client_token_usage_token_sum",
    ];
    let unknown: Vec<&str> = said
        .lines()
        .filter(|l| !l.is_empty() && !known.iter().any(|k| l.contains(k)))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// The white paper's configuration as its reader takes it, with an engine and a provider of the test's.
fn white_paper(upstream: &Upstream) -> Gate {
    let example = include_str!("../../../../examples/white-paper.yaml");
    let (_, config) = example.split_once("listen: {").expect("a listener");
    let (_, config) = config.split_once('\n').expect("more");
    let api = format!("http://{}/v1", upstream.address);
    let config = config
        .replace("http://127.0.0.1:8000/v1", &api)
        .replace(
            "https://generativelanguage.googleapis.com/v1beta/openai, credential: { file: secrets/gemini-api-key }",
            &api,
        );
    Gate::start(&config, &[])
}

fn completions() -> Upstream {
    Upstream::start(|_, _| vec![Step::Send(answer::json(200, answer::COMPLETION))])
}

/// Its "exactly two requests per minute": after half a minute a third one would still be refused.
#[test]
fn the_white_papers_example_has_a_third_call_wait_for_the_whole_minute() {
    let upstream = completions();
    let gate = white_paper(&upstream);
    let workload = ["x-workload-app: terminal-bench-ci"];
    let call = post(
        "/v1/chat/completions",
        &workload,
        &chat("gpt-oss-120b", false),
    );
    assert_eq!([0, 1].map(|_| gate.call(&call).status), [200, 200]);
    let refused = gate.call(&call);
    assert_eq!(refused.status, 429);
    let wait = refused.header("retry-after-ms").expect("it is told");
    let wait: u32 = wait.parse().expect("a number");
    assert!((30_001..=60_000).contains(&wait), "{wait} ms");
}

#[test]
fn the_white_papers_example_names_its_models_in_every_metric_and_prices_them() {
    let upstream = completions();
    let gate = white_paper(&upstream);
    for (workload, asked) in [
        ("swe-rebench-ide", "gpt-oss-120b"),
        ("toolbench-agent", "any"),
    ] {
        let workload = format!("x-workload-app: {workload}");
        let response = gate.call(&post(
            "/v1/chat/completions",
            &[&workload],
            &chat(asked, false),
        ));
        assert_eq!(response.status, 200, "{}", response.text());
    }
    // The engine's tier is billed by the gate's own count, which comes a moment later.
    let counted = [
        "model=\"gpt-oss-120b\"",
        "type=\"input\"",
        "source=\"counted\"",
    ];
    eventually("the prompt is counted", || {
        gate.metric("tollgate_tokens_total", &counted) > 0.0
    });
    let tokens = |model: &str| {
        let label = format!("gen_ai_request_model=\"{model}\"");
        gate.metric("gen_ai_client_token_usage_token_sum", &[&label])
    };
    assert!(
        (tokens("gemini-2.5-flash") - 10.0).abs() < 0.5,
        "as reported"
    );
    let own = tokens("gpt-oss-120b");
    assert!(own > 10.5, "the prompt as Harmony renders it: {own}");
    let page = gate.metrics();
    let reported = page.lines().filter(|line| {
        line.starts_with("tollgate_tokens_total") && line.contains("source=\"reported\"")
    });
    for line in reported.filter(|line| line.contains("gpt-oss-120b")) {
        assert!(line.ends_with(" 0"), "billed by the engine's word: {line}");
    }
    let nameless = ["model=\"other\"", "model=\"\""];
    let of_no_model: Vec<&str> = page
        .lines()
        .filter(|line| nameless.iter().any(|label| line.contains(label)))
        .filter(|line| !line.ends_with(" 0"))
        .collect();
    assert!(of_no_model.is_empty(), "{of_no_model:?}");
    let cost = gate.metric("tollgate_cost_total", &["model=\"gpt-oss-120b\""]);
    assert!(cost > 0.0, "{cost}");
}

#[test]
fn gate_overhead_is_exported_with_microsecond_resolution() {
    let upstream = answering();
    let gate = Gate::start(&config(&upstream), &[]);
    traffic(&gate);
    let families = parse(&gate.metrics());
    let own = &families["tollgate_overhead_seconds"];
    let of_chat = own
        .samples
        .iter()
        .filter(|(_, l, _)| l.get("operation").is_some_and(|o| o == "chat"));
    let bounds: Vec<f64> = of_chat
        .filter(|(suffix, ..)| suffix == "_bucket")
        .filter_map(|(_, labels, _)| labels["le"].parse().ok())
        .collect();
    let fine: Vec<f64> = bounds.iter().copied().filter(|b| *b <= 200e-6).collect();
    assert!(fine.windows(2).all(|w| w[1] - w[0] <= 20.5e-6), "{fine:?}");
    assert!(fine[0] <= 20e-6 && fine.len() >= 10, "{fine:?}");
    let sum = own
        .samples
        .iter()
        .find(|(s, l, _)| s == "_sum" && l["operation"] == "chat");
    let sum = sum.expect("a sum").2;
    assert!(sum > 1e-6 && sum < 1.0, "{sum} s for three calls");
    let records = gate.records(CALLS);
    let recorded: f64 = records
        .iter()
        .filter(|r| r["operation"] == "chat")
        .filter_map(|r| r["own_us"].as_f64())
        .sum();
    assert!(
        (recorded / 1e6 - sum).abs() < 20e-6,
        "records say {recorded} µs, the histogram {sum} s"
    );
}

#[test]
fn a_client_cannot_create_metric_series() {
    let upstream = answering();
    let gate = Gate::start(&config(&upstream), &[]);
    let mut connection = Connection::open(gate.data);
    let mut batch = |range: std::ops::Range<usize>| {
        for n in range {
            let workload = if n.is_multiple_of(2) {
                "w".to_owned()
            } else {
                format!("nobody-{n}")
            };
            let workload = format!("x-workload-app: {workload}");
            let model = format!("model-of-my-own-{n}");
            let response = connection.call(&post(
                "/v1/chat/completions",
                &[&workload],
                &chat(&model, false),
            ));
            assert!(
                matches!(response.status, 200 | 404 | 503),
                "{}",
                response.text()
            );
        }
    };
    batch(0..100);
    let before = gate.metrics();
    batch(100..2_000);
    let after = gate.metrics();
    let series = |page: &str| {
        let lines = page.lines().filter(|l| !l.starts_with('#'));
        lines
            .map(|l| l.rsplit_once(' ').expect("a value").0.to_owned())
            .collect::<BTreeSet<_>>()
    };
    let new: Vec<_> = series(&after)
        .difference(&series(&before))
        .cloned()
        .collect();
    assert!(new.is_empty(), "2,000 model names made new series: {new:?}");
    assert!(!after.contains("model-of-my-own") && !after.contains("nobody-"));
    assert_eq!(gate.metric("tollgate_series_folded_total", &[]), 0.0);
}

#[test]
fn the_worker_count_is_in_metrics_threads_and_log() {
    let upstream = answering();
    let gate = Gate::start(&config(&upstream), &[]);
    let log = gate.log();
    let line = log
        .lines()
        .find(|l| l.contains("ready"))
        .expect("a line that says ready");
    let workers = gate.metric("tollgate_workers", &[]);
    let threads = std::fs::read_dir(format!("/proc/{}/task", gate.id())).expect("it runs");
    let names = threads
        .flatten()
        .filter_map(|t| std::fs::read_to_string(t.path().join("comm")).ok());
    assert_eq!(
        names.filter(|n| n.starts_with("worker-")).count() as f64,
        workers
    );
    assert!(
        line.contains(&format!("workers={workers}")) && line.contains("cpus="),
        "{line}"
    );
    assert!(line.contains("quota="), "{line}");
}
