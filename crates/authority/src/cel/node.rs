//! What an expression becomes: nodes whose names, types, networks, zones and regular expressions are settled.

use policy::authority::Asked;
use policy::client::Network;

use super::value::Value;
use super::zone::{Part, Zone};
use crate::pattern::Pattern;

/// What an expression is known to give before it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    /// Known when it is asked: a claim, or what is made of one.
    Any,
    Null,
    Bool,
    Int,
    Float,
    Text,
    Time,
    Address,
    /// A list of texts.
    Texts,
    List,
    /// Texts by name: the tags.
    Tags,
    /// Anything by name: the claims.
    Map,
}

impl Type {
    /// In a fault.
    pub(super) fn phrase(self) -> &'static str {
        match self {
            Self::Any => "a value of a claim",
            Self::Null => "null",
            Self::Bool => "true or false",
            Self::Int => "a whole number",
            Self::Float => "a number",
            Self::Text => "a text",
            Self::Time => "a time",
            Self::Address => "an address",
            Self::Texts => "a list of texts",
            Self::List => "a list",
            Self::Tags | Self::Map => "a map",
        }
    }

    pub(super) fn is_number(self) -> bool {
        matches!(self, Self::Int | Self::Float)
    }

    pub(super) fn is_list(self) -> bool {
        matches!(self, Self::Texts | Self::List)
    }

    pub(super) fn is_map(self) -> bool {
        matches!(self, Self::Tags | Self::Map)
    }

    /// What a loop over it sees: a list's elements, a map's names.
    pub(super) fn element(self) -> Option<Self> {
        match self {
            Self::Any | Self::List => Some(Self::Any),
            Self::Texts | Self::Tags | Self::Map => Some(Self::Text),
            _ => None,
        }
    }
}

/// The names that an expression begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fact {
    Workload,
    Key,
    User,
    Tags,
    Claims,
    /// What its token may be used for.
    Scopes,
    Method,
    Path,
    Operation,
    Model,
    Route,
    Backends,
    Source,
    Time,
    /// Of conditions of filters alone.
    Arguments,
    /// The server of tools that a path is of; of conditions of filters alone.
    Server,
    /// What that server calls it; of conditions of filters alone.
    Name,
}

impl Fact {
    /// Those of rules.
    pub(super) const ALL: [Self; 14] = [
        Self::Workload,
        Self::Key,
        Self::User,
        Self::Tags,
        Self::Claims,
        Self::Scopes,
        Self::Method,
        Self::Path,
        Self::Operation,
        Self::Model,
        Self::Route,
        Self::Backends,
        Self::Source,
        Self::Time,
    ];

    /// Those of conditions of filters alone, beside the arguments of a call.
    pub(super) const OF_FILTERS: [Self; 2] = [Self::Server, Self::Name];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Workload => "workload",
            Self::Key => "key",
            Self::User => "user",
            Self::Tags => "tags",
            Self::Claims => "claims",
            Self::Scopes => "scopes",
            Self::Method => "method",
            Self::Path => "path",
            Self::Operation => "operation",
            Self::Model => "model",
            Self::Route => "route",
            Self::Backends => "backends",
            Self::Source => "source",
            Self::Time => "time",
            Self::Arguments => "arguments",
            Self::Server => "server",
            Self::Name => "name",
        }
    }

    pub(super) fn gives(self) -> Type {
        match self {
            Self::Tags => Type::Tags,
            Self::Claims | Self::Arguments => Type::Map,
            Self::Backends | Self::Scopes => Type::Texts,
            Self::Source => Type::Address,
            Self::Time => Type::Time,
            _ => Type::Text,
        }
    }

    /// Whether a call may be without it.
    pub(super) fn may_be_absent(self) -> bool {
        matches!(self, Self::Key | Self::User | Self::Model)
    }

    pub(super) fn is_absent(self, asked: &Asked<'_>) -> bool {
        match self {
            Self::Key => asked.key.is_none(),
            Self::User => asked.user.is_none(),
            Self::Model => asked.model.is_none(),
            _ => false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sum {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// What is asked of two texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextTest {
    StartsWith,
    EndsWith,
    Contains,
}

/// What a loop gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fold {
    All,
    Exists,
    ExistsOne,
    /// With a condition perhaps, the last argument's value for each element.
    Map,
    Filter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conversion {
    Int,
    Float,
    Text,
}

/// A loop over a list, or over the names of a map.
#[derive(Debug)]
pub(super) struct Loop {
    pub(super) fold: Fold,
    pub(super) over: Node,
    /// The condition of `map(x, condition, value)`.
    pub(super) when: Option<Node>,
    pub(super) each: Node,
}

/// A member of a map by a name that stands in the rule.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) of: Node,
    pub(super) name: Box<str>,
    /// How the rule writes it, `claims.a.b`, for the log.
    pub(super) written: Box<str>,
}

#[derive(Debug)]
pub(super) enum Node {
    Literal(Value<'static>),
    Fact(Fact),
    /// Whether a fact is null, or is not.
    Absent(Fact, bool),
    /// The variable of a loop, counted from the outermost.
    Variable(usize),
    Member(Box<Member>),
    /// Whether a map has a member.
    Has(Box<Member>),
    Index(Box<[Node; 2]>),
    List(Box<[Node]>),
    Not(Box<Node>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    If(Box<[Node; 3]>),
    /// Whether two values are equal, or are not.
    Equal(Box<[Node; 2]>, bool),
    Order(Order, Box<[Node; 2]>),
    In(Box<[Node; 2]>),
    Sum(Sum, Box<[Node; 2]>),
    Negative(Box<Node>),
    Loop(Box<Loop>),
    Text(TextTest, Box<[Node; 2]>),
    Matches(Box<Node>, Box<Pattern>),
    InNetwork(Box<Node>, Network),
    Part(Box<Node>, Part, Zone),
    Size(Box<Node>),
    Convert(Conversion, Box<Node>),
}
