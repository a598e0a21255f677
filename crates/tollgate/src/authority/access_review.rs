//! An API server of Kubernetes that is asked what callers may do.
//!
//! Invariant: what a call has not is left out of the question, which to Kubernetes means all of its kind: nobody is allowed
//! more by saying less.
//! Not here: asking, and what is kept of answers (`callout`), which user a caller is (`kubernetes`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use callout::{Access, AccessAction, AccessQuestion, AccessReview, AccessReviewSettings};
use config::{AccessReviewSource, Fact, Piece, ReviewedAction};
use policy::authorizer::{Asked, Authorization, Authorizer};
use policy::caller::Later;

use super::all;
use crate::kubernetes;
use crate::seldom::Seldom;
use crate::services::Moment;

/// `None` where nothing is asked of anybody.
pub(super) fn authorizer(
    written: &AccessReviewSource,
    moment: Moment<'_>,
) -> Result<Option<Arc<dyn Authorizer>>, String> {
    let (server, client) = kubernetes::server(&written.server)?;
    let Some(services) = moment.services() else {
        return Ok(None);
    };
    let questions = services.questions("subject_access_review", &server.url);
    let settings = AccessReviewSettings {
        server,
        cache: written.cache,
        cache_denied: written.cache_denied,
        questions,
    };
    Ok(Some(Arc::new(AccessReviewAuthorizer {
        review: AccessReview::new(&services.handle()?, client, settings),
        action: written.action.clone(),
        timeout: written.timeout,
        trusts_system_names: written.trusts_system_names,
        fails_open: written.fails_open,
        unanswered: Arc::default(),
    })))
}

/// Asks about each call, unless the same was asked a moment ago.
#[derive(Debug)]
struct AccessReviewAuthorizer {
    review: AccessReview,
    action: ReviewedAction,
    timeout: Duration,
    trusts_system_names: bool,
    fails_open: bool,
    unanswered: Arc<Seldom>,
}

impl Authorizer for AccessReviewAuthorizer {
    fn needs_body(&self) -> bool {
        let of_body = [Fact::Model, Fact::Backend, Fact::Route];
        of_body.into_iter().any(|fact| self.action.names(fact))
    }

    fn ask(&self, call: &Asked<'_>) -> Later<Authorization> {
        let user = match kubernetes::user(call.caller, self.trusts_system_names) {
            Ok(user) => Arc::new(user),
            Err(why) => {
                let denied = Authorization::Denied(why.into());
                return Box::pin(std::future::ready(denied));
            }
        };
        let mut backends = call.backends.clone();
        if backends.is_empty() || !self.action.names(Fact::Backend) {
            backends = vec![""];
        }
        let actions = backends
            .iter()
            .map(|backend| action(&self.action, call, backend));
        let asked = actions.map(|action| {
            self.ask_of(AccessQuestion {
                user: Arc::clone(&user),
                action,
            })
        });
        all(asked.collect())
    }
}

impl AccessReviewAuthorizer {
    fn ask_of(&self, question: AccessQuestion) -> Later<Authorization> {
        let question = Arc::new(question);
        let asked = self.review.ask(Arc::clone(&question), self.timeout);
        let fails_open = self.fails_open;
        let unanswered = Arc::clone(&self.unanswered);
        Box::pin(async move {
            match asked.await {
                Ok(Access::Allowed) => Authorization::Allowed,
                Ok(Access::Denied(why)) => {
                    let colon = if why.is_empty() { "" } else { ": " };
                    let what = in_words(&question);
                    let says = format!("Kubernetes does not let {what}{colon}{why}");
                    Authorization::Denied(says.into())
                }
                Err(fault) if fails_open => {
                    if let Some(times) = unanswered.came(Instant::now()) {
                        tracing::warn!(%fault, times, "the API server of Kubernetes did not answer, and the calls went on as `on_failure` says");
                    }
                    Authorization::Allowed
                }
                Err(fault) => {
                    let says = format!("the API server of Kubernetes: {fault}");
                    Authorization::Unavailable(says.into())
                }
            }
        })
    }
}

/// What the call would do; of several backends at this one.
fn action(written: &ReviewedAction, call: &Asked<'_>, backend: &str) -> AccessAction {
    let method = call.head.method_text();
    let text = |pieces: &[Piece]| {
        let pieces = pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text,
            Piece::Fact(Fact::Workload) => call.workload,
            Piece::Fact(Fact::Model) => call.model.unwrap_or_default(),
            Piece::Fact(Fact::Backend) => backend,
            Piece::Fact(Fact::Route) => call.route.unwrap_or(""),
            Piece::Fact(Fact::Method) => method,
        });
        pieces.collect::<String>()
    };
    let verb = |by_method: &str| {
        if written.verb.is_empty() {
            by_method.to_owned()
        } else {
            text(&written.verb)
        }
    };
    if written.resource.is_empty() {
        return AccessAction::Path {
            path: call.head.path().to_owned(),
            verb: verb(&method.to_ascii_lowercase()),
        };
    }
    AccessAction::Resource {
        namespace: text(&written.namespace),
        verb: verb(verb_of(method)),
        group: text(&written.group),
        version: text(&written.version),
        resource: text(&written.resource),
        subresource: text(&written.subresource),
        name: text(&written.name),
    }
}

/// What a method does with an object.
fn verb_of(method: &str) -> &'static str {
    match method {
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "get",
    }
}

/// Who would do what, for the log.
fn in_words(question: &AccessQuestion) -> String {
    let who = &question.user.username;
    match &question.action {
        AccessAction::Path { path, verb } => format!("{who} {verb} {path}"),
        AccessAction::Resource {
            namespace,
            verb,
            group,
            resource,
            subresource,
            name,
            ..
        } => {
            let part = |mark: &str, text: &str| {
                if text.is_empty() {
                    String::new()
                } else {
                    format!("{mark}{text}")
                }
            };
            let kind = part(".", group);
            let sub = part("/", subresource);
            let name = part(" ", name);
            let within = part(" in ", namespace);
            format!("{who} {verb} {resource}{kind}{sub}{name}{within}")
        }
    }
}
