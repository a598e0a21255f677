//! The gate's own answer, and its body as an API's clients expect it.
//!
//! Not here: which refusal it is of (`super`), the lines of its head (`proxy::reply`).

use std::time::Duration;

use wire::dialect::ErrorFormat;

/// An answer of the gate's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalReply {
    /// HTTP status.
    pub status: u16,
    /// OpenAI's error type.
    pub kind: &'static str,
    /// Stable code.
    pub code: &'static str,
    /// The parameter at fault.
    pub param: Option<&'static str>,
    /// For a person.
    pub message: String,
    /// `retry-after` and its kin.
    pub retry_after: Option<Duration>,
    /// Value of `allow`.
    pub allow: Option<&'static str>,
    /// Value of `location`.
    pub location: Option<Box<str>>,
    /// Value of `www-authenticate`.
    pub challenge: Option<&'static str>,
    /// Tells SDKs whether to try again (`x-should-retry`), where the status alone misleads.
    pub should_retry: Option<bool>,
}

impl LocalReply {
    /// The body in the format of an API.
    #[must_use]
    pub fn body(&self, format: ErrorFormat) -> Vec<u8> {
        if format == ErrorFormat::Google {
            return self.google_body();
        }
        let mut out = Vec::with_capacity(176 + self.message.len());
        out.extend_from_slice(format.opening().as_bytes());
        out.extend_from_slice(b"\"error\":{\"message\":\"");
        escape(&self.message, &mut out);
        out.extend_from_slice(b"\",\"type\":\"");
        out.extend_from_slice(format.error_type(self.status, self.kind).as_bytes());
        out.extend_from_slice(b"\",\"param\":");
        match self.param {
            Some(param) => {
                out.push(b'"');
                escape(param, &mut out);
                out.push(b'"');
            }
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"code\":\"");
        out.extend_from_slice(self.code.as_bytes());
        out.extend_from_slice(b"\"}}");
        out
    }

    /// The same as Google's clients read it (<https://google.aip.dev/193>): the code stands in its details, in capital letters.
    #[cold]
    fn google_body(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256 + self.message.len());
        out.extend_from_slice(b"{\"error\":{\"code\":");
        out.extend_from_slice(self.status.to_string().as_bytes());
        out.extend_from_slice(b",\"message\":\"");
        escape(&self.message, &mut out);
        out.extend_from_slice(b"\",\"status\":\"");
        let status = ErrorFormat::Google.error_type(self.status, self.kind);
        out.extend_from_slice(status.as_bytes());
        out.extend_from_slice(
            b"\",\"details\":[{\"@type\":\"type.googleapis.com/google.rpc.ErrorInfo\",\"reason\":\"",
        );
        out.extend_from_slice(self.code.to_ascii_uppercase().as_bytes());
        out.extend_from_slice(b"\",\"domain\":\"tollgate\"}");
        if let Some(wait) = self.retry_after {
            let whole = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            let retry = format!(
                ",{{\"@type\":\"type.googleapis.com/google.rpc.RetryInfo\",\"retryDelay\":\"{whole}s\"}}"
            );
            out.extend_from_slice(retry.as_bytes());
        }
        out.extend_from_slice(b"]}}");
        out
    }
}

/// Writes `text` as the inside of a JSON string.
pub fn escape(text: &str, out: &mut Vec<u8>) {
    for c in text.chars() {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            c if u32::from(c) < 0x20 => {
                out.extend_from_slice(format!("\\u{:04x}", u32::from(c)).as_bytes());
            }
            c => {
                let mut buf = [0; 4];
                out.extend_from_slice(c.encode_utf8(&mut buf).as_bytes());
            }
        }
    }
}
