//! What `/config` may show.

use serde_json::json;

use super::world::World;

#[test]
fn secrets_are_masked_and_the_rest_stands_as_written() {
    let mut world = World::with(
        "workers: 2
backends:
  a: { url: \"http://${HOST}/v1\", credential: { inline: canary-literal } }
  b: { url: http://127.0.0.1:1/v1, credential: { inline: \"${KEY}\", header: x-api-key } }
  c: { endpoints: [ { url: http://127.0.0.1:2/v1, credential: { file: \"${DIR}/key\" } } ] }
  d: { url: http://127.0.0.1:3/v1, credential: { env: KEY } }
routes: [ { workload: w, backend: [a, b, c, d] } ]
prices: { m: { input: 0.10, output: 1 } }
",
    );
    world
        .set("HOST", "127.0.0.1:9")
        .set("KEY", "canary-variable")
        .set("DIR", "canary-dir");
    world.put("canary-dir/key", "canary-file");
    let shown = world.load().unwrap().document;
    let expected = json!({
        "workers": 2,
        "backends": {
            "a": { "url": "http://${HOST}/v1", "credential": { "inline": "***" } },
            "b": { "url": "http://127.0.0.1:1/v1", "credential": { "inline": "***", "header": "x-api-key" } },
            "c": { "endpoints": [ { "url": "http://127.0.0.1:2/v1", "credential": { "file": "***" } } ] },
            "d": { "url": "http://127.0.0.1:3/v1", "credential": { "env": "KEY" } },
        },
        "routes": [ { "workload": "w", "backend": ["a", "b", "c", "d"] } ],
        "prices": { "m": { "input": "0.10", "output": 1 } },
    });
    assert_eq!(*shown.json(), expected);
}

#[test]
fn a_secret_below_another_name_is_masked_too() {
    let text = "identity:
  - static_keys: { ada: { workload: w, inline: canary-of-a-static-key } }
  - { introspection: { url: https://login.example/i, client_id: gate, client_secret: { inline: canary-of-identity }, workload: w } }
  - login:
      issuer: https://login.example
      client_id: gate
      client_secret: { inline: canary-of-login }
      redirect_url: http://127.0.0.1:1975/login/callback
      session_key: { inline: canary-of-sessions }
      previous_session_key: { inline: canary-of-sessions-before }
      workload: w
backends:
  a: { url: https://one.example/v1, credential: { oauth: { token_url: https://login.example/t, client_id: gate, client_secret: { inline: canary-of-oauth } } } }
  b: { url: https://one.example/v1, credential: { aws: { region: r, access_key_id: AKIAIOSFODNN7EXAMPLE, secret_access_key: { inline: canary-of-aws }, session_token: { inline: \"${TOKEN}\" } } } }
admin: { bearer: { inline: canary-of-admin }, bearers: { ops: { inline: canary-of-ops, roles: read }, b: { inline: \"${TOKEN}\", roles: keys } } }
routes: [ { workload: w, backend: [a, b] } ]
";
    let mut world = World::with(text);
    world.set("TOKEN", "canary-of-session");
    let shown = world.load().unwrap().document.json().to_string();
    assert!(!shown.contains("canary"), "{shown}");
    assert_eq!(shown.matches(r#""inline":"***""#).count(), 11, "{shown}");
}

#[test]
fn the_version_does_not_depend_on_a_secret() {
    let version = |secret: &str| {
        let text = format!(
            "backends: {{ a: {{ url: http://127.0.0.1:1/v1, credential: {{ inline: {secret} }} }} }}\nroutes: [ {{ workload: w, backend: a }} ]"
        );
        World::with(&text).load().unwrap().snapshot.version
    };
    assert_eq!(version("one"), version("two"));
}

#[test]
fn an_argument_of_a_command_that_is_named_a_secret_is_masked() {
    let text = "mcp:
  servers:
    files:
      command: serve
      args: [--api-key, canary-1, --root, /srv/files, --token=canary-2, -e, API_KEY=canary-3, --header, \"Authorization: Bearer canary-4\", --password, --verbose, sk-abcdefghijklmnop]
routes: []
backends: {}
";
    let node = crate::node::parse(text);
    let shown = match node {
        Ok(node) => crate::redact::Redacted::of(&node).json().to_string(),
        Err(_) => panic!("a document"),
    };
    assert!(
        !shown.contains("canary") && !shown.contains("sk-abc"),
        "{shown}"
    );
    for seen in [
        "--root",
        "/srv/files",
        "--token=***",
        "API_KEY=***",
        "Authorization:***",
        "--verbose",
    ] {
        assert!(shown.contains(seen), "{seen}: {shown}");
    }
}
