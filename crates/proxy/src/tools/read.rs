//! What servers answer, read whole: where the gate itself asks, and where an answer is no stream.
//!
//! Invariant: an answer is kept up to [`ANSWER_BYTES_MAX`], and one that is longer is none.
//! Not here: streams that are passed on as they come (`stream`).

use std::future::poll_fn;
use std::task::{Poll, ready};

use bytes::Bytes;
use mcp::catalog::{Catalog, Kind, NoList, PAGES_MAX};
use mcp::discover::own_params;
use mcp::envelope::{Message, Says};
use mcp::events::{Said, Speaker, Unusable, said};
use mcp::reply;
use policy::attempt::Failure;
use policy::mcp::Server;
use policy::snapshot::Timeouts;
use wire::head::{Known, Method};
use wire::sse::DataReader;

use super::api;
use super::ask::{Asker, Began, Failed, Form, Request, form};
use crate::call::Call;
use crate::deadline::Deadline;
use crate::upstream::{Body, Chunk};
use mcp::session::{OpenServer, SERVER_ID_BYTES_MAX};

/// Most bytes of one answer of a server, or of one event of its stream.
pub(super) const ANSWER_BYTES_MAX: usize = 16 << 20;

/// An answer.
pub(super) struct Heard {
    /// What the server calls the session that it opened, where it did.
    pub(super) session: Option<Box<str>>,
    /// The whole message.
    pub(super) message: Vec<u8>,
}

/// The next piece of a body, for `take`; whether it was the last.
pub(crate) async fn next(
    asker: Asker<'_>,
    body: &mut Body,
    deadline: &mut Deadline,
    mut take: impl FnMut(&[u8]),
) -> Result<bool, Failure> {
    let read = poll_fn(|cx| {
        let read = asker.worker.buffers.scratch(|scratch| {
            Poll::Ready(match ready!(body.poll_chunk(cx, scratch)) {
                Ok(Chunk { data, is_over }) => {
                    take(data);
                    Ok(is_over)
                }
                Err(_) => Err(Failure::Reset),
            })
        });
        if read.is_ready() {
            return read;
        }
        let silent = || Err(Failure::FirstByteTimeout);
        deadline.poll(cx).map(|()| silent())
    });
    let read = read.await;
    body.taken();
    read
}

/// What is held of an answer while it is read.
pub(super) struct Held<'a> {
    asker: Asker<'a>,
    bytes: usize,
}

impl<'a> Held<'a> {
    pub(super) const fn new(asker: Asker<'a>) -> Self {
        Self { asker, bytes: 0 }
    }

    /// It is so much now.
    ///
    /// # Errors
    /// It is more than one answer may be, or there is no room for it beside the others.
    pub(super) fn is_now(&mut self, bytes: usize) -> Result<(), Failed> {
        if bytes > ANSWER_BYTES_MAX {
            return Err(Failed::TooLong);
        }
        let tools = Call::config(self.asker.view).map(|(_, tools)| tools);
        if tools.is_some_and(|tools| !tools.hold(self.bytes, bytes)) {
            return Err(Failed::NoRoom);
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let _given_back = self.is_now(0);
    }
}

/// All of a body.
pub(super) async fn whole(
    asker: Asker<'_>,
    body: &mut Body,
    timeouts: Timeouts,
) -> Result<Vec<u8>, Failed> {
    let mut deadline = Deadline::new(&asker.worker.clock.wheel);
    let (mut out, mut held) = (Vec::new(), Held::new(asker));
    loop {
        deadline.set(timeouts.idle);
        let take = |data: &[u8]| out.extend_from_slice(data);
        let is_over = next(asker, body, &mut deadline, take).await;
        if is_over.map_err(Failed::Upstream)? {
            return Ok(out);
        }
        held.is_now(out.len())?;
    }
}

/// The answer in a response, be it a stream; what else is in that is for nobody.
pub(super) async fn answer(
    asker: Asker<'_>,
    server: &Server,
    asked: &[u8],
    began: &mut Began,
    has_session: bool,
) -> Result<Vec<u8>, Failed> {
    let (form, timeouts) = (form(&began.response, has_session)?, began.timeouts);
    let body = &mut began.response.body;
    match form {
        Form::Taken => Err(Failed::Unusable(Unusable::NoMessage)),
        Form::Json => {
            let text = whole(asker, body, timeouts).await?;
            match said(&text, speaker(server), asked).map_err(Failed::Unusable)? {
                Said::Answer(answer) => Ok(answer.into_owned()),
                Said::Before { .. } => Err(Failed::Unusable(Unusable::NoMessage)),
            }
        }
        Form::Events => {
            let mut deadline = Deadline::new(&asker.worker.clock.wheel);
            let (mut reader, mut found) = (DataReader::new(), None);
            let mut held = Held::new(asker);
            loop {
                deadline.set(timeouts.idle);
                let take = |data: &[u8]| {
                    reader.push(data, |event| match said(event, speaker(server), asked) {
                        Ok(Said::Answer(answer)) if found.is_none() => {
                            found = Some(Ok(answer.into_owned()));
                        }
                        Ok(_) => {}
                        Err(unusable) => {
                            let unusable = Err(Failed::Unusable(unusable));
                            found.get_or_insert(unusable);
                        }
                    });
                };
                let is_over = next(asker, body, &mut deadline, take).await;
                if let Some(found) = found {
                    return found;
                }
                if is_over.map_err(Failed::Upstream)? {
                    return Err(Failed::Upstream(Failure::Reset));
                }
                held.is_now(reader.held())?;
            }
        }
    }
}

impl Asker<'_> {
    /// Asks a server for itself, and gives what it answers, within what the request says.
    pub(super) async fn ask(
        self,
        server: &Server,
        open: Option<&OpenServer>,
        (method, message): (&str, Vec<u8>),
        asked: &[u8],
        within: std::time::Duration,
    ) -> Result<Heard, Failed> {
        let says = super::ask::Says {
            method,
            ..Default::default()
        };
        let request = Request {
            method: Method::Post,
            open,
            says,
            body: Bytes::from(message),
            last_event: None,
            within: Some(within),
        };
        let asking = async {
            let mut began = self.send(server, request).await?;
            let head = began.response.head.as_ref();
            let session =
                head.and_then(|head| head.fields.only(Known::McpSessionId).ok().flatten());
            let is_id =
                |id: &&[u8]| id.len() <= SERVER_ID_BYTES_MAX && id.iter().all(u8::is_ascii_graphic);
            let session = session
                .filter(is_id)
                .and_then(|id| std::str::from_utf8(id).ok());
            let session = session.filter(|id| !id.is_empty()).map(Box::from);
            let has_session = open.is_some_and(|open| open.id.is_some());
            let message = answer(self, server, asked, &mut began, has_session).await?;
            Ok(Heard { session, message })
        };
        match self.worker.timers.timeout(within, asking).await {
            Ok(heard) => heard,
            Err(_) => Err(Failed::Upstream(Failure::FirstByteTimeout)),
        }
    }

