//! `request_headers`, `response_headers`, `upstream_host`, `rewrite`, `redirect`, `mirrors` and `cors` of routes of plain HTTP.
//!
//! Not here: what they do (`policy::plain::actions`).

use policy::id::BackendId;
use policy::plain::Rule;
use policy::plain::actions::{Actions, FieldEdits, Mirror, PathEdit, Redirect, UpstreamHost};
use policy::plain::cors::{Allowed, PagePattern, Pages, RouteCors};
use policy::snapshot::Snapshot;

use super::backend::number;
use crate::decode::{At, Field, OneOrMany, Place};
use crate::scalar::{CorsName, ReplacedPath};
use crate::schema::{Route, plain};

impl super::Lowering<'_> {
    /// What a route does; nothing where it says nothing of the kind.
    pub(super) fn actions(
        &mut self,
        route: &Route,
        place: &Place,
        rules: &[Rule],
        s: &Snapshot,
    ) -> Option<Box<Actions>> {
        let mut actions = Actions {
            request: self.edits(route.request_headers.get()),
            response: self.edits(route.response_headers.get()),
            ..Actions::default()
        };
        if let Some(at) = route.upstream_host.get() {
            actions.host = match at.value.0.as_str() {
                "client" => UpstreamHost::Client,
                host => UpstreamHost::Fixed(host.into()),
            };
        }
        if let Some(written) = route.rewrite.get() {
            let place = place.below("rewrite");
            if written.path.is_absent() && written.prefix.is_absent() {
                self.fault(&place, "says nothing", "write path or prefix");
            }
            actions.path = self.edit([written.path.get(), written.prefix.get()], &place, rules);
        }
        if let Some(written) = route.redirect.get() {
            let place = place.below("redirect");
            let path = self.edit([written.path.get(), written.prefix.get()], &place, rules);
            actions.redirect = Some(Redirect {
                status: written.status.value().map_or(302, |status| status.0),
                scheme: written.scheme.value().map(|scheme| scheme.0.into()),
                host: written.host.value().map(|host| host.0.as_str().into()),
                port: written.port.value().map(|port| port.0),
                path,
            });
        }
        for (_, written) in route.mirrors.items() {
            let Some(at) = written.as_ref().and_then(|of| of.backend.get()) else {
                continue;
            };
            let share = written.as_ref().and_then(|of| of.share.value());
            let found = s.backends.iter().position(|of| *of.name == *at.value.0);
            match found.map(|index| (index, s.backends.get(index))) {
                Some((index, Some(backend))) if backend.is_plain => actions.mirrors.push(Mirror {
                    backend: BackendId(number(index)),
                    millionths: share.map_or(1_000_000, |share| share.0),
                }),
                Some(_) => self.refuse(at, "serves models", "name one that says serves: http"),
                None => self.refuse(at, "is no backend", "name one of `backends`"),
            }
        }
        if let Some(written) = route.cors.get() {
            actions.cors = self.route_cors(written, place);
        }
        (actions != Actions::default()).then(|| Box::new(actions))
    }

    /// Which pages may read a route's answers.
    fn route_cors(&mut self, written: &plain::RouteCors, place: &Place) -> Option<RouteCors> {
        let mut patterns = Vec::new();
        let mut is_any = false;
        for at in &written.origins.get()?.0 {
            let pattern = match (at.value.0.as_str(), at.value.0.split_once("://*.")) {
                ("*", _) => {
                    is_any = true;
                    continue;
                }
                (_, Some((scheme, rest))) => {
                    PagePattern::Between(format!("{scheme}://").into(), format!(".{rest}").into())
                }
                (origin, None) => PagePattern::Is(origin.into()),
            };
            match patterns.contains(&pattern) {
                true => self.twice(at),
                false => patterns.push(pattern),
            }
        }
        if is_any && !patterns.is_empty() {
            let place = place.below("cors").below("origins");
            let hint = "write it alone, or leave it out";
            self.fault(&place, "\"*\" is all of them already", hint);
        }
        let max_age = written.max_age.value().map_or(5, |span| span.0.as_secs());
        let methods = listed(&written.methods);
        Some(RouteCors {
            pages: match is_any {
                true => Pages::Any,
                false => Pages::Only(patterns),
            },
            methods: methods.unwrap_or_else(|| Allowed::These("GET, HEAD, POST".into())),
            headers: listed(&written.headers).unwrap_or_else(|| Allowed::These("".into())),
            exposed: match listed(&written.expose) {
                Some(Allowed::Any) => Some("*".into()),
                Some(Allowed::These(list)) => Some(list),
                None => None,
            },
            credentials: written.credentials.value().is_some_and(|flag| flag.0),
            max_age_s: u32::try_from(max_age).unwrap_or(u32::MAX),
        })
    }

    pub(super) fn edits(&self, written: Option<&plain::FieldEdits>) -> FieldEdits {
        let mut edits = FieldEdits::default();
        let Some(written) = written else {
            return edits;
        };
        for (of, to) in [
            (&written.set, &mut edits.set),
            (&written.add, &mut edits.add),
        ] {
            for (name, value) in of.items() {
                let Some(value) = value else { continue };
                let (name, value) = (name.value.0.as_str(), value.value.0.as_str());
                to.push((name.into(), value.into()));
            }
        }
        for at in written.remove.items() {
            edits.remove.push(at.value.0.as_str().into());
        }
        edits
    }

    fn edit(
        &mut self,
        [path, prefix]: [Option<&At<ReplacedPath>>; 2],
        place: &Place,
        rules: &[Rule],
    ) -> Option<PathEdit> {
        match (path, prefix) {
            (None, None) => None,
            (Some(path), None) => {
                let path = if path.value.0.is_empty() {
                    "/"
                } else {
                    &path.value.0
                };
                Some(PathEdit::Whole(path.into()))
            }
            (Some(_), Some(_)) => {
                self.fault(place, "says path and prefix", "write one of them");
                None
            }
            (None, Some(prefix)) => {
                let first = rules.first().map(|rule| &rule.path);
                let is_one = rules.iter().all(|rule| Some(&rule.path) == first);
                let edit = first.and_then(|path| PathEdit::prefix(path, &prefix.value.0));
                // A path that is faulty has its fault.
                if !rules.is_empty() && (edit.is_none() || !is_one) {
                    let says = "replaces the beginning of a path, and the route takes several, or one with braces";
                    self.fault(place, says, "write one match.path, such as /files/*");
                }
                edit
            }
        }
    }
}

/// What is listed, as browsers are told it.
fn listed(written: &Field<OneOrMany<CorsName>>) -> Option<Allowed> {
    let names: Vec<&str> = written
        .get()?
        .0
        .iter()
        .map(|at| at.value.0.as_str())
        .collect();
    Some(match names.contains(&"*") {
        true => Allowed::Any,
        false => Allowed::These(names.join(", ").into()),
    })
}
