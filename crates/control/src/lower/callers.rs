//! Callers: the values of the one header by which rules and limits go.
//!
//! Not here: callers that are proven (`security`).

use crate::backends::free;
use crate::findings::Findings;
use crate::gateway::Door;
use crate::matching::{HeaderMatch, How, MODEL};
use crate::plain::PlainRoute;
use crate::route::ModelRoute;
use crate::security::Security;
use crate::traffic::Traffic;
use crate::tree::Tree;

/// Who calls without the header, unless a rule names somebody so.
const DEFAULT: &str = "default";
/// A header that nobody sends, where nothing goes by a header.
const NONE: &str = "x-tollgate-workload";

/// The header that names callers, and who they are.
pub(crate) struct Callers {
    header: Option<String>,
    named: Vec<String>,
    /// Who calls without the header.
    default: String,
    /// A header whose values are not known: limits count each apart, so it names users.
    user_header: Option<String>,
    /// Of them those that rules name.
    routed: Vec<String>,
    /// Whether some route takes calls whatever the header says.
    is_open: bool,
    /// Whether some route takes calls without the header.
    has_default: bool,
}

impl Callers {
    pub(super) fn of(
        models: &[ModelRoute<'_, '_>],
        plain: &[PlainRoute<'_, '_>],
        traffic: &[Traffic],
        security: &Security,
        findings: &mut Findings,
    ) -> Self {
        let mut callers = Self {
            header: None,
            named: Vec::new(),
            default: String::new(),
            user_header: None,
            routed: Vec::new(),
            is_open: false,
            has_default: false,
        };
        let matches = models
            .iter()
            .flat_map(|route| &route.rules)
            .flat_map(|rule| &rule.matches);
        let of_routes: Vec<&HeaderMatch> = matches
            .flat_map(|(_, headers)| headers)
            .filter(|header| header.name != MODEL)
            .collect();
        let of_limits: Vec<&HeaderMatch> = traffic
            .iter()
            .flat_map(|policy| &policy.limits)
            .flat_map(|rule| &rule.headers)
            .filter(|header| header.name != MODEL)
            .collect();
        let all_plain = plain.iter().flat_map(|route| &route.rules);
        let all_plain = all_plain.flat_map(|rule| &rule.matches);
        let all_plain: Vec<&HeaderMatch> = all_plain.flat_map(|one| &one.headers).collect();
        // A rule for services goes by any header; one that a policy proves is never taken as a client says it.
        let of_proven = all_plain
            .iter()
            .filter(|header| security.proves(&header.name));
        let said: Vec<&HeaderMatch> = of_routes
            .iter()
            .copied()
            .chain(of_proven.copied())
            .collect();
        let is_known = |header: &HeaderMatch| {
            let says = |other: &&&HeaderMatch| {
                other.name == header.name && !matches!(other.how, How::Distinct)
            };
            let keys = security.keys.as_ref();
            said.iter().chain(&of_limits).any(|other| says(&other))
                || keys.is_some_and(|keys| keys.known_by(&header.name).is_some())
        };
        let (of_limits, of_users): (Vec<&HeaderMatch>, Vec<&HeaderMatch>) =
            of_limits.iter().partition(|header| is_known(header));
        for header in said.iter().chain(&of_limits) {
            callers.note(header, findings);
        }
        for header in of_users {
            let known = callers
                .user_header
                .get_or_insert_with(|| header.name.clone());
            if *known != header.name {
                let says = format!("counts apart by a second header, beside {known}");
                let hint = "users are known by one: use the same in all limits";
                findings.fault(&header.spot, says, hint);
            }
        }
        let of_plain: Vec<&HeaderMatch> = all_plain
            .into_iter()
            .filter(|header| Some(&header.name) == callers.header.as_ref())
            .collect();
        for header in of_routes.iter().chain(&of_limits).chain(&of_plain) {
            let quiet = &mut Findings::default();
            for value in header.values(quiet) {
                if !callers.named.contains(&value) {
                    callers.named.push(value);
                }
            }
        }
        let quiet = &mut Findings::default();
        let of_routes = of_routes.iter().chain(&of_plain);
        callers.routed = of_routes.flat_map(|header| header.values(quiet)).collect();
        let clients = security.keys.as_ref().zip(callers.header.as_deref());
        let clients = clients.and_then(|(keys, header)| keys.known_by(header));
        let are_known = clients.is_some();
        for client in clients.into_iter().flatten() {
            if !callers.named.iter().any(|named| named == client) {
                callers.named.push(client.to_owned());
            }
        }
        callers.default = free(DEFAULT, |name| {
            callers.named.iter().any(|named| named == name)
        });
        let is_open = |headers: &[HeaderMatch]| {
            !headers
                .iter()
                .any(|header| Some(&header.name) == callers.header.as_ref())
        };
        let mut open = models
            .iter()
            .flat_map(|route| &route.rules)
            .flat_map(|rule| &rule.matches)
            .filter(|(_, headers)| is_open(headers));
        let open_plain = plain
            .iter()
            .flat_map(|route| &route.rules)
            .flat_map(|rule| &rule.matches)
            .any(|one| is_open(&one.headers));
        let first = open.next().map(|(spot, _)| spot.clone());
        callers.is_open = first.is_some() || open_plain;
        // Where each client is known by name, nobody calls without one.
        callers.has_default = callers.is_open && !are_known;
        if let (Some(spot), Some(header)) = (first, &callers.header)
            && !callers.named.is_empty()
            && !are_known
        {
            let says = format!(
                "takes calls of everybody; a call whose {header} says another value than those that are named in these files is refused (404)"
            );
            findings.warn(&spot, says, "");
        }
        callers
    }

