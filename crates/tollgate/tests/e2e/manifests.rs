//! A gate by Kubernetes' objects: from a directory, checked, converted.
//!
//! Not here: what each object comes to (`vectors/manifests`), the white paper's own (`prove`'s tests).

use std::fs;
use std::os::unix::fs::PermissionsExt;

use testing::eventually;

use crate::harness::{Gate, Step, Upstream, answer, chat, post, tollgate};

const WIDE: (&str, &str) = ("COLUMNS", "1000");

const GATEWAY: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: door }
spec:
  gatewayClassName: models
  addresses: [ { value: 127.0.0.1 } ]
  listeners: [ { name: http, protocol: HTTP, port: 8080 } ]
";

/// A route to a model at an engine of the test's.
fn route(model: &str, upstream: &Upstream) -> String {
    let address = upstream.address;
    let (ip, port) = (address.ip(), address.port());
    format!(
        "
apiVersion: aigateway.envoyproxy.io/v1beta1
kind: AIGatewayRoute
metadata: {{ name: {model} }}
spec:
  parentRefs: [ {{ name: door }} ]
  rules:
    - matches: [ {{ headers: [ {{ name: x-ai-eg-model, value: {model} }} ] }} ]
      backendRefs: [ {{ name: {model} }} ]
---
apiVersion: aigateway.envoyproxy.io/v1beta1
kind: AIServiceBackend
metadata: {{ name: {model} }}
spec:
  schema: {{ name: OpenAI }}
  backendRef: {{ name: {model}, kind: Backend, group: gateway.envoyproxy.io }}
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: Backend
metadata: {{ name: {model} }}
spec: {{ endpoints: [ {{ ip: {{ address: {ip}, port: {port} }} }} ] }}
---
apiVersion: aigateway.envoyproxy.io/v1beta1
kind: BackendSecurityPolicy
metadata: {{ name: {model} }}
spec:
  targetRefs: [ {{ group: aigateway.envoyproxy.io, kind: AIServiceBackend, name: {model} }} ]
  type: APIKey
  apiKey: {{ secretRef: {{ name: key }} }}
"
    )
}

fn secret(key: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{ name: key }}\nstringData: {{ apiKey: {key} }}\n"
    )
}

fn completions() -> Upstream {
    Upstream::start(|_, _| vec![Step::Send(answer::json(200, answer::COMPLETION))])
}

#[test]
fn a_directory_of_objects_is_a_gate_that_follows_each_of_its_files() {
    let upstream = completions();
    let (one, key) = (route("one", &upstream), secret("first-canary-key"));
    let gate = Gate::start_directory(&[
        ("objects/a.yaml", GATEWAY.as_bytes()),
        ("objects/b.yaml", one.as_bytes()),
        ("objects/c.yaml", key.as_bytes()),
        ("objects/readme.txt", b"no object"),
    ]);
    let call = |model: &str| gate.call(&post("/v1/chat/completions", &[], &chat(model, false)));
    let sent = |nth| upstream.nth(nth).expect("a call").header("authorization");
    assert_eq!(call("one").status, 200);
    assert_eq!(sent(0), ["Bearer first-canary-key"]);
    assert_eq!(call("two").status, 404);
    let shown = gate.admin("/config").text();
    assert!(shown.contains("secrets/default/key/apiKey"), "{shown}");
    // A Secret that is replaced.
    gate.replace("objects/c.yaml", secret("second-canary-key").as_bytes());
    let mut calls = 1;
    eventually("the new key is sent", || {
        assert_eq!(call("one").status, 200);
        calls += 1;
        sent(calls - 1) == ["Bearer second-canary-key"]
    });
    // A file that is new.
    gate.replace("objects/d.yaml", route("two", &upstream).as_bytes());
    eventually("the new route is there", || call("two").status == 200);
    // One that is faulty changes nothing, and is named.
    gate.replace(
        "objects/e.yaml",
        b"apiVersion: v1\nkind: Secrt\nmetadata: { name: x }\n",
    );
    eventually("it is refused", || {
        gate.log()
            .contains("e.yaml:1: Secrt default/x: unknown kind")
    });
    // What is watched since then is read once more, and nothing of that is news.
    let log = gate.log();
    let taken = log.lines();
    let taken = taken.filter_map(|line| Some(line.split_once("configuration taken")?.1));
    let taken: Vec<&str> = taken.collect();
    let last = taken.last().expect("the new file was taken");
    assert_eq!(taken.iter().filter(|of| *of == last).count(), 1, "{log}");
    gate.replace("objects/e.yaml", b"apiVersion: v1\nkind: Secrot\n");
    eventually("it is refused for something else", || {
        gate.log().contains("Secrot default/: unknown kind")
    });
    let refused = gate.log().matches("Secrt default/x: unknown kind").count();
    assert_eq!(refused, 1, "{}", gate.log());
    assert_eq!(call("two").status, 200);
    let seen = [gate.log(), gate.admin("/config").text(), gate.metrics()].concat();
    assert!(!seen.contains("canary-key"), "a secret is shown");
}

