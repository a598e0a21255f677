//! Secrets in every wrong place of a document: a fault says where, and never what stands there.

use std::path::Path;
use std::sync::LazyLock;

use testing::{Draw, number_of, seed};

use super::world::{DOCUMENT, World};
use crate::lower::lower;
use crate::node::{self, Node, Value};

/// How many of the secrets below are put into one place, unless another number is asked for: others into the next place,
/// so that a kind of place has them all.
const EACH: (&str, u64) = ("TOLLGATE_MISPLACED", 2);

/// Part of every secret here, in any letters.
const CANARY: &str = "canary";

/// What is known for a secret by its looks, wherever it stands.
const KEYS: [&str; 9] = [
    "sk-cAnArY",
    "sk-proj-cAnArY_9f8e7d6c5b4a3928-1706f5e4d3c2b1a0",
    "${NAMED:-sk-cAnArY}",
    "Bearer cAnArY",
    "basic cAnArY",
    "AIzacAnArY9f8e7d6c5b4a39281706",
    "cAnArY9f8e7d6c5b4a39281706f5e4d3c2b1a0",
    "postgres://gate:cAnArY@db/usage",
    "-----BEGIN PRIVATE KEY-----\ncAnArY\n-----END PRIVATE KEY-----\n",
];

/// What only its place can tell for a secret.
const PASSWORDS: [&str; 4] = [
    "cAnArY",
    "cAnArY pass phrase",
    "caf\u{e9}/cAnArY",
    "canary.2026",
];

