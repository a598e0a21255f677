//! The client's side: a connection from accept to close, in either version of HTTP.
//!
//! Invariant: nothing is read before the last thing was answered beyond one bounded buffer; a
//! response that cannot end well ends visibly broken.
//! Not here: what an exchange does (`exchange`).

pub(crate) mod h1;
pub(crate) mod h2;

use std::fmt::Display;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use policy::record::Trouble;
use wire::head::HeadFault;

use crate::socket::Socket;
use crate::source::Source;
use crate::stream::Stream;
use crate::view::View;
use crate::worker::{Away, Place, Worker};

const HANDSHAKE: Duration = Duration::from_secs(10);

/// How a response's body is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// There is none, and none may be declared (204, 304, HEAD).
    Nothing,
    /// So many bytes.
    Length(u64),
    /// Known only at its end.
    Open,
}

/// Why a request body did not come whole.
#[derive(Debug)]
pub(crate) enum BodyFault {
    /// Its framing is broken.
    Framing(HeadFault),
    /// It is not what its head allows.
    Head(HeadFault),
    /// The client left.
    Gone,
}

/// One exchange as its client's connection offers it. All waiting is by poll, so that one task can
/// wait for both sides at once.
pub(crate) trait Downstream {
    /// Whose connection it is: the client, or a proxy of connections.
    fn peer(&self) -> IpAddr;
    /// The next piece of the request body; `None` at its end.
    fn poll_body(
        &mut self,
        worker: &Worker,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, BodyFault>>;
    /// Whether the client sends nothing of its body before it is asked to.
    fn awaits_continue(&self) -> bool {
        false
    }
    /// Ready when the client has left. Must not be called with the scratch buffer borrowed.
    fn poll_gone(&mut self, worker: &Worker, cx: &mut Context<'_>) -> Poll<()>;
    /// Begins the response head.
    fn begin(&mut self, status: u16, extent: Extent);
    /// Adds a response header; the name in lower case.
    fn field(&mut self, name: &[u8], value: &[u8]);
    /// Adds the `date`, where the answer has none of its own.
    fn date(&mut self);
    /// Ends the head; it leaves with the first body bytes or the next flush.
    fn begun(&mut self);
    /// Takes back a response that was begun and of which nothing has left; whether that was so.
    fn retract(&mut self) -> bool;
    /// Takes body bytes, sends what goes now and keeps the rest. `end` ends the response.
    fn send(&mut self, cx: &mut Context<'_>, pieces: &[&[u8]], end: bool) -> io::Result<()>;
    /// Ready when everything taken is on its way.
    fn poll_flushed(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
    /// Whether some of what waited has left since this was last asked: a slow client is not gone.
    fn progressed(&mut self) -> bool;
    /// Ends the response so that the client sees it is not whole.
    fn cut(&mut self);
    /// Ends it for a client that left or takes nothing: what it has not taken is dropped.
    fn abandon(&mut self) {
        self.cut();
    }
}

/// Serves a connection to its end.
pub(crate) async fn serve(worker: Rc<Worker>, view: Rc<View>, mut tcp: Socket) {
    let clients = &view.snapshot.clients;
    let is_brought = clients.proxy_protocol && clients.trusts(tcp.peer());
    // Kept until the connection is over.
    let _place = if is_brought {
        match Box::pin(introduced(&worker, &view, &mut tcp)).await {
            Ok(place) => place,
            Err(Some(_away)) => return Box::pin(turn_away(worker, view, tcp)).await,
            Err(None) => return,
        }
    } else {
        None
    };
    let Some(acceptor) = view.acceptor.clone() else {
        drop(view);
        return h1::serve(worker, Stream::Plain(tcp)).await;
    };
    drop(view);
    let accepting = worker.timers.timeout(HANDSHAKE, acceptor.accept(tcp));
    let accepted = Box::pin(accepting).await;
    match accepted {
        Ok(Ok(tls)) => {
            let is_h2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
            let stream = Stream::Served(Box::new(tls));
            if is_h2 {
                h2::serve(worker, stream, Vec::new()).await;
            } else {
                h1::serve(worker, stream).await;
            }
        }
        Ok(Err(error)) => worker.trouble(Trouble::ClientTls, &error),
        Err(_) => worker.trouble(Trouble::ClientTls, &"it took too long"),
    }
}

/// Reads whom a trusted proxy brings. Gives that client's place among the connections of its source, where they
/// are bounded; else a place among those that are told that there is no room, if there is one.
async fn introduced(
    worker: &Rc<Worker>,
    view: &View,
    tcp: &mut Socket,
) -> Result<Option<Place>, Option<Away>> {
    let bounds = &view.snapshot.bounds;
    let trouble = |detail: &dyn Display| {
        worker.trouble(Trouble::ProxyHeader, detail);
        None
    };
    let proxy = tcp.peer();
    let introducing = worker.timers.timeout(bounds.head_time, tcp.introduced());
    match introducing.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(trouble(&format!("{}: {error}", tcp.peer()))),
        Err(_) => return Err(trouble(&"it took too long")),
    }
    if tcp.peer() == proxy {
        return Ok(None); // It calls for itself.
    }
    let place = worker.place(Source::of(tcp.peer()), bounds.source_connections);
    place.map(Some).map_err(|at| worker.turn_away(at))
}

/// Tells a client that there is no room, if it can be told without a handshake.
pub(crate) async fn turn_away(worker: Rc<Worker>, view: Rc<View>, tcp: Socket) {
    if view.acceptor.is_none() {
        h1::turn_away(worker, Stream::Plain(tcp)).await;
    }
}

/// Runs hyper's tasks on this thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Local;

impl<F: Future<Output = ()> + 'static> hyper::rt::Executor<F> for Local {
    fn execute(&self, task: F) {
        tokio::task::spawn_local(task);
    }
}
