//! The client's side: a connection from accept to close, in either version of HTTP.
//!
//! Invariant: nothing is read before the last thing was answered beyond one bounded buffer; a
//! response that cannot end well ends visibly broken.
//! Not here: what an exchange does (`exchange`).

pub(crate) mod h1;
pub(crate) mod h2;

use std::fmt::Display;
use std::rc::Rc;
use std::time::Duration;

use policy::record::Trouble;

use crate::connections::{Away, Place};
use crate::socket::Socket;
use crate::source::Source;
use crate::stream::Stream;
use crate::worker::Worker;
use crate::worker_snapshot::WorkerSnapshot;

const HANDSHAKE: Duration = Duration::from_secs(10);

/// Serves a connection to its end.
pub(crate) async fn serve(worker: Rc<Worker>, view: Rc<WorkerSnapshot>, mut tcp: Socket) {
    let clients = &view.snapshot().clients;
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
    view: &WorkerSnapshot,
    tcp: &mut Socket,
) -> Result<Option<Place>, Option<Away>> {
    let bounds = &view.snapshot().bounds;
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
    let place = worker
        .connections
        .place(Source::of(tcp.peer()), bounds.source_connections);
    place.map(Some).map_err(|at| {
        worker.closed(at);
        worker.connections.turn_away()
    })
}

/// Tells a client that there is no room, if it can be told without a handshake.
pub(crate) async fn turn_away(worker: Rc<Worker>, view: Rc<WorkerSnapshot>, tcp: Socket) {
    if view.acceptor.is_none() {
        h1::turn_away(worker, Stream::Plain(tcp)).await;
    }
}
