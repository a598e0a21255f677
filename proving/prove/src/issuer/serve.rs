//! `prove issuer`: answers for the tokens of an issuer, in a process of its own.
//!
//! `POST /introspect` as RFC 7662 has it, for a client that proves who it is; `/authz/…` as Envoy asks over HTTP whether
//! a call may be made; `TokenReview` and `SubjectAccessReview` as an API server of Kubernetes answers them; `/jwks.json`;
//! `/asked`, how often each was asked.
//! Invariant: what it was asked is counted before it is answered; a body has at most 64 KiB.
//! Not here: making the tokens (`issuer`).

use std::collections::HashMap;
use std::convert::Infallible;
use std::fs;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use clap::Args;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{Asked, Role, USER, claims, now_s};
use crate::host::{descriptors, ports};

/// The file of opaque tokens, each with its holder's group, a line each.
pub(super) const TOKENS: &str = "tokens.txt";
/// The file of public keys.
pub(super) const KEYS: &str = "jwks.json";
/// The name of whoever may ask about tokens, and its secret.
const ASKER: (&str, &str) = ("tollgate", "s3cret");
const BODY_BYTES_MAX: usize = 64 << 10;
/// Where an API server of Kubernetes is asked.
const TOKEN_REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const ACCESS_REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// Where it listens; its files are in the current directory.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    #[arg(long)]
    port: u16,
}

struct Book {
    /// The group of each opaque token's holder.
    groups: HashMap<String, String>,
    keys: String,
    /// `authorization` of whoever may ask about tokens.
    asker: String,
    now: u64,
    introspections: AtomicU64,
    authorizations: AtomicU64,
    fetches: AtomicU64,
}

/// Serves until it is ended from outside.
pub(crate) fn serve(options: &Serve) -> io::Result<()> {
    descriptors::raise();
    let book = Rc::new(Book::read(Path::new("."))?);
    crate::runtime::make_local()?.block_on(accept(options.port, book))
}

