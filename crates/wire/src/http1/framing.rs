//! Decides where a body ends, from the head alone (RFC 9112, 6).
//!
//! Invariant: exactly one rule applies to a message; two rules at once are a fault, even when they agree.
//! Not here: reading the body (`chunked`), how large it may be (`proxy`).

use crate::head::{
    Head, HeadFault, HeadFaultKind, Known, Method, RequestHead, ResponseHead, Version,
};

/// How the end of a body is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// This many bytes; never 0.
    Length(u64),
    /// Chunks, the last of them empty.
    Chunked,
    /// Whatever comes until the connection (HTTP/2: the stream) ends.
    UntilClose,
}

/// What a request's head says about its body and its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestFraming {
    /// How the body ends.
    pub framing: Framing,
    /// Whether the connection may serve another request.
    pub keep_alive: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub expect_continue: bool,
}

/// Decides the framing of a request.
///
/// # Errors
/// Ambiguous or malformed framing, a body where the method takes none, or an expectation other than `100-continue`.
pub fn request_framing(head: &RequestHead) -> Result<RequestFraming, HeadFault> {
    let framing = match declared(&head.fields, head.version)? {
        Some(framing) => framing,
        None if head.version == Version::H2 => Framing::UntilClose,
        None => Framing::None,
    };
    if !head.method.takes_body() && matches!(framing, Framing::Length(_) | Framing::Chunked) {
        return Err(HeadFaultKind::BodyNotExpected.into());
    }
    Ok(RequestFraming {
        framing,
        keep_alive: keep_alive(&head.fields, head.version),
        expect_continue: expects_continue(head)? && framing != Framing::None,
    })
}

/// Decides the framing of a response to a request with this method, and whether the connection may be used again.
///
/// # Errors
/// Ambiguous or malformed framing.
pub fn response_framing(
    head: &ResponseHead,
    request_method: Method,
) -> Result<(Framing, bool), HeadFault> {
    let declared = declared(&head.fields, head.version)?;
    let keep_alive = keep_alive(&head.fields, head.version);
    let without_content = head.is_informational() || head.status == 204;
    if without_content {
        let clean = matches!(declared, None | Some(Framing::None));
        return Ok((Framing::None, keep_alive && clean));
    }
    if head.status == 304 || request_method == Method::Head {
        return Ok((Framing::None, keep_alive));
    }
    match declared {
        Some(framing) => Ok((framing, keep_alive)),
        None => Ok((Framing::UntilClose, false)),
    }
}

fn declared(fields: &Head, version: Version) -> Result<Option<Framing>, HeadFault> {
    let length = fields
        .only(Known::ContentLength)
        .map_err(|_| HeadFaultKind::LengthRepeated)?;
    let encoding = fields
        .only(Known::TransferEncoding)
        .map_err(|_| HeadFaultKind::EncodingInvalid)?;
    match (length, encoding) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(HeadFaultKind::LengthAndEncoding.into()),
        (Some(length), None) => match content_length(length)? {
            0 => Ok(Some(Framing::None)),
            length => Ok(Some(Framing::Length(length))),
        },
        (None, Some(encoding))
            if version == Version::H11 && encoding.eq_ignore_ascii_case(b"chunked") =>
        {
            Ok(Some(Framing::Chunked))
        }
        (None, Some(_)) => Err(HeadFaultKind::EncodingInvalid.into()),
    }
}

fn content_length(value: &[u8]) -> Result<u64, HeadFault> {
    let fault = HeadFaultKind::LengthInvalid;
    if value.is_empty() {
        return Err(fault.into());
    }
    let mut length: u64 = 0;
    for byte in value {
        let digit = u64::from(byte.wrapping_sub(b'0'));
        // More than a tenth goes beyond the limit with any digit, and a tenth with any digit fits.
        if digit > 9 || length > LENGTH_LIMIT / 10 {
            return Err(fault.into());
        }
        length = length * 10 + digit;
    }
    if length > LENGTH_LIMIT {
        Err(fault.into())
    } else {
        Ok(length)
    }
}

const LENGTH_LIMIT: u64 = 1 << 63;

fn keep_alive(fields: &Head, version: Version) -> bool {
    match version {
        Version::H2 => true,
        Version::H11 => !fields.connection_names(b"close"),
        Version::H10 => {
            fields.connection_names(b"keep-alive") && !fields.connection_names(b"close")
        }
    }
}

fn expects_continue(head: &RequestHead) -> Result<bool, HeadFault> {
    match head.fields.only(Known::Expect) {
        Ok(None) => Ok(false),
        Ok(Some(value)) if value.eq_ignore_ascii_case(b"100-continue") => {
            Ok(head.version != Version::H10)
        }
        _ => Err(HeadFaultKind::Expectation.into()),
    }
}
