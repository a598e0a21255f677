//! The claims of a token that was proven, to a caller.
//!
//! Invariant: a claim that says the workload says one, or the token is nobody's; no value of a claim becomes a name
//! unchecked; two texts that differ are recorded as two, however long they are.
//! Not here: whether the token is good (`jose`, `callout`).

use std::sync::Arc;

use policy::attribution::is_unseen;
use policy::authority::{Claim, Members};
use policy::caller::{Caller, Claims, Proven};
use serde_json::{Map, Number, Value};

/// Most bytes of a user or of a tag's value. What is longer, or has characters that cannot be seen, is cut and ends in its digest.
const TEXT_BYTES_MAX: usize = 256;
/// Stands before the digest.
const DIGEST_MARK: char = '~';
/// Hexadecimal digits of a SHA-256.
const DIGEST_CHARS: usize = 64;

/// How claims become a caller.
#[derive(Debug, Clone)]
pub struct Mapping {
    /// What says the workload.
    pub workload: Workload,
    /// The claim that says who is behind the call.
    pub user: String,
    /// Tags, and the claims that say them; ordered by tag.
    pub tags: Vec<(String, String)>,
}

/// What says the workload.
#[derive(Debug, Clone)]
pub enum Workload {
    /// All tokens are one workload's.
    Fixed(Arc<str>),
    /// A claim, whose value names it; where there is a table, by that.
    Claim(String, Vec<(String, Arc<str>)>),
}

impl Mapping {
    /// The caller whose claims these are.
    ///
    /// # Errors
    /// Why they are nobody's, for the log.
    pub fn caller(&self, claims: &Map<String, Value>, by: Proven) -> Result<Caller, String> {
        let workload = match &self.workload {
            Workload::Fixed(name) => Arc::clone(name),
            Workload::Claim(claim, table) => named(claims, claim, table)?,
        };
        let tags = self.tags.iter().filter_map(|(tag, claim)| {
            let value = text(found(claims, claim)?)?;
            Some((Arc::from(tag.as_str()), value))
        });
        Ok(Caller {
            workload,
            by,
            key: None,
            user: user(claims, &self.user)?,
            tags: tags.collect(),
            claims: Claims::new(members(claims)),
            ..Caller::default()
        })
    }
}

/// The person or service that a claim says; a list would make several of one, or one of several.
fn user(claims: &Map<String, Value>, claim: &str) -> Result<Option<Arc<str>>, String> {
    match found(claims, claim) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(written)) if number(written) == Claim::Inexact => Err(format!(
            "its claim {claim} is a number of more digits than are told apart"
        )),
        Some(value @ (Value::String(_) | Value::Number(_))) => Ok(text(value)),
        Some(_) => Err(format!("its claim {claim} is neither text nor a number")),
    }
}

/// Claims as rules look at them.
fn members(claims: &Map<String, Value>) -> Members {
    let pairs = claims
        .iter()
        .map(|(name, value)| (name.as_str().into(), claim(value)));
    Members::new(pairs.collect())
}

fn claim(value: &Value) -> Claim {
    match value {
        Value::Null => Claim::Null,
        Value::Bool(is) => Claim::Bool(*is),
        Value::Number(written) => number(written),
        Value::String(text) => Claim::Text(text.as_str().into()),
        Value::Array(many) => Claim::List(many.iter().map(claim).collect()),
        Value::Object(object) => Claim::Map(members(object)),
    }
}

/// The parser makes a float of a number that 64 bits do not hold, and so one of several that differ.
fn number(written: &Number) -> Claim {
    /// Up to here every whole number has a float of its own.
    const EXACT_TO: f64 = 9_007_199_254_740_992.0;
    if let Some(whole) = written.as_i64() {
        return Claim::Int(whole);
    }
    if let Some(whole) = written.as_u64() {
        return Claim::Large(whole);
    }
    match written.as_f64() {
        Some(float) if float.abs() < EXACT_TO => Claim::Float(float),
        _ => Claim::Inexact,
    }
}

/// The one workload that a claim says.
fn named(
    claims: &Map<String, Value>,
    claim: &str,
    table: &[(String, Arc<str>)],
) -> Result<Arc<str>, String> {
    let value = found(claims, claim).ok_or_else(|| format!("it has no claim {claim}"))?;
    let said: Vec<&str> = match value {
        Value::String(one) => vec![one],
        Value::Array(many) => many.iter().filter_map(Value::as_str).collect(),
        _ => {
            return Err(format!(
                "its claim {claim} is neither text nor a list of texts"
            ));
        }
    };
    if table.is_empty() {
        return match &said[..] {
            [one] => Ok(Arc::from(*one)),
            _ => Err(format!("its claim {claim} names {} workloads", said.len())),
        };
    }
    let mut known: Vec<&Arc<str>> = table
        .iter()
        .filter(|(value, _)| said.contains(&value.as_str()))
        .map(|(_, workload)| workload)
        .collect();
    known.dedup();
    match &known[..] {
        [one] => Ok(Arc::clone(one)),
        [] => Err(format!("no workload is for what its claim {claim} says")),
        _ => Err(format!("its claim {claim} stands for several workloads")),
    }
}

