//! `vectors/manifests/*.txt`: files of objects in, our document or every fault out.
//!
//! `UPDATE=1` rewrites what comes out.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use config::{Fault, Located, Sources};

use crate::{Input, is_manifest, load, lower};

mod kinds;

/// No file but those that come along, and some variables.
struct World(BTreeMap<String, String>);

impl Sources for World {
    fn read(&self, _: &Path, _: usize) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn var(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }
}

#[test]
fn every_vector_lowers_as_it_says() {
    testing::vectors("manifests", 10, check);
}

/// The files of a vector, its world, and the text of both.
fn read(text: &str) -> (Vec<(PathBuf, String)>, World, String) {
    let mut kept = String::new();
    let mut files: Vec<(PathBuf, String)> = Vec::new();
    let mut world = World(BTreeMap::new());
    for section in text.split("=== ").skip(1) {
        let (title, body) = section.split_once('\n').unwrap();
        match title.split_once(' ') {
            Some(("file", name)) => files.push((name.into(), body.to_owned())),
            None if title == "variables" => {
                let pairs = body.lines().filter_map(|line| line.split_once('='));
                world
                    .0
                    .extend(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
            }
            _ => break,
        }
        kept.push_str("=== ");
        kept.push_str(section);
    }
    (files, world, kept)
}

fn inputs(files: &[(PathBuf, String)]) -> Vec<Input<'_>> {
    files
        .iter()
        .map(|(file, text)| Input { file, text })
        .collect()
}

/// The vector with its outcome as it is today.
fn check(text: &str) -> String {
    let (files, world, kept) = read(text);
    let inputs = inputs(&files);
    assert!(inputs.iter().any(|input| is_manifest(input.text)));
    let mut out = String::new();
    let loaded = load(
        Path::new("manifests"),
        Path::new("manifests"),
        &inputs,
        &world,
    );
    match (loaded, lower(&inputs)) {
        (Ok(loaded), Ok(lowered)) => {
            let _ = write!(out, "=== document\n{}", lowered.document);
            if !lowered.given.is_empty() {
                out.push_str("=== given\n");
            }
            for (given, of) in lowered.given.iter().zip(&lowered.given_of) {
                let _ = writeln!(out, "{} <- {of}", given.path.display());
                let secret = String::from_utf8_lossy(given.content.expose()).into_owned();
                let shown = format!("{}{}{loaded:?}", lowered.document, loaded.document.json());
                assert!(
                    secret.len() < 9 || !shown.contains(secret.trim()),
                    "a secret is shown: {given:?}"
                );
            }
            said("warnings", &loaded.warnings, &mut out);
        }
        (Err(faults), _) => {
            said("faults", &faults.faults, &mut out);
            said("warnings", &faults.warnings, &mut out);
        }
        (Ok(_), Err(_)) => unreachable!("what is loaded was lowered"),
    }
    kept + &out
}

fn said(title: &str, faults: &[Fault], out: &mut String) {
    if !faults.is_empty() {
        let _ = writeln!(out, "=== {title}");
    }
    for fault in faults {
        let file = Path::new("manifests");
        let _ = writeln!(out, "{}", Located { file, fault });
    }
}

/// The white paper's three policies, as a cluster has them.
#[test]
fn the_white_papers_manifests_are_taken_without_a_word_and_say_what_its_document_says() {
    let text = include_str!("../../../examples/manifests/white-paper.yaml");
    let file = Path::new("white-paper.yaml");
    let variables = [
        ("GEMINI_API_KEY", "canary-of-gemini"),
        ("VLLM_API_KEY", "canary-of-vllm"),
    ];
    let world = World(
        variables
            .map(|(name, value)| (name.into(), value.into()))
            .into(),
    );
    let inputs = [Input { file, text }];
    let loaded =
        load(file, Path::new(""), &inputs, &world).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.watched, [file]);
    let json = loaded.document.json();
    assert_eq!(json["identity"]["header"], "x-workload-app");
    let routes = json["routes"].as_array().expect("routes");
    let limits: Vec<String> = routes
        .iter()
        .map(|route| format!("{} {}", route["workload"], route["limits"]))
        .collect();
    let requests = r#"{"per":"1m","requests":2,"window":"rolling"}"#;
    let tokens = r#"{"per":"1m","tokens":100000,"window":"rolling"}"#;
    assert_eq!(
        limits,
        [
            format!("\"toolbench-agent\" [{tokens}]"),
            format!("\"swe-rebench-ide\" [{requests},{tokens}]"),
            format!(
                "[\"terminal-bench-ci\",\"api-orchestration\",\"terminal\",\"ui-navigation\",\"coding\"] [{tokens}]"
            ),
        ]
    );
}

