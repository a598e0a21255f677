//! Roles, and what changes something.

use super::*;

const JSON: &str = "content-type: application/json\r\n";

/// One credential for each role, whose name and secret are the role's.
fn by_role() -> Served {
    let one = |role: Role| (role.as_str(), role.as_str(), Roles::NONE.and(role));
    served_to(Some(json!({})), &Role::ALL.map(one))
}

fn with(secret: &str) -> String {
    format!("authorization: Bearer {secret}\r\n")
}

impl Served {
    fn done(&self) -> Vec<String> {
        std::mem::take(&mut self.gateway.done.lock().expect("no panic"))
    }
}

#[test]
fn each_role_opens_its_own_resources_and_no_other() {
    let served = by_role();
    let rows = [
        ("GET", "/metrics", "read"),
        ("GET", "/stats/prometheus", "read"),
        ("GET", "/config", "read"),
        ("GET", "/ledger", "read"),
        ("GET", "/api/v1/budgets", "read"),
        ("GET", "/api/v1/config", "read"),
        ("GET", "/api/v1/health", "read"),
        ("GET", "/api/v1/ledger", "read"),
        ("GET", "/api/v1/tokens", "read"),
        ("GET", "/api/v1/limits", "read"),
        ("POST", "/api/v1/reload", "operate"),
        ("POST", "/api/v1/drain", "operate"),
        ("GET", "/api/v1/keys", "keys"),
        ("POST", "/api/v1/keys", "keys"),
        ("GET", "/api/v1/keys/0123456789", "keys"),
        ("PATCH", "/api/v1/keys/0123456789", "keys"),
        ("DELETE", "/api/v1/keys/0123456789", "keys"),
        ("POST", "/api/v1/keys/0123456789/rotate", "keys"),
    ];
    for (method, path, needs) in rows {
        let (status, _, body) = served.ask(method, path, "");
        assert_eq!(
            (status, code(&body).as_str()),
            (401, "credential_required"),
            "{path}"
        );
        for role in Role::ALL.map(Role::as_str) {
            let (status, _, body) = served.ask(method, path, &with(role));
            if role == needs {
                // What it needs besides is another test's.
                assert!(
                    matches!(status, 200..300 | 400),
                    "{method} {path} {role}: {status} {body}"
                );
            } else {
                assert_eq!(
                    (status, code(&body).as_str()),
                    (403, "role_required"),
                    "{path} {role}"
                );
                assert!(
                    body.contains(&format!("the role {needs}, and {role} has {role}")),
                    "{body}"
                );
            }
        }
    }
    assert_eq!(
        served.done(),
        [
            "reload",
            "drain",
            "revoke 0123456789",
            "rotate 0123456789 None"
        ]
    );
    for role in Role::ALL.map(Role::as_str) {
        let (status, _, body) = served.ask("GET", "/api/v1/caller", &with(role));
        let caller: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(
            (status, caller),
            (
                200,
                json!({ "name": role, "by": "bearer", "roles": [role] })
            )
        );
        assert_eq!(served.ask("GET", "/api/v1", &with(role)).0, 200);
    }
}

#[test]
fn nothing_is_changed_for_who_brings_no_credential() {
    let served = served(Some(json!({})), None);
    assert_eq!(
        served.json("/api/v1/caller"),
        json!({ "name": null, "by": null, "roles": ["read"] })
    );
    for (method, path, role) in [
        ("POST", "/api/v1/reload", "operate"),
        ("POST", "/api/v1/drain", "operate"),
        ("GET", "/api/v1/keys", "keys"),
        ("POST", "/api/v1/keys", "keys"),
        ("PATCH", "/api/v1/keys/0123456789", "keys"),
        ("DELETE", "/api/v1/keys/0123456789", "keys"),
    ] {
        // A credential that nothing is configured for is none.
        for lines in [String::new(), with("keys")] {
            let (status, _, body) = served.ask(method, path, &lines);
            assert_eq!(
                (status, code(&body).as_str()),
                (403, "role_required"),
                "{path}"
            );
            assert!(body.contains(&format!("roles: [{role}]")), "{body}");
        }
    }
    assert!(served.done().is_empty());
}

