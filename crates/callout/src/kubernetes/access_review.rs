//! What a user may do (`SubjectAccessReview`, authorization.k8s.io/v1).
//!
//! Invariant: a call is allowed where the answer says `allowed` and does not say `denied`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::token_review::User;
use super::{ApiServer, flag};
use crate::client::Client;
use crate::fault::Fault;
use crate::questions::Questions;
use crate::service::{Answered, Handle};
use crate::shared::{Found, Key, Shared};

const PATH: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
/// Answers that are kept.
const ENTRIES_MAX: usize = 16_384;
/// Most bytes of a reason that are kept.
const REASON_BYTES_MAX: usize = 256;

/// A question: may this user do this?
#[derive(Debug, Clone)]
pub struct AccessQuestion {
    /// Who.
    pub user: Arc<User>,
    /// What.
    pub action: AccessAction,
}

/// Something that a user may do. A member that is empty is left out, which means all of its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessAction {
    /// With an object of the API.
    Resource {
        /// Its namespace.
        namespace: String,
        /// `get`, `list`, `create`, … or a verb of one's own (`use`).
        verb: String,
        /// Its group.
        group: String,
        /// Its version.
        version: String,
        /// Its kind, in the plural.
        resource: String,
        /// A part of it.
        subresource: String,
        /// Its name.
        name: String,
    },
    /// With a path.
    Path {
        /// The path.
        path: String,
        /// `get`, `post`, …
        verb: String,
    },
}

/// What the API server says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// It is allowed.
    Allowed,
    /// It is not, for this reason where it says one: at most [`REASON_BYTES_MAX`] without control characters, for the
    /// log.
    Denied(Arc<str>),
}

/// Which API server is asked, and how long what it says is kept.
#[derive(Debug, Clone)]
pub struct AccessReviewSettings {
    /// The API server.
    pub server: ApiServer,
    /// How long a yes is kept; what the API server keeps comes on top of it.
    pub cache: Duration,
    /// How long a no is kept.
    pub cache_denied: Duration,
    /// Where questions are counted.
    pub questions: Arc<Questions>,
}

/// The way to an API server's review of access; clones share what is kept.
#[derive(Debug, Clone)]
pub struct AccessReview {
    asker: Arc<Asker>,
    handle: Handle,
}

struct Asker {
    client: Client,
    settings: AccessReviewSettings,
    shared: Arc<Shared<Access>>,
}

impl AccessReview {
    /// One that has asked nothing yet.
    #[must_use]
    pub fn new(handle: &Handle, client: Client, settings: AccessReviewSettings) -> Self {
        let shared = Shared::counted(ENTRIES_MAX, Arc::clone(&settings.questions));
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

    /// Asks. A fault says that nobody can tell now. What was answered a moment ago is said at once.
    pub fn ask(&self, question: Arc<AccessQuestion>, within: Duration) -> Answered<Access> {
        let Some(key) = key(&question) else {
            return Answered::now(Err(Fault::Unaskable("it cannot be written")));
        };
        if let Some(kept) = self.asker.shared.kept(&key) {
            return Answered::now(Ok(kept));
        }
        let asker = Arc::clone(&self.asker);
        self.handle.ask(within, async move {
            let looking = Arc::clone(&asker);
            let look = || async move { looking.look(&question).await };
            asker.shared.get(key, look).await
        })
    }
}

/// What tells a question from any other.
fn key(question: &AccessQuestion) -> Option<Key> {
    // The same question is written in the same way: its maps are in order.
    let written = serde_json::to_vec(&review(question)).ok()?;
    Some(Sha256::digest(&written).into())
}

impl Asker {
    async fn look(&self, question: &AccessQuestion) -> Result<Found<Access>, Fault> {
        let (settings, review) = (&self.settings, review(question));
        let status = settings.server.review(&self.client, PATH, &review).await?;
        let access = access(&status)?;
        let is_yes = access == Access::Allowed;
        Ok(Found {
            value: access,
            is_yes,
            good_for: if is_yes {
                settings.cache
            } else {
                settings.cache_denied
            },
            weight: REASON_BYTES_MAX,
        })
    }
}

fn access(status: &Map<String, Value>) -> Result<Access, Fault> {
    if !status.contains_key("allowed") {
        return Err(Fault::Garbage(
            "its status does not say whether it is allowed",
        ));
    }
    let is_allowed = flag(status, "allowed")? && !flag(status, "denied")?;
    Ok(if is_allowed {
        Access::Allowed
    } else {
        Access::Denied(reason(status))
    })
}

/// Why not, as far as the server says.
fn reason(status: &Map<String, Value>) -> Arc<str> {
    let texts = ["reason", "evaluationError"].map(|name| status.get(name).and_then(Value::as_str));
    let said: Vec<&str> = texts
        .into_iter()
        .flatten()
        .filter(|t| !t.is_empty())
        .collect();
    let mut plain: String = said.join("; ");
    plain.retain(|c| !c.is_control());
    plain.truncate(plain.floor_char_boundary(REASON_BYTES_MAX));
    plain.into()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    api_version: &'static str,
    kind: &'static str,
    spec: Spec<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    user: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    groups: &'a [String],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extra: &'a BTreeMap<String, Vec<String>>,
    #[serde(flatten)]
    action: BTreeMap<&'static str, BTreeMap<&'static str, &'a str>>,
}

fn review(question: &AccessQuestion) -> Review<'_> {
    let User {
        username,
        uid,
        groups,
        extra,
    } = &*question.user;
    let (name, members) = question.action.members();
    let members = members.into_iter().filter(|(_, value)| !value.is_empty());
    Review {
        api_version: "authorization.k8s.io/v1",
        kind: "SubjectAccessReview",
        spec: Spec {
            user: username,
            uid: uid.as_deref(),
            groups,
            extra,
            action: BTreeMap::from([(name, members.collect())]),
        },
    }
}

impl AccessAction {
    fn members(&self) -> (&'static str, Vec<(&'static str, &str)>) {
        match self {
            Self::Path { path, verb } => {
                let members = vec![("path", &**path), ("verb", &**verb)];
                ("nonResourceAttributes", members)
            }
            Self::Resource {
                namespace,
                verb,
                group,
                version,
                resource,
                subresource,
                name,
            } => {
                let members = vec![
                    ("namespace", &**namespace),
                    ("verb", verb),
                    ("group", group),
                    ("version", version),
                    ("resource", resource),
                    ("subresource", subresource),
                    ("name", name),
                ];
                ("resourceAttributes", members)
            }
        }
    }
}

impl std::fmt::Debug for Asker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Asker").field(&self.settings).finish()
    }
}
