//! One connection to a master: bytes out in their order, messages in.
//!
//! Invariant: at most [`MOST_QUEUED_BYTES`] wait to be written; how many messages were written whole is always known.
//! Not here: when to connect (`worker`).

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::super::delivery::Ending;
use super::super::zmtp::{self, Decoder, PeerEvent, ZmtpError};

/// Bytes that wait to be written: some reports of the greatest size.
const MOST_QUEUED_BYTES: usize = 64 << 20;
/// Bytes read at once, and messages taken from them before anything else has its turn.
const READ_BYTES: usize = 64 << 10;

/// Why a connection is of no more use.
#[derive(Debug)]
pub(super) enum Ended {
    How(Ending),
    Zmtp(ZmtpError),
}

pub(super) struct Link {
    stream: TcpStream,
    decoder: Decoder,
    queued: BytesMut,
    /// Where each queued message ends, counted from the first byte of the connection.
    ends: VecDeque<u64>,
    written_bytes: u64,
    written_messages: u64,
    /// Until when the handshake must be over; `None` afterwards.
    deadline: Option<Instant>,
}

impl Link {
    /// Begins the handshake.
    pub(super) fn new(stream: TcpStream, id: &str, deadline: Instant) -> Self {
        // Without it, small messages come late; they come.
        let _ = stream.set_nodelay(true);
        let opening = zmtp::opening("DEALER", id.as_bytes());
        Self {
            stream,
            decoder: Decoder::new("ROUTER"),
            queued: BytesMut::from(&opening[..]),
            ends: VecDeque::new(),
            written_bytes: 0,
            written_messages: 0,
            deadline: Some(deadline),
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Messages that the system has taken whole.
    pub(super) fn messages_written(&self) -> u64 {
        self.written_messages
    }

    /// Queues a message; whether there was room.
    pub(super) fn send(&mut self, body: &[u8]) -> bool {
        let mut frame = Vec::with_capacity(body.len() + 9);
        zmtp::put_message(body, &mut frame);
        if self.queued.len() + frame.len() > MOST_QUEUED_BYTES {
            return false;
        }
        self.queued.extend_from_slice(&frame);
        self.ends
            .push_back(self.written_bytes + self.queued.len() as u64);
        // Most go at once; what does not is written when the socket is ready.
        let _ = self.write();
        true
    }

    /// Waits until there is something to read, or room for what is queued.
    pub(super) async fn ready(&self) {
        let interest = if self.queued.is_empty() {
            Interest::READABLE
        } else {
            Interest::READABLE | Interest::WRITABLE
        };
        // An error shows itself in reading.
        let _ = self.stream.ready(interest).await;
    }

    /// Reads and writes what can be without waiting.
    pub(super) fn turn(&mut self, heard: &mut Vec<PeerEvent>) -> Result<(), Ended> {
        // What was written before the peer closed has been read, whatever became of the rest: so reading is first.
        self.read(heard)?;
        self.write()
            .map_err(|_| Ended::How(self.read(heard).err().map_or(Ending::Broken, how)))
    }

    fn read(&mut self, heard: &mut Vec<PeerEvent>) -> Result<(), Ended> {
        let mut bytes = [0; READ_BYTES];
        let read = match self.stream.try_read(&mut bytes) {
            Ok(0) => return Err(Ended::How(Ending::Closed)),
            Ok(read) => read,
            Err(error) if is_passing(&error) => return Ok(()),
            Err(_) => return Err(Ended::How(Ending::Broken)),
        };
        self.decoder.push(&bytes[..read]);
        while let Some(next) = self.decoder.next().map_err(Ended::Zmtp)? {
            self.deadline = None;
            heard.push(next);
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        while !self.queued.is_empty() {
            match self.stream.try_write(&self.queued) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => self.wrote(written),
                Err(error) if is_passing(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn wrote(&mut self, written: usize) {
        self.queued.advance(written);
        self.written_bytes += written as u64;
        while self
            .ends
            .front()
            .is_some_and(|end| *end <= self.written_bytes)
        {
            self.ends.pop_front();
            self.written_messages += 1;
        }
    }

    /// Writes what is queued and waits until the peer has read it and closes.
    pub(super) async fn finish(&mut self, patience: Duration) -> Ending {
        let finished = async {
            loop {
                let mut heard = Vec::new();
                self.turn(&mut heard).map_err(how)?;
                if self.queued.is_empty() {
                    break;
                }
                self.ready().await;
            }
            let closed = self.stream.shutdown().await;
            closed.map_err(|_| Ending::Broken)?;
            loop {
                let mut heard = Vec::new();
                match self.read(&mut heard).map_err(how) {
                    Ok(()) => self.ready().await,
                    Err(Ending::Closed) => return Ok(Ending::Finished),
                    Err(other) => return Err(other),
                }
            }
        };
        let finished: Result<Result<Ending, Ending>, _> = timeout(patience, finished).await;
        finished.map_or(Ending::Broken, |how| how.unwrap_or_else(|how| how))
    }
}

fn how(ended: Ended) -> Ending {
    match ended {
        Ended::How(how) => how,
        Ended::Zmtp(_) => Ending::Broken,
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
