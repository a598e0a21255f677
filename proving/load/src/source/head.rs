//! Heads of requests, rendered once: only the length of the body is written for each request.
//!
//! Invariant: what would break a head's framing is refused when it is made; a value that is secret is not printed.
//! Not here: where it goes (`client::target` says the host where the head does not).

use std::fmt;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method};

/// The head of requests: method, path and header lines.
#[derive(Clone)]
pub struct Head {
    method: Method,
    path: Box<str>,
    host: Option<HeaderValue>,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The header lines as HTTP/1.1 has them.
    lines: Bytes,
}

/// A value that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

/// What cannot be a head.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// Not a path that begins with a slash and holds printable ASCII alone.
    #[error("`{0}` is no path: it begins with / and holds neither spaces nor control characters")]
    Path(String),
    /// Not a name of a header.
    #[error("`{0}` is no name of a header")]
    Name(String),
    /// A value with line ends or other control characters; the value is not told.
    #[error("the value of header `{0}` holds control characters")]
    Value(String),
    /// A header that the client writes itself.
    #[error("header `{0}` follows from the request itself and cannot be given")]
    Own(String),
}

/// Headers that say how a message is framed: the client's own.
pub(super) const OWN: [&str; 7] = [
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "upgrade",
    "te",
    "expect",
];

impl Head {
    /// A POST to `path`.
    ///
    /// # Errors
    /// `path` is none.
    pub fn post(path: &str) -> Result<Self, HeadError> {
        Self::new(Method::POST, path)
    }

    /// A GET of `path`.
    ///
    /// # Errors
    /// `path` is none.
    pub fn get(path: &str) -> Result<Self, HeadError> {
        Self::new(Method::GET, path)
    }

