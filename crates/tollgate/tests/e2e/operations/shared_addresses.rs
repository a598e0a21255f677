//! What an upstream reads with the rights of its account, where several workloads use that: addresses, as they become what an API
//! reads, and members that name sources.

use serde_json::{Value, json};

use super::{passed, quiet, refused};
use crate::harness::{Gate, Upstream, post};

/// Two workloads share an account with each API, and one has its own.
fn config(upstream: &Upstream) -> String {
    let mut backends = String::new();
    let mut routes = String::new();
    for (name, root, dialect) in [
        ("ge", "/v1beta", "gemini"),
        ("ve", "/v1/projects/p/locations/l", "vertex"),
        ("be", "", "bedrock"),
        ("oa", "/v1", "[openai, responses]"),
    ] {
        for whose in ["own", "shared"] {
            backends.push_str(&format!(
                "  {name}-{whose}: {{ url: http://{}{root}, dialect: {dialect}, credential: {{ inline: {whose}-secret-{name} }} }}\n",
                upstream.address
            ));
        }
        routes.push_str(&format!(
            "  - {{ workload: own, match: {{ model: \"{name}*\" }}, backend: {name}-own }}\n  \
             - {{ workload: [one, two], match: {{ model: \"{name}*\" }}, backend: {name}-shared }}\n"
        ));
    }
    format!("backends:\n{backends}routes:\n{routes}")
}

const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";
const RESPONSES: &str = "/v1/responses";

fn chat(model: &str, part: &Value) -> Value {
    json!({ "model": model, "messages": [{ "role": "user", "content": [part] }] })
}

fn picture(model: &str, url: &str) -> (&'static str, Value) {
    let part = json!({ "type": "image_url", "image_url": { "url": url } });
    (CHAT, chat(model, &part))
}

fn source(model: &str, kind: &str, url: &str) -> (&'static str, Value) {
    let mut body = chat(
        model,
        &json!({ "type": kind, "source": { "type": "url", "url": url } }),
    );
    body["max_tokens"] = 5.into();
    (MESSAGES, body)
}

fn input(model: &str, part: &Value) -> (&'static str, Value) {
    let body = json!({ "model": model, "input": [{ "role": "user", "content": [part] }] });
    (RESPONSES, body)
}

#[test]
fn an_address_of_the_account_is_refused_where_a_translation_would_make_one_of_it() {
    let upstream = quiet();
    let gate = Gate::start(&config(&upstream), &[]);
    let of_google = "https://generativelanguage.googleapis.com/v1beta/files/x.png";
    let kept = "https://storage.googleapis.com/bucket/x.png";
    let file = |url: &str| json!({ "type": "input_file", "file_url": url });
    let image = |url: &str| json!({ "type": "input_image", "image_url": url });
    let given =
        json!({ "type": "file", "file": { "file_data": "s3://b/x.pdf", "filename": "x.pdf" } });
    for ((path, body), becomes) in [
        (picture("ge", "gs://b/x.png"), "fileUri"),
        (picture("ge", of_google), "fileUri"),
        (picture("ge", kept), "fileUri"),
        (picture("ge", "files/x"), "fileUri"),
        (source("ge", "image", of_google), "fileUri"),
        (source("ge", "document", "gs://b/x.pdf"), "fileUri"),
        (input("ge", &file("gs://b/x.pdf")), "fileUri"),
        (input("ge", &image(kept)), "fileUri"),
        (picture("ve", "gs://b/x.png"), "fileUri"),
        (picture("ve", kept), "fileUri"),
        (source("ve", "document", "gs://b/x.pdf"), "fileUri"),
        (picture("be.m", "s3://b/x.png"), "s3Location"),
        ((CHAT, chat("be.m", &given)), "s3Location"),
        (source("be.m", "document", "s3://b/x.pdf"), "s3Location"),
        (input("be.m", &file("s3://b/x.pdf")), "s3Location"),
        // Endpoints of Google's that speak OpenAI's read such, too.
        (picture("oa", "gs://b/x.png"), "gs://b/x.png"),
        (picture("oa", of_google), of_google),
    ] {
        let body = body.to_string();
        for workload in ["one", "two"] {
            let call = post(path, &[&format!("x-workload-app: {workload}")], &body);
            let message = refused(&gate, &upstream, &call, 400, "account_shared");
            assert!(message.contains("`credential`"), "{message}");
        }
        gate.call(&post(path, &["x-workload-app: own"], &body));
        let seen = upstream.seen().pop().expect("it arrived");
        let sent = String::from_utf8_lossy(&seen.body).into_owned();
        assert!(sent.contains(becomes), "{body} became {sent}");
    }
}