/// Every file of every vector with each of its lines left out, or said twice: taken or refused with a place, and never a secret in what is said.
#[test]
fn a_line_that_is_missing_or_doubled_is_taken_or_told_and_no_secret_is_ever_said() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/manifests");
    let mut tried = 0;
    for entry in std::fs::read_dir(&dir).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let (files, world, _) = read(&text);
        for (index, (_, whole)) in files.iter().enumerate() {
            let lines: Vec<&str> = whole.lines().collect();
            for at in 0..lines.len() {
                for times in [0, 2] {
                    let line = |(n, line): (usize, &&str)| {
                        format!("{line}\n").repeat(if n == at { times } else { 1 })
                    };
                    let mut changed = files.clone();
                    changed[index].1 = lines.iter().enumerate().map(line).collect();
                    let loaded = load(
                        Path::new("manifests"),
                        Path::new("manifests"),
                        &inputs(&changed),
                        &world,
                    );
                    let said = match &loaded {
                        Ok(loaded) => format!("{:?}{}", loaded.warnings, loaded.document.json()),
                        Err(faults) => {
                            let is_placed = faults
                                .faults
                                .iter()
                                .all(|fault| fault.file.is_some() && !fault.says.is_empty());
                            assert!(
                                is_placed && !faults.faults.is_empty(),
                                "line {at} {times} times of\n{whole}\n{faults:?}"
                            );
                            format!("{faults:?}")
                        }
                    };
                    assert!(
                        !said.contains("canary-of"),
                        "line {at} {times} times of\n{whole}\n{said}"
                    );
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 500, "{tried}");
}

const BASE: &str = r"
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: door }
spec:
  gatewayClassName: models
  addresses: [ { value: 127.0.0.1 } ]
  listeners: [ { name: http, protocol: HTTP, port: 8080 } ]
---
apiVersion: aigateway.envoyproxy.io/v1beta1
kind: AIGatewayRoute
metadata: { name: chat }
spec:
  parentRefs: [ { name: door } ]
  rules: [ { matches: [ { headers: [ { name: x-ai-eg-model, value: m } ] } ], backendRefs: [ { name: engine } ] } ]
---
apiVersion: aigateway.envoyproxy.io/v1beta1
kind: AIServiceBackend
metadata: { name: engine }
spec: { schema: { name: OpenAI }, backendRef: { name: engine, kind: Backend, group: gateway.envoyproxy.io } }
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: Backend
metadata: { name: engine }
spec: { endpoints: [ { ip: { address: 127.0.0.1, port: 9 } } ] }
";

/// An object of a kind, named `x`.
fn object(kind: &str, spec: &str) -> String {
    let group = match kind {
        "BackendTLSPolicy" => "gateway.networking.k8s.io/v1",
        _ => "gateway.envoyproxy.io/v1alpha1",
    };
    format!("---\napiVersion: {group}\nkind: {kind}\nmetadata: {{ name: x }}\nspec: {{ {spec} }}\n")
}

/// The document that objects come to, or what is wrong with them, without where.
fn outcome(text: &str) -> Result<String, String> {
    let file = Path::new("all.yaml");
    let inputs = [Input { file, text }];
    let lowered = load(file, Path::new(""), &inputs, &World(BTreeMap::new()));
    let said = |faults: &[Fault]| {
        let lines = faults
            .iter()
            .map(|fault| format!("{}: {}", fault.path, fault.says));
        lines.collect::<Vec<_>>().join("\n")
    };
    match lowered {
        Ok(_) => Ok(lower(&inputs).unwrap().document),
        Err(faults) => Err(said(&faults.faults)),
    }
}

