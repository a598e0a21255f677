//! Waiting until a program that was started answers.
//!
//! Invariant: whatever the outcome, it is known within the patience given, and a program that ended
//! is told with its last words. Who is interrupted waits no longer.
//! Not here: whether the answer is right (`race::check`).

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use load::client::{Request, fetch};
use load::source::Head;

use super::process::{Group, Start};
use crate::interrupt;

const POLL: Duration = Duration::from_millis(20);
/// Lines of a dead subject's output that are shown.
const LAST_LINES: usize = 3;

/// Starts a program and asks until there is an answer of status 200; what went wrong begins with its name.
pub(crate) fn start_ready(
    name: &str,
    start: Start<'_>,
    (address, request): (SocketAddr, &Request),
    patience: Duration,
) -> Result<Group, String> {
    let group = Group::start(start);
    let mut group = group.map_err(|error| format!("{name} could not start: {error}"))?;
    await_ready(&mut group, address, request, patience, start.log)
        .map_err(|says| format!("{name} {says}"))?;
    Ok(group)
}

/// Asks until there is an answer of status 200.
pub(crate) fn await_ready(
    group: &mut Group,
    address: SocketAddr,
    request: &Request,
    patience: Duration,
    log: &Path,
) -> Result<(), String> {
    await_status(group, address, request, patience, log, |status| {
        status == 200
    })
}

/// Asks until there is an answer, whatever it is.
pub(crate) fn await_answer(
    group: &mut Group,
    address: SocketAddr,
    request: &Request,
    patience: Duration,
    log: &Path,
) -> Result<(), String> {
    await_status(group, address, request, patience, log, |_| true)
}

fn await_status(
    group: &mut Group,
    address: SocketAddr,
    request: &Request,
    patience: Duration,
    log: &Path,
    is_ready: impl Fn(u16) -> bool,
) -> Result<(), String> {
    let began = Instant::now();
    let mut last = String::from("no answer");
    while began.elapsed() < patience {
        if interrupt::was_heard() {
            return Err("was not waited for: interrupted".into());
        }
        if let Some(status) = group.ended() {
            return Err(format!(
                "ended before it was ready ({status}){}",
                last_lines(log)
            ));
        }
        match fetch(address, request, Duration::from_secs(2)) {
            Ok(fetched) if is_ready(fetched.status) => return Ok(()),
            Ok(fetched) => last = format!("status {}", fetched.status),
            Err(error) => last = error.to_string(),
        }
        thread::sleep(POLL);
    }
    Err(format!(
        "was not ready within {} s: {last}{}",
        patience.as_secs(),
        last_lines(log)
    ))
}

/// A GET of a path that is written in this program, from a host that every one of ours answers for.
pub(crate) fn get(path: &'static str) -> Request {
    let head = Head::get(path).and_then(|head| head.with("host", "localhost"));
    Request {
        head: head.expect("a path and a host that are written here"),
        body: Bytes::new(),
    }
}

/// The end of a program's output, to be put behind a message.
pub(crate) fn last_lines(log: &Path) -> String {
    let text = fs::read(log)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default();
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    if last.is_empty() {
        String::new()
    } else {
        format!(": {}", last.join(" | "))
    }
}
