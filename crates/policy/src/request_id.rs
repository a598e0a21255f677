//! Ids of requests: which may stand in a header and a log as they are, and where upstreams put theirs.
//!
//! Not here: the id that the gate gives an exchange itself (`proxy`).

use wire::head::{Head, Known};

/// Longest id of somebody else's that is kept.
const MAX_BYTES: usize = 128;

/// The header by which a client learns the upstream's id for its request, beside the gate's own `x-request-id`.
pub const UPSTREAM_HEADER: &str = "x-upstream-request-id";

/// Whether an id can stand in a header, a log and a label as it is.
#[must_use]
pub fn is_plain(id: &[u8]) -> bool {
    (1..=MAX_BYTES).contains(&id.len())
        && id
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':'))
}

/// The id that an upstream gave its answer: `x-request-id`, or the header that its provider uses instead.
#[must_use]
pub fn of_upstream(fields: &Head) -> Option<&str> {
    let providers = || {
        let mut others = fields.of_kind(Known::Other);
        others.find(|field| is_providers(field.name))
    };
    fields
        .get(Known::XRequestId)
        .or_else(|| providers().map(|field| field.value))
        .filter(|id| is_plain(id))
        .and_then(|id| std::str::from_utf8(id).ok())
}

/// Names that providers use: Anthropic, AWS, Azure, Google and Mistral.
fn is_providers(name: &[u8]) -> bool {
    matches!(
        name,
        b"request-id"
            | b"x-amzn-requestid"
            | b"x-amzn-request-id"
            | b"apim-request-id"
            | b"x-ms-request-id"
            | b"x-goog-request-id"
            | b"mistral-correlation-id"
    )
}

#[cfg(test)]
mod tests {
    use super::{is_plain, of_upstream};
    use wire::head::Head;

    fn id(fields: &[(&str, &str)]) -> Option<String> {
        let mut head = Head::new();
        for (name, value) in fields {
            head.push(name.as_bytes(), value.as_bytes())
                .expect("a good field");
        }
        of_upstream(&head).map(str::to_owned)
    }

    #[test]
    fn an_upstreams_id_is_found_under_each_providers_name() {
        assert_eq!(id(&[("content-type", "a")]), None);
        assert_eq!(id(&[("Request-Id", "req_1")]).as_deref(), Some("req_1"));
        assert_eq!(id(&[("x-amzn-RequestId", "a-b")]).as_deref(), Some("a-b"));
        let both = [("request-id", "theirs"), ("x-request-id", "usual")];
        assert_eq!(id(&both).as_deref(), Some("usual"));
    }

    #[test]
    fn an_id_that_could_not_stand_in_a_log_is_not_kept() {
        assert_eq!(id(&[("x-request-id", "a b")]), None);
        assert_eq!(id(&[("x-request-id", &"x".repeat(129))]), None);
        assert!(is_plain(&[b'x'; 128]) && !is_plain(b"") && !is_plain(b"a\"b"));
    }
}