/// A claim: a member by this very name, else a path of members with dots between them.
pub(crate) fn found<'c>(claims: &'c Map<String, Value>, claim: &str) -> Option<&'c Value> {
    if let Some(value) = claims.get(claim) {
        return Some(value);
    }
    let (mut parts, mut within) = (claim.split('.'), claims);
    let mut value = within.get(parts.next()?)?;
    for part in parts {
        within = value.as_object()?;
        value = within.get(part)?;
    }
    Some(value)
}

/// A value as it is recorded: text, a number that is told from others, yes or no, or a list of those.
pub(crate) fn text(value: &Value) -> Option<Arc<str>> {
    let whole = match value {
        Value::String(text) => text.clone(),
        Value::Number(written) if number(written) == Claim::Inexact => return None,
        Value::Number(written) => written.to_string(),
        Value::Bool(is) => is.to_string(),
        Value::Array(many) => {
            let texts: Vec<Arc<str>> = many.iter().filter_map(text).collect();
            texts.join(",")
        }
        Value::Null | Value::Object(_) => return None,
    };
    match whole.as_str() {
        "" => None,
        plain if is_recorded_whole(plain) => Some(plain.into()),
        other => Some(digested(other).into()),
    }
}

/// Whether a text is recorded as it is. One that looks like what is cut is not: else it could be made to be another's.
fn is_recorded_whole(text: &str) -> bool {
    let is_digest = |end: &str| {
        let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        end.len() == DIGEST_CHARS && end.bytes().all(is_hex)
    };
    let end = text.rsplit_once(DIGEST_MARK).map(|(_, end)| end);
    text.len() <= TEXT_BYTES_MAX && !text.contains(is_unseen) && !end.is_some_and(is_digest)
}

