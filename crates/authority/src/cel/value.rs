//! What a node gives, and how values are compared.
//!
//! Invariant: nothing of a fact is copied to be looked at. Numbers compare as numbers, exactly, whatever their form;
//! values of different kinds are not equal; what has no order is an error.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use policy::authority::{Claim, Members};

/// A value.
#[derive(Debug, Clone)]
pub(super) enum Value<'e> {
    Null,
    Bool(bool),
    Int(i64),
    /// A whole number of a claim, above those.
    Large(u64),
    Float(f64),
    /// A number of a claim that nothing here holds exactly.
    Inexact,
    Text(Cow<'e, str>),
    /// Milliseconds since the epoch.
    Time(i64),
    Address(IpAddr),
    List(List<'e>),
    Map(Map<'e>),
}

/// A list, wherever it stands.
#[derive(Debug, Clone)]
pub(super) enum List<'e> {
    Claims(&'e [Claim]),
    Names(&'e [&'e str]),
    Made(Arc<[Value<'e>]>),
}

/// A map, wherever it stands.
#[derive(Debug, Clone, Copy)]
pub(super) enum Map<'e> {
    Members(&'e Members),
    Tags(&'e [(&'e str, &'e str)]),
}

/// Why an expression gives nothing. It quotes what the rule says, and no value of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble<'e> {
    /// A fact that this call has not.
    Absent(&'static str),
    /// The arguments, which are not known.
    Arguments,
    /// A member that a map has not, as the rule writes it.
    NoMember(&'e str),
    /// A place that a list or a map has not.
    NoIndex,
    /// What was wanted, and what there was.
    Kind(&'static str, &'static str),
    /// Two kinds that have no order, or no sum.
    Pair(&'static str, &'static str, &'static str),
    Overflow,
    DivisionByZero,
    /// A text, or a number, that is none of the kind that it is to become.
    Conversion(&'static str),
    /// A time outside of the calendar.
    Calendar,
    Depth,
    Steps,
    /// Those of all rules together.
    AllSteps,
}

impl fmt::Display for Trouble<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent(fact) => write!(f, "the call has no {fact}: ask {fact} != null first"),
            Self::Arguments => write!(f, "the arguments are not known, or are not looked at"),
            Self::NoMember(written) => write!(f, "there is no {written}: ask has({written}) first"),
            Self::NoIndex => write!(f, "nothing stands under that index"),
            Self::Kind(wanted, found) => write!(f, "{wanted} is wanted, and this is {found}"),
            Self::Pair(what, a, b) => write!(f, "{a} and {b} cannot be {what}"),
            Self::Overflow => write!(f, "a number grows too large"),
            Self::DivisionByZero => write!(f, "a division by zero"),
            Self::Conversion(kind) => write!(f, "that does not become {kind}"),
            Self::Calendar => write!(f, "the time is outside of the calendar"),
            Self::Depth => write!(f, "lists nest deeper than {}", super::DEPTH_MAX),
            Self::Steps => write!(f, "took more than {} steps", super::STEPS_MAX),
            Self::AllSteps => {
                let most = super::ALL_STEPS_MAX;
                write!(f, "the rules together took more than {most} steps")
            }
        }
    }
}

impl<'e> Value<'e> {
    pub(super) fn of(claim: &'e Claim) -> Self {
        match claim {
            Claim::Null => Self::Null,
            Claim::Bool(value) => Self::Bool(*value),
            Claim::Int(value) => Self::Int(*value),
            Claim::Large(value) => Self::Large(*value),
            Claim::Float(value) => Self::Float(*value),
            Claim::Inexact => Self::Inexact,
            Claim::Text(value) => Self::Text(Cow::Borrowed(value)),
            Claim::List(value) => Self::List(List::Claims(value)),
            Claim::Map(value) => Self::Map(Map::Members(value)),
        }
    }

    /// The same value, without a copy of its text.
    pub(super) fn lend(&'e self) -> Self {
        match self {
            Self::Text(text) => Self::Text(Cow::Borrowed(text)),
            other => other.clone(),
        }
    }

    /// Bytes that a copy of it takes.
    pub(super) fn copied_bytes(&self) -> usize {
        match self {
            Self::Text(Cow::Owned(text)) => text.len(),
            _ => 0,
        }
    }

    /// In the log.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "true or false",
            Self::Int(_) | Self::Large(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Inexact => "a number that is not exact",
            Self::Text(_) => "a text",
            Self::Time(_) => "a time",
            Self::Address(_) => "an address",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }

    pub(super) fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            (Self::Time(a), Self::Time(b)) => Some(a.cmp(b)),
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }

    /// How two numbers compare: `None` when one is none, and inside when one is not a number at all (NaN).
    pub(super) fn number_order(&self, other: &Self) -> Option<Option<Ordering>> {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => Some(Some(a.cmp(b))),
            (Self::Float(a), Self::Float(b)) => Some(a.partial_cmp(b)),
            (Self::Large(a), Self::Large(b)) => Some(Some(a.cmp(b))),
            (Self::Int(_), Self::Large(_)) => Some(Some(Ordering::Less)),
            (Self::Large(_), Self::Int(_)) => Some(Some(Ordering::Greater)),
            (Self::Int(a), Self::Float(b)) => Some(mixed(i128::from(*a), *b)),
            (Self::Float(a), Self::Int(b)) => {
                Some(mixed(i128::from(*b), *a).map(Ordering::reverse))
            }
            (Self::Large(a), Self::Float(b)) => Some(mixed(i128::from(*a), *b)),
            (Self::Float(a), Self::Large(b)) => {
                Some(mixed(i128::from(*b), *a).map(Ordering::reverse))
            }
            _ => None,
        }
    }

    /// Whether two values that are no lists and no maps are equal; `None` when both are lists or maps, or one is
    /// not exact.
    pub(super) fn scalar_equal(&self, other: &Self) -> Option<bool> {
        if matches!(self, Self::Inexact) || matches!(other, Self::Inexact) {
            return None;
        }
        if let Some(order) = self.number_order(other) {
            return Some(order == Some(Ordering::Equal));
        }
        match (self, other) {
            (Self::Null, Self::Null) => Some(true),
            (Self::Text(a), Self::Text(b)) => Some(a == b),
            (Self::Bool(a), Self::Bool(b)) => Some(a == b),
            (Self::Time(a), Self::Time(b)) => Some(a == b),
            (Self::Address(a), Self::Address(b)) => Some(a == b),
            (Self::List(_), Self::List(_)) | (Self::Map(_), Self::Map(_)) => None,
            _ => Some(false),
        }
    }
}

/// Two to the 64th, the first whole number above every `i64` and `u64`.
const ABOVE_U64: f64 = 18_446_744_073_709_551_616.0;

/// A whole number against another, without the rounding that either's form would bring.
fn mixed(whole: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    if float >= ABOVE_U64 {
        return Some(Ordering::Less);
    }
    if float < -ABOVE_U64 {
        return Some(Ordering::Greater);
    }
    let floor = float.floor();
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it is whole, and within the bounds that were just looked at"
    )]
    let below = floor as i128;
    let rest = if float > floor {
        Ordering::Less
    } else {
        Ordering::Equal
    };
    Some(whole.cmp(&below).then(rest))
}

