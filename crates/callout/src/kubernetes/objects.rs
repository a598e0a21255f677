//! Objects of an API server: asked for once, or told of as they change.
//!
//! Invariant: an answer has its longest length, a line of changes too, and whoever tells of changes is believed to be there for no
//! longer than [`SILENCE_MAX`] without a word.
//! Not here: which objects, and what is made of them (`kubernetes`).

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http::{Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use tokio::time::timeout;

use super::ApiServer;
use crate::client::{Call, Client, Connection};
use crate::client_auth::bearer;
use crate::fault::Fault;

/// The longest answer: a page of a list.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// The longest line of changes. An object is 1.5 MiB at most, and escaped in it.
const LINE_BYTES_MAX: usize = 8 << 20;
/// How long nothing may come. Servers say about once a minute that there is nothing to say.
const SILENCE_MAX: Duration = Duration::from_secs(300);

/// Asks an API server about objects.
#[derive(Debug, Clone)]
pub struct Objects {
    server: ApiServer,
    client: Client,
}

/// A whole answer.
#[derive(Debug)]
pub struct Said {
    /// Its status.
    pub status: u16,
    /// Its body.
    pub body: Bytes,
}

/// Lines that come as long as somebody has something to tell.
pub struct Lines {
    body: Incoming,
    read: BytesMut,
    /// How much of what was read holds no end of a line.
    looked_at: usize,
    /// With it the body would end.
    _connection: Connection,
}

impl Objects {
    /// Of this server.
    #[must_use]
    pub fn new(server: ApiServer, client: Client) -> Self {
        Self { server, client }
    }

    /// Asks once; `body` is JSON, with its media type.
    ///
    /// # Errors
    /// There is no whole answer. One that says no is an answer.
    pub async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<(&'static str, Bytes)>,
    ) -> Result<Said, Fault> {
        let url = self.server.at(path)?;
        let mut call = self.call(method, &url)?;
        if let Some((media, body)) = body {
            call.headers
                .insert(CONTENT_TYPE, HeaderValue::from_static(media));
            call.body = body;
        }
        let reply = self.client.send(&call).await?;
        Ok(Said {
            status: reply.status.as_u16(),
            body: reply.body,
        })
    }

    /// Asks for lines; an answer that says no comes whole.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn lines(&self, path: &str) -> Result<Result<Lines, Said>, Fault> {
        let url = self.server.at(path)?;
        let call = self.call(Method::GET, &url)?;
        let (head, connection) = self.client.open(&call).await?;
        let status = head.status();
        if status != StatusCode::OK {
            let body = Limited::new(head.into_body(), super::ANSWER_BYTES_MAX).collect();
            let read = timeout(Duration::from_secs(5), body).await;
            let body = read.ok().and_then(Result::ok).map(|read| read.to_bytes());
            return Ok(Err(Said {
                status: status.as_u16(),
                body: body.unwrap_or_default(),
            }));
        }
        Ok(Ok(Lines {
            body: head.into_body(),
            read: BytesMut::new(),
            looked_at: 0,
            _connection: connection,
        }))
    }

    fn call<'a>(&self, method: Method, url: &'a crate::Url) -> Result<Call<'a>, Fault> {
        let mut call = Call::new(method, url, ANSWER_BYTES_MAX);
        let kind = HeaderValue::from_static("application/json");
        call.headers.insert(ACCEPT, kind);
        if !self.server.token.is_none() {
            let token = bearer(&self.server.token)?;
            call.headers.insert(AUTHORIZATION, token);
        }
        Ok(call)
    }
}

impl Lines {
    /// The next line without its end; none where the other side ended.
    ///
    /// # Errors
    /// It broke off, a line is too long, or nothing came for too long.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        loop {
            let rest = self.read.get(self.looked_at..).unwrap_or_default();
            if let Some(end) = rest.iter().position(|b| *b == b'\n') {
                let mut line = self.read.split_to(self.looked_at + end + 1);
                line.truncate(line.len() - 1);
                self.looked_at = 0;
                return Ok(Some(line.freeze()));
            }
            self.looked_at = self.read.len();
            if self.looked_at > LINE_BYTES_MAX {
                return Err(Fault::Large(LINE_BYTES_MAX));
            }
            let late = |_| Fault::Late {
                waited_for: "word of changes",
                within: SILENCE_MAX,
            };
            let frame = timeout(SILENCE_MAX, self.body.frame())
                .await
                .map_err(late)?;
            match frame {
                None => return Ok(None),
                Some(Err(error)) => return Err(Fault::Broken(error.to_string())),
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        self.read.extend_from_slice(data);
                    }
                }
            }
        }
    }
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lines")
    }
}
