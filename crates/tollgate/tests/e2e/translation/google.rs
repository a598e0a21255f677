//! Clients of Google's API: the model stands in the path, and routing, rules about models, records and failover see it there.

use std::path::Path;

use serde_json::{Value, json};

use super::{ANSWER, GENERATED, WHO, engine};
use crate::harness::answer::{events, json as answer};
use crate::harness::{Gate, Sdk, Step, Upstream, post, tollgate};

const HELLO: &str = r#"{"contents":[{"role":"user","parts":[{"text":"Hello"}]}],"generationConfig":{"maxOutputTokens":50}}"#;

/// A backend of Google's that answers what it is asked for.
fn google() -> Upstream {
    Upstream::start(|_, seen| {
        vec![Step::Send(match seen.head.contains("alt=sse") {
            true => events(format!("data: {GENERATED}\r\n\r\n").as_bytes()),
            false => answer(200, GENERATED),
        })]
    })
}

#[test]
fn a_client_of_google_is_answered_by_an_engine_of_openai_and_by_one_of_anthropic() {
    for dialect in ["openai", "anthropic"] {
        let engine = engine();
        let config = format!(
            "backends: {{ up: {{ url: http://{}/v1, dialect: {dialect} }} }}\n\
             routes: [ {{ workload: w, match: {{ model: m }}, backend: up }} ]\n",
            engine.addr()
        );
        let gate = Gate::start(&config, &[]);
        let ask = |target: &str| gate.call(&post(target, &[WHO], HELLO));
        let whole = ask("/v1beta/models/m:generateContent");
        assert_eq!(whole.status, 200, "{}", whole.text());
        let told: Value = serde_json::from_slice(&whole.body).expect("JSON");
        assert_eq!(told["candidates"][0]["content"]["role"], "model", "{told}");
        let streamed = ask("/v1beta/models/m:streamGenerateContent?alt=sse").text();
        let last = streamed.trim_end().rsplit("data: ").next().expect("events");
        let last: Value = serde_json::from_str(last).expect("JSON");
        assert!(last["candidates"][0]["finishReason"].is_string(), "{last}");
        let listed = ask("/v1beta/models/m:streamGenerateContent");
        let items: Vec<Value> = serde_json::from_slice(&listed.body).expect("a list");
        assert!(items.len() > 1, "{items:?}");
        let records = gate.records(3);
        for told in [&told, &last, &items[items.len() - 1]] {
            let used = &told["usageMetadata"];
            let its = |record: &&Value| record["completion_tokens"] == used["candidatesTokenCount"];
            let record = records.iter().find(its).expect("its record");
            assert_eq!(record["operation"], "generate_content", "{record}");
            assert_eq!(
                (&record["model"], &record["outcome"]),
                (&json!("m"), &json!("completed"))
            );
            assert_eq!(record["prompt_source"], "reported");
            assert_eq!(record["prompt_tokens"], used["promptTokenCount"]);
            let sum = |name: &str| used[name].as_u64().unwrap_or(0);
            assert_eq!(
                record["completion_tokens"].as_u64(),
                Some(sum("candidatesTokenCount") + sum("thoughtsTokenCount"))
            );
        }
        // No route takes another model, and the refusal is of Google's form.
        let other = ask("/v1beta/models/other:generateContent");
        let told: Value = serde_json::from_slice(&other.body).expect("JSON");
        assert_eq!(
            (other.status, &told["error"]["status"]),
            (404, &json!("NOT_FOUND")),
            "{told}"
        );
    }
}

