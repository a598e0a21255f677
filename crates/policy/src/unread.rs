//! Calls that a route lists and lets through unread: which they are, and what each is charged.
//!
//! Invariant: a [`Template`] takes no path of an operation that is known and posted, and none that a
//! lenient server could take for one: its words are lower case, the table of operations is asked before any
//! template is, and what `{id}` stands for is one segment of letters, digits, `-` and `_` that is no word
//! of that table and no version of an API.
//! Not here: the table ([`crate::operation`]), who may use a route's list (`config`: see decision 9).

use wire::head::{Method, RequestHead};

use crate::credential::protocols::REALTIME;
use crate::id::{PriceId, RouteId};
use crate::operation::{self, Operation, Unknown};
use crate::price::Prices;
use crate::refusal::Refusal;

/// Most calls that one route may list; more is refused by `config`.
pub const MAX_LISTED: usize = 256;
/// Most segments of a path after `/v1/`.
const SEGMENTS: usize = 8;
/// Longest word of a template.
const WORD_BYTES: usize = 64;
/// Longest value of `{id}`.
const ID_BYTES: usize = 128;

/// A call that a route lets through unread.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Its method; GET stands for HEAD too.
    pub method: Method,
    /// Its path.
    pub path: Template,
    /// Tokens that each answered call is charged, where that is said.
    pub tokens: Option<u64>,
    /// Money that each answered call is charged, where that is said: a price for the call alone.
    pub price: Option<PriceId>,
}

/// A path with places for ids, such as `/v1/files/{id}/content`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Segment>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Word(Box<str>),
    Id,
}

/// Why a text is no template, in the words that follow it in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TemplateFault {
    /// It is not under the API's root.
    #[error("does not begin with /v1/")]
    Root,
    /// Too many segments, or none.
    #[error("has no segment or more than 8 after /v1/")]
    Segments,
    /// A segment is neither a plain word nor a place for an id.
    #[error("has a segment that is neither `{{id}}` nor of a-z, 0-9, `_` and `-`")]
    Segment,
    /// A segment is a version.
    #[error("has a version after /v1/")]
    Version,
}

/// Which of which route's listed calls a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The route.
    pub route: RouteId,
    /// The position in its list.
    pub nth: u16,
}

impl Template {
    /// Reads one.
    ///
    /// # Errors
    /// [`TemplateFault`] when it is none.
    pub fn read(text: &str) -> Result<Self, TemplateFault> {
        let rest = text.strip_prefix("/v1/").ok_or(TemplateFault::Root)?;
        let segments: Vec<&str> = rest.split('/').collect();
        if rest.is_empty() || segments.len() > SEGMENTS {
            return Err(TemplateFault::Segments);
        }
        let read = segments.into_iter().map(Segment::read);
        read.collect::<Result<_, _>>().map(Self)
    }

    /// Whether it takes a path.
    #[must_use]
    pub fn takes(&self, path: &str) -> bool {
        let Some(rest) = path.strip_prefix("/v1/") else {
            return false;
        };
        let mut parts = rest.split('/');
        let fits = |segment: &Segment| parts.next().is_some_and(|part| segment.takes(part));
        self.0.iter().all(fits) && parts.next().is_none()
    }

    /// Whether it has a place for an id.
    #[must_use]
    pub fn has_id(&self) -> bool {
        self.0.contains(&Segment::Id)
    }

    /// A path that it takes.
    #[must_use]
    pub fn example(&self) -> String {
        self.to_string().replace("{id}", "x0")
    }
}

impl std::fmt::Display for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("/v1")?;
        self.0.iter().try_for_each(|segment| match segment {
            Segment::Word(word) => write!(f, "/{word}"),
            Segment::Id => f.write_str("/{id}"),
        })
    }
}

impl Segment {
    fn read(text: &str) -> Result<Self, TemplateFault> {
        if text == "{id}" {
            return Ok(Self::Id);
        }
        let is_plain =
            |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-');
        if !(1..=WORD_BYTES).contains(&text.len()) || !text.bytes().all(is_plain) {
            return Err(TemplateFault::Segment);
        }
        if operation::is_version(text) {
            return Err(TemplateFault::Version);
        }
        Ok(Self::Word(text.into()))
    }

    fn takes(&self, part: &str) -> bool {
        match self {
            Self::Word(word) => **word == *part,
            Self::Id => is_id(part),
        }
    }
}

/// Whether a segment can be an id that a provider handed out.
fn is_id(part: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    (1..=ID_BYTES).contains(&part.len()) && part.bytes().all(is_plain) && !operation::is_taken(part)
}

impl Listed {
    /// Of a route of plain HTTP, whose rules say which calls it takes: this list takes none, and is what each costs.
    #[must_use]
    pub const fn each(price: PriceId) -> Self {
        Self {
            method: Method::Other,
            path: Template(Vec::new()),
            tokens: Some(0),
            price: Some(price),
        }
    }

    /// Whether nothing is charged for it, by the catalogue of its snapshot.
    #[must_use]
    pub fn is_free(&self, prices: &Prices) -> bool {
        let price = self.price.and_then(|id| prices.get(id));
        self.tokens.unwrap_or(0) == 0 && price.is_none_or(|price| price.request.0 == 0)
    }

    /// Whether it is this request.
    fn takes(&self, method: Method, path: &str) -> bool {
        let method = if method == Method::Head {
            Method::Get
        } else {
            method
        };
        self.method == method && self.path.takes(path)
    }
}

/// Which listed call a request is: the first in the lists of the workload's routes, which come in their order.
///
/// # Errors
/// For a request that is no known operation and listed nowhere.
pub(crate) fn listed<'s>(
    head: &RequestHead,
    operation: Operation,
    mut lists: impl Iterator<Item = (RouteId, &'s [Listed])>,
) -> Result<Option<Place>, Refusal> {
    let place = lists.find_map(|(route, list)| {
        let nth = list
            .iter()
            .position(|listed| listed.takes(head.method, head.path()))?;
        Some(Place {
            route,
            nth: u16::try_from(nth).ok()?,
        })
    });
    if place.is_none() && operation == Operation::Unread {
        return Err(match Operation::unlisted(head.path()) {
            Unknown::Method(allow) => Refusal::Method { allow },
            _ if head.method == Method::Get && head.path() == REALTIME => {
                Refusal::no_websocket(head)
            }
            Unknown::Path | Unknown::Operation => Refusal::operation(head),
        });
    }
    Ok(place)
}

#[cfg(test)]
mod tests;
