//! Clusters on loopback: a small API server that is exact about versions, and one of ours that watches it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callout::{Bounds, Client, SecretSource, Tls, Url};
use policy::secret::Secret;
use serde_json::{Value, json};
use testing::{ApiServer, eventually};

use super::*;

const GATEWAYS: &str = "/apis/gateway.networking.k8s.io/v1/gateways";
const ROUTES: &str = "/apis/gateway.networking.k8s.io/v1/httproutes";
const SECRETS: &str = "/api/v1/secrets";
const LEASES: &str = "/apis/coordination.k8s.io/v1/leases";
const EVENTS: &str = "/api/v1/events";

fn server() -> ApiServer {
    ApiServer::start(&[GATEWAYS, ROUTES, SECRETS, LEASES, EVENTS])
}

fn watching(server: &ApiServer, identity: &str) -> Started {
    let url = Url::parse(&format!("http://{}", server.address)).expect("a URL");
    let token = SecretSource::fixed(Secret::new(b"own".to_vec()));
    let tls = Tls::nobody().expect("a version of TLS");
    let settings = Settings {
        namespaces: Vec::new(),
        lease: ("gates".to_owned(), "tollgate".to_owned()),
        identity: identity.to_owned(),
    };
    let client = Client::new(&tls, Bounds::default());
    Cluster::start(callout::ApiServer { url, token }, client, settings).expect("a thread")
}

fn object(name: &str, spec: &str) -> Value {
    json!({ "metadata": { "namespace": "a", "name": name }, "spec": { "x": spec } })
}

/// The names of all objects, and what they say.
fn seen(cluster: &Cluster) -> Vec<String> {
    let view = cluster.view();
    let said = |object: &Arc<Object>| {
        let text: Value = serde_json::from_str(object.text()).expect("JSON");
        format!(
            "{} {}",
            object.key.name,
            text["spec"]["x"].as_str().unwrap_or("-")
        )
    };
    view.objects.iter().map(said).collect()
}

fn until(cluster: &Cluster, names: &[&str]) {
    eventually("it sees what there is", || {
        cluster.view().unknown.is_empty() && seen(cluster) == names
    });
}

#[test]
fn a_kind_is_listed_once_in_pages_and_watched_from_there() {
    let server = server();
    server.state().page = Some(2);
    for name in ["1", "2", "3", "4", "5"] {
        server.put(GATEWAYS, object(name, "a"));
    }
    let Started {
        cluster,
        mut changes,
    } = watching(&server, "one");
    until(&cluster, &["1 a", "2 a", "3 a", "4 a", "5 a"]);
    assert_eq!(server.count("/gateways?limit"), 3);
    changes.mark_unchanged();
    server.put(GATEWAYS, object("6", "a"));
    server.put(GATEWAYS, object("1", "b"));
    server.delete(GATEWAYS, "a", "2");
    until(&cluster, &["1 b", "3 a", "4 a", "5 a", "6 a"]);
    assert!(changes.has_changed().expect("it is there"));
    assert_eq!(
        server.count("/gateways?limit"),
        3,
        "nothing is listed again"
    );
    // A watch that ends in order goes on where it was.
    server.end_watches();
    server.put(GATEWAYS, object("7", "a"));
    until(&cluster, &["1 b", "3 a", "4 a", "5 a", "6 a", "7 a"]);
    assert_eq!(server.count("/gateways?limit"), 3);
    // Kinds that are not served are known to be none.
    assert!(server.count("/apis/aigateway.envoyproxy.io/v1alpha1/") > 0);
}

#[test]
fn what_is_deleted_while_nobody_watched_is_gone_once_the_server_forgot_what_happened() {
    let server = server();
    server.put(GATEWAYS, object("1", "a"));
    server.put(ROUTES, object("2", "a"));
    let Started { cluster, .. } = watching(&server, "one");
    until(&cluster, &["1 a", "2 a"]);
    server.state().fails = Some(503);
    server.end_watches();
    eventually("it asks in vain", || server.count("watch=true") > 6);
    // What was known stays as long as nothing else is.
    assert_eq!(seen(&cluster), ["1 a", "2 a"]);
    server.delete(GATEWAYS, "a", "1");
    server.put(ROUTES, object("3", "a"));
    server.forget();
    server.state().fails = None;
    until(&cluster, &["2 a", "3 a"]);
}

