//! The token of one of Google's service accounts, given to whoever may act as it.
//!
//! Invariant: what the endpoint says beside the token is not repeated.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::json;
use tokio::time::Instant;

use super::AccessToken;
use super::grant::{ANSWER_BYTES_MAX, made};
use super::moment::until;
use crate::client::{Call, Client};
use crate::client_auth::bearer;
use crate::fault::Fault;
use crate::json as read;
use crate::secret_source::SecretSource;
use crate::url::Url;

/// Whose token is asked for.
#[derive(Debug, Clone)]
pub struct Impersonation {
    /// The address that ends with `:generateAccessToken`.
    pub url: Url,
    /// What it is to allow.
    pub scopes: Vec<String>,
    /// How long it is to live.
    pub life: Duration,
}

impl Impersonation {
    pub(super) async fn fetch(
        &self,
        client: &Client,
        first: &AccessToken,
    ) -> Result<AccessToken, Fault> {
        let mut headers = HeaderMap::new();
        let json_type = HeaderValue::from_static("application/json");
        headers.insert(ACCEPT, json_type.clone());
        headers.insert(CONTENT_TYPE, json_type);
        let first = SecretSource::fixed(first.value.clone());
        headers.insert(AUTHORIZATION, bearer(&first)?);
        let lifetime = format!("{}s", self.life.as_secs());
        let body = json!({ "scope": self.scopes, "lifetime": lifetime });
        let call = Call {
            headers,
            body: Bytes::from(body.to_string()),
            ..Call::new(Method::POST, &self.url, ANSWER_BYTES_MAX)
        };
        let asked = Instant::now();
        let reply = client.send(&call).await?;
        let body = reply.good(&["application/json"], "it is not application/json")?;
        let members = read::object(body)?;
        let end = read::text(&members, "expireTime", "its expireTime is no text")?;
        let life = until(end.ok_or(Fault::Garbage("it holds no expireTime"))?)?;
        let token = read::text(&members, "accessToken", "its accessToken is no text")?;
        made(token, life)?.asked_for(asked)
    }
}
