//! Callers: the values of the one header by which rules and limits go.
//!
//! Not here: callers that are proven (`security`).

use super::headers::{Headers, Named};
use super::open::{self, Taking};
use crate::backends::free;
use crate::findings::Findings;
use crate::gateway::Door;
use crate::matching::{HeaderMatch, How, MODEL};
use crate::plain::PlainRoute;
use crate::route::ModelRoute;
use crate::security::Security;
use crate::tools::ToolRoute;
use crate::traffic::Traffic;
use crate::tree::Tree;

/// Who calls without the header, unless a rule names somebody so.
const DEFAULT: &str = "default";
/// A header that nobody sends, where nothing goes by a header.
const NONE: &str = "x-tollgate-workload";

/// Whether callers can be known by a header. One by which they cannot is the fault of the object that names it, and of no other.
fn may_name(header: &HeaderMatch, findings: &mut Findings) -> bool {
    let Err(says) = config::may_name_callers(&header.name) else {
        return true;
    };
    let hint = "tell callers apart by a header of their own, such as x-workload-app";
    findings.fault(&header.spot, says, hint);
    false
}

/// Whether what proves callers says what a header says. Where it does not, that is the fault of what goes by the header: who calls is
/// asked for all.
fn is_proven(header: &HeaderMatch, security: &Security, findings: &mut Findings) -> bool {
    let Some((spot, member)) = security.says_nothing_of(&header.name) else {
        return true;
    };
    let name = &header.name;
    let says = format!(
        "goes by {name}, and {}, which proves who calls, says nothing of it",
        spot.object
    );
    let hint = format!("write {member} for {name} there, or leave the header out");
    findings.fault(&header.spot, says, hint);
    false
}