    /// Notes a header by which callers are told apart.
    fn note(&mut self, header: &HeaderMatch, findings: &mut Findings) {
        let known = self.header.get_or_insert_with(|| header.name.clone());
        if *known != header.name {
            let says = format!("is a second header by which calls are told apart, beside {known}");
            let hint = "callers are known by one: use the same in all rules and limits";
            findings.fault(&header.spot, says, hint);
        }
    }

    /// Whether it is somebody who says who it is.
    pub(super) fn is_named(&self, workload: &str) -> bool {
        workload != self.default
    }

    /// The header that names users.
    pub(super) fn user_header(&self) -> Option<&str> {
        self.user_header.as_deref()
    }

    pub(super) fn header(&self) -> Option<&str> {
        self.header.as_deref()
    }

    /// The callers that a match takes; none where it has its fault.
    pub(super) fn taken_by(
        &self,
        headers: &[HeaderMatch],
        findings: &mut Findings,
    ) -> Option<Vec<String>> {
        let of_callers = headers
            .iter()
            .find(|header| Some(&header.name) == self.header.as_ref());
        let Some(header) = of_callers else {
            let default = self.has_default.then(|| self.default.clone());
            return Some(self.named.iter().cloned().chain(default).collect());
        };
        if matches!(header.how, How::Distinct) {
            return None;
        }
        Some(header.values(findings)).filter(|values| !values.is_empty())
    }

    /// How callers are recognised.
    pub(super) fn identity(
        &self,
        security: &Security,
        door: &Door<'_, '_>,
        findings: &mut Findings,
    ) -> Tree {
        if !security.issuers.is_empty() {
            let header = self.header().filter(|_| !self.named.is_empty());
            let issuers = security
                .issuers
                .iter()
                .map(|issuer| issuer.tree(header, self.user_header(), &self.default, findings));
            let mut issuers: Vec<Tree> = issuers.collect();
            return match issuers.len() {
                1 => issuers.remove(0),
                _ => Tree::List(issuers),
            };
        }
        if let Some(keys) = &security.keys {
            let header = self.header().filter(|_| !self.named.is_empty());
            if let Some(header) = self.user_header() {
                keys.says_nothing_of(header, findings);
            }
            let is_routed =
                |client: &str| self.is_open || self.routed.iter().any(|named| named == client);
            return keys.tree(header, &self.default, is_routed, findings);
        }
        let header = match &self.header {
            Some(header) if !self.named.is_empty() => header,
            _ => NONE,
        };
        Tree::map([
            ("header", Some(Tree::text(header))),
            ("user_header", self.user_header().map(Tree::text)),
            (
                "default",
                self.has_default.then(|| Tree::text(&self.default)),
            ),
            ("trust", (!door.is_loopback).then(|| Tree::text("anyone"))),
        ])
        .of(&door.gateway.spot)
    }
}
