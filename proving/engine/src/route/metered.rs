//! A call as HTTP sees it: counted in `http_*` when its answer has been sent or dropped, and in `/load` until then.
//!
//! Invariant: every call of a metered path is counted exactly once. One whose answer never began counts as a 5xx, as
//! in the instrumentation of vLLM.
//! Not here: the counts themselves (`metrics::http`), which paths are counted (`table`).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{Method, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;

use super::Answer;
use super::table::Route;
use crate::metrics::http::Call;
use crate::state::State;

/// A call that has not ended. Dropping it counts it.
pub(super) struct InFlight {
    state: Arc<State>,
    began: Instant,
    call: Call,
    loads: bool,
}

impl InFlight {
    /// `None` for what is not counted.
    pub(super) fn start(
        state: &Arc<State>,
        head: &Parts,
        route: Option<&'static Route>,
    ) -> Option<Self> {
        if route.is_some_and(|route| !route.is_metered) {
            return None;
        }
        let declared = head.headers.get(CONTENT_LENGTH);
        let request_bytes = declared.and_then(|v| v.to_str().ok()?.parse().ok());
        let loads = route.is_some_and(Route::is_work);
        if loads {
            state.recorder.metrics().http.load += 1;
        }
        Some(Self {
            state: Arc::clone(state),
            began: Instant::now(),
            call: Call {
                // A path that is not known is none, so that nobody can make up labels.
                handler: route.map_or("none", |route| route.path),
                method: name(&head.method),
                status: 500,
                request_bytes: request_bytes.unwrap_or(0),
                response_bytes: 0,
            },
            loads,
        })
    }

    /// Counts the call when this answer ends.
    pub(super) fn watch(mut self, answer: Answer) -> Answer {
        self.call.status = answer.status().as_u16();
        let length = answer.body().size_hint().exact();
        self.call.response_bytes = length.unwrap_or(0);
        let (head, body) = answer.into_parts();
        let watched = Watched { body, _call: self };
        Response::from_parts(head, watched.boxed_unsync())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut metrics = self.state.recorder.metrics();
        metrics.http.load -= u64::from(self.loads);
        metrics.http.ended(&self.call, self.began.elapsed());
    }
}

fn name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::PATCH => "PATCH",
        _ => "OTHER",
    }
}

struct Watched<B> {
    body: B,
    _call: InFlight,
}

impl<B: Body<Data = Bytes> + Unpin> Body for Watched<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
