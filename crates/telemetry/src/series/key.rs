//! Labels as packed keys, and the fixed lists of labels.
//!
//! Invariant: a key unpacks to what was packed; every list of labels here is finite, whatever an
//! upstream answers.
//! Not here: label texts (`names`).

use policy::attempt::Failure;
use policy::limit::Kind;
use policy::operation::Operation;
use policy::record::Outcome;

use crate::names::{MAX_NAMES, NameId};

/// Operations, and one more for "not known".
pub(crate) const OPERATIONS: usize = Operation::ALL.len() + 1;
/// Bits that a packed key has for a name, and those that are left for operations.
const NAME_BITS: u32 = MAX_NAMES.ilog2();
const OPERATION_BITS: u32 = 64 - 4 * NAME_BITS;
const _: () = assert!(MAX_NAMES.is_power_of_two() && OPERATIONS <= 1 << OPERATION_BITS);

/// How an exchange ended, as labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ending {
    pub(crate) outcome: Outcome,
    pub(crate) status: Status,
}

/// A status as a label: one of a fixed set, whatever an upstream may invent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Status(u16);

impl Status {
    pub(crate) fn of(status: u16) -> Self {
        match status {
            0
            | 200..=206
            | 301..=304
            | 307
            | 308
            | 400..=417
            | 421..=426
            | 429
            | 431
            | 451
            | 499..=504
            | 507
            | 529 => Self(status),
            100..=599 => Self(status / 100),
            _ => Self(9),
        }
    }

    pub(crate) fn label(self) -> String {
        match self.0 {
            0 => String::new(),
            9 => "other".to_owned(),
            class @ 1..=5 => format!("{class}xx"),
            known => known.to_string(),
        }
    }
}

/// What a cell is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CellKey {
    /// Index into [`Operation::ALL`], or one past it for "not known".
    pub(crate) operation: usize,
    pub(crate) workload: NameId,
    pub(crate) route: NameId,
    pub(crate) backend: NameId,
    pub(crate) model: NameId,
}

impl CellKey {
    pub(super) fn pack(self) -> u64 {
        let names = [self.workload, self.route, self.backend, self.model];
        names.iter().fold(self.operation as u64, |key, name| {
            key << NAME_BITS | name.bits()
        })
    }

    pub(crate) fn unpack(key: u64) -> Self {
        let name = |behind: u32| NameId::from_bits(key >> (behind * NAME_BITS));
        Self {
            operation: usize::try_from(key >> (4 * NAME_BITS)).unwrap_or(OPERATIONS - 1),
            workload: name(3),
            route: name(2),
            backend: name(1),
            model: name(0),
        }
    }

    pub(super) fn other(self) -> Self {
        let other = NameId::OTHER;
        Self {
            operation: self.operation,
            workload: other,
            route: other,
            backend: other,
            model: other,
        }
    }
}

/// Position of an operation in tables.
pub(crate) fn operation_index(operation: Option<Operation>) -> usize {
    operation.map_or(OPERATIONS - 1, |operation| operation as usize)
}

/// The label of an operation's position.
pub(crate) fn operation_label(index: usize) -> &'static str {
    Operation::ALL.get(index).map_or("", |o| o.as_str())
}

/// `gen_ai_provider_name` of an operation's position: whose dialect is spoken upstream, as
/// OpenTelemetry has it for gateways. Which provider it is, the backend says.
pub(crate) fn provider_label(index: usize) -> &'static str {
    Operation::ALL.get(index).map_or("openai", |o| o.provider())
}

/// What limits count, by the number that a key has for it.
const KINDS: [Kind; 2] = [Kind::Requests, Kind::Tokens];

/// Its place in [`KINDS`]. The compiler asks here for that of a new kind.
const fn kind_number(kind: Kind) -> usize {
    match kind {
        Kind::Requests => 0,
        Kind::Tokens => 1,
    }
}

const _: () = {
    let mut number = 0;
    while number < KINDS.len() {
        assert!(
            kind_number(KINDS[number]) == number,
            "a kind has two places"
        );
        number += 1;
    }
};

/// Key of a limit's refusals.
pub(crate) fn limited_key(workload: NameId, route: NameId, kind: Kind) -> u64 {
    let kind = kind_number(kind);
    debug_assert!(kind < KINDS.len(), "a kind that no key can be read as");
    (kind as u64) << 30 | workload.bits() << 15 | route.bits()
}

/// Workload, route and kind of a key.
pub(crate) fn limited_parts(key: u64) -> (NameId, NameId, Kind) {
    let number = usize::try_from(key >> 30).unwrap_or(usize::MAX);
    let kind = KINDS.get(number).copied().unwrap_or(Kind::Requests);
    (NameId::from_bits(key >> 15), NameId::from_bits(key), kind)
}

/// Key of an endpoint's attempts.
pub(crate) fn endpoint_key(backend: NameId, endpoint: NameId) -> u64 {
    backend.bits() << 15 | endpoint.bits()
}

/// Backend and endpoint of a key.
pub(crate) fn endpoint_parts(key: u64) -> (NameId, NameId) {
    (NameId::from_bits(key >> 15), NameId::from_bits(key))
}

/// Results of an attempt as labels.
pub(crate) const RESULTS: [&str; 19] = [
    "1xx",
    "2xx",
    "3xx",
    "4xx",
    "5xx",
    "other",
    "upstream_unresolved",
    "upstream_unreachable",
    "upstream_connect_timeout",
    "upstream_tls_error",
    "upstream_timeout",
    "upstream_reset",
    "upstream_malformed",
    "upstream_unavailable",
    "connections_exhausted",
    "upstream_proxy_error",
    "upstream_credential_unavailable",
    "call_not_translatable",
    "upstream_bad_response",
];

/// Position of a result in [`RESULTS`].
pub(crate) fn result_index(result: Result<u16, Failure>) -> usize {
    match result {
        Ok(status) | Err(Failure::Status(status)) => match status / 100 {
            class @ 1..=5 => usize::from(class) - 1,
            _ => 5,
        },
        Err(Failure::Resolve) => 6,
        Err(Failure::Connect) => 7,
        Err(Failure::ConnectTimeout) => 8,
        Err(Failure::Tls) => 9,
        Err(Failure::FirstByteTimeout) => 10,
        Err(Failure::Reset) => 11,
        Err(Failure::Malformed) => 12,
        Err(Failure::Exhausted) => 13,
        Err(Failure::LocalCapacity) => 14,
        Err(Failure::Proxy) => 15,
        Err(Failure::Credential) => 16,
        Err(Failure::Untranslatable) => 17,
        Err(Failure::BadResponse) => 18,
    }
}
