//! What a real API server says of objects of Envoy AI Gateway's kinds, as `deploy/kubernetes/crds` has them, and of those that `convert` makes.
//!
//! Not here: the objects, and what `check` says of them (`verdicts`).

use std::os::unix::fs::PermissionsExt as _;

use super::kube_apiserver::cluster;
use super::verdicts::{Case, ours, theirs};
use crate::harness::cluster::{Cluster, figure, objects};
use crate::harness::tollgate;

fn all_judged(cluster: &Cluster, cases: &[Case], whose: &str) {
    let mut wrong = Vec::new();
    for case in cases {
        let (status, said) = cluster.tries(&case.object);
        let is_right = match case.is_taken {
            true => status == 201,
            false => status == 422,
        };
        if !is_right {
            wrong.push(format!("{}: {status}: {said}", case.name));
        }
    }
    let right = cases.len() - wrong.len();
    figure(
        &format!("verdicts of a real API server on {whose}"),
        &format!("{right} of {}", cases.len()),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_real_api_server_has_envoy_ai_gateways_verdicts_by_the_kinds_that_are_deployed() {
    let Some((cluster, _)) = cluster() else {
        return;
    };
    all_judged(&cluster, &ours(), "our own objects");
    if let Some(cases) = theirs() {
        all_judged(&cluster, &cases, "Envoy AI Gateway's");
    }
}

/// A document with all that objects can say.
const OURS: &str = r#"
listen: { data: "0.0.0.0:8080" }
identity: { header: x-app, user_header: x-user, trust: anyone }
backends:
  claude: { url: "https://api.anthropic.com/v1", dialect: anthropic, credential: { env: CLAUDE_KEY } }
  engine: { url: "http://10.0.0.1:8000/v1", dialect: openai, headers: { x-team: "a b" } }
  spare: { url: "https://spare.example:8443/openai/v1", dialect: openai, credential: { env: CLAUDE_KEY, header: api-key } }
  other: { url: "https://other.example/v1", dialect: openai, credential: { file: key } }
routes:
  - { name: claude, workload: [chat, ide], match: { model: [claude-sonnet-4.5, "claude-haiku-*"] }, backend: claude, limits: [{ tokens: 100000, per: 1m, window: rolling }, { requests: 60, per: 1h, window: rolling, for: user }] }
  - { name: all, workload: chat, backend: [engine, spare, other], model: gpt-oss-120b }
"#;

#[test]
fn a_real_kube_apiserver_takes_each_object_that_convert_makes() {
    let Some((cluster, _)) = cluster() else {
        return;
    };
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text);
    write("tollgate.yaml", OURS).expect("a file");
    write("key", "canary").expect("a file");
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(dir.path().join("key"), private).expect("our file");
    let args = ["convert", "--to", "kubernetes", "tollgate.yaml"];
    let said = tollgate(dir.path(), &args, &[("CLAUDE_KEY", "canary")]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(!said.out.contains("canary"), "{}", said.out);
    let all = objects(&said.out);
    let all: Vec<_> = all
        .iter()
        .filter(|object| object["kind"].is_string())
        .collect();
    let secrets = all.iter().filter(|object| object["kind"] == "Secret");
    assert_eq!(secrets.count(), 3, "{}", said.out);
    for object in all {
        let (status, why) = cluster.tries(object);
        assert_eq!(status, 201, "{why}: {object}");
    }
}
