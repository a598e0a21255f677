//! Who a token belongs to (`TokenReview`, authentication.k8s.io/v1).
//!
//! Invariant: where audiences are asked for, a token is good only where the answer names one of them: a server that
//! knows of none says so by naming none.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use policy::secret::Secret;
use serde_json::{Map, Value, json};

use super::{ApiServer, flag, texts};
use crate::about_token::{AboutTokens, TokenQuestion, claims};
use crate::client::Client;
use crate::fault::Fault;
use crate::introspection::since_1970;
use crate::questions::Questions;
use crate::service::{Answered, Handle};
use crate::shared::{Found, Shared};

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
    /// Where questions are counted.
    pub questions: Arc<Questions>,
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
            questions: Arc::default(),
        }
    }
}

/// What the API server says of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reviewed {
    /// It is this user's.
    Authenticated {
        /// Whose.
        user: Arc<User>,
        /// When it was asked about, in seconds after 1970: who keeps the answer counts from there.
        asked_s: u64,
        /// When the token says that it ends, in seconds after 1970, where it is a JSON Web Token.
        exp: Option<u64>,
    },
    /// It is nobody's, or for another audience; as far as can be told, why.
    Refused(&'static str),
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
pub struct TokenReview(AboutTokens<Reviews>);

struct Reviews {
    client: Client,
    settings: TokenReviewSettings,
}

impl TokenReview {
    /// One that has asked nothing yet.
    #[must_use]
    pub fn new(handle: &Handle, client: Client, settings: TokenReviewSettings) -> Self {
        let shared = Shared::counted(settings.entries_max, Arc::clone(&settings.questions));
        let reviews = Reviews { client, settings };
        Self(AboutTokens::new(handle, reviews, shared))
    }

    /// Asks whose a token is. A fault says that nobody can tell now.
    pub fn ask(&self, token: &Secret, within: Duration) -> Answered<Reviewed> {
        self.0.ask(token, within)
    }
}

impl TokenQuestion for Reviews {
    type Answer = Reviewed;
    const REFUSED: Reviewed = Reviewed::Refused("it cannot be a token");

    fn can_be_one(&self, text: &[u8]) -> bool {
        text.iter().all(u8::is_ascii_graphic)
    }

    async fn look(&self, token: &Secret) -> Result<Found<Reviewed>, Fault> {
        let settings = &self.settings;
        let asked_s = since_1970().as_secs();
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
        let claims = claims(token.expose());
        let Some(user) = settings.user(&status)? else {
            return Ok(Found {
                value: Reviewed::Refused(settings.why_not(claims.as_ref(), asked_s)),
                is_yes: false,
                good_for: settings.cache_refused,
                weight: 0,
            });
        };
        let exp = claims.as_ref().and_then(expiry);
        let left = exp.map(|exp| Duration::from_secs(exp.saturating_sub(asked_s)));
        Ok(Found {
            value: Reviewed::Authenticated {
                user: Arc::new(user),
                asked_s,
                exp,
            },
            is_yes: true,
            good_for: left.map_or(settings.cache, |left| left.min(settings.cache)),
            weight: json!(status).to_string().len(),
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

fn expiry(claims: &Map<String, Value>) -> Option<u64> {
    crate::json::seconds(claims, "exp", "").ok()?
}

impl TokenReviewSettings {
    /// Why a token is probably refused, for the log: the server's own words may repeat parts of it.
    fn why_not(&self, claims: Option<&Map<String, Value>>, now_s: u64) -> &'static str {
        const UNKNOWN: &str = "the API server does not know it";
        let Some(claims) = claims else {
            return UNKNOWN;
        };
        if expiry(claims).is_some_and(|exp| exp <= now_s) {
            return "it has expired";
        }
        let is_ours = |value: &Value| {
            let text = value.as_str();
            text.is_some_and(|text| self.audiences.iter().any(|ours| ours == text))
        };
        let is_for_us = match claims.get("aud") {
            Some(Value::Array(many)) => many.iter().any(is_ours),
            Some(one) => is_ours(one),
            None => false,
        };
        if !self.audiences.is_empty() && !is_for_us {
            return "it is for another audience";
        }
        UNKNOWN
    }

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

impl std::fmt::Debug for Reviews {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.settings.fmt(f)
    }
}