#[test]
fn a_server_that_forgets_whatever_it_lists_is_not_asked_in_a_circle() {
    let server = server();
    server.put(GATEWAYS, object("1", "a"));
    let Started { cluster, .. } = watching(&server, "one");
    until(&cluster, &["1 a"]);
    server.state().forgets = true;
    let before = server.count("/gateways?limit");
    server.forget();
    eventually("it is listed anew", || {
        server.count("/gateways?limit") > before
    });
    testing::nothing_happens_for(Duration::from_secs(1));
    let lists = server.count("/gateways?limit") - before;
    assert!(lists < 30, "{lists} lists: each waits longer than the last");
    server.state().forgets = false;
    server.put(GATEWAYS, object("2", "a"));
    until(&cluster, &["1 a", "2 a"]);
}

#[test]
fn a_bookmark_is_as_good_as_a_change() {
    let server = server();
    server.put(GATEWAYS, object("1", "a"));
    let Started { cluster, .. } = watching(&server, "one");
    until(&cluster, &["1 a"]);
    eventually("it watches", || server.count("/gateways?watch=true") == 1);
    let version = server.bookmark();
    eventually("the watch goes on from the bookmark", || {
        server.end_watches();
        let asked = server.state().asked.clone();
        let last = asked
            .iter()
            .rfind(|line| line.contains("/gateways?watch=true"));
        let from = last.and_then(|line| line.split_once("resourceVersion="));
        from.is_some_and(|(_, rest)| rest.parse::<u64>().is_ok_and(|from| from >= version))
    });
    assert_eq!(server.count("/gateways?limit"), 1);
}

#[test]
fn a_secret_is_read_by_its_name_and_no_other_is_asked_for() {
    let server = server();
    let secret = |name: &str| json!({ "metadata": { "namespace": "a", "name": name }, "data": { "k": "djE=" } });
    server.put(SECRETS, secret("one"));
    server.put(SECRETS, secret("other"));
    let Started { cluster, .. } = watching(&server, "one");
    until(&cluster, &[]);
    let name = |name: &str| ["Secret", "a", name].map(str::to_owned);
    assert!(cluster.want([name("one"), name("none")]), "not known yet");
    eventually("both are known", || {
        !cluster.want([name("one"), name("none")])
    });
    assert_eq!(seen(&cluster), ["one -"]);
    let asked = server.state().asked.clone();
    let of_secrets = asked.iter().filter(|line| line.contains("secrets"));
    for line in of_secrets {
        let is_by_name = ["one", "none"].iter().any(|name| {
            line.contains("/api/v1/namespaces/a/secrets?")
                && line.contains(&format!("fieldSelector=metadata.name%3D{name}"))
        });
        assert!(is_by_name, "{line}");
    }
    server.put(SECRETS, secret("none"));
    until(&cluster, &["none -", "one -"]);
    // One that may not be read says so, and stays unread while others are.
    server.state().forbidden = vec!["/api/v1/namespaces/b/".to_owned()];
    let locked = || [name("one"), ["Secret", "b", "locked"].map(str::to_owned)];
    eventually("it is known to be locked", || !cluster.want(locked()));
    let unread = cluster.view().unread;
    let why = "the API server answers 403: no: 403".to_owned();
    assert_eq!(
        unread,
        [(["Secret", "b", "locked"].map(str::to_owned), why)]
    );
    // What nobody wants any more is forgotten.
    until(&cluster, &["one -"]);
}

