//! The published JSON Schema: fresh, and of one mind with the decoder.

use std::path::Path;

use serde_json::Value as Json;

use super::examples::example_world;
use crate::json_schema;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[test]
#[expect(clippy::disallowed_methods, reason = "UPDATE=1 rewrites the page")]
fn the_published_schema_is_fresh() {
    let path = Path::new(ROOT).join("docs/config.schema.json");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, json_schema()).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap();
    assert!(
        published == json_schema(),
        "docs/config.schema.json is stale: UPDATE=1 cargo test -p config"
    );
}

#[test]
fn what_the_decoder_takes_the_schema_takes() {
    for name in ["white-paper", "vllm-and-gemini", "failover", "counting"] {
        let text = std::fs::read_to_string(format!("{ROOT}/examples/{name}.yaml")).unwrap();
        let loaded = example_world(&text).load().unwrap();
        let schema: Json = serde_json::from_str(&json_schema()).unwrap();
        let mut faults = Vec::new();
        check(&schema, &schema, loaded.document.json(), name, &mut faults);
        assert!(faults.is_empty(), "{faults:#?}");
    }
}

/// Each field that the schema has is known to the decoder, each field that it requires is missed
/// by the decoder, and no other field is known.
#[test]
fn the_schema_and_the_decoder_have_the_same_fields() {
    let schema: Json = serde_json::from_str(&json_schema()).unwrap();
    let records = [
        ("Document", ""),
        ("Listen", "listen: "),
        ("Tls", "listen: { tls: "),
        ("Listener", "listen: { listeners: [ "),
        ("IdentitySource", "identity: "),
        ("Keys", "identity: { keys: "),
        ("Jwt", "identity: { jwt: "),
        ("Jwks", "identity: { jwt: { jwks: "),
        ("Introspection", "identity: { introspection: "),
        ("TokenReview", "identity: { token_review: "),
        ("TokenFile", "identity: { token_review: { token: "),
        ("Login", "identity: { login: "),
        ("OAuthServer", "identity: { login: { oauth: "),
        ("Authority", "authority: "),
        ("Rule", "authority: { rules: [ "),
        ("Rego", "authority: { rego: "),
        ("ExtAuthz", "authority: { ext_authz: "),
        (
            "SubjectAccessReview",
            "authority: { subject_access_review: ",
        ),
        ("Cors", "cors: "),
        ("Admin", "admin: "),
        ("Bearer", "admin: { bearer: "),
        ("AdminBearer", "admin: { bearers: { b: "),
        ("StaticKey", "identity: { static_keys: { b: "),
        ("AdminLogin", "admin: { login: "),
        ("ClientAddress", "client_address: "),
        ("Drain", "drain: "),
        ("Bounds", "bounds: "),
        ("Backend", "backends: { b: "),
        ("Endpoint", "backends: { b: { endpoints: [ "),
        ("UpstreamCredential", "backends: { b: { credential: "),
        ("OAuth", "backends: { b: { credential: { oauth: "),
        (
            "PrivateKey",
            "backends: { b: { credential: { oauth: { private_key: ",
        ),
        ("TokenExchange", "backends: { b: { credential: { exchange: "),
        ("Google", "backends: { b: { credential: { google: "),
        (
            "Federation",
            "backends: { b: { credential: { google: { federation: ",
        ),
        ("Azure", "backends: { b: { credential: { azure: "),
        (
            "IssuedToken",
            "backends: { b: { credential: { azure: { federated_token: ",
        ),
        ("Aws", "backends: { b: { credential: { aws: "),
        (
            "WebIdentity",
            "backends: { b: { credential: { aws: { web_identity: ",
        ),
        ("ClientCertificate", "backends: { b: { client_certificate: "),
        ("Credential", "traces: { credential: "),
        ("Timeouts", "backends: { b: { timeouts: "),
        ("ProxyAt", "backends: { b: { proxy: "),
        ("ProxyCredential", "backends: { b: { proxy: { credential: "),
        ("Ejection", "backends: { b: { ejection: "),
        ("Pool", "backends: { b: { pool: "),
        ("Route", "routes: [ "),
        ("Retries", "routes: [ { retries: "),
        ("ReadToEnd", "routes: [ { abandon: "),
        ("ReadToEndBounds", "routes: [ { abandon: { read_to_end: "),
        ("Unread", "routes: [ { unread: [ "),
        ("Match", "routes: [ { match: "),
        ("Limit", "routes: [ { limits: [ "),
        ("Fee", "routes: [ { charge: "),
        ("FieldEdits", "routes: [ { request_headers: "),
        ("Rewrite", "routes: [ { rewrite: "),
        ("Redirect", "routes: [ { redirect: "),
        ("RouteCors", "routes: [ { cors: "),
        ("Mirror", "routes: [ { mirrors: [ "),
        ("Mcp", "mcp: "),
        ("McpServer", "mcp: { servers: { s: "),
        ("McpRoute", "mcp: { servers: none, routes: [ "),
        ("McpOAuth", "mcp: { oauth: "),
        (
            "ToolLimits",
            "mcp: { servers: none, routes: [ { tool_limits: [ ",
        ),
        ("Selection", "mcp: { servers: { s: { tools: "),
        ("NamesWhen", "mcp: { servers: { s: { tools: { allow: [ "),
        ("Price", "prices: { m: "),
        ("PriceAt", "prices: { m: { at: { b: "),
        ("PriceFor", "prices: { m: { for: "),
        ("PriceVolume", "prices: { m: { for: { volume: "),
        ("Tier", "prices: { m: { tiers: [ "),
        ("Budget", "budgets: { b: "),
        ("TokenizerFiles", "tokenizers: { m: "),
        ("BalancingAt", "backends: { a: { balancing: "),
        ("EndpointPicker", "backends: { a: { balancing: { picker: "),
        ("EngineStart", "tokenizers: { m: { engine: "),
        ("Counting", "counting: "),
        ("CalibrationAt", "counting: { calibration: "),
        ("Batches", "routes: [ { batches: "),
        ("Ledger", "ledger: "),
        ("Postgres", "ledger: { postgres: "),
        ("Responses", "responses: "),
        ("ResponseStore", "responses: { store: "),
        ("Traces", "traces: "),
    ];
    let defs = schema["$defs"].as_object().unwrap();
    assert_eq!(defs.len(), records.len());
    for (name, opening) in records {
        let record = &defs[name];
        let properties = record["properties"].as_object().unwrap();
        let empty = faults_of(opening, "{}");
        for field in properties.keys() {
            let with = faults_of(opening, &format!("{{ {field}: \u{7} }}"));
            assert!(!with.contains("unknown field"), "{name}.{field}: {with}");
            // What of the document is required hangs on what else is there.
            let record = if opening.is_empty() {
                &schema["anyOf"][0]
            } else {
                record
            };
            let required = record["required"]
                .as_array()
                .is_some_and(|r| r.contains(&Json::from(field.as_str())));
            assert_eq!(
                empty.contains(&format!(": {field} is missing"))
                    || (opening.is_empty() && empty.contains(&format!("{field} is missing"))),
                required,
                "{name}.{field}: {empty}"
            );
        }
        let unknown = faults_of(opening, "{ zzzzzzzz: 1 }");
        let hint = format!("the fields here are {}", listed(&unknown));
        let mut known: Vec<&str> = hint["the fields here are ".len()..].split(", ").collect();
        known.sort_unstable();
        assert_eq!(
            known,
            properties.keys().map(String::as_str).collect::<Vec<_>>(),
            "{name}: {unknown}"
        );
        assert_eq!(record["additionalProperties"], Json::from(false));
    }
}