#[test]
fn a_call_of_google_passes_to_google_byte_for_byte_but_for_its_path() {
    let (studio, vertex) = (google(), google());
    let config = format!(
        "backends:\n  studio: {{ url: http://{}/v1beta, dialect: gemini, credential: {{ inline: goog-key }}, model_names: {{ mine: gemini-3-flash }} }}\n  \
         vertex: {{ url: http://{}/v1/projects/p/locations/l, dialect: vertex, credential: {{ inline: token }} }}\n  \
         bare: {{ url: http://{}/v1beta }}\n\
         routes:\n  - {{ workload: w, match: {{ model: \"vertex-*\" }}, backend: vertex }}\n  \
         - {{ workload: w, match: {{ model: bare }}, backend: bare, model: tunedModels/t }}\n  - {{ workload: w, backend: studio }}\n",
        studio.address, vertex.address, studio.address
    );
    let gate = Gate::start(&config, &[]);
    let body = r#"{ "contents" : [{"parts":[{"text":"a"}]}] , "safetySettings":[], "cachedContents":1.00}"#;
    let table = [
        (
            "mine:generateContent",
            &studio,
            "/v1beta/models/gemini-3-flash:generateContent",
        ),
        (
            "gemini-3-pro:streamGenerateContent?alt=sse",
            &studio,
            "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
        ),
        (
            "gemini-3-pro:streamGenerateContent",
            &studio,
            "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
        ),
        (
            "gemini-3-pro:countTokens",
            &studio,
            "/v1beta/models/gemini-3-pro:countTokens",
        ),
        (
            "vertex-gemini:generateContent",
            &vertex,
            "/v1/projects/p/locations/l/publishers/google/models/vertex-gemini:generateContent",
        ),
        (
            "bare:generateContent",
            &studio,
            "/v1beta/tunedModels/t:generateContent",
        ),
    ];
    for (asked, upstream, path) in table {
        let response = gate.call(&post(&format!("/v1beta/models/{asked}"), &[WHO], body));
        assert_eq!(response.status, 200, "{asked}: {}", response.text());
        let seen = upstream.seen().pop().expect("it arrived");
        assert_eq!(seen.path(), path);
        assert_eq!(seen.body, body.as_bytes(), "{asked}");
        if asked.ends_with("streamGenerateContent") {
            assert_eq!(response.text(), format!("[{GENERATED}]"));
            assert_eq!(response.header("content-type"), Some("application/json"));
        }
    }
    let records = gate.records(table.len());
    let counted = records.iter().filter(|r| r["prompt_tokens"] == 12);
    assert_eq!(counted.count(), table.len() - 1, "{records:?}");
    for model in ["mine", "vertex-gemini", "bare"] {
        assert!(
            records.iter().any(|record| record["model"] == model),
            "{records:?}"
        );
    }
}

#[test]
fn a_call_of_vertex_passes_without_the_project_of_its_client() {
    let google = google();
    let config = format!(
        "backends:\n  vertex: {{ url: http://{0}/v1/projects/ours/locations/here, dialect: vertex, credential: {{ inline: token }} }}\n  \
         bare: {{ url: http://{0}/v1/projects/ours/locations/here }}\n  studio: {{ url: http://{0}/v1beta, dialect: gemini }}\n\
         routes:\n  - {{ workload: w, match: {{ model: bare }}, backend: bare, model: other }}\n  \
         - {{ workload: w, match: {{ model: studio }}, backend: studio }}\n  - {{ workload: w, backend: vertex }}\n",
        google.address
    );
    let gate = Gate::start(&config, &[]);
    let ours = "/v1/projects/ours/locations/here/publishers";
    let table = [
        ("google/models/m", format!("{ours}/google/models/m")),
        ("org/models/m", format!("{ours}/org/models/m")),
        ("google/models/bare", format!("{ours}/google/models/other")),
        ("google/models/studio", "/v1beta/models/studio".to_owned()),
    ];
    for place in ["", "projects/theirs/locations/there/"] {
        for (model, path) in &table {
            let asked = format!("/v1beta1/{place}publishers/{model}:generateContent");
            let response = gate.call(&post(&asked, &[WHO], HELLO));
            assert_eq!(response.status, 200, "{asked}: {}", response.text());
            let seen = google.seen().pop().expect("it arrived");
            assert_eq!(seen.path(), format!("{path}:generateContent"));
            assert_eq!(seen.body, HELLO.as_bytes());
        }
    }
    let mut models: Vec<_> = gate
        .records(8)
        .into_iter()
        .map(|r| r["model"].clone())
        .collect();
    models.sort_by_key(ToString::to_string);
    models.dedup();
    assert_eq!(models, ["bare", "m", "org/m", "studio"]);
}

