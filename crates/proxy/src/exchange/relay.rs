//! The response on its way: checked, measured, forwarded as it arrives.
//!
//! Invariant: body bytes pass as they came, but for the usage event that the gate asked for and the
//! client did not. No more than one read waits for a slow client. An upstream's word that our
//! credential is bad never becomes the client's 401.
//! Not here: reading usage (`wire::sse`, `wire::usage`).

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use policy::attempt::Failure;
use policy::credential;
use policy::record::Gauge;
use policy::refusal::Refusal;
use wire::head::{Known, ResponseHead};
use wire::sse::{Mode, Scanner};

use super::Stop;
use super::open::{Meter, Open};
use crate::deadline::Deadline;
use crate::downstream::{Downstream, Extent};
use crate::upstream::h1::Piece;
use crate::upstream::{Body, Response};
use crate::worker::Worker;

/// What kind of body a response has, by its content type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Json,
    Events,
    Other,
}

/// Forwards a response to its end.
pub(super) async fn relay<D: Downstream>(
    open: &mut Open,
    response: Response,
    client: &mut D,
    deadline: &mut Deadline,
) -> Result<(), Stop> {
    let Response { head, mut body } = response;
    let content = content(&head);
    check(open, &head, content)?;
    let withhold = content == Content::Events
        && head.status == 200
        && open
            .admitted
            .as_ref()
            .is_some_and(|calling| calling.withhold_usage);
    open.meter = meter(open, &head, content, withhold);
    open.record.status = head.status;
    open.record.streamed = content == Content::Events;
    begin(open, &head, &body, content, withhold, client);
    drop(head);
    let _streaming = (content == Content::Events).then(|| Streaming::new(&open.worker));
    pump(open, &mut body, withhold, client, deadline).await
}

/// Copies the body until it ends.
async fn pump<D: Downstream>(
    open: &mut Open,
    body: &mut Body,
    withhold: bool,
    client: &mut D,
    deadline: &mut Deadline,
) -> Result<(), Stop> {
    let worker = Rc::clone(&open.worker);
    let view = Rc::clone(&open.view);
    let idle = open
        .record
        .backend
        .and_then(|b| view.snapshot.backend(b))
        .map(|b| b.timeouts.idle);
    let idle = idle.unwrap_or_default();
    let mut kept: Vec<Bytes> = Vec::new();
    let mut first = true;
    let mut waited = false;
    loop {
        deadline.set(idle);
        let over = poll_fn(|cx| {
            let polled = worker.scratch(|scratch| {
                let Piece::Data(length, over) = match body.poll_piece(cx, scratch) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Err(_)) => return Poll::Ready(Err(Stop::Cut)),
                    Poll::Ready(Ok(piece)) => piece,
                };
                if first && waited {
                    open.mark = worker.now();
                }
                let data = &scratch[..length];
                let sent = if withhold {
                    sift(&mut open.meter, data, over, &mut kept);
                    let pieces: Vec<&[u8]> = kept.iter().map(|b| &b[..]).collect();
                    open.record.bytes_out += pieces.iter().map(|p| p.len() as u64).sum::<u64>();
                    if pieces.is_empty() && !over {
                        Ok(())
                    } else {
                        client.send(cx, &pieces, over)
                    }
                } else {
                    open.meter.observe(data);
                    open.record.bytes_out += length as u64;
                    client.send(cx, &[data], over)
                };
                kept.clear();
                Poll::Ready(sent.map(|()| over).map_err(|_| Stop::Gone))
            });
            if polled.is_ready() {
                return polled;
            }
            // What is begun leaves even when the upstream pauses right after its head.
            if let Poll::Ready(Err(_)) = client.poll_flushed(cx) {
                return Poll::Ready(Err(Stop::Gone));
            }
            // Until the first piece comes, the time is the upstream's.
            if first && !std::mem::replace(&mut waited, true) {
                open.own_ns += worker.now().0 - open.mark.0;
            }
            if client.poll_gone(&worker, cx).is_ready() {
                return Poll::Ready(Err(Stop::Gone));
            }
            deadline.poll(cx).map(|()| Err(Stop::Cut))
        })
        .await;
        let over = match over {
            Ok(over) => over,
            Err(stop) => {
                release(&mut open.meter, withhold, client).await;
                return Err(stop);
            }
        };
        deadline.set(view.snapshot.bounds.write_stall);
        poll_fn(|cx| match client.poll_flushed(cx) {
            Poll::Ready(flushed) => Poll::Ready(flushed.map_err(|_| Stop::Gone)),
            Poll::Pending => {
                if client.progressed() {
                    deadline.set(view.snapshot.bounds.write_stall);
                }
                deadline.poll(cx).map(|()| Err(Stop::Gone))
            }
        })
        .await?;
        if std::mem::replace(&mut first, false) {
            let now = worker.now();
            open.finished = over.then_some(now);
            open.own_ns += now.0 - open.mark.0;
            open.record.first_byte = Some(now.since(open.began));
            open.record.own = Some(std::time::Duration::from_nanos(
                u64::try_from(open.own_ns).unwrap_or(0),
            ));
        }
        if over {
            return Ok(());
        }
    }
}