impl<'e> List<'e> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Claims(claims) => claims.len(),
            Self::Names(names) => names.len(),
            Self::Made(values) => values.len(),
        }
    }

    pub(super) fn get(&self, at: usize) -> Option<Value<'e>> {
        match self {
            Self::Claims(claims) => claims.get(at).map(Value::of),
            Self::Names(names) => names.get(at).map(|name| Value::Text(Cow::Borrowed(*name))),
            Self::Made(values) => values.get(at).cloned(),
        }
    }
}

impl List<'_> {
    /// Bytes that are copied to look at an element.
    pub(super) fn copied_bytes(&self, at: usize) -> usize {
        match self {
            Self::Made(values) => values.get(at).map_or(0, Value::copied_bytes),
            Self::Claims(_) | Self::Names(_) => 0,
        }
    }
}

impl<'e> Map<'e> {
    pub(super) fn get(&self, name: &str) -> Option<Value<'e>> {
        match self {
            Self::Members(members) => members.get(name).map(Value::of),
            Self::Tags(tags) => {
                let pair = tags.iter().find(|(known, _)| *known == name);
                pair.map(|(_, value)| Value::Text(Cow::Borrowed(*value)))
            }
        }
    }

    /// How many members it has.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Members(members) => members.len(),
            Self::Tags(tags) => tags.len(),
        }
    }

    /// What looking for a name costs, steps.
    pub(super) fn search_steps(&self) -> usize {
        match self {
            // Halved until one is left, after a first look.
            Self::Members(members) => 1 + members.len().checked_ilog2().unwrap_or(0) as usize / 2,
            Self::Tags(tags) => tags.len(),
        }
    }

    /// The name at a place, in no promised order.
    pub(super) fn name(&self, at: usize) -> Option<Value<'e>> {
        let name = match self {
            Self::Members(members) => members.at(at).map(|(name, _)| name),
            Self::Tags(tags) => tags.get(at).map(|(name, _)| *name),
        };
        name.map(|name| Value::Text(Cow::Borrowed(name)))
    }
}
