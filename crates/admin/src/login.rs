//! Logging in to the endpoint with a browser, and the page that people begin at.
//!
//! Invariant: whatever comes from elsewhere is text on a page; a page runs no script, is in no frame and is not kept.
//! Not here: the flow and what is sealed (`People`), whether a session counts (`access`).

use std::net::IpAddr;

use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Bytes;
use policy::admin::Role;
use policy::login::{LOGIN, LOGOUT, LoginReply, back_to};

use crate::access::{Principal, check_own, cookie_of};
use crate::gateway::{Gateway, People};
use crate::html::{self, escaped};
use crate::reply::{Refusal, Reply, method_not_allowed, no_store};

/// Of the endpoint's own pages.
const STYLE: &str =
    "body { font: 16px sans-serif; max-width: 40em; margin: 2em auto; padding: 0 1em }";

/// What pages may load: nothing but the style in them.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'";

/// The answer to a request of this address that is of a login; `None` for every other one.
pub(crate) async fn step<B>(
    request: &Request<B>,
    people: &dyn People,
    from: IpAddr,
) -> Result<Option<Reply>, Refusal> {
    let path = request.uri().path();
    let method = match path {
        LOGIN => Method::GET,
        LOGOUT => Method::POST,
        path if path == people.callback() => Method::GET,
        _ => return Ok(None),
    };
    if *request.method() != method {
        return Err(method_not_allowed(if path == LOGOUT {
            "POST"
        } else {
            "GET"
        }));
    }
    let query = request.uri().query().unwrap_or_default();
    let reply = match path {
        LOGIN if !is_at_origin(request, people) => {
            // The cookies of a login are of the host that the provider sends browsers back to. A person follows the
            // link: a redirect would have no end where a proxy names another host than the browser did.
            return Ok(Some(elsewhere(people)));
        }
        LOGIN => people.begin(query.as_bytes()).await,
        LOGOUT => {
            check_own(request, people)?;
            people.end().await
        }
        _ => {
            let state = cookie_of(request.headers(), &people.cookies().state);
            people.finish(query.as_bytes(), state, from).await
        }
    };
    tell(&reply);
    Ok(Some(answer(reply)))
}

/// Whether a request names the host that browsers come back to.
fn is_at_origin<B>(request: &Request<B>, people: &dyn People) -> bool {
    let host = request.headers().get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok());
    let Some((scheme, own)) = people.origin().split_once("://") else {
        return false;
    };
    let port = if scheme == "https" { ":443" } else { ":80" };
    let bare = |host: &str| {
        let host = host.to_ascii_lowercase();
        host.strip_suffix(port).map(str::to_owned).unwrap_or(host)
    };
    host.is_some_and(|host| bare(host) == bare(own))
}

/// Tells a browser that came by another name where people log in.
fn elsewhere(people: &dyn People) -> Reply {
    let there = escaped(people.origin());
    let markup = format!(
        "<p>People log in to this gateway at <a href=\"{there}{LOGIN}\">{there}</a>. Where that is this page, a proxy in \
         front of the gateway does not pass the host on.</p>"
    );
    let page = html::page("Log in at another address", STYLE, &markup);
    sent_page(StatusCode::MISDIRECTED_REQUEST, page)
}

/// Sends a browser to log in, and back to this page then.
pub(crate) fn instead<B>(request: &Request<B>, people: &dyn People) -> Reply {
    let target = request.uri().path_and_query();
    let target = target.map_or("/", |target| target.as_str());
    sent(&format!("{}{}", people.origin(), back_to(target)))
}

fn sent(there: &str) -> Reply {
    let mut reply = sent_page(StatusCode::FOUND, String::new());
    if let Ok(there) = HeaderValue::from_str(there) {
        reply.headers_mut().insert(header::LOCATION, there);
    }
    reply
}

fn tell(reply: &LoginReply) {
    let (code, user) = (reply.code, reply.user.as_deref().unwrap_or_default());
    match reply.reason.as_deref() {
        None if !user.is_empty() => tracing::info!(code, user, "login to the admin endpoint"),
        // Anybody can begin one, and end a session that he does not have.
        None => tracing::debug!(code, "login to the admin endpoint"),
        Some(reason) => tracing::warn!(code, reason, "a login to the admin endpoint was refused"),
    }
}

fn answer(reply: LoginReply) -> Reply {
    let status = StatusCode::from_u16(reply.status.code());
    let mut answer = sent_page(
        status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        reply.page,
    );
    let headers = answer.headers_mut();
    if let Some(Ok(there)) = reply.location.map(HeaderValue::try_from) {
        headers.insert(header::LOCATION, there);
    }
    for cookie in &reply.cookies {
        if let Ok(mut cookie) = HeaderValue::from_bytes(cookie.expose()) {
            cookie.set_sensitive(true);
            headers.append(header::SET_COOKIE, cookie);
        }
    }
    answer
}

fn sent_page(status: StatusCode, page: String) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(page)));
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        // Without any, browsers send the form that logs out with `Origin: null`.
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    no_store(&mut reply);
    reply
}

/// The page of who is logged in.
pub(crate) fn home(caller: &Principal, gateway: &impl Gateway) -> Reply {
    let has_ledger = gateway.ledger().is_some();
    let mut links = String::new();
    for (role, path, what) in [
        (Role::Read, "/metrics", "metrics, as Prometheus reads them"),
        (Role::Read, "/config", "the configuration in force"),
        (Role::Read, "/api/v1/health", "how the gate is"),
        (
            Role::Read,
            "/api/v1/limits",
            "limits, and what is left of them",
        ),
        (
            Role::Read,
            "/api/v1/budgets",
            "budgets, and what is left of them",
        ),
        (Role::Read, "/ledger", "the ledger"),
        (Role::Keys, "/api/v1/keys", "keys"),
    ] {
        if caller.roles.has(role) && (path != "/ledger" || has_ledger) {
            links.push_str(&format!("<li><a href=\"{path}\">{path}</a> {what}</li>\n"));
        }
    }
    links.push_str(
        "<li><a href=\"/api/v1\">/api/v1</a> everything that programs may ask for</li>\n",
    );
    let roles = caller.roles.names().collect::<Vec<_>>().join(", ");
    let says = format!("<p>Your roles: {roles}</p>\n<ul>\n{links}</ul>");
    sent_page(StatusCode::OK, page(caller, "Tollgate", &says))
}

/// The page of somebody to whom nothing is open.
pub(crate) fn no_role(caller: &Principal) -> Reply {
    let says = "<p>You have no role here: nothing that your provider says of you is among <code>admin.login.roles</code>.</p>";
    sent_page(
        StatusCode::FORBIDDEN,
        page(caller, "Nothing is open to you", says),
    )
}

fn page(caller: &Principal, title: &str, says: &str) -> String {
    let name = escaped(caller.name.as_deref().unwrap_or_default());
    let markup = format!(
        "<p>You are logged in as <b>{name}</b>.</p>\n{says}\n\
         <form method=\"post\" action=\"{LOGOUT}\"><button>Log out</button></form>"
    );
    html::page(title, STYLE, &markup)
}