/// Faults of a document that holds `record` at the end of `opening`.
fn faults_of(opening: &str, record: &str) -> String {
    let closing: String = opening
        .chars()
        .rev()
        .filter_map(|c| match c {
            '{' => Some('}'),
            '[' => Some(']'),
            _ => None,
        })
        .collect();
    let record = record.replace('\u{7}', "[[]]");
    let text = format!("{opening}{record}{closing}");
    super::world::World::with(&text)
        .load()
        .unwrap_err()
        .to_string()
}

fn listed(faults: &str) -> String {
    let line = faults
        .lines()
        .find(|l| l.contains("unknown field"))
        .unwrap();
    line.split("the fields here are ")
        .nth(1)
        .unwrap()
        .to_owned()
}

/// As much of JSON Schema as the published one uses, patterns apart.
fn check(root: &Json, schema: &Json, value: &Json, at: &str, faults: &mut Vec<String>) {
    if let Some(target) = schema["$ref"].as_str() {
        let target = root
            .pointer(target.trim_start_matches('#'))
            .expect("a definition");
        return check(root, target, value, at, faults);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let fits = any.iter().any(|one| {
            let mut faults = Vec::new();
            check(root, one, value, at, &mut faults);
            faults.is_empty()
        });
        if !fits {
            faults.push(format!("{at}: {value} fits none of {any:?}"));
        }
        return;
    }
    if let Some(of) = schema["enum"].as_array() {
        if !of.contains(value) {
            faults.push(format!("{at}: {value} is none of {of:?}"));
        }
        return;
    }
    let fits = match schema["type"].as_str().expect("a type") {
        "object" => value.is_object(),
        "array" => value.as_array().is_some_and(|a| !a.is_empty()),
        // The redacted document keeps decimals as they are written, in text.
        "number" => value.is_number() || value.as_str().is_some_and(|s| s.parse::<f64>().is_ok()),
        "integer" => value.is_u64(),
        "string" => value.is_string(),
        other => panic!("{other}"),
    };
    if !fits {
        faults.push(format!("{at}: {value} is no {}", schema["type"]));
        return;
    }
    for (key, member) in value.as_object().into_iter().flatten() {
        match (&schema["properties"][key], &schema["additionalProperties"]) {
            (Json::Null, Json::Bool(false) | Json::Null) => {
                faults.push(format!("{at}.{key}: not allowed"))
            }
            (Json::Null, rest) => check(root, rest, member, &format!("{at}.{key}"), faults),
            (property, _) => check(root, property, member, &format!("{at}.{key}"), faults),
        }
    }
    for key in schema["required"].as_array().into_iter().flatten() {
        if value.get(key.as_str().unwrap()).is_none() {
            faults.push(format!("{at}: {key} is missing"));
        }
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        check(
            root,
            &schema["items"],
            item,
            &format!("{at}[{index}]"),
            faults,
        );
    }
}
