//! `cors` of a route of plain HTTP: which pages may read its answers, and what they may send.
//!
//! Invariant: a page that is not named is told nothing, and the origin `null` stands for no page; cookies are allowed to a page that is
//! told by its own name alone.
//! Not here: pages of the whole gate (`web`), which route takes a call (`super`).

use wire::head::{Known, Method, RequestHead};

/// What a route says of pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteCors {
    /// Those that may read its answers.
    pub pages: Pages,
    /// The methods that they may send.
    pub methods: Allowed,
    /// The fields that they may send.
    pub headers: Allowed,
    /// The fields of an answer that they may read, as a list.
    pub exposed: Option<Box<str>>,
    /// Whether they may have the browser send what it keeps, such as cookies.
    pub credentials: bool,
    /// Seconds for which a browser remembers what it was told.
    pub max_age_s: u32,
}

/// Pages, by their origins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pages {
    /// Every one but `null`.
    Any,
    /// Those of one of these.
    Only(Vec<PagePattern>),
}

/// An origin, or what is before and behind any names in it: `https://*.example`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PagePattern {
    /// This one.
    Is(Box<str>),
    /// One that begins and ends so, with something between.
    Between(Box<str>, Box<str>),
}

/// What may be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    /// Whatever a page asks for.
    Any,
    /// These, as a list.
    These(Box<str>),
}

impl PagePattern {
    fn takes(&self, origin: &[u8]) -> bool {
        match self {
            Self::Is(own) => own.as_bytes() == origin,
            Self::Between(start, end) => {
                let rest = origin.strip_prefix(start.as_bytes());
                let rest = rest.and_then(|rest| rest.strip_suffix(end.as_bytes()));
                rest.is_some_and(|rest| !rest.is_empty())
            }
        }
    }
}

impl RouteCors {
    /// The origin of the page that a request is of, where it may read the answer.
    #[must_use]
    pub fn page<'h>(&self, head: &'h RequestHead) -> Option<&'h [u8]> {
        let origin = head.fields.only(Known::Origin).ok().flatten()?;
        let is = match &self.pages {
            Pages::Any => origin != b"null",
            Pages::Only(patterns) => patterns.iter().any(|pattern| pattern.takes(origin)),
        };
        is.then_some(origin)
    }

    /// The fields of an answer to a page that may read it.
    pub fn answer(&self, page: &str, mut put: impl FnMut(&[u8], &[u8])) {
        let is_any = self.pages == Pages::Any && !self.credentials;
        let page = if is_any { "*" } else { page };
        put(b"access-control-allow-origin", page.as_bytes());
        if !is_any {
            put(b"vary", b"origin");
        }
        if self.credentials {
            put(b"access-control-allow-credentials", b"true");
        }
        if let Some(exposed) = &self.exposed {
            put(b"access-control-expose-headers", exposed.as_bytes());
        }
    }

    /// The fields by which a page that may read answers is told what it may send; `head` is that of its question.
    pub fn preflight(&self, page: &str, head: &RequestHead, mut put: impl FnMut(&[u8], &[u8])) {
        self.answer(page, &mut put);
        let members: [(&[u8], &[u8], &Allowed); 2] = [
            (
                b"access-control-request-method",
                b"access-control-allow-methods",
                &self.methods,
            ),
            (
                b"access-control-request-headers",
                b"access-control-allow-headers",
                &self.headers,
            ),
        ];
        for (asked, told, allowed) in members {
            match allowed {
                // Named one by one: a `*` stands for nothing where cookies are sent, nor for `authorization`.
                Allowed::Any => head
                    .fields
                    .by_name(asked)
                    .for_each(|value| put(told, value)),
                Allowed::These(list) if list.is_empty() => {}
                Allowed::These(list) => put(told, list.as_bytes()),
            }
        }
        let mut digits = [0; 10];
        put(
            b"access-control-max-age",
            decimal(self.max_age_s, &mut digits),
        );
        put(
            b"vary",
            b"access-control-request-method, access-control-request-headers",
        );
    }
}

