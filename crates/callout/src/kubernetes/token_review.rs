//! Who a token belongs to (`TokenReview`, authentication.k8s.io/v1).
//!
//! Invariant: where audiences are asked for, a token is good only where the answer names one of them: a server that
//! knows of none says so by naming none.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use policy::secret::Secret;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{ApiServer, flag, texts};
use crate::client::Client;
use crate::fault::Fault;
use crate::introspection::TOKEN_BYTES_MAX;
use crate::service::{Answered, Handle};
use crate::shared::{Found, Key, Shared};

const PATH: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

/// Which API server is asked, and how long what it says is kept.
#[derive(Debug, Clone)]
pub struct TokenReviewSettings {
    /// The API server.
    pub server: ApiServer,
    /// Whom a token must be for: one of them. None asks for the API server's own.
    pub audiences: Vec<String>,
    /// How long a good token is kept; what the API server keeps comes on top of it.
    pub cache: Duration,
    /// How long one that is not good is kept.
    pub cache_refused: Duration,
    /// Tokens that are kept.
    pub entries_max: usize,
}

impl TokenReviewSettings {
    /// Ten seconds for good tokens, five for others, 16,384 of them.
    #[must_use]
    pub fn new(server: ApiServer, audiences: Vec<String>) -> Self {
        Self {
            server,
            audiences,
            cache: Duration::from_secs(10),
            cache_refused: Duration::from_secs(5),
            entries_max: 16_384,
        }
    }
}

/// What the API server says of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reviewed {
    /// It is this user's.
    Authenticated(Arc<User>),
    /// It is nobody's, or for another audience.
    Refused,
}

/// A user of Kubernetes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// The name (`system:serviceaccount:<namespace>:<name>`).
    pub username: String,
    /// What tells users of one name apart over time.
    pub uid: Option<String>,
    /// Groups.
    pub groups: Vec<String>,
    /// Whatever else the authenticator says.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The way to an API server's review of tokens; clones share what is kept.
#[derive(Debug, Clone)]
pub struct TokenReview {
    asker: Arc<Asker>,
    handle: Handle,
}

struct Asker {
    client: Client,
    settings: TokenReviewSettings,
    shared: Arc<Shared<Reviewed>>,
}

impl TokenReview {
    /// One that has asked nothing yet.
    #[must_use]
    pub fn new(handle: &Handle, client: Client, settings: TokenReviewSettings) -> Self {
        let shared = Shared::new(settings.entries_max);
        let asker = Asker {
            client,
            settings,
            shared,
        };
        Self {
            asker: Arc::new(asker),
            handle: handle.clone(),
        }
    }

    /// Asks whose a token is. A fault says that nobody can tell now.
    pub fn ask(&self, token: &Secret, within: Duration) -> Answered<Reviewed> {
        let (asker, token) = (Arc::clone(&self.asker), token.clone());
        self.handle
            .ask(within, async move { asker.ask(token).await })
    }
}

impl Asker {
    async fn ask(self: Arc<Self>, token: Secret) -> Result<Reviewed, Fault> {
        let text = token.expose();
        let is_plain = text.iter().all(u8::is_ascii_graphic);
        if !is_plain || !(1..=TOKEN_BYTES_MAX).contains(&text.len()) {
            return Ok(Reviewed::Refused);
        }
        let key: Key = Sha256::digest(text).into();
        let asker = Arc::clone(&self);
        let question = || async move { asker.look(&token).await };
        self.shared.get(key, question).await
    }

    async fn look(&self, token: &Secret) -> Result<Found<Reviewed>, Fault> {
        let settings = &self.settings;
        let text = str::from_utf8(token.expose()).unwrap_or_default();
        let review = Review {
            api_version: "authentication.k8s.io/v1",
            kind: "TokenReview",
            spec: Spec {
                token: text,
                audiences: &settings.audiences,
            },
        };
        let status = settings.server.review(&self.client, PATH, &review).await?;
        let user = settings.user(&status)?;
        let is_yes = user.is_some();
        let weight = json!(status).to_string().len();
        Ok(Found {
            value: user.map_or(Reviewed::Refused, |user| {
                Reviewed::Authenticated(Arc::new(user))
            }),
            is_yes,
            good_for: if is_yes {
                settings.cache
            } else {
                settings.cache_refused
            },
            weight: if is_yes { weight } else { 0 },
        })
    }
}

/// What is posted; it borrows the token, so that no copy of it is left behind.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    api_version: &'static str,
    kind: &'static str,
    spec: Spec<'a>,
}

#[derive(serde::Serialize)]
struct Spec<'a> {
    token: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    audiences: &'a [String],
}

impl TokenReviewSettings {
    /// Whose the token is, and nobody's where it is not good.
    fn user(&self, status: &Map<String, Value>) -> Result<Option<User>, Fault> {
        let audiences = texts(status.get("audiences"))?;
        let is_for_us = |audience: &String| self.audiences.contains(audience);
        let fits = self.audiences.is_empty() || audiences.iter().any(is_for_us);
        if !flag(status, "authenticated")? || !fits {
            return Ok(None);
        }
        let Some(Value::Object(user)) = status.get("user") else {
            return Err(Fault::Garbage("its status names no user"));
        };
        let garbage = "a member of its user is no text";
        let username = crate::json::text(user, "username", garbage)?;
        let username = username.filter(|name| !name.is_empty());
        Ok(Some(User {
            username: username
                .ok_or(Fault::Garbage("its user has no name"))?
                .to_owned(),
            uid: crate::json::text(user, "uid", garbage)?.map(str::to_owned),
            groups: texts(user.get("groups"))?,
            extra: extra(user.get("extra"))?,
        }))
    }
}

fn extra(all: Option<&Value>) -> Result<BTreeMap<String, Vec<String>>, Fault> {
    let members = match all {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::Object(members)) => members,
        Some(_) => return Err(Fault::Garbage("its user's extra is no object")),
    };
    let members = members.iter();
    members
        .map(|(name, values)| Ok((name.clone(), texts(Some(values))?)))
        .collect()
}

impl std::fmt::Debug for Asker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Asker").field(&self.settings).finish()
    }
}
