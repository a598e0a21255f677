//! Helpers that start a gate, its upstreams and its clients.
//!
//! Not here: assertions.

pub(crate) mod answer;
mod chromium;
pub(crate) mod cluster;
mod command;
mod demo;
mod gate;
pub(crate) mod h2;
pub(crate) mod openid;
mod partial_upstream;
mod patience;
mod raw;
mod sdk;
mod signal;
pub(crate) mod streams;
pub(crate) mod tls;
pub(crate) mod tls_client;
mod tmux;
mod upstream;

pub(crate) use chromium::in_browser;
pub(crate) use command::{Ended, run, tollgate};
pub(crate) use demo::{Demo, get, seen_by};
pub(crate) use gate::{Gate, write_private};
pub(crate) use openid::OpenId;
pub(crate) use partial_upstream::PartialUpstream;
pub(crate) use patience::{pace, patiently};
pub(crate) use raw::{Connection, Response, connect_from};
pub(crate) use sdk::Sdk;
pub(crate) use signal::Signal;
pub(crate) use tmux::Pane;
pub(crate) use upstream::{Seen, Step, Upstream};

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// Ports that [`free_address`] chooses from.
const PORTS: u32 = 20_000;

/// A loopback address that was free a moment ago. Its port is below the ephemeral range and is returned only
/// once, so that nothing in these tests binds it before the gate does.
pub(crate) fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    for _ in 0..PORTS {
        let n = NEXT.fetch_add(1, Ordering::SeqCst);
        let port = 10_000 + std::process::id().wrapping_mul(97).wrapping_add(n) % PORTS;
        let address = SocketAddr::from(([127, 0, 0, 1], u16::try_from(port).expect("a port")));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
    panic!("no port of {PORTS} is free");
}

/// A chat call's body.
pub(crate) fn chat(model: &str, stream: bool) -> String {
    format!(
        r#"{{"model":"{model}","stream":{stream},"messages":[{{"role":"user","content":"Hello"}}]}}"#
    )
}

/// A POST with a JSON body and these header lines (`name: value`), as raw bytes.
pub(crate) fn post(path: &str, headers: &[&str], body: &str) -> Vec<u8> {
    let mut text =
        format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n");
    for header in headers {
        text.push_str(header);
        text.push_str("\r\n");
    }
    text.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
    text.into_bytes()
}
