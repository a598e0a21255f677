//! The claims of a session, to who somebody is on the admin endpoint and what they may do there.
//!
//! Invariant: a role is given by a value of the one claim that is named, and by nothing else.
//! Not here: whether the session is good (`session`), what a role opens (`admin`).

use policy::admin::{Person, Roles};
use serde_json::{Map, Value};

use crate::claims::{found, text};

/// How claims become roles.
#[derive(Debug, Clone)]
pub struct RoleMapping {
    /// The claim that says who it is; `sub` where it says nothing.
    pub user: String,
    /// The claim that says what they may do: a text, or a list of texts.
    pub claim: String,
    /// Roles by its values.
    pub roles: Vec<(String, Roles)>,
}

impl RoleMapping {
    /// Whose claims these are.
    #[must_use]
    pub fn person(&self, claims: &Map<String, Value>) -> Person {
        let name = found(claims, &self.user).and_then(text);
        let name = name.or_else(|| claims.get("sub").and_then(text));
        let said: Vec<&str> = match found(claims, &self.claim) {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let given = self.roles.iter();
        let given = given.filter(|(value, _)| said.contains(&value.as_str()));
        Person {
            name: name.as_deref().unwrap_or_default().to_owned(),
            roles: given.fold(Roles::NONE, |all, (_, roles)| all.with(*roles)),
        }
    }
}

#[cfg(test)]
mod tests {
    use policy::admin::Role;
    use serde_json::json;

    use super::*;

    fn person(claims: Value) -> (String, Vec<&'static str>) {
        let mapping = RoleMapping {
            user: "email".to_owned(),
            claim: "realm.groups".to_owned(),
            roles: vec![
                ("viewers".to_owned(), Roles::NONE.and(Role::Read)),
                ("portal".to_owned(), Roles::NONE.and(Role::Keys)),
                ("all".to_owned(), Roles::ALL),
            ],
        };
        let Value::Object(claims) = claims else {
            panic!("no claims: {claims}");
        };
        let Person { name, roles } = mapping.person(&claims);
        (name, roles.names().collect())
    }

    #[test]
    fn roles_are_those_of_all_values_that_a_claim_has() {
        for (groups, roles) in [
            (json!("viewers"), &["read"][..]),
            (json!(["portal", "viewers", "other"]), &["read", "keys"]),
            (json!(["all", 7, null]), &["read", "operate", "keys"]),
            (json!(["Viewers", "viewers ", "viewers,portal"]), &[]),
            (json!("viewers portal"), &[]),
            (json!({ "viewers": true }), &[]),
            (json!(true), &[]),
            (json!(null), &[]),
        ] {
            let claims =
                json!({ "sub": "1", "email": "ada@example.com", "realm": { "groups": groups } });
            assert_eq!(
                person(claims),
                ("ada@example.com".to_owned(), roles.to_vec()),
                "{groups}"
            );
        }
        let none: Vec<&str> = Vec::new();
        assert_eq!(
            person(json!({ "sub": "1", "groups": ["all"] })),
            ("1".to_owned(), none)
        );
    }
}