/// Each was taken once, and let in whom it should keep out, or did other than it says.
#[test]
fn what_would_let_in_whom_it_should_not_is_a_fault() {
    let policy = |spec: &str| {
        let target = "group: gateway.networking.k8s.io, kind: Gateway, name: door";
        object(
            "SecurityPolicy",
            &format!("targetRefs: [ {{ {target} }} ]{spec}"),
        )
    };
    let trust = |name: &str, roots: &str| {
        let target = "group: gateway.envoyproxy.io, kind: Backend, name: engine";
        let spec = format!(
            "targetRefs: [ {{ {target} }} ], validation: {{ hostname: 127.0.0.1, {roots} }}"
        );
        object("BackendTLSPolicy", &spec).replace("name: x", &format!("name: {name}"))
    };
    let listener = |more: &str| BASE.replace("port: 8080 }", &format!("port: 8080, {more} }}"));
    let jwt = "jwt: { providers: [ { issuer: https://a, audiences: [b] } ] }";
    let route = "headers: [ { name: x-ai-eg-model, value: m } ]";
    let cases = [
        (
            [BASE, &policy(", jwt: {}")].concat(),
            "SecurityPolicy default/x spec.jwt: names nobody who signs tokens, and would let everybody in",
        ),
        (
            [BASE, &policy(", jwt: { providers: [] }")].concat(),
            "SecurityPolicy default/x spec.jwt: names nobody who signs tokens, and would let everybody in",
        ),
        (
            [BASE, &policy("")].concat(),
            "SecurityPolicy default/x: says nothing of who may call, and would let everybody in",
        ),
        (
            [BASE, &policy(", jwt: ~")].concat(),
            "SecurityPolicy default/x: says nothing of who may call, and would let everybody in",
        ),
        (
            [
                BASE,
                &object(
                    "SecurityPolicy",
                    &format!("targetRefs: [ {{ group: g, kind: Route, name: chat }} ], {jwt}"),
                ),
            ]
            .concat(),
            "SecurityPolicy default/x spec.targetRefs[0]: names the kind \"Route\" of \"g\"",
        ),
        (
            [
                BASE,
                &policy(&format!(", {jwt}")).replace(
                    "name: door",
                    "name: door }, { group: gateway.networking.k8s.io, kind: HTTPRoute, name: chta",
                ),
            ]
            .concat(),
            "SecurityPolicy default/x spec.targetRefs[1]: there is no HTTPRoute default/chta",
        ),
        (
            [
                BASE,
                "---\napiVersion: v1\nkind: List\nitem: [ { kind: SecurityPolicy } ]\n",
            ]
            .concat(),
            ": is a List without a list of items",
        ),
        (
            [
                BASE,
                &trust("a", "wellKnownCACertificates: System"),
                &trust("b", "wellKnownCACertificates: System"),
            ]
            .concat(),
            "BackendTLSPolicy default/b spec.targetRefs[0]: has its roots by another policy",
        ),
        (
            listener("allowedRoutes: { kinds: [ { kind: GRPCRoute } ] }"),
            "Gateway default/door spec.listeners[0].allowedRoutes.kinds[0]: lets in no route that is served",
        ),
        (
            listener("hostname: a.example")
                .replace("  rules:", "  hostnames: [ b.example ]\n  rules:"),
            "AIGatewayRoute default/chat spec.hostnames[0]: is none of the listener's hosts, which are a.example",
        ),
        (
            BASE.replace(route, "headers: [ { name: x-ai-eg-model, value: '*' } ]"),
            "AIGatewayRoute default/chat spec.rules[0].matches[0].headers[0]: is the name of one model, and no model has a * in its name",
        ),
        (
            BASE.replace("port: 8080", "port: 0"),
            "Gateway default/door spec.listeners[0].port: is no port",
        ),
    ];
    for (text, says) in cases {
        assert_eq!(outcome(&text), Err(says.to_owned()), "{text}");
    }
    for roots in ["", "caCertificateRefs: []", "caCertificateRefs: ~"] {
        let tls = format!(
            "tls: {{ certificateRefs: [ {{ name: c }} ], frontendValidation: {{ {roots} }} }}"
        );
        let said =
            outcome(&listener(&tls).replace("protocol: HTTP,", "protocol: HTTPS,")).unwrap_err();
        let says = "names no roots for clients' certificates, and would let in who has none";
        assert!(said.contains(says), "{said}");
    }
}

