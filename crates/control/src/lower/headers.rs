//! Headers that rules and limits go by, and what each of them is for.
//!
//! Not here: who callers are (`callers`).

use crate::findings::Findings;
use crate::matching::{HeaderMatch, How, MODEL};
use crate::plain::PlainRoute;
use crate::route::ModelRoute;
use crate::security::Security;
use crate::tools::ToolRoute;
use crate::traffic::Traffic;

/// All of them but the model's.
pub(super) struct Headers<'h> {
    /// By which rules tell callers apart.
    pub(super) rules: Vec<&'h HeaderMatch>,
    /// By which limits do.
    pub(super) limits: Vec<&'h HeaderMatch>,
    /// Of limits that count each value apart, and nobody says which there are.
    pub(super) users: Vec<&'h HeaderMatch>,
    /// Of rules for services, which go by any header.
    pub(super) services: Vec<&'h HeaderMatch>,
}

impl<'h> Headers<'h> {
    pub(super) fn of(
        models: &'h [ModelRoute<'_, '_>],
        plain: &'h [PlainRoute<'_, '_>],
        tools: &'h [ToolRoute<'_, '_>],
        traffic: &'h [Traffic],
        security: &Security,
    ) -> Self {
        let of_models = models.iter().flat_map(|route| &route.rules);
        let of_models = of_models.flat_map(|rule| &rule.matches);
        let of_models = of_models
            .flat_map(|(_, headers)| headers)
            .filter(|header| header.name != MODEL);
        let of_tools = tools.iter().flat_map(|route| &route.headers);
        let of_models = of_models.chain(of_tools);
        let services = plain.iter().flat_map(|route| &route.rules);
        let services = services.flat_map(|rule| &rule.matches);
        let services: Vec<&HeaderMatch> = services.flat_map(|one| &one.headers).collect();
        // One that a policy proves is never taken as a client says it.
        let of_proven = services.iter().copied();
        let of_proven = of_proven.filter(|header| security.proves(&header.name));
        let rules: Vec<&HeaderMatch> = of_models.chain(of_proven).collect();
        let limits = traffic.iter().flat_map(|policy| &policy.limits);
        let limits: Vec<&HeaderMatch> = limits
            .flat_map(|rule| &rule.headers)
            .filter(|header| header.name != MODEL)
            .collect();
        let is_known = |header: &HeaderMatch| {
            let mut said = rules.iter().chain(&limits);
            let keys = security.keys.as_ref();
            said.any(|other| other.name == header.name && !matches!(other.how, How::Distinct))
                || keys.is_some_and(|keys| keys.known_by(&header.name).is_some())
        };
        let (limits, users) = limits.iter().partition(|header| is_known(header));
        Self {
            rules,
            limits,
            users,
            services,
        }
    }

    /// Notes that services have none of them from the gate, and none from clients.
    pub(super) fn told_to_services(&self, security: &Security, findings: &mut Findings) {
        let mut all = self.rules.iter().chain(&self.limits).chain(&self.users);
        if let Some(header) = all.find(|header| !security.proves(&header.name)) {
            let name = &header.name;
            let says = format!("goes by {name}, which services behind HTTPRoutes do not get");
            findings.warn(&header.spot, says, "");
        }
    }
}
