//! A port that somebody else has; what replicas are.

use std::net::TcpListener;

use super::Bench;
use crate::host::ports;
use crate::issuer::Issuer;
use crate::subject::Subject;

#[test]
fn a_port_that_is_taken_is_a_fault_that_names_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let gateways = dir.path().join("gateways");
    std::fs::create_dir_all(gateways.join("x")).expect("a directory");
    let toml = "summary = 'x'\nfind = { path = ['sh'] }\nstart = ['-c', 'exit 0']\n";
    std::fs::write(gateways.join("x/subject.toml"), toml).expect("a file");
    let subject = Subject::load_all(&gateways, &[])
        .expect("subjects")
        .remove(0);
    let other = TcpListener::bind(ports::loopback(0)).expect("a port");
    let port = other.local_addr().expect("an address").port();
    let mut issuer = Issuer::new().expect("keys");
    let bench = Bench::new(subject, dir.path(), 1, None, &mut issuer);
    let mut bench = bench.expect("a bench");
    bench.replicas[0].places.port = port;
    let says = bench.start().expect_err("the port is taken");
    assert_eq!(says, format!("port {port} is already taken"));
    assert!(bench.groups().next().is_none(), "nothing was started");
}
