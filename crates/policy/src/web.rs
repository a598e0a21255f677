//! What a web page may ask: the host that a request names, and the origin of the page behind it.
//!
//! A browser sends a page's requests from where its user sits, so a gate on loopback is reached by every
//! page that a developer opens. Two facts of the Fetch standard and of DNS tell such requests apart: a
//! request that a page can give a body to, or read the answer of, carries `Origin`; and a page whose name
//! was pointed at this machine (DNS rebinding) names that host in `Host`.
//! Invariant: a request that fails here was not routed and nothing was spent on it; the origin `null`
//! stands for no page that can be told from another and is never allowed.
//! Not here: writing the headers of an answer (`proxy`), the admin endpoint itself (`admin`).

use std::net::IpAddr;

use wire::head::{Known, Method, RequestHead};

use crate::refusal::Refusal;

/// The hosts and the origins that are answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Web {
    /// Hosts that a request may name.
    pub hosts: Hosts,
    /// Origins of pages that may ask.
    pub origins: Origins,
}

/// Hosts that a request may name, whatever the port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Hosts {
    /// Every host.
    #[default]
    Any,
    /// `localhost`, the loopback addresses, and these names, in lower case; `*.` before one stands for each name below it.
    Loopback(Vec<Box<str>>),
    /// These names and addresses, in lower case; `*.` before one stands for each name below it.
    Only(Vec<Box<str>>),
}

/// Origins of pages that may ask.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Origins {
    /// None: a request of a page is refused.
    #[default]
    None,
    /// Every one but `null`.
    Any,
    /// These, as browsers write them.
    Only(Vec<Box<str>>),
}

/// Who sent a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender<'h> {
    /// Not a web page.
    Client,
    /// A page of this origin, which is allowed.
    Page(&'h [u8]),
    /// A browser that asks whether a page of this origin may send a request (a CORS preflight).
    Preflight(&'h [u8]),
}

/// Who sent this request, if the host that it names and the page that it came from are allowed. Where people log in, the
/// gate's own pages are, and so is a person who follows a link: the provider sends them back so.
///
/// # Errors
/// [`Refusal::HostNotAllowed`], [`Refusal::OriginNotAllowed`].
pub fn sender<'h>(
    head: &'h RequestHead,
    web: &Web,
    own: Option<&str>,
) -> Result<Sender<'h>, Refusal> {
    if !web.hosts.allows(head.authority()) {
        return Err(Refusal::HostNotAllowed);
    }
    let origin = head
        .fields
        .only(Known::Origin)
        .map_err(|_| Refusal::OriginNotAllowed)?;
    let Some(origin) = origin else {
        let is_led_here = own.is_some() && is_navigation(head);
        return if is_from_another_site(head) && !is_led_here {
            Err(Refusal::OriginNotAllowed)
        } else {
            Ok(Sender::Client)
        };
    };
    let is_own = own.is_some_and(|own| own.as_bytes() == origin) || web.is_same(origin, head);
    if !is_own && !web.origins.allows(origin) {
        return Err(Refusal::OriginNotAllowed);
    }
    let mut method = head.fields.by_name(b"access-control-request-method");
    if head.method == Method::Options && method.next().is_some() {
        return Ok(Sender::Preflight(origin));
    }
    Ok(Sender::Page(origin))
}

impl Web {
    /// Whether the page is of the very host and port that it asks. Where every host is answered a name that was pointed here would be,
    /// too, and nothing is.
    fn is_same(&self, origin: &[u8], head: &RequestHead) -> bool {
        let schemes = [&b"http://"[..], b"https://"];
        let mut of = schemes
            .iter()
            .filter_map(|scheme| origin.strip_prefix(*scheme));
        self.hosts != Hosts::Any && of.any(|of| head.authority().is_some_and(|asked| asked == of))
    }
}

/// Whether a browser says that a page of another site sent this and will not read the answer, as an
/// `<img>` does: such a request has no `Origin`, and only these two methods can be sent so.
fn is_from_another_site(head: &RequestHead) -> bool {
    matches!(head.method, Method::Get | Method::Head)
        && head
            .fields
            .by_name(b"sec-fetch-site")
            .any(|site| !matches!(site, b"none" | b"same-origin"))
}

/// Whether what a browser sends along by itself, such as the cookie of a session, may count: the request is of a page
/// that is named as allowed, of the gate's own, or of the person alone. A browser says so; what does not is refused.
#[must_use]
pub fn may_bring_session(head: &RequestHead, web: &Web, own: &str) -> bool {
    match head.fields.only(Known::Origin) {
        Ok(Some(origin)) => {
            // A `*` is for pages that bring a credential of their own.
            let is_named = matches!(&web.origins, Origins::Only(_)) && web.origins.allows(origin);
            is_named || own.as_bytes() == origin
        }
        Ok(None) => {
            let mut sites = head.fields.by_name(b"sec-fetch-site");
            let site = sites.next().filter(|_| sites.next().is_none());
            matches!(site, Some(b"none" | b"same-origin")) || is_navigation(head)
        }
        Err(_) => false,
    }
}

