//! A client that sends exactly the given bytes.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use testing::{Began, PATIENCE};

/// A connection to a gate or an engine.
pub(crate) struct Connection<S = TcpStream> {
    pub(crate) tcp: S,
    unread: Vec<u8>,
}

/// A response, taken apart.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    /// Stripped of chunked framing.
    pub(crate) body: Vec<u8>,
    /// Whether the body ended as its framing requires.
    pub(crate) whole: bool,
}

impl Response {
    /// The first value of a header, by its lower-case name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    }

    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("not JSON ({e}): {}", self.text()))
    }

    /// `error.code` of an error body.
    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Self {
        Self::of(TcpStream::connect(address).expect("something listens there"))
    }

    /// The client's side of this connection.
    pub(crate) fn of(tcp: TcpStream) -> Self {
        patient(&tcp);
        Self::over(tcp)
    }
}

/// A connection from an address of its own of the loopback network.
pub(crate) fn connect_from(from: Ipv4Addr, to: SocketAddr) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
    let socket = socket.expect("a socket");
    let from = SocketAddr::from((from, 0));
    socket.bind(&from.into()).expect("a loopback address");
    socket.connect(&to.into()).expect("something listens there");
    let tcp = socket.into();
    patient(&tcp);
    tcp
}

/// Sends at once, and waits no longer than [`PATIENCE`].
fn patient(tcp: &TcpStream) {
    tcp.set_nodelay(true).expect("a socket option");
    tcp.set_read_timeout(Some(PATIENCE))
        .expect("a socket option");
    tcp.set_write_timeout(Some(PATIENCE))
        .expect("a socket option");
}

impl<S: Read + Write> Connection<S> {
    /// The client's side of this stream.
    pub(crate) fn over(tcp: S) -> Self {
        Self {
            tcp,
            unread: Vec::new(),
        }
    }

    /// Sends and reads one response.
    pub(crate) fn call(&mut self, request: &[u8]) -> Response {
        self.send(request);
        self.response()
    }

    /// Sends; a peer that has closed already is no failure, because its answer may be readable.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        drop(self.tcp.write_all(bytes));
    }

    /// Reads one response, skipping 1xx. Status 0: the connection closed without one.
    pub(crate) fn response(&mut self) -> Response {
        self.answer(true)
    }

    /// Reads one response to HEAD, which has no body whatever its headers declare.
    pub(crate) fn headless(&mut self) -> Response {
        self.answer(false)
    }

    fn answer(&mut self, has_body: bool) -> Response {
        loop {
            let Some(end) = self.until(b"\r\n\r\n") else {
                let body = std::mem::take(&mut self.unread);
                return Response {
                    status: 0,
                    headers: Vec::new(),
                    body,
                    whole: false,
                };
            };
            let head = String::from_utf8_lossy(&self.unread[..end]).into_owned();
            self.unread.drain(..end + 4);
            let mut lines = head.split("\r\n");
            let status = lines
                .next()
                .and_then(|l| l.split(' ').nth(1)?.parse().ok())
                .unwrap_or(0);
            if (100..200).contains(&status) {
                continue;
            }
            let headers: Vec<_> = lines
                .filter_map(|l| l.split_once(':'))
                .map(|(n, v)| (n.trim().to_lowercase(), v.trim().to_owned()))
                .collect();
            let mut response = Response {
                status,
                headers,
                body: Vec::new(),
                whole: false,
            };
            let has_body = has_body && !matches!(status, 204 | 304);
            response.whole = !has_body || self.body(&mut response);
            return response;
        }
    }

    fn body(&mut self, response: &mut Response) -> bool {
        if response.header("transfer-encoding") == Some("chunked") {
            return self.chunks(&mut response.body);
        }
        let length = response
            .header("content-length")
            .and_then(|l| l.parse::<usize>().ok());
        let Some(length) = length else {
            while self.more() {}
            response.body = std::mem::take(&mut self.unread);
            return true;
        };
        while self.unread.len() < length && self.more() {}
        let there = self.unread.len().min(length);
        response.body = self.unread.drain(..there).collect();
        there == length
    }

    fn chunks(&mut self, body: &mut Vec<u8>) -> bool {
        loop {
            let Some(end) = self.until(b"\r\n") else {
                return false;
            };
            let size = String::from_utf8_lossy(&self.unread[..end]).into_owned();
            let size = usize::from_str_radix(&size, 16).expect("a chunk size");
            self.unread.drain(..end + 2);
            while self.unread.len() < size + 2 && self.more() {}
            let there = self.unread.len().min(size);
            body.extend(self.unread.drain(..there));
            if there < size || self.unread.len() < 2 {
                return false;
            }
            self.unread.drain(..2);
            if size == 0 {
                return true;
            }
        }
    }

    fn until(&mut self, mark: &[u8]) -> Option<usize> {
        loop {
            let found = self.unread.windows(mark.len()).position(|w| w == mark);
            if found.is_some() || !self.more() {
                return found;
            }
        }
    }

    /// Reads more bytes; `false` at the end, and where a test has set a shorter timeout.
    pub(crate) fn more(&mut self) -> bool {
        let mut buffer = [0; 16384];
        let began = Began::now();
        match testing::read(&mut self.tcp, &mut buffer) {
            Ok(0) => false,
            Err(_) => {
                assert!(!began.is_over(PATIENCE), "neither a byte nor an end");
                false
            }
            Ok(n) => {
                self.unread.extend_from_slice(&buffer[..n]);
                true
            }
        }
    }

    /// Bytes that were read and not yet consumed.
    pub(crate) fn unread(&self) -> &[u8] {
        &self.unread
    }
}
