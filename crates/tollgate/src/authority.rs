//! Who may make which call: rules compiled, and whoever is asked.
//!
//! Not here: what Kubernetes is asked (`access`), what is written (`config`), the languages (`authority`), when they are asked (`policy::exchange`).

mod access_review;

use std::sync::Arc;
use std::time::{Duration, Instant};

use authority::cel::{Effect, Rule};
use callout::{
    Authorized, AuthzPeer, AuthzRequest, AuthzTransport, Bounds, Client, ExtAuthz, Protocol,
    Questions, Url,
};
use config::{AuthorityRules, ExtAuthzSource, Host};
use policy::authority::Rules;
use policy::authorizer::{Asked, Authorization, Authorizer};
use policy::caller::Later;
use policy::credential::target_without_keys;
use policy::mcp::{Mcp, When};
use policy::snapshot::Snapshot;

use crate::seldom::Seldom;
use crate::services::Moment;
use crate::trust::trust;

/// Puts rules and whoever is asked into the snapshot.
pub(crate) fn complete(
    snapshot: &mut Snapshot,
    host: &Host,
    moment: Moment<'_>,
) -> Result<(), String> {
    snapshot.authority = host.rules.as_ref().map(compiled).transpose()?;
    if let Some(mcp) = &mut snapshot.mcp {
        conditions(mcp)?;
    }
    let mut asked: Vec<Arc<dyn Authorizer>> = Vec::new();
    if let Some(written) = &host.ext_authz {
        let made = authorizer(written, moment);
        asked.extend(made.map_err(|fault| format!("authority.ext_authz: {fault}"))?);
    }
    if let Some(written) = &host.access_review {
        let made = access_review::authorizer(written, moment);
        asked.extend(made.map_err(|fault| format!("authority.subject_access_review: {fault}"))?);
    }
    let (late, early): (Vec<_>, Vec<_>) = asked.into_iter().partition(|asked| asked.needs_body());
    let (early, late) = (All::of(early), All::of(late));
    for workload in &mut snapshot.workloads {
        workload.authorizer.clone_from(&early);
        workload.call_authorizer.clone_from(&late);
    }
    Ok(())
}

/// Compiles the conditions of filters.
fn conditions(mcp: &mut Mcp) -> Result<(), String> {
    let mut faults = Vec::new();
    let servers = mcp.servers.iter_mut().map(|server| &mut server.shows);
    let routes = mcp.routes.iter_mut().map(|route| &mut route.shows);
    for shows in servers.chain(routes) {
        for (of, has_arguments) in shows.parts_mut().into_iter().zip(HAVE_ARGUMENTS) {
            for when in of.conditions_mut() {
                let When::Written { text, place } = when else {
                    continue;
                };
                match authority::cel::condition(text, has_arguments) {
                    Ok(condition) => {
                        let place = std::mem::take(place);
                        *when = When::Ready { condition, place };
                    }
                    Err(says) => faults.push(format!("{place}: {says}")),
                }
            }
        }
    }
    // One that is of several names stands with each of them.
    faults.dedup();
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults.join("\n"))
    }
}

/// Whether calls of tools, prompts and resources have arguments.
const HAVE_ARGUMENTS: [bool; 3] = [true, true, false];

/// Several who are asked at one time, and of whom all must allow.
#[derive(Debug)]
struct All(Vec<Arc<dyn Authorizer>>);

impl All {
    /// One of them where it is one alone.
    fn of(mut asked: Vec<Arc<dyn Authorizer>>) -> Option<Arc<dyn Authorizer>> {
        match asked.len() {
            0 | 1 => asked.pop(),
            _ => Some(Arc::new(Self(asked))),
        }
    }
}

impl Authorizer for All {
    fn ask(&self, call: &Asked<'_>) -> Later<Authorization> {
        all(self.0.iter().map(|asked| asked.ask(call)).collect())
    }
}

/// The first answer that is no yes, in order; all were begun before the first is waited for.
fn all(asked: Vec<Later<Authorization>>) -> Later<Authorization> {
    Box::pin(async move {
        for answer in asked {
            match answer.await {
                Authorization::Allowed => {}
                other => return other,
            }
        }
        Authorization::Allowed
    })
}

