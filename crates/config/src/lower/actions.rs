//! `request_headers`, `response_headers`, `upstream_host`, `rewrite` and `redirect` of routes of plain HTTP.
//!
//! Not here: what they do (`policy::plain::actions`).

use policy::plain::Rule;
use policy::plain::actions::{Actions, FieldEdits, PathEdit, Redirect, UpstreamHost};

use crate::decode::{At, Place};
use crate::scalar::ReplacedPath;
use crate::schema::{Route, plain};

impl super::Lowering<'_> {
    /// What a route does; nothing where it says nothing of the kind.
    pub(super) fn actions(
        &mut self,
        route: &Route,
        place: &Place,
        rules: &[Rule],
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
        (actions != Actions::default()).then(|| Box::new(actions))
    }

    fn edits(&mut self, written: Option<&plain::FieldEdits>) -> FieldEdits {
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
                if edit.is_none() || !is_one {
                    let says = "replaces the beginning of a path, and the route takes several, or one with braces";
                    self.fault(place, says, "write one match.path, such as /files/*");
                }
                edit
            }
        }
    }
}
