//! What an attempt is made of: axes, each with the weight of its values.
//!
//! Invariant: who makes an attempt notes what it brings while it writes it; nothing is read back out of the text.
//! Not here: what must come of it (`expected`), how it is sent (`client`).

use testing::Draw;

use super::credential::Credential;

/// What is chosen by a seed.
pub(super) struct Chance(Draw);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(Draw::new(seed))
    }

    fn below(&mut self, end: usize) -> usize {
        self.0.below(end)
    }

    pub(super) fn of<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// One of these, as often as its weight says.
    fn weighted<T: Copy>(&mut self, of: &[(usize, T)]) -> T {
        let mut at = self.below(of.iter().map(|(weight, _)| weight).sum());
        for (weight, value) in of {
            match at.checked_sub(*weight) {
                Some(rest) => at = rest,
                None => return *value,
            }
        }
        unreachable!("it is below the sum")
    }
}

/// A version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    H1,
    H2,
}

/// Where a credential is put, and with which weight; whether it is read there.
const PLACES: &[(usize, (&str, bool))] = &[
    (16, ("authorization", true)),
    (6, ("x-api-key", true)),
    (2, ("api-key", true)),
    (2, ("x-goog-api-key", true)),
    (1, ("proxy-authorization", false)),
    (1, ("x-authorization", false)),
    (1, ("x_api_key", false)),
    (1, ("x-auth-token", false)),
    (1, ("cookie", false)),
];

/// How it is written there. A blank at the end is none of the value over HTTP/1.1, and malformed over HTTP/2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Read,
    Unread,
    List,
    Padded,
}

const SCHEMES: &[(usize, (&str, Reading))] = &[
    (20, ("Bearer {}", Reading::Read)),
    (2, ("bearer {}", Reading::Read)),
    (1, ("BEARER {}", Reading::Read)),
    (1, ("bEaReR {}", Reading::Read)),
    (1, ("Bearer {} ", Reading::Padded)),
    (1, ("{}", Reading::Unread)),
    (1, ("Basic {}", Reading::Unread)),
    (1, ("Token {}", Reading::Unread)),
    (1, ("Bearer{}", Reading::Unread)),
    (1, ("Bearer  {}", Reading::Unread)),
    (1, ("Bearer\t{}", Reading::Unread)),
    (1, ("Bearer {} {}", Reading::Unread)),
    (1, ("Bearer {},{}", Reading::List)),
    (1, ("Bearer {}, Bearer {}", Reading::List)),
];

const BARE: &[(usize, (&str, Reading))] = &[
    (20, ("{}", Reading::Read)),
    (1, ("{} ", Reading::Padded)),
    (1, ("Bearer {}", Reading::Unread)),
    (1, ("{} {}", Reading::Unread)),
    (1, ("{},{}", Reading::List)),
];

/// Identity headers: name, value, and what the value names where it is the header that counts.
type Header = (&'static str, &'static str, Option<&'static str>);
const HEADERS: &[(usize, Option<Header>)] = &[
    (18, None),
    (2, Some(("x-workload-app", "chat", Some("chat")))),
    (2, Some(("x-workload-app", "ci", Some("ci")))),
    (1, Some(("x-workload-app", "nobody", Some("nobody")))),
    (1, Some(("x-workload-app", "CHAT", Some("CHAT")))),
    (1, Some(("x-workload_app", "ci", None))),
    (1, Some(("x-workload-app", "chat, ci", Some(LIST)))),
];
const LIST: &str = "a list";

/// Paths, and whether they are the call's.
const PATHS: &[(usize, (&str, bool))] = &[
    (70, ("/v1/chat/completions", true)),
    (1, ("//v1/chat/completions", false)),
    (1, ("/v1//chat/completions", false)),
    (1, ("/V1/chat/completions", false)),
    (1, ("/v1/chat/%63ompletions", false)),
    (1, ("/%76%31/chat/completions", false)),
    (1, ("/v1%2Fchat/completions", false)),
    (1, ("/v1/chat/completions;x", false)),
    (1, ("/v1/chat/completions%00", false)),
    (1, ("/v1/./chat/completions", false)),
    (1, ("/v1/x/../chat/completions", false)),
    (1, ("/v1/x/%2e%2e/chat/completions", false)),
    (1, ("/v1\\chat\\completions", false)),
    (1, ("/v1/chat/completions#x", false)),
    (1, ("v1/chat/completions", false)),
];

/// Queries, and whether they hold a key.
const QUERIES: &[(usize, (&str, bool))] = &[
    (50, ("", false)),
    (2, ("?beta=true", false)),
    (1, ("?key=abc", true)),
    (1, ("?api-key=abc", true)),
    (1, ("?api%2Dkey=abc", true)),
    (1, ("?x=1&access_token=abc", true)),
];

/// What else is odd about a message; the second list is malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Plain,
    /// A credential and an identity in trailers, where they count for nothing.
    Trailers,
    /// The header block in two frames.
    Continuation,
    /// `host` beside `:authority`, the same.
    HostBeside,
    /// `host` in place of `:authority`.
    HostAlone,
    /// Cookies in two lines.
    CookieCrumbs,
    // Malformed.
    /// The last line goes on in a line of its own.
    Folded,
    /// A blank before the colon of the first credential's line.
    BlankBeforeColon,
    OtherHost,
    PathTwice,
    PseudoLast,
    /// `:authorization`.
    UnknownPseudo,
}

