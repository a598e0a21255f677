//! Sources of identities that stand beside others: which of them could never decide.
//!
//! Not here: what each says for itself ([`super`]).

use crate::decode::Place;
use crate::schema::identity::IdentitySource;

impl super::super::Lowering<'_> {
    /// Faults and warnings of a source after those before it.
    pub(super) fn together(
        &mut self,
        place: &Place,
        source: &IdentitySource,
        before: &[(Place, Option<IdentitySource>)],
    ) {
        let any = |is: fn(&IdentitySource) -> bool| {
            let mut before = before.iter().filter_map(|(_, source)| source.as_ref());
            before.any(is)
        };
        if !source.login.is_absent() && any(|before| !before.login.is_absent()) {
            let says = "is a second `login`, and a browser has one session";
            let hint = "keep one, at a provider that knows all of these people";
            self.fault(place, says, hint);
        }
        if !source.keys.is_absent() && any(|before| !before.keys.is_absent()) {
            let says = "is a second `keys`, and a key that the first does not know is refused";
            self.fault(place, says, "keep all keys in one file");
        }
        let takes_all = |before: &IdentitySource| {
            !before.introspection.is_absent() || !before.token_review.is_absent()
        };
        let takes_some =
            !source.keys.is_absent() || !source.static_keys.is_absent() || !source.jwt.is_absent();
        if (takes_some || takes_all(source)) && any(takes_all) {
            let says = "no token comes here: a source before it asks about every one";
            self.warn(place, says, "put this source before that");
        }
        let of_user =
            |source: &IdentitySource| source.user_header.value().map(|name| name.0.clone());
        let ours = of_user(source);
        let mut others = before
            .iter()
            .filter_map(|(_, before)| of_user(before.as_ref()?));
        if ours.is_some() && others.any(|other| Some(other) != ours) {
            let says = "names another header of users than a source before it";
            self.fault(place, says, "use one for all");
        }
        let of_workload = source
            .header
            .value()
            .map_or("x-workload-app", |name| &name.0);
        if ours.as_deref() == Some(of_workload) {
            let says = "names workload and user by one header";
            self.fault(place, says, "use two");
        }
        let header = |source: &IdentitySource| source.header.value().map(|name| name.0.clone());
        let mut headers = before
            .iter()
            .filter_map(|(_, before)| header(before.as_ref()?));
        if let (Some(ours), Some(first)) = (header(source), headers.next())
            && ours != first
        {
            let says = format!("names another header than {first}, which a source before it does");
            self.fault(place, says, "use one name of the header for all");
        }
    }
}
