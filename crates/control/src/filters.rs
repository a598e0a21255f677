//! Filters of an HTTPRoute: fields, host and path that change on the way, redirects, and pages that may read answers.
//!
//! Invariant: a filter that is not served closes its rule; none is passed over.
//! Not here: what they do to a call (`policy::plain::actions`).

use config::quoted;

use crate::edits::edits;
use crate::fields::{Fields, Item};
use crate::findings::Findings;
use crate::refs::Ref;
use crate::tree::Tree;

/// What the filters of a rule come to, as members of a route of our document.
#[derive(Default, Clone)]
pub(crate) struct Filters {
    /// By the member's name.
    pub(crate) members: Vec<(String, Tree)>,
    /// Its calls go nowhere but to where they are sent.
    pub(crate) is_redirect: bool,
    /// Who sees copies of them, and of which share, in millionths.
    pub(crate) mirrors: Vec<(Ref, u64)>,
}

impl Filters {
    /// Those of a rule; `target` reads a backend that one names.
    pub(crate) fn of<'n>(
        fields: &mut Fields<'n>,
        findings: &mut Findings,
        target: impl Fn(&Item<'n>, &mut Findings) -> Option<Ref>,
    ) -> Self {
        let mut filters = Self::default();
        for item in fields.list("filters", findings) {
            let mut of = item.fields(&mut Findings::default());
            let kind = of.text("type", &mut Findings::default());
            match kind.as_ref().map(|kind| kind.value.as_str()) {
                Some("RequestMirror") => filters.mirror(&item, findings, &target),
                _ => filters.take(&item, findings),
            }
        }
        if !filters.has("upstream_host") {
            filters.put("upstream_host", Tree::text("client"));
        }
        filters
    }

    /// Whether calls pass as they are.
    pub(crate) fn changes_nothing(&self) -> bool {
        let is_usual =
            |(name, tree): &(String, Tree)| name == "upstream_host" && tree.flow() == "client";
        !self.is_redirect && self.mirrors.is_empty() && self.members.iter().all(is_usual)
    }

    fn has(&self, name: &str) -> bool {
        self.members.iter().any(|(of, _)| of == name)
    }

    fn put(&mut self, name: &str, tree: Tree) {
        self.members.push((name.to_owned(), tree));
    }

    fn take(&mut self, item: &Item<'_>, findings: &mut Findings) {
        let mut of = item.fields(findings);
        let Some(kind) = of.needed_text("type", findings) else {
            return;
        };
        let (member, name): (&'static str, &'static str) = match kind.value.as_str() {
            "RequestHeaderModifier" => ("requestHeaderModifier", "request_headers"),
            "ResponseHeaderModifier" => ("responseHeaderModifier", "response_headers"),
            "URLRewrite" => ("urlRewrite", "rewrite"),
            "RequestRedirect" => ("requestRedirect", "redirect"),
            "CORS" => ("cors", "cors"),
            other => {
                let says = format!("the filter {} is not served", quoted(other));
                let hint = "write RequestHeaderModifier, ResponseHeaderModifier, URLRewrite, RequestRedirect, RequestMirror or CORS";
                findings.fault(&kind.spot, says, hint);
                return;
            }
        };
        let inside = of.need(member, findings);
        of.end(findings);
        let Some(inside) = inside else { return };
        if self.has(name) || name == "rewrite" && self.has("upstream_host") {
            findings.fault(&item.spot, "is a second filter of its type", "write one");
            return;
        }
        match name {
            "rewrite" => self.rewrite(&inside, findings),
            "redirect" => self.redirect(&inside, findings),
            "cors" => self.put(name, cors(&inside, findings)),
            _ => self.put(name, edits(&inside, findings)),
        }
    }

