//! One request, rendered to bytes once and sent as often as needed.
//!
//! Invariant: `content-length` is written with every body, and equals the body's length.
//! Not here: what the body says.

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
