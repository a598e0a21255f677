//! A real API server that is killed under load, has forgotten what happened, or is asked by a replica whose other one was killed.
//!
//! Not here: a server that answers in error (`in_cluster`), what a watch does then (`kubernetes`).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use testing::{Began, eventually, found};

use super::kube_apiserver::{AI, GATEWAYS, cluster, gate, with_objects};
use super::{DOOR, FIRST, call, completions, route, route_to, secret};
use crate::harness::cluster::figure;
use crate::harness::streams::{self, Streams};
use crate::harness::{chat, post};

const STREAMS: u64 = 100;
/// So long nobody answers: long enough for a watch to be tried again and again, ever less often.
const AWAY: Duration = Duration::from_secs(6);

#[test]
fn an_api_server_that_is_killed_under_load_cuts_nothing_and_what_was_deleted_meanwhile_is_gone() {
    let Some((mut cluster, token)) = cluster() else {
        return;
    };
    let engine = Streams::start(Duration::from_millis(50));
    // What is looked at again and again answers at once: a call that begins before its route is gone would else last as long as a stream.
    let at_once = completions();
    for (model, address) in [
        ("m", engine.address),
        ("gone", at_once.address),
        ("deleted", at_once.address),
    ] {
        cluster.apply(&route_to(model, address));
    }
    for text in [DOOR, &secret(FIRST)] {
        cluster.apply(text);
    }
    let gate = gate(&cluster, &token, "");
    for model in ["m", "gone", "deleted"] {
        assert_eq!(call(&gate, model), 200, "{model}");
    }
    let clients = streams::open(gate.data, None, 0..STREAMS);
    eventually("all streams have begun", || clients.begun() == STREAMS);
    let (ends, calls) = (AtomicBool::new(false), AtomicU64::new(0));
    let version = |object: &Value| -> u64 {
        let text = object["metadata"]["resourceVersion"].as_str();
        text.and_then(|text| text.parse().ok()).expect("a version")
    };
    let before = version(&cluster.get(&format!("{AI}/aigatewayroutes/gone")));
    std::thread::scope(|scope| {
        // Whatever the assertions below come to, the caller ends.
        let ended = Ends(&ends);
        scope.spawn(|| {
            while !ends.load(Ordering::SeqCst) {
                assert_eq!(
                    call(&gate, "m"),
                    200,
                    "while the API server is away, or begins anew"
                );
                calls.fetch_add(1, Ordering::SeqCst);
            }
        });
        // One object goes while no API server runs, and etcd forgets that it ever was.
        let mut now = 0;
        let cluster = &mut cluster;
        cluster.loses_while_away(&mut now);
        let ready = Began::now();
        eventually("what was deleted while it was away is gone", || {
            call(&gate, "gone") == 404
        });
        figure(
            "an object that is gone while it is away is gone, after it is ready",
            &ready.shown(),
        );
        // A watch from before is one of which nobody knows any more.
        assert!(now > before);
        let path =
            format!("{AI}/aigatewayroutes?watch=true&timeoutSeconds=1&resourceVersion={before}");
        let said = cluster.said(&path);
        assert!(said.contains("410"), "{said}");
        cluster.delete(&format!("{AI}/aigatewayroutes/deleted"));
        let ready = Began::now();
        eventually("what is deleted now is gone", || {
            call(&gate, "deleted") == 404
        });
        figure(
            "an object that is deleted then is gone after",
            &ready.shown(),
        );
        drop(ended);
    });
    engine.finish();
    for received in clients.join().expect("the clients end") {
        received.assert_identical(&engine.sent(received.n));
    }
    figure(
        "calls meanwhile, all answered with 200",
        &calls.load(Ordering::SeqCst).to_string(),
    );
    let log = gate.log();
    assert!(log.contains("the API server answers again"), "{log}");
    assert!(!log.contains("forbids"), "{log}");
}

/// Sets it once it goes.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl crate::harness::cluster::Cluster {
    /// The API server is killed and begins anew; meanwhile the route `gone` is lost, and etcd forgets all that was.
    fn loses_while_away(&mut self, now: &mut u64) {
        self.restart_server(|cluster| {
            cluster.loses(
                "aigateway.envoyproxy.io",
                "aigatewayroutes",
                "default",
                "gone",
            );
            *now = cluster.compact();
            testing::nothing_happens_for(AWAY);
        });
    }
}

#[test]
fn a_replica_whose_other_one_was_killed_writes_as_its_lease_ends() {
    let Some((cluster, token)) = cluster() else {
        return;
    };
    let upstream = completions();
    with_objects(&cluster, &upstream);
    let mut first = gate(&cluster, &token, "");
    let has_it = "this gate has the lease and writes the status of objects";
    eventually("the first one has the lease", || {
        first.log().contains(has_it)
    });
    let mut second = gate(&cluster, &token, "");
    let lease = "/apis/coordination.k8s.io/v1/namespaces/tollgate/leases/tollgate";
    let holder = || cluster.get(lease)["spec"]["holderIdentity"].clone();
    let before = holder();
    let renewed = || cluster.get(lease)["spec"]["renewTime"].clone();
    // It is killed right after it renewed: the longest that this can take.
    let was = renewed();
    eventually("it renews it", || renewed() != was);
    first.signal(libc::SIGKILL);
    assert!(!first.ended().success());
    let began = Began::now();
    cluster.apply(&route("two", &upstream));
    let status = || cluster.get(&format!("{AI}/aigatewayroutes/two"))["status"].clone();
    found("the other one says what it found", || {
        status()["conditions"][0]["status"]
            .as_str()
            .map(str::to_owned)
    });
    figure(
        "after its holder was killed, a lease of 15 s is another's after",
        &began.shown(),
    );
    assert_ne!(holder(), before);
    assert!(second.log().contains(has_it));
    // Both served all the time.
    let body = chat("two", false);
    assert_eq!(
        second
            .call(&post("/v1/chat/completions", &[], &body))
            .status,
        200
    );
    let door = cluster.get(&format!("{GATEWAYS}/door"));
    assert_eq!(door["status"]["listeners"][0]["attachedRoutes"], 2);
    second.signal(libc::SIGTERM);
    assert!(second.ended().success());
    assert_eq!(holder(), "", "who ends gives it back");
}
