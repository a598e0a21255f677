//! What an API answered, as the result of a tool.
//!
//! A status of 400 or more is a result that says so, from which a model learns: the message itself did not fail.
//! Invariant: a result is JSON whatever the API sent.
//! Not here: what is no answer at all (the host).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use policy::mcp::HttpAnswer;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::parameter::is_json;

/// The result of a call that was answered.
pub(crate) fn result(answer: &HttpAnswer<'_>) -> Vec<u8> {
    let is_error = !(200..300).contains(&answer.status);
    let kind = answer.kind.unwrap_or_default();
    let base = kind.split(';').next().unwrap_or_default().trim();
    let base = base.to_ascii_lowercase();
    let text = std::str::from_utf8(answer.body).ok();
    let media = base.split_once('/').map_or("", |(of, _)| of);
    let content = match (media, text) {
        ("image" | "audio", None) => json!({
            "type": media, "mimeType": base, "data": STANDARD.encode(answer.body),
        }),
        (_, Some(text)) => of_text(answer.status, text, is_error),
        (_, None) => {
            let bytes = answer.body.len();
            let base = if base.is_empty() {
                "no said kind"
            } else {
                &base
            };
            let says = format!(
                "HTTP {}: {bytes} bytes of {base}, which is no text",
                answer.status
            );
            json!({ "type": "text", "text": says })
        }
    };
    let structured = text.filter(|_| is_json(kind)).and_then(object);
    let mut out = format!(r#"{{"content":[{content}]"#);
    if let Some(structured) = structured {
        out.push_str(r#","structuredContent":"#);
        out.push_str(structured);
    }
    out.push_str(if is_error {
        r#","isError":true}"#
    } else {
        r#","isError":false}"#
    });
    out.into_bytes()
}

/// A result that says what is wrong with a call.
pub(crate) fn misused(says: &str) -> Vec<u8> {
    let result = json!({ "content": [{ "type": "text", "text": says }], "isError": true });
    result.to_string().into_bytes()
}

fn of_text(status: u16, text: &str, is_error: bool) -> Value {
    let says = match (is_error, text.is_empty()) {
        (false, false) => text.to_owned(),
        (_, true) => format!("HTTP {status}"),
        (true, false) => format!("HTTP {status}: {text}"),
    };
    json!({ "type": "text", "text": says })
}

/// A text that is one whole JSON object.
fn object(text: &str) -> Option<&str> {
    let text = text.trim_ascii();
    let is_object = text.starts_with('{');
    let whole: Option<&RawValue> = serde_json::from_str(text).ok();
    whole.filter(|_| is_object).map(RawValue::get)
}

#[cfg(test)]
mod tests {
    //! What becomes of answers.

    use policy::mcp::HttpAnswer;
    use serde_json::{Value, json};

    use super::result;

    fn told(status: u16, kind: &str, body: &[u8]) -> Value {
        let kind = Some(kind);
        serde_json::from_slice(&result(&HttpAnswer { status, kind, body })).expect("JSON")
    }

    #[test]
    fn an_object_is_structured_and_a_text_is_text() {
        let text = r#"{"id": 12345678901234567890123, "a": [1]}"#;
        let made = result(&HttpAnswer {
            status: 200,
            kind: Some("application/json; charset=utf-8"),
            body: text.as_bytes(),
        });
        let made = String::from_utf8(made).expect("text");
        assert!(
            made.contains(r#""structuredContent":{"id": 12345678901234567890123, "a": [1]}"#),
            "{made}"
        );
        let list = told(200, "application/json", b"[1,2]");
        assert_eq!(
            list,
            json!({ "content": [{ "type": "text", "text": "[1,2]" }], "isError": false })
        );
        assert_eq!(told(204, "", b"")["content"][0]["text"], "HTTP 204");
        // What calls itself JSON and is none is text.
        let odd = told(200, "application/json", b"{\"a\":1}}");
        assert_eq!(odd.get("structuredContent"), None);
    }

    #[test]
    fn a_status_of_an_error_says_so() {
        let missing = told(
            404,
            "application/problem+json",
            br#"{"title":"no such pet"}"#,
        );
        assert_eq!(missing["isError"], true);
        assert_eq!(
            missing["content"][0]["text"],
            r#"HTTP 404: {"title":"no such pet"}"#
        );
        assert_eq!(
            missing["structuredContent"],
            json!({ "title": "no such pet" })
        );
        let moved = told(302, "text/html", b"");
        assert_eq!(
            (&moved["isError"], &moved["content"][0]["text"]),
            (&json!(true), &json!("HTTP 302"))
        );
    }

    #[test]
    fn bytes_are_an_image_or_are_named() {
        let image = told(200, "image/png", b"\x89PNG\r\n");
        assert_eq!(
            image["content"][0],
            json!({ "type": "image", "mimeType": "image/png", "data": "iVBORw0K" })
        );
        let file = told(200, "application/zip", b"PK\xff\xfe");
        assert_eq!(
            file["content"][0]["text"],
            "HTTP 200: 4 bytes of application/zip, which is no text"
        );
    }
}
