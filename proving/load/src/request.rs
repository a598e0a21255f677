//! Requests, each rendered to bytes once and sent as often as needed.
//!
//! Invariant: `content-length` is written with every body, and equals the body's length.
//! Not here: what the body says.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

/// The bytes of a request.
#[derive(Debug, Clone)]
pub struct Request {
    bytes: Bytes,
}

impl Request {
    /// Renders a POST of `body` to `path` with `headers` in the given order.
    /// The caller answers for the syntax of names and values.
    #[must_use]
    pub fn post(path: &str, host: &str, headers: &[(String, String)], body: &[u8]) -> Self {
        let mut bytes = format!("POST {path} HTTP/1.1\r\nhost: {host}\r\n").into_bytes();
        for (name, value) in headers {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
        bytes.extend_from_slice(body);
        Self {
            bytes: bytes.into(),
        }
    }

    /// Renders a GET of `path`.
    #[must_use]
    pub fn get(path: &str, host: &str) -> Self {
        let bytes = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n");
        Self {
            bytes: bytes.into(),
        }
    }

    /// The bytes as they go to the socket.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Requests that are sent in turn, over and over; clones share whose turn it is.
#[derive(Debug, Clone)]
pub struct Requests {
    /// At least one.
    all: Arc<[Request]>,
    turn: Arc<AtomicUsize>,
}

impl Requests {
    /// Each of `all` in turn, from the one that `turn` counts to: a run that is given the same count goes on where the
    /// last one ended. `None` when there are none.
    #[must_use]
    pub fn in_turn(all: Vec<Request>, turn: Arc<AtomicUsize>) -> Option<Self> {
        (!all.is_empty()).then(|| Self {
            all: all.into(),
            turn,
        })
    }

    /// The next one.
    pub(crate) fn next(&self) -> &Request {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        &self.all[turn % self.all.len()]
    }
}

impl From<Request> for Requests {
    fn from(request: Request) -> Self {
        Self {
            all: Arc::new([request]),
            turn: Arc::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Whose turn it is.

    use std::sync::Arc;

    use super::{Request, Requests};

    #[test]
    fn requests_are_taken_in_turn_and_a_later_run_goes_on_where_the_last_one_ended() {
        let all = || -> Vec<Request> {
            let paths = ["/0", "/1", "/2"];
            paths.map(|path| Request::get(path, "test")).to_vec()
        };
        let turn = Arc::default();
        let path = |requests: &Requests| {
            let text = String::from_utf8_lossy(requests.next().bytes()).into_owned();
            text.split(' ').nth(1).map(ToOwned::to_owned)
        };
        let first = Requests::in_turn(all(), Arc::clone(&turn)).expect("three");
        let taken: Vec<_> = (0..4).filter_map(|_| path(&first)).collect();
        assert_eq!(taken, ["/0", "/1", "/2", "/0"]);
        let second = Requests::in_turn(all(), turn).expect("three");
        assert_eq!(path(&second).as_deref(), Some("/1"));
        assert!(Requests::in_turn(Vec::new(), Arc::default()).is_none());
    }
}
