//! Routes that take calls whatever a header says, which one that becomes the header of callers would keep from them.
//!
//! Who says a value of that header that nobody names is refused, also by a route that takes everybody.
//! Invariant: in a cluster no route or limit of one namespace refuses whom an older route of another takes.
//! Not here: which header names callers (`callers`).

use super::headers::Named;
use crate::matching::HeaderMatch;
use crate::object::Object;
use crate::plain::PlainRoute;
use crate::route::ModelRoute;
use crate::tools::ToolRoute;

/// A route, and what its matches say of headers.
pub(super) struct Taking<'t> {
    object: &'t Object<'t>,
    matches: Vec<&'t [HeaderMatch]>,
}

impl Taking<'_> {
    /// Whether it takes calls whatever a header says.
    fn takes_whatever(&self, header: &str) -> bool {
        let mut matches = self.matches.iter();
        matches.any(|headers| !headers.iter().any(|other| other.name == header))
    }
}

/// All routes.
pub(super) fn taking<'t>(
    models: &'t [ModelRoute<'_, '_>],
    plain: &'t [PlainRoute<'_, '_>],
    tools: &'t [ToolRoute<'_, '_>],
) -> Vec<Taking<'t>> {
    let of_models = models.iter().map(|route| {
        let matches = route.rules.iter().flat_map(|rule| &rule.matches);
        Taking {
            object: route.object,
            matches: matches.map(|(_, headers)| headers.as_slice()).collect(),
        }
    });
    let of_plain = plain.iter().map(|route| {
        let matches = route.rules.iter().flat_map(|rule| &rule.matches);
        Taking {
            object: route.object,
            matches: matches.map(|one| one.headers.as_slice()).collect(),
        }
    });
    let of_tools = tools.iter().map(|route| Taking {
        object: route.object,
        matches: vec![route.headers.as_slice()],
    });
    of_models.chain(of_plain).chain(of_tools).collect()
}

/// The older route of another namespace that takes calls whatever the header says.
pub(super) fn older<'t>(named: &Named<'_>, all: &'t [Taking<'t>]) -> Option<&'t Object<'t>> {
    let is_elsewhere = |route: &&Taking<'_>| route.object.namespace != named.namespace;
    let elsewhere = all.iter().filter(is_elsewhere);
    let mut older = elsewhere.filter(|route| route.object.age() < named.age);
    let route = older.find(|route| route.takes_whatever(&named.header.name));
    route.map(|route| route.object)
}