/// The beginning of a text without characters that cannot be seen, and the SHA-256 of all of it.
fn digested(text: &str) -> String {
    let mut plain: String = text.chars().filter(|c| !is_unseen(*c)).collect();
    plain.truncate(plain.floor_char_boundary(TEXT_BYTES_MAX - 1 - DIGEST_CHARS));
    plain.push(DIGEST_MARK);
    for byte in crate::fingerprint(text.as_bytes()) {
        for half in [byte >> 4, byte & 0xf] {
            plain.extend(char::from_digit(u32::from(half), 16));
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mapping(workload: Workload) -> Mapping {
        Mapping {
            workload,
            user: "sub".to_owned(),
            tags: vec![("roles".to_owned(), "realm_access.roles".to_owned())],
        }
    }

    fn by_claim(claim: &str, table: &[(&str, &str)]) -> Mapping {
        let table = table.iter().map(|(v, w)| ((*v).to_owned(), Arc::from(*w)));
        mapping(Workload::Claim(claim.to_owned(), table.collect()))
    }

    fn who(mapping: &Mapping, claims: Value) -> Result<String, String> {
        let Value::Object(claims) = claims else {
            panic!("no claims: {claims}");
        };
        let caller = mapping.caller(&claims, Proven::Token)?;
        Ok(format!(
            "{} {:?} {:?}",
            caller.workload, caller.user, caller.tags
        ))
    }

    #[test]
    fn claims_say_workload_user_and_tags() {
        let fixed = mapping(Workload::Fixed("chat".into()));
        let claims = json!({ "sub": "ada", "realm_access": { "roles": ["dev", 7, "ops"] } });
        let said = who(&fixed, claims).expect("a caller");
        assert_eq!(said, r#"chat Some("ada") [("roles", "dev,7,ops")]"#);
        let plain = by_claim("azp", &[]);
        assert_eq!(
            who(&plain, json!({ "azp": "chat" })).expect("a caller"),
            "chat None []"
        );
        let table = by_claim("groups", &[("g-1", "chat"), ("g-2", "chat"), ("g-3", "ci")]);
        for (groups, workload) in [
            (json!(["g-1"]), "chat"),
            (json!(["other", "g-2", "g-1"]), "chat"),
            (json!("g-3"), "ci"),
        ] {
            let said = who(&table, json!({ "groups": groups })).expect("a caller");
            assert!(said.starts_with(workload), "{said}");
        }
    }

    #[test]
    fn a_claim_that_says_no_single_workload_is_nobodys() {
        let plain = by_claim("azp", &[]);
        let table = by_claim("azp", &[("g-1", "chat"), ("g-3", "ci")]);
        for azp in [
            json!(null),
            json!(7),
            json!({}),
            json!([]),
            json!(["a", "b"]),
        ] {
            assert!(who(&plain, json!({ "azp": azp })).is_err(), "{azp}");
            assert!(who(&table, json!({ "azp": azp })).is_err(), "{azp}");
        }
        assert!(who(&plain, json!({})).is_err());
        assert!(
            who(&table, json!({ "azp": "chat" })).is_err(),
            "not by the table"
        );
        assert!(who(&table, json!({ "azp": ["g-1", "g-3"] })).is_err());
    }

    #[test]
    fn a_member_by_the_very_name_comes_before_a_path() {
        let by_name = by_claim("https://example.com/app", &[]);
        let claims = json!({ "https://example.com/app": "chat" });
        assert!(who(&by_name, claims).is_ok());
        let path = by_claim("a.b", &[]);
        let both = json!({ "a.b": "named", "a": { "b": "nested" } });
        assert!(who(&path, both).expect("a caller").starts_with("named"));
    }

    #[test]
    fn what_is_recorded_is_bounded_and_plain() {
        let fixed = mapping(Workload::Fixed("chat".into()));
        let claims = json!({ "sub": format!("a\u{7}\n{}", "é".repeat(500)) });
        let Value::Object(claims) = claims else {
            panic!()
        };
        let caller = fixed.caller(&claims, Proven::Token).expect("a caller");
        let user = caller.user.expect("a user");
        assert!(user.len() <= 256 && user.starts_with("aé"), "{user}");
        assert!(!user.contains(char::is_control), "{user}");
    }

    #[test]
    fn users_that_differ_anywhere_are_recorded_as_two() {
        let fixed = mapping(Workload::Fixed("chat".into()));
        let user = |sub: &str| {
            let claims = json!({ "sub": sub });
            let caller = fixed.caller(claims.as_object().expect("claims"), Proven::Token);
            caller.expect("a caller").user.map(|user| user.to_string())
        };
        let long = "x".repeat(256);
        assert_eq!(user(&long), Some(long.clone()), "as long as may be");
        assert_eq!(user(""), None);
        let cut = user(&format!("{long}1")).expect("a user");
        let all = [
            user(&format!("{long}1")),
            user(&format!("{long}2")),
            user(&long),
            // What another's text is cut to, brought as a text.
            user(&cut),
            user("ada"),
            user("a\u{7}da"),
            user("ad\u{7}a"),
            user("\u{7}"),
            user("\u{8}"),
        ];
        let different: std::collections::HashSet<_> = all.iter().flatten().collect();
        assert_eq!(different.len(), all.len(), "{all:?}");
        assert!(
            different
                .iter()
                .all(|user| user.len() <= 256 && !user.contains(char::is_control))
        );
    }

    #[test]
    fn numbers_that_differ_are_two_or_none() {
        let of: Value = serde_json::from_str(
            r#"[18446744073709551615, 18446744073709551614, 9223372036854775807, -9223372036854775808,
                18446744073709551616, -9223372036854775809, 9007199254740993.5, 1e300, 1e15, 0.5]"#,
        )
        .expect("JSON");
        let said = claim(&of);
        let wanted = [
            Claim::Large(u64::MAX),
            Claim::Large(u64::MAX - 1),
            Claim::Int(i64::MAX),
            Claim::Int(i64::MIN),
            Claim::Inexact,
            Claim::Inexact,
            Claim::Inexact,
            Claim::Inexact,
            Claim::Float(1e15),
            Claim::Float(0.5),
        ];
        assert_eq!(said, Claim::List(wanted.into()));

        let mapping = mapping(Workload::Fixed("chat".into()));
        let user = |written: &str| {
            who(
                &mapping,
                serde_json::from_str(&format!("{{\"sub\": {written}}}")).expect("JSON"),
            )
        };
        assert_ne!(user("18446744073709551615"), user("18446744073709551614"));
        assert!(user("18446744073709551615").is_ok());
        assert!(user("18446744073709551616").is_err());
    }

    #[test]
    fn a_user_is_text_or_a_number_and_no_list() {
        let fixed = mapping(Workload::Fixed("chat".into()));
        let user = |claims: Value| {
            let claims = claims.as_object().expect("claims").clone();
            let caller = fixed.caller(&claims, Proven::Token)?;
            Ok::<_, String>(caller.user.map(|user| user.to_string()))
        };
        assert_eq!(user(json!({ "sub": "7" })), Ok(Some("7".to_owned())));
        assert_eq!(user(json!({ "sub": 7 })), Ok(Some("7".to_owned())));
        assert_eq!(user(json!({})), Ok(None));
        assert_eq!(user(json!({ "sub": null })), Ok(None));
        for sub in [json!(["7"]), json!({ "id": 7 }), json!(true)] {
            assert!(user(json!({ "sub": sub })).is_err(), "{sub}");
        }
    }
}
