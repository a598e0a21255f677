//! What the API server of Kubernetes says of a token and of what its owner may do.
//!
//! Invariant: the gate's own token is read anew for each question, since it is replaced about once an hour. Answers are
//! kept for a moment only: what the API server itself keeps (ten seconds) comes on top of it.
//! Not here: how answers are kept (`shared`: who was kept first goes first).

mod access_review;
mod objects;
mod token_review;

use http::Method;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use serde::Serialize;
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use crate::client::{Call, Client};
use crate::client_auth::bearer;
use crate::fault::Fault;
use crate::json;
use crate::secret_source::SecretSource;
use crate::url::Url;
pub use access_review::{Access, AccessAction, AccessQuestion, AccessReview, AccessReviewSettings};
pub use objects::{Lines, Objects, Said};
pub use token_review::{Reviewed, TokenReview, TokenReviewSettings, User};

/// The longest answer.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Where an API server is, and who the gate is to it.
#[derive(Debug, Clone)]
pub struct ApiServer {
    /// Its URL (`https://kubernetes.default.svc`). Whom to trust is its client's matter.
    pub url: Url,
    /// The gate's own token ([`SecretSource::file`] of a service account's).
    pub token: SecretSource,
}

impl ApiServer {
    /// Where a path is asked for.
    fn at(&self, path: &str) -> Result<Url, Fault> {
        let prefix = self.url.target().strip_suffix('/');
        let path = format!("{}{path}", prefix.unwrap_or(self.url.target()));
        let unaskable = |_| Fault::Unaskable("its path");
        self.url.at(&path).map_err(unaskable)
    }

    /// Posts a review, and gives the members of the answer's `status`.
    async fn review(
        &self,
        client: &Client,
        path: &str,
        review: &impl Serialize,
    ) -> Result<Map<String, Value>, Fault> {
        let unaskable = Fault::Unaskable("its path, or what it is asked");
        let url = self.at(path)?;
        let mut body = Zeroizing::new(Vec::with_capacity(32 << 10));
        serde_json::to_writer(&mut *body, review).map_err(|_| unaskable)?;
        let mut call = Call::new(Method::POST, &url, ANSWER_BYTES_MAX);
        call.body = bytes::Bytes::from_owner(body);
        let kind = HeaderValue::from_static("application/json");
        call.headers.insert(ACCEPT, kind.clone());
        call.headers.insert(CONTENT_TYPE, kind);
        call.headers.insert(AUTHORIZATION, bearer(&self.token)?);
        let reply = client.send(&call).await?;
        let body = reply.good(&["application/json"], "it is not application/json")?;
        match json::object(body)?.remove("status") {
            Some(Value::Object(status)) => Ok(status),
            _ => Err(Fault::Garbage("it has no status")),
        }
    }
}

/// A member that is true or false; false where it is absent.
fn flag(status: &Map<String, Value>, name: &str) -> Result<bool, Fault> {
    match status.get(name) {
        None => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(Fault::Garbage(
            "a member of its status is not true or false",
        )),
    }
}

/// Texts of a list; none where it is absent.
fn texts(list: Option<&Value>) -> Result<Vec<String>, Fault> {
    let garbage = Fault::Garbage("a list of its status is not one of texts");
    match list {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => {
            let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
            texts.collect::<Option<_>>().ok_or(garbage)
        }
        Some(_) => Err(garbage),
    }
}

#[cfg(test)]
mod tests;