#[test]
fn an_address_that_anybody_can_fetch_passes_on_a_shared_account() {
    let upstream = quiet();
    let gate = Gate::start(&config(&upstream), &[]);
    for (path, body) in [
        picture("ge", "https://example.com/x.png"),
        picture("oa", "https://storage.googleapis.com/public/x.png"),
        picture("oa", "data:image/png;base64,aGk="),
        source("ve", "image", "https://example.com/x.png"),
    ] {
        let before = upstream.seen().len();
        gate.call(&post(path, &["x-workload-app: one"], &body.to_string()));
        assert_eq!(upstream.seen().len(), before + 1, "{body}");
    }
}

#[test]
fn a_refused_address_names_its_place_in_the_body() {
    let upstream = quiet();
    let gate = Gate::start(&config(&upstream), &[]);
    let (path, body) = picture("ge", "https://storage.googleapis.com/bucket/x.png");
    let call = post(path, &["x-workload-app: one"], &body.to_string());
    let message = refused(&gate, &upstream, &call, 400, "account_shared");
    assert!(message.contains("messages[0].content[0]"), "{message}");
}

#[test]
fn members_by_which_a_provider_reads_with_the_accounts_rights_are_refused_where_it_is_shared() {
    let upstream = quiet();
    let gate = Gate::start(&config(&upstream), &[]);
    let said = json!([{ "role": "user", "content": "h" }]);
    let items = |item: Value| json!({ "model": "oa", "input": [item] });
    for (path, body, member) in [
        (
            CHAT,
            json!({ "model": "oa", "messages": said, "extra_body": { "google": { "cached_content": "cachedContents/x" } } }),
            "cached_content",
        ),
        (
            CHAT,
            json!({ "model": "oa", "messages": said, "google": { "cached_content": "cachedContents/x" } }),
            "cached_content",
        ),
        (
            CHAT,
            json!({ "model": "oa", "messages": said, "data_sources": [{ "type": "azure_search", "parameters": { "index_name": "x" } }] }),
            "data_sources",
        ),
        (
            RESPONSES,
            json!({ "model": "oa", "input": "h", "tools": [{ "type": "file_search", "collection_ids": ["c"] }] }),
            "collection_ids",
        ),
        (
            RESPONSES,
            json!({ "model": "oa", "input": "h", "tools": [{ "type": "azure_ai_search", "azure_ai_search": { "indexes": [{ "index_name": "x" }] } }] }),
            "azure_ai_search",
        ),
        (
            RESPONSES,
            json!({ "model": "oa", "input": "h", "agent": { "type": "agent_reference", "name": "x" } }),
            "agent",
        ),
        (
            RESPONSES,
            json!({ "model": "oa", "input": "h", "agent_reference": { "name": "x" } }),
            "agent_reference",
        ),
        (
            RESPONSES,
            items(json!({ "type": "message", "id": "msg_1" })),
            "input[].id",
        ),
        (
            RESPONSES,
            items(json!({ "type": "file_search_call", "id": "fs_1" })),
            "input[].id",
        ),
    ] {
        let body = body.to_string();
        let call = post(path, &["x-workload-app: one"], &body);
        let message = refused(&gate, &upstream, &call, 400, "account_shared");
        assert!(message.contains(member), "{message}");
        passed(
            &gate,
            &upstream,
            &post(path, &["x-workload-app: own"], &body),
        );
    }
}

#[test]
fn what_google_reads_with_the_accounts_rights_is_refused_where_it_is_shared() {
    let upstream = quiet();
    let gate = Gate::start(&config(&upstream), &[]);
    let generate = "/v1beta/models/ve:generateContent";
    let tool = |tool: Value| json!({ "contents": [{ "role": "user", "parts": [{ "text": "h" }] }], "tools": [tool] });
    for (body, member) in [
        (
            tool(json!({ "retrieval": { "externalApi": { "endpoint": "https://x" } } })),
            "externalApi",
        ),
        (
            tool(json!({ "retrieval": { "vertexAiSearch": { "engine": "x" } } })),
            "vertexAiSearch",
        ),
        (
            tool(json!({ "retrieval": { "vertexRagStore": { "ragResources": [{}] } } })),
            "vertexRagStore",
        ),
    ] {
        let body = body.to_string();
        let refused = gate.call(&post(generate, &["x-workload-app: one"], &body));
        assert_eq!(refused.status, 400, "{body}: {}", refused.text());
        assert!(
            refused.text().contains(&format!("`{member}`")),
            "{}",
            refused.text()
        );
        assert!(
            refused.text().contains("ACCOUNT_SHARED"),
            "{}",
            refused.text()
        );
        passed(
            &gate,
            &upstream,
            &post(generate, &["x-workload-app: own"], &body),
        );
    }
}
