//! What must come of an attempt, by the order in which sources are asked.
//!
//! Not here: the gate's own decision (`policy::exchange`), which this must not use.

use super::attempt::{Attempt, Version};
use super::credential::{Credential, Kind};
use super::scene::{Peer, Source};

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(super) enum Expected {
    /// Let in as this workload.
    In(&'static str),
    /// Refused with one of these statuses; 0 is a stream that was reset or a connection that was closed.
    Out(&'static [u16]),
}

const WORKLOADS: [&str; 2] = ["chat", "ci"];

pub(super) fn of(list: &[Source], peer: Peer, attempt: &Attempt<'_>) -> Expected {
    if attempt.is_malformed {
        return Expected::Out(match attempt.version {
            Version::H1 => &[400],
            Version::H2 => &[0, 400],
        });
    }
    if !attempt.is_path_plain {
        // Another spelling is another path, or none at all; nobody is let in by it.
        return Expected::Out(match attempt.version {
            Version::H1 => &[400, 401, 403, 404],
            Version::H2 => &[0, 400, 401, 403, 404],
        });
    }
    let places = attempt.given.len() + usize::from(attempt.has_key_in_query);
    if places > 1 || attempt.has_list || attempt.is_named_twice {
        return Expected::Out(&[400]);
    }
    let given = attempt.given.first().copied().flatten();
    for source in list {
        if let Some(found) = said(*source, peer, given, attempt.named) {
            return found;
        }
    }
    let takes_credentials = list.iter().any(|source| !source.is_header());
    // A credential that no source took is not nothing; a key in a query is.
    let brings_nothing = attempt.given.is_empty() || !takes_credentials;
    if brings_nothing && list.contains(&Source::HeaderOrChat) {
        return Expected::In("chat");
    }
    Expected::Out(if takes_credentials { &[401] } else { &[404] })
}

/// Whether a credential lets somebody in who brings nothing else.
pub(super) fn is_good(list: &[Source], credential: &Credential) -> bool {
    let mut said = list
        .iter()
        .filter_map(|source| said(*source, Peer::Nobody, Some(credential), None));
    matches!(said.next(), Some(Expected::In(_)))
}

/// What a source says, where something is brought for it.
fn said(
    source: Source,
    peer: Peer,
    given: Option<&Credential>,
    named: Option<&'static str>,
) -> Option<Expected> {
    let proven = |workload: Option<&'static str>| match workload {
        None => Expected::Out(&[401]),
        Some(workload) if named.is_some_and(|named| named != workload) => Expected::Out(&[403]),
        Some(workload) if WORKLOADS.contains(&workload) => Expected::In(workload),
        Some(_) => Expected::Out(&[403]),
    };
    let headers_word = |is_believed: bool| match named {
        Some(named) if is_believed && WORKLOADS.contains(&named) => Some(Expected::In(named)),
        Some(_) if is_believed => Some(Expected::Out(&[404])),
        _ => None,
    };
    match source {
        Source::Header | Source::HeaderOrChat => headers_word(true),
        Source::DistantHeader => headers_word(false),
        Source::HeaderOfProxy => headers_word(peer == Peer::Proxy),
        Source::Certificates => peer.workload().map(|workload| proven(Some(workload))),
        Source::Keys => {
            let given = given.filter(|given| given.kind == Kind::Key)?;
            Some(proven(given.workload))
        }
        Source::Jwt | Source::OtherJwt => {
            let ours = if source == Source::Jwt {
                Kind::Token
            } else {
                Kind::OtherToken
            };
            let given = given.filter(|given| given.kind == ours || given.kind == Kind::Broken)?;
            Some(proven(given.workload))
        }
        Source::Introspection => {
            let given = given.filter(|given| given.kind != Kind::Key)?;
            Some(proven(given.introspected))
        }
    }
}