#[test]
fn a_configuration_is_read_anew_and_taken_or_refused_with_its_fault() {
    let served = by_role();
    let (status, _, body) = served.ask("POST", "/api/v1/reload", &with("operate"));
    assert_eq!(
        (status, body.as_str()),
        (200, "{\n  \"version\": \"0123abcd\"\n}\n")
    );
    let (status, _, body) = served.send("POST", "/api/v1/reload", &(with("operate") + JSON), "{}");
    assert_eq!(
        (status, code(&body).as_str()),
        (422, "configuration_refused")
    );
    assert!(body.contains("tollgate.yaml:1: a fault"));
    let lines = with("operate") + JSON;
    let (status, _, body) = served.send("POST", "/api/v1/reload", &lines, r#"{"force":true}"#);
    assert_eq!((status, code(&body).as_str()), (400, "invalid_request"));
    let (status, head, _) = served.ask("POST", "/api/v1/drain", &with("operate"));
    assert!(status == 202 && head.contains("cache-control: no-store"));
    assert_eq!(served.done(), ["reload", "reload", "drain"]);
}

#[test]
fn a_key_is_made_shown_once_changed_rotated_and_revoked() {
    let served = by_role();
    let lines = with("keys") + JSON;
    let asked = r#"{"workload":"chat","limits":[{"amount":2},{"amount":3}]}"#;
    let (status, head, body) = served.send("POST", "/api/v1/keys", &lines, asked);
    assert_eq!(status, 201, "{body}");
    assert!(head.contains("cache-control: no-store"), "{head}");
    assert!(head.contains("location: /api/v1/keys/0123456789"), "{head}");
    let made: Value = serde_json::from_str(&body).expect("JSON");
    let is = json!({ "id": ID, "workload": "chat", "key": "canary-new", "in_force": true });
    assert_eq!(made, is);

    let path = format!("/api/v1/keys/{ID}");
    let (status, _, body) = served.ask("GET", &path, &with("keys"));
    assert!(status == 200 && !body.contains("canary"), "{body}");
    let change = |path: &str, body| served.send("PATCH", path, &lines, body);
    let (status, _, body) = change(&path, r#"{"name":"ours"}"#);
    assert!(status == 200 && !body.contains("canary"), "{body}");
    assert!(body.contains("in_force"), "{body}");
    assert_eq!(served.done().pop(), Some(format!("change {ID} ours")));
    for (body, says) in [("", "null takes away"), (r#"{"workload":"x"}"#, "workload")] {
        let (status, _, answer) = change(&path, body);
        assert_eq!((status, code(&answer).as_str()), (400, "invalid_request"));
        assert!(answer.contains(says), "{answer}");
    }
    let (status, _, _) = change("/api/v1/keys/none", r#"{"name":"ours"}"#);
    assert_eq!(status, 404);
    let (status, _, _) = change("/api/v1/keys/revoked", r#"{"name":"ours"}"#);
    assert_eq!(status, 409);
    let rotate = format!("{path}/rotate");
    for (body, says) in [
        ("", "None"),
        ("{}", "None"),
        (r#"{"overlap":"1h"}"#, "Some(\"1h\")"),
    ] {
        let (status, head, body) = served.send("POST", &rotate, &lines, body);
        assert!(status == 200 && body.contains("canary-next"), "{body}");
        assert!(head.contains("cache-control: no-store"), "{head}");
        let last = served.done().pop();
        assert_eq!(last, Some(format!("rotate {ID} {says}")));
    }
    let (status, _, body) = served.ask("DELETE", &path, &with("keys"));
    assert!(status == 200 && !body.contains("canary"), "{body}");
    assert_eq!(served.done(), [format!("revoke {ID}")]);

    for (method, path, is) in [
        ("GET", "/api/v1/keys/none", (404, "unknown_key")),
        ("DELETE", "/api/v1/keys/none", (404, "unknown_key")),
        ("POST", "/api/v1/keys/none/rotate", (404, "unknown_key")),
        ("POST", "/api/v1/keys/revoked/rotate", (409, "key_revoked")),
        ("GET", "/api/v1/keys/", (404, "unknown_resource")),
        ("GET", "/api/v1/keys//rotate", (404, "unknown_resource")),
        ("GET", "/api/v1/keys/a/b/rotate", (404, "unknown_resource")),
        ("PATCH", "/api/v1/keys", (405, "method_not_allowed")),
        (
            "GET",
            "/api/v1/keys/none/rotate",
            (405, "method_not_allowed"),
        ),
    ] {
        let (status, _, body) = served.ask(method, path, &with("keys"));
        assert_eq!((status, code(&body).as_str()), is, "{method} {path}");
    }
}

#[test]
fn keys_come_in_pages() {
    let served = by_role();
    let ask = |query: &str| {
        let path = format!("/api/v1/keys{query}");
        let (status, _, body) = served.ask("GET", &path, &with("keys"));
        (status, serde_json::from_str::<Value>(&body).expect("JSON"))
    };
    let ids = |keys: &Value| keys["keys"].as_array().expect("a list").len();
    let (status, all) = ask("");
    assert_eq!((status, ids(&all), &all["next"]), (200, 5, &Value::Null));
    let (_, first) = ask("?limit=2");
    assert_eq!((ids(&first), &first["next"]), (2, &json!("1")));
    let (_, last) = ask("?limit=3&after=1");
    assert_eq!((ids(&last), &last["next"]), (3, &Value::Null));
    assert_eq!(ask("?limit=0").0, 400);
    assert_eq!(ask("?colour=red").0, 400);
}

#[test]
fn a_body_that_cannot_be_taken_is_told_what_is_wrong_and_where() {
    let served = by_role();
    let long = format!("{{\"workload\":\"{}\"}}", "x".repeat(64 << 10));
    let rows = [
        (JSON, "", 400, "invalid_request", "workload"),
        (JSON, "{", 400, "invalid_request", "the body: EOF"),
        (JSON, "[]", 400, "invalid_request", "the body"),
        (JSON, "null", 400, "invalid_request", "the body"),
        (JSON, "\u{0}", 400, "invalid_request", "the body"),
        (
            JSON,
            "{}",
            400,
            "invalid_request",
            "missing field `workload`",
        ),
        (
            JSON,
            r#"{"workload":1}"#,
            400,
            "invalid_request",
            "workload: invalid type: integer",
        ),
        (
            JSON,
            r#"{"workload":"a","workload":"b"}"#,
            400,
            "invalid_request",
            "duplicate field",
        ),
        (
            JSON,
            r#"{"workload":"a","colour":1}"#,
            400,
            "invalid_request",
            "unknown field `colour`",
        ),
        (
            JSON,
            r#"{"workload":"a","limits":[{"amount":1},{"amount":-1}]}"#,
            400,
            "invalid_request",
            "limits[1].amount",
        ),
        (
            JSON,
            r#"{"workload":"a"} {}"#,
            400,
            "invalid_request",
            "trailing",
        ),
        (JSON, &long, 413, "body_too_large", "65536"),
        (
            "",
            r#"{"workload":"a"}"#,
            415,
            "unsupported_media_type",
            "content-type",
        ),
        (
            "content-type: text/plain\r\n",
            r#"{"workload":"a"}"#,
            415,
            "unsupported_media_type",
            "",
        ),
        (
            "content-type: application/x-www-form-urlencoded\r\n",
            "workload=a",
            415,
            "unsupported_media_type",
            "",
        ),
    ];
    for (kind, body, status, is, says) in rows {
        let lines = with("keys") + kind;
        let (got, _, answer) = served.send("POST", "/api/v1/keys", &lines, body);
        assert_eq!((got, code(&answer).as_str()), (status, is), "{body:.80}");
        assert!(answer.contains(says), "{body:.80}: {answer}");
    }
    // What comes in pieces is measured as it comes.
    let lines = with("keys") + JSON + "transfer-encoding: chunked\r\n";
    let chunked = format!("{:x}\r\n{long}\r\n0\r\n\r\n", long.len());
    let (status, _, _) = served.raw("POST", "/api/v1/keys", &lines, &chunked);
    assert_eq!(status, 413);
    assert!(served.done().is_empty());
    let lines = with("keys") + "content-type: application/json; charset=utf-8\r\n";
    assert_eq!(
        served
            .send("POST", "/api/v1/keys", &lines, r#"{"workload":"a"}"#)
            .0,
        201
    );
}

#[test]
fn a_gate_without_keys_of_its_own_says_what_to_configure() {
    let served = served(None, Some("canary"));
    let (status, _, body) = served.ask("GET", "/api/v1/keys", &with("canary"));
    assert_eq!((status, code(&body).as_str()), (404, "no_keys"));
    assert!(
        body.contains("identity: [ { keys: { file: keys.jsonl } } ]"),
        "{body}"
    );
}