/// What is written and asks for nothing changes nothing; the listener's hosts and the route's are those that both have.
#[test]
fn a_field_that_says_no_is_no_fault_and_hosts_are_those_of_listener_and_route() {
    let target = "targetRefs: [ { group: gateway.networking.k8s.io, kind: Gateway, name: door } ]";
    let jwt = "jwt: { optional: false, providers: [ { issuer: https://a, audiences: [b], recomputeRoute: true } ] }";
    let policy = object("SecurityPolicy", &format!("{target}, {jwt}"));
    outcome(&[BASE, &policy].concat()).unwrap();
    let service =
        "---\napiVersion: v1\nkind: Service\nmetadata: { name: s }\nspec: { odd: true }\n";
    let unnamed = service.replace("name: s", "generateName: S_");
    outcome(&[BASE, service, service, &unnamed].concat()).unwrap();
    let hosts = |listener: &str, route: &str| {
        let text = BASE
            .replace(
                "port: 8080 }",
                &format!("port: 8080, hostname: '{listener}' }}"),
            )
            .replace("  rules:", &format!("  hostnames: [ {route} ]\n  rules:"));
        let document = outcome(&text)?;
        let line = document.lines().next().unwrap_or_default().to_owned();
        Ok::<_, String>(
            line.split_once("hosts: ")
                .map_or(line.clone(), |(_, rest)| rest.to_owned()),
        )
    };
    assert_eq!(
        hosts("a.example", "a.example, b.example").as_deref(),
        Ok("a.example }")
    );
    assert_eq!(
        hosts("a.example", "'*.example'").as_deref(),
        Ok("a.example }")
    );
    assert_eq!(
        hosts("*.example", "a.example, c.test").as_deref(),
        Ok("a.example }")
    );
    assert_eq!(
        hosts("*.example", "a.example, b.example").as_deref(),
        Ok("[a.example, b.example] }")
    );
}

/// As other programs write objects: on one line, names in quotes, members in any order.
#[test]
fn a_text_is_of_objects_however_it_is_written() {
    let at = r#"{"kind":"Gateway","metadata":{"name":"door"},"apiVersion":"v1"}"#;
    assert!(is_manifest(at));
    assert!(is_manifest("'kind': Gateway\n'apiVersion': v1\n"));
    assert!(is_manifest("apiVersion: v1\nkind: [\n"));
    assert!(!is_manifest("# kind apiVersion\nbackends: {}\n"));
}

/// How many times a document says who may call, and how often.
fn guards(document: &str) -> [usize; 5] {
    let words = [
        "static_keys:",
        "jwt:",
        "ext_authz:",
        "limits:",
        "client_ca:",
    ];
    words.map(|word| document.matches(word).count())
}

/// Whatever is written in the place of a value of a policy, a Gateway or a Secret: no door is open that was closed, unless that is said.
#[test]
fn no_value_of_a_policy_opens_a_door_in_silence() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/manifests");
    let closing = ["Policy\n", "kind: Gateway\n", "kind: Secret\n"];
    let (mut tried, mut taken) = (0, 0);
    for entry in std::fs::read_dir(&dir).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let (files, world, _) = read(&text);
        let place = Path::new("manifests");
        let Ok(whole) = lower(&inputs(&files)) else {
            continue;
        };
        let before = guards(&whole.document);
        if before == [0; 5] {
            continue;
        }
        for (index, (_, file)) in files.iter().enumerate() {
            for (start, end) in values(file) {
                let object = file[..start].rsplit("---\n").next().unwrap_or_default();
                if !closing.iter().any(|kind| object.contains(kind)) {
                    continue;
                }
                for value in ["~", "[]", "{}", "\"\"", "false", "x"] {
                    tried += 1;
                    let mut changed = files.clone();
                    changed[index].1 = [&file[..start], value, &file[end..]].concat();
                    let Ok(loaded) = load(place, place, &inputs(&changed), &world) else {
                        continue;
                    };
                    taken += 1;
                    let now = guards(&lower(&inputs(&changed)).unwrap().document);
                    let is_weaker = now.iter().zip(before).any(|(now, before)| *now < before);
                    let more = loaded.warnings.len() > whole.warnings.len();
                    assert!(
                        !is_weaker || more,
                        "{value} in place of {:?} of\n{object}",
                        &file[start..end]
                    );
                }
            }
        }
    }
    assert!(tried > 1000 && taken > 50, "{tried} tried, {taken} taken");
}

