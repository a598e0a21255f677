//! The client's side: a connection from accept to close, in either version of HTTP.
//!
//! Invariant: nothing is read before the last thing was answered beyond one bounded buffer; a
//! response that cannot end well ends visibly broken.
//! Not here: what an exchange does (`exchange`).

pub(crate) mod h1;
pub(crate) mod h2;

use std::fmt::Display;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use policy::record::Trouble;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

use crate::connections::{Away, Place};
use crate::peer_certificate;
use crate::socket::Socket;
use crate::source::Source;
use crate::stream::Stream;
use crate::worker::Worker;
use crate::worker_snapshot::WorkerSnapshot;

const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a client whose certificate was refused may go on sending.
const PARTING: Duration = Duration::from_secs(2);
/// Bytes that it may go on sending.
const PARTING_BYTES: usize = 64 << 10;

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
    let Some(acceptor) = view.acceptor(tcp.port()).cloned() else {
        drop(view);
        return h1::serve(worker, Stream::Plain(tcp)).await;
    };
    drop(view);
    let Some((stream, is_h2)) = Box::pin(handshake(&worker, &acceptor, tcp)).await else {
        return;
    };
    if is_h2 {
        h2::serve(worker, stream, Vec::new()).await;
    } else {
        h1::serve(worker, stream).await;
    }
}

/// Speaks TLS with a client, and reads what its certificate says; whether it chose HTTP/2. `None` for a client that is
/// not to be served, which has been told.
async fn handshake(worker: &Worker, acceptor: &TlsAcceptor, tcp: Socket) -> Option<(Stream, bool)> {
    let failed = |trouble, detail: &dyn Display| worker.trouble(trouble, detail);
    let accepting = acceptor.accept(tcp).into_fallible();
    let mut tls = match worker.timers.timeout(HANDSHAKE, accepting).await {
        Ok(Ok(tls)) => tls,
        Ok(Err((error, tcp))) => {
            if is_about_certificate(&error) {
                failed(Trouble::ClientCertificate, &error);
                part(worker, tcp).await;
            } else {
                failed(Trouble::ClientTls, &error);
            }
            return None;
        }
        Err(_) => {
            failed(Trouble::ClientTls, &"it took too long");
            return None;
        }
    };
    let session = tls.get_ref().1;
    let is_h2 = session.alpn_protocol() == Some(b"h2");
    let unix_s = worker.clock.wall_ms(worker.now()) / 1000;
    match peer_certificate::proven(session, unix_s) {
        Ok(certificate) => Some((Stream::Served(Box::new(tls), certificate), is_h2)),
        Err(why) => {
            failed(Trouble::ClientCertificate, &why);
            // In the session, so that the client does not take it for an accident of the network.
            drop(worker.timers.timeout(PARTING, tls.shutdown()).await);
            None
        }
    }
}

/// Whether the client's certificate, or that it brought none, ended the handshake.
fn is_about_certificate(error: &io::Error) -> bool {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    matches!(
        cause,
        Some(rustls::Error::NoCertificatesPresented | rustls::Error::InvalidCertificate(_))
    )
}

/// Closes without losing the alert: a client of TLS 1.3 sends its first request before it can know that its certificate
/// is refused, and a close with unread input would reset the connection.
async fn part(worker: &Worker, mut tcp: Socket) {
    let parting = async {
        drop(tcp.shutdown().await);
        let (mut room, mut taken) = ([0; 1024], 0);
        while taken < PARTING_BYTES
            && let Ok(read @ 1..) = tcp.read(&mut room).await
        {
            taken += read;
        }
    };
    drop(worker.timers.timeout(PARTING, parting).await);
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
    if view.acceptor(tcp.port()).is_none() {
        h1::turn_away(worker, Stream::Plain(tcp)).await;
    }
}
