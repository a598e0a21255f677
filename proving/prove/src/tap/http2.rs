//! A connection of HTTP/2 between a gateway and its upstream: streams are relayed one by one, and stamped.
//!
//! Bytes of HTTP/2 do not say where an exchange is: heads are compressed by what the connection has said before. So both
//! sides are spoken to, and messages pass as they come: a head when it is whole, data chunk by chunk. What that takes stands in each stamp as the relay's own.
//! Invariant: a stream's end, its trailers and its resets pass; nothing waits for a whole message, and what one side cannot take the other is not asked for.
//! Not here: HTTP/1.1, whose bytes pass unread (`tap`).

use std::future::poll_fn;
use std::rc::Rc;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request, Response};
use tokio::net::TcpStream;

use super::{Ended, Relay, Stamp, monotonic_ns};
use load::source::RequestId;

/// What begins a connection of HTTP/2 and no request of HTTP/1.1.
pub(super) const PREFACE: &[u8] = b"PRI";
/// Streams at once.
const MOST_STREAMS: u32 = 4_096;
/// What either side may send before it is taken on.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;

/// One connection, to its end.
pub(super) async fn connection(down: TcpStream, up: TcpStream, relay: Rc<Relay>) {
    let mut server = h2::server::Builder::new();
    server
        .max_concurrent_streams(MOST_STREAMS)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    let mut client = h2::client::Builder::new();
    client
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    let (server, client) = tokio::join!(
        server.handshake::<_, Bytes>(down),
        client.handshake::<_, Bytes>(up)
    );
    let (Ok(mut server), Ok((sender, upstream))) = (server, client) else {
        return relay.tell(Ended::NotUnderstood);
    };
    let upstream = tokio::task::spawn_local(async move { drop(upstream.await) });
    while let Some(Ok((request, respond))) = server.accept().await {
        let came = relay.after_delay();
        let exchange = Exchange {
            relay: Rc::clone(&relay),
            id: id(request.headers(), relay.config.id.name().as_str()),
            in_ns: came.at_ns,
            whole_in_ns: came.at_ns,
            sent_on_ns: 0,
            delay_ns: came.delay_ns,
        };
        let sender = sender.clone();
        tokio::task::spawn_local(async move { exchange.run(request, respond, sender).await });
    }
    upstream.abort();
}

fn id(headers: &HeaderMap, name: &str) -> Option<RequestId> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

/// One stream.
struct Exchange {
    relay: Rc<Relay>,
    id: Option<RequestId>,
    in_ns: u64,
    whole_in_ns: u64,
    sent_on_ns: u64,
    delay_ns: u64,
}

/// When the first bytes of an answer went, how long the relay had them, and when the last went.
struct Went {
    first_ns: u64,
    took_ns: u64,
    last_ns: u64,
}

impl Exchange {
    async fn run(
        mut self,
        request: Request<RecvStream>,
        mut respond: SendResponse<Bytes>,
        sender: SendRequest<Bytes>,
    ) {
        let relay = Rc::clone(&self.relay);
        let went = async {
            let answer = self.send_on(request, sender).await?;
            self.answer(answer, &mut respond).await
        };
        match went.await {
            Ok(went) => relay.tell(self.ended(&went)),
            Err(error) => {
                respond.send_reset(error.reason().unwrap_or(Reason::INTERNAL_ERROR));
                relay.tell(Ended::Cut);
            }
        }
    }

    const fn ended(&self, went: &Went) -> Ended {
        let Some(id) = self.id else {
            return Ended::WithoutId;
        };
        Ended::Stamp(Stamp {
            id,
            in_ns: self.in_ns,
            whole_in_ns: self.whole_in_ns,
            first_out_ns: went.first_ns,
            last_out_ns: went.last_ns,
            delay_ns: self.delay_ns,
            own_ns: self.sent_on_ns + went.took_ns,
        })
    }

    /// The request goes to the upstream, head and data.
    async fn send_on(
        &mut self,
        request: Request<RecvStream>,
        sender: SendRequest<Bytes>,
    ) -> Result<ResponseFuture, h2::Error> {
        let (head, mut body) = request.into_parts();
        let mut sender = sender.ready().await?;
        let ends = body.is_end_stream();
        let (answer, mut to) = sender.send_request(Request::from_parts(head, ()), ends)?;
        self.sent_on_ns = monotonic_ns().saturating_sub(self.whole_in_ns);
        if !ends {
            while let Some(chunk) = body.data().await {
                let chunk = chunk?;
                self.whole_in_ns = monotonic_ns();
                let length = chunk.len();
                send(&mut to, chunk).await?;
                body.flow_control().release_capacity(length)?;
                self.sent_on_ns = monotonic_ns().saturating_sub(self.whole_in_ns);
            }
            finish(&mut to, body.trailers().await?)?;
        }
        Ok(answer)
    }

    /// The answer goes to the gateway.
    async fn answer(
        &mut self,
        answer: ResponseFuture,
        respond: &mut SendResponse<Bytes>,
    ) -> Result<Went, h2::Error> {
        let (head, mut body) = answer.await?.into_parts();
        let first_ns = monotonic_ns();
        let ends = body.is_end_stream();
        let mut to = respond.send_response(Response::from_parts(head, ()), ends)?;
        let took_ns = monotonic_ns().saturating_sub(first_ns);
        let mut last_ns = first_ns;
        if !ends {
            loop {
                let chunk = tokio::select! {
                    chunk = body.data() => chunk,
                    // Whom the answer was for may have left.
                    reason = poll_fn(|cx| to.poll_reset(cx)) => return Err(reason?.into()),
                };
                let Some(chunk) = chunk else { break };
                let chunk = chunk?;
                let length = chunk.len();
                send(&mut to, chunk).await?;
                body.flow_control().release_capacity(length)?;
            }
            let trailers = body.trailers().await?;
            last_ns = monotonic_ns();
            finish(&mut to, trailers)?;
        }
        Ok(Went {
            first_ns,
            took_ns,
            last_ns,
        })
    }
}

/// Data goes as far as the other side takes it, and waits there.
async fn send(to: &mut SendStream<Bytes>, mut chunk: Bytes) -> Result<(), h2::Error> {
    while !chunk.is_empty() {
        to.reserve_capacity(chunk.len());
        let room = match poll_fn(|cx| to.poll_capacity(cx)).await {
            Some(room) => room?,
            None => return Err(Reason::CANCEL.into()),
        };
        let part = chunk.split_to(room.min(chunk.len()));
        to.send_data(part, false)?;
    }
    Ok(())
}

fn finish(to: &mut SendStream<Bytes>, trailers: Option<HeaderMap>) -> Result<(), h2::Error> {
    match trailers {
        Some(trailers) => to.send_trailers(trailers),
        None => to.send_data(Bytes::new(), true),
    }
}
