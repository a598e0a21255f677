//! `tollgate explain` by header and by default.

use std::path::Path;

use crate::harness::tollgate;

#[test]
fn explain_says_whether_a_header_named_the_workload_or_the_default_was_taken() {
    let explained = |words: &[&str]| {
        let words = [&["explain", "--model", "m"], words].concat();
        let environment = [("OPENAI_API_KEY", "k"), ("COLUMNS", "200")];
        let ended = tollgate(Path::new("."), &words, &environment);
        assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
        ended.out
    };
    let header = ["--header", "x-workload-app: default"];
    let by_header = explained(&header);
    let line = "workload   default, known by the header x-workload-app\n";
    assert!(by_header.contains(line), "{by_header}");
    let by_default = explained(&[]);
    let line = "workload   default, by `default` of `identity`, as the call has no header x-workload-app\n";
    assert!(by_default.contains(line), "{by_default}");
    let json = explained(&["--json"]);
    assert!(json.contains("\"identity\": \"default\""), "{json}");
    let json = explained(&["--json", header[0], header[1]]);
    assert!(json.contains("\"identity\": \"header\""), "{json}");
}

#[test]
fn explain_says_of_a_limit_whether_it_holds_in_any_window() {
    let dir = tempfile::tempdir().expect("a directory");
    let document = "backends: { up: { url: http://127.0.0.1:1/v1, models: m } }\n\
                    routes: [ { workload: w, backend: up, limits: \
                    [ { requests: 2, per: 1m, window: rolling }, { tokens: 9, per: 1h } ] } ]\n";
    std::fs::write(dir.path().join("tollgate.yaml"), document).expect("a file");
    let words = [
        "explain",
        "--model",
        "m",
        "--header",
        "x-workload-app: w",
        "--json",
    ];
    let ended = tollgate(dir.path(), &words, &[]);
    let said: serde_json::Value = serde_json::from_str(&ended.out).expect("JSON");
    let limits = serde_json::json!(["2 requests in any 60s", "9 tokens in 3600s"]);
    assert_eq!(said["limits"], limits, "{}", ended.err);
}

#[test]
fn explain_lists_the_budgets_that_count_the_model() {
    let dir = tempfile::tempdir().expect("a directory");
    let document = "backends: { up: { url: http://127.0.0.1:1/v1, models: [ gpt-5, claude-1 ] } }\n\
                    routes: [ { workload: w, backend: up } ]\n\
                    budgets: { all: { tokens: 9, per: day }, claudes: { model: \"claude-*\", tokens: 5, per: day } }\n\
                    ledger: { path: usage.db }\n";
    std::fs::write(dir.path().join("tollgate.yaml"), document).expect("a file");
    for (model, counted) in [
        ("gpt-5", &["all: 9 tokens each day"][..]),
        (
            "claude-1",
            &["all: 9 tokens each day", "claudes: 5 tokens each day"],
        ),
    ] {
        let workload = "x-workload-app: w";
        let words = ["explain", "--model", model, "--header", workload, "--json"];
        let ended = tollgate(dir.path(), &words, &[]);
        let said: serde_json::Value = serde_json::from_str(&ended.out).expect("JSON");
        assert_eq!(said["budgets"], serde_json::json!(counted), "{}", ended.err);
    }
}

#[test]
fn explain_says_what_a_call_becomes_at_a_backend_of_another_dialect() {
    let dir = tempfile::tempdir().expect("a directory");
    let document = "backends:\n  own: { url: http://127.0.0.1:1/v1, dialect: openai }\n  \
                    claude: { url: http://127.0.0.1:2/v1, dialect: anthropic }\n  \
                    azure: { url: http://127.0.0.1:3/openai, dialect: azure, query: { api-version: v } }\n\
                    routes: [ { workload: w, backend: [own, claude, azure] } ]\n";
    std::fs::write(dir.path().join("tollgate.yaml"), document).expect("a file");
    let explained = |more: &[&str]| {
        let words = ["explain", "--model", "m", "--header", "x-workload-app: w"];
        let ended = tollgate(dir.path(), &[&words, more].concat(), &[("COLUMNS", "200")]);
        assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
        ended.out
    };
    let told = explained(&[]);
    assert!(
        told.contains("translated at claude from chat completions to messages\n"),
        "{told}"
    );
    assert!(
        !told.contains("at azure"),
        "it passes to a path of its own: {told}"
    );
    let told = explained(&["--path", "/v1beta/models/m:generateContent"]);
    for becomes in [
        "own from generateContent to chat completions",
        "claude from generateContent to messages",
    ] {
        assert!(told.contains(becomes), "{told}");
    }
    let told = explained(&["--path", "/v1/embeddings"]);
    let line = "translated claude speaks an API without embeddings, and is not asked\n";
    assert!(told.contains(line), "{told}");
    let said: serde_json::Value = serde_json::from_str(&explained(&["--json"])).expect("JSON");
    assert_eq!(
        said["translated"],
        serde_json::json!({ "claude": "messages" })
    );
}

