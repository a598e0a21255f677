//! What a user endpoint says of somebody, where there is no ID token.
//!
//! Invariant: who it is, is said by the member that the configuration names, and by nothing else.
//! Not here: asking for it (`callout`).

use serde_json::{Map, Value};

use super::fault::LoginFault;
use super::id_token::SUBJECT_BYTES_MAX;
use crate::claims::found;

/// Its members as claims, with `iss`, and with `sub` from the member at this path: a text, or a whole number.
///
/// # Errors
/// [`LoginFault::Unnamed`].
pub fn user_claims(
    mut members: Map<String, Value>,
    subject: &str,
    issuer: &str,
) -> Result<Map<String, Value>, LoginFault> {
    let named = match found(&members, subject) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Number(number)) if number.is_u64() || number.is_i64() => {
            Some(number.to_string())
        }
        _ => None,
    };
    let is_name = |text: &String| (1..=SUBJECT_BYTES_MAX).contains(&text.len());
    let named = named.filter(is_name);
    let named = named.ok_or_else(|| LoginFault::Unnamed(subject.to_owned()))?;
    members.insert("iss".to_owned(), issuer.into());
    members.insert("sub".to_owned(), named.into());
    Ok(members)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claims(members: &Value, subject: &str) -> Result<Map<String, Value>, LoginFault> {
        let members = members.as_object().expect("an object");
        user_claims(members.clone(), subject, "https://i.test")
    }

    #[test]
    fn who_it_is_is_said_by_the_member_that_is_named() {
        let user = json!({ "iss": "https://evil.test", "sub": "x", "id": 7, "metadata": { "uid": "u-1", "name": "ada" } });
        for (subject, sub) in [("sub", "x"), ("id", "7"), ("metadata.uid", "u-1")] {
            let claims = claims(&user, subject).expect(subject);
            assert_eq!(claims["sub"], sub);
            assert_eq!(claims["iss"], "https://i.test");
            assert_eq!(claims["metadata"]["name"], "ada");
        }
    }

    #[test]
    fn an_answer_that_names_nobody_is_refused() {
        let user = json!({ "a": "", "b": null, "c": 1.5, "d": ["x"], "e": {}, "f": "x".repeat(256), "g": true });
        for subject in ["a", "b", "c", "d", "e", "f", "g", "h", "e.x"] {
            let fault = claims(&user, subject).expect_err(subject);
            assert_eq!(fault.code(), "login_user_unnamed", "{subject}");
            let reason = fault.reason().expect("a reason");
            assert!(reason.contains(subject), "{reason}");
        }
    }
}