#[test]
fn the_slices_of_a_service_are_asked_for_by_its_name_and_kept_under_it() {
    let slice = |name: &str, service: &str| {
        json!({
            "metadata": { "name": name, "namespace": "a", "labels": { "kubernetes.io/service-name": service } },
            "addressType": "IPv4",
        })
    };
    let kind = kinds::Kind::of("EndpointSlice").expect("it is watched");
    let query = query::Query::named(kind, "a", "web");
    assert_eq!(
        query.list("v1", None),
        "/apis/discovery.k8s.io/v1/namespaces/a/endpointslices?limit=250&labelSelector=kubernetes.io%2Fservice-name%3Dweb"
    );
    let key = |name, service| {
        query
            .object("v1", slice(name, service))
            .expect("a slice")
            .key
    };
    assert_eq!(key("web-x1", "web").name, "web/web-x1");
    assert!(query.holds(&key("web-x1", "web")));
    assert!(!query.holds(&key("web-x1", "web-2")));
}

#[test]
fn pods_are_asked_for_by_their_labels_and_kept_as_no_more_than_where_they_are() {
    let kind = kinds::Kind::of("Pod").expect("it is watched");
    let query = query::Query::named(kind, "a", "app=vllm,example.com/model=m");
    assert_eq!(
        query.list("v1", None),
        "/api/v1/namespaces/a/pods?limit=250&labelSelector=app%3Dvllm%2Cexample.com%2Fmodel%3Dm"
    );
    let pod = |version: &str, ready: &str| {
        json!({
            "metadata": {
                "name": "vllm-0", "namespace": "a", "resourceVersion": version, "labels": { "app": "vllm" },
                "annotations": { "x": "canary" },
            },
            "spec": { "containers": [{ "env": [{ "name": "K", "value": "canary" }] }] },
            "status": {
                "podIP": "10.0.0.9", "phase": "Running",
                "conditions": [
                    { "type": "Ready", "status": ready, "lastProbeTime": "canary" },
                    { "type": "Initialized", "status": "True" },
                ],
            },
        })
    };
    let kept = |version, ready| query.object("v1", pod(version, ready)).expect("a Pod");
    let object = kept("7", "True");
    assert_eq!(object.key.name, "app=vllm,example.com/model=m/vllm-0");
    assert!(query.holds(&object.key));
    let other = query::Query::named(kind, "a", "app=vllm");
    assert!(!other.holds(&object.key), "it is another selector's");
    assert!(!object.text().contains("canary"), "{}", object.text());
    let said: Value = serde_json::from_str(object.text()).expect("JSON");
    assert_eq!(said["status"]["podIP"], "10.0.0.9");
    assert!(
        object.says_as(&kept("8", "True")),
        "a heartbeat says nothing"
    );
    assert!(!object.says_as(&kept("9", "False")));
}

#[test]
fn a_kind_that_a_server_does_not_serve_for_a_moment_is_not_gone() {
    let server = server();
    server.put(GATEWAYS, object("1", "a"));
    let Started { cluster, .. } = watching(&server, "one");
    until(&cluster, &["1 a"]);
    server.forget();
    server.serve(GATEWAYS, false);
    let before = server.count("/gateways?limit");
    eventually("it looks for it", || {
        server.count("/gateways?limit") > before + 1
    });
    assert_eq!(seen(&cluster), ["1 a"]);
    server.serve(GATEWAYS, true);
    server.put(GATEWAYS, object("2", "a"));
    until(&cluster, &["1 a", "2 a"]);
}

#[test]
fn a_server_that_forbids_what_it_allowed_takes_nothing_away() {
    let server = server();
    server.put(GATEWAYS, object("1", "a"));
    let Started { cluster, .. } = watching(&server, "one");
    until(&cluster, &["1 a"]);
    let before = server.count("/gateways?");
    server.state().forbidden = vec![GATEWAYS.to_owned()];
    server.end_watches();
    eventually("it is told no, and asks again", || {
        server.count("/gateways?") > before + 2
    });
    let view = cluster.view();
    assert!(view.refused.is_empty() && view.unknown.is_empty());
    assert_eq!(seen(&cluster), ["1 a"]);
    server.state().forbidden.clear();
    server.put(GATEWAYS, object("2", "a"));
    until(&cluster, &["1 a", "2 a"]);
}