/// Whether a browser says that a person is led here, and sees what comes of it as a page of its own: no other page can
/// read that.
fn is_navigation(head: &RequestHead) -> bool {
    let says = |name: &[u8], word: &[u8]| {
        let mut values = head.fields.by_name(name);
        values.next() == Some(word) && values.next().is_none()
    };
    head.method == Method::Get
        && says(b"sec-fetch-mode", b"navigate")
        && says(b"sec-fetch-dest", b"document")
}

/// Whether a person waits for a page, and not a program for an answer.
pub(crate) fn is_for_a_person(head: &RequestHead) -> bool {
    let accepts_page = || {
        let mut accepted = head.fields.of(Known::Accept);
        accepted.any(|line| {
            let mut kinds = line.split(|byte| matches!(byte, b',' | b';'));
            kinds.any(|kind| kind.trim_ascii().eq_ignore_ascii_case(b"text/html"))
        })
    };
    let mut modes = head.fields.by_name(b"sec-fetch-mode");
    head.method == Method::Get
        && modes
            .next()
            .map_or_else(accepts_page, |mode| mode == b"navigate")
}

impl Hosts {
    /// Whether a request may name this host, a name or an address with an optional port. HTTP/1.0 may
    /// leave it out; browsers never do.
    #[must_use]
    pub fn allows(&self, host: Option<&[u8]>) -> bool {
        let named = |names: &[Box<str>], host: &[u8]| names.iter().any(|name| is_named(host, name));
        let is_one = |with: &dyn Fn(&[u8]) -> bool| {
            host.is_none_or(|host| without_port(host).is_some_and(with))
        };
        match self {
            Self::Any => true,
            Self::Loopback(_) if host.is_some_and(is_plain_loopback) => true,
            Self::Loopback(names) => is_one(&|host| is_loopback(host) || named(names, host)),
            Self::Only(names) => is_one(&|host| named(names, host)),
        }
    }
}

/// Whether a host goes by a name.
fn is_named(host: &[u8], name: &str) -> bool {
    let Some(below) = name.strip_prefix('*') else {
        return host.eq_ignore_ascii_case(name.as_bytes());
    };
    let own = host.len().checked_sub(below.len());
    let split = own.and_then(|own| host.split_at_checked(own));
    split.is_some_and(|(own, rest)| !own.is_empty() && rest.eq_ignore_ascii_case(below.as_bytes()))
}

/// Whether it is the loopback address that nearly all clients of this machine name, with a port or without.
#[inline]
fn is_plain_loopback(host: &[u8]) -> bool {
    match host.strip_prefix(b"127.0.0.1") {
        Some([b':', port @ ..]) => is_port(port),
        Some(rest) => rest.is_empty(),
        None => false,
    }
}

fn is_port(port: &[u8]) -> bool {
    port.len() <= 5 && port.iter().all(u8::is_ascii_digit)
}

/// The name or the address of `host[:port]`, without brackets; none where that is not what it is, to its last byte.
pub(crate) fn without_port(host: &[u8]) -> Option<&[u8]> {
    let at = |end: u8| host.iter().position(|b| *b == end);
    let (name, rest) = match host.strip_prefix(b"[") {
        Some(inside) => {
            let (name, rest) = inside.split_at_checked(at(b']')?.checked_sub(1)?)?;
            // Only addresses of IPv6 stand in brackets.
            std::str::from_utf8(name)
                .ok()?
                .parse::<std::net::Ipv6Addr>()
                .ok()?;
            (name, rest.strip_prefix(b"]")?)
        }
        None => match host.iter().rposition(|b| *b == b':') {
            // Its port is short, and a name has no colon.
            Some(colon) if !host.get(..colon)?.contains(&b':') => host.split_at_checked(colon)?,
            Some(_) => return None,
            None => (host, &b""[..]),
        },
    };
    match rest.strip_prefix(b":") {
        Some(port) => is_port(port).then_some(name),
        None => rest.is_empty().then_some(name),
    }
}

/// Whether a host is this machine's loopback, by a name or an address that no DNS server answers for.
fn is_loopback(host: &[u8]) -> bool {
    if host == b"127.0.0.1" || host.eq_ignore_ascii_case(b"localhost") {
        return true;
    }
    let host = std::str::from_utf8(host).ok();
    let address = host.and_then(|host| host.parse::<IpAddr>().ok());
    address.is_some_and(|address| address.to_canonical().is_loopback())
}

impl Origins {
    /// Whether pages of this origin may ask.
    #[must_use]
    pub fn allows(&self, origin: &[u8]) -> bool {
        match self {
            Self::None => false,
            Self::Any => origin != b"null",
            Self::Only(origins) => origins.iter().any(|o| o.as_bytes() == origin),
        }
    }
}

#[cfg(test)]
mod tests;
