//! The slow path through a head: whatever is cut, bad or just unusual.
//!
//! `httparse` finds the parts; it forgives bare LF and stray empty lines, so every line end is checked here.
//! A head that is not plainly good goes through `scan`, which alone says whether the head is whole.
//! Not here: the fast path (`fast_path`, `fields`).

use std::mem::MaybeUninit;

use httparse::{Error, Header, ParserConfig, Status};

use super::limits::{Limits, MAX_FIELDS, Step};
use crate::head::{Head, HeadFault, HeadFaultKind, RequestHead, ResponseHead, Version};

type Fields<'a> = [MaybeUninit<Header<'a>>; MAX_FIELDS];

/// Reads a request head. It is kept out of the fast path, whose stack need not hold so many fields.
#[cold]
#[inline(never)]
pub(super) fn slow_request(
    input: &[u8],
    limits: &Limits,
    out: &mut RequestHead,
) -> Result<Step, HeadFault> {
    out.clear();
    let within = input.get(..limits.head_bytes).unwrap_or(input);
    let mut fields: Fields<'_> = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut []);
    let result = request.parse_with_uninit_headers(
        within,
        fields
            .get_mut(..limits.fields.min(MAX_FIELDS))
            .unwrap_or_default(),
    );
    match result {
        Ok(Status::Complete(consumed))
            if take_fields(within, consumed, request.headers, &mut out.fields)? =>
        {
            fill_request(out, &request)?;
            Ok(Step::Done { consumed })
        }
        result => explain(input, limits, result.err(), request_fault),
    }
}

fn fill_request(
    out: &mut RequestHead,
    request: &httparse::Request<'_, '_>,
) -> Result<(), HeadFault> {
    let (Some(method), Some(target), Some(version)) =
        (request.method, request.path, request.version)
    else {
        return Err(HeadFaultKind::StartLine.into());
    };
    out.version = if version == 0 {
        Version::H10
    } else {
        Version::H11
    };
    out.set_valid_method(method);
    out.set_target(target)?;
    out.check_host()
}

/// Reads a response head.
#[cold]
#[inline(never)]
pub(super) fn slow_response(
    input: &[u8],
    limits: &Limits,
    out: &mut ResponseHead,
) -> Result<Step, HeadFault> {
    out.clear();
    let within = input.get(..limits.head_bytes).unwrap_or(input);
    let mut fields: Fields<'_> = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let mut response = httparse::Response::new(&mut []);
    let result = ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        within,
        fields
            .get_mut(..limits.fields.min(MAX_FIELDS))
            .unwrap_or_default(),
    );
    match result {
        Ok(Status::Complete(consumed))
            if take_fields(within, consumed, response.headers, &mut out.fields)? =>
        {
            fill_response(out, &response)?;
            Ok(Step::Done { consumed })
        }
        result => explain(input, limits, result.err(), response_fault),
    }
}

fn fill_response(
    out: &mut ResponseHead,
    response: &httparse::Response<'_, '_>,
) -> Result<(), HeadFault> {
    out.version = if response.version == Some(0) {
        Version::H10
    } else {
        Version::H11
    };
    out.status = response.code.unwrap_or_default();
    check_status(out.status)
}

/// Takes the fields of a head that `httparse` accepted. False when a line does not end in CRLF
/// or anything lies between the lines.
fn take_fields(
    input: &[u8],
    consumed: usize,
    headers: &[Header<'_>],
    out: &mut Head,
) -> Result<bool, HeadFault> {
    let head = input.get(..consumed).unwrap_or_default();
    let Some(first) = memchr::memchr(b'\n', head) else {
        return Ok(false);
    };
    if !head.get(..first).is_some_and(|line| line.ends_with(b"\r")) {
        return Ok(false);
    }
    out.load(head, headers.len());
    let mut at = first + 1;
    for header in headers {
        let (name, value) = (
            offset(head, header.name.as_bytes()),
            offset(head, header.value),
        );
        let mut end = value + header.value.len();
        while let Some(b' ' | b'\t') = head.get(end) {
            end += 1;
        }
        if name != at || head.get(end..end + 2) != Some(b"\r\n") {
            out.clear();
            return Ok(false);
        }
        out.add(header.name.as_bytes(), name, value, header.value.len())?;
        at = end + 2;
    }
    Ok(head.get(at..) == Some(b"\r\n"))
}

fn offset(whole: &[u8], part: &[u8]) -> usize {
    (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize)
}

/// The road for whatever is not plainly a good head: the line ends and limits first, then the parser's complaint.
#[cold]
fn explain(
    input: &[u8],
    limits: &Limits,
    error: Option<Error>,
    blame: fn(&[u8], Error) -> HeadFaultKind,
) -> Result<Step, HeadFault> {
    match scan(input, limits)? {
        None => Ok(Step::Partial),
        Some(head) => Err(error
            .map_or(HeadFaultKind::LineEnd, |error| blame(head, error))
            .into()),
    }
}

/// Finds the end of the head by its lines alone.
fn scan<'a>(input: &'a [u8], limits: &Limits) -> Result<Option<&'a [u8]>, HeadFault> {
    let within = input.get(..limits.head_bytes).unwrap_or(input);
    let (mut line_start, mut lines) = (0, 0);
    for end in memchr::memchr_iter(b'\n', within) {
        match within.get(line_start..end) {
            Some([line @ .., b'\r']) if !line.contains(&b'\r') => {
                if line.is_empty() {
                    return Ok(within.get(..=end));
                }
            }
            _ => return Err(HeadFaultKind::LineEnd.into()),
        }
        line_start = end + 1;
        lines += 1;
        if lines > limits.fields.min(MAX_FIELDS) + 1 {
            return Err(HeadFaultKind::TooManyFields.into());
        }
    }
    if input.len() > limits.head_bytes {
        Err(HeadFaultKind::HeadTooLarge.into())
    } else {
        Ok(None)
    }
}

fn request_fault(head: &[u8], error: Error) -> HeadFaultKind {
    let line = head.split(|&b| b == b'\r').next().unwrap_or_default();
    match error {
        Error::HeaderName => HeadFaultKind::FieldName,
        Error::HeaderValue => HeadFaultKind::FieldValue,
        Error::TooManyHeaders => HeadFaultKind::TooManyFields,
        Error::Version if names_a_version(line) => HeadFaultKind::Version,
        _ => HeadFaultKind::StartLine,
    }
}

/// Whether a request line is three words of which the last is `HTTP/` with a version.
fn names_a_version(line: &[u8]) -> bool {
    let mut words = line.split(|&b| b == b' ');
    let (Some(_), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return false;
    };
    let digits = version.strip_prefix(b"HTTP/").unwrap_or_default();
    !target.is_empty() && matches!(digits, [b'0'..=b'9'] | [b'0'..=b'9', b'.', b'0'..=b'9'])
}

fn response_fault(head: &[u8], error: Error) -> HeadFaultKind {
    match error {
        Error::Version if head.starts_with(b"HTTP/") => HeadFaultKind::Version,
        Error::Status => HeadFaultKind::Status,
        error => match request_fault(&[], error) {
            HeadFaultKind::Version => HeadFaultKind::StartLine,
            kind => kind,
        },
    }
}

pub(super) fn check_status(status: u16) -> Result<(), HeadFault> {
    match status {
        100..=599 => Ok(()),
        _ => Err(HeadFaultKind::Status.into()),
    }
}
