//! What can be wrong with a message head or its framing, and the answer each fault earns.
//!
//! Invariant: a fault closes the connection; nothing after it on that connection can be trusted.
//! Not here: the body of the answer (the host writes it). A fault in an upstream's response is the
//! upstream's blame: the host answers 502 with the same `code`.

/// A head that is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", .kind.says())]
pub struct HeadFault {
    /// What is wrong.
    pub kind: HeadFaultKind,
}

impl From<HeadFaultKind> for HeadFault {
    fn from(kind: HeadFaultKind) -> Self {
        Self { kind }
    }
}

impl HeadFault {
    /// The HTTP status for the client that sent the fault.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.kind.row().0
    }

    /// A stable name for answers, records and metrics.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.kind.row().1
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $status:literal, $code:literal, $says:literal;)*) => {
        /// What is wrong with a head.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum HeadFaultKind { $(#[doc = $says] $kind,)* }

        impl HeadFaultKind {
            const fn row(self) -> (u16, &'static str, &'static str) {
                match self { $(Self::$kind => ($status, $code, $says),)* }
            }
        }
    };
}

impl HeadFaultKind {
    const fn says(self) -> &'static str {
        self.row().2
    }
}

kinds! {
    StartLine = 400, "bad_start_line", "the start line is malformed";
    Version = 505, "version_not_supported", "the HTTP version is neither 1.0 nor 1.1";
    MethodRefused = 405, "method_not_allowed", "the method is not served here";
    LineEnd = 400, "bad_line_end", "a line does not end in CRLF";
    FieldName = 400, "bad_field_name", "a field name is not a token directly before its colon";
    FieldValue = 400, "bad_field_value", "a field value holds a control character";
    FieldBlanks = 400, "bad_field_value", "a field value begins or ends with a blank";
    HeadTooLarge = 431, "head_too_large", "the head has too many bytes";
    TooManyFields = 431, "too_many_fields", "the head has too many fields";
    HostMissing = 400, "host_missing", "an HTTP/1.1 request needs a Host field";
    HostRepeated = 400, "host_repeated", "there is more than one Host field";
    HostInvalid = 400, "host_invalid", "the host is not a name or address with an optional port";
    TargetForm = 400, "bad_target_form", "the request target is not a path";
    TargetByte = 400, "bad_target_byte", "the request target holds a byte that is not visible ASCII, or a fragment";
    PathAmbiguous = 400, "ambiguous_path", "the path can be read in more than one way";
    PathDoubled = 400, "ambiguous_path", "the path has two slashes together, which servers read in more than one way: as in /v1/chat/completions, one was meant, by a base URL without a slash at its end";
    LengthAndEncoding = 400, "length_and_encoding", "Content-Length stands together with Transfer-Encoding";
    LengthRepeated = 400, "length_repeated", "there is more than one Content-Length";
    LengthInvalid = 400, "length_invalid", "Content-Length is not a plain decimal number within 2^63";
    EncodingInvalid = 400, "encoding_invalid", "Transfer-Encoding is not exactly one `chunked` on HTTP/1.1";
    BodyNotExpected = 400, "body_not_expected", "this method takes no body";
    Expectation = 417, "expectation_failed", "Expect asks for something other than 100-continue";
    ChunkSize = 400, "bad_chunk_size", "a chunk size is not 1 to 16 hexadecimal digits within 2^53";
    ChunkEnd = 400, "bad_chunk_end", "a chunk is not delimited by CRLF";
    ChunkExtension = 400, "bad_chunk_extension", "chunk extensions are malformed or too long";
    Trailer = 400, "bad_trailer", "the trailer section is malformed or too long";
    Status = 502, "bad_status", "the status code is not between 100 and 599";
    SwitchedProtocols = 502, "switched_protocols", "101 was answered to a request that did not ask for it";
}