/// Says `{"said": TEXT}` of a Gateway, and counts how often it is asked what to say.
fn saying(text: &'static str, asked: &Arc<AtomicUsize>) -> Desired {
    let asked = Arc::clone(asked);
    Desired {
        of: ["Gateway", "a", "1"].map(str::to_owned),
        saying: Arc::new(move |object, _| {
            asked.fetch_add(1, Ordering::SeqCst);
            (object["status"]["said"] != text).then(|| Said {
                status: json!({ "said": text }),
                event: Some(Event {
                    reason: text.to_owned(),
                    message: String::new(),
                }),
            })
        }),
    }
}

#[test]
fn the_holder_of_the_lease_alone_writes_and_nothing_that_is_said_already() {
    let server = server();
    server.put(GATEWAYS, object("1", "a"));
    let (asked, of_second) = (Arc::default(), Arc::default());
    let Started {
        cluster: first,
        mut changes,
    } = watching(&server, "one");
    until(&first, &["1 a"]);
    eventually("it holds the lease", || first.is_leader());
    first.say(vec![saying("x", &asked)]);
    let status = || server.get(GATEWAYS, "a", "1").expect("it is there")["status"].clone();
    eventually("it is said", || status() == json!({ "said": "x" }));
    assert_eq!(server.count("PATCH"), 1);
    let told = || {
        let all = server.all(EVENTS).into_iter();
        all.map(|event| event["reason"].clone()).collect::<Vec<_>>()
    };
    eventually("that is told once", || told() == ["x"]);
    // Its own word is no change of what objects say.
    changes.mark_unchanged();
    let Started {
        cluster: second, ..
    } = watching(&server, "two");
    until(&second, &["1 a"]);
    second.say(vec![saying("y", &of_second)]);
    server.put(GATEWAYS, object("1", "b"));
    until(&first, &["1 b"]);
    eventually("it is looked at again", || asked.load(Ordering::SeqCst) > 1);
    assert_eq!(server.count("PATCH"), 1);
    assert!(!second.is_leader());
    assert_eq!(of_second.load(Ordering::SeqCst), 0);
    // Who stops gives it back.
    drop(first);
    eventually("the other one writes", || {
        status() == json!({ "said": "y" })
    });
    assert!(second.is_leader());
    eventually("and tells it", || told().len() == 2);
}

#[test]
fn what_finds_no_room_is_not_there_and_nothing_else_goes_for_it() {
    let mut store = store::Store::default();
    let kind = kinds::Kind::of("Gateway").expect("a kind");
    let query = query::Query::of_kind(kind, None);
    let large = "x".repeat(store::BYTES_MAX / 4);
    let one = |name: &str, text: &str| query.object("v1", object(name, text)).expect("an object");
    for name in ["1", "2", "3"] {
        assert_eq!(store.put(&query, one(name, &large)), store::Change::Objects);
    }
    assert_eq!(store.put(&query, one("4", &large)), store::Change::Nothing);
    assert!(store.is_full);
    assert_eq!(store.objects.len(), 3);
    // One that has grown beyond the bound stays as it was: it may be what keeps somebody out.
    let grown = "x".repeat(store::BYTES_MAX / 2);
    assert_eq!(store.put(&query, one("3", &grown)), store::Change::Nothing);
    assert!(store.objects[&one("3", "").key].text().contains(&large));
    assert_eq!(store.put(&query, one("3", "small")), store::Change::Objects);
    assert_eq!(store.put(&query, one("4", &large)), store::Change::Objects);
    // A server's word of another kind or place is not taken.
    let other = query::Query::named(kind, "b", "1");
    assert_eq!(store.put(&other, one("1", "b")), store::Change::Nothing);
    assert_eq!(
        store.delete(&other, &one("1", "b").key),
        store::Change::Nothing
    );
}

