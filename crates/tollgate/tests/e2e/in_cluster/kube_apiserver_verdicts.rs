//! What a real API server says of objects of Envoy AI Gateway's kinds, as `deploy/kubernetes/crds` has them.
//!
//! Not here: the objects, and what `check` says of them (`verdicts`).

use super::kube_apiserver::cluster;
use super::verdicts::{Case, ours, theirs};
use crate::harness::cluster::{Cluster, figure};

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