    fn mirror<'n>(
        &mut self,
        item: &Item<'n>,
        findings: &mut Findings,
        target: &impl Fn(&Item<'n>, &mut Findings) -> Option<Ref>,
    ) {
        let mut of = item.fields(findings);
        of.skip(&["type"]);
        let inside = of.need("requestMirror", findings);
        of.end(findings);
        let Some(inside) = inside else { return };
        let mut of = inside.fields(findings);
        let backend = of.need("backendRef", findings);
        let percent = of.number("percent", findings).map(|said| said.value);
        let fraction = of.take("fraction");
        of.end(findings);
        let mut millionths = percent.unwrap_or(100).min(100) * 10_000;
        if let Some(item) = fraction {
            let mut of = item.fields(findings);
            let part = of
                .number("numerator", findings)
                .map_or(0, |said| said.value);
            let whole = of
                .number("denominator", findings)
                .map_or(100, |said| said.value);
            of.end(findings);
            millionths = (part.saturating_mul(1_000_000) / whole.max(1)).min(1_000_000);
        }
        let found = backend.and_then(|item| target(&item, findings));
        self.mirrors.extend(found.map(|found| (found, millionths)));
    }

    fn rewrite(&mut self, item: &Item<'_>, findings: &mut Findings) {
        let mut of = item.fields(findings);
        if let Some(host) = of.text("hostname", findings) {
            self.put("upstream_host", Tree::text(host.value).of(&host.spot));
        }
        if let Some(path) = of.take("path") {
            let made = path_of(&path, findings);
            let members = made.into_iter().map(|(name, tree)| (name.to_owned(), tree));
            self.put("rewrite", Tree::Map(members.collect()).of(&path.spot));
        }
        of.end(findings);
    }

    fn redirect(&mut self, item: &Item<'_>, findings: &mut Findings) {
        let mut of = item.fields(findings);
        let mut members = Vec::new();
        for (member, name) in [("scheme", "scheme"), ("hostname", "host")] {
            if let Some(said) = of.text(member, findings) {
                members.push((name.to_owned(), Tree::text(said.value).of(&said.spot)));
            }
        }
        for (member, name) in [("port", "port"), ("statusCode", "status")] {
            if let Some(said) = of.number(member, findings) {
                members.push((name.to_owned(), Tree::number(said.value).of(&said.spot)));
            }
        }
        if let Some(path) = of.take("path") {
            let made = path_of(&path, findings);
            members.extend(made.map(|(name, tree)| (name.to_owned(), tree)));
        }
        of.end(findings);
        self.is_redirect = true;
        self.put("redirect", Tree::Map(members).of(&item.spot));
    }
}

/// Which pages may read answers, as a route of our document says it.
fn cors(item: &Item<'_>, findings: &mut Findings) -> Tree {
    let mut of = item.fields(findings);
    let mut members = Vec::new();
    for (member, name) in [
        ("allowOrigins", "origins"),
        ("allowMethods", "methods"),
        ("allowHeaders", "headers"),
        ("exposeHeaders", "expose"),
    ] {
        let all = of.texts(member, findings);
        let all: Vec<Tree> = all
            .into_iter()
            .map(|said| Tree::text(said.value).of(&said.spot))
            .collect();
        if name == "origins" || !all.is_empty() {
            members.push((name.to_owned(), Tree::List(all)));
        }
    }
    let credentials = of.flag("allowCredentials", findings);
    if let Some(said) = credentials.filter(|said| said.value) {
        let yes = Tree::Plain("true".into()).of(&said.spot);
        members.push(("credentials".to_owned(), yes));
    }
    if let Some(said) = of.number("maxAge", findings) {
        let age = Tree::text(format!("{}s", said.value)).of(&said.spot);
        members.push(("max_age".to_owned(), age));
    }
    of.end(findings);
    Tree::Map(members).of(&item.spot)
}

/// What takes the place of a path, or of its beginning.
fn path_of(item: &Item<'_>, findings: &mut Findings) -> Option<(&'static str, Tree)> {
    let mut of = item.fields(findings);
    let kind = of.needed_text("type", findings);
    let whole = of.text("replaceFullPath", findings);
    let prefix = of.text("replacePrefixMatch", findings);
    of.end(findings);
    match (kind?.value.as_str(), whole, prefix) {
        ("ReplaceFullPath", Some(path), None) => {
            Some(("path", Tree::text(path.value).of(&path.spot)))
        }
        ("ReplacePrefixMatch", None, Some(prefix)) => {
            Some(("prefix", Tree::text(prefix.value).of(&prefix.spot)))
        }
        _ => {
            let hint = "write type: ReplaceFullPath and replaceFullPath, or the same of ReplacePrefixMatch";
            findings.fault(
                &item.spot,
                "says no way to replace a path that is known",
                hint,
            );
            None
        }
    }
}