/// A number's digits.
fn decimal(number: u32, room: &mut [u8; 10]) -> &[u8] {
    let (mut rest, mut first) = (number, room.len());
    for (at, digit) in room.iter_mut().enumerate().rev() {
        *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        (rest, first) = (rest / 10, at);
        if rest == 0 {
            break;
        }
    }
    room.get(first..).unwrap_or_default()
}

/// Whether a browser asks what a page may send.
#[must_use]
pub fn is_preflight(head: &RequestHead) -> bool {
    let mut asked = head.fields.by_name(b"access-control-request-method");
    head.method == Method::Options && asked.next().is_some()
}

#[cfg(test)]
mod tests {
    //! Pages by their names, and what each is told.

    use super::*;

    fn head(fields: &str) -> RequestHead {
        let text = format!("OPTIONS /files HTTP/1.1\r\nhost: a\r\n{fields}\r\n");
        let mut head = RequestHead::new();
        let limits = wire::http1::Limits::default();
        let read = wire::http1::parse_request(text.as_bytes(), &limits, &mut head);
        assert!(read.is_ok(), "{text}");
        head
    }

    fn cors(pages: Pages) -> RouteCors {
        RouteCors {
            pages,
            methods: Allowed::These("GET, PUT".into()),
            headers: Allowed::Any,
            exposed: None,
            credentials: false,
            max_age_s: 600,
        }
    }

    fn told(cors: &RouteCors, fields: &str) -> Option<Vec<String>> {
        let head = head(fields);
        let page = String::from_utf8_lossy(cors.page(&head)?).into_owned();
        let mut lines = Vec::new();
        cors.preflight(&page, &head, |name, value| {
            let text = |of| String::from_utf8_lossy(of).into_owned();
            lines.push(format!("{}: {}", text(name), text(value)));
        });
        Some(lines)
    }

    #[test]
    fn a_page_is_known_by_its_whole_origin_and_by_names_before_its_end() {
        let patterns = vec![
            PagePattern::Is("https://app.example".into()),
            PagePattern::Between("https://".into(), ".corp.example".into()),
        ];
        let cors = cors(Pages::Only(patterns));
        let is = |origin: &str| cors.page(&head(&format!("origin: {origin}\r\n"))).is_some();
        assert!(is("https://app.example") && is("https://a.b.corp.example"));
        for other in [
            "http://app.example",
            "https://.corp.example",
            "https://corp.example",
            "https://app.example.evil",
            "null",
        ] {
            assert!(!is(other), "{other}");
        }
        let twice = head("origin: https://app.example\r\norigin: https://app.example\r\n");
        assert!(cors.page(&twice).is_none() && cors.page(&head("")).is_none());
    }

    #[test]
    fn a_page_is_told_what_it_may_send_and_cookies_are_for_pages_by_name() {
        let asked = "origin: https://a.example\r\naccess-control-request-method: PUT\r\naccess-control-request-headers: x-a, x-b\r\n";
        let lines = told(&cors(Pages::Any), asked).expect("it may");
        let expected = [
            "access-control-allow-origin: *",
            "access-control-allow-methods: GET, PUT",
            "access-control-allow-headers: x-a, x-b",
            "access-control-max-age: 600",
            "vary: access-control-request-method, access-control-request-headers",
        ];
        assert_eq!(lines, expected);
        let with_cookies = RouteCors {
            credentials: true,
            methods: Allowed::Any,
            exposed: Some("x-c".into()),
            max_age_s: 0,
            ..cors(Pages::Any)
        };
        let lines = told(&with_cookies, asked).expect("it may");
        let expected = [
            "access-control-allow-origin: https://a.example",
            "vary: origin",
            "access-control-allow-credentials: true",
            "access-control-expose-headers: x-c",
            "access-control-allow-methods: PUT",
            "access-control-allow-headers: x-a, x-b",
            "access-control-max-age: 0",
        ];
        assert_eq!(lines[..7], expected);
        assert_eq!(told(&cors(Pages::Any), "origin: null\r\n"), None);
        assert!(is_preflight(&head(asked)) && !is_preflight(&head("origin: https://a\r\n")));
    }
}