async fn accept(port: u16, book: Rc<Book>) -> io::Result<()> {
    let listener = TcpListener::bind(ports::loopback(port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        // Without it only latency suffers.
        let _ = stream.set_nodelay(true);
        let book = Rc::clone(&book);
        let service = service_fn(move |request| {
            let book = Rc::clone(&book);
            async move { Ok::<_, Infallible>(book.answer(request).await) }
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        // An error is a client that left.
        tokio::task::spawn_local(async move { drop(connection.await) });
    }
}

impl Book {
    fn read(dir: &Path) -> io::Result<Self> {
        let tokens = fs::read_to_string(dir.join(TOKENS))?;
        let lines = tokens.lines().filter_map(|line| line.split_once(' '));
        let (name, secret) = ASKER;
        Ok(Self {
            groups: lines
                .map(|(token, group)| (token.into(), group.into()))
                .collect(),
            keys: fs::read_to_string(dir.join(KEYS))?,
            asker: format!("Basic {}", STANDARD.encode(format!("{name}:{secret}"))),
            now: now_s(),
            introspections: AtomicU64::new(0),
            authorizations: AtomicU64::new(0),
            fetches: AtomicU64::new(0),
        })
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let authorization = request.headers().get(AUTHORIZATION);
        let authorization = authorization.and_then(|value| value.to_str().ok().map(str::to_owned));
        let authorization = authorization.unwrap_or_default();
        match (request.method(), request.uri().path()) {
            (&Method::GET, "/healthy") => said(StatusCode::OK, "{}".into()),
            (&Method::GET, "/asked") => said(StatusCode::OK, json!(self.asked()).to_string()),
            (&Method::GET, "/jwks.json") => {
                self.fetches.fetch_add(1, Ordering::Relaxed);
                said(StatusCode::OK, self.keys.clone())
            }
            (&Method::POST, "/introspect") => {
                let body = Limited::new(request.into_body(), BODY_BYTES_MAX)
                    .collect()
                    .await;
                match body {
                    Ok(body) => self.introspect(&authorization, &body.to_bytes()),
                    Err(_) => said(StatusCode::BAD_REQUEST, "{}".into()),
                }
            }
            (&Method::POST, TOKEN_REVIEWS | ACCESS_REVIEWS) => {
                let is_of_token = request.uri().path() == TOKEN_REVIEWS;
                let body = Limited::new(request.into_body(), BODY_BYTES_MAX)
                    .collect()
                    .await;
                let review = body.map(|body| serde_json::from_slice(&body.to_bytes()));
                match review {
                    Ok(Ok(review)) if is_of_token => self.token_review(&authorization, review),
                    Ok(Ok(review)) => self.access_review(&authorization, review),
                    Ok(Err(_)) | Err(_) => said(StatusCode::BAD_REQUEST, "{}".into()),
                }
            }
            (_, path) if path.starts_with("/authz/") => {
                said(self.authorize(&authorization), "{}".into())
            }
            _ => said(StatusCode::NOT_FOUND, "{}".into()),
        }
    }

    /// RFC 7662: what stands behind the form's `token`.
    fn introspect(&self, authorization: &str, form: &[u8]) -> Response<Full<Bytes>> {
        self.introspections.fetch_add(1, Ordering::Relaxed);
        if authorization != self.asker {
            return said(StatusCode::UNAUTHORIZED, "{}".into());
        }
        let form = String::from_utf8_lossy(form);
        // Tokens of ours hold nothing that a form encodes.
        let mut members = form
            .split('&')
            .filter_map(|member| member.strip_prefix("token="));
        let group = members.next().and_then(|token| self.groups.get(token));
        let answer = match group {
            Some(group) => {
                let mut answer = claims(group, 0, self.now);
                answer["active"] = true.into();
                answer
            }
            None => json!({ "active": false }),
        };
        said(StatusCode::OK, answer.to_string())
    }

    /// Whose token it is, as an API server of Kubernetes says it to whoever may ask.
    fn token_review(&self, authorization: &str, mut review: Value) -> Response<Full<Bytes>> {
        self.introspections.fetch_add(1, Ordering::Relaxed);
        if !self.is_gate(authorization) {
            return said(StatusCode::UNAUTHORIZED, "{}".into());
        }
        let token = review.pointer("/spec/token").and_then(Value::as_str);
        let group = token.and_then(|token| self.groups.get(token));
        review["status"] = match group {
            Some(group) => json!({
                "authenticated": true,
                "user": { "username": USER, "uid": "1", "groups": [group] },
                "audiences": review.pointer("/spec/audiences").cloned().unwrap_or_default(),
            }),
            None => json!({ "authenticated": false, "error": "unknown token" }),
        };
        said(StatusCode::CREATED, review.to_string())
    }

    /// Whether a user may do something, as an API server says it: those of one group may.
    fn access_review(&self, authorization: &str, mut review: Value) -> Response<Full<Bytes>> {
        self.authorizations.fetch_add(1, Ordering::Relaxed);
        if !self.is_gate(authorization) {
            return said(StatusCode::UNAUTHORIZED, "{}".into());
        }
        let groups = review.pointer("/spec/groups").and_then(Value::as_array);
        let may =
            groups.is_some_and(|groups| groups.iter().any(|group| group == Role::Inference.name()));
        review["status"] = json!({ "allowed": may });
        said(StatusCode::CREATED, review.to_string())
    }

    /// Whether the gate's own token was brought, which the API server knows.
    fn is_gate(&self, authorization: &str) -> bool {
        authorization.strip_prefix("Bearer ") == Some(ASKER.1)
    }

    /// Who calls, and whether those of its group may: what Envoy's filter would be told.
    fn authorize(&self, authorization: &str) -> StatusCode {
        self.authorizations.fetch_add(1, Ordering::Relaxed);
        let token = authorization.strip_prefix("Bearer ").unwrap_or_default();
        match self.groups.get(token) {
            Some(group) if group == Role::Inference.name() => StatusCode::OK,
            Some(_) => StatusCode::FORBIDDEN,
            None => StatusCode::UNAUTHORIZED,
        }
    }

    fn asked(&self) -> Asked {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Asked {
            introspections: count(&self.introspections),
            authorizations: count(&self.authorizations),
            keys: count(&self.fetches),
        }
    }
}

fn said(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

#[cfg(test)]
mod tests;
