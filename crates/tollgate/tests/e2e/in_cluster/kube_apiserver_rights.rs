//! Each right that a gate is deployed with, taken away by itself: what it is for is missing then, and the gate names the verb and the kind.
//!
//! Invariant: a right whose lack nobody would see is one too many.
//! Not here: that the rights are enough (`kube_apiserver_kinds`), what is said in a status (`control`).

use serde_json::{Value, json};
use testing::{Began, eventually};

use super::kube_apiserver::{OF_SERVER, cluster, deployed, spawn};
use super::kube_apiserver_kinds::{comes_up_with_everything, everything};
use super::{call, completions};
use crate::harness::Gate;
use crate::harness::cluster::{Cluster, figure, objects, path_of};

/// Gates that are started at once.
const AT_ONCE: usize = 4;

/// A right of a rule of an object.
#[derive(Debug, Clone)]
struct Right {
    object: usize,
    rule: usize,
    resource: String,
    verb: String,
}

/// All that is deployed for its rights.
fn deployed_rights() -> Vec<Value> {
    let all = ["rbac.yaml", "secrets.yaml", "pods.yaml"].map(deployed);
    objects(&all.join("---\n").replace("provider-key", "key"))
}

fn texts(list: &Value) -> Vec<String> {
    let all = list.as_array().expect("a list").iter();
    all.map(|text| text.as_str().expect("a text").to_owned())
        .collect()
}

fn each_right(objects: &[Value]) -> Vec<Right> {
    let mut all = Vec::new();
    for (object, of) in objects.iter().enumerate() {
        for (rule, of) in of["rules"].as_array().into_iter().flatten().enumerate() {
            for resource in texts(&of["resources"]) {
                for verb in texts(&of["verbs"]) {
                    all.push(Right {
                        object,
                        rule,
                        resource: resource.clone(),
                        verb,
                    });
                }
            }
        }
    }
    all
}

/// The same without this right, which others of its rule keep.
fn without(objects: &[Value], right: &Right) -> Vec<Value> {
    let mut objects = objects.to_vec();
    let rules = objects[right.object]["rules"]
        .as_array_mut()
        .expect("rules");
    let rule = rules.remove(right.rule);
    let but = |name: &str, one: &str| -> Vec<String> {
        let all = texts(&rule[name]).into_iter();
        all.filter(|text| text != one).collect()
    };
    let (others, verbs) = (but("resources", &right.resource), but("verbs", &right.verb));
    if !others.is_empty() {
        let mut rest = rule.clone();
        rest["resources"] = json!(others);
        rules.push(rest);
    }
    if !verbs.is_empty() {
        let mut rest = rule.clone();
        rest["resources"] = json!([right.resource]);
        rest["verbs"] = json!(verbs);
        rules.push(rest);
    }
    objects
}

/// The same for an account of this namespace, and its lease there.
fn of_namespace(objects: &[Value], namespace: &str) -> Vec<Value> {
    let ours = |said: &mut Value| {
        if said == "tollgate" {
            *said = json!(namespace);
        }
    };
    let mut objects = objects.to_vec();
    for object in &mut objects {
        let kind = object["kind"].as_str().expect("a kind").to_owned();
        ours(&mut object["metadata"]["namespace"]);
        if object["metadata"]["namespace"].is_null() {
            object["metadata"]
                .as_object_mut()
                .expect("a map")
                .remove("namespace");
        }
        let renamed =
            |name: &Value| json!(format!("{namespace}-{}", name.as_str().expect("a name")));
        match &*kind {
            "Namespace" => object["metadata"]["name"] = json!(namespace),
            "ServiceAccount" => {}
            _ => {
                object["metadata"]["name"] = renamed(&object["metadata"]["name"]);
                if object["roleRef"].is_object() {
                    object["roleRef"]["name"] = renamed(&object["roleRef"]["name"]);
                    ours(&mut object["subjects"][0]["namespace"]);
                }
            }
        }
    }
    objects
}

fn apply(cluster: &Cluster, objects: &[Value]) {
    let lines: Vec<String> = objects.iter().map(Value::to_string).collect();
    cluster.apply(&lines.join("\n"));
}

/// An account with these rights, and its token.
fn account(cluster: &Cluster, objects: &[Value], namespace: &str) -> String {
    apply(cluster, &of_namespace(objects, namespace));
    cluster.token(namespace, "tollgate", OF_SERVER)
}

fn begin(cluster: &Cluster, token: &str, namespace: &str) -> Gate {
    spawn(
        cluster,
        token,
        &format!("--gateway default/door --lease {namespace}/tollgate"),
    )
}