#[test]
fn check_names_file_object_and_field_of_each_fault_and_what_is_left_out() {
    let upstream = completions();
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).expect("a file");
    write(
        "a.yaml",
        &[GATEWAY, "---", &route("one", &upstream)].concat(),
    );
    let faulty = tollgate(dir.path(), &["check", "-c", "a.yaml"], &[WIDE]);
    let says = "a.yaml:37: BackendSecurityPolicy default/one spec.apiKey.secretRef: there is no Secret default/key; add it to these files\n1 fault\n";
    assert_eq!((faulty.code, faulty.err.as_str()), (Some(1), says));
    write("b.yaml", &secret("canary-key"));
    let good = tollgate(dir.path(), &["check", "-c", "."], &[WIDE]);
    assert_eq!(
        (good.code, good.err.as_str()),
        (Some(0), ""),
        "{}",
        good.err
    );
    assert_eq!(good.out, ".: good (1 workload, 1 route, 1 backend)\n");
    // What is below may be what closes a door.
    fs::create_dir(dir.path().join("policies")).expect("a directory");
    write("policies/b.YAML", &secret("canary-key"));
    let below = tollgate(dir.path(), &["check", "-c", "."], &[WIDE]);
    let says = "./policies/b.YAML: holds objects of Kubernetes in a directory below";
    assert_eq!(below.code, Some(1));
    assert!(below.err.starts_with(says), "{}", below.err);
    let empty = tempfile::tempdir().expect("a directory");
    let none = tollgate(empty.path(), &["check", "-c", "."], &[WIDE]);
    assert_eq!(none.code, Some(1));
    assert!(
        none.err
            .starts_with(".: cannot read the file: it is a directory, and none of its files"),
        "{}",
        none.err
    );
}

#[test]
fn what_convert_writes_is_a_configuration_of_ours_whose_secrets_are_in_private_files() {
    let upstream = completions();
    let dir = tempfile::tempdir().expect("a directory");
    let all = [
        GATEWAY,
        "---",
        &route("one", &upstream),
        "---\n",
        &secret("canary-key"),
    ]
    .concat();
    fs::write(dir.path().join("all.yaml"), all).expect("a file");
    let run = |args: &[&str]| tollgate(dir.path(), args, &[WIDE]);
    let printed = run(&["convert", "all.yaml"]);
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""));
    assert!(
        printed
            .out
            .contains("#   secrets/default/key/apiKey: Secret default/key, key apiKey\n"),
        "{}",
        printed.out
    );
    assert!(!printed.out.contains("canary"), "{}", printed.out);
    let written = run(&["convert", "all.yaml", "-o", "out"]);
    assert_eq!(written.out, "out/tollgate.yaml, and 1 file that it names\n");
    let secret = dir.path().join("out/secrets/default/key/apiKey");
    let mode = fs::metadata(&secret).expect("a file").permissions().mode();
    assert_eq!(
        (mode & 0o777, fs::read(&secret).expect("a file")),
        (0o600, b"canary-key".to_vec())
    );
    let checked = run(&["check", "-c", "out/tollgate.yaml"]);
    assert_eq!((checked.code, checked.err.as_str()), (Some(0), ""));
    // Nothing is replaced.
    let again = run(&["convert", "all.yaml", "-o", "out"]);
    assert_eq!(again.code, Some(1));
    assert!(
        again
            .err
            .starts_with("out/tollgate.yaml: it is there, and nothing is replaced"),
        "{}",
        again.err
    );
    for (args, says) in [
        (
            &["all.yaml", "b.yaml"][..],
            "several files are read from a directory",
        ),
        (
            &["-"],
            "-: the standard input is not read: write it into a file",
        ),
        (
            &["--to", "kubernetes", "."],
            ".: it is a directory, and a document",
        ),
    ] {
        let said = run(&[&["convert"], args].concat());
        assert!(said.err.starts_with(says), "{}", said.err);
        assert_eq!(said.code, Some(1));
    }
    let ours = run(&["convert", "out/tollgate.yaml"]);
    assert_eq!(
        (ours.code, ours.err.as_str()),
        (
            Some(1),
            "out/tollgate.yaml: it holds no objects of Kubernetes\n"
        )
    );
}

#[test]
fn what_convert_writes_elsewhere_is_told_where_a_file_is_not_found_from_there() {
    let upstream = completions();
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).expect("a file");
    let annotated = "apiVersion: v1\nkind: Secret\nmetadata: { name: key, annotations: { substitution.aigw.run/file/apiKey: key.txt } }\n";
    write(
        "all.yaml",
        &[GATEWAY, "---", &route("one", &upstream), "---\n", annotated].concat(),
    );
    write("key.txt", "canary-key");
    let private = fs::Permissions::from_mode(0o600);
    fs::set_permissions(dir.path().join("key.txt"), private).expect("our file");
    let run = |args: &[&str]| tollgate(dir.path(), args, &[WIDE]);
    assert_eq!(run(&["check", "-c", "all.yaml"]).code, Some(0));
    assert_eq!(run(&["convert", "all.yaml", "-o", "."]).code, Some(0));
    let elsewhere = run(&["convert", "all.yaml", "-o", "out"]);
    assert_eq!(elsewhere.code, Some(1));
    let says = "out/tollgate.yaml, and 0 files that it names; it cannot be run as it is:\nout/tollgate.yaml:4: backends.one.credential.file: cannot read the file \"key.txt\": it does not exist";
    assert!(elsewhere.err.starts_with(says), "{}", elsewhere.err);
}

