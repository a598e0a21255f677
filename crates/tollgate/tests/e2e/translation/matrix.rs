//! Every client in front of every backend: the official SDKs of two languages, and what each backend was asked held against the types of
//! its own SDK.
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
    (
        "anthropic",
        "`anthropic`",
        &["anthropic", "anthropic-on-vertex"],
    ),
    ("gemini", "`google-genai`", &["gemini", "vertex"]),
    (
        "vertex",
        "`google-genai`, `vertexai=True`",
        &["gemini", "vertex"],
    ),
];
/// What each client does, of which the last is a call that fails.
const CHECKS: [&str; 6] = [
    "text",
    "image",
    "stream",
    "tools",
    "streamed_tools",
    "error",
];
/// How many calls it makes for that.
const CALLS: usize = 7;
/// An image of one point, in whose base64 are both signs that the two alphabets write otherwise.
const IMAGE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGNg+MUOAAH/AQKk1JEHAAAAAElFTkSuQmCC";
const BACKENDS: [&str; 8] = [
    "openai",
    "azure",
    "anthropic",
    "anthropic-on-vertex",
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
        "vertex" | "anthropic-on-vertex" => "/v1/projects/p/locations/l",
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
        "anthropic-on-vertex" => [
            "/v1/projects/p/locations/l/publishers/anthropic/models/its-m:rawPredict",
            "/v1/projects/p/locations/l/publishers/anthropic/models/its-m:streamRawPredict",
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

/// A backend of this dialect.
fn fake_of(dialect: &'static str) -> Upstream {
    Upstream::start(move |_, seen| {
        vec![Step::Send(match seen.path().ends_with("/rerank") {
            true => fakes::ranked(),
            false => fakes::answered(dialect, seen),
        })]
    })
}

/// The same, behind a gate.
fn gate_of(dialect: &'static str) -> (Upstream, Gate) {
    let upstream = fake_of(dialect);
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

/// How many of these calls show the image, byte for byte.
fn images(seen: &[Seen]) -> usize {
    let is_shown = |seen: &&Seen| {
        let body = String::from_utf8_lossy(&seen.body);
        // Google's own clients write the other alphabet, which passes as it came to Google.
        body.contains(IMAGE) || body.contains(&IMAGE.replace('+', "-").replace('/', "_"))
    };
    seen.iter().filter(is_shown).count()
}

/// Has every client of a language use a backend of this dialect. One process has all of them: it takes seconds to load them.
fn answers_every_client(sdk: Sdk, dialect: &'static str) {
    let (upstream, gate) = gate_of(dialect);
    let clients = CLIENTS.map(|(client, ..)| client);
    let input =
        json!({ "base_url": format!("http://{}", gate.data), "sdks": clients, "image": IMAGE });
    let shown = sdk.run("matrix", &input);
    for client in clients {
        assert_eq!(
            shown[client],
            json!(CHECKS),
            "{client} ({sdk:?}) in front of {dialect}"
        );
    }
    let seen = upstream.seen();
    is_asked_well(dialect, &seen);
    assert_eq!(images(&seen), clients.len(), "{dialect}");
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
            scope.spawn(move || {
                for sdk in Sdk::BOTH {
                    answers_every_client(sdk, dialect);
                }
            });
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

/// What no client of these speaks is faked as its own SDK understands it.
#[test]
fn the_sdks_of_cohere_and_aws_understand_the_fakes_of_their_services() {
    let [cohere, bedrock] = ["cohere", "bedrock"].map(fake_of);
    let input = json!({
        "cohere": format!("http://{}", cohere.address),
        "bedrock": format!("http://{}", bedrock.address),
        "image": IMAGE,
    });
    let shown = Sdk::Python.run("at_fake", &input);
    assert_eq!(shown, json!({ "cohere": CHECKS, "bedrock": CHECKS }));
    for (dialect, fake) in [("cohere", cohere), ("bedrock", bedrock)] {
        let seen = fake.seen();
        assert_eq!((seen.len(), images(&seen)), (CALLS, 1), "{dialect}");
        for seen in seen {
            assert!(paths(dialect).contains(&seen.path()), "{}", seen.path());
        }
    }
}

#[test]
fn coheres_sdk_has_documents_ranked_by_cohere_and_by_engines() {
    for (sdk, dialect) in Sdk::BOTH
        .into_iter()
        .flat_map(|sdk| [(sdk, "cohere"), (sdk, "openai")])
    {
        let (upstream, gate) = gate_of(dialect);
        let input = json!({ "base_url": format!("http://{}", gate.data), "header": WHO });
        let shown = sdk.run("ranked", &input);
        assert_eq!(shown, json!([[1], [1]]), "{sdk:?}, {dialect}");
        for seen in upstream.seen() {
            assert_eq!(seen.path(), format!("{}/rerank", root(dialect)));
            assert_eq!(seen.json()["model"], "its-m");
        }
    }
}
