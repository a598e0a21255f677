//! People who log in to the admin endpoint.
//!
//! Not here: which pages they see there (`admin`), what their claims give (`identity::roles`).

use std::net::IpAddr;
use std::sync::Arc;

use admin::People;
use config::AdminLogin;
use identity::roles::RoleMapping;
use policy::admin::Person;
use policy::caller::Later;
use policy::login::{CookieNames, Login, LoginReply};

use super::{Listener, Logins, check};
use crate::services::Moment;

/// Those of one provider.
#[derive(Debug)]
struct Served {
    logins: Logins,
    mapping: RoleMapping,
    origin: String,
    callback: String,
}

/// Those whom the document names; `None` where nothing is asked of anybody, and what is written was only looked at.
///
/// # Errors
/// In words, with the field that is wrong.
pub(crate) fn people(
    written: &AdminLogin,
    moment: Moment<'_>,
) -> Result<Option<Arc<dyn People>>, String> {
    let AdminLogin { client, .. } = written;
    let at = |fault| format!("admin.login.{fault}");
    let Some(services) = moment.services() else {
        check(Listener::Admin, client).map_err(at)?;
        return Ok(None);
    };
    let (origin, callback) = client.origin_and_path();
    Ok(Some(Arc::new(Served {
        logins: Logins::of(services, Listener::Admin, client).map_err(at)?,
        mapping: RoleMapping {
            user: written.user.clone(),
            claim: written.roles_claim.clone(),
            roles: written.roles.clone(),
        },
        origin: origin.to_owned(),
        callback: callback.to_owned(),
    })))
}

impl Login for Served {
    fn cookies(&self) -> &CookieNames {
        self.logins.cookies()
    }

    fn begin(&self, query: &[u8]) -> Later<LoginReply> {
        self.logins.begin(query)
    }

    fn finish(&self, query: &[u8], state: Option<&[u8]>, from: IpAddr) -> Later<LoginReply> {
        self.logins.finish(query, state, from)
    }

    fn end(&self) -> Later<LoginReply> {
        self.logins.end()
    }
}

impl People for Served {
    fn origin(&self) -> &str {
        &self.origin
    }

    fn callback(&self) -> &str {
        &self.callback
    }

    fn who(&self, session: &[u8]) -> Result<Person, &'static str> {
        let session = self.logins.who(session).map_err(|no| no.reason())?;
        Ok(self.mapping.person(&session.claims))
    }
}