#[test]
fn a_list_that_breaks_off_leaves_what_was_known_and_nothing_of_what_was_not() {
    let mut store = store::Store::default();
    let kind = kinds::Kind::of("Gateway").expect("a kind");
    let query = query::Query::of_kind(kind, None);
    let one = |name: &str, text: &str| {
        object::Object::of(kind, "v1", None, object(name, text)).expect("an object")
    };
    store.asks(&query);
    store.page(&query, vec![one("1", "a"), one("2", "a")]);
    assert_eq!(store.broke_off(&query), store::Change::Objects);
    assert!(store.objects.is_empty());
    store.page(&query, vec![one("1", "a"), one("2", "a")]);
    let all = [one("1", "").key, one("2", "").key].into();
    assert_eq!(store.list(&query, &all), store::Change::Objects);
    // The first page of the next one, and no more.
    assert_eq!(
        store.page(&query, vec![one("1", "b")]),
        store::Change::Objects
    );
    assert_eq!(store.broke_off(&query), store::Change::Nothing);
    assert_eq!(store.objects.len(), 2);
    store.page(&query, vec![one("1", "b")]);
    assert_eq!(
        store.list(&query, &[one("1", "").key].into()),
        store::Change::Objects
    );
    assert_eq!(store.objects.len(), 1);
}

#[test]
fn an_object_is_kept_without_what_only_a_server_needs_and_cannot_be_printed() {
    let kind = kinds::Kind::of("Secret").expect("a kind");
    let said = json!({
        "metadata": {
            "name": "s", "namespace": "a", "resourceVersion": "7", "managedFields": [{ "x": "canary" }],
            "annotations": { "kubectl.kubernetes.io/last-applied-configuration": "canary", "kept": "yes" },
        },
        "data": { "k": "canary" },
    });
    let query = query::Query::named(kind, "a", "s");
    let object = query.object("v1", said).expect("an object");
    assert_eq!(object.text().matches("canary").count(), 1);
    assert!(
        object.text().contains(r#""kept":"yes""#) && object.text().contains(r#""kind":"Secret""#)
    );
    assert!(!format!("{object:?}").contains("canary"));
    assert_eq!(object.path, "/api/v1/namespaces/a/secrets/s");
}

#[test]
fn each_kind_that_is_watched_is_a_right_of_the_manifests_and_of_the_chart() {
    let deploy = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let read = |name: &str| std::fs::read_to_string(deploy.join(name)).expect("it is deployed");
    let chart =
        ["_names.tpl", "rbac.yaml"].map(|name| read(&format!("helm/tollgate/templates/{name}")));
    for rights in [read("kubernetes/rbac.yaml"), chart.concat()] {
        let words: Vec<&str> = rights
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '/')
            .collect();
        for kind in kinds::WATCHED {
            let path = kind.path("v", None);
            let plural = path.rsplit('/').next().expect("a plural");
            assert!(words.contains(&plural), "{plural}");
            // Of what nothing is said, no right to say it is needed.
            let is_said = !matches!(kind.name, "ReferenceGrant" | "EnvoyProxy");
            let status = format!("{plural}/status");
            assert_eq!(words.contains(&status.as_str()), is_said, "{status}");
        }
        // What is watched by its name, but for what may be secret, and Pods, which are asked for where there are pools.
        let open = kinds::NAMED.iter();
        for kind in open.filter(|kind| !matches!(kind.name, "Secret" | "ConfigMap" | "Pod")) {
            let path = kind.path("v", None);
            let plural = path.rsplit('/').next().expect("a plural");
            assert!(words.contains(&plural), "{plural}");
        }
        let of_events = rights
            .split("resources: [events]")
            .nth(1)
            .unwrap_or_default();
        let verbs = of_events.trim_start().lines().next();
        assert_eq!(
            verbs,
            Some("verbs: [create]"),
            "an event is made, and no more"
        );
        // Objects are listed and watched; the lease alone is read by itself.
        let gets = words.iter().filter(|word| **word == "get").count();
        assert_eq!(gets, 1, "{rights}");
        for forbidden in [
            "secrets/status",
            "pods",
            "deployments",
            "nodes",
            "update/status",
        ] {
            assert!(!words.contains(&forbidden), "{forbidden}");
        }
    }
}

#[test]
fn pods_are_a_right_of_their_own() {
    let deploy = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    for file in ["kubernetes/pods.yaml", "helm/tollgate/templates/pods.yaml"] {
        let rights = std::fs::read_to_string(deploy.join(file)).expect("it is deployed");
        assert!(rights.contains("resources: [pods]"), "{file}");
        assert!(
            !rights.contains("[create") && !rights.contains("patch"),
            "{file}"
        );
    }
}
