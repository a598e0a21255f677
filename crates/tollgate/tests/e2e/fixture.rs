//! A gate in front of a recording upstream, and what every refusal must have.
//!
//! Invariant: `end` compares the answers with the access log and with what the upstream saw: one record
//! for each answer, and nothing upstream for a refusal.
//! Not here: which input gets which answer.

use std::cell::{Cell, RefCell};

use crate::harness::{Connection, Gate, Response, Seen, Step, Upstream, chat, post};

/// The identity header of the registered workload.
pub(crate) const IDENTITY: &str = "x-workload-app: w";

/// What happens to the client's connection after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    Kept,
    Closed,
}

/// What one record must contain.
struct ExpectedRecord {
    what: String,
    id: String,
    status: u16,
    code: String,
}

/// One gate with one worker, one route for workload `w`, and an upstream that answers every call.
pub(crate) struct Fixture {
    pub(crate) gate: Gate,
    pub(crate) upstream: Upstream,
    expected: RefCell<Vec<ExpectedRecord>>,
    forwarded: Cell<usize>,
}

/// A whole answer to a chat call.
pub(crate) fn answer() -> Vec<u8> {
    let body = r#"{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}"#;
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

/// One backend, one route that lists `/v1/files`, and `extra` lines of configuration.
pub(crate) fn config(address: std::net::SocketAddr, extra: &str) -> String {
    format!(
        "workers: 1\nbackends: {{ up: {{ url: http://{address}/v1, credential: {{ inline: gate-key }} }} }}\n\
         routes: [ {{ workload: w, backend: up, \
         forward_headers: [x-own, x-a], return_headers: x-engine, unread: [ {{ call: [GET /v1/files, POST /v1/files, \
         PUT /v1/files, PATCH /v1/files, DELETE /v1/files] }} ] }} ]\n{extra}"
    )
}

/// A whole POST of the registered workload.
pub(crate) fn call(body: &str) -> Vec<u8> {
    post("/v1/chat/completions", &[IDENTITY], body)
}

/// A GET of the registered workload that is forwarded; `lines` are further header lines.
pub(crate) fn get(lines: &str) -> Vec<u8> {
    format!("GET /v1/files HTTP/1.1\r\nhost: gate.test\r\n{IDENTITY}\r\n{lines}\r\n").into_bytes()
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with("")
    }

    /// With these further lines of configuration.
    pub(crate) fn with(extra: &str) -> Self {
        let upstream = Upstream::start(|_, _| vec![Step::Send(answer())]);
        let gate = Gate::start(&config(upstream.address, extra), &[]);
        Self {
            gate,
            upstream,
            expected: RefCell::default(),
            forwarded: Cell::default(),
        }
    }

    /// Sends these bytes on a connection of their own and expects this refusal.
    pub(crate) fn refuses(
        &self,
        what: &str,
        bytes: &[u8],
        status: u16,
        code: &str,
        after: After,
    ) -> Response {
        let mut connection = Connection::open(self.gate.data);
        let response = connection.call(bytes);
        self.refused(what, &response, status, code);
        match after {
            After::Kept => self.forwards_on(what, &mut connection),
            After::Closed => {
                assert_eq!(response.header("connection"), Some("close"), "{what}");
                assert!(is_closed(&mut connection), "{what}: still open");
            }
        }
        response
    }

    /// Asserts a refusal that was read already, and remembers it for `end`.
    pub(crate) fn refused(&self, what: &str, response: &Response, status: u16, code: &str) {
        assert_eq!(response.status, status, "{what}: {}", response.text());
        assert!(response.whole, "{what}");
        assert_eq!(
            response.header("content-type"),
            Some("application/json"),
            "{what}"
        );
        let error = &response.json()["error"];
        assert_eq!(error["code"], code, "{what}: {error}");
        assert!(
            error["message"].as_str().is_some_and(|m| !m.is_empty()),
            "{what}: {error}"
        );
        assert!(
            error["type"].is_string() && error.get("param").is_some(),
            "{what}: {error}"
        );
        self.expect_record(what, response, code);
    }

    /// Sends these bytes on a connection of their own; returns what the upstream saw.
    pub(crate) fn forwards(&self, what: &str, bytes: &[u8]) -> Seen {
        let response = Connection::open(self.gate.data).call(bytes);
        self.forwarded(what, &response)
    }

    /// Asserts an answer that was read already; returns the next request that the upstream saw.
    pub(crate) fn forwarded(&self, what: &str, response: &Response) -> Seen {
        assert_eq!(response.status, 200, "{what}: {}", response.text());
        assert!(response.whole, "{what}");
        self.expect_record(what, response, "");
        let number = self.forwarded.replace(self.forwarded.get() + 1);
        let seen = self.upstream.nth(number);
        seen.unwrap_or_else(|| panic!("{what}: answered without the upstream"))
    }

    /// Asserts that the connection serves another call.
    pub(crate) fn forwards_on(&self, what: &str, connection: &mut Connection) {
        let response = connection.call(&call(&chat("m", false)));
        self.forwarded(&format!("after {what}"), &response);
    }

    fn expect_record(&self, what: &str, response: &Response, code: &str) {
        let id = response.header("x-request-id").unwrap_or_default();
        assert!(!id.is_empty(), "{what}: no x-request-id");
        self.expected.borrow_mut().push(ExpectedRecord {
            what: what.into(),
            id: id.into(),
            status: response.status,
            code: code.into(),
        });
    }

    /// Compares the answers with the log: one record for each answer, and no other record.
    pub(crate) fn end(self) {
        let expected = self.expected.into_inner();
        assert!(!expected.is_empty(), "nothing was tried");
        let records = self.gate.records(expected.len());
        assert_eq!(records.len(), expected.len(), "one record for each answer");
        for expected in expected {
            let of = |r: &&serde_json::Value| r["request_id"] == expected.id.as_str();
            let mine: Vec<_> = records.iter().filter(of).collect();
            let [record] = mine[..] else {
                panic!("{}: {} records", expected.what, mine.len())
            };
            assert_eq!(
                record["status"], expected.status,
                "{}: {record}",
                expected.what
            );
            if expected.code.is_empty() {
                assert_eq!(
                    record["outcome"], "completed",
                    "{}: {record}",
                    expected.what
                );
            } else {
                assert_eq!(record["outcome"], "refused", "{}: {record}", expected.what);
                assert_eq!(record["code"], expected.code, "{}: {record}", expected.what);
                assert_eq!(record["attempts"], 0, "{}: {record}", expected.what);
                assert!(
                    record.get("completion_tokens").is_none(),
                    "{}: {record}",
                    expected.what
                );
            }
        }
        assert_eq!(
            self.upstream.count(),
            self.forwarded.get(),
            "calls that reached the upstream"
        );
    }
}

/// Whether the gate has closed the connection cleanly without sending more.
pub(crate) fn is_closed(connection: &mut Connection) -> bool {
    connection.unread().is_empty()
        && matches!(testing::read(&mut connection.tcp, &mut [0; 64]), Ok(0))
}
