//! A real gate that asks an endpoint picker made of Envoy's own messages and gRPC's own library (`xtask/picker`).
//!
//! Runs where `TOLLGATE_E2E_KUBERNETES` names a directory with the command `picker`, as `cargo xtask kubernetes` makes it.
//! Not here: what follows from each answer (`policy`), the protocol's odd cases (`callout`).

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use testing::eventually;

use crate::harness::{Gate, Step, Upstream, free_address, post};

/// A picker that runs, and what it wrote.
struct Picker {
    child: Child,
    address: SocketAddr,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Picker {
    /// One that names these endpoints in turn; none where there is no such command.
    fn start(endpoints: &[String]) -> Option<Self> {
        let Some(binaries) = std::env::var_os("TOLLGATE_E2E_KUBERNETES") else {
            testing::skip("TOLLGATE_E2E_KUBERNETES names no picker (cargo xtask kubernetes)");
            return None;
        };
        Some(Self::at(
            &Path::new(&binaries).join("picker"),
            "127.0.0.1:0",
            endpoints,
        ))
    }

    fn at(program: &Path, listen: &str, endpoints: &[String]) -> Self {
        let mut command = Command::new(program);
        command.args(["-listen", listen, "-endpoints", &endpoints.join(",")]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("a picker");
        let mut out = BufReader::new(child.stdout.take().expect("its output"));
        let mut first = String::new();
        out.read_line(&mut first).expect("a line");
        let address = first.trim().strip_prefix("listens ").expect("its address");
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                kept.lock().expect("no panic").push(line);
            }
        });
        Self {
            address: address.parse().expect("an address"),
            child,
            lines,
        }
    }

    fn lines(&self, begin: &str) -> Vec<String> {
        let lines = self.lines.lock().expect("no panic");
        let lines = lines.iter().filter(|line| line.starts_with(begin));
        lines.cloned().collect()
    }
}

impl Drop for Picker {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// An engine that answers with this status.
fn engine(status: &'static str) -> Upstream {
    Upstream::start(move |_, _| {
        let body =
            r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}"#;
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        vec![Step::Send((head + body).into_bytes())]
    })
}

/// A pool of these, before one more backend, with this said of the picker.
fn config(pool: &[String], beside: &str, picker: &str) -> String {
    let endpoints = pool.iter().map(|at| format!("{{ url: http://{at}/v1 }}"));
    format!(
        "backends:\n  pool: {{ endpoints: [ {} ], balancing: {{ policy: round_robin, picker: {picker} }} }}\n  \
         beside: {{ url: http://{beside}/v1 }}\n\
         routes: [ {{ workload: w, backend: [pool, beside], forward_headers: [x-pick] }}, {{ workload: alone, backend: pool, forward_headers: [x-pick] }} ]\n",
        endpoints.collect::<Vec<_>>().join(", ")
    )
}

fn ask(gate: &Gate, workload: &str, pick: &str) -> u16 {
    let workload = format!("x-workload-app: {workload}");
    let pick = format!("x-pick: {pick}");
    let body = r#"{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hello"}]}"#;
    let request = post("/v1/chat/completions", &[&workload, &pick], body);
    gate.call(&request).status
}

#[test]
fn endpoint_picker_is_asked_followed_and_told_who_served() {
    let engines = [
        engine("200 OK"),
        engine("503 Service Unavailable"),
        engine("200 OK"),
    ];
    let beside = engine("200 OK");
    let pool: Vec<String> = engines.iter().map(|of| of.address.to_string()).collect();
    let Some(picker) = Picker::start(&pool) else {
        return;
    };
    let at = format!("{{ grpc: http://{} }}", picker.address);
    let gate = Gate::start(&config(&pool, &beside.address.to_string(), &at), &[]);
    // The second of the list answers where the first is sick; what is of no pool is passed over.
    let list = format!("{},192.0.2.1:9,{}", pool[1], pool[2]);
    assert_eq!(ask(&gate, "w", &list), 200);
    eventually("the picker is told who served", || {
        picker.lines("served") == [format!("served {} 200", pool[2])]
    });
    assert!(picker.lines("asked")[0].starts_with("asked POST /v1/chat/completions "));
    // By turns, as the picker says, and never by the policy.
    for _ in 0..6 {
        assert_eq!(ask(&gate, "w", ""), 200);
    }
    let records = gate.records(7);
    assert!(
        records.iter().all(|record| record["chosen_by"] == "picker"),
        "{records:?}"
    );
    assert_eq!(records[0]["endpoint"], "pool#3");
    assert_eq!(records[0]["attempts"], 2);
    // It sheds load, and the client is told when to come again.
    assert_eq!(ask(&gate, "w", "429"), 429);
    assert_eq!(ask(&gate, "w", "503"), 503);
}

#[test]
fn endpoint_picker_that_is_gone_closes_its_pool_or_leaves_it_open() {
    let engines = [engine("200 OK"), engine("200 OK")];
    let beside = engine("200 OK");
    let pool: Vec<String> = engines.iter().map(|of| of.address.to_string()).collect();
    let Some(picker) = Picker::start(&pool) else {
        return;
    };
    for (on_failure, backend, alone) in [("deny", "beside", 503), ("allow", "pool", 200)] {
        let nobody = free_address();
        let at = format!("{{ grpc: http://{nobody}, on_failure: {on_failure}, timeout: 1s }}");
        let gate = Gate::start(&config(&pool, &beside.address.to_string(), &at), &[]);
        assert_eq!(ask(&gate, "w", ""), 200, "{on_failure}");
        assert_eq!(gate.records(1)[0]["backend"], backend, "{on_failure}");
        assert_eq!(ask(&gate, "alone", ""), alone, "{on_failure}");
        // One that names nobody of the pool picks nobody either.
        let at = format!(
            "{{ grpc: http://{}, on_failure: {on_failure} }}",
            picker.address
        );
        gate.reconfigure(&config(&pool, &beside.address.to_string(), &at));
        eventually("the picker is asked", || {
            ask(&gate, "alone", "192.0.2.1:9");
            !picker.lines("asked").is_empty()
        });
        assert_eq!(ask(&gate, "alone", "192.0.2.1:9"), alone, "{on_failure}");
        assert_eq!(ask(&gate, "alone", &pool[1]), 200, "{on_failure}");
    }
}