impl Framing {
    const H1: &[(usize, Self)] = &[
        (60, Self::Plain),
        (2, Self::Trailers),
        (1, Self::CookieCrumbs),
        (1, Self::Folded),
        (1, Self::BlankBeforeColon),
    ];
    const H2: &[(usize, Self)] = &[
        (60, Self::Plain),
        (2, Self::Trailers),
        (2, Self::Continuation),
        (1, Self::HostBeside),
        (1, Self::HostAlone),
        (1, Self::CookieCrumbs),
        (1, Self::OtherHost),
        (1, Self::PathTwice),
        (1, Self::PseudoLast),
        (1, Self::UnknownPseudo),
    ];

    fn is_malformed(self) -> bool {
        matches!(
            self,
            Self::Folded
                | Self::BlankBeforeColon
                | Self::OtherHost
                | Self::PathTwice
                | Self::PseudoLast
                | Self::UnknownPseudo
        )
    }
}

/// One attempt, and what it brings.
#[derive(Debug)]
pub(super) struct Attempt<'c> {
    pub(super) version: Version,
    /// Header lines besides those that every request has.
    pub(super) fields: Vec<(String, String)>,
    pub(super) path: String,
    pub(super) framing: Framing,
    /// Places that are read for a credential and hold something: it, where its form is read.
    pub(super) given: Vec<Option<&'c Credential>>,
    pub(super) has_list: bool,
    pub(super) has_key_in_query: bool,
    /// What the identity header names.
    pub(super) named: Option<&'static str>,
    pub(super) is_named_twice: bool,
    pub(super) is_path_plain: bool,
    pub(super) is_malformed: bool,
}

impl<'c> Attempt<'c> {
    /// One with some of these credentials; those that are good where it is sent are likelier.
    pub(super) fn by_chance(
        chance: &mut Chance,
        version: Version,
        all: &'c [Credential],
        good: &[&'c Credential],
    ) -> Self {
        let (path, is_path_plain) = chance.weighted(PATHS);
        let (query, has_key_in_query) = chance.weighted(QUERIES);
        let framing = chance.weighted(match version {
            Version::H1 => Framing::H1,
            Version::H2 => Framing::H2,
        });
        let mut attempt = Self {
            version,
            fields: Vec::new(),
            path: format!("{path}{query}"),
            framing,
            given: Vec::new(),
            has_list: false,
            has_key_in_query,
            named: None,
            is_named_twice: false,
            is_path_plain,
            is_malformed: framing.is_malformed(),
        };
        for _ in 0..chance.weighted(&[(1, 0), (10, 1), (1, 2)]) {
            let is_good = chance.weighted(&[(5, true), (2, false)]) && !good.is_empty();
            let credential = match is_good {
                true => *chance.of(good),
                false => chance.of(all),
            };
            attempt.put(chance, credential);
        }
        attempt.name(chance);
        // Fields of a connection cannot take away others; HTTP/2 has none.
        let weight = if version == Version::H1 { 40 } else { 1 };
        if chance.weighted(&[(40, false), (weight, true)]) {
            let names = "authorization, x-workload-app, x-api-key";
            attempt.push(Casing::Lower, "connection", names);
        }
        attempt
    }

    /// A credential into a place.
    fn put(&mut self, chance: &mut Chance, credential: &'c Credential) {
        let (place, is_place_read) = chance.weighted(PLACES);
        let is_authorization = place.ends_with("authorization");
        let forms = if is_authorization { SCHEMES } else { BARE };
        let (form, reading) = chance.weighted(forms);
        let casing = self.casing(chance);
        self.push(casing, place, &form.replace("{}", &credential.text));
        self.is_malformed |= self.version == Version::H2 && reading == Reading::Padded;
        if is_place_read {
            let is_read = matches!(reading, Reading::Read | Reading::Padded);
            self.given.push(is_read.then_some(credential));
            self.has_list |= reading == Reading::List;
        }
    }

    /// An identity header, perhaps twice.
    fn name(&mut self, chance: &mut Chance) {
        let Some((name, value, named)) = chance.weighted(HEADERS) else {
            return;
        };
        let times = chance.weighted(&[(4, 1), (1, 2)]);
        for _ in 0..times {
            let casing = self.casing(chance);
            self.push(casing, name, value);
        }
        self.named = named;
        self.is_named_twice = named.is_some() && (times > 1 || named == Some(LIST));
    }

    fn casing(&self, chance: &mut Chance) -> Casing {
        let weights = match self.version {
            Version::H1 => (3, 2, 2),
            Version::H2 => (80, 1, 1),
        };
        chance.weighted(&[
            (weights.0, Casing::Lower),
            (weights.1, Casing::Title),
            (weights.2, Casing::Upper),
        ])
    }

    fn push(&mut self, casing: Casing, name: &str, value: &str) {
        // Names of HTTP/2 are of lower case, and no field is the connection's.
        let is_h2 = self.version == Version::H2;
        self.is_malformed |= is_h2 && (casing != Casing::Lower || name == "connection");
        self.fields.push((casing.of(name), value.to_owned()));
    }
}

/// The case of a header's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Casing {
    Lower,
    Title,
    Upper,
}

impl Casing {
    fn of(self, name: &str) -> String {
        match self {
            Self::Lower => name.to_owned(),
            Self::Upper => name.to_uppercase(),
            Self::Title => {
                let mut is_first = true;
                let title = name.chars().map(|c| {
                    let is_begin = std::mem::replace(&mut is_first, !c.is_alphanumeric());
                    if is_begin { c.to_ascii_uppercase() } else { c }
                });
                title.collect()
            }
        }
    }
}
