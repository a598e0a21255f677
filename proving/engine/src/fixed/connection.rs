//! One connection: read a request, wait, answer, again.
//!
//! Invariant: one buffer a connection, whatever the size of its requests; answers are in the order of requests.
//! Not here: framing (`head`, `body`), the bytes of answers (`reply`).

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};

use super::Shared;
use super::body::Scan;
use super::head::{self, Head};
use super::reply;
use crate::ground_truth::Entry;

const BUFFER_BYTES: usize = 64 << 10;

/// Serves until the client leaves, asks to close, or sends what is no HTTP.
pub(super) async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // Without it only latency suffers, and a broken socket shows itself on the first read.
    let _ = stream.set_nodelay(true);
    let mut connection = Connection {
        stream,
        buffer: vec![0; BUFFER_BYTES],
        start: 0,
        end: 0,
    };
    // An error is a client that left.
    while let Ok(true) = connection.exchange(&shared).await {}
}

struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Connection {
    /// One request and its answer. Returns whether another may follow.
    async fn exchange(&mut self, shared: &Shared) -> io::Result<bool> {
        let Some(mut head) = self.head(shared).await? else {
            return Ok(false);
        };
        if head.expects_continue {
            self.stream.write_all(reply::CONTINUE).await?;
        }
        let mut scan = Scan::new(&shared.needles);
        while !head.body.is_done() {
            if self.start == self.end && !self.fill().await? {
                return Ok(false);
            }
            match head
                .body
                .feed(&self.buffer[self.start..self.end], &mut scan)
            {
                Ok(used) => self.start += used,
                Err(head::Malformed) => return self.refuse().await,
            }
        }
        shared.counters.requests.fetch_add(1, Relaxed);
        shared.counters.body_bytes.fetch_add(scan.bytes, Relaxed);
        match (head.post, scan.stream) {
            (false, _) => self.stream.write_all(reply::HEALTHY).await?,
            (true, false) => {
                if !head.latency.is_zero() {
                    tokio::time::sleep(head.latency).await;
                }
                self.answer(shared, head.id).await?;
            }
            (true, true) => self.events(shared, &head, scan.include_usage).await?,
        }
        Ok(!head.close)
    }

    /// An answer in one piece, recorded first, so that whoever has it finds it in the ground truth.
    async fn answer(&mut self, shared: &Shared, id: Option<Box<str>>) -> io::Result<()> {
        let (Some(ground_truth), Some(id)) = (&shared.config.ground_truth, id) else {
            return self.stream.write_all(&shared.replies.unary).await;
        };
        let (prompt_tokens, completion_tokens) = reply::claims(&id);
        let now = std::time::Instant::now();
        ground_truth.record(Entry {
            id,
            prompt_tokens,
            completion_tokens,
            whole: true,
            began: now,
            ended: now,
        });
        let answer = reply::claiming(prompt_tokens, completion_tokens);
        self.stream.write_all(&answer).await
    }

    /// The next request's head; `None` at the end of the connection.
    async fn head(&mut self, shared: &Shared) -> io::Result<Option<Head>> {
        loop {
            if self.start < self.end {
                match head::parse(&self.buffer[self.start..self.end], &shared.config) {
                    Ok(Some(head)) => {
                        self.start += head.length;
                        return Ok(Some(head));
                    }
                    Ok(None) if self.end - self.start < BUFFER_BYTES => {}
                    Ok(None) | Err(head::Malformed) => return self.refuse().await.map(|_| None),
                }
            }
            if !self.fill().await? {
                return Ok(None);
            }
        }
    }

    /// Reads more behind what is unread. Returns false at the end of the stream.
    async fn fill(&mut self) -> io::Result<bool> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let read = self.stream.read(&mut self.buffer[self.end..]).await?;
        self.end += read;
        Ok(read > 0)
    }

    async fn refuse(&mut self) -> io::Result<bool> {
        self.stream.write_all(reply::BAD_REQUEST).await?;
        Ok(false)
    }

    async fn events(
        &mut self,
        shared: &Shared,
        head: &Head,
        include_usage: bool,
    ) -> io::Result<()> {
        shared.counters.streams.fetch_add(1, Relaxed);
        self.stream.write_all(reply::STREAM_HEAD).await?;
        let mut due = Instant::now();
        wait(&mut due, head.latency).await;
        let mut left = head.events;
        while left > 0 {
            let wanted = if head.interval.is_zero() { left } else { 1 };
            let (bytes, given) = shared.replies.events(wanted);
            self.stream.write_all(bytes).await?;
            left -= given;
            if left > 0 {
                wait(&mut due, head.interval).await;
            }
        }
        self.stream
            .write_all(&shared.replies.closing(head.events, include_usage))
            .await
    }
}

/// Waits until `time` after `due`, which moves on to that moment. A zero wait uses no timer.
async fn wait(due: &mut Instant, time: Duration) {
    if !time.is_zero() {
        *due += time;
        sleep_until(*due).await;
    }
}