/// Takes a chunk of a stream from which our own usage event is withheld.
fn sift(meter: &mut Meter, data: &[u8], over: bool, out: &mut Vec<Bytes>) {
    let Meter::Stream(scanner) = meter else {
        out.push(Bytes::copy_from_slice(data));
        return;
    };
    if !data.is_empty() {
        scanner.push(Bytes::copy_from_slice(data), out);
    }
    if over {
        scanner.finish(out);
    }
}

/// A stream that broke off: what was held back of it still goes out, as far as it goes at once.
async fn release<D: Downstream>(meter: &mut Meter, withhold: bool, client: &mut D) {
    let (true, Meter::Stream(scanner)) = (withhold, meter) else {
        return;
    };
    let mut kept = Vec::new();
    scanner.finish(&mut kept);
    if kept.is_empty() {
        return;
    }
    poll_fn(|cx| {
        let pieces: Vec<&[u8]> = kept.iter().map(|b| &b[..]).collect();
        drop(client.send(cx, &pieces, false));
        Poll::Ready(())
    })
    .await;
}

impl Meter {
    fn observe(&mut self, data: &[u8]) {
        match self {
            Self::Unary(usage) => usage.push(data),
            Self::Stream(scanner) => scanner.observe(data),
            Self::Nothing | Self::Blind => {}
        }
    }
}

fn content(head: &ResponseHead) -> Content {
    let value = head.fields.get(Known::ContentType).unwrap_or_default();
    let kind = value
        .split(|b| *b == b';')
        .next()
        .unwrap_or_default()
        .trim_ascii();
    if kind.eq_ignore_ascii_case(b"application/json") {
        Content::Json
    } else if kind.eq_ignore_ascii_case(b"text/event-stream") {
        Content::Events
    } else {
        Content::Other
    }
}

/// Refuses what must not be passed on.
fn check(open: &Open, head: &ResponseHead, content: Content) -> Result<(), Refusal> {
    let reads = open
        .record
        .operation
        .is_some_and(policy::operation::Operation::reads_body);
    match head.status {
        401 | 403 => Err(Refusal::UpstreamCredential),
        300..=399 => Err(Refusal::UpstreamFormat),
        200..=299 if reads && content == Content::Other => Err(Refusal::UpstreamFormat),
        400.. if content == Content::Other => Err(Refusal::Upstream(Failure::Status(head.status))),
        _ => Ok(()),
    }
}

fn meter(open: &Open, head: &ResponseHead, content: Content, withhold: bool) -> Meter {
    let reads = open
        .record
        .operation
        .is_some_and(policy::operation::Operation::reads_body);
    if !reads || head.status != 200 {
        return Meter::Nothing;
    }
    if head.fields.count(Known::ContentEncoding) > 0 {
        return Meter::Blind;
    }
    match content {
        Content::Json => Meter::Unary(Box::default()),
        Content::Events => {
            let mode = if withhold {
                Mode::Withhold
            } else {
                Mode::Observe
            };
            Meter::Stream(Box::new(Scanner::new(mode)))
        }
        Content::Other => Meter::Blind,
    }
}

fn begin<D: Downstream>(
    open: &Open,
    head: &ResponseHead,
    body: &Body,
    content: Content,
    withhold: bool,
    client: &mut D,
) {
    let extent = match body.length(head) {
        Some(length) if !withhold => Extent::Length(length),
        Some(_) | None => Extent::Open,
    };
    client.begin(head.status, extent);
    for field in head.fields.iter() {
        if credential::returns(&field, &head.fields) {
            client.field(field.name, field.value);
        }
    }
    if content == Content::Events {
        if head.fields.count(Known::CacheControl) == 0 {
            client.field(b"cache-control", b"no-cache");
        }
        if head.fields.count(Known::XAccelBuffering) == 0 {
            client.field(b"x-accel-buffering", b"no");
        }
    }
    client.field(b"x-request-id", open.record.id.as_bytes());
    open.standing().write(client);
    client.begun();
}

/// One open stream in the gauge.
struct Streaming(Rc<Worker>);

impl Streaming {
    fn new(worker: &Rc<Worker>) -> Self {
        worker.sink(|s| s.gauge(Gauge::Streams, 1));
        Self(Rc::clone(worker))
    }
}

impl Drop for Streaming {
    fn drop(&mut self) {
        self.0.sink(|s| s.gauge(Gauge::Streams, -1));
    }
}
