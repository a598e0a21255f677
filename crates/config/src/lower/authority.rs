//! `authority`: rules as text, and whom to ask.
//!
//! Not here: compiling rules, asking (the host).

use std::time::Duration;

use super::{said, text, texts};
use crate::decode::{At, Field, Place};
use crate::host::{AccessReviewSource, AuthorityRules, ExtAuthzSource, WrittenRule};
use crate::scalar::Span;
use crate::schema::Document;
use crate::schema::authority::{ExtAuthz, Rule};
use crate::schema::mcp::McpRoute;

/// By which clients without sessions name the tool that they call.
const TOOL_NAME: &str = "mcp-name";
const QUERY_DEFAULT: &str = "data.tollgate.allow";
const TIMEOUT_DEFAULT: Duration = Duration::from_millis(200);
const TIMEOUT_MAX: Duration = Duration::from_secs(2);

/// Who decides over calls.
#[derive(Default)]
pub(super) struct Authority {
    pub(super) rules: Option<AuthorityRules>,
    pub(super) ext_authz: Option<ExtAuthzSource>,
    pub(super) access_review: Option<AccessReviewSource>,
}

impl super::Lowering<'_> {
    /// The rules, and whoever is asked, where the document says so.
    pub(super) fn authority(&mut self, document: &Document) -> Authority {
        let Some(written) = document.authority.get() else {
            return Authority::default();
        };
        let place = written.place();
        let rules = match (written.rules.get(), written.rego.get()) {
            (Some(rules), None) => {
                let rules = rules.0.iter();
                let rules = rules.filter_map(|(place, rule)| self.rule(place, rule.as_ref()?));
                let rules: Vec<WrittenRule> = rules.collect();
                if !rules.is_empty() && rules.iter().all(|rule| rule.is_deny) {
                    let says = "no rule allows anything, so that every call is refused";
                    let hint = "allow what no rule denies with { name: rest, allow: 'true' }";
                    self.warn(&place, says, hint);
                }
                Some(AuthorityRules::Cel(rules))
            }
            (None, Some(rego)) => {
                let mut files = Vec::new();
                for at in rego.files.items() {
                    let Some((_, bytes)) = self.read(at) else {
                        continue;
                    };
                    match String::from_utf8(bytes) {
                        Ok(text) => files.push((at.value.0.clone(), text)),
                        Err(_) => {
                            let says = format!("the file {} is no text", at.shown);
                            self.fault(&at.place, says, "write it in UTF-8");
                        }
                    }
                }
                let query = said(&rego.query, QUERY_DEFAULT);
                Some(AuthorityRules::Rego { files, query })
            }
            (Some(_), Some(_)) => {
                let says = "says rules in two languages";
                self.fault(&place, says, "keep `rules` or `rego`");
                None
            }
            (None, None) => {
                let is_bare = written.rules.is_absent()
                    && written.rego.is_absent()
                    && written.ext_authz.is_absent()
                    && written.subject_access_review.is_absent();
                if is_bare {
                    let hint =
                        "write rules, rego, ext_authz or subject_access_review, or leave it out";
                    self.fault(&place, "says nothing", hint);
                }
                None
            }
        };
        let (ext_authz, access) = (written.ext_authz.get(), written.subject_access_review.get());
        if let Some(asked) = ext_authz {
            self.names_of_tools(document, asked);
        }
        Authority {
            rules,
            ext_authz: ext_authz.and_then(|asked| self.ext_authz(&place, asked)),
            access_review: access.and_then(|asked| self.access_review(&place, asked)),
        }
    }

    fn rule(&mut self, place: &Place, rule: &Rule) -> Option<WrittenRule> {
        let (allow, deny) = (rule.allow.get(), rule.deny.get());
        let is_bad = rule.allow.is_bad() || rule.deny.is_bad();
        let (when, is_deny) = match (allow, deny) {
            (Some(at), None) => (at, false),
            (None, Some(at)) => (at, true),
            _ => {
                if !is_bad {
                    let says = "says no single thing to do";
                    self.fault(place, says, "write exactly one of allow and deny");
                }
                return None;
            }
        };
        Some(WrittenRule {
            name: text(&rule.name)?,
            is_deny,
            when: when.value.0.clone(),
            line: when.place.line,
        })
    }

    /// A call of the tool that calls another has the header of the first: a service that goes by it would be passed.
    fn names_of_tools(&mut self, document: &Document, written: &ExtAuthz) {
        let routes = document.mcp.get().map(|mcp| mcp.routes.items());
        let is_searched = |route: &McpRoute| route.list_tools.value().is_some_and(|is| is.0);
        let mut routes = routes.into_iter().flatten();
        if !routes.any(|(_, route)| route.as_ref().is_some_and(is_searched)) {
            return;
        }
        let names = written.headers.items().iter();
        for at in names.filter(|at| at.value.as_ref() == TOOL_NAME) {
            let says = "names `tollgate__call_tool`, and not the tool that it calls, on a route with `list_tools: search`";
            let hint = "leave it out and deny tools by `authority.rules` or the route's `tools`, or write list_tools: all";
            self.refuse(at, says, hint);
        }
    }

    fn ext_authz(&mut self, place: &Place, written: &ExtAuthz) -> Option<ExtAuthzSource> {
        let (target, is_grpc) = match (written.url.get(), written.grpc.get()) {
            (Some(at), None) => (at, false),
            (None, Some(at)) => (at, true),
            _ => {
                let is_bad = written.url.is_bad() || written.grpc.is_bad();
                if !is_bad {
                    let says = "ext_authz says no single address";
                    self.fault(place, says, "write exactly one of url and grpc");
                }
                return None;
            }
        };
        let timeout = self.within(&written.timeout, TIMEOUT_DEFAULT);
        Some(ExtAuthzSource {
            url: super::identity::address(&target.value),
            is_grpc,
            headers: texts(&written.headers),
            timeout,
            fails_open: written.on_failure.value().is_some_and(|is| is.0),
            ca_pem: self.roots_of(&written.ca),
        })
    }

    /// How long a call waits for somebody who is asked about it.
    pub(super) fn within(&mut self, written: &Field<At<Span>>, default: Duration) -> Duration {
        let timeout = written.get();
        if let Some(at) = timeout.filter(|at| at.value.0 > TIMEOUT_MAX) {
            self.refuse(at, "is longer than a call waits", "write 2s or less");
        }
        timeout.map_or(default, |at| at.value.0)
    }
}

impl crate::schema::authority::Authority {
    /// Where it stands: the line of its first part.
    fn place(&self) -> Place {
        let rules = self.rules.get().and_then(|rules| rules.0.first());
        Place::new("authority", rules.map_or(0, |(place, _)| place.line))
    }
}