#[test]
fn googles_sdk_finds_the_models_of_a_route_and_asks_for_them_in_each_way_it_is_set_up() {
    let engine = engine();
    let config = format!(
        "identity: [ {{ keys: {{ file: keys.jsonl }} }} ]\n\
         backends: {{ up: {{ url: http://{}/v1, dialect: openai }} }}\n\
         routes: [ {{ workload: w, match: {{ model: m }}, backend: up }}, {{ workload: w, match: {{ model: org/n }}, backend: up, model: m }} ]\n",
        engine.addr()
    );
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("tollgate.yaml"), &config).expect("a file");
    let key = key(dir.path(), &["m", "org/n"]);
    let keys = std::fs::read(dir.path().join("keys.jsonl")).expect("a file");
    let gate = Gate::start_with_private(&config, &[("keys.jsonl", &keys)]);
    let input = json!({ "base_url": format!("http://{}", gate.data), "key": key });
    let shown = Sdk::Python.run("of_google", &input);
    let (studio, vertex) = (
        json!(["models/m", "models/org/n"]),
        json!(["publishers/google/models/m", "publishers/org/models/n"]),
    );
    let expected = json!({
        "studio": studio,
        "studio_beta": studio,
        "express": vertex,
        "project": vertex,
        "project_stable": vertex,
    });
    assert_eq!(shown, expected);
}