#[test]
fn clients_of_an_api_key_policy_have_a_limit_each_and_nobody_else_is_let_in() {
    let upstream = completions();
    let policies = "
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: SecurityPolicy
metadata: { name: keys }
spec:
  targetRefs: [ { group: gateway.networking.k8s.io, kind: Gateway, name: door } ]
  apiKeyAuth: { credentialRefs: [ { name: clients } ], extractFrom: [ { headers: [ x-api-key ] } ], forwardClientIDHeader: x-client }
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: { name: limits }
spec:
  targetRefs: [ { group: gateway.networking.k8s.io, kind: Gateway, name: door } ]
  rateLimit: { type: Global, global: { rules: [ { clientSelectors: [ { headers: [ { name: x-client, type: Distinct } ] } ], limit: { requests: 2, unit: Hour } } ] } }
";
    let clients = |ada: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{ name: clients }}\nstringData: {{ ada: {ada}, bob: canary-of-bob-012345 }}\n"
        )
    };
    let (one, key) = (route("one", &upstream), secret("upstream-canary-key"));
    let gate = Gate::start_directory(&[
        ("objects/a.yaml", GATEWAY.as_bytes()),
        ("objects/b.yaml", one.as_bytes()),
        ("objects/c.yaml", key.as_bytes()),
        ("objects/d.yaml", policies.as_bytes()),
        ("objects/e.yaml", clients("canary-of-ada-012345").as_bytes()),
    ]);
    let call = |lines: &[&str]| {
        gate.call(&post("/v1/chat/completions", lines, &chat("one", false)))
            .status
    };
    let (ada, bob) = (
        "x-api-key: canary-of-ada-012345",
        "x-api-key: canary-of-bob-012345",
    );
    assert_eq!([call(&[ada]), call(&[ada]), call(&[ada])], [200, 200, 429]);
    // A client cannot say that it is another.
    assert_eq!(call(&[ada, "x-client: bob"]), 403);
    assert_eq!([call(&[bob]), call(&[bob]), call(&[bob])], [200, 200, 429]);
    assert_eq!(call(&[]), 401);
    assert_eq!(call(&["x-client: ada"]), 401);
    assert_eq!(call(&["x-api-key: canary-of-nobody-01"]), 401);
    let sent = upstream.nth(0).expect("a call");
    assert_eq!(sent.header("authorization"), ["Bearer upstream-canary-key"]);
    assert!(sent.header("x-api-key").is_empty());
    // A key that is replaced lets nobody in any more.
    gate.replace("objects/e.yaml", clients("canary-of-ada-678901").as_bytes());
    eventually("the old key is refused", || call(&[ada]) == 401);
    assert_eq!(call(&["x-api-key: canary-of-ada-678901"]), 429);
    let seen = [gate.log(), gate.admin("/config").text(), gate.metrics()].concat();
    assert!(!seen.contains("canary-"), "a secret is shown");
}

#[test]
fn a_distinct_header_that_no_rule_names_says_the_user_and_each_has_the_amount() {
    let upstream = completions();
    let limits = "
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: { name: limits }
spec:
  targetRefs: [ { group: gateway.networking.k8s.io, kind: Gateway, name: door } ]
  rateLimit: { type: Global, global: { rules: [ { clientSelectors: [ { headers: [ { name: x-user-id, type: Distinct } ] } ], limit: { requests: 2, unit: Hour } } ] } }
";
    let (one, key) = (route("one", &upstream), secret("upstream-canary-key"));
    let gate = Gate::start_directory(&[
        ("objects/a.yaml", GATEWAY.as_bytes()),
        ("objects/b.yaml", one.as_bytes()),
        ("objects/c.yaml", key.as_bytes()),
        ("objects/d.yaml", limits.as_bytes()),
    ]);
    let three = |lines: &[&str]| {
        [(); 3].map(|()| {
            gate.call(&post("/v1/chat/completions", lines, &chat("one", false)))
                .status
        })
    };
    for user in ["x-user-id: ada", "x-user-id: bob", "x-user-id: c@d.example"] {
        assert_eq!(three(&[user]), [200, 200, 429], "{user}");
    }
    assert_eq!(three(&[]), [200, 200, 429]);
    assert_eq!(three(&["x-user-id: ada", "x-user-id: eve"]), [400; 3]);
    // Workers write in turns of their own.
    let records = gate.records(15);
    assert!(
        records.iter().any(|record| record["user"] == "ada"),
        "{records:?}"
    );
    assert!(
        upstream
            .nth(0)
            .expect("a call")
            .header("x-user-id")
            .is_empty()
    );
}