fn compiled(written: &AuthorityRules) -> Result<Arc<dyn Rules>, String> {
    match written {
        AuthorityRules::Cel(written) => {
            let rules: Vec<Rule> = written
                .iter()
                .map(|rule| Rule {
                    name: rule.name.clone(),
                    effect: if rule.is_deny {
                        Effect::Deny
                    } else {
                        Effect::Allow
                    },
                    when: rule.when.clone(),
                })
                .collect();
            authority::cel::compile(&rules).map_err(|faults| {
                told("authority.rules", &faults, |name| {
                    let rule = written.iter().find(|rule| rule.name == name)?;
                    Some(format!(" (line {})", rule.line))
                })
            })
        }
        AuthorityRules::Rego { files, query } => {
            let files: Vec<(&str, &str)> = files
                .iter()
                .map(|(n, t)| (n.as_str(), t.as_str()))
                .collect();
            authority::rego::compile(&files, query)
                .map_err(|faults| told("authority.rego", &faults, |_| None))
        }
    }
}

/// All faults, a line each.
fn told(place: &str, faults: &[authority::Fault], line: impl Fn(&str) -> Option<String>) -> String {
    let lines: Vec<String> = faults
        .iter()
        .map(|fault| {
            let line = line(&fault.rule).unwrap_or_default();
            format!("{place}: {}{line}: {}", fault.rule, fault.says)
        })
        .collect();
    lines.join("\n")
}

/// `None` where nothing is asked of anybody.
fn authorizer(
    written: &ExtAuthzSource,
    moment: Moment<'_>,
) -> Result<Option<Arc<dyn Authorizer>>, String> {
    let url = Url::parse(&written.url).map_err(|fault| fault.to_string())?;
    let tls = trust(written.ca_pem.as_deref())?;
    let protocol = if written.is_grpc {
        Protocol::Http2
    } else {
        Protocol::Either
    };
    let bounds = Bounds {
        protocol,
        ..Bounds::default()
    };
    let Some(services) = moment.services() else {
        return Ok(None);
    };
    let questions = services.questions("ext_authz", &url);
    let transport = if written.is_grpc {
        AuthzTransport::Grpc(url)
    } else {
        AuthzTransport::Http(url)
    };
    let client = Client::new(&tls, bounds);
    Ok(Some(Arc::new(ExtAuthzAuthorizer {
        service: ExtAuthz::new(&services.handle()?, client, transport, &written.headers),
        timeout: written.timeout,
        fails_open: written.fails_open,
        unanswered: Arc::default(),
        questions,
    })))
}

/// Asks a service that speaks as Envoy's external authorisation does.
#[derive(Debug)]
struct ExtAuthzAuthorizer {
    service: ExtAuthz,
    timeout: Duration,
    fails_open: bool,
    unanswered: Arc<Seldom>,
    questions: Arc<Questions>,
}

impl Authorizer for ExtAuthzAuthorizer {
    fn ask(&self, call: &Asked<'_>) -> Later<Authorization> {
        let head = call.head;
        let seen = head.fields.iter().filter_map(|field| {
            let name = std::str::from_utf8(field.name).ok()?;
            self.service
                .sees(name)
                .then(|| (name.to_owned(), field.value.to_vec()))
        });
        let host = head.fields.by_name(b"host").next().unwrap_or_default();
        let user = call.caller.and_then(|caller| caller.user.as_deref());
        let request = AuthzRequest {
            id: call.id.to_owned(),
            method: head.method_text().to_owned(),
            scheme: "http".to_owned(),
            host: String::from_utf8_lossy(host).into_owned(),
            path: target_without_keys(head).into_owned(),
            protocol: "HTTP/1.1".to_owned(),
            headers: seen.collect(),
            source: AuthzPeer {
                address: Some((call.source, 0).into()),
                service: call.workload.to_owned(),
                principal: user.unwrap_or_default().to_owned(),
            },
        };
        let asked = self.service.ask(request, self.timeout);
        let (fails_open, questions) = (self.fails_open, Arc::clone(&self.questions));
        let unanswered = Arc::clone(&self.unanswered);
        Box::pin(async move {
            let answer = asked.await;
            questions.note(answer.is_ok());
            match answer {
                Ok(Authorized::Allowed) => Authorization::Allowed,
                Ok(Authorized::Denied(status)) => {
                    let says = format!("the authorisation service says {status}");
                    Authorization::Denied(says.into())
                }
                Err(fault) if fails_open => {
                    if let Some(times) = unanswered.came(Instant::now()) {
                        tracing::warn!(%fault, times, "the authorisation service did not answer, and the calls went on as `on_failure` says");
                    }
                    Authorization::Allowed
                }
                Err(fault) => Authorization::Unavailable(fault.to_string().into()),
            }
        })
    }
}
