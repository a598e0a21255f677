//! Every client in front of every backend: the official SDKs, and what each backend was asked held against the types of its own SDK.
//!
//! Invariant: the table in docs/translation.md says what this test has seen.
//! Not here: what each member becomes (`vectors/translate`).

mod fakes;

use std::path::Path;

use serde_json::{Value, json};

use super::WHO;
use crate::harness::{Gate, Sdk, Seen, Step, Upstream};

/// Clients by their SDK, with what they speak.
const CLIENTS: [(&str, &str, &[&str]); 5] = [
    ("openai", "`openai`, chat", &["openai", "azure"]),
    ("responses", "`openai`, Responses", &[]),
    ("anthropic", "`anthropic`", &["anthropic"]),
    ("gemini", "`google-genai`", &["gemini", "vertex"]),
    (
        "vertex",
        "`google-genai`, `vertexai=True`",
        &["gemini", "vertex"],
    ),
];
/// How many calls a client makes, of which one fails.
const CALLS: usize = 6;
const BACKENDS: [&str; 7] = [
    "openai",
    "azure",
    "anthropic",
    "gemini",
    "vertex",
    "bedrock",
    "cohere",
];

/// Where the API of a backend is.
fn root(dialect: &str) -> &'static str {
    match dialect {
        "azure" => "/openai",
        "gemini" => "/v1beta",
        "vertex" => "/v1/projects/p/locations/l",
        "bedrock" => "",
        "cohere" => "/v2",
        _ => "/v1",
    }
}

/// The path of a call to it that is no stream, and of one that is.
fn paths(dialect: &str) -> [&'static str; 2] {
    match dialect {
        "azure" => ["/openai/deployments/its-m/chat/completions"; 2],
        "anthropic" => ["/v1/messages"; 2],
        "gemini" => [
            "/v1beta/models/its-m:generateContent",
            "/v1beta/models/its-m:streamGenerateContent?alt=sse",
        ],
        "vertex" => [
            "/v1/projects/p/locations/l/publishers/google/models/its-m:generateContent",
            "/v1/projects/p/locations/l/publishers/google/models/its-m:streamGenerateContent?alt=sse",
        ],
        "bedrock" => ["/model/its-m/converse", "/model/its-m/converse-stream"],
        "cohere" => ["/v2/chat"; 2],
        _ => ["/v1/chat/completions"; 2],
    }
}

/// The header in which its key comes, and the value.
fn key(dialect: &str) -> (&'static str, &'static str) {
    match dialect {
        "azure" => ("api-key", "its-key"),
        "anthropic" => ("x-api-key", "its-key"),
        "gemini" => ("x-goog-api-key", "its-key"),
        _ => ("authorization", "Bearer its-key"),
    }
}

/// A backend of this dialect, behind a gate.
fn gate_of(dialect: &'static str) -> (Upstream, Gate) {
    let upstream = Upstream::start(move |_, seen| {
        vec![Step::Send(match seen.path().ends_with("/rerank") {
            true => fakes::ranked(),
            false => fakes::answered(dialect, seen),
        })]
    });
    let config = format!(
        "backends: {{ up: {{ url: \"http://{}{}\", dialect: {dialect}, credential: {{ inline: its-key }}, model_names: {{ m: its-m }} }} }}\n\
         routes: [ {{ workload: w, backend: up }} ]\n",
        upstream.address,
        root(dialect)
    );
    let gate = Gate::start(&config, &[]);
    (upstream, gate)
}

/// Asserts what a backend was asked: where, with which key, and by the types of its SDK.
fn is_asked_well(dialect: &str, seen: &[Seen]) {
    let (header, value) = key(dialect);
    for seen in seen {
        let is_known = paths(dialect).contains(&seen.path());
        assert!(is_known, "{dialect} was asked at {}", seen.path());
        assert_eq!(seen.header(header), [value], "{dialect}");
    }
    let bodies: Vec<Value> = seen.iter().map(Seen::json).collect();
    let input = json!({ "dialect": dialect, "bodies": bodies });
    let judged = Sdk::Python.run("validated", &input);
    assert_eq!(judged, json!(bodies.len()), "{dialect}");
}

/// Has every client use a backend of this dialect. One process has all of them: it takes seconds to load them.
fn answers_every_client(dialect: &'static str) {
    let (upstream, gate) = gate_of(dialect);
    let clients = CLIENTS.map(|(client, ..)| client);
    let input = json!({ "base_url": format!("http://{}", gate.data), "sdks": clients });
    let shown = Sdk::Python.run("matrix", &input);
    for client in clients {
        let all = ["text", "stream", "tools", "streamed_tools", "error"];
        assert_eq!(shown[client], json!(all), "{client} in front of {dialect}");
    }
    is_asked_well(dialect, &upstream.seen());
    // What was counted is what the backend said, whichever form it said it in.
    let told = gate.records(CLIENTS.len() * CALLS);
    let answered = told.iter().filter(|record| record["status"] == 200);
    assert_eq!(answered.clone().count(), CLIENTS.len() * (CALLS - 1));
    for record in answered {
        let counts = [&record["prompt_tokens"], &record["completion_tokens"]];
        assert_eq!(counts, [&json!(12), &json!(3)], "{dialect}: {record}");
        assert_eq!(record["prompt_source"], "reported");
    }
}

#[test]
fn every_client_is_answered_by_every_backend() {
    std::thread::scope(|scope| {
        for dialect in BACKENDS {
            scope.spawn(move || answers_every_client(dialect));
        }
    });
    let mut table = vec![format!("| client | `{}` |", BACKENDS.join("` | `"))];
    table.push(format!("|---|{}", "---|".repeat(BACKENDS.len())));
    let mut rows: Vec<String> = CLIENTS
        .iter()
        .map(|(_, said, own)| {
            let cells = BACKENDS.map(|dialect| match own.contains(&dialect) {
                true => " as it came |",
                false => " translated |",
            });
            format!("| {said} |{}", cells.concat())
        })
        .collect();
    table.append(&mut rows);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/translation.md");
    let page = std::fs::read_to_string(page).expect("a page");
    let table = table.join("\n");
    assert!(
        page.contains(&table),
        "docs/translation.md has not\n{table}"
    );
}

#[test]
fn coheres_sdk_has_documents_ranked_by_cohere_and_by_engines() {
    for dialect in ["cohere", "openai"] {
        let (upstream, gate) = gate_of(dialect);
        let input = json!({ "base_url": format!("http://{}", gate.data), "header": WHO });
        let shown = Sdk::Python.run("ranked", &input);
        assert_eq!(shown, json!([[1], [1]]), "{dialect}");
        for seen in upstream.seen() {
            assert_eq!(seen.path(), format!("{}/rerank", root(dialect)));
            assert_eq!(seen.json()["model"], "its-m");
        }
    }
}