    /// A server's list, all its pages.
    pub(super) async fn list(
        self,
        server: &Server,
        open: &OpenServer,
        kind: Kind,
        within: std::time::Duration,
    ) -> Result<Catalog, Failed> {
        if let Some(described) = server.described.as_deref() {
            return api::catalog(described, kind);
        }
        let listing = async {
            let (mut catalog, mut cursor) = (Catalog::default(), None::<Vec<u8>>);
            for page in 0..PAGES_MAX {
                // A client counts from 0 or 1 in this session, and what it asks meanwhile must not be taken for this.
                let nth =
                    Call::config(self.view).map_or(0, |(config, _)| config.kept.next_request());
                let id = format!("\"{}#{page}.{nth}\"", self.id);
                let method = kind.method();
                let cursor_of = |cursor: &Vec<u8>| String::from_utf8_lossy(cursor).into_owned();
                let params = match &cursor {
                    _ if open.version.is_modern() => {
                        let further = cursor
                            .as_ref()
                            .map(|of| format!(",\"cursor\":{}", cursor_of(of)));
                        own_params(&further.unwrap_or_default())
                    }
                    Some(cursor) => format!(r#"{{"cursor":{}}}"#, cursor_of(cursor)),
                    None => "{}".to_owned(),
                };
                let message = format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
                );
                let heard = self
                    .ask(
                        server,
                        Some(open),
                        (method, message.into_bytes()),
                        id.as_bytes(),
                        within,
                    )
                    .await?;
                let result = result(&heard.message).ok_or(Failed::Unusable(Unusable::NoMessage))?;
                let next = catalog.add_page(kind, result);
                cursor = next.map_err(|NoList| Failed::TooLong)?;
                if cursor.is_none() {
                    if open.version.is_modern() && kind == Kind::Tools {
                        catalog.leave_out_ill_annotated();
                    }
                    return Ok(catalog);
                }
            }
            Err(Failed::TooLong)
        };
        match self.worker.timers.timeout(within, listing).await {
            Ok(listed) => listed,
            Err(_) => Err(Failed::Upstream(Failure::FirstByteTimeout)),
        }
    }
}

/// A server whose things are not shown.
fn speaker(server: &Server) -> Speaker<'_> {
    Speaker {
        name: &server.name,
        is_prefixed: false,
    }
}

/// The result of an answer; none where it is an error.
pub(super) fn result(message: &[u8]) -> Option<&[u8]> {
    let Says::Response { result, .. } = Message::read(message).ok()?.says else {
        return None;
    };
    message.get(result?)
}

/// A request of the gate's own.
pub(super) fn request(id: &[u8], method: &str, params: &[u8]) -> Vec<u8> {
    [
        br#"{"jsonrpc":"2.0","id":"#.as_slice(),
        id,
        br#","method":"#,
        &reply::string(method),
        br#","params":"#,
        params,
        b"}",
    ]
    .concat()
}