/// Where values stand in a text of YAML: what follows a colon, to the end of its line, mapping or list, or a whole one of those.
fn values(text: &str) -> Vec<(usize, usize)> {
    let starts = text.match_indices(": ").map(|(at, _)| at + 2);
    let end = |start: usize| {
        let rest = &text[start..];
        let close = match rest.chars().next() {
            Some('{') => Some('}'),
            Some('[') => Some(']'),
            _ => None,
        };
        let found = match close {
            Some(close) => rest.find(close).map(|at| at + 1),
            None => rest.find([',', '}', ']', '\n']),
        };
        (start, found.map_or(text.len(), |at| start + at))
    };
    starts.map(end).collect()
}

/// A document with all that objects can say, and more.
const THERE: &str = r#"
listen: { data: "0.0.0.0:8080", admin: "127.0.0.1:1976" }
identity: { header: x-app, user_header: x-user, trust: anyone }
backends:
  claude: { url: "https://api.anthropic.com/v1", dialect: anthropic, credential: { env: CLAUDE_KEY } }
  engine: { url: "http://10.0.0.1:8000/v1", dialect: openai, headers: { x-team: "a b" } }
  spare: { url: "https://spare.example:8443/openai/v1", dialect: openai, credential: { file: keys/spare } }
  odd: { url: "http://10.0.0.2:8000/v1", dialect: openai, timeouts: { connect: 1s } }
routes:
  - { name: claude, workload: [chat, ide], match: { model: [claude-sonnet-4.5, "claude-haiku-*"] }, backend: claude, limits: [{ tokens: 100000, per: 1m, window: rolling }, { requests: 60, per: 1h, window: rolling, for: user }] }
  - { name: all, workload: chat, match: { model: "*" }, backend: [engine, spare], model: gpt-oss-120b }
  - { name: batch, workload: batch, backend: odd }
  - { name: rest, workload: ide, backend: engine }
prices: { gpt-oss-120b: { input: 0.10, output: 0.40 } }
"#;

#[test]
fn a_document_becomes_objects_that_come_to_it_again() {
    let variables = [("CLAUDE_KEY", "canary-of-claude")];
    let world = || {
        World(
            variables
                .map(|(name, value)| (name.into(), value.into()))
                .into(),
        )
    };
    let file = Path::new("tollgate.yaml");
    let made = crate::manifests(file, THERE).unwrap_or_else(|faults| panic!("{faults:?}"));
    assert_eq!(
        made.left,
        ["listen", "identity", "backends", "routes", "prices"]
    );
    // A route behind one that objects cannot say is one where no caller is of both.
    assert_eq!(
        made.text.matches("kind: AIGatewayRoute\nmetadata").count(),
        3,
        "{}",
        made.text
    );
    assert!(!made.text.contains("canary"));
    // Keys of annotations that an API server takes have one slash.
    for secret in [
        "metadata: { name: spare, annotations: { tollgate/file.apiKey: keys/spare } }\n",
        "metadata: { name: claude }\nstringData: { apiKey: \"${CLAUDE_KEY}\" }\n",
    ] {
        assert!(made.text.contains(secret), "{}", made.text);
    }
    let inputs = [Input {
        file,
        text: &made.text,
    }];
    let lowered = lower(&inputs).unwrap_or_else(|refused| panic!("{refused:?}"));
    // And once more: what comes of that is the same.
    let again =
        crate::manifests(file, &lowered.document).unwrap_or_else(|faults| panic!("{faults:?}"));
    let once_more = lower(&[Input {
        file,
        text: &again.text,
    }]);
    let once_more = once_more.unwrap_or_else(|refused| panic!("{refused:?}"));
    assert_eq!(once_more.document, lowered.document);
    let world = world();
    let snapshot = |text: &str| {
        let loaded = config::parse_document(file, text.as_bytes(), &world);
        let loaded = loaded.unwrap_or_else(|faults| panic!("{faults}"));
        format!(
            "{:?} {:?}",
            loaded.snapshot.routes, loaded.snapshot.workloads
        )
    };
    let keyed = THERE.replace("{ file: keys/spare }", "{ env: CLAUDE_KEY }");
    let of_keyed = crate::manifests(file, &keyed).unwrap_or_else(|faults| panic!("{faults:?}"));
    let inputs = [Input {
        file,
        text: &of_keyed.text,
    }];
    let lowered = lower(&inputs).unwrap_or_else(|refused| panic!("{refused:?}"));
    // The same but for the order of two routes that have no caller in common.
    let batch = "  - { name: batch, workload: batch, backend: odd }\n";
    let last = format!("{batch}prices:");
    let ordered = keyed.replacen(batch, "", 1).replacen("prices:", &last, 1);
    assert_eq!(snapshot(&lowered.document), snapshot(&ordered));
}

