//! Calls that the demo makes itself, for those who only look.
//!
//! Invariant: over TCP and HTTP as any client's; so many and no more, no faster than asked, at most [`OPEN_MAX`] at
//! once. The same seed asks the same, in the same order.
//! Not here: what becomes of them (`screen`, `view`).

mod chance;
mod workload;

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use tollgate::demo::Workload;
use workload::{Asked, Asker};

/// Calls that may be open at once.
const OPEN_MAX: usize = 16;
/// How long one may take.
const CALL_WITHIN: Duration = Duration::from_secs(60);

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) workload: Workload,
    pub(crate) calls: u32,
    pub(crate) every: Duration,
    pub(crate) seed: u64,
}

/// Calls that go on to their end when no more are made, as those of any client do while the gate drains.
struct Open(JoinSet<bool>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.detach_all();
    }
}

/// Makes the calls, and says how many are made. Gives how many of them got no answer at all.
pub(crate) async fn drive(plan: Plan, gate: SocketAddr, made: &Cell<u32>) -> u32 {
    let mut asker = Asker::new(plan.workload, plan.seed);
    let room = Arc::new(Semaphore::new(OPEN_MAX));
    let mut calls = Open(JoinSet::new());
    let mut every = interval(plan.every);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for nth in 1..=plan.calls {
        every.tick().await;
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
            break;
        };
        let request = request(gate, &asker.next());
        made.set(nth);
        calls.0.spawn(async move {
            let answered = timeout(CALL_WITHIN, call(gate, &request)).await;
            drop(permit);
            matches!(answered, Ok(Ok(())))
        });
    }
    let mut unanswered = 0;
    while let Some(answered) = calls.0.join_next().await {
        unanswered += u32::from(!answered.unwrap_or_default());
    }
    unanswered
}

fn request(gate: SocketAddr, asked: &Asked) -> Vec<u8> {
    let Asked { caller, body } = asked;
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {gate}\r\nconnection: close\r\n\
         content-type: application/json\r\nauthorization: Bearer malicious-token\r\n\
         x-workload-app: {caller}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

/// Sends a call and reads its answer, whatever it says, to the end.
async fn call(gate: SocketAddr, request: &[u8]) -> io::Result<()> {
    let mut stream = TcpStream::connect(gate).await?;
    stream.write_all(request).await?;
    let mut read = [0; 8 << 10];
    let mut bytes = 0;
    loop {
        match stream.read(&mut read).await? {
            0 if bytes == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            0 => return Ok(()),
            n => bytes += n,
        }
    }
}

#[cfg(test)]
mod tests;
