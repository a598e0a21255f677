//! The body of a request that changes something.
//!
//! Invariant: it is JSON of at most 64 KiB, says so, comes within 10 seconds, and has no member that is not known.
//! Not here: what the members are (`gateway`).

use std::time::Duration;

use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Bytes, Incoming};
use serde::de::DeserializeOwned;

use crate::reply::{Refusal, refusal};

/// Most bytes of a body.
const BYTES_MAX: usize = 64 << 10;
/// Longest time that a body may take.
const TIME_MAX: Duration = Duration::from_secs(10);

/// Reads the body; `None` where there is none.
pub(crate) async fn json<T: DeserializeOwned>(
    request: Request<Incoming>,
) -> Result<Option<T>, Refusal> {
    let (head, body) = request.into_parts();
    if body.is_end_stream() {
        return Ok(None);
    }
    // A page of another origin cannot send this type without asking first.
    let kind = head.headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        let says = "send JSON, and say content-type: application/json";
        return Err(refusal(status, "unsupported_media_type", says));
    }
    let bytes = whole(body).await?;
    if bytes.is_empty() {
        return Ok(None);
    }
    parse(&bytes).map(Some).map_err(|says| bad(&says))
}

async fn whole(body: Incoming) -> Result<Bytes, Refusal> {
    let too_large = |_| {
        let says = format!("the body has more than {BYTES_MAX} bytes, or broke off");
        refusal(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", &says)
    };
    if body.size_hint().lower() > BYTES_MAX as u64 {
        return Err(too_large(()));
    }
    let reading = Limited::new(body, BYTES_MAX).collect();
    match tokio::time::timeout(TIME_MAX, reading).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(_)) => Err(too_large(())),
        Err(_) => {
            let says = "the body took longer than 10 seconds";
            Err(refusal(StatusCode::REQUEST_TIMEOUT, "body_timeout", says))
        }
    }
}

/// Reads JSON, or says where it is wrong.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    // A list would be taken for the members in their order.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err("the body: send an object, {…}".to_owned());
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let read: T = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let at = error.path().to_string();
        let says = plain(&error.into_inner().to_string());
        match at.as_str() {
            "." | "?" => format!("the body: {says}"),
            at => format!("{at}: {says}"),
        }
    })?;
    reader.end().map_err(|error| format!("the body: {error}"))?;
    Ok(read)
}

/// What the parser says, with JSON's words in place of Rust's.
fn plain(says: &str) -> String {
    let Some((before, what)) = says.split_once("expected ") else {
        return says.to_owned();
    };
    let (kind, after) = what.split_at(what.find(" at line ").unwrap_or(what.len()));
    let kind = match kind {
        "a sequence" => "a list",
        "a map" => "an object",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, not below 0",
        "i8" | "i16" | "i32" | "i64" => "a whole number",
        "f32" | "f64" => "a number",
        kind if kind.starts_with("struct ") => "an object",
        kind => kind,
    };
    format!("{before}expected {kind}{after}")
}

/// The refusal of a body, or of a member of the query, that says no request.
pub(crate) fn bad(says: &str) -> Refusal {
    refusal(StatusCode::BAD_REQUEST, "invalid_request", says)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::parse;

    #[derive(Debug, Deserialize)]
    struct Part {
        _of: u32,
    }

    #[derive(Debug, Deserialize)]
    struct Whole {
        _parts: Vec<Part>,
    }

    #[test]
    fn a_fault_names_kinds_of_json_and_no_types_of_ours() {
        let says = |body: &str| parse::<Whole>(body.as_bytes()).unwrap_err();
        let of = |body: &str, starts: &str| {
            let said = says(body);
            assert!(said.starts_with(starts), "{said}");
            assert!(!said.contains("struct") && !said.contains("u32"), "{said}");
        };
        of(
            r#"{"_parts": ["x"]}"#,
            "_parts[0]: invalid type: string \"x\", expected an object at line 1",
        );
        of(
            r#"{"_parts": {}}"#,
            "_parts: invalid type: map, expected a list at line 1",
        );
        of(
            r#"{"_parts": [{"_of": "1"}]}"#,
            "_parts[0]._of: invalid type: string \"1\", expected a whole number, not below 0 at line 1",
        );
        of("{}", "the body: missing field `_parts`");
    }
}
