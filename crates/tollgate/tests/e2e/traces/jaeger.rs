//! The spans in a real Jaeger, over both transports.
//!
//! Runs where `TOLLGATE_E2E_JAEGER` names a Jaeger v1 all-in-one (docs/traces.md says how to build
//! one), and says so where it does not.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::{PARENT, TRACE, call, config, upstream};
use crate::harness::{Connection, Gate, free_address};

struct Jaeger {
    child: Child,
    query: SocketAddr,
    grpc: SocketAddr,
    http: SocketAddr,
}

impl Jaeger {
    fn start() -> Option<Self> {
        let Some(binary) = std::env::var_os("TOLLGATE_E2E_JAEGER") else {
            testing::skip("TOLLGATE_E2E_JAEGER names no Jaeger (docs/traces.md)");
            return None;
        };
        let [
            query,
            grpc,
            http,
            admin,
            query_grpc,
            collector_http,
            collector_grpc,
        ] = std::array::from_fn(|_| free_address());
        let child = Command::new(binary)
            .env("SPAN_STORAGE_TYPE", "memory")
            .arg(format!("--query.http-server.host-port={query}"))
            .arg(format!("--query.grpc-server.host-port={query_grpc}"))
            .arg(format!("--collector.otlp.grpc.host-port={grpc}"))
            .arg(format!("--collector.otlp.http.host-port={http}"))
            .arg(format!(
                "--collector.http-server.host-port={collector_http}"
            ))
            .arg(format!(
                "--collector.grpc-server.host-port={collector_grpc}"
            ))
            .arg(format!("--admin.http.host-port={admin}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("Jaeger starts");
        testing::eventually("Jaeger listens", || {
            [query, grpc, http]
                .iter()
                .all(|at| std::net::TcpStream::connect(at).is_ok())
        });
        Some(Self {
            child,
            query,
            grpc,
            http,
        })
    }

    fn trace(&self, id: &str) -> Value {
        let request = format!("GET /api/traces/{id} HTTP/1.1\r\nhost: jaeger\r\n\r\n");
        let answer = Connection::open(self.query).call(request.as_bytes());
        if answer.status == 200 {
            answer.json()["data"][0].clone()
        } else {
            Value::Null
        }
    }
}

impl Drop for Jaeger {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn jaeger_shows_the_exchange_with_its_attempts() {
    let Some(jaeger) = Jaeger::start() else {
        return;
    };
    let ways = [("http", jaeger.http), ("grpc", jaeger.grpc)];
    for (n, (protocol, address)) in ways.into_iter().enumerate() {
        let upstream = upstream(1);
        let traces = format!(
            "traces: {{ otlp: \"http://{address}\", protocol: {protocol}, service: gate-{protocol} }}"
        );
        let gate = Gate::start(&config(upstream.address, &traces), &[]);
        let id = TRACE.replace("4736", &format!("473{n}"));
        let parent = PARENT.replace(TRACE, &id);
        assert_eq!(
            gate.call(&call(&[&format!("traceparent: {parent}")]))
                .status,
            200
        );
        let spans = || {
            jaeger.trace(&id)["spans"]
                .as_array()
                .cloned()
                .unwrap_or_default()
        };
        testing::eventually("Jaeger has three spans", || spans().len() == 3);
        let spans = spans();
        let named = |name: &str| -> Vec<&Value> {
            let fits = |span: &&Value| {
                span["operationName"]
                    .as_str()
                    .is_some_and(|n| n.starts_with(name))
            };
            spans.iter().filter(fits).collect()
        };
        let [exchange] = named("chat m")[..] else {
            panic!("{spans:?}")
        };
        let attempts = named("attempt ");
        assert_eq!(attempts.len(), 2, "{spans:?}");
        for attempt in attempts {
            assert_eq!(attempt["references"][0]["spanID"], exchange["spanID"]);
        }
        let tag = |span: &Value, key: &str| {
            let tags = span["tags"].as_array().expect("tags").iter();
            tags.clone()
                .find(|tag| tag["key"] == key)
                .map(|tag| tag["value"].clone())
        };
        assert_eq!(tag(exchange, "gen_ai.usage.output_tokens"), Some(22.into()));
        assert_eq!(tag(exchange, "span.kind"), Some("server".into()));
        assert_eq!(tag(exchange, "tollgate.workload"), Some("w".into()));
        let service =
            &jaeger.trace(&id)["processes"][exchange["processID"].as_str().expect("a process")];
        assert_eq!(service["serviceName"], format!("gate-{protocol}"));
    }
}