/// Whether a line of the log says that this may not be done.
fn names(log: &str, right: &Right) -> bool {
    let (verb, resource) = (format!("cannot {} resource", right.verb), &right.resource);
    let mut lines = log.lines();
    lines.any(|line| {
        let rest = line
            .split_once(&verb)
            .map(|(_, rest)| rest.trim_start_matches([' ', '\\', '"']));
        let rest = rest.and_then(|rest| rest.strip_prefix(&**resource));
        rest.is_some_and(|rest| rest.starts_with(['"', '\\']))
    })
}

#[test]
fn a_gate_without_one_of_its_rights_to_read_or_to_lead_says_which_is_missing() {
    let Some((cluster, _)) = cluster() else {
        return;
    };
    let upstream = completions();
    cluster.apply(&everything(&upstream, 8080));
    // An object that is refused, for the right to tell of it.
    let all = deployed_rights();
    let rights: Vec<Right> = each_right(&all)
        .into_iter()
        .filter(|of| of.verb != "patch" && of.resource != "events")
        .collect();
    assert!(
        rights
            .iter()
            .all(|of| of.verb != "get" || of.resource == "leases"),
        "{rights:?}"
    );
    let namespaces: Vec<String> = (0..rights.len()).map(|n| format!("without-{n}")).collect();
    let began = Began::now();
    let accounts: Vec<String> = rights
        .iter()
        .zip(&namespaces)
        .map(|(right, namespace)| account(&cluster, &without(&all, right), namespace))
        .collect();
    let numbered: Vec<usize> = (0..rights.len()).collect();
    for some in numbered.chunks(AT_ONCE) {
        let gates: Vec<Gate> = some
            .iter()
            .map(|n| {
                // Its rights are known: what it lacks then, it was never given.
                let own = if rights[*n].resource == "gatewayclasses" {
                    "gateways"
                } else {
                    "gatewayclasses"
                };
                let path = format!("/apis/gateway.networking.k8s.io/v1/{own}");
                eventually("its rights are known", || {
                    cluster.get_as(&accounts[*n], &path) == 200
                });
                begin(&cluster, &accounts[*n], &namespaces[*n])
            })
            .collect();
        for (n, gate) in some.iter().zip(&gates) {
            let right = &rights[*n];
            eventually(&format!("{right:?} is missed"), || {
                // Who may take the lease but not keep it says so once it has it.
                names(&gate.log(), right)
            });
        }
    }
    let says = format!("{} of {}, in {}", rights.len(), rights.len(), began.shown());
    figure("rights to read and to lead whose lack is told", &says);
}

#[test]
fn a_gate_without_one_of_its_rights_to_write_says_which_is_missing() {
    let Some((cluster, _)) = cluster() else {
        return;
    };
    let upstream = completions();
    let all = deployed_rights();
    let token = account(&cluster, &all, "writer");
    eventually("its rights are known", || {
        cluster.get_as(&token, "/apis/gateway.networking.k8s.io/v1/gateways") == 200
    });
    let mut gate = begin(&cluster, &token, "writer");
    let everything = comes_up_with_everything(&cluster, &mut gate, &upstream);
    eventually("it has the lease", || gate.log().contains("has the lease"));
    assert_eq!(call(&gate, "one"), 200);
    let mut all_said = 0;
    for right in each_right(&all) {
        let is_event = right.resource == "events";
        if right.verb != "patch" && !is_event {
            continue;
        }
        let plural = right.resource.trim_end_matches("/status");
        let of_it = objects(&everything)
            .into_iter()
            .find(|object| path_of(object).contains(&format!("/{plural}/")));
        apply(&cluster, &of_namespace(&without(&all, &right), "writer"));
        if is_event {
            // A route that is refused has an event, or has not. Its other rule leads to what is looked at below.
            let plain = "/apis/gateway.networking.k8s.io/v1/namespaces/default/httproutes/plain";
            let mut rules = cluster.get(plain)["spec"]["rules"].clone();
            rules[0]["backendRefs"][0]["name"] = json!("nothing");
            cluster.patch_all(&[(plain.to_owned(), json!({ "spec": { "rules": rules } }))]);
        }
        let path = of_it.as_ref().map(path_of);
        eventually(&format!("{right:?} is missed"), || {
            // What was said is taken away, for it to be said again; that of a time when the right was still there is none.
            if let Some(path) = &path {
                cluster.patch_status(path, &Value::Null);
            }
            names(&gate.log(), &right)
        });
        apply(&cluster, &of_namespace(&all, "writer"));
        all_said += 1;
    }
    assert!(all_said >= 17, "{all_said}");
    figure("rights to write whose lack is told", &all_said.to_string());
}