#[test]
fn a_list_of_models_that_no_name_is_known_of_goes_to_a_backend_that_has_it() {
    let google = Upstream::start(|_, _| vec![Step::Send(answer(200, r#"{"models":[]}"#))]);
    let config = |dialect: &str| {
        format!(
            "backends: {{ up: {{ url: http://{}/v1beta, dialect: {dialect} }} }}\n\
             routes: [ {{ workload: w, backend: up }} ]\n",
            google.address
        )
    };
    let ask = |gate: &Gate, path: &str| {
        gate.call(format!("GET {path} HTTP/1.1\r\nhost: g\r\n{WHO}\r\n\r\n").as_bytes())
    };
    let gate = Gate::start(&config("gemini"), &[]);
    let response = ask(&gate, "/v1beta/models?pageSize=2&x=y");
    assert_eq!(response.status, 200, "{}", response.text());
    let seen = google.seen().pop().expect("it arrived");
    assert_eq!(seen.path(), "/v1beta/models?pageSize=2");
    let published = "/v1beta1/publishers/google/models";
    let refused = [
        ("gemini", published),
        ("vertex", published),
        ("openai", "/v1beta/models"),
    ];
    for (dialect, path) in refused {
        let gate = Gate::start(&config(dialect), &[]);
        let response = ask(&gate, path);
        let told: Value = serde_json::from_slice(&response.body).expect("JSON");
        assert_eq!(response.status, 400, "{told}");
        assert_eq!(told["error"]["status"], "INVALID_ARGUMENT", "{told}");
    }
    assert_eq!(google.seen().len(), 1);
}

#[test]
fn a_failover_of_a_client_of_google_crosses_dialects() {
    let busy = Upstream::start(|_, _| {
        vec![Step::Send(answer(
            503,
            r#"{"error":{"code":503,"message":"no","status":"UNAVAILABLE"}}"#,
        ))]
    });
    let hosted = Upstream::start(|_, _| vec![Step::Send(answer(200, ANSWER))]);
    let config = format!(
        "backends:\n  google: {{ url: http://{}/v1beta, dialect: gemini, credential: {{ inline: goog-key }} }}\n  \
         claude: {{ url: http://{}/v1, dialect: anthropic, credential: {{ inline: hosted-key }}, model_names: {{ gemini-3-flash: claude }} }}\n\
         routes: [ {{ workload: w, backend: [google, claude] }} ]\n",
        busy.address, hosted.address
    );
    let gate = Gate::start(&config, &[]);
    let target = "/v1beta/models/gemini-3-flash:generateContent";
    let response = gate.call(&post(target, &[WHO], HELLO));
    assert_eq!(response.status, 200, "{}", response.text());
    let told: Value = serde_json::from_slice(&response.body).expect("JSON");
    assert_eq!(
        told["candidates"][0]["content"]["parts"][0]["text"],
        "Hello."
    );
    assert_eq!(told["usageMetadata"]["promptTokenCount"], 107);
    let [first] = &busy.seen()[..] else {
        panic!("one call")
    };
    assert_eq!(first.body, HELLO.as_bytes());
    let [second] = &hosted.seen()[..] else {
        panic!("one call")
    };
    assert_eq!(second.path(), "/v1/messages");
    let sent: Value = serde_json::from_slice(&second.body).expect("JSON");
    assert_eq!(
        (&sent["model"], &sent["max_tokens"]),
        (&json!("claude"), &json!(50))
    );
}

#[test]
fn embeddings_of_openai_are_made_at_google_and_metered_as_it_reports_them() {
    let google = Upstream::start(|_, _| {
        let made = r#"{"embeddings":[{"values":[0.5,1]}],"usageMetadata":{"promptTokenCount":5}}"#;
        vec![Step::Send(answer(200, made))]
    });
    let config = format!(
        "backends: {{ google: {{ url: http://{}/v1beta, dialect: gemini, credential: {{ inline: goog-key }}, model_names: {{ m: gemini-embedding-001 }} }} }}\n\
         routes: [ {{ workload: w, backend: google }} ]\n",
        google.address
    );
    let gate = Gate::start(&config, &[]);
    let body = r#"{"model":"m","input":"a","encoding_format":"float"}"#;
    let response = gate.call(&post("/v1/embeddings", &[WHO], body));
    let told: Value = serde_json::from_slice(&response.body).expect("JSON");
    assert_eq!(told["data"][0]["embedding"], json!([0.5, 1]), "{told}");
    assert_eq!(told["usage"]["prompt_tokens"], 5);
    let seen = google.seen().pop().expect("it arrived");
    assert_eq!(
        seen.path(),
        "/v1beta/models/gemini-embedding-001:batchEmbedContents"
    );
    let [record] = &gate.records(1)[..] else {
        panic!("one record")
    };
    assert_eq!(
        (
            &record["operation"],
            &record["prompt_tokens"],
            &record["prompt_source"]
        ),
        (&json!("embeddings"), &json!(5), &json!("reported")),
        "{record}"
    );
}

/// Makes a key of the gate's whose holder may ask for these models.
fn key(dir: &Path, models: &[&str]) -> String {
    let config = dir.join("tollgate.yaml");
    let config = config.to_str().expect("UTF-8");
    let mut args = vec!["keys", "create", "--workload", "w", "--json", "--config"];
    args.push(config);
    args.extend(models.iter().flat_map(|model| ["--model", model]));
    let ended = tollgate(dir, &args, &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let made: Value = serde_json::from_str(&ended.out).expect("JSON");
    made["key"].as_str().expect("a key").to_owned()
}

#[test]
fn a_key_of_the_gate_is_taken_in_googles_places_and_neither_sent_on_nor_logged() {
    let google = google();
    let config = format!(
        "workers: 1\nidentity: [ {{ keys: {{ file: keys.jsonl }} }} ]\n\
         backends: {{ google: {{ url: http://{}/v1beta, dialect: gemini, credential: {{ inline: goog-key }} }} }}\n\
         routes: [ {{ workload: w, backend: google }} ]\n",
        google.address
    );
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("tollgate.yaml"), &config).expect("a file");
    let key = key(dir.path(), &["m"]);
    let keys = std::fs::read(dir.path().join("keys.jsonl")).expect("a file");
    let gate = Gate::start_with_private(&config, &[("keys.jsonl", &keys)]);
    let path = "/v1beta/models/m:generateContent";
    let in_header = format!("x-goog-api-key: {key}");
    let table = [
        (path.to_owned(), vec![&*in_header], 200),
        (format!("{path}?key={key}"), vec![], 200),
        (format!("{path}?key={key}x"), vec![], 401),
        (format!("{path}?key={key}"), vec![&*in_header], 400),
        (path.to_owned(), vec![], 401),
        // Another model than its holder may ask for.
        (
            "/v1beta/models/other:generateContent".to_owned(),
            vec![&*in_header],
            404,
        ),
        (
            format!("/v1beta1/publishers/google/models/m:generateContent?key={key}"),
            vec![],
            200,
        ),
        // Elsewhere a query is no place for one.
        (format!("/v1/chat/completions?key={key}"), vec![], 401),
    ];
    for (target, lines, status) in &table {
        let response = gate.call(&post(target, lines, HELLO));
        assert_eq!(response.status, *status, "{target}: {}", response.text());
        assert!(!response.text().contains(&key), "{target}");
    }
    let seen = google.seen();
    assert_eq!(seen.len(), 3);
    for seen in seen {
        assert_eq!(seen.path(), path);
        assert_eq!(seen.header("x-goog-api-key"), ["goog-key"]);
        assert!(!seen.head.contains(&key), "{}", seen.head);
    }
    let _all = gate.records(table.len());
    assert!(!gate.log().contains(&key), "the key was logged");
}
