//! Objects that an upstream stores for an account, and which workloads may refer to them.

use super::{passed, quiet, refused, request};
use crate::harness::{Gate, Upstream, post, tollgate};

/// `alone` has an account of its own; `one` and `two` share one over two backends. `alone` and `one` are
/// further fields of their routes.
fn config(upstream: &Upstream, alone: &str, one: &str) -> String {
    format!(
        "backends:\n  own: {{ url: http://{0}/v1, credential: {{ inline: own-secret }} }}\n  \
         shared: {{ url: http://{0}/v1, credential: {{ inline: shared-secret }} }}\n  \
         again: {{ url: http://{0}/v1, credential: {{ inline: shared-secret, header: x-api-key }} }}\n\
         routes:\n  - {{ workload: alone, backend: own{alone} }}\n  \
         - {{ workload: one, backend: shared{one} }}\n  - {{ workload: two, backend: again }}\n",
        upstream.address
    )
}

#[test]
fn ids_of_stored_objects_are_refused_where_the_account_is_shared() {
    let upstream = quiet();
    let gate = Gate::start(&config(&upstream, "", ""), &[]);
    for (path, body, member) in [
        (
            "/v1/responses",
            r#"{"model":"m","previous_response_id":"resp_1"}"#,
            "previous_response_id",
        ),
        (
            "/v1/responses",
            r#"{"model":"m","conversation":"conv_1"}"#,
            "conversation",
        ),
        (
            "/v1/responses",
            r#"{"conversation":{"id":"conv_1"},"model":"m"}"#,
            "conversation",
        ),
        (
            "/v1/responses/input_tokens",
            r#"{"model":"m","conversation":"conv_1"}"#,
            "conversation",
        ),
        (
            "/v1/messages",
            r#"{"model":"m","container":"c_1"}"#,
            "container",
        ),
        (
            "/v1/chat/completions",
            r#"{"model":"m","messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}]}"#,
            "file_id",
        ),
        (
            "/v1/responses",
            r#"{"model":"m","input":[{"type":"item_reference","id":"msg_1"}]}"#,
            "input[].id",
        ),
        (
            "/v1/responses",
            r#"{"model":"m","input":"x","tools":[{"type":"file_search","vector_store_ids":["vs_1"]}]}"#,
            "vector_store_ids",
        ),
        (
            "/v1/messages",
            r#"{"model":"m","messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"file_1"}}]}]}"#,
            "file_id",
        ),
        (
            "/v1/messages",
            r#"{"model":"m","max_tokens":9,"messages":[],"mcp_servers":[{"type":"url","url":"https://example.com/mcp","name":"x"}]}"#,
            "mcp_servers",
        ),
        (
            "/v1/responses",
            r#"{"model":"m","input":"x","tools":[{"type":"mcp","server_label":"d","connector_id":"connector_dropbox"}]}"#,
            "connector_id",
        ),
        (
            "/v1/embeddings",
            r#"{"model":"m","input":"x","file_id":"file-1"}"#,
            "file_id",
        ),
        (
            "/v1/moderations",
            r#"{"model":"m","input":[{"type":"image_url","image_url":{"url":"gs://b/x.png"}}]}"#,
            "url",
        ),
    ] {
        for workload in ["one", "two"] {
            let call = post(path, &[&format!("x-workload-app: {workload}")], body);
            let message = refused(&gate, &upstream, &call, 400, "account_shared");
            assert!(message.contains(member), "{message}");
            assert!(message.contains("`credential`"), "{message}");
        }
        passed(
            &gate,
            &upstream,
            &post(path, &["x-workload-app: alone"], body),
        );
    }
}

#[test]
fn a_file_of_googles_is_refused_where_the_account_is_shared() {
    let upstream = quiet();
    let gate = Gate::start(&config(&upstream, "", ""), &[]);
    let ask = |uri: &str| {
        let body =
            format!(r#"{{"contents":[{{"parts":[{{"fileData":{{"fileUri":"{uri}"}}}}]}}]}}"#);
        let path = "/v1beta/models/m:generateContent";
        gate.call(&post(path, &["x-workload-app: one"], &body))
    };
    let refused = ask("gs://bucket/x");
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.text().contains("`fileUri`"), "{}", refused.text());
    assert!(upstream.seen().is_empty());
    for (member, body) in [
        (
            "modelArmorConfig",
            r#"{"contents":[],"modelArmorConfig":{"promptTemplateName":"projects/p/locations/l/templates/t"}}"#,
        ),
        (
            "enterpriseWebSearch",
            r#"{"contents":[],"tools":[{"enterpriseWebSearch":{}}]}"#,
        ),
        (
            "parallelAiSearch",
            r#"{"contents":[],"tools":[{"parallelAiSearch":{}}]}"#,
        ),
        (
            "mcpServers",
            r#"{"contents":[],"tools":[{"mcpServers":[{"name":"x"}]}]}"#,
        ),
    ] {
        let path = "/v1beta/models/m:generateContent";
        let refused = gate.call(&post(path, &["x-workload-app: one"], body));
        assert_eq!(refused.status, 400, "{}", refused.text());
        assert!(refused.text().contains(member), "{}", refused.text());
    }
    assert!(upstream.seen().is_empty());
    // What anybody can fetch is no object of the account.
    ask("https://www.youtube.com/watch?v=x");
    assert_eq!(upstream.seen().len(), 1);
}

#[test]
fn stored_objects_are_reachable_only_by_the_workload_that_owns_the_account() {
    let upstream = quiet();
    let calls = ", unread: [ { call: [GET /v1/files, \"GET /v1/files/{id}\", \
                 \"DELETE /v1/responses/{id}\"] } ]";
    let gate = Gate::start(&config(&upstream, calls, ""), &[]);
    for (method, path) in [
        ("GET", "/v1/files"),
        ("GET", "/v1/files/file-1"),
        ("DELETE", "/v1/responses/resp_1"),
    ] {
        let (seen, _) = passed(&gate, &upstream, &request(method, path, "alone"));
        assert!(
            seen.head.starts_with(&format!("{method} {path} ")),
            "{}",
            seen.head
        );
        assert_eq!(seen.header("authorization"), ["Bearer own-secret"]);
        for workload in ["one", "two"] {
            let call = request(method, path, workload);
            refused(&gate, &upstream, &call, 404, "operation_not_allowed");
        }
    }
}

#[test]
fn check_refuses_a_route_to_stored_objects_of_a_shared_account() {
    let upstream = quiet();
    let dir = tempfile::tempdir().expect("a directory");
    let check = |more: &str| {
        std::fs::write(
            dir.path().join("tollgate.yaml"),
            config(&upstream, "", more),
        )
        .expect("a file");
        let ended = tollgate(dir.path(), &["check", "-c", "tollgate.yaml"], &[]);
        (ended.code, format!("{}{}", ended.out, ended.err))
    };
    for more in [
        ", unread: [ { call: \"GET /v1/files/{id}\" } ]",
        ", unread: [ { call: \"GET /v1/files/{id}\", shared: true } ]",
        ", unread: [ { call: GET /v1/files } ]",
    ] {
        let (code, said) = check(more);
        assert_eq!(code, Some(1), "{more}: {said}");
        assert!(
            said.contains("routes[1].unread[0].call: \"GET /v1/files"),
            "{said}"
        );
        assert!(
            said.contains("credentials that no other workload"),
            "{said}"
        );
    }
    let (code, said) = check(", unread: [ { call: POST /v1/fim/completions, shared: true } ]");
    assert_eq!(code, Some(0), "{said}");
}
