//! A process of ours that serves on ports of loopback.
//!
//! Invariant: whoever answers there is the process that was started. Another test may take a port between the moment it is
//! drawn and the moment it is listened on.

use std::fs;
use std::net::SocketAddr;
use std::process::{Child, Command};

use testing::eventually;

use super::ports;

/// How often other ports are tried.
const ATTEMPTS: usize = 8;

/// A process that ends with its test.
pub(crate) struct Ends(pub(crate) Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

/// The process of `command`, which is given addresses, as soon as it listens on each of them.
pub(crate) fn serve<const N: usize>(
    command: impl Fn([SocketAddr; N]) -> Command,
) -> (Ends, [SocketAddr; N]) {
    for _ in 0..ATTEMPTS {
        let at = [(); N].map(|()| ports::loopback(ports::free().expect("a port")));
        let mut child = Ends(command(at).spawn().expect("prove runs"));
        let mut has_ended = false;
        eventually("it listens, or ends as a port is taken", || {
            has_ended = child.0.try_wait().expect("its state").is_some();
            has_ended || at.iter().all(|at| listens(&child.0, *at))
        });
        if !has_ended {
            return (child, at);
        }
    }
    panic!("no server stayed on any of {ATTEMPTS} ports");
}

/// Whether the listener at this address is of this process.
fn listens(process: &Child, at: SocketAddr) -> bool {
    let sockets = fs::read_to_string("/proc/net/tcp").expect("the kernel's list");
    let port = format!(":{:04X}", at.port());
    let listener = sockets.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_it = words.get(1)?.ends_with(&port) && *words.get(3)? == "0A";
        is_it.then(|| format!("socket:[{}]", words.get(9).unwrap_or(&"")))
    });
    let Some(listener) = listener else {
        return false;
    };
    let open = fs::read_dir(format!("/proc/{}/fd", process.id()));
    let links = open.into_iter().flatten().flatten();
    links
        .filter_map(|open| fs::read_link(open.path()).ok())
        .any(|link| link.as_os_str() == listener.as_str())
}