/// Every field that a document can have, and files of its own.
const EVERY_FIELD: &str = include_str!("../../../../vectors/config/every_field.txt");
const MORE: &str = "
listen: { data: 127.0.0.1:1975, hosts: [gate.example], tls: { certificate: gate.pem, key: gate.key } }
identity:
  - { jwt: { issuer: https://login.example, audience: gate, workload: w } }
  - { static_keys: { ada: { workload: w, file: secrets/a } } }
  - { login: { issuer: https://login.example, client_id: gate, client_secret: { file: secrets/a }, client_auth: post, ca: gate.pem, scopes: [email, profile], redirect_url: https://gate.example/login/callback, session: 1h, session_key: { file: secrets/a }, previous_session_key: { env: KEY }, keep_claims: [groups], workload_claim: azp, workloads: { a: w }, user_claim: email, tags: { team: dept } } }
cors: { origins: [https://app.example] }
admin: { bearer: { file: secrets/admin }, bearers: { ops: { file: secrets/a, roles: [read, operate] } }, login: { issuer: https://login.example, client_id: gate, client_secret: { file: secrets/a }, client_auth: post, ca: gate.pem, scopes: [email], redirect_url: https://gate.example/login/callback, session: 1h, session_key: { file: secrets/a }, previous_session_key: { env: KEY }, user_claim: email, roles_claim: groups, roles: { admins: [read, keys] } } }
client_address: { record: shortened, trusted_proxies: [10.0.0.0/8], proxy_protocol: required }
backends:
  a: { url: https://one.example/v1, credential: { file: secrets/a, header: x-api-key, scheme: \"\" }, at_root: false, ca: gate.pem }
  b: { url: http://127.0.0.1:1, at_root: true, credential: { env: KEY }, proxy: none, tokens: off }
  c: { url: http://127.0.0.1:1/v1, proxy: { url: http://127.0.0.1:3128, credential: { file: secrets/proxy } } }
  d: { url: https://one.example/v1, credential: { oauth: { token_url: https://login.example/token, client_id: gate, client_auth: post, client_secret: { file: secrets/a }, scope: [a], audience: b, resource: c, fields: { d: e }, ca: gate.pem } } }
  e: { url: https://one.example/v1, credential: { oauth: { token_url: https://login.example/token, client_id: gate, private_key: { file: gate.key, id: k, algorithm: PS256 } } } }
  f: { url: https://one.example/v1, credential: { exchange: { token_url: https://login.example/token, client_id: gate, client_auth: basic, client_secret: { env: KEY }, grant: token_exchange, subject_token_type: t, requested_token_type: u, scope: [a], audience: b, resource: c, fields: { d: e }, ca: gate.pem } } }
  g: { url: https://one.example/v1, credential: { google: { key_file: google.json, scope: a, ca: gate.pem } } }
  h: { url: https://one.example/v1, credential: { google: { metadata: true, endpoint: http://127.0.0.1:1 } } }
  i: { url: https://one.example/v1, credential: { azure: { tenant: t, client_id: a, client_secret: { inline: six }, scope: s, authority: https://login.example, ca: gate.pem } } }
  j: { url: https://one.example/v1, credential: { azure: { tenant: t, client_id: a, certificate: gate.pem, key: gate.key } } }
  k: { url: https://one.example/v1, credential: { azure: { tenant: t, client_id: a, federated_token_file: secrets/a } } }
  p: { url: https://one.example/v1, credential: { azure: { tenant: t, client_id: a, federated_token: { issuer: https://login.example, client_id: gate, client_secret: { file: secrets/a }, client_auth: post, scope: [a], audience: b, resource: c } } } }
  q: { url: https://one.example/v1, credential: { google: { federation: { audience: a, service_account: b@c.example, token: { token_url: https://login.example/token, client_id: gate, client_secret: { env: KEY } } }, endpoint: http://127.0.0.1:1 } } }
  r: { url: https://one.example/v1, credential: { aws: { region: r, web_identity: { role_arn: a, token: { issuer: https://login.example, client_id: gate, client_secret: { inline: six } } } } } }
  s: { url: https://one.example/v1, credential: { aws: { region: r, default_chain: true } } }
  l: { url: https://one.example/v1, credential: { azure: { managed_identity: true, client_id: a, endpoint: http://127.0.0.1:1 } } }
  m: { url: https://one.example/v1, credential: { aws: { region: r, service: s, access_key_id: AKIAIOSFODNN7EXAMPLE, secret_access_key: { file: secrets/a }, session_token: { env: KEY }, ca: gate.pem } } }
  n: { url: https://one.example/v1, credential: { aws: { region: r, web_identity: { role_arn: a, token_file: secrets/a, session_name: n }, endpoint: http://127.0.0.1:1 } } }
  o: { url: https://one.example/v1, credential: { aws: { region: r, imds: true, container: false } }, client_certificate: { certificate: gate.pem, key: gate.key }, headers: { x-own: a }, query: { b: c } }
routes:
  - { workload: w, backend: [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s], unlisted: try-*, billed_by: reported, forward_headers: [x-title], return_headers: x-ms, unread: [ { call: GET /v1/files, shared: true, tokens: 1, money: 1 } ] }
tokenizers: { m: harmony, n: { file: tokenizer.json, template: chat.jinja, settings: settings.json, engine: { default_chat_template_kwargs: { enable_thinking: false }, exclude_tools_when_tool_choice_none: true, content_format: openai, max_model_len: 4096 } } }
counting: { calibration: { every: 1h, timeout: 1s }, threads: 1, queue: 1MiB, longest: 1MiB, wait: 1s, prompt_tolerance: 1, output_tolerance: 2 }
ledger: { path: usage.db, postgres: { file: secrets/db } }
";

static WORLD: LazyLock<World> = LazyLock::new(world);

fn world() -> World {
    let mut world = World::default();
    let certificate = "-----BEGIN CERTIFICATE-----\n";
    let key = "-----BEGIN PRIVATE KEY-----\n";
    for (name, content) in [
        ("gate.pem", certificate),
        ("tls/otel.pem", certificate),
        ("gate.key", key),
        ("secrets/admin", "one"),
        ("secrets/a", "two"),
        ("secrets/proxy", "user:three"),
        ("secrets/db", "postgres://gate@db/usage"),
        ("tokenizer.json", "{}"),
        (
            "google.json",
            r#"{"type":"service_account","client_email":"a","private_key":"b","token_uri":"https://c"}"#,
        ),
        ("chat.jinja", ""),
        ("settings.json", "{}"),
    ] {
        world.put(name, content);
    }
    for name in ["PROVIDER_KEY", "OTEL_KEY", "USAGE_DB", "KEY", "NAMED"] {
        world.set(name, "four");
    }
    world.set("PROXY", "user:five").set("NAMED", "");
    world
}

fn documents() -> [Node; 2] {
    let every_field = EVERY_FIELD.split("=== ").nth(1).expect("a document");
    let every_field = every_field.strip_prefix("document\n").expect("a document");
    let read = |text: &str| node::parse(text).expect("YAML");
    let documents = [read(every_field), read(MORE)];
    for document in &documents {
        if let Err(faults) = load(document.clone()) {
            panic!("{faults}");
        }
    }
    documents
}

fn load(root: Node) -> Result<crate::Loaded, crate::Faults> {
    lower(Path::new(DOCUMENT), root, &*WORLD)
}

/// Everything that a person gets to read.
fn said(root: Node) -> String {
    let (faults, warnings) = match load(root) {
        Ok(loaded) => (Vec::new(), loaded.warnings),
        Err(refused) => (refused.faults, refused.warnings),
    };
    let lines = faults.iter().chain(&warnings).map(ToString::to_string);
    lines.collect::<Vec<_>>().join("\n")
}

/// Calls `with` for each place of a value, as the keys and indices that lead to it.
fn each_place(node: &Node, at: &mut Vec<usize>, with: &mut impl FnMut(&[usize])) {
    with(at);
    let inside: Vec<&Node> = match &node.value {
        Value::Scalar(_) => Vec::new(),
        Value::List(items) => items.iter().collect(),
        Value::Map(entries) => entries.iter().map(|entry| &entry.node).collect(),
    };
    for (index, node) in inside.into_iter().enumerate() {
        at.push(index);
        each_place(node, at, with);
        at.pop();
    }
}

fn places(document: &Node) -> Vec<Vec<usize>> {
    let mut places = Vec::new();
    each_place(document, &mut Vec::new(), &mut |at| {
        places.push(at.to_vec())
    });
    places
}

/// The names that lead to a place.
fn names(document: &Node, at: &[usize]) -> Vec<String> {
    led(document, at).0
}

fn is_map(document: &Node, at: &[usize]) -> bool {
    matches!(led(document, at).1.value, Value::Map(_))
}

/// The names that lead to a place, and what stands there.
fn led<'d>(document: &'d Node, at: &[usize]) -> (Vec<String>, &'d Node) {
    let mut node = document;
    let mut names = Vec::new();
    for index in at {
        node = match &node.value {
            Value::Scalar(_) => panic!("nothing is in text"),
            Value::List(items) => &items[*index],
            Value::Map(entries) => {
                names.push(entries[*index].key.clone());
                &entries[*index].node
            }
        };
    }
    (names, node)
}

fn changed(document: &Node, at: &[usize], change: impl FnOnce(&mut Node)) -> Node {
    let mut root = document.clone();
    let mut node = &mut root;
    for index in at {
        node = match &mut node.value {
            Value::Scalar(_) => panic!("nothing is in text"),
            Value::List(items) => &mut items[*index],
            Value::Map(entries) => &mut entries[*index].node,
        };
    }
    change(node);
    root
}

fn scalar(text: &str) -> Value {
    let quoted = format!("{text:?}");
    match node::parse(&quoted) {
        Ok(node) => node.value,
        Err(faults) => panic!("{quoted}: {faults:?}"),
    }
}

/// Those of the secrets that a place gets: from a drawn one on, and in turn.
struct Turns<'s> {
    secrets: &'s [&'static str],
    each: usize,
    next: usize,
}

impl<'s> Turns<'s> {
    fn of(test: &str, secrets: &'s [&'static str]) -> Self {
        let (variable, otherwise) = EACH;
        let each = usize::try_from(number_of(variable, otherwise)).expect("few");
        Self {
            secrets,
            each: each.min(secrets.len()),
            next: Draw::new(seed(test)).below(secrets.len()),
        }
    }

    fn next(&mut self) -> impl Iterator<Item = &'static str> + use<'s> {
        let (from, secrets) = (self.next, self.secrets);
        self.next += self.each;
        (from..self.next).map(|at| secrets[at % secrets.len()])
    }
}

fn assert_silent(what: &str, secret: &str, said: &str) {
    assert!(
        !said.to_lowercase().contains(CANARY),
        "{secret:?} as {what} is shown:\n{said}"
    );
}

#[test]
fn what_looks_like_a_key_is_shown_from_no_place_of_a_value() {
    let (mut faulty, mut turns) = (0, Turns::of("no_place_of_a_value", &KEYS));
    for document in documents() {
        for at in places(&document) {
            for secret in turns.next() {
                let root = changed(&document, &at, |node| node.value = scalar(secret));
                let said = said(root);
                faulty += usize::from(!said.is_empty());
                assert_silent(&names(&document, &at).join("."), secret, &said);
            }
        }
    }
    assert!(faulty > 500, "{faulty} of them are faults");
}

#[test]
fn what_looks_like_a_key_is_shown_from_no_place_of_a_name() {
    let (mut faulty, mut turns) = (0, Turns::of("no_place_of_a_name", &KEYS));
    for document in documents() {
        for at in places(&document) {
            if !is_map(&document, &at) {
                continue;
            }
            for secret in turns.next() {
                // In place of a name, and besides them, with a value that has a fault of its own.
                for value in [None, Some("${UNSET}"), Some("x y")] {
                    let root = changed(&document, &at, |node| {
                        let Value::Map(entries) = &mut node.value else {
                            panic!("it is a mapping");
                        };
                        let mut entry = entries[0].clone();
                        entry.key = secret.to_owned();
                        match value {
                            Some(value) => {
                                entry.node.value = scalar(value);
                                entries.push(entry);
                            }
                            None => entries[0] = entry,
                        }
                    });
                    let said = said(root);
                    faulty += usize::from(!said.is_empty());
                    let what = format!("a name in {}", names(&document, &at).join("."));
                    assert_silent(&what, secret, &said);
                }
            }
        }
    }
    assert!(faulty > 200, "{faulty} of them are faults");
}

#[test]
fn where_a_secret_is_named_nothing_that_stands_there_is_shown() {
    let holds = |name: &str| {
        matches!(
            name,
            "credential" | "bearer" | "bearers" | "static_keys" | "postgres"
        )
    };
    let (mut seen, mut turns) = (0, Turns::of("where_a_secret_is_named", &PASSWORDS));
    for document in documents() {
        for at in places(&document) {
            let names = names(&document, &at);
            let last = names.last().map_or("", String::as_str);
            let is_key =
                names.iter().any(|name| holds(name)) || names.join(".") == "listen.tls.key";
            // A header's name is none, nor is a workload's.
            if !is_key || matches!(last, "header" | "workload") {
                continue;
            }
            for secret in turns.next() {
                seen += 1;
                let what = names.join(".");
                let put = |text: &str| changed(&document, &at, |node| node.value = scalar(text));
                assert_silent(&what, secret, &said(put(secret)));
                // The name of a variable that is not set is told; what cannot be a name is not.
                if !crate::vars::is_name(secret) {
                    let variable = format!("${{{secret}}}");
                    assert_silent(&what, &variable, &said(put(&variable)));
                }
                // The names of several credentials are no field's.
                if matches!(last, "bearers" | "static_keys") || !is_map(&document, &at) {
                    continue;
                }
                let root = changed(&document, &at, |node| {
                    if let Value::Map(entries) = &mut node.value {
                        entries[0].key = secret.to_owned();
                    }
                });
                assert_silent(&format!("a name in {what}"), secret, &said(root));
            }
            // A password of digits is a number to YAML.
            let root = changed(&document, &at, |node| {
                node.value = node::parse("31337421").expect("YAML").value;
            });
            let said = said(root);
            assert!(!said.contains("31337421"), "{}: {said}", names.join("."));
        }
    }
    assert!(seen >= 60, "{seen} places");
}

#[test]
fn a_key_where_yaml_ends_is_not_shown_and_its_line_is() {
    for (text, line) in [
        ("backends:\n  a: { credential: sk-cAnArY: x }\n", 2),
        ("backends:\n  a: [ sk-cAnArY\n", 3),
        ("backends:\n  a: \"sk-cAnArY\n", 2),
        ("backends:\n  a: *sk-cAnArY\n", 2),
        ("backends:\n  a: !sk-cAnArY x\n", 2),
        ("backends:\n  a: @sk-cAnArY\n", 2),
        ("backends:\n  sk-cAnArY: 1\n  sk-cAnArY: 2\n", 3),
        ("backends:\n  a: 1\n sk-cAnArY: 2\n", 3),
        ("? [sk-cAnArY]\n: x\n", 1),
        ("sk-cAnArY\n", 1),
    ] {
        let faults = World::with(text).load().unwrap_err();
        assert_silent("YAML", text, &faults.to_string());
        let fault = &faults.faults[0];
        assert_eq!(fault.line, Some(line), "{text:?}: {faults}");
    }
}

#[test]
fn an_unknown_field_is_told_but_beside_the_fields_of_a_secret() {
    for (document, told) in [
        ("backends: { a: { hunter: x } }", true),
        ("listen: { hunter: x }", true),
        ("listen: { tls: { hunter: x } }", false),
        ("admin: { bearer: { hunter: x } }", false),
        ("admin: { bearers: { b: { hunter: x } } }", false),
        ("identity: { static_keys: { b: { hunter: x } } }", false),
        ("backends: { a: { credential: { hunter: x } } }", false),
        (
            "backends: { a: { proxy: { credential: { hunter: x } } } }",
            false,
        ),
        ("ledger: { postgres: { hunter: x } }", false),
        ("ledger: { postgres: { fle: x } }", true),
    ] {
        let faults = World::with(document).load().unwrap_err().to_string();
        assert!(faults.contains("unknown field"), "{faults}");
        assert_eq!(faults.contains("unknown field \""), told, "{faults}");
    }
}

#[test]
fn an_unset_variable_hides_no_fault_of_another_key_shown_the_same() {
    for between in [", ", ",\n  "] {
        let text = format!(
            "backends: {{ sk-cAnArYa: {{ url: \"${{UNSET}}\" }}{between}sk-cAnArYb: {{ url: \"no url\" }} }}\nroutes: [ {{ workload: w, backend: sk-cAnArYa }} ]\n"
        );
        let faults = World::with(&text).load().unwrap_err();
        let says = |part: &str| {
            faults
                .faults
                .iter()
                .filter(|f| f.says.contains(part))
                .count()
        };
        assert_eq!(says("UNSET is not set"), 1, "{faults}");
        assert_eq!(says("\"no url\""), 1, "{faults}");
        assert_eq!(says("\"${UNSET}\""), 0, "{faults}");
        assert_silent("two names", &text, &faults.to_string());
    }
}

#[test]
fn what_a_person_names_is_shown_as_before() {
    for (document, shown) in [
        (
            "routes: [ { workload: w, backend: fallback-eu-west-1 } ]",
            "\"fallback-eu-west-1\"",
        ),
        (
            "routes: [ { workload: w, backend: a, model: \"meta-llama/Llama-3.1-8B-Instruct b\" } ]",
            "Llama-3.1-8B-Instruct b",
        ),
        (
            "routes: [ { workload: swe-rebench ide, backend: a } ]",
            "\"swe-rebench ide\"",
        ),
        ("access_log: stdouts", "\"stdouts\""),
        ("identity: { header: X-Goog-API-Key }", "\"X-Goog-API-Key\""),
        (
            "traces: { otlp: \"otel-collector.monitoring.svc.cluster.local:4318\" }",
            "\"otel-collector.monitoring.svc.cluster.local:4318\"",
        ),
    ] {
        let text = format!("{document}\nbackends: {{ a: {{ url: http://127.0.0.1:1/v1 }} }}\n");
        let faults = World::with(&text).load().unwrap_err().to_string();
        assert!(faults.contains(shown), "{faults}");
    }
}