/// Those to models, of plain HTTP, and to tools.
pub(super) type Routes<'r, 'c, 'n> = (
    &'r [ModelRoute<'c, 'n>],
    &'r [PlainRoute<'c, 'n>],
    &'r [ToolRoute<'c, 'n>],
);

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
        (models, plain, tools): Routes<'_, '_, '_>,
        traffic: &[Traffic],
        security: &Security,
        taking: Option<&[Taking<'_>]>,
        findings: &mut Findings,
    ) -> Self {
        let headers = Headers::of(models, plain, tools, traffic, security);
        let mut callers = Self {
            header: None,
            named: Vec::new(),
            default: String::new(),
            user_header: None,
            routed: Vec::new(),
            is_open: false,
            has_default: false,
        };
        if !plain.is_empty() {
            headers.told_to_services(security, findings);
        }
        for named in &headers.callers {
            callers.note(named, security, taking, findings);
        }
        for named in &headers.users {
            callers.note_user(named.header, security, findings);
        }
        let are_known = callers.name(&headers, security);
        callers.open(models, plain, tools, are_known, findings);
        callers
    }

    /// Names them by what rules, limits and keys say; whether keys name them all.
    fn name(&mut self, headers: &Headers<'_>, security: &Security) -> bool {
        let quiet = &mut Findings::default();
        // One that was refused names nobody.
        let is_it = |header: &&HeaderMatch| Some(&header.name) == self.header.as_ref();
        let services = headers.services.iter().copied();
        let of_rules = headers.rules.iter().copied().chain(services);
        let of_rules = of_rules.filter(is_it);
        self.routed = of_rules.flat_map(|header| header.values(quiet)).collect();
        let of_limits = headers.limits.iter().copied().filter(is_it);
        let of_limits = of_limits.flat_map(|header| header.values(quiet));
        let keys = security.keys.as_ref().zip(self.header.as_deref());
        let clients = keys.and_then(|(keys, header)| keys.known_by(header));
        let are_known = clients.is_some();
        let clients = clients.into_iter().flatten().map(str::to_owned);
        let mut named: Vec<String> = Vec::new();
        for name in self.routed.iter().cloned().chain(of_limits).chain(clients) {
            if !named.contains(&name) {
                named.push(name);
            }
        }
        self.default = free(DEFAULT, |name| named.iter().any(|named| named == name));
        self.named = named;
        are_known
    }

    /// Notes rules that take calls whatever the header of callers says.
    fn open(
        &mut self,
        models: &[ModelRoute<'_, '_>],
        plain: &[PlainRoute<'_, '_>],
        tools: &[ToolRoute<'_, '_>],
        are_known: bool,
        findings: &mut Findings,
    ) {
        let is_open = |headers: &[HeaderMatch]| {
            !headers
                .iter()
                .any(|header| Some(&header.name) == self.header.as_ref())
        };
        let mut of_models = models
            .iter()
            .flat_map(|route| &route.rules)
            .flat_map(|rule| &rule.matches);
        let mut of_services = plain
            .iter()
            .flat_map(|route| &route.rules)
            .flat_map(|rule| &rule.matches);
        let first = of_models.find(|(_, headers)| is_open(headers));
        let first = first.map(|(spot, _)| spot);
        let of_tools = tools.iter().find(|route| is_open(&route.headers));
        let first = first.or(of_tools.map(|route| &route.object.spot));
        let of_services = of_services.find(|one| is_open(&one.headers));
        let first = first.or(of_services.map(|one| &one.spot));
        // A gate to which nothing is attached knows everybody, and has nothing for anybody.
        let is_bare = models.is_empty() && plain.is_empty() && tools.is_empty();
        self.is_open = first.is_some() || is_bare;
        // Where each client is known by name, nobody calls without one.
        self.has_default = self.is_open && !are_known;
        if let (Some(spot), Some(header)) = (first, &self.header)
            && !self.named.is_empty()
            && !are_known
        {
            let says = format!(
                "takes calls of everybody; a call whose {header} says another value than those that are named in these files is refused (404)"
            );
            findings.warn(spot, says, "");
        }
    }

    /// Notes a header by which users are told apart.
    fn note_user(&mut self, header: &HeaderMatch, security: &Security, findings: &mut Findings) {
        if !may_name(header, findings) || !is_proven(header, security, findings) {
            return;
        }
        let known = self.user_header.get_or_insert_with(|| header.name.clone());
        if *known != header.name {
            let says = format!("counts apart by a second header, beside {known}");
            let hint = "users are known by one: use the same in all limits";
            findings.fault(&header.spot, says, hint);
        }
    }

    /// Notes a header by which callers are told apart.
    fn note(
        &mut self,
        named: &Named<'_>,
        security: &Security,
        taking: Option<&[Taking<'_>]>,
        findings: &mut Findings,
    ) {
        let header = named.header;
        if !may_name(header, findings) {
            return;
        }
        if !is_proven(header, security, findings) {
            // In files nothing is taken, and what would follow from leaving it out is not told.
            if taking.is_none() {
                self.header.get_or_insert_with(|| header.name.clone());
            }
            return;
        }
        // Where keys say who calls, all who may are named.
        let are_known = security.keys.is_some() && security.issuers.is_empty();
        let is_new = self.header.is_none() && !are_known && !named.is_for_all;
        let older = taking.and_then(|all| open::older(named, all));
        if let Some(older) = older.filter(|_| is_new) {
            let says = format!(
                "would be the header of all callers, and {}, which is older, takes calls whatever it says: those with a value that is not named would be refused",
                older.spot.object
            );
            let hint =
                "have a SecurityPolicy for the Gateway prove callers by it, or run a gate for each";
            findings.fault(&header.spot, says, hint);
            return;
        }
        let known = self.header.get_or_insert_with(|| header.name.clone());
        if *known != header.name {
            let says = format!("is a second header by which calls are told apart, beside {known}");
            let hint = match config::nearest(&header.name, &[MODEL, known]) {
                Some(near) => format!("did you mean {near}?"),
                None => "callers are known by one: use the same in all rules and limits".to_owned(),
            };
            findings.fault(&header.spot, says, hint);
        }
    }

    /// Whether it is somebody who says who it is.
    pub(super) fn is_named(&self, workload: &str) -> bool {
        workload != self.default
    }

    /// Who calls without saying who it is.
    pub(super) fn default_name(&self) -> String {
        self.default.clone()
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
                .map(|issuer| issuer.tree(header, self.user_header(), &self.default));
            let mut issuers: Vec<Tree> = issuers.collect();
            return match issuers.len() {
                1 => issuers.remove(0),
                _ => Tree::List(issuers),
            };
        }
        if let Some(keys) = &security.keys {
            let header = self.header().filter(|_| !self.named.is_empty());
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
