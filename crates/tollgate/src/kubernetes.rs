//! API servers of Kubernetes: how they are reached, and which of their users a caller is.
//!
//! Not here: whose a token is (`identity::reviewed`), what a user may do (`authority::access`), asking (`callout`).

use std::collections::BTreeMap;

use callout::{ApiServer, Bounds, Client, SecretSource, Url, User};
use policy::authority::{Claim, Members};
use policy::caller::{Caller, Proven};
use serde_json::{Map, Value, json};

use crate::trust::trust;

/// What names of the cluster's own begin with.
const SYSTEM: &str = "system:";
/// How the name of a service account goes on: its namespace and its own name, with a colon between them.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// The server, and what it is asked with.
pub(crate) fn server(written: &config::ApiServer) -> Result<(ApiServer, Client), String> {
    let url = Url::parse(&written.url).map_err(|fault| format!("server: {fault}"))?;
    let tls = trust(written.ca_pem.as_deref())?;
    let server = ApiServer {
        url,
        token: SecretSource::file(written.token.clone()),
    };
    Ok((server, Client::new(&tls, Bounds::default())))
}

/// What the server says of a user, as claims: `username`, `uid`, `groups`, `extra`, and of a service account `namespace`.
pub(crate) fn claims(user: &User) -> Map<String, Value> {
    let mut claims = Map::new();
    let mut put = |name: &str, value: Value| claims.insert(name.to_owned(), value);
    put("username", user.username.as_str().into());
    if let Some(uid) = &user.uid {
        put("uid", uid.as_str().into());
    }
    put("groups", user.groups.clone().into());
    put("extra", json!(user.extra));
    let account = user.username.strip_prefix(SERVICE_ACCOUNT);
    if let Some((namespace, _)) = account.and_then(|account| account.split_once(':')) {
        put("namespace", namespace.into());
    }
    claims
}

/// The user of Kubernetes that a caller is.
///
/// # Errors
/// It is none, for the log. Names of the cluster's own count where its API server said them, or with `trusts_system`.
pub(crate) fn user(caller: Option<&Caller>, trusts_system: bool) -> Result<User, &'static str> {
    let nobody = "the call is nobody's whom Kubernetes could know: no user is proven";
    let caller = caller.ok_or(nobody)?;
    let claims = caller.claims.members();
    if caller.by == Proven::TokenReview {
        let username = text(claims.get("username")).ok_or(nobody)?;
        return Ok(User {
            username,
            uid: text(claims.get("uid")),
            groups: texts(claims.get("groups")),
            extra: extra(claims.get("extra")),
        });
    }
    // What a call says of itself, and what a header says, proves nobody.
    let is_proven = caller.by != Proven::Header && !caller.is_user_said;
    let username = caller.user.as_deref().filter(|_| is_proven).ok_or(nobody)?;
    let is_believed = |name: &str| trusts_system || !name.starts_with(SYSTEM);
    if !is_believed(username) {
        return Err("the user's name begins with system:, and is not one that the API server said");
    }
    let mut groups = texts(claims.get("groups"));
    groups.retain(|group| is_believed(group));
    Ok(User {
        username: username.to_owned(),
        groups,
        ..User::default()
    })
}

fn text(claim: Option<&Claim>) -> Option<String> {
    match claim {
        Some(Claim::Text(text)) if !text.is_empty() => Some(text.to_string()),
        _ => None,
    }
}

fn texts(claim: Option<&Claim>) -> Vec<String> {
    match claim {
        Some(Claim::List(many)) => many.iter().filter_map(|one| text(Some(one))).collect(),
        one => text(one).into_iter().collect(),
    }
}

fn extra(claim: Option<&Claim>) -> BTreeMap<String, Vec<String>> {
    let none = &Members::NONE;
    let members = match claim {
        Some(Claim::Map(members)) => members,
        _ => none,
    };
    let members = members.iter();
    members
        .map(|(name, values)| (name.to_owned(), texts(Some(values))))
        .collect()
}

#[cfg(test)]
mod tests;