#[test]
fn a_document_that_objects_would_say_otherwise_is_refused() {
    let file = Path::new("tollgate.yaml");
    let of = |routes: &str| {
        let backends = "a: { url: \"http://10.0.0.1:1/v1\", dialect: openai }";
        let text = format!("backends: {{ {backends} }}\nroutes: [ {routes} ]\n");
        let faults = crate::manifests(file, &text).err().unwrap_or_default();
        faults
            .into_iter()
            .map(|fault| format!("{}: {}", fault.path, fault.says))
            .collect::<Vec<_>>()
    };
    let all = "{ name: all, workload: w, backend: a }";
    let one = "{ name: one, workload: v, match: { model: m }, backend: a }";
    assert!(of(&format!("{one}, {all}")).is_empty());
    assert_eq!(
        of(&format!("{all}, {one}")),
        ["routes: would be another thing of objects"]
    );
}

#[test]
fn what_objects_cannot_say_stays_beside_them_and_is_named() {
    let file = Path::new("tollgate.yaml");
    let of = |text: &str| {
        let made = crate::manifests(file, text).unwrap_or_else(|faults| panic!("{faults:?}"));
        let notes: Vec<String> = made
            .notes
            .iter()
            .map(|note| format!("{}: {}", note.line.unwrap_or(0), note))
            .collect();
        let objects = made.text.matches("kind: AIGatewayRoute\nmetadata").count();
        let lowered = lower(&[Input {
            file,
            text: &made.text,
        }]);
        assert!(lowered.is_ok(), "{lowered:?}");
        (objects, notes)
    };
    let (objects, notes) = of(include_str!("../../../examples/white-paper.yaml"));
    assert_eq!(objects, 1, "{notes:?}");
    assert_eq!(
        notes,
        [
            "16: routes[1].billed_by: is a setting that no object has, so routes[1] stays in the document; leave it out, if it may go: objects have name, workload, match, backend, model, limits",
            "13: backends.frontier.dialect: is not said, and the object says OpenAI: calls in another form are translated; where it speaks others, too, write its AIServiceBackend by hand",
        ]
    );
    // Names of objects have dots, as those have that are made of objects.
    let (objects, notes) = of(
        "backends: { a.b: { url: \"http://10.0.0.1:1/v1\", dialect: openai } }\nroutes: [ { name: tiers.premium, workload: w, backend: a.b } ]\n",
    );
    assert_eq!((objects, notes), (1, Vec::new()));
    // One behind a route that stays is an object where it has no caller of that route's.
    let (objects, notes) = of(include_str!("../../../examples/budgets.yaml"));
    assert_eq!(objects, 1, "{notes:?}");
    assert!(notes[0].contains("routes[0].billing: "), "{notes:?}");
    let backends = "backends: { a: { url: \"http://10.0.0.1:1/v1\", dialect: openai }, b: { url: \"http://10.0.0.2:1/v1\", dialect: openai, timeouts: { connect: 1s } } }";
    let none = format!(
        "{backends}\nroutes: [ {{ name: one, workload: w, backend: a, limits: [ {{ requests: 1, per: 1m }} ] }}, {{ name: two, workload: [w, v], match: {{ model: m }}, backend: a }}, {{ name: three, workload: u, backend: b }} ]\n"
    );
    let faults = crate::manifests(file, &none).err().unwrap_or_default();
    let faults = faults.iter();
    let notes: Vec<String> = faults
        .map(|fault| format!("{}: {fault}", fault.line.unwrap_or(0)))
        .collect();
    let begins = [
        "2: routes[0].limits[0].window: is a bucket that refills evenly",
        "2: routes[1]: is asked behind routes[0], which has callers of it and stays",
        "1: backends.b.timeouts: is a setting that no object has, so routes[2] stays",
        "0: routes: are none that objects can say, so nothing is printed",
    ];
    assert_eq!(notes.len(), begins.len(), "{notes:?}");
    for (note, begin) in notes.iter().zip(begins) {
        assert!(note.starts_with(begin), "{note}");
    }
}
