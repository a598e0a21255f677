//! Connections in memory, for tests in virtual time: as TCP behaves, without a kernel.
//!
//! Invariant: what a side wrote before it closed in order is read by the other side; a side that is dropped with
//! bytes unread, or that is written to after it is gone, resets the connection.
//! Not here: who is at the ends (`sim`).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use policy::attempt::Failure;
use policy::snapshot::Origin;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::stream::Stream;

/// Bytes that are under way in one direction before a writer waits.
const ROOM_BYTES: usize = 32 << 10;

/// One side of a connection.
#[derive(Debug)]
pub(crate) struct Pipe {
    shared: Rc<RefCell<Shared>>,
    side: usize,
}

#[derive(Debug, Default)]
struct Shared {
    /// By the side that reads it.
    halves: [Half; 2],
    is_reset: bool,
    is_gone: [bool; 2],
}

#[derive(Debug, Default)]
struct Half {
    bytes: VecDeque<u8>,
    /// Its writer has ended.
    is_ended: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Half {
    fn wake(&mut self) {
        let wakers = [self.reader.take(), self.writer.take()];
        wakers.into_iter().flatten().for_each(Waker::wake);
    }
}

/// The two sides of a new connection.
pub(crate) fn pipe() -> (Pipe, Pipe) {
    let shared = Rc::new(RefCell::new(Shared::default()));
    let side = |side| Pipe {
        shared: Rc::clone(&shared),
        side,
    };
    (side(0), side(1))
}

impl Pipe {
    /// Whether nothing has arrived and the other side has not ended.
    pub(crate) fn is_quiet(&self) -> bool {
        let shared = self.shared.borrow();
        let half = &shared.halves[self.side];
        half.bytes.is_empty() && !half.is_ended && !shared.is_reset
    }

    /// Whether the connection was reset.
    pub(crate) fn is_broken(&self) -> bool {
        let shared = self.shared.borrow();
        shared.is_reset || shared.is_gone[1 - self.side]
    }

    /// Bytes that the other side has not read.
    pub(crate) fn unread(&self) -> usize {
        self.shared.borrow().halves[1 - self.side].bytes.len()
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let mut shared = self.shared.borrow_mut();
        shared.is_gone[self.side] = true;
        shared.is_reset |= !shared.halves[self.side].bytes.is_empty();
        shared.halves[1 - self.side].is_ended = true;
        shared.halves.iter_mut().for_each(Half::wake);
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut shared = self.shared.borrow_mut();
        if shared.is_reset {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let half = &mut shared.halves[self.side];
        if half.bytes.is_empty() && !half.is_ended {
            half.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let some = half.bytes.len().min(buf.remaining());
        for byte in half.bytes.drain(..some) {
            buf.put_slice(&[byte]);
        }
        if let Some(writer) = half.writer.take() {
            writer.wake();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut shared = self.shared.borrow_mut();
        if shared.is_reset || shared.is_gone[1 - self.side] {
            shared.is_reset = true;
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let half = &mut shared.halves[1 - self.side];
        let room = ROOM_BYTES.saturating_sub(half.bytes.len());
        if room == 0 {
            half.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let some = room.min(bytes.len());
        half.bytes.extend(&bytes[..some]);
        if let Some(reader) = half.reader.take() {
            reader.wake();
        }
        Poll::Ready(Ok(some))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let half = &mut self.shared.borrow_mut().halves[1 - self.side];
        half.is_ended = true;
        half.wake();
        Poll::Ready(Ok(()))
    }
}

/// Who connects to upstreams on this thread.
pub(crate) type Dialler = Rc<dyn Fn(&Origin) -> Result<Stream, Failure>>;

thread_local! {
    static DIALLER: RefCell<Option<Dialler>> = const { RefCell::new(None) };
}

/// Connects in memory from now on, on this thread.
pub(crate) fn dial_with(dialler: Dialler) {
    DIALLER.set(Some(dialler));
}

/// A connection in memory, where this thread makes such.
pub(crate) fn dial(origin: &Origin) -> Option<Result<Stream, Failure>> {
    let dialler = DIALLER.with_borrow(Clone::clone)?;
    Some(dialler(origin))
}
