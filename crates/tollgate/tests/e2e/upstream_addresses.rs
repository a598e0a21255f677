//! An upstream's name that has several addresses, and one whose address moves, as names of services do.
//!
//! Not here: turns and grace in virtual time (unit tests of `proxy`), names that cannot be looked up (`upstream_faults`).

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use testing::{eventually, skip};

use crate::fixture::call;
use crate::harness::answer::{COMPLETION, json};
use crate::harness::{Connection, Gate, Step, Upstream};

fn has_namespaces() -> bool {
    let tried = Command::new("unshare")
        .args(["--map-root-user", "--mount", "mount", "--bind"])
        .args(["/etc/hosts", "/etc/hosts"])
        .output();
    tried.is_ok_and(|tried| tried.status.success())
}

/// One on each address, all on one port.
fn on_one_port() -> [Upstream; 2] {
    let at = |ip: u8, port: u16| {
        let address = SocketAddr::from(([127, 0, 0, ip], port));
        Upstream::start_at(address, |_, _| vec![Step::Send(json(200, COMPLETION))])
    };
    let first = at(61, 0);
    let port = first.address.port();
    [first, at(62, port)]
}

fn name(hosts: &Path, addresses: &[&str]) {
    let lines: String = addresses
        .iter()
        .map(|ip| format!("{ip} engines.test\n"))
        .collect();
    std::fs::write(hosts, lines).expect("the file is ours");
}

#[test]
fn calls_are_shared_by_the_addresses_of_a_name_and_follow_it_to_others() {
    if !has_namespaces() {
        return skip("namespaces of mounts, to have an /etc/hosts of its own");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let hosts = dir.path().join("hosts");
    name(&hosts, &["127.0.0.61", "127.0.0.62"]);
    let [first, second] = on_one_port();
    let config = format!(
        "workers: 1\nbackends: {{ up: {{ url: http://engines.test:{}/v1 }} }}\n\
         routes: [ {{ workload: w, backend: up }} ]\n",
        first.address.port()
    );
    let gate = Gate::start_with_hosts(&hosts, &config);
    let mut client = Connection::open(gate.data);
    let mut calls = |many: usize| {
        for _ in 0..many {
            let response = client.call(&call("{\"model\":\"m\"}"));
            assert_eq!(response.status, 200, "{}", gate.log());
        }
        (first.count(), second.count())
    };
    let (one, other) = calls(21);
    assert!(one.abs_diff(other) <= 1, "{one} and {other}");
    assert_eq!((first.connections(), second.connections()), (1, 1));

    name(&hosts, &["127.0.0.62"]);
    eventually("the gate has seen it", || {
        gate.log()
            .contains("the addresses of an upstream's name have changed")
    });
    let before = first.count();
    assert_eq!(
        calls(20).0,
        before,
        "calls to an address that the name has no longer"
    );
}
