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
        told.contains("translated at claude chat becomes messages\n"),
        "{told}"
    );
    assert!(
        !told.contains("azure chat"),
        "it passes to a path of its own: {told}"
    );
    let told = explained(&["--path", "/v1beta/models/m:generateContent"]);
    for becomes in [
        "own generate_content becomes chat",
        "claude generate_content becomes messages",
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