    fn new(method: Method, path: &str) -> Result<Self, HeadError> {
        if !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(HeadError::Path(path.to_owned()));
        }
        Ok(Self {
            method,
            path: path.into(),
            host: None,
            headers: Vec::new(),
            lines: Bytes::new(),
        })
    }

    /// With one more header line. `host` takes the place of the target's own.
    ///
    /// # Errors
    /// It is no header, or one that the client writes itself.
    pub fn with(self, name: &str, value: &str) -> Result<Self, HeadError> {
        self.add(name, value, false)
    }

    /// With one more header line, whose value is not printed.
    ///
    /// # Errors
    /// It is no header, or one that the client writes itself.
    pub fn with_secret(self, name: &str, value: &Secret) -> Result<Self, HeadError> {
        self.add(name, &value.0, true)
    }

    /// The credentials among its values: what follows the scheme.
    #[must_use]
    pub fn secrets(&self) -> Vec<Secret> {
        let sensitive = self
            .headers()
            .iter()
            .filter(|(_, value)| value.is_sensitive());
        let texts = sensitive.filter_map(|(_, value)| value.to_str().ok());
        let words = texts.filter_map(|text| text.split_whitespace().last());
        words.map(|word| Secret::from(word.to_owned())).collect()
    }

    fn add(mut self, name: &str, value: &str, is_secret: bool) -> Result<Self, HeadError> {
        let parsed: HeaderName = name.parse().map_err(|_| HeadError::Name(name.to_owned()))?;
        if OWN.contains(&parsed.as_str()) {
            return Err(HeadError::Own(name.to_owned()));
        }
        let mut line =
            HeaderValue::from_str(value).map_err(|_| HeadError::Value(name.to_owned()))?;
        // What stands in this list is not told either, for it is known to be secret.
        line.set_sensitive(is_secret || SECRET.contains(&parsed.as_str()));
        if parsed == http::header::HOST {
            self.host = Some(line);
            return Ok(self);
        }
        let mut lines = self.lines.to_vec();
        for part in [name.as_bytes(), b": ", line.as_bytes(), b"\r\n"] {
            lines.extend_from_slice(part);
        }
        self.lines = lines.into();
        self.headers.push((parsed, line));
        Ok(self)
    }

    /// The method.
    #[must_use]
    pub const fn method(&self) -> &Method {
        &self.method
    }

    /// The path, with its query.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The host, where it is not the target's.
    #[must_use]
    pub const fn host(&self) -> Option<&HeaderValue> {
        self.host.as_ref()
    }

    /// Names and values, in the given order.
    #[must_use]
    pub fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        &self.headers
    }

    /// Writes the head as HTTP/1.1 has it, for a body of `length` bytes, with `prefix` before its path.
    pub fn write(&self, prefix: &str, host: &[u8], length: u64, out: &mut Vec<u8>) {
        let host = self.host.as_ref().map_or(host, HeaderValue::as_bytes);
        let mut digits = itoa::Buffer::new();
        for part in [
            self.method.as_str().as_bytes(),
            b" ",
            prefix.as_bytes(),
            self.path.as_bytes(),
            b" HTTP/1.1\r\nhost: ",
            host,
            b"\r\n",
            &self.lines,
        ] {
            out.extend_from_slice(part);
        }
        if length > 0 || self.method != Method::GET {
            out.extend_from_slice(b"content-length: ");
            out.extend_from_slice(digits.format(length).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// Headers whose values are credentials, whoever sets them.
const SECRET: [&str; 5] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
    "api-key",
];

impl fmt::Debug for Head {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Head")
            .field("method", &self.method)
            .field("path", &self.path)
            .field("host", &self.host)
            // A sensitive value prints as such.
            .field("headers", &self.headers)
            .finish_non_exhaustive()
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self(value.into())
    }
}

impl Secret {
    /// Secrets shorter than this are not looked for in texts: they would be found everywhere.
    const LEAST_BYTES: usize = 4;

    /// A text with `***` in its place.
    #[must_use]
    pub fn hidden_in(&self, text: &str) -> String {
        if self.0.len() < Self::LEAST_BYTES {
            return text.to_owned();
        }
        text.replace(&*self.0, "***")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    //! What is written, what is refused, and what is not printed.

    use super::{Head, HeadError, Secret};

    fn written(head: &Head, length: u64) -> String {
        let mut out = Vec::new();
        head.write("/base", b"there:80", length, &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_head_is_written_with_its_lines_in_order_and_the_length_of_its_body() {
        let head = Head::post("/v1/x").expect("a path");
        let head = head.with("X-One", "1").expect("a header");
        let head = head.with("x-two", "2").expect("a header");
        let expected = "POST /base/v1/x HTTP/1.1\r\nhost: there:80\r\nX-One: 1\r\nx-two: 2\r\ncontent-length: 12\r\n\r\n";
        assert_eq!(written(&head, 12), expected);
        let own = head.with("host", "localhost").expect("a host");
        assert!(written(&own, 0).contains("host: localhost\r\n"));
        let get = Head::get("/x").expect("a path");
        assert_eq!(
            written(&get, 0),
            "GET /base/x HTTP/1.1\r\nhost: there:80\r\n\r\n"
        );
    }

    #[test]
    fn what_would_break_the_framing_is_refused_by_name() {
        for path in ["x", "", "/a b", "/a\r\n"] {
            assert_eq!(
                Head::get(path).expect_err(path),
                HeadError::Path(path.into())
            );
        }
        let head = Head::get("/").expect("a path");
        let refused = |name: &str, value: &str| head.clone().with(name, value).expect_err(name);
        assert_eq!(refused("a b", "1"), HeadError::Name("a b".into()));
        assert_eq!(refused("a", "1\r\nb: 2"), HeadError::Value("a".into()));
        assert_eq!(
            refused("Content-Length", "1"),
            HeadError::Own("Content-Length".into())
        );
    }

    #[test]
    fn a_secret_is_sent_and_not_printed() {
        let secret = Secret::from("sk-hush".to_owned());
        let head = Head::get("/").expect("a path");
        let head = head.with_secret("x-key", &secret).expect("a header");
        let head = head
            .with("authorization", "Bearer sk-hush")
            .expect("a header");
        assert!(written(&head, 0).contains("x-key: sk-hush\r\nauthorization: Bearer sk-hush\r\n"));
        let printed = format!("{head:?} {secret:?}");
        assert!(!printed.contains("hush"), "{printed}");
        for secret in head.secrets() {
            assert_eq!(
                secret.hidden_in("key sk-hush is wrong: sk-hush"),
                "key *** is wrong: ***"
            );
        }
        assert_eq!(head.secrets().len(), 2);
        assert_eq!(Secret::from("a".to_owned()).hidden_in("a cat"), "a cat");
    }
}