#[test]
fn explain_says_the_refusal_of_a_call_that_no_backend_can_be_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let document = "backends:\n  claude: { url: http://127.0.0.1:2/v1, dialect: anthropic }\n  \
                    engine: { url: http://127.0.0.1:1/v1, dialect: openai }\n\
                    routes:\n  - { workload: w, backend: claude }\n  \
                    - { workload: both, backend: [claude, engine] }\n";
    std::fs::write(dir.path().join("tollgate.yaml"), document).expect("a file");
    let body = r#"{"model":"m","messages":[{"role":"user","content":"x"}],"logit_bias":{"1":1}}"#;
    std::fs::write(dir.path().join("body.json"), body).expect("a file");
    let explained = |workload: &str, more: &[&str]| {
        let header = format!("x-workload-app: {workload}");
        let words = ["explain", "--json", "--header", &header];
        let ended = tollgate(dir.path(), &[&words, more].concat(), &[]);
        let said: serde_json::Value = serde_json::from_str(&ended.out).expect(&ended.err);
        assert_eq!(ended.code, Some(i32::from(said["would"] != "go upstream")));
        said
    };
    let of = |call: &[&str], what: &str| {
        let said = explained("w", call);
        assert_eq!(said["code"], "call_not_translatable", "{said}");
        assert_eq!(said["route"], "claude", "{said}");
        let message = said["message"].as_str().expect("a message");
        assert!(message.contains(what), "{message}");
        // The other backend of that route can be told it.
        assert_eq!(explained("both", call)["would"], "go upstream");
    };
    of(&["--body", "body.json"], "logit_bias");
    of(&["--path", "/v1/embeddings", "--model", "m"], "embeddings");
    for path in ["/v1/chat/completions", "/v1/messages", "/v1/responses"] {
        let said = explained("w", &["--path", path, "--model", "m"]);
        assert_eq!(said["would"], "go upstream", "{path}: {said}");
    }
    let google = "/v1beta/models/m:generateContent";
    assert_eq!(explained("w", &["--path", google])["would"], "go upstream");
}

#[test]
fn explain_takes_an_editors_list_of_servers_and_says_what_becomes_of_a_call_of_a_tool() {
    let dir = tempfile::tempdir().expect("a directory");
    let list = r#"{"mcpServers":{"github":{"url":"http://127.0.0.1:1/mcp"}}}"#;
    std::fs::write(dir.path().join("mcp.json"), list).expect("a file");
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"github__search","arguments":{}}}"#;
    std::fs::write(dir.path().join("call.json"), message).expect("a file");
    let explained = |words: &[&str]| {
        let words = [&["explain", "--json"], words].concat();
        let ended = tollgate(dir.path(), &words, &[("OPENAI_API_KEY", "k")]);
        let said = serde_json::from_str::<serde_json::Value>(&ended.out);
        said.unwrap_or_else(|_| panic!("{}{}", ended.out, ended.err))
    };
    let by_file = explained(&["--mcp-config", "mcp.json", "--tool", "github__search"]);
    let in_place = explained(&["--mcp-json", list, "--tool", "github__search"]);
    let by_message = ["--path", "/mcp", "--body", "call.json"];
    let by_message = explained(&[&["--mcp-config", "mcp.json"], &by_message[..]].concat());
    for said in [by_file, in_place, by_message] {
        assert_eq!(said["would"], "go upstream", "{said}");
        assert_eq!(
            said["backends"],
            serde_json::json!(["mcp:github"]),
            "{said}"
        );
        let tool = said["tool"].as_str().unwrap_or_default();
        assert!(tool.contains("mcp.servers.github"), "{said}");
    }
    let other = explained(&["--mcp-config", "mcp.json", "--tool", "gitlab__search"]);
    assert_eq!(other["code"], "mcp_not_found");
    let reason = other["reason"].as_str().unwrap_or_default();
    assert!(
        reason.contains("the servers of this route are github"),
        "{reason}"
    );
}
