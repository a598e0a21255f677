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
fn the_version_does_not_depend_on_a_secret() {
    let version = |secret: &str| {
        let text = format!(
            "backends: {{ a: {{ url: http://127.0.0.1:1/v1, credential: {{ inline: {secret} }} }} }}\nroutes: [ {{ workload: w, backend: a }} ]"
        );
        World::with(&text).load().unwrap().snapshot.version
    };
    assert_eq!(version("one"), version("two"));
}
